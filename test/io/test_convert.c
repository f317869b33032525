/* test_convert.c - rows travel through every format and come back as they were; samples are rows of
 * the file. */
#include "base/thread/team.h"
#include "datasets.h"
#include "io/format/format.h"
#include "io/read/row_scan.h"
#include "io/schema/schema.h"
#include "io/write/write_sink.h"
#include "io/write/writer.h"
#include "support/test.h"

enum { HOPS = 9 };

SET_UP
{
    static datasets d;
    datasets_open(&d, 3);
    *state = &d;
}

TEAR_DOWN
{
    datasets_close(*state);
}

#define SLOTS                                                                                      \
    "slots: [{name: a, field: 0, range: [0, 100]}, "                                               \
    "{name: m, field: 1, range: [100, 200], list: \"|\", values: mx}, "                            \
    "{name: p, type: float, as: weighted, field: 2, range: [200, 201]}, "                          \
    "{name: q, type: float, as: value, field: 3, range: [201, 202]}]"

static const char columns[] = "columns: [label, w, a, m, mx, p, q]";

/* n rows of libffm in the writer's own spelling, with gaps, weights and soft labels. */
static void make_ffm(tn_text *out, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        tn_text_adds(out, i % 7 == 3 ? "0.25" : i % 3 == 0 ? "1" : "0");
        if (i % 5 == 1) {
            tn_text_addf(out, ":%u", 2 * (i % 11));
        }
        if (i % 4 != 0) {
            tn_text_addf(out, " 0:%u:1", i % 100);
        }
        for (uint32_t k = 0; k < i % 6; k++) {
            tn_text_addf(out, " 1:%u:%s", 100 + (i * k) % 100, k % 2 == 0 ? "1" : "-0.125");
        }
        if (i % 9 != 0) {
            tn_text_addf(out, " 2:0:%u.%u", i, 1 + i % 9);
        }
        if (i % 8 != 0) {
            tn_text_addf(out, " 3:0:-%u.5", i % 1000);
        }
        tn_text_addc(out, '\n');
    }
}

TEST_ON(datasets *d, rows_survive_all_formats)
{
    static const char *const formats[HOPS] = {"csv",   "tsv", "vw",  "libsvm", "tfrecord",
                                              "jsonl", "crb", "csv", "libffm"};
    tn_text original CLEANUP(tn_text_done) = {0};
    make_ffm(&original, 5000);
    datasets_write(d, "hop0", original.data, original.size);
    char yaml[1000];
    const char *from = "libffm";
    uint32_t n = 0;
    for (uint32_t i = 0; i < HOPS; i++) {
        if (tn_format_find(formats[i]) == NULL) {
            continue; /* an extra that is not built */
        }
        (void)snprintf(yaml, sizeof yaml, "{data: {format: %s, weight: w%s%s}, " SLOTS "}", from,
                       strcmp(from, "tsv") == 0 ? ", " : "",
                       strcmp(from, "tsv") == 0 ? columns : "");
        tn_dataset *in = datasets_bind(d, yaml, TN_DATASET_AS_READ);
        (void)snprintf(yaml, sizeof yaml, "{format: %s}", formats[i]);
        tn_dataset *out = datasets_target(d, in, yaml, 0);
        assert_non_null(out);
        char before[16];
        char after[16];
        (void)snprintf(before, sizeof before, "hop%u", n);
        (void)snprintf(after, sizeof after, "hop%u", ++n);
        fail_if(datasets_convert(d, in, before, out, after, 0) != TN_OK, "%s to %s: %s", from,
                formats[i], d->err.text);
        from = formats[i];
    }
    (void)snprintf(yaml, sizeof yaml, "hop%u", n);
    const tn_text *back = datasets_read(d, yaml);
    assert_int_equal(back->size, original.size);
    assert_memory_equal(back->data, original.data, original.size);
}

