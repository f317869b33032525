/* table_push.c - gradients into the table: their norm, the update of the batch's rows, and the
 * sweep that brings L2 to all others where a rule says l2_mode: dense.
 *
 * Rows of many keys are updated at once, segment by segment, where the groups of a record have the
 * same rules, else key by key. What is computed is the same, bit for bit.
 *
 *     run      k0 k1 k2 k3 ..       up to 64 keys
 *     record   A  B  A  A  ..       rows of A, then rows of B:
 *              w0    w2 w3          their first segments in one call of the optimizer,
 *                                   then their second ones
 *
 * The norm is taken on the same way: by a pass of its own before the push, which a global clip
 * needs, or while rows are updated.
 */
#include "ps/table/tabledef.h"

#include "base/core/compiler.h"
#include "base/thread/team.h"

#include <math.h>
#include <string.h>

enum { GRADS_TOGETHER = TN_DIM_MAX }; /* floats of gradients that scales and L2 have changed */

/* Room that the calls of one tile share. */
typedef struct scratch {
    tn_row *row[TN_LOOK_KEYS];
    double norm2[TN_LOOK_KEYS];
    float g[GRADS_TOGETHER];
} scratch;

/* Rows that the rules of one group train, all laid out alike. */
typedef struct batch {
    const tn_plan *plan;
    uint32_t group, n;  /* the group whose rules train them, and how many they are */
    uint16_t trained;   /* segments: of others gradients are dropped, and count in norms alone */
    tn_row *const *row; /* NULL, where only norms are taken: none, its weights are zeros */
    const uint32_t *at; /* places of their gradients in the batch; NULL: rows that are not in it */
    const uint32_t *show; /* NULL: likewise */
    double *norm2;        /* added to for each gradient; NULL: not wanted */
    bool updates;
} batch;

/* Returns the keys without a row. */
static uint64_t look_up(const tn_table_job *job, tn_range run, tn_row **row)
{
    for (uint32_t k = run.from; k < run.to; k++) {
        const float *g = job->grads + job->keys->at[k];
        const uint32_t width = tn_row_width(job->keys, k);
        for (uint32_t i = 0; i < width; i += TN_CACHE_LINE / sizeof *g) {
            __builtin_prefetch(g + i);
        }
        __builtin_prefetch(g + width - 1);
    }
    return job->hint != NULL ? tn_look_up_hinted(job->t, job->keys, run, job->hint->row, row)
                             : tn_look_up(job->t, job->keys, run, job->t->sweeps, row);
}

/* Adds 1 to the counts of rows. */
static void count_updates(const tn_plan_segment *seg, const tn_row_run *rows, uint32_t *counts)
{
    const uint32_t at = rows->state[seg->count];
    for (uint32_t i = 0; i < rows->n; i++) {
        const uint32_t count = tn_row_word(rows->w[i] + at);
        counts[i] = count + (count < UINT32_MAX);
        tn_row_set_word(rows->w[i] + at, counts[i]);
    }
}

static tn_update update_of(const tn_rule *rule, const tn_push *push)
{
    return (tn_update){.lr = tn_rule_common(rule)->lr * push->lr_factor,
                       .t = push->step + 1,
                       .step = push->step + 1};
}

/* One update of a segment of some rows. */
static void update_segment(const tn_push *push, const tn_plan_segment *seg, const tn_rule *rule,
                           const tn_row_run *of)
{
    tn_row_run rows = *of;
    uint32_t counts[TN_LOOK_KEYS];
    const tn_update u = update_of(rule, push);
    for (uint32_t s = 0; s < seg->n_states; s++) {
        rows.state[s] = seg->state[s] - seg->w;
    }
    if (seg->count != TN_NO_COUNT) {
        count_updates(seg, &rows, counts);
        rows.counts = counts;
    }
    tn_rule_update_rows(rule, &u, &rows);
}

