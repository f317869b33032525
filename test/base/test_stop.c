/* test_stop.c - whose flag ends a wait. */
#include "support/test.h"

#include "base/core/embedder.h"
#include "base/core/stop.h"

TEAR_DOWN
{
    tn_stop_set(NULL);
    tn_stop_by_group(false);
}

TEST(nobody_asks_in_the_beginning)
{
    assert_false(tn_stop_is(NULL));
}

TEST(a_wait_hears_its_own_flag_or_that_of_the_process)
{
    atomic_bool process = false;
    atomic_bool own = false;
    tn_stop_set(&process);
    assert_false(tn_stop_is(NULL));
    atomic_store(&process, true);
    assert_true(tn_stop_is(NULL));
    assert_false(tn_stop_is(&own));
    atomic_store(&own, true);
    assert_true(tn_stop_is(&own));
}

/* What must be done before the end has a flag of its own, which is never set. */
TEST(the_end_of_a_group_is_heard_but_by_a_flag_of_its_own)
{
    static const atomic_bool never;
    tn_stop_by_group(true);
    assert_true(tn_stop_is(NULL));
    assert_false(tn_stop_is(&never));
    tn_stop_by_group(false);
    assert_false(tn_stop_is(NULL));
}

TEST(an_embedded_run_hears_its_embedder_and_not_the_process)
{
    atomic_bool process = true;
    atomic_bool mine = false;
    const tn_embedder embedder = {.stop = &mine};
    tn_stop_set(&process);
    tn_stop_by_group(true);
    (void)tn_embedder_enter(&embedder);
    assert_false(tn_stop_is(NULL));
    atomic_store(&mine, true);
    assert_true(tn_stop_is(NULL));
    (void)tn_embedder_enter(NULL);
    assert_true(tn_stop_is(NULL));
}