/* The golden rows are the same in all their files, so they become the same file. */
TEST_ON(datasets *d, golden_rows_become_one_file)
{
    static const char *const files[] = {"rows.tsv", "rows.ffm", "rows.tfrecord"};
    char unpacked[256] CLEANUP(tn_tmpdir_cleanup);
    tn_tmpdir_unpack(unpacked, "rows");
    static const char *const heads[] = {
        "format: tsv, header: true, weight: weight, list: \",\"",
        "format: libffm, weight: weight",
        "format: tfrecord, weight: weight",
    };
    const tn_text *first = NULL;
    for (uint32_t i = 0; i < 3; i++) {
        char yaml[1000];
        char path[300];
        (void)snprintf(path, sizeof path, "%s/%s", i == 0 ? "test/golden/data" : unpacked,
                       files[i]);
        (void)snprintf(yaml, sizeof yaml,
                       "{data: {%s}, slots: [{name: user, field: 0}, {name: item, field: 1}, "
                       "{name: hist, field: 2, share: item, list: \",\"}, "
                       "{name: tags, field: 3, values: tags_x, list: \",\"}, "
                       "{name: city, field: 4}, {name: rare, field: 5}, "
                       "{name: price, field: 6, type: float, as: value, transform: log}]}",
                       heads[i]);
        tn_dataset *in = datasets_bind(d, yaml, TN_DATASET_AS_READ);
        tn_dataset *out = datasets_target(d, in, "{format: tfrecord}", 0);
        assert_non_null(out);
        tn_text bytes = {0};
        assert_int_equal(tn_file_read_all(path, 1 << 24, &bytes, &d->err), TN_OK);
        datasets_write(d, files[i], bytes.data, bytes.size);
        tn_text_done(&bytes);
        fail_if(datasets_convert(d, in, files[i], out, "golden", 0) != TN_OK, "%s: %s", files[i],
                d->err.text);
        const tn_text *golden = datasets_read(d, "golden");
        first = first == NULL ? golden : first;
        assert_int_equal(golden->size, first->size);
        assert_memory_equal(golden->data, first->data, first->size);
    }
    assert_true(first->size > 4096);
}

TEST_ON(datasets *d, the_number_of_threads_does_not_show)
{
    tn_text original = {0};
    make_ffm(&original, 20000);
    datasets_write(d, "in", original.data, original.size);
    tn_text_done(&original);
    tn_dataset *in =
        datasets_bind(d, "{data: {format: libffm, weight: w}, " SLOTS "}", TN_DATASET_AS_READ);
    const bool packs = tn_format_find("crb") != NULL;
    const tn_dataset *out[] = {
        datasets_target(d, in, "{format: csv, compression: none}", 0),
        datasets_target(d, in, packs ? "{format: crb}" : "{format: tfrecord}", 0)};
    const tn_text *three[2];
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(datasets_convert(d, in, "in", out[i], "three", 0), TN_OK);
        three[i] = datasets_read(d, "three");
    }
    tn_team_close(d->team);
    d->team = NULL;
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(datasets_convert(d, in, "in", out[i], "one", 0), TN_OK);
        const tn_text *one = datasets_read(d, "one");
        assert_int_equal(one->size, three[i]->size);
        assert_memory_equal(one->data, three[i]->data, one->size);
    }
}

TEST_ON(datasets *d, compressed_output_reads_back)
{
    static const char *const how[] = {"gzip", "zlib"};
    tn_text original CLEANUP(tn_text_done) = {0};
    make_ffm(&original, 3000);
    datasets_write(d, "in", original.data, original.size);
    for (uint32_t i = 0; i < 2; i++) {
        char yaml[1000];
        tn_dataset *in = datasets_bind(d, "{data: {format: libffm, weight: w}, " SLOTS "}", 0);
        (void)snprintf(yaml, sizeof yaml, "{format: libffm, compression: %s}", how[i]);
        tn_dataset *out = datasets_target(d, in, yaml, 0);
        assert_int_equal(datasets_convert(d, in, "in", out, "packed", 0), TN_OK);
        assert_true(datasets_read(d, "packed")->size < original.size / 2);
        (void)snprintf(yaml, sizeof yaml,
                       "{data: {format: libffm, weight: w, compression: %s}, " SLOTS "}", how[i]);
        tn_dataset *packed = datasets_bind(d, yaml, 0);
        tn_dataset *plain = datasets_target(d, packed, "{format: libffm}", 0);
        assert_int_equal(datasets_convert(d, packed, "packed", plain, "plain", 0), TN_OK);
        assert_string_equal(datasets_read(d, "plain")->data, original.data);
    }
}