/* Norm, update or both of a segment of some rows. */
static void train_segment(const tn_table_job *job, const batch *b, uint32_t segment, scratch *s)
{
    const tn_plan_segment *seg = &b->plan->segment[segment];
    const tn_rule *rule = tn_rule_of(job->t, b->group, segment);
    const bool trained = (b->trained >> segment & 1) != 0;
    float *w[TN_LOOK_KEYS];
    const float *grad[TN_LOOK_KEYS];
    double norm2[TN_LOOK_KEYS];
    for (uint32_t i = 0; i < b->n; i++) {
        w[i] = trained && b->row[i] != NULL ? b->row[i]->data + seg->w : NULL;
        grad[i] = b->at != NULL ? job->grads + b->at[i] + seg->at : NULL;
    }
    tn_row_run rows = {.n = b->n, .dim = seg->dim, .w = w, .grad = grad};
    if (job->clip != 1 || b->norm2 != NULL || b->at == NULL || !tn_rule_plain(rule)) {
        const tn_row_grads grads = {.n = b->n,
                                    .dim = seg->dim,
                                    .w = (const float *const *)w,
                                    .grad = grad,
                                    .show = b->show,
                                    .g = s->g,
                                    .norm2 = norm2};
        rows.squares = tn_rule_row_grads(rule, job->push, &grads, job->clip) ? norm2 : NULL;
        for (uint32_t i = 0; i < b->n; i++) {
            grad[i] = s->g + (size_t)i * seg->dim;
        }
        for (uint32_t i = 0; b->norm2 != NULL && i < b->n; i++) {
            b->norm2[i] += norm2[i];
        }
    }
    if (b->updates && trained) {
        update_segment(job->push, seg, rule, &rows);
    }
}

static void train_segments(const tn_table_job *job, const batch *b, scratch *s)
{
    const tn_plan *plan = b->plan;
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        const tn_rule *rule = tn_rule_of(job->t, b->group, i);
        const bool trained = (b->trained >> i & 1) != 0;
        if (b->at == NULL ? !trained || !tn_rule_reaches_all(rule) : !trained && b->norm2 == NULL) {
            continue;
        }
        if (b->at != NULL || rule->optim->decay == NULL) {
            train_segment(job, b, i, s);
            continue;
        }
        const tn_update u = update_of(rule, job->push);
        for (uint32_t r = 0; b->updates && r < b->n; r++) {
            tn_rule_decay(rule, &u, plan->segment[i].dim, b->row[r]->data + plan->segment[i].w);
        }
    }
}

/* Rows of a run, as many at once as there is room for changed gradients. */
static void train_batch(const tn_table_job *job, const batch *all, scratch *s)
{
    const uint32_t most = all->plan->together;
    batch b = *all;
    for (uint32_t left = all->n; left > 0; left -= b.n) {
        b.n = left < most ? left : most;
        train_segments(job, &b, s);
        b.row += b.n;
        b.at = b.at != NULL ? b.at + b.n : NULL;
        b.show = b.show != NULL ? b.show + b.n : NULL;
        b.norm2 = b.norm2 != NULL ? b.norm2 + b.n : NULL;
    }
}

/* ---- runs of keys ---- */

/* Says which segments of a key's row this push trains. */
enum { WHOLE, WAITS, HIDDEN, NO_ROW, STATES };

/* Returns the group whose rules train a key of this group: the first of its kind. */
static uint32_t kind_of(const tn_table *t, uint64_t key, uint32_t group)
{
    const uint32_t trainer = t->rules->n_keys == 0 ? group : tn_rules_group(t->rules, key, group);
    return trainer < t->layout->n_groups ? t->kind[trainer] : trainer;
}

/* Finds what rules train the row of each key of a run, and its state: rows in which both are the
 * same are trained together. Returns 0 if all are. `mixed`: some key has no row, or perhaps one
 * that waits. */
