/* table_push.c - gradients into the table: their norm, the update of the batch's rows, and the
 * sweep that brings L2 to all others where a rule says l2_mode: dense.
 *
 * Where rules leave gradients as they are and say the same for every group of a record, the rows of
 * many keys are updated at once, segment by segment; all others key by key. What is computed is the
 * same, bit for bit.
 *
 *     run      k0 k1 k2 k3 ..       up to 64 keys
 *     record   A  B  A  A  ..       rows of A, then rows of B:
 *              w0    w2 w3          their first segments in one call of the optimizer,
 *                                   then their second ones
 */
#include "ps/table/tabledef.h"

#include "base/core/compiler.h"
#include "base/thread/team.h"

#include <string.h>

/* Room that the calls of one tile share. */
typedef struct scratch {
    tn_row *row[TN_LOOK_KEYS];
    float g[TN_DIM_MAX];
} scratch;

TN_HOT static double push_square_sum(size_t n, const float *x)
{
    return tn_square_sum(n, x);
}

static void look_up(const tn_table_job *job, tn_range run, tn_row **row)
{
    for (uint32_t k = run.from; k < run.to; k++) {
        const float *g = job->grads + job->keys->at[k];
        __builtin_prefetch(g);
        __builtin_prefetch(g + tn_row_width(job->keys, k) - 1);
    }
    if (job->hint != NULL) {
        tn_look_up_hinted(job->t, job->keys, run, job->hint->row, row);
    } else {
        tn_look_up(job->t, job->keys, run, job->t->sweeps, row);
    }
}

static bool is_swept(const tn_rule *rule)
{
    const tn_rule_opts *o = tn_rule_common(rule);
    return o->l2 != 0 && o->l2_mode == TN_L2_DENSE && !rule->optim->own_l2;
}

/* No key of the batch: of a row that is swept. */
#define NO_KEY UINT32_MAX

/* A segment of a row (NULL: of a key without one) with the gradient of key k, if it is one. */
static tn_trained trained(const tn_table_job *job, const tn_row *row, const tn_plan_segment *seg,
                          uint32_t k)
{
    tn_trained x = {.n = seg->dim, .w = row != NULL ? row->data + seg->w : NULL, .is_row = true};
    if (k != NO_KEY) {
        x.grad = job->grads + job->keys->at[k] + seg->at;
        x.show = job->keys->show[k];
    }
    return x;
}

/* Squared norm of the gradients of key k, whose row may be NULL; of a swept row: of l2 * w. */
static double row_norm2(const tn_table_job *job, uint32_t group, const tn_row *row, uint32_t k,
                        scratch *s)
{
    const tn_plan *plan = tn_plan_of(job->t, group);
    double sum = 0;
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        const tn_rule *rule = tn_rule_of(job->t, group, i);
        if (k != NO_KEY || is_swept(rule)) {
            const tn_trained x = trained(job, row, &plan->segment[i], k);
            sum += tn_rule_grad(rule, job->push, &x, 1, s->g);
        }
    }
    return sum;
}

/* One update of a segment; grad is NULL for a row outside the batch. */
static void update_segment(const tn_table_job *job, tn_row *row, uint32_t segment,
                           const tn_trained *x, float *g)
{
    uint32_t group = tn_row_group(row);
    const tn_plan_segment *seg = &tn_plan_of(job->t, group)->segment[segment];
    const tn_rule *rule = tn_rule_of(job->t, group, segment);
    const tn_push *push = job->push;
    tn_update u = {
        .lr = tn_rule_common(rule)->lr * push->lr_factor,
        .t = push->step + 1,
        .step = push->step + 1,
    };
    float *state[TN_STATES_MAX];
    tn_states_of(seg, row, state);
    if (seg->count != TN_NO_COUNT) {
        uint32_t count = tn_row_word(state[seg->count]);
        count += count < UINT32_MAX;
        tn_row_set_word(state[seg->count], count);
        u.t = count;
    }
    if (job->clip == 1 && x->grad != NULL && (job->t->plain || tn_rule_plain(rule))) {
        tn_rule_update(rule, &u, seg->dim, row->data + seg->w, state, x->grad);
        return;
    }
    (void)tn_rule_grad(rule, push, x, job->clip, g);
    tn_rule_update(rule, &u, seg->dim, row->data + seg->w, state, g);
}

