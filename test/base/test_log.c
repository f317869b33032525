/* test_log.c - what reaches the sink. */
#include "base/log.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static char last_line[8192];
static tn_log_level last_level;
static int n_lines;

static void keep(tn_log_level level, const char *line)
{
    (void)snprintf(last_line, sizeof last_line, "%s", line);
    last_level = level;
    n_lines++;
}

static int reset(void **state)
{
    (void)state;
    tn_log_set(NULL, TN_LOG_INFO);
    n_lines = 0;
    last_line[0] = 0;
    return 0;
}

static void without_a_sink_lines_vanish(void **state)
{
    (void)state;
    assert_false(tn_log_wants(TN_LOG_ERROR));
    tn_log(TN_LOG_ERROR, "nobody hears %d", 1);
    assert_int_equal(n_lines, 0);
}

static void a_line_arrives_whole_with_its_level(void **state)
{
    (void)state;
    tn_log_set(keep, TN_LOG_INFO);
    tn_log(TN_LOG_WARN, "skipped %d bad records in '%s'", 3, "a.tsv");
    assert_int_equal(n_lines, 1);
    assert_int_equal(last_level, TN_LOG_WARN);
    assert_string_equal(last_line, "skipped 3 bad records in 'a.tsv'");
}

static void lines_above_the_level_are_not_made(void **state)
{
    (void)state;
    tn_log_set(keep, TN_LOG_WARN);
    assert_true(tn_log_wants(TN_LOG_ERROR) && tn_log_wants(TN_LOG_WARN));
    assert_false(tn_log_wants(TN_LOG_INFO) || tn_log_wants(TN_LOG_DEBUG));
    tn_log(TN_LOG_INFO, "x");
    tn_log(TN_LOG_DEBUG, "x");
    assert_int_equal(n_lines, 0);
    tn_log(TN_LOG_ERROR, "x");
    assert_int_equal(n_lines, 1);
}

static void a_line_too_long_is_cut_and_marked(void **state)
{
    (void)state;
    tn_log_set(keep, TN_LOG_INFO);
    tn_log(TN_LOG_INFO, "%6000d", 1);
    assert_int_equal(strlen(last_line), 4095);
    assert_string_equal(last_line + 4095 - 4, " ...");
    tn_log(TN_LOG_INFO, "%4095d", 1);
    assert_int_equal(last_line[4094], '1');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_a_sink_lines_vanish, reset),
        cmocka_unit_test_setup(a_line_arrives_whole_with_its_level, reset),
        cmocka_unit_test_setup(lines_above_the_level_are_not_made, reset),
        cmocka_unit_test_setup(a_line_too_long_is_cut_and_marked, reset),
    };
    return cmocka_run_group_tests_name("base/log", tests, NULL, NULL);
}
