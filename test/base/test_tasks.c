/* test_tasks.c - what a row is to each of several tasks. */
#include "base/keys/tasks.h"

#include "support/test.h"

#include <math.h>

/* click; buy, a share of clicks; watch, where there is a click, with a column of factors. */
static const tn_tasks tasks = {
    .n = 3,
    .task =
        {{.name = "click",
          .of = TN_NO_TASK,
          .where = TN_NO_TASK,
          .label = TN_NO_ASIDE,
          .weight_column = TN_NO_ASIDE},
         {.name = "buy", .of = 0, .where = TN_NO_TASK, .label = 0, .weight_column = TN_NO_ASIDE},
         {.name = "watch",
          .target = TN_TARGET_NUMBER,
          .of = TN_NO_TASK,
          .where = 0,
          .label = 1,
          .weight_column = 2}},
    .n_aside = 3};

static void check(float click, float buy, float seconds, uint32_t k, float label, float factor)
{
    const float aside[3] = {buy, seconds, 0.25F};
    const tn_task_row got = tn_task_row_of(&tasks, k, click, aside);
    fail_if(got.label != label || got.factor != factor,
            "click %g, buy %g, seconds %g: task %u has label %g, factor %g", (double)click,
            (double)buy, (double)seconds, k, (double)got.label, (double)got.factor);
}

TEST(a_row_counts_for_a_task_by_its_label_and_by_where)
{
    check(1, 0, 7, 0, 1, 1);
    check(1, 1, 7, 1, 1, 1);
    check(0, 0, 7, 1, 0, 1);   /* of all rows, also without a click */
    check(1, NAN, 7, 1, 0, 0); /* the record has no such label */
    check(1, 0, 7, 2, 7, 0.25F);
    check(0, 0, 7, 2, 0, 0); /* no click, so the row does not count */
    check(1, 0, NAN, 2, 0, 0);
}

TEST(a_share_without_what_it_is_a_share_of_is_found)
{
    const float buys[3] = {1, NAN, 1};
    const float none[3] = {NAN, NAN, 1};
    assert_true(tn_task_contradicts(&tasks, 1, 0, buys));
    assert_false(tn_task_contradicts(&tasks, 1, 1, buys));
    assert_false(tn_task_contradicts(&tasks, 1, 0, none));
    assert_false(tn_task_contradicts(&tasks, 2, 0, buys));
}

TEST(tasks_are_found_by_their_whole_names)
{
    assert_int_equal(tn_tasks_find(&tasks, "buy.auc", 3), 1);
    assert_int_equal(tn_tasks_find(&tasks, "bu", 2), TN_NO_TASK);
    assert_int_equal(tn_tasks_find(NULL, "buy", 3), TN_NO_TASK);
    assert_int_equal(tn_tasks_count(NULL), 1);
    assert_int_equal(tn_tasks_count(&tasks), 3);
}
