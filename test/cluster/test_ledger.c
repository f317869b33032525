/* test_ledger.c - every part is dealt to one rank at a time, answers stay, and waits end. */
#include "cluster/ledger/ledger.h"

#include "support/test.h"

CLOSER(tn_ledger_free);

enum { PART_BYTES = 100, EPOCH = 4 };

#define SECOND UINT64_C(1000000000)

static tn_ledger *open_mode(uint32_t ranks, uint32_t n_parts, tn_ledger_mode mode, bool relaxed)
{
    tn_ledger_span *span FREED(tn_free) = tn_alloc(n_parts + 1, sizeof *span, "spans");
    for (uint32_t i = 0; i < n_parts; i++) {
        uint64_t begin = (uint64_t)PART_BYTES * i;
        span[i] = (tn_ledger_span){.source = 0, .begin = begin, .end = begin + PART_BYTES};
    }
    tn_ledger_opts opts = {.epoch = EPOCH,
                           .ranks = ranks,
                           .n_parts = n_parts,
                           .mode = mode,
                           .relaxed = relaxed,
                           .part = span};
    tn_ledger *l = NULL;
    assert_int_equal(tn_ledger_new(&l, &opts, NULL), TN_OK);
    return l;
}

static tn_ledger *open_relaxed(uint32_t ranks, uint32_t n_parts)
{
    return open_mode(ranks, n_parts, TN_LEDGER_ON_REQUEST, true);
}

/* The number of the part that the rank gets. */
static uint32_t part_of(tn_ledger *l, uint32_t rank, uint64_t id, uint64_t now)
{
    tn_ledger_deal deal;
    assert_int_equal(tn_ledger_ask(l, rank, EPOCH, id, now, &deal), TN_LEDGER_PART);
    assert_int_equal(deal.span.begin, (uint64_t)PART_BYTES * deal.part);
    return deal.part;
}

static tn_ledger_answer ask(tn_ledger *l, uint32_t rank, uint64_t id)
{
    tn_ledger_deal deal;
    return tn_ledger_ask(l, rank, EPOCH, id, 0, &deal);
}

TEST(whoever_asks_gets_the_next_part)
{
    tn_ledger *l FREED(tn_ledger_free) = open_relaxed(3, 4);
    assert_int_equal(part_of(l, 2, 1, 0), 0);
    assert_int_equal(part_of(l, 0, 1, 0), 1);
    assert_int_equal(part_of(l, 2, 2, 0), 2);
    assert_int_equal(part_of(l, 1, 1, 0), 3);
    assert_int_equal(ask(l, 0, 2), TN_LEDGER_WAIT);
}

TEST(by_rule_arrival_decides_nothing)
{
    tn_ledger *l FREED(tn_ledger_free) = open_mode(3, 8, TN_LEDGER_BY_RULE, false);
    assert_int_equal(part_of(l, 2, 1, 0), 2);
    assert_int_equal(part_of(l, 2, 2, 0), 5);
    assert_int_equal(ask(l, 2, 3), TN_LEDGER_NO_MORE);
    assert_int_equal(part_of(l, 0, 1, 0), 0);
    assert_int_equal(part_of(l, 1, 1, 0), 1);
    assert_int_equal(part_of(l, 0, 2, 0), 3);
    assert_int_equal(part_of(l, 0, 2, 0), 3);
    assert_int_equal(part_of(l, 0, 3, 0), 6);
    assert_int_equal(ask(l, 0, 4), TN_LEDGER_NO_MORE);
    tn_ledger_wake wake;
    assert_false(tn_ledger_woken(l, 0, &wake));
}

TEST(c4_a_rank_without_data_is_told_so)
{
    tn_ledger *l FREED(tn_ledger_free) = open_mode(4, 1, TN_LEDGER_BY_RULE, false);
    assert_int_equal(ask(l, 3, 1), TN_LEDGER_NO_MORE);
}

TEST(an_epoch_without_parts_is_over_at_once)
{
    tn_ledger *l FREED(tn_ledger_free) = open_relaxed(2, 0);
    assert_true(tn_ledger_is_over(l));
    assert_int_equal(ask(l, 1, 1), TN_LEDGER_NO_MORE);
}

