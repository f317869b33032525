/* test_ledgerage.c - unclaimed parts, stragglers, ranks that do not answer. */
#include "cluster/ledger/ledger.h"

#include "support/test.h"

CLOSER(tn_ledger_free);

enum { RANKS = 4, PARTS = 8, EPOCH = 0 };

#define SECOND UINT64_C(1000000000)

static tn_ledger *open_ledger(bool relaxed)
{
    tn_ledger_span span[PARTS];
    for (uint32_t i = 0; i < PARTS; i++) {
        span[i] = (tn_ledger_span){.source = i, .end = 100};
    }
    const tn_ledger_opts opts = {.ranks = RANKS,
                                 .n_parts = PARTS,
                                 .mode = TN_LEDGER_ON_REQUEST,
                                 .relaxed = relaxed,
                                 .part = span};
    tn_ledger *l = NULL;
    assert_int_equal(tn_ledger_new(&l, &opts, NULL), TN_OK);
    return l;
}

static tn_ledger_deal deal_to(tn_ledger *l, uint32_t rank, uint64_t id, uint64_t now)
{
    tn_ledger_deal deal = {0};
    assert_int_equal(tn_ledger_ask(l, rank, EPOCH, id, now, &deal), TN_LEDGER_PART);
    return deal;
}

static tn_ledger_held held_of(uint32_t rank, const tn_ledger_deal *deal, uint64_t position)
{
    return (tn_ledger_held){
        .rank = rank, .part = deal->part, .attempt = deal->attempt, .position = position};
}

/* Rank 0 gets the first part at 0 and keeps it; rank 1 does the `n` others in `each` ns apiece. */
static tn_ledger *slow_and_quick(uint32_t n, uint64_t each)
{
    tn_ledger *l = open_ledger(true);
    deal_to(l, 0, 1, 0);
    for (uint32_t i = 0; i < n; i++) {
        tn_ledger_deal deal = deal_to(l, 1, i + 1, i * each);
        assert_true(tn_ledger_done(l, 1, deal.part, deal.attempt, (i + 1) * each));
    }
    return l;
}

static void wait_for_a_part(tn_ledger *l, uint32_t rank, uint64_t id)
{
    tn_ledger_deal deal;
    assert_int_equal(tn_ledger_ask(l, rank, EPOCH, id, 0, &deal), TN_LEDGER_WAIT);
}

TEST(an_old_part_is_asked_for_once_when_a_rank_is_idle)
{
    tn_ledger *l FREED(tn_ledger_free) = slow_and_quick(PARTS - 1, SECOND);
    tn_ledger_held asked;
    assert_false(tn_ledger_straggler(l, 7 * SECOND, &asked)); /* nobody is idle */
    wait_for_a_part(l, 1, PARTS);
    assert_false(tn_ledger_straggler(l, 5 * SECOND - 1, &asked)); /* too young */
    assert_true(tn_ledger_straggler(l, 5 * SECOND, &asked));
    assert_int_equal(asked.rank, 0);
    assert_int_equal(asked.part, 0);
    assert_int_equal(asked.attempt, 0);
    assert_false(tn_ledger_straggler(l, 50 * SECOND, &asked));
}

/* It has asked ahead, before the other one was idle. */
TEST(who_gives_back_waits_behind_all_others)
{
    tn_ledger *l FREED(tn_ledger_free) = open_ledger(false);
    tn_ledger_deal deal[PARTS];
    for (uint32_t i = 0; i < PARTS; i++) { /* two each */
        deal[i] = deal_to(l, i / 2, i + 1, 0);
    }
    assert_true(tn_ledger_done(l, 1, 2, 0, 1));
    assert_true(tn_ledger_done(l, 1, 3, 0, 1));
    wait_for_a_part(l, 0, PARTS + 1);
    wait_for_a_part(l, 1, PARTS + 1);
    tn_ledger_wake w;
    for (uint32_t i = 2; i-- > 0;) {
        const tn_ledger_held back = held_of(0, &deal[i], 10 + i);
        assert_true(tn_ledger_returned(l, &back));
    }
    assert_true(tn_ledger_woken(l, 1, &w));
    assert_true(w.rank == 1 && w.deal.part == 0 && w.deal.position == 10);
    assert_true(tn_ledger_woken(l, 1, &w));
    assert_true(w.rank == 0 && w.deal.part == 1 && w.deal.attempt == 1);
    assert_int_equal(tn_ledger_reassigned(l), 2);
}

