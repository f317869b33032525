/* test_ordered_work.c - pieces made by several threads, joined in their order. */
#include "support/test.h"

#include "base/thread/ordered_work.h"

#include <sched.h>
#include <stdatomic.h>

enum { PIECES = 500, NONE = 1 << 30 };

typedef struct work {
    uint32_t n_joined;
    uint32_t joined[PIECES];
    _Atomic uint32_t made, inside, dropped, hands;
    uint32_t bad_make, bad_join; /* NONE, or from this one on pieces fail */
    _Atomic bool go;             /* the first piece waits for it .. */
    bool first_waits;            /* .. when it does */
} work;

typedef struct hand {
    work *w;
    uint32_t piece;
    uint32_t used; /* pieces that had it */
} hand;

static work fresh(void)
{
    return (work){.bad_make = NONE, .bad_join = NONE};
}

static tn_status make(void *job, uint32_t piece, void *memory, tn_error *err)
{
    work *w = job;
    hand *h = memory;
    if (h->used++ == 0) {
        atomic_fetch_add(&w->hands, 1);
    }
    h->w = w;
    h->piece = piece;
    while (w->first_waits && piece == 0 && !atomic_load(&w->go)) {
        sched_yield();
    }
    atomic_fetch_add(&w->made, 1);
    if (w->first_waits && piece == TN_INORDER_AHEAD - 1) {
        atomic_store(&w->go, true);
    }
    return piece >= w->bad_make ? tn_fail(err, TN_E_DATA, "make of %u", piece) : TN_OK;
}

static tn_status join(void *job, uint32_t piece, void *memory, tn_error *err)
{
    work *w = job;
    const hand *h = memory;
    assert_int_equal(atomic_fetch_add(&w->inside, 1), 0);
    assert_int_equal(h->piece, piece);
    assert_ptr_equal(h->w, w);
    if (piece >= w->bad_join) {
        atomic_fetch_sub(&w->inside, 1);
        return tn_fail(err, TN_E_IO, "join of %u", piece);
    }
    w->joined[w->n_joined++] = piece;
    assert_int_equal(atomic_fetch_sub(&w->inside, 1), 1);
    return TN_OK;
}

static void drop(void *memory)
{
    const hand *h = memory;
    assert_true(h->used > 0);
    atomic_fetch_add(&h->w->dropped, 1);
}

static tn_status run(work *w, tn_team *team, uint32_t n, tn_error *err)
{
    const tn_inorder how = {
        .job = w, .n = n, .hand_bytes = sizeof(hand), .make = make, .join = join, .drop = drop};
    return tn_inorder_run(&how, team, err);
}

static tn_team *team_of(uint32_t threads)
{
    tn_team *team = NULL;
    assert_int_equal(tn_team_open(&team, threads, NULL), TN_OK);
    return team;
}

TEST(pieces_are_joined_in_their_order)
{
    for (uint32_t threads = 1; threads <= 4; threads++) {
        tn_team *team FREED(tn_team_close) = team_of(threads);
        for (uint32_t i = 0; i < 20; i++) {
            work w = fresh();
            assert_int_equal(run(&w, team, PIECES, NULL), TN_OK);
            assert_int_equal(w.n_joined, PIECES);
            for (uint32_t k = 0; k < PIECES; k++) {
                assert_int_equal(w.joined[k], k);
            }
            assert_int_equal(w.made, PIECES);
            assert_in_range(w.hands, 1, threads == 1 ? 1 : TN_INORDER_AHEAD);
            assert_int_equal(w.dropped, w.hands);
        }
    }
}

TEST(without_a_team_the_caller_does_all)
{
    work w = fresh();
    assert_int_equal(run(&w, NULL, PIECES, NULL), TN_OK);
    assert_int_equal(w.n_joined, PIECES);
    assert_int_equal(w.hands, 1);
    w = fresh();
    assert_int_equal(run(&w, NULL, 0, NULL), TN_OK);
    assert_int_equal(w.made, 0);
}

/* The first piece is made last of as many as may be under way. */
TEST(pieces_do_not_wait_to_be_joined_while_there_is_room)
{
    tn_team *team FREED(tn_team_close) = team_of(2);
    work w = fresh();
    w.first_waits = true;
    assert_int_equal(run(&w, team, PIECES, NULL), TN_OK);
    assert_int_equal(w.n_joined, PIECES);
    assert_int_equal(w.joined[0], 0);
    assert_int_equal(w.hands, TN_INORDER_AHEAD);
}

/* Many pieces fail, on any thread; it is always the same one that is told. */
TEST(the_first_fault_in_order_is_told)
{
    for (uint32_t threads = 1; threads <= 4; threads++) {
        tn_team *team FREED(tn_team_close) = team_of(threads);
        for (uint32_t i = 0; i < 20; i++) {
            tn_error err = {0};
            work w = fresh();
            w.bad_make = 101;
            w.bad_join = 103;
            assert_int_equal(run(&w, team, PIECES, &err), TN_E_DATA);
            assert_string_equal(err.text, "make of 101");
            assert_int_equal(w.n_joined, 101);
            assert_in_range(w.made, 102, threads == 1 ? 102 : 101 + TN_INORDER_AHEAD);
            w = fresh();
            w.bad_make = 103;
            w.bad_join = 101;
            assert_int_equal(run(&w, team, PIECES, &err), TN_E_IO);
            assert_string_equal(err.text, "join of 101");
            assert_int_equal(w.n_joined, 101);
            assert_int_equal(w.dropped, w.hands);
        }
    }
}

TEST(no_room_for_a_hand_is_a_failure_like_others)
{
    for (uint32_t threads = 1; threads <= 2; threads++) {
        tn_team *team FREED(tn_team_close) = team_of(threads);
        tn_error err = {0};
        work w = fresh();
        tn_alloc_fail_at(1);
        assert_int_equal(run(&w, team, PIECES, &err), TN_E_MEMORY);
        tn_alloc_fail_at(0);
        assert_non_null(strstr(err.text, "a piece of work"));
        assert_true(w.n_joined < PIECES);
        assert_int_equal(w.dropped, w.hands);
    }
}