TEST_ON(datasets *d, a_failure_leaves_the_older_file)
{
    tn_dataset *in = datasets_bind(d, "{data: {format: libsvm}}", TN_DATASET_AS_READ);
    tn_dataset *out = datasets_target(d, in, "{format: libsvm}", 0);
    datasets_write(d, "out", "older\n", 6);
    datasets_write(d, "in", "1 2\n1 x\n", 8);
    assert_int_equal(datasets_convert(d, in, "in", out, "out", 0), TN_E_DATA);
    assert_non_null(strstr(d->err.text, "in:2:3: error: expected an index"));
    assert_string_equal(datasets_read(d, "out")->data, "older\n");
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(d->dir, &names, &n, NULL), TN_OK);
    assert_int_equal(n, 2); /* no leftovers */
}

TEST_ON(datasets *d, records_at_fault_are_passed_over_when_allowed)
{
    datasets_write(d, "in", "1 2\n1 5 x\n0 3\nz\n", 16);
    tn_dataset *in = datasets_bind(d, "{data: {format: libsvm, bad_records_max: 2}}", 0);
    tn_dataset *out = datasets_target(d, in, "{format: libsvm}", 0);
    assert_int_equal(datasets_convert(d, in, "in", out, "out", 0), TN_OK);
    assert_string_equal(datasets_read(d, "out")->data, "1 2:1\n0 3:1\n");
    in = datasets_bind(d, "{data: {format: libsvm, bad_records_max: 1}}", 0);
    assert_int_equal(datasets_convert(d, in, "in", out, "out", 0), TN_E_DATA);
    in = datasets_bind(d, "{data: {format: libsvm, bad_records_max: 10%}}", 0);
    assert_int_equal(datasets_convert(d, in, "in", out, "out", 0), TN_E_DATA);
    assert_non_null(strstr(d->err.text, "2 of 4 records are bad, more than data.bad_records_max"));
    in = datasets_bind(d, "{data: {format: libsvm, bad_records_max: 50%}}", 0);
    assert_int_equal(datasets_convert(d, in, "in", out, "out", 0), TN_OK);
    datasets_write(d, "in", "1 x\nz\n", 6);
    in = datasets_bind(d, "{data: {format: libsvm, bad_records_max: 1000}}", 0);
    assert_int_equal(datasets_convert(d, in, "in", out, "out", 0), TN_E_DATA);
    assert_non_null(strstr(d->err.text, "no record is good: all 2 are bad"));
    assert_string_equal(datasets_read(d, "out")->data, "1 2:1\n0 3:1\n");
}

static tn_sink *open_sink(datasets *d, const char *out)
{
    tn_sink *sink = NULL;
    assert_int_equal(tn_sink_open(&sink, datasets_path(d, out), NULL, TN_COMPRESSION_NONE, &d->err),
                     TN_OK);
    return sink;
}

static tn_status sample(datasets *d, tn_sample_in in, const char *out, uint64_t *taken)
{
    const tn_sample_sinks sinks = {open_sink(d, out), NULL};
    tn_row_scan_counts counts;
    tn_status status = tn_sample_rows(&in, &sinks, taken, &counts, &d->err);
    if (status != TN_OK) {
        tn_sink_abandon(sinks.sample);
        return status;
    }
    return tn_sink_commit(sinks.sample, &d->err);
}

/* Every line of `whole` but the first stands in one of the two files, in the same order. */
static void check_rest(datasets *d, tn_sample_in in, const char *whole, uint64_t want)
{
    const tn_sample_sinks sinks = {open_sink(d, "part"), open_sink(d, "rest")};
    tn_row_scan_counts counts;
    uint64_t taken = 0;
    assert_int_equal(tn_sample_rows(&in, &sinks, &taken, &counts, &d->err), TN_OK);
    assert_int_equal(tn_sink_commit(sinks.sample, &d->err), TN_OK);
    assert_int_equal(tn_sink_commit(sinks.rest, &d->err), TN_OK);
    assert_true(want == 0 || taken == want);
    tn_text one CLEANUP(tn_text_done) = {0};
    tn_text_adds(&one, datasets_read(d, "part")->data);
    const char *part = one.data;
    const char *rest = datasets_read(d, "rest")->data;
    const size_t head = strcspn(whole, "\n") + 1;
    assert_memory_equal(part, whole, head);
    assert_memory_equal(rest, whole, head);
    part += head;
    rest += head;
    for (const char *at = whole + head; *at != '\0';) {
        const size_t size = strcspn(at, "\n") + 1;
        const bool is_taken = strncmp(part, at, size) == 0;
        assert_true(is_taken || strncmp(rest, at, size) == 0);
        part += is_taken ? size : 0;
        rest += is_taken ? 0 : size;
        at += size;
    }
    assert_true(*part == '\0' && *rest == '\0');
}