static uint32_t find_kinds(const tn_table_job *job, tn_range run, bool mixed, tn_row *const *row,
                           uint32_t *kind)
{
    const tn_keyset *keys = job->keys;
    const tn_policy_rows rows = tn_policy_rows_of(job->t, keys, run, row);
    const uint64_t hidden = mixed ? tn_ask_any(TN_ON_READ, &rows) : 0;
    uint32_t differ = 0;
    for (uint32_t i = 0; i < rows.n; i++) {
        const uint32_t state = row[i] == NULL           ? NO_ROW
                               : tn_row_waits(row[i])   ? WAITS
                               : (hidden >> i & 1) != 0 ? HIDDEN
                                                        : WHOLE;
        kind[i] = kind_of(job->t, rows.key[i], rows.group[i]) * STATES + state;
        differ |= kind[i] ^ kind[0];
    }
    return differ;
}

/* Returns the batch of a key's row, of this kind. */
static batch batch_of(const tn_table_job *job, uint32_t k, uint32_t kind)
{
    const tn_table *t = job->t;
    const uint32_t group = job->keys->group[k];
    const uint32_t state = kind % STATES;
    batch b = {.plan = state == WAITS ? tn_waiting_plan_of(t, group) : tn_plan_of(t, group),
               .group = kind / STATES,
               .updates = job->updates && state != NO_ROW};
    const uint32_t hidden = state == HIDDEN ? tn_record_of(t->layout, group)->waits : 0;
    b.trained = (uint16_t)(b.plan->present & ~hidden);
    return b;
}

/* Trains the rows of a run that are of the kind of its first key in `left`, which are all that are
 * not trained yet. Returns their keys. */
static uint64_t train_alike(const tn_table_job *job, tn_range run, const uint32_t *kind,
                            uint64_t left, scratch *s)
{
    const tn_keyset *keys = job->keys;
    tn_row *row[TN_LOOK_KEYS];
    uint32_t at[TN_LOOK_KEYS];
    uint32_t show[TN_LOOK_KEYS];
    uint32_t place[TN_LOOK_KEYS];
    double norm2[TN_LOOK_KEYS];
    uint64_t alike = 0;
    uint32_t n = 0;
    const uint32_t first = (uint32_t)__builtin_ctzll(left);
    for (uint32_t i = first; i < run.to - run.from;
         i++) { /* no branch: a processor could not guess */
        const bool is_alike = kind[i] == kind[first];
        place[n] = i;
        row[n] = s->row[i];
        at[n] = keys->at[run.from + i];
        show[n] = keys->show[run.from + i];
        norm2[n] = 0;
        alike |= (uint64_t)is_alike << i;
        n += is_alike;
    }
    batch b = batch_of(job, run.from + first, kind[first]);
    b.n = n;
    b.row = row;
    b.at = at;
    b.show = show;
    b.norm2 = job->sums ? norm2 : NULL;
    if (b.updates || job->sums) {
        train_batch(job, &b, s);
    }
    for (uint32_t i = 0; job->sums && i < n; i++) {
        s->norm2[place[i]] = norm2[i];
    }
    return alike;
}

/* Trains the rows of a run. `mixed` as above. *sum: the squared norm, if it is wanted, in the order
 * of keys. */
static void train_run(const tn_table_job *job, tn_range run, bool mixed, scratch *s, double *sum)
{
    const tn_keyset *keys = job->keys;
    const uint32_t n = run.to - run.from;
    uint32_t kind[TN_LOOK_KEYS] = {WHOLE};
    uint64_t left = UINT64_MAX >> (64 - n);
    if (job->sums) {
        memset(s->norm2, 0, n * sizeof *s->norm2);
    }
    if ((!mixed && job->t->alike) || find_kinds(job, run, mixed, s->row, kind) == 0) {
        batch b = batch_of(job, run.from, kind[0]); /* as it nearly always is */
        b.n = n;
        b.row = s->row;
        b.at = keys->at + run.from;
        b.show = keys->show + run.from;
        b.norm2 = job->sums ? s->norm2 : NULL;
        train_batch(job, &b, s);
        left = 0;
    }
    while (left != 0) {
        left &= ~train_alike(job, run, kind, left, s);
    }
    for (uint32_t i = 0; job->sums && i < n; i++) {
        *sum += s->norm2[i];
    }
}