/* Counts and the time of the last touch, which a push changes beside the weights. */
static inline void touch_row(const tn_table_job *job, uint32_t k, tn_row *row)
{
    const tn_keyset *keys = job->keys;
    double show = tn_row_count(row->show_high, row->show_low) + keys->show[k];
    double click = tn_row_count(row->click_high, row->click_low) + keys->click[k];
    tn_row_set_count(show, &row->show_high, &row->show_low);
    tn_row_set_count(click, &row->click_high, &row->click_low);
    row->seen = job->seen | (row->seen & TN_ROW_GROUP_HIGH);
}

/* The row of key k, or one that is swept. */
static void update_row(const tn_table_job *job, tn_row *row, uint32_t k, scratch *s)
{
    const uint32_t group = tn_row_group(row);
    const tn_plan *plan = tn_plan_of(job->t, group);
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        if (k != NO_KEY || is_swept(tn_rule_of(job->t, group, i))) {
            const tn_trained x = trained(job, row, &plan->segment[i], k);
            update_segment(job, row, i, &x, s->g);
        }
    }
}

/* A row that is about to be updated, while changes are watched. */
static void note_change(tn_table *t, uint64_t key, tn_row *row)
{
    if (tn_row_stamp(row) != t->changes.stamp) {
        tn_changed_rows_note(&t->changes, key, row, tn_plan_of(t, tn_row_group(row))->stride,
                             false);
    }
}

/* Sweeps the rows of a tile that no look-up has marked, and forgets the marks. Returns the squared
 * norm if only that is wanted. */
static double sweep(const tn_table_job *job, uint32_t tile, bool update, scratch *s)
{
    uint32_t n_records = job->t->layout->n_records;
    uint32_t n_shelves = TN_TILE_PARTITIONS * n_records;
    tn_shelf *shelf = job->t->shelves + (size_t)tile * n_shelves;
    double sum = 0;
    for (uint32_t i = 0; i < n_shelves; i++, shelf++) {
        for (uint32_t number = 0; number < shelf->slab.n_rows; number++) {
            tn_row *row = tn_slab_at(&shelf->slab, number);
            if (tn_shelf_is_marked(shelf, number)) {
                continue;
            }
            if (update) {
                if (job->watched) {
                    uint64_t key = tn_row_key(row, tile * TN_TILE_PARTITIONS + i / n_records);
                    note_change(job->t, key, row);
                }
                update_row(job, row, NO_KEY, s);
            } else {
                sum += row_norm2(job, tn_row_group(row), row, NO_KEY, s);
            }
        }
        tn_shelf_unmark(shelf);
    }
    return sum;
}

/* Without L2, scales and clips the norm is that of the gradients as they are. */
static void plain_norm_tile(void *arg, uint32_t tile)
{
    tn_table_job *job = arg;
    tn_range all = tn_tile_keys(job->keys, tile);
    double sum = 0;
    for (uint32_t k = all.from; k < all.to; k++) {
        sum += push_square_sum(tn_row_width(job->keys, k), job->grads + job->keys->at[k]);
    }
    job->norm2[tile] = sum;
}

static void norm_tile(void *arg, uint32_t tile)
{
    tn_table_job *job = arg;
    const tn_table *t = job->t;
    tn_range all = tn_tile_keys(job->keys, tile);
    scratch s;
    double sum = 0;
    tn_tile_lock(t, job->keys, tile, t->sweeps);
    for (uint32_t i = 0; i < tn_tile_count(all.to - all.from, TN_LOOK_KEYS); i++) {
        tn_range run = tn_look_run(all, i);
        look_up(job, run, s.row);
        for (uint32_t k = run.from; k < run.to; k++) {
            sum += row_norm2(job, job->keys->group[k], s.row[k - run.from], k, &s);
        }
    }
    job->norm2[tile] = sum + (t->sweeps ? sweep(job, tile, false, &s) : 0);
    tn_tile_unlock(t, job->keys, tile, t->sweeps);
}