/* Every line of `part` is a line of `whole`, in the same order; returns how many. */
static uint32_t count_lines_of(const char *part, const char *whole)
{
    uint32_t n = 0;
    while (*part != '\0') {
        size_t size = strcspn(part, "\n") + 1;
        while (strncmp(part, whole, size) != 0) {
            assert_true(*whole != '\0');
            whole += strcspn(whole, "\n") + 1;
        }
        whole += size;
        part += size;
        n++;
    }
    return n;
}

TEST_ON(datasets *d, a_sample_holds_lines_of_the_file_in_order)
{
    enum { N = 40000 }; /* more than a sample gathers */
    tn_text csv CLEANUP(tn_text_done) = {0};
    tn_text_adds(&csv, "free,label,a\n");
    for (uint32_t i = 0; i < N; i++) {
        tn_text_addf(&csv, "\"%u, kept as it is\",%u,%u\n", i, i % 2, i);
    }
    datasets_write(d, "in", csv.data, csv.size);
    const char *path = datasets_path(d, "in");
    const tn_strs paths = {1, &path};
    tn_dataset *from = datasets_bind(d, "{data: {format: csv}, slots: [{name: a}]}", 0);
    uint64_t taken = 0;
    tn_sample_in in = {from, &paths, 100, (double)NAN, 5, d->team};
    assert_int_equal(sample(d, in, "some", &taken), TN_OK);
    assert_int_equal(taken, 100);
    assert_int_equal(count_lines_of(datasets_read(d, "some")->data, csv.data),
                     101); /* and header */
    const char *again = datasets_read(d, "some")->data;
    assert_int_equal(sample(d, in, "again", &taken), TN_OK);
    assert_string_equal(datasets_read(d, "again")->data, again);
    in.seed = 6;
    assert_int_equal(sample(d, in, "other", &taken), TN_OK);
    assert_string_not_equal(datasets_read(d, "other")->data, again);

    in.share = 0.25;
    in.rows = 0;
    assert_int_equal(sample(d, in, "share", &taken), TN_OK);
    assert_true(fabs((double)taken - N / 4.0) < 5 * sqrt(N * .25 * .75));
    assert_int_equal(count_lines_of(datasets_read(d, "share")->data, csv.data), taken + 1);
    in.share = (double)NAN;
    in.rows = N + N;
    assert_int_equal(sample(d, in, "all", &taken), TN_OK);
    assert_int_equal(taken, N);
    assert_string_equal(datasets_read(d, "all")->data, csv.data);
}

TEST_ON(datasets *d, what_is_not_in_a_sample_is_its_rest)
{
    tn_text csv CLEANUP(tn_text_done) = {0};
    tn_text_adds(&csv, "label,a\n");
    for (uint32_t i = 0; i < 3000; i++) {
        tn_text_addf(&csv, "%u,%u\n", i % 2, i);
    }
    datasets_write(d, "in", csv.data, csv.size);
    const char *path = datasets_path(d, "in");
    const tn_strs paths = {1, &path};
    tn_dataset *from = datasets_bind(d, "{data: {format: csv}, slots: [{name: a}]}", 0);
    check_rest(d, (tn_sample_in){from, &paths, 100, (double)NAN, 5, d->team}, csv.data, 100);
    check_rest(d, (tn_sample_in){from, &paths, 5000, (double)NAN, 5, d->team}, csv.data, 3000);
    check_rest(d, (tn_sample_in){from, &paths, 0, 0.3, 5, d->team}, csv.data, 0);
}

TEST_ON(datasets *d, a_sample_has_the_header_and_not_what_stands_above_it)
{
    static const char text[] = "\xef\xbb\xbf# made by hand\n\nlabel,a\n1,2\n# more\n0,3\n";
    datasets_write(d, "commented", text, sizeof text - 1);
    const char *path = datasets_path(d, "commented");
    const tn_strs paths = {1, &path};
    tn_dataset *from =
        datasets_bind(d, "{data: {format: csv, comment: '#'}, slots: [{name: a}]}", 0);
    uint64_t taken = 0;
    tn_sample_in in = {from, &paths, 100, (double)NAN, 5, d->team};
    assert_int_equal(sample(d, in, "uncommented", &taken), TN_OK);
    assert_string_equal(datasets_read(d, "uncommented")->data, "label,a\n1,2\n0,3\n");
    /* other formats have none */
    datasets_write(d, "svm", "1 2\n0 3\n", 8);
    const char *svm = datasets_path(d, "svm");
    const tn_strs svm_paths = {1, &svm};
    in.paths = &svm_paths;
    in.from = datasets_bind(d, "{data: {format: libsvm}}", 0);
    assert_int_equal(sample(d, in, "svm2", &taken), TN_OK);
    assert_string_equal(datasets_read(d, "svm2")->data, "1 2\n0 3\n");
}

