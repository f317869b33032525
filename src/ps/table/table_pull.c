/* table_pull.c - rows copied out of the table: for training, which creates, and for evaluation. */
#include "ps/table/table_admission.h"
#include "ps/table/tabledef.h"

#include "base/math/rng.h"
#include "base/thread/team.h"

void tn_new_rows_fill(const tn_table *t, const tn_plan *plan, uint32_t group, const uint64_t *key,
                      tn_row *const *row, uint32_t n)
{
    const uint32_t trainer = tn_rules_group(t->rules, *key, group); /* n > 1: of no keys apart */
    for (uint32_t i = 0; i < plan->n_segments; i++) {
        const tn_plan_segment *s = &plan->segment[i];
        if (!tn_plan_has(plan, i)) {
            continue;
        }
        const tn_rule *rule = tn_rule_of(t, trainer, i);
        uint64_t stream[TN_LOOK_KEYS];
        float *w[TN_LOOK_KEYS];
        for (uint32_t r = 0; r < n; r++) {
            stream[r] = tn_stream_next(s->stream, key[r]);
            w[r] = row[r]->data + s->w;
        }
        tn_init_rows(&rule->init, n, stream, s->dim, w);
        for (uint32_t r = 0; rule->optim->init != NULL && r < n; r++) { /* else zeros, as it is */
            float *state[TN_STATES_MAX];
            tn_states_of(s, row[r], state);
            rule->optim->init(rule->opts, s->dim, w[r], state);
        }
    }
}

