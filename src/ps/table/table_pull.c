/* table_pull.c - rows copied out of the table: for training, which creates, and for evaluation. */
#include "ps/table/tabledef.h"

#include "base/math/rng.h"
#include "base/thread/team.h"

/* Weights of some rows on their way to the batch. */
typedef struct copying {
    tn_row *const *row;
    const uint32_t *at; /* places of the rows in `to` */
    float *to;
    uint32_t n;
} copying;

__attribute__((always_inline)) static inline void
copy_all(const copying *c, const tn_plan_segment *s, const uint32_t dim)
{
    for (uint32_t i = 0; i < c->n; i++) {
        memcpy(c->to + c->at[i] + s->at, c->row[i]->data + s->w, dim * sizeof *c->to);
    }
}

/* Segments that these rows do not have. */
__attribute__((always_inline)) static inline void
zero_all(const copying *c, const tn_plan_segment *s, const uint32_t dim)
{
    for (uint32_t i = 0; i < c->n; i++) {
        memset(c->to + c->at[i] + s->at, 0, dim * sizeof *c->to);
    }
}

static void copy_weights(const tn_plan *plan, const copying *c)
{
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        if (tn_plan_has(plan, i)) {
            TN_UNROLLED(copy_all, plan->segment[i].dim, c, &plan->segment[i]);
        } else {
            TN_UNROLLED(zero_all, plan->segment[i].dim, c, &plan->segment[i]);
        }
    }
}

static void zero_row(const tn_table_job *job, uint32_t k)
{
    float *to = job->rows + job->keys->at[k];
    memset(to, 0, tn_row_width(job->keys, k) * sizeof *to);
}

/* Zeroes the segments that wait of some keys of a run. */
static void hide_waiting(const tn_table_job *job, tn_range run, uint64_t keys)
{
    for (; keys != 0; keys &= keys - 1) {
        const uint32_t k = run.from + (uint32_t)__builtin_ctzll(keys);
        const tn_record *record = tn_record_of(job->t->layout, job->keys->group[k]);
        for (uint32_t i = 0; i < record->n_segments; i++) {
            const tn_segment *s = &record->segment[i];
            const uint32_t dim = (record->waits >> i & 1) != 0 ? s->dim : 0;
            memset(job->rows + job->keys->at[k] + s->at, 0, dim * sizeof *job->rows);
        }
    }
}

/* After the weights of a run were copied. */
static void read_policies(const tn_table_job *job, tn_range run, tn_row *const *row)
{
    if (job->t->on[TN_ON_READ][0] != NULL) {
        tn_policy_rows rows = tn_policy_rows_of(job->t, job->keys, run, row);
        rows.to = job->rows;
        hide_waiting(job, run, tn_ask_any(TN_ON_READ, &rows));
    }
}

/* Copies the rows of a run that are laid out as its first one in `left`, which are all that are not
 * copied yet. Returns their keys. */
static uint64_t copy_alike(const tn_table_job *job, tn_range run, tn_row *const *row, uint64_t left)
{
    tn_row *some[TN_LOOK_KEYS];
    uint32_t at[TN_LOOK_KEYS];
    uint64_t alike = 0;
    uint32_t n = 0;
    const tn_plan *plan = tn_plan_of_row(job->t, row[__builtin_ctzll(left)]);
    for (; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        const bool is_alike = tn_plan_of_row(job->t, row[i]) == plan;
        some[n] = row[i];
        at[n] = job->keys->at[run.from + i];
        alike |= (uint64_t)is_alike << i;
        n += is_alike;
    }
    copy_weights(plan, &(copying){.row = some, .at = at, .to = job->rows, .n = n});
    return alike;
}

/* A key in `lacks` has no row, and reads as zeros. */
static void copy_run(const tn_table_job *job, tn_range run, tn_row *const *row, uint64_t lacks)
{
    const uint32_t n = run.to - run.from;
    uint64_t left = UINT64_MAX >> (64 - n) & ~lacks;
    if (job->t->n_plans == 1 && lacks == 0) {
        copy_weights(job->t->plan, &(copying){row, job->keys->at + run.from, job->rows, n});
        return;
    }
    for (; lacks != 0; lacks &= lacks - 1) {
        zero_row(job, run.from + (uint32_t)__builtin_ctzll(lacks));
    }
    while (left != 0) {
        left &= ~copy_alike(job, run, row, left);
    }
}

static tn_status pull_run(tn_table_job *job, uint32_t tile, tn_range run, tn_error *err)
{
    tn_row *row[TN_LOOK_KEYS];
    for (uint32_t k = run.from; k < run.to; k++) {
        const float *g = job->rows + job->keys->at[k];
        const uint32_t width = tn_row_width(job->keys, k);
        for (uint32_t i = 0; i < width; i += TN_CACHE_LINE / sizeof *g) {
            __builtin_prefetch(g + i, 1);
        }
        __builtin_prefetch(g + width - 1, 1);
    }
    uint64_t lacks = tn_look_up(job->t, job->keys, run, false, row);
    if (lacks != 0 || job->t->waits) {
        TN_TRY(tn_rows_create(job, tile, run, &lacks, row, err));
    }
    copy_run(job, run, row, lacks);
    read_policies(job, run, row);
    if (job->hint != NULL) {
        memcpy(job->hint->row + run.from, row, (run.to - run.from) * sizeof(tn_row *));
    }
    return TN_OK;
}

