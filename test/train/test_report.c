/* test_report.c - what a person sees of a run, from its first line to its last. */
#include "support/test.h"
#include "support/tmpdir.h"
#include "train/trainrun.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 8 }; /* of an epoch */

static char dir[256];
static tn_text shown;

static int set_up(void **state)
{
    (void)state;
    tn_tmpdir_make(dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tn_text_done(&shown);
    tn_tmpdir_remove(dir);
    return 0;
}

static void train(const char *const *more)
{
    trainrun o = trainrun_show(dir, more, &shown);
    if (o.status != TN_OK) {
        fail_msg("%s", o.text);
    }
}

/* The line that begins with `begin`; there is one. */
static const char *only_line(const char *begin)
{
    static char line[400];
    uint32_t n = 0;
    for (const char *at = tn_text_str(&shown); *at != '\0';) {
        size_t size = strcspn(at, "\n");
        if (strncmp(at, begin, strlen(begin)) == 0) {
            (void)snprintf(line, sizeof line, "%.*s", (int)size, at);
            n++;
        }
        at += size + 1;
    }
    if (n != 1) {
        fail_msg("%u lines begin with '%s' in:\n%s", n, begin, tn_text_str(&shown));
    }
    return line;
}

static void assert_has(const char *line, const char *text)
{
    if (strstr(line, text) == NULL) {
        fail_msg("no '%s' in: %s", text, line);
    }
}

/* The first percentages of an epoch are estimated; all rows are read before the first step. */
static void the_bar_counts_what_is_learned_not_what_is_read(void **state)
{
    (void)state;
    train((const char *const[]){"data.shuffle=100000", "log.every=0s", "train.epochs=2", NULL});
    uint32_t n = 0;
    const char *at = tn_text_str(&shown);
    while ((at = strstr(at, "epoch ")) != NULL) {
        unsigned long epoch = strtoul(at + strlen("epoch "), NULL, 10);
        const char *percent = strstr(at, "/2 ");
        const char *step = strstr(at, "step ");
        if (percent == NULL || step == NULL) {
            break; /* a line of something else */
        }
        unsigned long done = strtoul(percent + strlen("/2 "), NULL, 10);
        unsigned long steps = strtoul(step + strlen("step "), NULL, 10) - (epoch - 1) * STEPS;
        assert_in_range(done, 100 * steps / STEPS - 2, 100 * steps / STEPS + 2);
        n++;
        at = step;
    }
    assert_int_equal(n, 2 * STEPS);
}

static void a_run_closes_with_rows_time_scores_and_place(void **state)
{
    (void)state;
    train(NULL);
    const char *line = only_line("trained ");
    assert_has(line, "rows in ");
    assert_has(line, " rows/s; valid loss 0.");
    assert_has(line, ", auc 0.");
    assert_has(line, "; all in /");
    assert_has(line, dir);
    assert_true(strstr(line, "progressive") == NULL);
    const char *at = strstr(tn_text_str(&shown), line);
    assert_true(at != NULL && strlen(at) == strlen(line) + 1); /* nothing comes after it */
}

static void without_validation_the_scores_of_training_are_called_progressive(void **state)
{
    (void)state;
    train((const char *const[]){"data.valid=~", NULL});
    const char *line = only_line("trained ");
    assert_has(line, "; progressive loss 0.");
    assert_has(line, " (of the last epoch, each row scored before it was learned); all in ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_bar_counts_what_is_learned_not_what_is_read, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_run_closes_with_rows_time_scores_and_place, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            without_validation_the_scores_of_training_are_called_progressive, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