/* Weights of some rows on their way to the batch. */
typedef struct copying {
    tn_row *const *row;
    const uint32_t *at; /* of each row in `to` */
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

/* Counts of rows whose record is the same, behind their weights. */
static void copy_counts(const tn_table_job *job, tn_range keys, tn_row *const *row)
{
    const tn_table *t = job->t;
    for (uint32_t k = keys.from; k < keys.to; k++) {
        const uint32_t group = job->keys->group[k];
        const tn_record *record = tn_record_of(t->layout, group);
        tn_row_view view = tn_view_of(t, job->keys->key[k], row[k - keys.from]);
        if (view.present == 0) { /* no export holds it */
            view.show = 0;
            view.click = 0;
        }
        tn_net_counts(tn_life_of(t, group), &view, *t->day, record->raw_show,
                      job->rows + job->keys->at[k] + record->counts.at);
    }
}

/* How a key's row is laid out; NULL: it has none, and waits. */
static inline const tn_plan *plan_of_key(const tn_table_job *job, uint32_t k, const tn_row *row)
{
    if (!job->t->admits) {
        return tn_plan_of(job->t, job->keys->group[k]);
    }
    return row != NULL ? tn_plan_of_row(job->t, row) : NULL;
}

static void zero_row(const tn_table_job *job, uint32_t k)
{
    float *to = job->rows + job->keys->at[k];
    memset(to, 0, tn_row_width(job->keys, k) * sizeof *to);
}

/* Segments that rows have and do not use now. */
static void hide_shrunk(const tn_table_job *job, tn_range run, tn_row *const *row)
{
    const tn_keyset *keys = job->keys;
    for (uint32_t k = run.from; k < run.to; k++) {
        const tn_row *r = row[k - run.from];
        if (r == NULL || !tn_row_is_shrunk(job->t, r)) {
            continue;
        }
        const tn_plan *plan = tn_plan_of_row(job->t, r);
        const uint16_t waits = tn_record_of(job->t->layout, keys->group[k])->waits;
        for (uint32_t i = 0; i < plan->n_segments; i++) {
            if ((waits >> i & 1) != 0) {
                const tn_plan_segment *s = &plan->segment[i];
                memset(job->rows + keys->at[k] + s->at, 0, s->dim * sizeof *job->rows);
            }
        }
    }
}

/* Rows of one record, some of which wait: those with one layout are copied together. A key without
 * a row reads as one that waits without floats. */
static void copy_mixed(const tn_table_job *job, tn_range run, tn_row *const *row)
{
    const tn_table *t = job->t;
    const tn_keyset *keys = job->keys;
    for (uint32_t waits = 0; waits < 2; waits++) {
        tn_row *some[TN_LOOK_KEYS];
        uint32_t at[TN_LOOK_KEYS];
        uint32_t n = 0;
        for (uint32_t k = run.from; k < run.to; k++) {
            tn_row *r = row[k - run.from];
            some[n] = r;
            at[n] = keys->at[k];
            n += r != NULL ? tn_row_waits(r) == waits : waits == 1 && t->bare;
        }
        const copying c = {.row = some, .at = at, .to = job->rows, .n = n};
        copy_weights(&t->plan[waits], &c);
    }
    const bool counts = tn_record_of(t->layout, keys->group[run.from])->counts.dim > 0;
    for (uint32_t k = run.from; k < run.to && (counts || !t->bare); k++) {
        if (row[k - run.from] == NULL) {
            zero_row(job, k);
        } else if (counts) {
            copy_counts(job, (tn_range){k, k + 1}, &row[k - run.from]);
        }
    }
}

/* Rows may be laid out differently: neighbouring keys with the same layout are copied together. */
static void copy_alike(const tn_table_job *job, tn_range run, tn_row *const *row)
{
    const tn_keyset *keys = job->keys;
    for (uint32_t from = run.from; from < run.to;) {
        const tn_plan *plan = plan_of_key(job, from, row[from - run.from]);
        uint32_t to = job->t->n_plans == 1 ? run.to : from + 1;
        while (to < run.to && plan_of_key(job, to, row[to - run.from]) == plan) {
            to++;
        }
        if (plan == NULL) {
            for (; from < to; from++) {
                zero_row(job, from);
            }
            continue;
        }
        copy_weights(plan, &(copying){.row = row + (from - run.from),
                                      .at = keys->at + from,
                                      .to = job->rows,
                                      .n = to - from});
        if (tn_record_of(job->t->layout, keys->group[from])->counts.dim > 0) {
            copy_counts(job, (tn_range){from, to}, row + (from - run.from));
        }
        from = to;
    }
}

static void copy_run(const tn_table_job *job, tn_range run, tn_row *const *row)
{
    if (job->t->admits && job->t->layout->n_records == 1) {
        copy_mixed(job, run, row);
    } else {
        copy_alike(job, run, row);
    }
    if (job->t->shrinks) {
        hide_shrunk(job, run, row);
    }
}

/* Prefetches the index blocks and the places of rows that will be created. Returns how many. */
static uint32_t fetch_new(const tn_table_job *job, tn_range run, tn_row *const *row)
{
    const tn_row_store *last = NULL;
    uint32_t n = 0;
    uint32_t of_store = 0;
    for (uint32_t k = run.from; k < run.to; k++) {
        if (row[k - run.from] != NULL) {
            continue;
        }
        uint64_t key = job->keys->key[k];
        const tn_row_store *store = tn_row_store_of(job->t, key, job->keys->group[k]);
        const tn_index_block *block = tn_index_block_of(&store->index, tn_index_hash(key));
        if (block != NULL) {
            __builtin_prefetch(block, 1);
        }
        if (tn_group_waits(job->t, job->keys->group[k])) {
            tn_filter_fetch(job->t, key, job->keys->group[k]);
            store += store->apart;
        }
        of_store = store == last ? of_store + 1 : 0;
        last = store;
        const uint32_t number = store->slab.n_rows + of_store;
        if (number < store->slab.capacity) {
            const char *place = (const char *)tn_slab_at(&store->slab, number);
            __builtin_prefetch(place, 1);
            __builtin_prefetch(place + store->slab.stride - 1, 1);
        }
        n++;
    }
    return n;
}

/* Rows that are created together. */
typedef struct creating {
    uint32_t n;
    tn_row *row[TN_LOOK_KEYS];
    uint64_t key[TN_LOOK_KEYS];
    uint16_t group[TN_LOOK_KEYS];
} creating;

/* What stands in them, as many at once as are laid out and begin alike. */
static void begin_rows(tn_table *t, const creating *c)
{
    for (uint32_t i = 0, to; i < c->n; i = to) {
        const tn_plan *plan = tn_plan_of_row(t, c->row[i]);
        to = i + 1;
        while (t->alike && to < c->n && (!t->admits || tn_plan_of_row(t, c->row[to]) == plan)) {
            to++;
        }
        tn_new_rows_fill(t, plan, c->group[i], c->key + i, c->row + i, to - i);
    }
    for (uint32_t i = 0; i < c->n && tn_changed_rows_watched(&t->changes); i++) {
        const uint32_t stride = tn_plan_of_row(t, c->row[i])->stride;
        tn_changed_rows_note(&t->changes, c->key[i], c->row[i], stride, true);
    }
}

/* The place of a new row; *row is NULL where its key waits without one. */
static tn_status place_row(tn_table *t, uint64_t key, uint16_t group, creating *c, tn_row **row,
                           tn_error *err)
{
    tn_row_store *store = tn_row_store_of(t, key, group);
    tn_row_form form = TN_FORM_WHOLE;
    if (tn_group_waits(t, group)) {
        form = tn_form_of_new(t, key, group);
        if (form == TN_FORM_NONE) {
            return TN_OK;
        }
        store = form == TN_FORM_WAITS ? tn_waiting_store_of(t, key, group) : store;
    }
    const uint32_t before = store->slab.n_rows;
    TN_TRY(tn_row_store_put(store, &t->pages, key, group, row, err));
    (*row)->seen |= form == TN_FORM_WAITS ? TN_ROW_WAITS : 0;
    if (store->slab.n_rows > before) {
        c->row[c->n] = *row;
        c->key[c->n] = key;
        c->group[c->n++] = group;
        if (t->admits && form == TN_FORM_WHOLE) {
            tn_note_admitted(t, group);
        }
    }
    return TN_OK;
}

/* Rows of keys that have none: first all places, then what stands in them. A keyset holds a key
 * once; should one not, both get the same row. */
static tn_status create_rows(tn_table_job *job, uint32_t tile, tn_range run, tn_row **row,
                             tn_error *err)
{
    creating c;
    tn_status status = TN_OK;
    c.n = 0;
    for (uint32_t k = run.from; k < run.to && status == TN_OK; k++) {
        if (row[k - run.from] == NULL) {
            status = place_row(job->t, job->keys->key[k], job->keys->group[k], &c,
                               &row[k - run.from], err);
        }
    }
    begin_rows(job->t, &c);
    job->created[tile] += c.n;
    return status;
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
    tn_look_up(job->t, job->keys, run, false, row);
    if (job->t->waits) {
        TN_TRY(tn_rows_admit(job->t, job->keys, run, row, err));
    }
    if (fetch_new(job, run, row) > 0) {
        TN_TRY(create_rows(job, tile, run, row, err));
    }
    copy_run(job, run, row);
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
    tn_look_up(t, keys, run, false, row);
    for (uint32_t k = run.from; k < run.to; k++) {
        tn_row *r = row[k - run.from];
        uint32_t group = keys->group[k];
        float *to = job->rows + keys->at[k];
        bool zero = r == NULL && !(job->missing_init != NULL && job->missing_init[group]);
        if (job->missing != NULL) {
            job->missing[k] = zero || (r != NULL && tn_plan_of_row(t, r)->present == 0);
        }
        if (r != NULL) {
            copy_run(job, (tn_range){k, k + 1}, &r);
            continue;
        }
        memset(to, 0, tn_record_of(t->layout, group)->width * sizeof *to);
        if (!zero) {
            first_weights(t, keys->key[k], group, to);
        }
    }
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
