/* test_dedup.c - a request counts once, in whatever order and however often it comes. */

#include "cluster/recovery.h"
#include "support/test.h"

enum { WHO = 77, SOME = 5000, SEEDS = 200 };

static tn_dedup begun(void)
{
    tn_dedup o;
    tn_dedup_begin(&o, WHO);
    return o;
}

TEST(requests_in_order_leave_no_window)
{
    tn_dedup o = begun();
    for (uint64_t s = 1; s <= SOME; s++) {
        assert_int_equal(tn_dedup_check(&o, WHO, s), TN_DEDUP_APPLY);
        tn_dedup_mark(&o, s);
        assert_int_equal(tn_dedup_check(&o, WHO, s), TN_DEDUP_REPEATED);
        assert_int_equal(o.low, s);
        assert_int_equal(o.above, 0);
    }
    assert_int_equal(recovery_holes(&o), 0);
}

TEST(asking_changes_nothing)
{
    tn_dedup o = begun();
    tn_dedup_mark(&o, 3);
    tn_dedup before = o;
    for (uint64_t s = 0; s < UINT64_C(2) * TN_DEDUP_WINDOW; s++) {
        (void)tn_dedup_check(&o, WHO, s);
        (void)tn_dedup_check(&o, WHO + 1, s);
    }
    assert_memory_equal(&o, &before, sizeof o);
}

TEST(a_request_that_was_dropped_before_it_was_applied_is_applied_when_it_comes_again)
{
    tn_dedup o = begun();
    assert_int_equal(tn_dedup_check(&o, WHO, 1), TN_DEDUP_APPLY);
    assert_int_equal(tn_dedup_check(&o, WHO, 1), TN_DEDUP_APPLY);
}

TEST(low_moves_over_holes_when_they_close)
{
    tn_dedup o = begun();
    tn_dedup_mark(&o, 2);
    tn_dedup_mark(&o, 3);
    tn_dedup_mark(&o, 6);
    assert_int_equal(o.low, 0);
    assert_int_equal(recovery_holes(&o), 3); /* 1, 4, 5 */
    tn_dedup_mark(&o, 1);
    assert_int_equal(o.low, 3);
    assert_int_equal(recovery_holes(&o), 2);
    tn_dedup_mark(&o, 5);
    tn_dedup_mark(&o, 4);
    assert_int_equal(o.low, 6);
    assert_int_equal(recovery_holes(&o), 0);
}

TEST(the_window_ends_1024_above_low)
{
    tn_dedup o = begun();
    recovery_restore(&o, WHO, 100);
    assert_int_equal(tn_dedup_check(&o, WHO, 100), TN_DEDUP_REPEATED);
    assert_int_equal(tn_dedup_check(&o, WHO, 100 + TN_DEDUP_WINDOW), TN_DEDUP_APPLY);
    assert_int_equal(tn_dedup_check(&o, WHO, 101 + TN_DEDUP_WINDOW), TN_DEDUP_BEYOND);
    tn_dedup_mark(&o, 100 + TN_DEDUP_WINDOW);
    assert_int_equal(recovery_holes(&o), TN_DEDUP_WINDOW - 1);
    for (uint64_t s = 99 + TN_DEDUP_WINDOW; s > 100; s--) {
        assert_int_equal(tn_dedup_check(&o, WHO, s), TN_DEDUP_APPLY);
        tn_dedup_mark(&o, s);
    }
    assert_int_equal(o.low, 100 + TN_DEDUP_WINDOW);
    assert_int_equal(tn_dedup_check(&o, WHO, 101 + TN_DEDUP_WINDOW), TN_DEDUP_APPLY);
}

TEST(numbers_that_no_sender_uses_are_refused)
{
    tn_dedup o = begun();
    assert_int_equal(tn_dedup_check(&o, WHO, 0), TN_DEDUP_BEYOND);
    assert_int_equal(tn_dedup_check(&o, WHO, UINT64_MAX), TN_DEDUP_BEYOND);
    recovery_restore(&o, WHO, UINT64_MAX - 1);
    assert_int_equal(tn_dedup_check(&o, WHO, UINT64_MAX), TN_DEDUP_APPLY);
    assert_int_equal(tn_dedup_check(&o, WHO, 0), TN_DEDUP_BEYOND);
}

