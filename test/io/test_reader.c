/* test_reader.c - the stream of batches: the same whatever the threads, and from any point on. */
#include "io/reader.h"
#include "setup.h"
#include "support/mallocs.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static const char golden_ffm[] =
    "{data: {format: libffm, shuffle: 0}, slots: [{name: user, field: 0}, {name: item, field: 1}, "
    "{name: hist, field: 2, share: item}, {name: tags, field: 3}, {name: city, field: 4}, "
    "{name: rare, field: 5}, {name: price, field: 6, as: value, transform: log}]}";
static const char golden_tsv[] =
    "{data: {format: tsv, header: true, weight: weight, list: ',', shuffle: 0}, slots: ["
    "{name: user}, {name: item}, {name: hist, share: item}, {name: tags, values: tags_x}, "
    "{name: city}, {name: rare}, {name: price, type: float, as: value, transform: log}]}";

static const char golden_tfrecord[] =
    "{data: {format: tfrecord, weight: weight, shuffle: 0}, slots: [{name: user}, {name: item}, "
    "{name: hist, share: item}, {name: tags, values: tags_x}, {name: city}, {name: rare}, "
    "{name: price, type: float, as: value, transform: log}]}";

static void dump_golden(const char *config, const char *path, bool training, tn_text *out)
{
    setup s;
    setup_open(&s, config);
    const tn_reader_opts opts = {
        .paths = {1, &path}, .batch_rows = 32, .training = training, .seed = 1, .prefetch = 2};
    setup_dump(&s, &opts, out);
    setup_close(&s);
}

static void golden_rows_are_the_same_in_three_formats(void **state)
{
    (void)state;
    tn_text ffm = {0};
    tn_text tsv = {0};
    dump_golden(golden_ffm, "test/golden/data/rows.ffm", false, &ffm);
    dump_golden(golden_tsv, "test/golden/data/rows.tsv", false, &tsv);
    assert_string_equal(ffm.data, tsv.data);
    tn_text tfrecord = {0};
    dump_golden(golden_tfrecord, "test/golden/data/rows.tfrecord", false, &tfrecord);
    assert_string_equal(ffm.data, tfrecord.data);
    tn_text_done(&ffm);
    tn_text_done(&tsv);
    tn_text_done(&tfrecord);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_rows_are_the_same_in_three_formats),
    };
    return cmocka_run_group_tests_name("io/reader", tests, NULL, NULL);
}
