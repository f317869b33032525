/* test_row_sample.c - samples are rows of the file, byte for byte. */
#include "base/file/file.h"
#include "extra/inspect/row_sample.h"
#include "io/datasets.h"
#include "io/format/format.h"
#include "io/read/row_scan.h"
#include "io/write/write_sink.h"
#include "support/test.h"

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

static void make_csv(tn_text *out, uint32_t n)
{
    tn_text_adds(out, "label,a\n");
    for (uint32_t i = 0; i < n; i++) {
        tn_text_addf(out, "%u,%u\n", i % 2, i);
    }
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
    tn_row_scan_counts counts;
    in.sample = open_sink(d, out);
    tn_status status = tn_sample_rows(&in, taken, &counts, &d->err);
    if (status != TN_OK) {
        tn_sink_abandon(in.sample);
        return status;
    }
    return tn_sink_commit(in.sample, &d->err);
}

/* Every line of `whole` but the first is in one of the two files, in the same order. */
static void check_rest(datasets *d, tn_sample_in in, const char *whole, uint64_t want)
{
    in.sample = open_sink(d, "part");
    in.rest = open_sink(d, "rest");
    tn_row_scan_counts counts;
    uint64_t taken = 0;
    assert_int_equal(tn_sample_rows(&in, &taken, &counts, &d->err), TN_OK);
    assert_int_equal(tn_sink_commit(in.sample, &d->err), TN_OK);
    assert_int_equal(tn_sink_commit(in.rest, &d->err), TN_OK);
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
    tn_sample_in in = {from, &paths, 100, (double)NAN, 5, d->team, NULL, NULL};
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
    make_csv(&csv, 3000);
    datasets_write(d, "in", csv.data, csv.size);
    const char *path = datasets_path(d, "in");
    const tn_strs paths = {1, &path};
    tn_dataset *from = datasets_bind(d, "{data: {format: csv}, slots: [{name: a}]}", 0);
    check_rest(d, (tn_sample_in){from, &paths, 100, (double)NAN, 5, d->team, NULL, NULL}, csv.data,
               100);
    check_rest(d, (tn_sample_in){from, &paths, 5000, (double)NAN, 5, d->team, NULL, NULL}, csv.data,
               3000);
    check_rest(d, (tn_sample_in){from, &paths, 0, 0.3, 5, d->team, NULL, NULL}, csv.data, 0);
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
    tn_sample_in in = {from, &paths, 100, (double)NAN, 5, d->team, NULL, NULL};
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
    tn_text csv CLEANUP(tn_text_done) = {0};
    make_csv(&csv, 1000);
    datasets_write(d, "in", csv.data, csv.size);
    tn_dataset *in = datasets_bind(d, "{data: {format: csv}, slots: [{name: a}]}", 0);
    tn_dataset *tf = datasets_target(d, in, "{format: tfrecord}", 0);
    assert_int_equal(datasets_convert(d, in, "in", tf, "tf", 0), TN_OK);
    const char *path = datasets_path(d, "tf");
    const tn_strs paths = {1, &path};
    uint64_t taken = 0;
    tn_sample_in job = {tf, &paths, 1000, (double)NAN, 1, d->team, NULL, NULL};
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
        {few, &of_blocks, 70, (double)NAN, 3, d->team, NULL, NULL},
        {few, &of_blocks, 0, 0.4, 9, d->team, NULL, NULL},
        {few, &of_blocks, 1000, (double)NAN, 3, d->team, NULL, NULL},
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
        const tn_sample_in all = {packed, &paths, 9, (double)NAN, 1, d->team, NULL, NULL};
        assert_int_equal(sample(d, all, "all", &taken), TN_OK);
        const tn_text *file = datasets_read(d, "crb");
        const tn_text *have = datasets_read(d, "all");
        assert_int_equal(taken, i == 1 || i == 0 ? 2 : 3);
        assert_int_equal(have->size, file->size);
        assert_memory_equal(have->data, file->data, file->size);
    }
}
