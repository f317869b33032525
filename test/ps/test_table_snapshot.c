/* test_table_snapshot.c - a cut is the table as it stood, whatever happens to it meanwhile. */
#include "ps/table/table_snapshot.h"

#include "base/math/crc32c.h"
#include "base/thread/threads.h"
#include "onetable.h"
#include "ps/table/tabledef.h"
#include "support/rounds.h"
#include "support/test.h"

#include <unistd.h>

enum { KEYS = 20000, SOME = 3000 };

/* Rows as one number, in the order in which they are shown. */
typedef struct digest {
    uint32_t crc;
    uint64_t rows;
    tn_table *copy; /* NULL, or where the rows are put */
} digest;

static tn_status add_row(void *arg, const tn_row_view *row, tn_error *err)
{
    digest *d = arg;
    uint64_t words[4] = {row->key, row->group, row->present, row->last_seen};
    double counts[2] = {row->show, row->click};
    d->crc = tn_crc32c(d->crc, words, sizeof words);
    d->crc = tn_crc32c(d->crc, counts, sizeof counts);
    d->crc = tn_crc32c(d->crc, row->data, row->n_floats * sizeof *row->data);
    d->rows++;
    return d->copy != NULL ? tn_table_restore(d->copy, row, err) : TN_OK;
}

static digest digest_of(tn_table *t)
{
    digest d = {0};
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        assert_int_equal(tn_table_walk(t, p, add_row, &d, NULL), TN_OK);
    }
    return d;
}

static void walk(tn_cut *cut, uint32_t from, uint32_t to, digest *d)
{
    for (uint32_t p = from; p < to; p++) {
        assert_int_equal(tn_cut_walk(cut, p, add_row, d, NULL), TN_OK);
    }
}

static tn_cut *open_cut(tn_table *t, bool delta)
{
    tn_cut *cut = NULL;
    assert_int_equal(tn_cut_open(&cut, t, delta, NULL), TN_OK);
    return cut;
}

/* One step on keys from .. from + n of those that `salt` spreads. */
static void learn(onetable *f, uint32_t from, uint32_t n, uint64_t step)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 20);
    onetable g = {.arena = arena, .m = f->m, .t = f->t};
    kit_keys *k = keys_of(&g, many_keys(&g, from + n, 9) + from, n);
    float *rows = floats(&g, k);
    tn_push push = kit_push(step);
    push.day = 20000 + (uint32_t)step;
    assert_int_equal(tn_table_pull(f->t, NULL, &k->set, rows, NULL), TN_OK);
    for (uint32_t i = 0; i < k->n_floats; i++) {
        rows[i] = (float)(i % 91) - 45 * rows[i];
    }
    tn_table_push(f->t, NULL, &k->set, rows, &push, step % 2 == 0 ? 1 : .25);
}

static void assert_same(digest a, digest b)
{
    assert_int_equal(a.rows, b.rows);
    assert_int_equal(a.crc, b.crc);
}

TEST(what_changes_while_it_is_walked_does_not_show)
{
    onetable f CLEANUP(onetable_end) = onetable_begin("adagrad", "rowwise=true", 3);
    learn(&f, 0, KEYS, 0);
    for (uint64_t step = 1; step < 4; step++) {
        digest before = digest_of(f.t);
        digest cut = {0};
        tn_cut *c = open_cut(f.t, false);
        assert_int_equal(tn_cut_rows(c), before.rows);
        learn(&f, 0, KEYS / 2, step);
        walk(c, 0, TN_PARTITIONS / 3, &cut);
        learn(&f, KEYS / 3, KEYS, step + 10); /* some of these are new */
        walk(c, TN_PARTITIONS / 3, TN_PARTITIONS / 2, &cut);
        learn(&f, 0, KEYS, step + 20);
        walk(c, TN_PARTITIONS / 2, TN_PARTITIONS, &cut);
        tn_cut_close(c);
        assert_same(before, cut);
        assert_int_not_equal(digest_of(f.t).crc, before.crc);
    }
}

/* The first cut is full, the others hold what changed; put together they are the table. */
TEST(a_full_cut_and_its_deltas_are_the_table)
{
    onetable f CLEANUP(onetable_end) = onetable_begin("adam", "", 3);
    onetable copy CLEANUP(onetable_end) = onetable_begin("adam", "", 4);
    assert_false(tn_table_knows_changes(f.t));
    assert_int_equal(tn_table_track(f.t, NULL), TN_OK);
    assert_true(tn_table_knows_changes(f.t));
    learn(&f, 0, KEYS, 0);
    for (uint32_t i = 0; i < 6; i++) {
        digest now = digest_of(f.t);
        digest cut = {.copy = copy.t};
        tn_cut *c = open_cut(f.t, i > 0);
        learn(&f, 100 * i, SOME, 2 * i + 1);
        walk(c, 0, TN_PARTITIONS / 2, &cut);
        learn(&f, KEYS + 500 * i, SOME, 2 * i + 2); /* new ones */
        walk(c, TN_PARTITIONS / 2, TN_PARTITIONS, &cut);
        tn_cut_close(c);
        assert_same(now, digest_of(copy.t));
        if (i > 1) {
            assert_in_range(cut.rows, SOME, 2 * SOME);
        }
    }
}