TEST(a_repeated_ask_gets_the_same_part)
{
    tn_ledger *l FREED(tn_ledger_free) = open_relaxed(2, 3);
    assert_int_equal(part_of(l, 0, 7, 0), 0);
    assert_int_equal(part_of(l, 1, 1, 0), 1);
    assert_int_equal(part_of(l, 0, 7, 5), 0);
    assert_true(tn_ledger_done(l, 0, 0, 0, 9));
    assert_int_equal(part_of(l, 0, 7, 9), 0); /* late, and harmless: it is done */
    assert_int_equal(part_of(l, 0, 8, 9), 2);
    assert_int_equal(ask(l, 0, 7), TN_LEDGER_OLD);
    assert_int_equal(ask(l, 0, 0), TN_LEDGER_OLD);
}

TEST(asks_of_other_epochs_get_no_part)
{
    tn_ledger *l FREED(tn_ledger_free) = open_relaxed(2, 3);
    tn_ledger_deal deal;
    assert_int_equal(tn_ledger_ask(l, 0, EPOCH - 1, 5, 0, &deal), TN_LEDGER_OLD);
    assert_int_equal(tn_ledger_ask(l, 0, EPOCH + 1, 6, 0, &deal), TN_LEDGER_WAIT);
    assert_int_equal(part_of(l, 0, 3, 0), 0);
}

TEST(c1_idle_ranks_are_woken_when_a_part_is_free_again)
{
    tn_ledger *l FREED(tn_ledger_free) = open_relaxed(3, 1);
    assert_int_equal(part_of(l, 0, 1, 0), 0);
    assert_int_equal(ask(l, 2, 4), TN_LEDGER_WAIT);
    assert_int_equal(ask(l, 1, 9), TN_LEDGER_WAIT);
    assert_int_equal(ask(l, 2, 4), TN_LEDGER_WAIT);
    tn_ledger_wake wake;
    assert_false(tn_ledger_woken(l, 0, &wake));
    tn_ledger_lost(l, 0);
    assert_true(tn_ledger_woken(l, 1, &wake));
    assert_int_equal(wake.rank, 2); /* it has waited longest */
    assert_int_equal(wake.id, 4);
    assert_int_equal(wake.answer, TN_LEDGER_PART);
    assert_int_equal(wake.deal.attempt, 1);
    assert_false(tn_ledger_woken(l, 1, &wake));
    assert_int_equal(part_of(l, 2, 4, 2), 0); /* should the message have been lost */
    assert_true(tn_ledger_done(l, 2, 0, 1, 3));
    assert_true(tn_ledger_woken(l, 3, &wake));
    assert_int_equal(wake.rank, 1);
    assert_int_equal(wake.answer, TN_LEDGER_NO_MORE);
    assert_false(tn_ledger_woken(l, 3, &wake));
    assert_int_equal(ask(l, 1, 9), TN_LEDGER_NO_MORE);
    assert_true(tn_ledger_is_over(l));
}

TEST(a_lost_rank_that_waited_is_not_woken)
{
    tn_ledger *l FREED(tn_ledger_free) = open_relaxed(3, 1);
    part_of(l, 0, 1, 0);
    assert_int_equal(ask(l, 1, 1), TN_LEDGER_WAIT);
    assert_int_equal(ask(l, 2, 1), TN_LEDGER_WAIT);
    tn_ledger_lost(l, 1);
    tn_ledger_lost(l, 0);
    tn_ledger_wake wake;
    assert_true(tn_ledger_woken(l, 0, &wake));
    assert_int_equal(wake.rank, 2);
    assert_int_equal(ask(l, 1, 1), TN_LEDGER_WAIT); /* as if it had never asked */
}

TEST(only_the_current_attempt_can_finish_a_part)
{
    tn_ledger *l FREED(tn_ledger_free) = open_relaxed(2, 2);
    assert_int_equal(part_of(l, 0, 1, 0), 0);
    assert_false(tn_ledger_done(l, 1, 0, 0, 1));
    assert_false(tn_ledger_done(l, 0, 0, 1, 1));
    assert_false(tn_ledger_done(l, 0, 1, 0, 1));
    assert_false(tn_ledger_done(l, 0, 2, 0, 1));
    assert_false(tn_ledger_done(l, 0, UINT32_MAX, 0, 1));
    tn_ledger_lost(l, 0);
    assert_int_equal(part_of(l, 1, 1, 2), 0);
    assert_false(tn_ledger_done(l, 0, 0, 0, 3));
    assert_true(tn_ledger_done(l, 1, 0, 1, 3));
    assert_false(tn_ledger_done(l, 1, 0, 1, 3));
}