TEST_ON(datasets *d, a_sample_of_tfrecords_reads_back)
{
    tn_text ffm CLEANUP(tn_text_done) = {0};
    make_ffm(&ffm, 1000);
    datasets_write(d, "in", ffm.data, ffm.size);
    tn_dataset *in = datasets_bind(d, "{data: {format: libffm, weight: w}, " SLOTS "}", 0);
    tn_dataset *tf = datasets_target(d, in, "{format: tfrecord}", 0);
    assert_int_equal(datasets_convert(d, in, "in", tf, "tf", 0), TN_OK);
    const char *path = datasets_path(d, "tf");
    const tn_strs paths = {1, &path};
    uint64_t taken = 0;
    tn_sample_in job = {tf, &paths, 1000, (double)NAN, 1, d->team};
    assert_int_equal(sample(d, job, "all", &taken), TN_OK);
    const tn_text *all = datasets_read(d, "all");
    const tn_text *file = datasets_read(d, "tf");
    assert_int_equal(all->size, file->size);
    assert_memory_equal(all->data, file->data, file->size);
}

/* clicks.crb has blocks of indices of 8 and 4 bytes. The sample is of a configuration that reads
 * few of them, as words, which no crb is written of. */
TEST_ON(datasets *d, a_sample_of_row_blocks_is_that_of_their_rows)
{
    if (tn_format_find("crb") == NULL) {
        skip();
    }
    tn_text crb CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_file_read_all("test/io/data/clicks.crb", 1 << 20, &crb, NULL), TN_OK);
    datasets_write(d, "crb", crb.data, crb.size);
    tn_dataset *blocks = datasets_bind(d, "{data: {format: crb}}", TN_DATASET_AS_READ);
    tn_dataset *lines = datasets_bind(d, "{data: {format: libsvm}}", TN_DATASET_AS_READ);
    tn_dataset *few = datasets_bind(d,
                                    "{data: {format: crb, unknown_field: ignore, label: none}, "
                                    "slots: [{name: a, type: str, range: [0, 9]}]}",
                                    0);
    tn_dataset *to_lines = datasets_target(d, blocks, "{format: libsvm}", 0);
    assert_int_equal(datasets_convert(d, blocks, "crb", to_lines, "svm", 0), TN_OK);
    const tn_strs of_blocks = {1, (const char *[]){datasets_path(d, "crb")}};
    const tn_strs of_lines = {1, (const char *[]){datasets_path(d, "svm")}};
    const tn_sample_in asked[] = {
        {few, &of_blocks, 70, (double)NAN, 3, d->team},
        {few, &of_blocks, 0, 0.4, 9, d->team},
        {few, &of_blocks, 1000, (double)NAN, 3, d->team},
    };
    for (uint32_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        tn_sample_in in = asked[i];
        uint64_t taken = 0;
        uint64_t want = 0;
        assert_int_equal(sample(d, in, "some.crb", &taken), TN_OK);
        in.from = lines;
        in.paths = &of_lines;
        assert_int_equal(sample(d, in, "want", &want), TN_OK);
        assert_true(taken == want && (i == 1 ? taken > 50 : taken == (i == 0 ? 70 : 200)));
        assert_int_equal(datasets_convert(d, blocks, "some.crb", to_lines, "some", 0), TN_OK);
        assert_string_equal(datasets_read(d, "some")->data, datasets_read(d, "want")->data);
    }
}