TEST(times_may_be_divided)
{
    static const tn_ledger_span span[] = {
        {.end = 1}, {.begin = 1, .end = 2}, {.begin = 2, .end = 3}, {.begin = 3, .end = 4}};
    const tn_ledger_opts opts = {.ranks = 2,
                                 .n_parts = 4,
                                 .mode = TN_LEDGER_ON_REQUEST,
                                 .straggler_ns = 50,
                                 .silent_ns = 100,
                                 .part = span};
    tn_ledger *l FREED(tn_ledger_free) = NULL;
    tn_ledger_held asked;
    uint32_t rank = 7;
    assert_int_equal(tn_ledger_new(&l, &opts, NULL), TN_OK);
    deal_to(l, 0, 1, 0);
    for (uint32_t i = 1; i < 4; i++) {
        const tn_ledger_deal deal = deal_to(l, 1, i, 0);
        assert_true(tn_ledger_done(l, 1, deal.part, deal.attempt, 1));
    }
    wait_for_a_part(l, 1, 4);
    assert_false(tn_ledger_straggler(l, 49, &asked));
    assert_true(tn_ledger_straggler(l, 50, &asked));
    assert_false(tn_ledger_silent(l, 149, &rank));
    assert_true(tn_ledger_silent(l, 150, &rank));
    assert_int_equal(rank, 0);
    const tn_ledger_held held = {.part = 0};
    assert_int_equal(tn_ledger_claim(l, 0, &held, 1, 200), 0);
    assert_int_equal(tn_ledger_claim(l, 0, NULL, 0, 299), 0);
    assert_int_equal(tn_ledger_claim(l, 0, NULL, 0, 300), 1);
}

TEST(a_part_is_old_above_three_medians)
{
    tn_ledger *l FREED(tn_ledger_free) = slow_and_quick(PARTS - 1, 4 * SECOND);
    wait_for_a_part(l, 1, PARTS);
    tn_ledger_held asked;
    assert_false(tn_ledger_straggler(l, 12 * SECOND, &asked));
    assert_true(tn_ledger_straggler(l, 12 * SECOND + 1, &asked));
}

/* Two ranks hold parts, a third is idle. */
TEST(c3_three_finished_parts_are_enough)
{
    for (uint32_t finished = 2; finished <= 3; finished++) {
        tn_ledger *l FREED(tn_ledger_free) = slow_and_quick(finished, SECOND);
        for (uint32_t i = 0; i < PARTS - 1 - finished; i++) {
            const uint32_t rank[] = {2, 3, 2, 3, 0};
            deal_to(l, rank[i], 2 + i, 0);
        }
        wait_for_a_part(l, 1, PARTS);
        tn_ledger_held asked;
        assert_int_equal(tn_ledger_straggler(l, 60 * SECOND, &asked), finished == 3);
    }
}

TEST(no_more_are_asked_for_than_there_are_idle_ranks)
{
    tn_ledger *l FREED(tn_ledger_free) = open_ledger(true);
    deal_to(l, 0, 1, 0);
    deal_to(l, 0, 2, 0);
    for (uint32_t i = 0; i < PARTS - 3; i++) {
        tn_ledger_deal deal = deal_to(l, 1, i + 1, i * SECOND);
        assert_true(tn_ledger_done(l, 1, deal.part, deal.attempt, (i + 1) * SECOND));
    }
    deal_to(l, 2, 1, 0);
    wait_for_a_part(l, 1, PARTS);
    wait_for_a_part(l, 2, 2); /* is at work still, and waits for its next part */
    tn_ledger_held asked;
    assert_true(tn_ledger_straggler(l, 60 * SECOND, &asked));
    assert_false(tn_ledger_straggler(l, 60 * SECOND, &asked));
    wait_for_a_part(l, 3, 1);
    assert_true(tn_ledger_straggler(l, 60 * SECOND, &asked));
    assert_false(tn_ledger_straggler(l, 60 * SECOND, &asked));
}