TEST(parts_of_a_lost_rank_are_dealt_again_in_order_and_from_where_they_began)
{
    tn_ledger *l FREED(tn_ledger_free) = open_relaxed(2, 7);
    part_of(l, 0, 1, 0);
    part_of(l, 1, 1, 0);
    part_of(l, 0, 2, 0);
    tn_ledger_held held = {.part = 2, .position = 30};
    tn_ledger_claim(l, 0, &held, 1, 0);
    tn_ledger_lost(l, 0);
    tn_ledger_deal deal;
    assert_int_equal(tn_ledger_ask(l, 1, EPOCH, 2, 1, &deal), TN_LEDGER_PART);
    assert_int_equal(deal.part, 0);
    assert_true(tn_ledger_done(l, 1, 1, 0, 1));
    assert_int_equal(tn_ledger_ask(l, 1, EPOCH, 3, 1, &deal), TN_LEDGER_PART);
    assert_int_equal(deal.part, 2);
    assert_int_equal(deal.attempt, 1);
    assert_int_equal(deal.position, 0);
    assert_true(tn_ledger_done(l, 1, 0, 1, 1));
    assert_int_equal(part_of(l, 1, 4, 1), 3);
}

/* Three ranks, seven parts: two, then one are the most that a rank holds. */
TEST(who_asks_ahead_leaves_others_their_share)
{
    tn_ledger *l FREED(tn_ledger_free) = open_relaxed(3, 7);
    tn_ledger_wake w;
    assert_int_equal(part_of(l, 0, 1, 0), 0);
    assert_int_equal(part_of(l, 0, 2, 0), 1);
    assert_int_equal(ask(l, 0, 3), TN_LEDGER_WAIT); /* one ahead, though five are free */
    assert_false(tn_ledger_woken(l, 0, &w));
    assert_int_equal(part_of(l, 1, 1, 0), 2);
    assert_true(tn_ledger_done(l, 0, 0, 0, 1));
    assert_true(tn_ledger_woken(l, 1, &w));
    assert_true(w.rank == 0 && w.id == 3 && w.answer == TN_LEDGER_PART && w.deal.part == 3);
    assert_int_equal(part_of(l, 1, 2, 2), 4);
    assert_true(tn_ledger_done(l, 0, 1, 0, 2));
    assert_true(tn_ledger_done(l, 0, 3, 0, 2));
    assert_true(tn_ledger_done(l, 1, 2, 0, 2));
    assert_int_equal(part_of(l, 0, 4, 2), 5);
    assert_int_equal(ask(l, 0, 5), TN_LEDGER_WAIT); /* three are left, one for each */
    assert_int_equal(ask(l, 1, 3), TN_LEDGER_WAIT);
    assert_int_equal(part_of(l, 2, 1, 2), 6); /* the last one: who comes late has it */
}

TEST(by_rule_a_rank_that_came_back_gets_its_own_parts_again)
{
    tn_ledger *l FREED(tn_ledger_free) = open_mode(2, 6, TN_LEDGER_BY_RULE, true);
    assert_int_equal(part_of(l, 1, 1, 0), 1);
    assert_true(tn_ledger_done(l, 1, 1, 0, 1));
    assert_int_equal(part_of(l, 1, 2, 0), 3);
    assert_int_equal(part_of(l, 1, 3, 0), 5);
    tn_ledger_lost(l, 1);
    assert_int_equal(part_of(l, 1, 1, 0), 3);
    assert_int_equal(part_of(l, 1, 2, 0), 5);
    assert_int_equal(ask(l, 1, 3), TN_LEDGER_NO_MORE);
}

TEST(exact_a_lost_rank_keeps_its_parts_until_the_rollback)
{
    tn_ledger *l FREED(tn_ledger_free) = open_mode(2, 1, TN_LEDGER_ON_REQUEST, false);
    part_of(l, 0, 1, 0);
    tn_ledger_lost(l, 0);
    assert_int_equal(ask(l, 1, 1), TN_LEDGER_WAIT);
    tn_epoch_part row[1];
    assert_int_equal(tn_ledger_save(l, row), 1);
    row[0].position = 12;
    assert_int_equal(tn_ledger_restore(l, row, 1, NULL), TN_OK);
    tn_ledger_deal deal;
    assert_int_equal(tn_ledger_ask(l, 1, EPOCH, 1, 0, &deal), TN_LEDGER_PART);
    assert_int_equal(deal.attempt, 1);
    assert_int_equal(deal.position, 12);
}

