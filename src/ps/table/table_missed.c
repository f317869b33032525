/* table_missed.c - steps that rows have missed, made up for when a row is next needed: l2_mode
 * exact.
 *
 * Each missed step is the one that l2_mode: dense would have made, with the rate of that step, so
 * rows end with the same bits, whenever they catch up. The global clip is left out: it would need
 * the norm of all rows in every step.
 */
#include "ps/table/table_missed.h"
#include "base/thread/team.h"

/* Rows that are behind, those with the same rules together and then by the steps that they have
 * made. */
typedef struct behind {
    uint32_t n;
    uint64_t order[TN_LOOK_KEYS]; /* kind << 33 | waits << 32 | last */
    tn_row *row[TN_LOOK_KEYS];
} behind;

/* Of a locked partition; its `last` is left as it is. */
static void add_if_behind(tn_table *t, uint64_t key, tn_row *row, behind *b)
{
    const uint32_t group = tn_row_group(row);
    const uint32_t last = tn_row_word(row->data + tn_plan_of_row(t, row)->last);
    if (last >= t->n_steps) {
        return;
    }
    if (tn_changed_rows_watched(&t->changes)) {
        tn_row_note_change(t, key, row);
    }
    const uint64_t order =
        (uint64_t)tn_kind_of(t, group) << 33 | (uint64_t)tn_row_waits(row) << 32 | last;
    uint32_t i = b->n++;
    for (; i > 0 && b->order[i - 1] > order; i--) {
        b->order[i] = b->order[i - 1];
        b->row[i] = b->row[i - 1];
    }
    b->order[i] = order;
    b->row[i] = row;
}

/* Rows from..to with the same rules: each from the step on that it missed first. */
static void make_up(tn_table *t, const behind *b, uint32_t from, uint32_t to)
{
    tn_push push = {.step = 0};
    const tn_table_job job = {.t = t, .push = &push, .clip = 1, .updates = true};
    uint32_t end = from;
    for (uint32_t i = (uint32_t)b->order[from]; i < t->n_steps; i++) {
        while (end < to && (uint32_t)b->order[end] <= i) {
            end++;
        }
        push.step = t->steps[i].step;
        push.lr_factor = t->steps[i].lr_factor;
        tn_rows_miss(&job, TN_L2_EXACT, end - from, b->row + from, NULL);
    }
}

static void catch_up(tn_table *t, behind *b)
{
    for (uint32_t from = 0, to; from < b->n; from = to) {
        to = from + tn_rows_alike(t, b->n - from, b->row + from);
        make_up(t, b, from, to);
    }
    b->n = 0;
}

void tn_rows_catch_up(tn_table *t, const tn_keyset *keys, tn_range run, tn_row *const *row,
                      uint32_t more)
{
    behind b;
    b.n = 0;
    for (uint32_t k = run.from; k < run.to; k++) {
        if (row[k - run.from] != NULL) {
            add_if_behind(t, keys->key[k], row[k - run.from], &b);
            tn_row_set_last(t, row[k - run.from], t->n_steps + more);
        }
    }
    catch_up(t, &b);
}

/* ---- all rows ---- */

void tn_partition_catch_up(tn_table *t, uint32_t partition, uint32_t last)
{
    behind b;
    b.n = 0;
    for (uint32_t r = 0; t->n_steps > 0 && r < t->n_plans; r++) {
        const tn_slab *slab = &t->partition[partition].shelf[r].slab;
        for (uint32_t i = 0; i < slab->n_rows; i++) {
            tn_row *row = tn_slab_at(slab, i);
            add_if_behind(t, tn_row_key(row, partition), row, &b);
            tn_row_set_last(t, row, last);
            if (b.n == TN_LOOK_KEYS) {
                catch_up(t, &b);
            }
        }
    }
    catch_up(t, &b);
}

static void catch_up_tile(void *arg, uint32_t tile)
{
    tn_table *t = arg;
    for (uint32_t i = 0; i < TN_TILE_PARTITIONS; i++) {
        const uint32_t p = tile * TN_TILE_PARTITIONS + i;
        pthread_mutex_lock(&t->partition[p].lock);
        tn_partition_catch_up(t, p, 0);
        pthread_mutex_unlock(&t->partition[p].lock);
    }
}

void tn_table_catch_up(tn_table *t, tn_team *team)
{
    if (t->n_steps == 0) {
        return;
    }
    if (tn_changed_rows_watched(&t->changes)) {
        tn_changed_rows_wait(&t->changes, UINT64_MAX);
    }
    tn_team_run(team, TN_TABLE_TILES, catch_up_tile, t);
    t->n_steps = 0;
}

void tn_table_add_step(tn_table *t, tn_team *team, const tn_push *push)
{
    TN_ASSERT(t->n_steps < TN_STEPS_KEPT);
    t->steps[t->n_steps++] = (tn_table_step){push->step, push->lr_factor};
    if (t->n_steps == TN_STEPS_KEPT) {
        tn_table_catch_up(t, team);
    }
}