TEST(c9_a_sender_that_was_started_again_begins_anew)
{
    tn_dedup o = begun();
    for (uint64_t s = 1; s <= 10; s++) {
        tn_dedup_mark(&o, s);
    }
    tn_dedup_begin(&o, WHO + 1);
    assert_int_equal(tn_dedup_check(&o, WHO + 1, 1), TN_DEDUP_APPLY);
    assert_int_equal(tn_dedup_check(&o, WHO, 11), TN_DEDUP_STALE);
    assert_int_equal(tn_dedup_check(&o, WHO, 1), TN_DEDUP_STALE);
}

TEST(nobody_is_known_before_he_begins)
{
    tn_dedup o = {0};
    assert_int_equal(tn_dedup_check(&o, WHO, 1), TN_DEDUP_STALE);
    assert_int_equal(tn_dedup_check(&o, 0, 1), TN_DEDUP_STALE);
}

TEST(a_shard_without_memory_takes_only_what_is_open)
{
    tn_dedup o = {0};
    const uint64_t open[] = {7, 9, 12};
    assert_true(recovery_adopt(&o, WHO, 14, open, 3));
    for (uint64_t s = 1; s < 16; s++) {
        bool is_open = s == 7 || s == 9 || s == 12 || s >= 14;
        assert_int_equal(tn_dedup_check(&o, WHO, s), is_open ? TN_DEDUP_APPLY : TN_DEDUP_REPEATED);
    }
    tn_dedup_mark(&o, 12);
    tn_dedup_mark(&o, 7);
    tn_dedup_mark(&o, 9);
    assert_int_equal(o.low, 13);
    assert_int_equal(recovery_holes(&o), 0);
    assert_true(recovery_adopt(&o, WHO, 14, NULL, 0));
    assert_int_equal(o.low, 13);
}

TEST(lists_that_are_none_change_nothing)
{
    tn_dedup o = begun();
    tn_dedup_mark(&o, 1);
    const tn_dedup before = o;
    assert_false(recovery_adopt(&o, 0, 5, NULL, 0));
    assert_false(recovery_adopt(&o, WHO, 0, NULL, 0));
    assert_false(recovery_adopt(&o, WHO, 9, (const uint64_t[]){0}, 1));
    assert_false(recovery_adopt(&o, WHO, 9, (const uint64_t[]){4, 4}, 2));
    assert_false(recovery_adopt(&o, WHO, 9, (const uint64_t[]){5, 4}, 2));
    assert_false(recovery_adopt(&o, WHO, 9, (const uint64_t[]){4, 9}, 2));
    assert_false(recovery_adopt(&o, WHO, 6 + TN_DEDUP_WINDOW, (const uint64_t[]){5}, 1));
    assert_memory_equal(&o, &before, sizeof o);
    assert_true(recovery_adopt(&o, WHO, 5 + TN_DEDUP_WINDOW, (const uint64_t[]){5}, 1));
}

/* Random arrivals within the window against a plain list of what was applied. */
static void one_random_sender(uint64_t seed)
{
    static bool applied[SOME + 1];
    memset(applied, 0, sizeof applied);
    const uint64_t stream = tn_stream2(seed, TN_RNG_GENERATE, 0);
    tn_dedup o = begun();
    uint64_t low = 0;
    for (uint64_t i = 0; low < SOME; i++) {
        uint64_t s = low + 1 + tn_below(tn_draw(stream, i), i % 3 == 0 ? TN_DEDUP_WINDOW : 8);
        s = s > SOME ? low + 1 : s;
        tn_dedup_verdict want = applied[s] ? TN_DEDUP_REPEATED : TN_DEDUP_APPLY;
        fail_if(tn_dedup_check(&o, WHO, s) != want, "seed %llu: request %llu",
                (unsigned long long)seed, (unsigned long long)s);
        if (want == TN_DEDUP_APPLY) {
            tn_dedup_mark(&o, s);
            applied[s] = true;
        }
        while (low < SOME && applied[low + 1]) {
            low++;
        }
        assert_int_equal(o.low, low);
    }
    assert_int_equal(recovery_holes(&o), 0);
}

TEST(random_orders_agree_with_a_plain_list)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        one_random_sender(seed);
    }
}