TEST(too_many_parts_and_too_little_memory_are_errors)
{
    tn_ledger_opts opts = {.ranks = 2, .n_parts = TN_LEDGER_PARTS_MAX + 1};
    tn_ledger *l FREED(tn_ledger_free) = NULL;
    tn_error err = {0};
    assert_int_equal(tn_ledger_new(&l, &opts, &err), TN_E_LIMIT);
    assert_non_null(strstr(err.text, "1048577"));
    const tn_ledger_span span = {0, 0, 1};
    opts = (tn_ledger_opts){.ranks = 2, .n_parts = 1, .part = &span};
    uint64_t nth = 1;
    for (;; nth++) {
        tn_alloc_fail_at(nth);
        tn_status status = tn_ledger_new(&l, &opts, &err);
        tn_alloc_fail_at(0);
        if (status == TN_OK) {
            break;
        }
        assert_int_equal(status, TN_E_MEMORY);
        assert_null(l);
    }
    assert_true(nth > 1);
    tn_ledger_free(NULL);
}

enum { RANDOM_RANKS = 7, RANDOM_PARTS = 60 };

typedef struct reader {
    uint64_t id; /* of its last ask */
    bool waits, holds;
    tn_ledger_deal has;
} reader;

static void one_event(tn_ledger *l, reader *r, uint32_t rank, uint64_t x, uint64_t now)
{
    tn_ledger_deal deal;
    if (x % 16 == 0) {
        tn_ledger_lost(l, rank);
        *r = (reader){0};
    } else if (r->holds && x % 4 == 0) {
        assert_int_equal(part_of(l, rank, r->id, now), r->has.part); /* its ask once more */
    } else if (r->holds) {
        assert_true(tn_ledger_done(l, rank, r->has.part, r->has.attempt, now));
        r->holds = false;
    } else {
        r->id += !r->waits;
        tn_ledger_answer answer = tn_ledger_ask(l, rank, EPOCH, r->id, now, &deal);
        r->waits = answer == TN_LEDGER_WAIT;
        r->holds = answer == TN_LEDGER_PART;
        r->has = r->holds ? deal : r->has;
    }
}

/* Random ranks ask, finish and are lost; a part is never with two ranks, and all come to an end. */
static void one_random_epoch(uint64_t seed)
{
    const uint64_t stream = tn_stream2(seed, TN_RNG_GENERATE, 0);
    tn_ledger *l FREED(tn_ledger_free) = open_relaxed(RANDOM_RANKS, RANDOM_PARTS);
    reader r[RANDOM_RANKS] = {0};
    for (uint64_t i = 0; !tn_ledger_is_over(l); i++) {
        uint64_t x = tn_draw(stream, i);
        uint32_t rank = (uint32_t)tn_below(x, RANDOM_RANKS);
        one_event(l, &r[rank], rank, tn_mix(x), i);
        for (uint32_t other = 0; other < RANDOM_RANKS; other++) {
            if (other != rank && r[rank].holds && r[other].holds) {
                assert_true(r[rank].has.part != r[other].has.part);
            }
        }
        fail_if(i > UINT64_C(100000), "seed %llu: parts are left", (unsigned long long)seed);
    }
}

TEST(random_epochs_end_with_every_part_done)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        one_random_epoch(seed);
    }
}

/* 1024 ranks, 100,000 parts: what is linear in either would take minutes. */
TEST(many_ranks_and_parts_are_dealt_one_by_one)
{
    enum { RANKS = TN_LEDGER_RANKS_MAX, PARTS = 100000 };
    const tn_ledger_mode modes[] = {TN_LEDGER_BY_RULE, TN_LEDGER_ON_REQUEST};
    for (uint32_t m = 0; m < 2; m++) {
        tn_ledger *l FREED(tn_ledger_free) = open_mode(RANKS, PARTS, modes[m], true);
        uint32_t finished = 0;
        for (uint64_t id = 1; !tn_ledger_is_over(l); id++) {
            for (uint32_t rank = 0; rank < RANKS; rank++) {
                tn_ledger_deal deal;
                if (tn_ledger_ask(l, rank, EPOCH, id, id, &deal) == TN_LEDGER_PART) {
                    assert_true(tn_ledger_done(l, rank, deal.part, deal.attempt, id + 1));
                    finished++;
                }
            }
        }
        assert_int_equal(finished, PARTS);
    }
}