TEST(c3_what_a_straggler_gives_back_goes_on_where_it_stopped)
{
    tn_ledger *l FREED(tn_ledger_free) = slow_and_quick(PARTS - 1, SECOND);
    wait_for_a_part(l, 1, PARTS);
    tn_ledger_held asked;
    assert_true(tn_ledger_straggler(l, 9 * SECOND, &asked));
    asked.position = 40;
    assert_true(tn_ledger_returned(l, &asked));
    assert_false(tn_ledger_returned(l, &asked)); /* once more */
    tn_ledger_wake wake;
    assert_true(tn_ledger_woken(l, 9 * SECOND, &wake));
    assert_int_equal(wake.rank, 1);
    assert_int_equal(wake.deal.part, 0);
    assert_int_equal(wake.deal.attempt, 1);
    assert_int_equal(wake.deal.position, 40);
    assert_false(tn_ledger_done(l, 0, 0, 0, 10 * SECOND)); /* of the straggler: too late */
    tn_ledger_lost(l, 1);
    tn_ledger_deal again = deal_to(l, 2, 1, 11 * SECOND);
    assert_int_equal(again.part, 0);
    assert_int_equal(again.position, 40); /* what was given back is done for good */
    assert_true(tn_ledger_done(l, 2, 0, 2, 12 * SECOND));
    assert_true(tn_ledger_is_over(l));
}

TEST(a_straggler_may_finish_instead)
{
    tn_ledger *l FREED(tn_ledger_free) = slow_and_quick(PARTS - 1, SECOND);
    wait_for_a_part(l, 1, PARTS);
    tn_ledger_held asked;
    uint32_t rank = 0;
    assert_true(tn_ledger_straggler(l, 9 * SECOND, &asked));
    assert_true(tn_ledger_done(l, 0, 0, 0, 10 * SECOND));
    assert_true(tn_ledger_is_over(l));
    assert_false(tn_ledger_returned(l, &asked));
    assert_false(tn_ledger_silent(l, 60 * SECOND, &rank));
}

TEST(what_is_given_back_cannot_end_before_it_began)
{
    tn_ledger *l FREED(tn_ledger_free) = open_ledger(true);
    tn_ledger_deal deal = deal_to(l, 0, 1, 0);
    tn_ledger_held held = held_of(0, &deal, 10);
    assert_true(tn_ledger_returned(l, &held));
    deal = deal_to(l, 0, 2, 0);
    held = held_of(0, &deal, 9);
    assert_false(tn_ledger_returned(l, &held));
    held.part = PARTS;
    assert_false(tn_ledger_returned(l, &held));
}

TEST(a_straggler_that_does_not_answer_is_told_of_once)
{
    tn_ledger *l FREED(tn_ledger_free) = slow_and_quick(PARTS - 1, SECOND);
    wait_for_a_part(l, 1, PARTS);
    tn_ledger_held asked;
    uint32_t rank = 99;
    assert_false(tn_ledger_silent(l, 9 * SECOND, &rank));
    assert_true(tn_ledger_straggler(l, 9 * SECOND, &asked));
    assert_false(tn_ledger_silent(l, 24 * SECOND - 1, &rank));
    assert_true(tn_ledger_silent(l, 24 * SECOND, &rank));
    assert_int_equal(rank, 0);
    assert_false(tn_ledger_silent(l, 90 * SECOND, &rank));
    tn_ledger_lost(l, 0);
    tn_ledger_wake wake;
    assert_true(tn_ledger_woken(l, 24 * SECOND, &wake));
    assert_int_equal(wake.deal.part, 0);
}