/* More cuts than there are stamps (127), of all kinds, some of them not walked to the end. */
TEST(stamps_that_come_again_confuse_nobody)
{
    onetable f CLEANUP(onetable_end) = onetable_begin("adagrad", "", 3);
    onetable copy CLEANUP(onetable_end) = onetable_begin("adagrad", "", 4);
    uint64_t random = tn_stream2(5, TN_RNG_ROW, 0);
    bool based = false; /* `copy` is the table of the cut before */
    assert_int_equal(tn_table_track(f.t, NULL), TN_OK);
    learn(&f, 0, 200, 0);
    for (uint32_t i = 0; i < 900 / tn_round_step(); i++) {
        bool full = !based || tn_below(tn_draw(random, 3UL * i), 300) == 0;
        bool whole = tn_below(tn_draw(random, 3UL * i + 1), 10) != 0;
        digest now = digest_of(f.t);
        digest cut = {.copy = copy.t};
        if (full) {
            tn_table_clear(copy.t);
        }
        tn_cut *c = open_cut(f.t, !full);
        uint32_t from = (uint32_t)tn_below(tn_draw(random, 3UL * i + 2), 180);
        learn(&f, from, 1 + i % 20, i);
        walk(c, 0, whole ? TN_PARTITIONS : 5, &cut);
        tn_cut_close(c);
        if (whole) {
            assert_same(now, digest_of(copy.t));
        }
        based = whole;
    }
}

TEST(a_table_that_was_cleared_starts_its_list_anew)
{
    onetable f CLEANUP(onetable_end) = onetable_begin("adagrad", "", 3);
    assert_int_equal(tn_table_track(f.t, NULL), TN_OK);
    learn(&f, 0, SOME, 0);
    tn_table_clear(f.t);
    learn(&f, 0, 10, 1);
    digest cut = {0};
    tn_cut *c = open_cut(f.t, true);
    walk(c, 0, TN_PARTITIONS, &cut);
    tn_cut_close(c);
    assert_int_equal(cut.rows, 10);
}

/* ---- two threads ---- */

typedef struct writing {
    tn_cut *cut;
    digest seen;
} writing;

static tn_status write_all(void *arg, tn_error *err)
{
    writing *w = arg;
    tn_status status = TN_OK;
    for (uint32_t p = 0; p < TN_PARTITIONS && status == TN_OK; p++) {
        status = tn_cut_walk(w->cut, p, add_row, &w->seen, err);
    }
    tn_cut_close(w->cut);
    return status;
}

static void check_while_training(const char *options, bool delta)
{
    onetable f CLEANUP(onetable_end) = onetable_begin("adagrad", options, 3);
    digest first = {0};
    assert_int_equal(tn_table_track(f.t, NULL), TN_OK);
    learn(&f, 0, KEYS, 0);
    tn_cut *c = open_cut(f.t, false);
    walk(c, 0, TN_PARTITIONS, &first);
    tn_cut_close(c);
    learn(&f, 0, KEYS, 1); /* all of it is in the delta */
    for (uint64_t round = 0; round < 3; round++) {
        digest before = digest_of(f.t);
        tn_thread *thread = NULL;
        writing w = {.cut = open_cut(f.t, delta)};
        assert_int_equal(tn_thread_start(&thread, "writer", write_all, &w, NULL), TN_OK);
        for (uint64_t step = 0; step < 6; step++) {
            learn(&f, (uint32_t)step * 1000, KEYS, 10 * round + step);
        }
        assert_int_equal(tn_thread_join(thread, NULL), TN_OK);
        if (!delta || round == 0) {
            assert_same(before, w.seen);
        }
    }
}

TEST(training_goes_on_while_another_thread_walks)
{
    check_while_training("rowwise=true", false);
    check_while_training("rowwise=true", true);
}

TEST(a_sweep_over_all_rows_waits_for_the_walk)
{
    check_while_training("l2=.01 l2_mode=dense", false);
}

/* A walk that comes late would hold up a step that changes all rows until it is done. */
TEST(a_cut_is_patient_unless_steps_change_all_rows)
{
    static const char *const options[] = {"", "l2=.01", "l2=.01 l2_mode=dense"};
    for (uint32_t i = 0; i < 3; i++) {
        onetable f CLEANUP(onetable_end) = onetable_begin("adagrad", options[i], 3);
        learn(&f, 0, SOME, 0);
        tn_cut *c = open_cut(f.t, false);
        assert_int_equal(tn_cut_set_patient(c), i < 2);
        tn_cut_close(c);
    }
}