/* A row that is about to be updated, while changes are watched. */
static void note_change(tn_table *t, uint64_t key, tn_row *row)
{
    if (tn_row_stamp(row) != t->changes.stamp) {
        tn_changed_rows_note(&t->changes, key, row, tn_plan_of_row(t, row)->stride, false);
    }
}

/* Before the rows of a run are updated. */
static void touch_rows(const tn_table_job *job, tn_range run, tn_row *const *row)
{
    for (uint32_t k = run.from; k < run.to && job->watched; k++) {
        if (row[k - run.from] != NULL) {
            note_change(job->t, job->keys->key[k], row[k - run.from]);
        }
    }
    tn_policy_rows rows = tn_policy_rows_of(job->t, job->keys, run, row);
    rows.seen = job->seen;
    rows.day = job->push->day;
    (void)tn_ask_any(TN_ON_PUSH, &rows);
}

/* ---- tiles ---- */

/* Returns how many of n rows, from the first on, have its rules and its segments. */
static uint32_t count_alike(const tn_table *t, uint32_t n, tn_row *const *row)
{
    const uint32_t kind = t->kind[tn_row_group(*row)];
    uint32_t alike = 1;
    while (alike < n && t->kind[tn_row_group(row[alike])] == kind &&
           tn_row_waits(row[alike]) == tn_row_waits(*row)) {
        alike++;
    }
    return alike;
}

/* Makes the step of job->push in rows outside the batch that are alike, without gradients. */
static void sweep_alike(const tn_table_job *job, uint32_t n, tn_row *const *row, double *norm2)
{
    scratch s;
    const tn_plan *plan = tn_plan_of_row(job->t, *row);
    train_batch(job,
                &(batch){.plan = plan,
                         .group = tn_row_group(*row),
                         .trained = plan->present,
                         .n = n,
                         .row = row,
                         .norm2 = norm2,
                         .updates = job->updates},
                &s);
}

/* Rows outside the batch. Adds their squared norms, where they are wanted, row by row. */
static void sweep_rows(const tn_table_job *job, uint32_t n, tn_row *const *row, double *sum)
{
    for (uint32_t from = 0, alike; from < n; from += alike) {
        double norm2[TN_LOOK_KEYS] = {0};
        alike = count_alike(job->t, n - from, row + from);
        sweep_alike(job, alike, row + from, job->sums ? norm2 : NULL);
        for (uint32_t i = 0; i < alike; i++) {
            *sum += norm2[i];
        }
    }
}

/* Sweeps the rows of a tile that no look-up has marked, and forgets the marks. Returns the squared
 * norm, where it is wanted. */
static double sweep(const tn_table_job *job, uint32_t tile)
{
    uint32_t n_plans = job->t->n_plans;
    uint32_t n_stores = TN_TILE_PARTITIONS * n_plans;
    tn_row_store *store = job->t->stores + (size_t)tile * n_stores;
    tn_row *row[TN_LOOK_KEYS];
    double sum = 0;
    for (uint32_t i = 0; i < n_stores; i++, store++) {
        uint32_t n = 0;
        for (uint32_t number = 0; number < store->slab.n_rows; number++) {
            if (tn_row_store_is_marked(store, number)) {
                continue;
            }
            row[n] = tn_slab_at(&store->slab, number);
            if (job->watched) {
                const uint32_t partition = tile * TN_TILE_PARTITIONS + i / n_plans;
                note_change(job->t, tn_row_key(row[n], partition), row[n]);
            }
            if (++n == TN_LOOK_KEYS) {
                sweep_rows(job, n, row, &sum);
                n = 0;
            }
        }
        sweep_rows(job, n, row, &sum);
        tn_row_store_unmark(store);
    }
    return sum;
}

