/* test_diag.c - what the user is told, and how it looks. */
#include "config/diag.h"
#include "config/tree.h"
#include "support/test.h"

static const char *const units[] = {"units", "activation", "dropout", "lr"};
enum { N_UNITS = sizeof units / sizeof *units };

static void assert_text(tn_diag *d, const char *want)
{
    assert_string_equal(tn_text_str(&d->text), want);
    tn_diag_done(d);
}

TEST(a_fault_shows_file_line_caret_and_suggestion)
{
    tn_diag d = {0};
    const tn_origin at = {"configs/a.yaml", 14, 3, "  unitss: 256"};
    tn_diag_unknown(&d, &at, "key", "unitss", units, N_UNITS);
    assert_int_equal(d.n_errors, 1);
    assert_text(&d, "configs/a.yaml:14:3: error: unknown key 'unitss' (did you mean 'units'?)\n"
                    "  unitss: 256\n"
                    "  ^~~~~~\n");
}

TEST(a_word_like_no_other_lists_what_there_is)
{
    tn_diag d = {0};
    tn_diag_unknown(&d, NULL, "key", "rhubarb", units, N_UNITS);
    assert_text(&d, "error: unknown key 'rhubarb'\n"
                    "hint: there are: units activation dropout lr\n");
    tn_diag_done(&d);
    tn_diag_unknown(&d, NULL, "key", "dropout:.5", units, N_UNITS);
    tn_diag_unknown(&d, NULL, "metric", "auc,ne", units, N_UNITS);
    assert_text(&d, "error: unknown key 'dropout:.5'\nhint: a blank is missing behind ':'\n"
                    "error: unknown metric 'auc,ne'\nhint: a list is written [auc,ne]\n");
}

TEST(a_place_without_line_is_named_alone)
{
    tn_diag d = {0};
    const tn_origin at = {"command line", 0, 14, "train.epochs=0"};
    tn_diag_error(&d, &at, "'epochs' is 0");
    assert_text(&d, "command line: error: 'epochs' is 0\n"
                    "train.epochs=0\n"
                    "             ^\n");
}

TEST(carets_count_characters_and_keep_tabs)
{
    tn_diag d = {0};
    const tn_origin at = {"a", 1, 5, "\t\xC3\xA4 xy"};
    tn_diag_error(&d, &at, "w");
    assert_text(&d, "a:1:5: error: w\n\t\xC3\xA4 xy\n\t  ^~\n");
}

TEST(a_long_line_is_shown_around_the_fault)
{
    char line[1001];
    memset(line, 'a', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    tn_diag d CLEANUP(tn_diag_done) = {0};
    const tn_origin at = {"a", 1, 1001, line};
    tn_diag_error(&d, &at, "cut");
    assert_true(d.text.size < 250);
    assert_non_null(strstr(tn_text_str(&d.text), "a\n                "));
}

TEST(text_of_others_cannot_steer_the_terminal)
{
    tn_diag d CLEANUP(tn_diag_done) = {0};
    const tn_origin at = {"a\x1B[2J", 1, 1, "k\x1B[31m: 1"};
    tn_diag_error(&d, &at, "unknown key '%s'", "k\x1B[31m");
    assert_null(strchr(tn_text_str(&d.text), '\x1B'));
}

TEST(faults_beyond_the_limit_are_counted_only)
{
    tn_diag d CLEANUP(tn_diag_done) = {0};
    for (int i = 0; i < TN_DIAG_MAX + 10; i++) {
        tn_diag_error(&d, NULL, "fault %d", i);
        tn_diag_hint(&d, "hint %d", i);
    }
    assert_non_null(strstr(tn_text_str(&d.text), "fault 49\n"));
    assert_null(strstr(tn_text_str(&d.text), "fault 50\n"));
    assert_null(strstr(tn_text_str(&d.text), "hint 50\n"));
    tn_error err = {0};
    assert_int_equal(tn_diag_check(&d, &err), TN_E_CONFIG);
    assert_string_equal(err.text, "60 errors in the configuration, not all of them shown");
}

TEST(check_passes_without_errors)
{
    tn_diag d CLEANUP(tn_diag_done) = {0};
    tn_error err = {0};
    assert_int_equal(tn_diag_check(&d, &err), TN_OK);
    tn_diag_error(&d, NULL, "wrong");
    assert_int_equal(tn_diag_check(&d, &err), TN_E_CONFIG);
    assert_string_equal(err.text, "1 error in the configuration");
}

static const char *nearest_to(const char *word, const char *name)
{
    return tn_nearest(word, (const char *const[]){name}, 1);
}

TEST(a_swap_is_one_edit_as_is_an_insert_a_drop_or_a_replacement)
{
    assert_non_null(nearest_to("LR", "lr"));
    assert_non_null(nearest_to("epohcs", "epochs"));
    assert_non_null(nearest_to("epoch", "epochs"));
    assert_non_null(nearest_to("epxchs", "epochs"));
    assert_non_null(nearest_to("ab", "ba")); /* a short word may have one edit */
    assert_null(nearest_to("kitten", "sitting"));
}

TEST(only_a_near_word_is_suggested)
{
    assert_string_equal(tn_nearest("untis", units, N_UNITS), "units");
    assert_string_equal(tn_nearest("Dropout", units, N_UNITS), "dropout");
    assert_null(tn_nearest("x", units, N_UNITS));
    assert_null(tn_nearest("threads", units, N_UNITS));
    assert_null(tn_nearest("units", NULL, 0));
}

TEST(a_fault_is_told_and_counted_once)
{
    static const tn_origin places[] = {{.source = "a.yaml", .line = 3, .col = 1, .text = "x: 1"},
                                       {.source = "a.yaml", .line = 4, .col = 1, .text = "x: 1"}};
    tn_diag d CLEANUP(tn_diag_done) = {0};
    for (uint32_t i = 0; i < 78; i++) {
        tn_diag_error(&d, &places[0], "unknown key '%s'", "x");
        tn_diag_hint(&d, "there is only: y");
    }
    assert_int_equal(d.n_errors, 1);
    assert_string_equal(tn_text_str(&d.text), "a.yaml:3:1: error: unknown key 'x'\nx: 1\n^\n"
                                              "hint: there is only: y\n");
    tn_diag_error(&d, &places[1], "unknown key '%s'", "x");
    tn_diag_error(&d, NULL, "unknown key '%s'", "x");
    tn_diag_error(&d, NULL, "unknown key '%s'", "x");
    assert_int_equal(d.n_errors, 3);
}
