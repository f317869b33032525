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