static void train_tile(void *arg, uint32_t tile)
{
    tn_table_job *job = arg;
    tn_table *t = job->t;
    tn_range all = tn_tile_keys(job->keys, tile);
    scratch s;
    double sum = 0;
    tn_tile_lock(t, job->keys, tile, t->sweeps);
    if (job->hint == NULL) {
        tn_tile_fetch(t, job->keys, tile);
    }
    for (uint32_t i = 0; i < tn_tile_count(all.to - all.from, t->look_keys); i++) {
        const tn_range run = tn_look_run(t, all, i);
        const uint64_t lacks = look_up(job, run, s.row);
        if (job->updates) {
            touch_rows(job, run, s.row);
        }
        train_run(job, run, (job->updates && lacks != 0) || t->admits, &s, &sum);
    }
    job->norm2[tile] = sum + (t->sweeps ? sweep(job, tile) : 0);
    if (t->room[0].bytes > 0 && job->updates) {
        tn_tile_evict(t, job->keys, tile, job->push->day);
    }
    tn_tile_unlock(t, job->keys, tile, t->sweeps);
}

/* Adds x[n] to a sum of squares in lanes, n a multiple of 8: as tn_square_sum does. */
TN_HOT static void add_squares(size_t n, const float *restrict x, double *restrict lane)
{
    for (size_t i = 0; i < n; i += 8) {
        for (size_t k = 0; k < 8; k++) {
            lane[k] += (double)x[i + k] * (double)x[i + k];
        }
    }
}

/* Takes the norm of the gradients as they lie: there are no L2, scales and clips. */
static void plain_norm_tile(void *arg, uint32_t tile)
{
    tn_table_job *job = arg;
    const tn_keyset *keys = job->keys;
    const tn_range all = tn_tile_keys(keys, tile);
    float x[GRADS_TOGETHER];
    double lane[TN_SQUARE_LANES] = {0};
    uint32_t n = 0;
    for (uint32_t k = all.from; k < all.to; k++) {
        const uint32_t width = tn_record_of(job->t->layout, keys->group[k])->width;
        for (uint32_t at = 0; at < width;) {
            const uint32_t more = width - at < GRADS_TOGETHER - n ? width - at : GRADS_TOGETHER - n;
            memcpy(x + n, job->grads + keys->at[k] + at, more * sizeof *x);
            at += more;
            n += more;
            if (n == GRADS_TOGETHER) {
                add_squares(n, x, lane);
                n = 0;
            }
        }
    }
    while (n % TN_SQUARE_LANES != 0) {
        x[n++] = 0;
    }
    add_squares(n, x, lane);
    job->norm2[tile] = tn_lanes_sum(lane);
}

static double sum_of_tiles(const tn_table_job *job)
{
    double sum = 0;
    for (uint32_t i = 0; i < TN_TABLE_TILES; i++) {
        sum += job->norm2[i];
    }
    return sum;
}

double tn_table_norm2(tn_table *t, tn_team *team, const tn_keyset *keys, const float *grads,
                      const tn_push *push)
{
    TN_ASSERT(keys->owners->n_partitions == TN_PARTITIONS);
    tn_table_job job = {
        .t = t, .keys = keys, .grads = grads, .push = push, .clip = 1, .sums = true};
    job.hint = t->plain ? NULL : tn_row_positions_read(&t->positions, keys);
    tn_team_run(team, TN_TABLE_TILES, t->plain ? plain_norm_tile : train_tile, &job);
    tn_row_positions_release(&t->positions, job.hint, true);
    return sum_of_tiles(&job);
}

/* ---- the push ---- */

