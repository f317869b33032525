/* test_line_numbers.c - lines are right wherever one asks, and asking often costs one pass over the
 * file.
 */
#include "io/read/line_numbers.h"

#include "setup.h"
#include "support/test.h"

#include <string.h>

enum { LINES = 60000 };

static const char config[] =
    "{data: {format: libsvm, part_bytes: 16kB, shuffle: 7, bad_records_max: 100%}}";

/* Lines of 5 to 10 bytes; every tenth is at fault. */
static void make_lines(tn_text *out)
{
    for (uint32_t i = 0; i < LINES; i++) {
        tn_text_addf(out, i % 10 == 9 ? "x %u\n" : "1 %u\n", i);
    }
}

static void every_place_has_its_line_in_any_order(void **state)
{
    (void)state;
    setup s;
    tn_fileset *files = NULL;
    tn_error err = {0};
    tn_text text = {0};
    setup_open(&s, config);
    make_lines(&text);
    const char *path[2] = {setup_file(&s, "a", "1 1\n0 2\n", 8),
                           setup_file(&s, "b", text.data, text.size)};
    const tn_strs paths = {2, path};
    assert_int_equal(tn_fileset_new(&files, &paths, s.schema, 1, &err), TN_OK);
    assert_true(files->n_parts > 20);
    uint64_t before = setup_bytes_read();
    uint64_t at = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        uint64_t lines = 0;
        at = (at * 31 + UINT64_C(7919) * i) % text.size;
        assert_true(tn_line_numbers_before(files, 1, at, &lines));
        assert_int_equal(lines, tn_line_numbers_count(text.data, at));
    }
    /* backwards in a part begins at the part, never at the file */
    assert_true(setup_bytes_read() - before < text.size + UINT64_C(2000) * (16 << 10));
    uint64_t lines = 0;
    assert_true(tn_line_numbers_before(files, 0, 8, &lines));
    assert_int_equal(lines, 2);
    assert_false(tn_line_numbers_before(files, 0, 9, &lines)); /* the file is shorter */
    tn_fileset_free(files);
    tn_text_done(&text);
    setup_close(&s);
}

static void many_bad_records_cost_one_more_pass(void **state)
{
    (void)state;
    setup s;
    tn_error err = {0};
    tn_text text = {0};
    setup_open(&s, config);
    make_lines(&text);
    const char *path = setup_file(&s, "rows", text.data, text.size);
    const tn_reader_opts opts = {
        .paths = {1, &path}, .batch_rows = 100, .prefetch = 1, .training = true, .seed = 3};
    uint64_t before = setup_bytes_read();
    assert_int_equal(setup_drain(&s, &opts, &err), TN_END);
    /* every part is read with a quarter megabyte behind its end at most, and once more for lines */
    uint64_t parts = text.size / 16000 + 1;
    assert_true(setup_bytes_read() - before < 2 * text.size + parts * (UINT64_C(512) << 10));
    tn_text_done(&text);
    setup_close(&s);
}

/* The one message of a part that begins inside the file. */
static void a_line_too_long_is_named_by_its_line_in_every_part(void **state)
{
    (void)state;
    setup s;
    tn_error err = {0};
    tn_text text = {0};
    setup_open(&s, "{data: {format: libsvm, part_bytes: 64B, record_bytes_max: 100B}}");
    for (uint32_t i = 0; i < 40; i++) {
        tn_text_adds(&text, "1 2:3\n");
    }
    for (uint32_t i = 0; i < 40; i++) {
        tn_text_adds(&text, i == 0 ? "1" : " 1:2");
    }
    const char *path = setup_file(&s, "rows", text.data, text.size);
    const tn_reader_opts opts = {.paths = {1, &path}, .batch_rows = 100, .prefetch = 1};
    assert_int_equal(setup_drain(&s, &opts, &err), TN_E_DATA);
    assert_non_null(strstr(err.text, "/rows:41:1: error: record longer than record_bytes_max"));
    tn_text_done(&text);
    setup_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place_has_its_line_in_any_order),
        cmocka_unit_test(many_bad_records_cost_one_more_pass),
        cmocka_unit_test(a_line_too_long_is_named_by_its_line_in_every_part),
    };
    return cmocka_run_group_tests_name("io/line_numbers", tests, NULL, NULL);
}
