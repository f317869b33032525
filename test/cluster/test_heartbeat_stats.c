/* test_heartbeat_stats.c - what heartbeats say of a rank: its speed, what it does, what signals
 * want. */
#include "cluster/train/heartbeat_stats.h"

#include "base/core/clock.h"
#include "cluster/rankkit.h"
#include "support/test.h"
#include "train/step/step_loop.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <sched.h>

static const uint64_t guard_ns = 60000000000;

typedef struct fixture {
    rankkit k;
    tn_group *rank0;
    atomic_bool stop, save;
    tn_watch watch;
    tn_heartbeat_stats beats; /* of rank 1 */
} fixture;

SET_UP
{
    static fixture f;
    memset(&f, 0, sizeof f);
    rankkit_open(&f.k, 2, NULL, NULL);
    rankkit_form(&f.k);
    f.rank0 = tn_peers_group(f.k.peers[0]);
    f.watch = (tn_watch){.stop = &f.stop, .save = &f.save};
    f.beats = (tn_heartbeat_stats){
        .group = tn_peers_group(f.k.peers[1]), .watch = &f.watch, .begin = tn_clock_s()};
    *state = &f;
}

TEAR_DOWN
{
    fixture *f = *state;
    rankkit_close(&f->k);
}

/* Until the table of rank 0 says so of rank 1. */
static void hear(fixture *f, const char *words)
{
    const uint64_t until = tn_clock_ns() + guard_ns;
    bool heard = false;
    while (!heard && tn_clock_ns() < until) {
        tn_text table = {0};
        tn_group_table(f->rank0, &table);
        heard = strstr(tn_text_str(&table), words) != NULL;
        tn_text_done(&table);
        (void)sched_yield();
    }
    assert_true(heard);
}

static bool is_asked(fixture *f, tn_peer_ask what)
{
    const uint64_t until = tn_clock_ns() + guard_ns;
    bool asked = false;
    while (!asked && tn_clock_ns() < until) {
        asked = tn_group_is_asked(f->rank0, what);
        (void)sched_yield();
    }
    return asked;
}

/* The rows per second of all ranks, in the last line of the table of rank 0. */
static double rate_of(tn_group *g)
{
    tn_text table CLEANUP(tn_text_done) = {0};
    tn_group_table(g, &table);
    const char *all = strstr(tn_text_str(&table), "\n all ");
    assert_non_null(all);
    const double rate = strtod(all + strlen("\n all "), NULL);
    return rate;
}

TEST(figures_are_of_the_last_second)
{
    fixture *f = *state;
    tn_worker *w = f->k.w[1];
    const tn_step_turn turn = {.waited_s = .25, .waits = {.rows_s = .5, .weights_s = .25}};
    w->steps = 12;
    w->rows = 500;
    f->beats.begin = tn_clock_s() + 3600; /* not a second yet */
    tn_heartbeat_stats_step(&f->beats, w, &turn, 480);
    assert_true(f->beats.note.rows_per_s <= 0 && f->beats.note.waiting <= 0);
    assert_int_equal(f->beats.note.state, TN_PEER_TRAINING);
    assert_int_equal(f->beats.note.records, 480);
    f->beats.begin = tn_clock_s() - 2;
    tn_heartbeat_stats_step(&f->beats, w, &turn, 520);
    assert_true(f->beats.note.rows_per_s > 0 && f->beats.note.rows_per_s <= 250);
    assert_true(f->beats.note.waiting > 0 && f->beats.note.waiting <= 1); /* 2 s of 2 s or more */
    assert_true(f->beats.note.rss_bytes > 0);
    assert_int_equal(f->beats.rows, 500); /* from here on it is counted anew */
    assert_true(f->beats.waited_s <= 0);
    hear(f, " 12 ");
    assert_true(rate_of(f->rank0) > 0);
    f->beats.begin = tn_clock_s() - 1;
    f->beats.waited_s = 1000; /* before that second */
    tn_heartbeat_stats_step(&f->beats, w, &turn, 520);
    assert_true(f->beats.note.waiting >= 1 && f->beats.note.waiting <= 1);
    assert_true(f->beats.note.rows_per_s <= 0);
}

TEST_ON(fixture *f, what_a_rank_does_is_told)
{
    tn_heartbeat_stats_state(&f->beats, TN_PEER_EVALUATING);
    hear(f, "evaluating");
    tn_heartbeat_stats_state(&f->beats, TN_PEER_SAVING);
    hear(f, "saving");
}

TEST_ON(fixture *f, a_signal_is_passed_on_to_rank_0)
{
    tn_heartbeat_stats_state(&f->beats, TN_PEER_SAVING);
    hear(f, "saving");
    assert_false(tn_group_is_asked(f->rank0, TN_ASKS_SAVE));
    assert_false(tn_group_is_asked(f->rank0, TN_ASKS_STOP));
    atomic_store(&f->save, true);
    tn_heartbeat_stats_state(&f->beats, TN_PEER_WAITING);
    assert_false(atomic_load(&f->save));
    assert_true(is_asked(f, TN_ASKS_SAVE));
    tn_heartbeat_stats_state(&f->beats, TN_PEER_LOADING);
    hear(f, "loading"); /* another beat, which asks no more */
    assert_false(tn_group_is_asked(f->rank0, TN_ASKS_SAVE));
    atomic_store(&f->stop, true);
    tn_heartbeat_stats_state(&f->beats, TN_PEER_WAITING);
    assert_true(is_asked(f, TN_ASKS_STOP));
    assert_true(is_asked(f, TN_ASKS_STOP)); /* again and again */
    assert_true(atomic_load(&f->stop));
}

TEST_ON(fixture *f, nobody_needs_to_watch)
{
    f->beats.watch = NULL;
    tn_heartbeat_stats_state(&f->beats, TN_PEER_EVALUATING);
    hear(f, "evaluating");
    f->beats.watch = &(tn_watch){0};
    tn_heartbeat_stats_state(&f->beats, TN_PEER_SAVING);
    hear(f, "saving");
}