double tn_table_norm2(tn_table *t, tn_team *team, const tn_keyset *keys, const float *grads,
                      const tn_push *push)
{
    TN_ASSERT(keys->owners->n_partitions == TN_PARTITIONS);
    tn_table_job job = {.t = t, .keys = keys, .grads = grads, .push = push, .clip = 1};
    job.hint = t->plain ? NULL : tn_row_positions_read(&t->positions, keys);
    tn_team_run(team, TN_TABLE_TILES, t->plain ? plain_norm_tile : norm_tile, &job);
    tn_row_positions_release(&t->positions, job.hint, true);
    double sum = 0;
    for (uint32_t i = 0; i < TN_TABLE_TILES; i++) {
        sum += job.norm2[i];
    }
    return sum;
}

/* ---- many keys at once ---- */

static bool same_rule(const tn_rule *a, const tn_rule *b)
{
    return a->optim == b->optim &&
           (a->opts == b->opts || memcmp(a->opts, b->opts, a->optim->choice.size) == 0);
}

/* An update by many rows at once, without L1 prox and bounds. */
static bool is_bare(const tn_rule *rule)
{
    const tn_rule_opts *o = tn_rule_common(rule);
    return rule->optim->update_rows != NULL && (o->l1 == 0 || rule->optim->own_l2) &&
           o->bounds.n != 2;
}

bool tn_pushes_together(const tn_table *t)
{
    const tn_layout *layout = t->layout;
    bool together = t->plain && layout->n_records <= TN_RECORDS_TOGETHER;
    for (uint32_t g = 0; together && g < layout->n_groups; g++) {
        const tn_plan *plan = tn_plan_of(t, g);
        for (uint32_t i = 0; together && i < plan->n_segments; i++) {
            const tn_rule *rule = tn_rule_of(t, g, i);
            together = is_bare(rule) && plan->segment[i].count == TN_NO_COUNT &&
                       same_rule(rule, tn_rule_of(t, plan->group, i));
        }
    }
    return together;
}

/* Rows of one record. */
typedef struct batch {
    uint32_t n;
    tn_row *const *row;
    const uint32_t *at; /* of each row's gradient in the batch */
} batch;

static void update_rows_segment(const tn_table_job *job, const tn_plan *plan, uint32_t segment,
                                const batch *b)
{
    const tn_plan_segment *seg = &plan->segment[segment];
    const tn_rule *rule = tn_rule_of(job->t, plan->group, segment);
    const tn_push *push = job->push;
    const float *grads = job->grads + seg->at;
    const uint32_t at_w = seg->w;
    float *w[TN_LOOK_KEYS];
    const float *grad[TN_LOOK_KEYS];
    for (uint32_t i = 0; i < b->n; i++) {
        w[i] = b->row[i]->data + at_w;
        grad[i] = grads + b->at[i];
    }
    tn_row_run rows = {.n = b->n, .dim = seg->dim, .w = w, .grad = grad};
    for (uint32_t s = 0; s < seg->n_states; s++) {
        rows.state[s] = seg->state[s] - seg->w;
    }
    tn_update u = {
        .lr = tn_rule_common(rule)->lr * push->lr_factor,
        .t = push->step + 1,
        .step = push->step + 1,
    };
    rule->optim->update_rows(rule->opts, &u, &rows);
}

static void update_batch(const tn_table_job *job, const tn_plan *plan, const batch *b)
{
    for (uint32_t i = 0; b->n > 0 && i < plan->n_segments; i++) {
        update_rows_segment(job, plan, i, b);
    }
}

/* Updates the keys of a run whose rows have this record. */
static void update_some(const tn_table_job *job, tn_range run, const tn_plan *plan,
                        tn_row *const *row)
{
    tn_row *some[TN_LOOK_KEYS];
    uint32_t at[TN_LOOK_KEYS];
    uint32_t n = 0;
    for (uint32_t k = run.from; k < run.to; k++) {
        if (row[k - run.from] != NULL && tn_plan_of(job->t, job->keys->group[k]) == plan) {
            some[n] = row[k - run.from];
            at[n++] = job->keys->at[k];
        }
    }
    update_batch(job, plan, &(batch){n, some, at});
}