/* A job reports its first failure. */
static void fail_job(tn_table_job *job, tn_status status, const tn_error *err)
{
    if (!atomic_exchange(&job->failed, true)) {
        job->status = status;
        if (job->err != NULL) {
            *job->err = *err;
        }
    }
}

static void pull_tile(void *arg, uint32_t tile)
{
    tn_table_job *job = arg;
    tn_table *t = job->t;
    tn_range all = tn_tile_keys(job->keys, tile);
    tn_status status = TN_OK;
    tn_error err;
    tn_tile_lock(t, job->keys, tile, false);
    tn_tile_fetch(t, job->keys, tile);
    if (t->filter.lines > 0) {
        status = tn_tile_filter_reserve(t, job->keys, tile, &err);
    }
    for (uint32_t i = 0; i < tn_tile_count(all.to - all.from, job->t->look_keys) && status == TN_OK;
         i++) {
        status = pull_run(job, tile, tn_look_run(job->t, all, i), &err);
    }
    tn_tile_unlock(t, job->keys, tile, false);
    if (job->created[tile] > 0) {
        atomic_fetch_add(&t->rows, job->created[tile]);
        atomic_fetch_add(&t->created, job->created[tile]);
    }
    if (status != TN_OK) {
        fail_job(job, status, &err);
    }
}

/* For rows that become whole while a cut is open: their copies. */
static void wait_for_room(tn_table *t, const tn_keyset *keys)
{
    if (t->admits && tn_changed_rows_watched(&t->changes)) {
        tn_changed_rows_wait(&t->changes, UINT64_C(2) * keys->n * tn_longest_row(t));
    }
}

tn_status tn_table_pull(tn_table *t, tn_team *team, const tn_keyset *keys, float *rows,
                        tn_error *err)
{
    TN_ASSERT(keys->owners->n_partitions == TN_PARTITIONS);
    TN_ASSERT(keys->first[TN_PARTITIONS] == keys->n && (keys->n == 0 || rows != NULL));
    tn_table_job job = {.t = t, .keys = keys, .err = err};
    job.rows = rows;
    if (!t->sweeps) {
        TN_TRY(tn_row_positions_write(&t->positions, keys, &job.hint, err));
    }
    wait_for_room(t, keys);
    tn_team_run(team, TN_TABLE_TILES, pull_tile, &job);
    tn_status status = atomic_load(&job.failed) ? job.status : TN_OK;
    tn_row_positions_release(&t->positions, job.hint, status == TN_OK);
    return status;
}

/* The weights that a row would have if it were created now. */
static void first_weights(const tn_table *t, uint64_t key, uint32_t group, float *to)
{
    const tn_plan *plan = tn_plan_of(t, group);
    const uint32_t trainer = tn_rules_group(t->rules, key, group);
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        const tn_plan_segment *s = &plan->segment[i];
        const uint64_t stream = tn_stream_next(s->stream, key);
        tn_init_rows(&tn_rule_of(t, trainer, i)->init, 1, &stream, s->dim, &(float *){to + s->at});
    }
}

static void peek_run(const tn_table_job *job, tn_range run)
{
    tn_row *row[TN_LOOK_KEYS];
    const tn_table *t = job->t;
    const tn_keyset *keys = job->keys;
    copy_run(job, run, row, tn_look_up(t, keys, run, false, row));
    for (uint32_t k = run.from; k < run.to; k++) {
        const tn_row *r = row[k - run.from];
        const uint32_t group = keys->group[k];
        const bool begins = r == NULL && job->missing_init != NULL && job->missing_init[group];
        if (begins) {
            first_weights(t, keys->key[k], group, job->rows + keys->at[k]);
        }
        if (job->missing != NULL) {
            job->missing[k] = !begins && (r == NULL || tn_plan_of_row(t, r)->present == 0);
        }
    }
    read_policies(job, run, row);
}

static void peek_tile(void *arg, uint32_t tile)
{
    tn_table_job *job = arg;
    tn_range all = tn_tile_keys(job->keys, tile);
    tn_tile_lock(job->t, job->keys, tile, false);
    tn_tile_fetch(job->t, job->keys, tile);
    for (uint32_t i = 0; i < tn_tile_count(all.to - all.from, job->t->look_keys); i++) {
        peek_run(job, tn_look_run(job->t, all, i));
    }
    tn_tile_unlock(job->t, job->keys, tile, false);
}

void tn_table_peek(tn_table *t, tn_team *team, const tn_keyset *keys, const bool *missing_init,
                   float *rows, bool *missing)
{
    TN_ASSERT(keys->owners->n_partitions == TN_PARTITIONS);
    TN_ASSERT(keys->first[TN_PARTITIONS] == keys->n && (keys->n == 0 || rows != NULL));
    tn_table_job job = {.t = t, .keys = keys, .missing_init = missing_init};
    job.rows = rows;
    job.missing = missing;
    wait_for_room(t, keys);
    tn_team_run(team, TN_TABLE_TILES, peek_tile, &job);
}