/* Labels, weights and values that are all there, some, or none. */
TEST_ON(datasets *d, a_sample_of_all_row_blocks_is_the_file)
{
    if (tn_format_find("crb") == NULL) {
        skip();
    }
    static const struct {
        const char *from, *bits, *rows;
    } cases[] = {
        {"label: none", "", "3:1 4:1\n\n9:1\n"},
        {"label: label", "", "1:0.5 3:0.25 4:1\n0 7:1\n"},
        {"label: label", ", slot_bits: high 2", "1 0:7:1 3:3221225477:1\n0 0:1:1\n1\n"},
        {"label: label", ", slot_bits: low 2", "1 0:4:1 3:3:2\n0:3\n0 0:8:1\n"},
    };
    const tn_strs paths = {1, (const char *[]){datasets_path(d, "crb")}};
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char yaml[200];
        const bool fields = cases[i].bits[0] != '\0';
        const char *slots = fields ? ", slots: [{name: a, field: 0}, {name: b, field: 3}]" : "";
        (void)snprintf(yaml, sizeof yaml, "{data: {format: %s, %s}%s}",
                       fields ? "libffm" : "libsvm", cases[i].from, slots);
        tn_dataset *in = datasets_bind(d, yaml, TN_DATASET_AS_READ);
        (void)snprintf(yaml, sizeof yaml, "{format: crb%s}", cases[i].bits);
        tn_dataset *packed = datasets_target(d, in, yaml, 0);
        uint64_t taken = 0;
        datasets_write(d, "in", cases[i].rows, strlen(cases[i].rows));
        assert_int_equal(datasets_convert(d, in, "in", packed, "crb", 0), TN_OK);
        const tn_sample_in all = {packed, &paths, 9, (double)NAN, 1, d->team};
        assert_int_equal(sample(d, all, "all", &taken), TN_OK);
        const tn_text *file = datasets_read(d, "crb");
        const tn_text *have = datasets_read(d, "all");
        assert_int_equal(taken, i == 1 || i == 0 ? 2 : 3);
        assert_int_equal(have->size, file->size);
        assert_memory_equal(have->data, file->data, file->size);
    }
}

/* The configuration of `to`, bound again. */
static tn_dataset *describe(datasets *d, const tn_dataset *to)
{
    tn_writer *w = NULL;
    tn_text names CLEANUP(tn_text_done) = {0};
    tn_text yaml CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_writer_new(&w, to->data.format, to->schema, 0, NULL), TN_OK);
    tn_writer_columns(w, &names);
    tn_dataset_config(to, "out", names.data, &yaml);
    tn_dataset *read = datasets_bind(d, yaml.data, TN_DATASET_AS_READ);
    tn_writer_free(w);
    return read;
}

TEST_ON(datasets *d, a_column_called_none_is_not_the_lack_of_labels)
{
    tn_dataset *in = datasets_bind(
        d, "{data: {format: csv, label: \"none\"}, slots: [{name: a, column: \"x, y\"}]}", 0);
    tn_dataset *tsv = datasets_target(d, in, "{format: tsv}", 0);
    assert_false(tsv->schema->label->none);
    tn_dataset *read = describe(d, tsv);
    assert_false(read->schema->label->none);
    assert_string_equal(read->schema->label->column, "none");
    assert_int_equal(read->data.columns.n, 2);
    assert_string_equal(read->data.columns.item[1], "x, y");
    in = datasets_bind(d, "{data: {format: csv, label: none}, slots: [{name: a}]}", 0);
    tsv = datasets_target(d, in, "{format: tsv}", 0);
    assert_true(tsv->schema->label->none);
    assert_true(describe(d, tsv)->schema->label->none);
}

/* What describes an output reads it. */
TEST_ON(datasets *d, the_written_configuration_reads_the_file)
{
    tn_text ffm CLEANUP(tn_text_done) = {0};
    make_ffm(&ffm, 500);
    datasets_write(d, "in", ffm.data, ffm.size);
    tn_dataset *in = datasets_bind(d, "{data: {format: libffm, weight: w}, " SLOTS "}", 0);
    tn_dataset *tsv = datasets_target(d, in, "{format: tsv, delimiter: \";\"}", 0);
    assert_int_equal(datasets_convert(d, in, "in", tsv, "tsv", 0), TN_OK);
    tn_writer *w = NULL;
    tn_text names CLEANUP(tn_text_done) = {0};
    tn_text yaml CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_writer_new(&w, "tsv", tsv->schema, 0, NULL), TN_OK);
    tn_writer_columns(w, &names);
    tn_dataset_config(tsv, "tsv", names.data, &yaml);
    tn_dataset *read = datasets_bind(d, yaml.data, TN_DATASET_AS_READ);
    tn_dataset *back = datasets_target(d, read, "{format: libffm}", 0);
    assert_int_equal(datasets_convert(d, read, "tsv", back, "back", 0), TN_OK);
    assert_string_equal(datasets_read(d, "back")->data, ffm.data);
    tn_writer_free(w);
}