/* Returns how many have a row. */
static uint32_t touch_rows(const tn_table_job *job, tn_range run, tn_row *const *row)
{
    uint32_t found = 0;
    for (uint32_t k = run.from; k < run.to; k++) {
        if (row[k - run.from] != NULL) {
            touch_row(job, k, row[k - run.from]);
            found++;
        }
    }
    return found;
}

/* Updates the rows of a run by gradients that nothing clips; row[i] is that of key run.from + i, or
 * NULL. The bits are those of one update after the other. */
static void push_together(const tn_table_job *job, tn_range run, tn_row *const *row)
{
    const tn_table *t = job->t;
    uint32_t n = run.to - run.from;
    uint32_t found = touch_rows(job, run, row);
    if (found == n && t->layout->n_records == 1) { /* as it nearly always is */
        update_batch(job, t->plan, &(batch){n, row, job->keys->at + run.from});
        return;
    }
    for (uint32_t r = 0; r < t->layout->n_records && found > 0; r++) {
        update_some(job, run, &t->plan[r], row);
    }
}

/* ---- the push ---- */

static void push_run(const tn_table_job *job, tn_range run, scratch *s)
{
    look_up(job, run, s->row);
    if (job->watched) {
        for (uint32_t k = run.from; k < run.to; k++) {
            if (s->row[k - run.from] != NULL) {
                note_change(job->t, job->keys->key[k], s->row[k - run.from]);
            }
        }
    }
    if (job->clip == 1 && job->t->together) {
        push_together(job, run, s->row);
        return;
    }
    for (uint32_t k = run.from; k < run.to; k++) {
        tn_row *row = s->row[k - run.from];
        if (row != NULL) {
            touch_row(job, k, row);
            update_row(job, row, k, s);
        }
    }
}

static void push_tile(void *arg, uint32_t tile)
{
    tn_table_job *job = arg;
    tn_table *t = job->t;
    tn_range all = tn_tile_keys(job->keys, tile);
    scratch s;
    tn_tile_lock(t, job->keys, tile, t->sweeps);
    if (job->hint == NULL) {
        tn_tile_fetch(t, job->keys, tile);
    }
    for (uint32_t i = 0; i < tn_tile_count(all.to - all.from, TN_LOOK_KEYS); i++) {
        push_run(job, tn_look_run(all, i), &s);
    }
    if (t->sweeps) {
        (void)sweep(job, tile, true, &s);
    }
    tn_tile_unlock(t, job->keys, tile, t->sweeps);
}

static uint64_t longest_row(const tn_table *t)
{
    uint64_t most = 0;
    for (uint32_t r = 0; r < t->layout->n_records; r++) {
        most = t->plan[r].stride > most ? t->plan[r].stride : most;
    }
    return most;
}

void tn_table_push(tn_table *t, tn_team *team, const tn_keyset *keys, const float *grads,
                   const tn_push *push, double clip)
{
    TN_ASSERT(keys->owners->n_partitions == TN_PARTITIONS);
    TN_ASSERT(keys->first[TN_PARTITIONS] == keys->n && (keys->n == 0 || grads != NULL));
    TN_ASSERT(push->day <= TN_ROW_DAY_MAX);
    TN_ASSERT(clip >= 0 && clip <= 1);
    tn_table_job job = {.t = t, .keys = keys, .grads = grads, .push = push, .clip = clip};
    job.watched = tn_changed_rows_watched(&t->changes);
    job.seen = t->changes.stamp << TN_ROW_STAMP_SHIFT | push->day;
    if (job.watched) {
        tn_changed_rows_wait(&t->changes, t->sweeps ? UINT64_MAX : keys->n * longest_row(t));
    }
    job.hint = tn_row_positions_read(&t->positions, keys);
    tn_team_run(team, TN_TABLE_TILES, push_tile, &job);
    tn_row_positions_release(&t->positions, job.hint, true);
}