/* ---- the bound ---- */

enum { WIDE = 4096, WIDE_KEYS = 6000, WIDE_BATCH = 500, WIDE_BYTES = WIDE_BATCH * 17000 };

static tn_status push_wide(void *arg, tn_error *err)
{
    (void)err;
    learn(arg, 0, WIDE_BATCH, 1);
    for (uint32_t at = WIDE_BATCH; at < WIDE_KEYS; at += WIDE_BATCH) {
        learn(arg, at, WIDE_BATCH, 1);
    }
    return TN_OK;
}

TEST(pushes_wait_when_too_much_stands_aside)
{
    onetable f CLEANUP(onetable_end) = {.arena = tn_arena_new(1 << 20)};
    f.m = kit_model_plain(f.arena, WIDE, kit_rule(f.arena, "sgd", NULL));
    f.t = kit_table(f.m, 1);
    for (uint32_t at = 0; at < WIDE_KEYS; at += WIDE_BATCH) {
        learn(&f, at, WIDE_BATCH, 0);
    }
    digest before = digest_of(f.t);
    digest seen = {0};
    tn_thread *thread = NULL;
    tn_cut *c = open_cut(f.t, false);
    assert_false(tn_cut_set_patient(c)); /* copies of all rows would be too much */
    const uint64_t most = f.t->changes.aside_max;
    assert_in_range(most, WIDE_BYTES * 2, WIDE_BYTES * 10); /* so that it is reached */
    assert_int_equal(tn_thread_start(&thread, "pushes", push_wide, &f, NULL), TN_OK);
    while (atomic_load(&f.t->changes.aside) + WIDE_BYTES <= most) {
        (void)usleep(1000);
    }
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        walk(c, p, p + 1, &seen);
        assert_true(atomic_load(&f.t->changes.aside) <= most);
    }
    tn_cut_close(c);
    assert_int_equal(tn_thread_join(thread, NULL), TN_OK);
    assert_same(before, seen);
    assert_int_equal(atomic_load(&f.t->changes.aside), 0);
}

/* From half of the bound on a push pauses for the walker; where there is none it goes on. */
TEST(a_push_does_not_wait_long_for_a_walk_that_does_not_come)
{
    onetable f CLEANUP(onetable_end) = {.arena = tn_arena_new(1 << 20)};
    f.m = kit_model_plain(f.arena, WIDE, kit_rule(f.arena, "sgd", NULL));
    f.t = kit_table(f.m, 1);
    for (uint32_t at = 0; at < WIDE_KEYS; at += WIDE_BATCH) {
        learn(&f, at, WIDE_BATCH, 0);
    }
    tn_cut *c = open_cut(f.t, false);
    const uint64_t most = f.t->changes.aside_max;
    uint32_t after_half = 0;
    for (uint32_t at = 0; atomic_load(&f.t->changes.aside) + WIDE_BYTES <= most; at += WIDE_BATCH) {
        assert_in_range(at, 0, WIDE_KEYS - WIDE_BATCH);
        after_half += atomic_load(&f.t->changes.aside) > most / 2;
        learn(&f, at, WIDE_BATCH, 1);
    }
    assert_true(after_half > 0);
    tn_cut_close(c);
}

/* The nth allocation fails: the cut does, the table stays what it is. */
TEST(a_copy_that_finds_no_memory_fails_the_walk_alone)
{
    onetable f CLEANUP(onetable_end) = onetable_begin("adagrad", "", 3);
    learn(&f, 0, SOME, 0);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 20);
    onetable g = {.arena = arena, .m = f.m, .t = f.t};
    kit_keys *k = keys_of(&g, many_keys(&g, SOME, 9), SOME);
    float *rows = floats(&g, k);
    tn_push push = kit_push(1);
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, NULL), TN_OK);
    tn_cut *c = open_cut(f.t, false);
    tn_alloc_fail_at(1);
    tn_table_push(f.t, NULL, &k->set, rows, &push, 1);
    tn_alloc_fail_at(0);
    uint32_t failed = 0;
    digest d = {0};
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        tn_status status = tn_cut_walk(c, p, add_row, &d, NULL);
        assert_true(status == TN_OK || status == TN_E_MEMORY);
        failed += status == TN_E_MEMORY;
    }
    assert_int_equal(failed, 1);
    tn_cut_close(c);
    assert_int_equal(tn_table_track(f.t, NULL), TN_OK);
    tn_alloc_fail_at(1);
    tn_table_push(f.t, NULL, &k->set, rows, &push, 1);
    tn_alloc_fail_at(0);
    assert_false(tn_table_knows_changes(f.t)); /* until the next full cut */
    tn_cut_close(open_cut(f.t, false));
    assert_true(tn_table_knows_changes(f.t));
}