static double push_rows(tn_table *t, tn_team *team, tn_table_job *job)
{
    const tn_keyset *keys = job->keys;
    TN_ASSERT(keys->owners->n_partitions == TN_PARTITIONS);
    TN_ASSERT(keys->first[TN_PARTITIONS] == keys->n && (keys->n == 0 || job->grads != NULL));
    TN_ASSERT(job->push->day <= TN_ROW_DAY_MAX);
    TN_ASSERT(job->clip >= 0 && job->clip <= 1);
    job->updates = true;
    job->watched = tn_changed_rows_watched(&t->changes);
    job->seen = t->changes.stamp << TN_ROW_STAMP_SHIFT | job->push->day;
    if (job->watched) {
        const uint64_t of_key = tn_longest_row(t) + (t->filter.lines > 0 ? TN_KEPT_LINE : 0);
        tn_changed_rows_wait(&t->changes, t->sweeps ? UINT64_MAX : keys->n * of_key);
    }
    job->hint = tn_row_positions_read(&t->positions, keys);
    tn_team_run(team, TN_TABLE_TILES, train_tile, job);
    tn_row_positions_release(&t->positions, job->hint, true);
    tn_table_set_step(t, job->push->step + 1);
    return sum_of_tiles(job);
}

void tn_table_push(tn_table *t, tn_team *team, const tn_keyset *keys, const float *grads,
                   const tn_push *push, double clip)
{
    tn_table_job job = {.t = t, .keys = keys, .grads = grads, .push = push, .clip = clip};
    (void)push_rows(t, team, &job);
}

/* Returns the largest bits without sign of n rows, one at each of at[]: floats that are not finite
 * have larger bits than all others. */
TN_HOT static uint32_t largest_bits(const float *grads, uint32_t n, const uint32_t *at,
                                    uint32_t width)
{
    uint32_t most[TN_SQUARE_LANES] = {0};
    for (uint32_t i = 0; i < n; i++) {
        const float *x = grads + at[i];
        uint32_t j = 0;
        uint32_t bits[TN_SQUARE_LANES];
        for (; j + TN_SQUARE_LANES <= width; j += TN_SQUARE_LANES) {
            memcpy(bits, x + j, sizeof bits);
            for (uint32_t k = 0; k < TN_SQUARE_LANES; k++) {
                const uint32_t size = bits[k] & INT32_MAX;
                most[k] = size > most[k] ? size : most[k];
            }
        }
        for (; j < width; j++) {
            memcpy(bits, x + j, sizeof *bits);
            const uint32_t size = *bits & INT32_MAX;
            most[0] = size > most[0] ? size : most[0];
        }
    }
    uint32_t all = 0;
    for (uint32_t k = 0; k < TN_SQUARE_LANES; k++) {
        all = most[k] > all ? most[k] : all;
    }
    return all;
}

static void check_tile(void *arg, uint32_t tile)
{
    tn_table_job *job = arg;
    const tn_keyset *keys = job->keys;
    const tn_layout *layout = job->t->layout;
    const tn_range all = tn_tile_keys(keys, tile);
    const uint32_t infinite = UINT32_C(0x7f800000);
    for (uint32_t from = all.from; from < all.to;) {
        const tn_record *record = tn_record_of(layout, keys->group[from]);
        uint32_t to = layout->n_records == 1 ? all.to : from + 1;
        if (largest_bits(job->grads, to - from, keys->at + from, record->width) >= infinite) {
            atomic_store(&job->failed, true);
        }
        from = to;
    }
}

double tn_table_push_whole(tn_table *t, tn_team *team, const tn_keyset *keys, const float *grads,
                           const tn_push *push, bool finite)
{
    tn_table_job job = {.t = t, .keys = keys, .grads = grads, .push = push, .clip = 1};
    job.sums = !t->plain; /* else its pass is short */
    double norm2 = 0;
    if (t->plain) {
        norm2 = tn_table_norm2(t, team, keys, grads, push);
    } else if (!finite) {
        tn_team_run(team, TN_TABLE_TILES, check_tile, &job);
        norm2 = atomic_load(&job.failed) ? (double)NAN : 0;
    }
    return isfinite(norm2) ? norm2 + push_rows(t, team, &job) : norm2;
}
