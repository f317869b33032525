/* test_timetable.c - which epochs are followed by a checkpoint. */
#include "train/run/timetable.h"

#include "support/test.h"

static bool saves(const char *every, uint32_t epochs, uint64_t before, uint64_t rows)
{
    const tn_run run = {.eval.every = "never", .checkpoint.every = every};
    tn_timetable t;
    tn_timetable_init(&t, &run, 0);
    return tn_timetable_saves_after(&t, epochs, before, rows);
}

TEST(short_epochs_are_saved_together)
{
    assert_false(saves("auto", 1, 0, 1200));
    assert_false(saves("auto", 1, 0, 249999));
    assert_true(saves("auto", 1, 0, 250000));
    assert_true(saves("auto", 3, 249999, 251199)); /* whatever was saved before, or when */
    assert_false(saves("auto", 4, 250000, 499999));
    assert_true(saves("auto", 4, 250000, 500000));
    assert_true(saves("auto", 2, 1000000, 9000000));
}

TEST(epochs_that_are_asked_for_are_saved_however_short)
{
    assert_true(saves("1epoch", 1, 0, 1));
    assert_true(saves("2epochs", 2, 1, 2));
    assert_false(saves("2epochs", 3, 2, 900000));
    assert_false(saves("never", 1, 0, 900000));
    assert_false(saves("5steps", 1, 0, 900000));
}

TEST(restarts_are_a_number_within_a_time)
{
    static const struct {
        const char *text;
        bool good;
        uint32_t n;
        double within_s;
    } cases[] = {
        {"3/1h", true, 3, 3600}, {"1/90s", true, 1, 90},   {"1000/2h30m", true, 1000, 9000},
        {"0", true, 0, 0},       {"0/1h", false, 0, 0},    {"1001/1h", false, 0, 0},
        {"3", false, 0, 0},      {"3/", false, 0, 0},      {"/1h", false, 0, 0},
        {"3/0s", false, 0, 0},   {"3/often", false, 0, 0}, {"-3/1h", false, 0, 0},
        {"", false, 0, 0},       {"3 /1h", false, 0, 0},   {"99999999999999999999/1h", false, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t n = 0;
        double within_s = 0;
        fail_if(tn_restarts_read(cases[i].text, &n, &within_s) != cases[i].good, "'%s'",
                cases[i].text);
        assert_true(!cases[i].good || (n == cases[i].n && within_s == cases[i].within_s));
    }
}
