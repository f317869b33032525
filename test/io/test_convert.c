/* test_convert.c - rows travel through every format and come back as they were. */
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