TEST(a_part_that_is_not_claimed_for_15_s_is_free_again)
{
    tn_ledger *l FREED(tn_ledger_free) = open_ledger(true);
    tn_ledger_deal a = deal_to(l, 0, 1, 0);
    tn_ledger_deal b = deal_to(l, 0, 2, 0);
    const tn_ledger_held all[] = {held_of(0, &a, 1), held_of(0, &b, 1)};
    assert_int_equal(tn_ledger_claim(l, 0, all, 2, 0), 0);
    assert_int_equal(tn_ledger_claim(l, 0, NULL, 0, 15 * SECOND - 1), 0);
    const tn_ledger_held held[] = {held_of(0, &b, 5)};
    assert_int_equal(tn_ledger_claim(l, 0, held, 1, 15 * SECOND), 1);
    assert_int_equal(tn_ledger_claim(l, 0, held, 1, 16 * SECOND), 0);
    assert_int_equal(deal_to(l, 1, 1, 16 * SECOND).part, a.part);
    assert_true(tn_ledger_done(l, 0, b.part, b.attempt, 17 * SECOND));
}

TEST(a_part_whose_answer_may_be_under_way_is_not_missed)
{
    tn_ledger *l FREED(tn_ledger_free) = open_ledger(true);
    tn_ledger_deal a = deal_to(l, 0, 1, 0);
    assert_int_equal(tn_ledger_claim(l, 0, NULL, 0, 40 * SECOND), 0);
    assert_int_equal(deal_to(l, 0, 1, 41 * SECOND).attempt, a.attempt); /* the same answer */
    deal_to(l, 0, 2, 42 * SECOND); /* who asks for another has had that answer */
    assert_int_equal(tn_ledger_claim(l, 0, NULL, 0, 42 * SECOND), 1);
    assert_int_equal(deal_to(l, 1, 1, 43 * SECOND).part, a.part);
}

TEST(exact_an_unclaimed_part_is_counted_and_stays)
{
    tn_ledger *l FREED(tn_ledger_free) = open_ledger(false);
    tn_ledger_deal a = deal_to(l, 0, 1, 0);
    tn_ledger_deal b = deal_to(l, 0, 2, 0);
    const tn_ledger_held held[] = {held_of(0, &b, 0)};
    assert_int_equal(tn_ledger_claim(l, 0, held, 1, 15 * SECOND), 1); /* a */
    assert_int_equal(deal_to(l, 1, 1, 16 * SECOND).part, a.part + 2);
}

TEST(claims_of_what_is_not_held_are_ignored)
{
    tn_ledger *l FREED(tn_ledger_free) = open_ledger(true);
    tn_ledger_deal a = deal_to(l, 0, 1, 0);
    tn_ledger_held held[] = {held_of(1, &a, 7), held_of(1, &a, 7), held_of(1, &a, 7)};
    held[1].attempt = 1;
    held[2].part = UINT32_MAX;
    assert_int_equal(tn_ledger_claim(l, 1, held, 3, SECOND), 0);
    tn_epoch_part row[PARTS];
    assert_int_equal(tn_ledger_save(l, row), PARTS);
    assert_int_equal(row[0].position, 0);
}

TEST(a_late_heartbeat_takes_no_position_back)
{
    tn_ledger *l FREED(tn_ledger_free) = open_ledger(true);
    tn_ledger_deal a = deal_to(l, 0, 1, 0);
    tn_ledger_held held = held_of(0, &a, 20);
    tn_ledger_claim(l, 0, &held, 1, SECOND);
    held.position = 10;
    tn_ledger_claim(l, 0, &held, 1, SECOND);
    tn_epoch_part row[PARTS];
    tn_ledger_save(l, row);
    assert_int_equal(row[0].state, TN_PART_DEALT);
    assert_int_equal(row[0].position, 20);
}
