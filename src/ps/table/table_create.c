/* table_create.c - rows that begin: for keys that come for the first time, and for keys that have
 * waited for long enough.
 *
 * A row that waits lies in a store of its own. When it becomes whole it moves to the other one, and
 * the last one that waits takes its place.
 */
#include "base/math/rng.h"
#include "ps/table/lifecycle.h"
#include "ps/table/tabledef.h"

/* The rows of a run that come into being. */
typedef struct creating {
    tn_table *t;
    const tn_keyset *keys;
    tn_range run;
    tn_row **row; /* one for each key of the run */
    uint32_t n;   /* rows with a place, whose values are to be filled in */
    tn_row *fresh[TN_LOOK_KEYS];
    uint64_t key[TN_LOOK_KEYS];
    uint16_t group[TN_LOOK_KEYS];
} creating;

bool tn_has_waiting_rows(const tn_table *t, uint32_t group)
{
    const tn_admission *a = tn_admission_of(&t->options, group);
    return (a->threshold > 0 && !tn_admission_has_filter(a)) ||
           tn_waiting_plan_of(t, group)->present != 0;
}

/* Finds the arrays of a segment's optimizer state. */
static void states_of(const tn_plan_segment *s, tn_row *row, float *state[TN_STATES_MAX])
{
    for (uint32_t i = 0; i < s->n_states; i++) {
        state[i] = row->data + s->state[i];
    }
}

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
            states_of(s, row[r], state);
            rule->optim->init(rule->opts, s->dim, w[r], state);
        }
    }
}

/* Prefetches the index blocks and the places of rows that may be created. */
static void fetch_new(const creating *c, uint64_t lacks)
{
    const tn_table *t = c->t;
    const tn_row_store *last = NULL;
    uint32_t of_store = 0;
    for (; lacks != 0; lacks &= lacks - 1) {
        const uint32_t k = c->run.from + (uint32_t)__builtin_ctzll(lacks);
        const uint64_t key = c->keys->key[k];
        const tn_row_store *store = tn_row_store_of(t, key, c->keys->group[k]);
        const tn_index_block *block = tn_index_block_of(&store->index, tn_index_hash(key));
        if (block != NULL) {
            __builtin_prefetch(block, 1);
        }
        store += tn_group_waits(t, c->keys->group[k]) ? store->apart : 0;
        of_store = store == last ? of_store + 1 : 0;
        last = store;
        const uint32_t number = store->slab.n_rows + of_store;
        if (number < store->slab.capacity) {
            const char *place = (const char *)tn_slab_at(&store->slab, number);
            __builtin_prefetch(place, 1);
            __builtin_prefetch(place + store->slab.stride - 1, 1);
        }
    }
}

/* Counts a row that is whole now, of a group whose keys may have to wait. */
static void note_admitted(tn_table *t, uint32_t group)
{
    atomic_fetch_add_explicit(&t->moves[group].admitted, 1, memory_order_relaxed);
}

/* ---- rows that become whole ---- */

/* Copies what a row that waits holds into one that begins. */
static void move_row(const tn_table *t, const tn_row *from, tn_row *to)
{
    const uint32_t group = tn_row_group(from);
    const tn_plan *old = tn_waiting_plan_of(t, group);
    const tn_plan *plan = tn_plan_of(t, group);
    for (uint32_t s = 0; s < plan->n_segments; s++) {
        if (tn_plan_has(old, s)) {
            const tn_plan_segment *a = &old->segment[s];
            const tn_plan_segment *b = &plan->segment[s];
            TN_ASSERT(a->end - a->w == b->end - b->w);
            memcpy(to->data + b->w, from->data + a->w, (a->end - a->w) * sizeof *to->data);
        }
    }
    to->show_high = from->show_high;
    to->show_low = from->show_low;
    to->click_high = from->click_high;
    to->click_low = from->click_low;
    tn_row_set_seen(to, 0, tn_row_day(from));
}

/* Makes the row of the i-th key whole. The last one that waits takes its place. */
static tn_status make_whole(creating *c, uint32_t i, tn_error *err)
{
    tn_table *t = c->t;
    const uint64_t key = c->keys->key[c->run.from + i];
    const uint16_t group = c->keys->group[c->run.from + i];
    const uint32_t partition = tn_partition_of(key, TN_PARTITIONS);
    const bool watched = tn_changed_rows_watched(&t->changes);
    tn_row_store *waiting = tn_waiting_store_of(t, key, group);
    tn_row_store *store = tn_row_store_of(t, key, group);
    uint32_t entry = 0;
    tn_row *whole = NULL;
    tn_row *row = tn_row_store_find(store, key, group, &entry);
    TN_ASSERT(row != NULL && tn_row_waits(row));
    const uint32_t number = (entry & TN_INDEX_NUMBER) - 1;
    TN_TRY(tn_row_store_put(store, &t->pages, key, group, &whole, err));
    tn_new_rows_fill(t, tn_plan_of(t, group), group, &key, &whole, 1);
    move_row(t, row, whole);
    if (watched) {
        tn_changed_rows_note(&t->changes, key, whole, tn_plan_of(t, group)->stride, true);
    }
    const tn_row *last = tn_slab_at(&waiting->slab, waiting->slab.n_rows - 1);
    tn_row_remove(t, partition, waiting, number, true);
    if (watched && number < waiting->slab.n_rows) {
        tn_changed_rows_moved(&t->changes, partition, row, waiting->slab.stride);
    }
    for (uint32_t k = 0; k < c->run.to - c->run.from; k++) {
        c->row[k] = c->row[k] == last ? row : c->row[k];
    }
    c->row[i] = whole;
    atomic_fetch_add_explicit(&t->promoted, 1, memory_order_relaxed);
    note_admitted(t, group);
    return TN_OK;
}

static tn_status promote(creating *c, uint64_t keys, tn_error *err)
{
    const uint64_t *key = c->keys->key + c->run.from;
    const uint16_t *group = c->keys->group + c->run.from;
    for (uint64_t left = keys; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        const tn_slab *waiting = &tn_waiting_store_of(c->t, key[i], group[i])->slab;
        __builtin_prefetch(tn_slab_at(waiting, waiting->n_rows - 1));
    }
    for (uint64_t left = keys; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        tn_row_store_fetch_last(tn_waiting_store_of(c->t, key[i], group[i]));
    }
    for (uint64_t left = keys; left != 0; left &= left - 1) {
        TN_TRY(make_whole(c, (uint32_t)__builtin_ctzll(left), err));
    }
    return TN_OK;
}

/* ---- rows of keys that have none ---- */

/* Makes the place of the i-th key's row; a keyset holds a key once, and should one not, both get
 * the same row. */
static tn_status place_row(creating *c, uint32_t i, bool waits, tn_error *err)
{
    tn_table *t = c->t;
    const uint64_t key = c->keys->key[c->run.from + i];
    const uint16_t group = c->keys->group[c->run.from + i];
    tn_row_store *store =
        waits ? tn_waiting_store_of(t, key, group) : tn_row_store_of(t, key, group);
    const uint32_t before = store->slab.n_rows;
    TN_TRY(tn_row_store_put(store, &t->pages, key, group, &c->row[i], err));
    c->row[i]->seen |= waits ? TN_ROW_WAITS : 0;
    if (store->slab.n_rows > before) {
        c->fresh[c->n] = c->row[i];
        c->key[c->n] = key;
        c->group[c->n++] = group;
        if (t->admits && !waits) {
            note_admitted(t, group);
        }
    }
    return TN_OK;
}

/* Makes the places of the rows of keys in *lacks, of which those in `whole` may have whole ones.
 * Those that get none are left in *lacks. */
static tn_status place_rows(creating *c, uint64_t *lacks, uint64_t whole, tn_error *err)
{
    const uint16_t *group = c->keys->group + c->run.from;
    for (uint64_t left = *lacks; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        const bool waits = (whole >> i & 1) == 0;
        if (!waits || tn_has_waiting_rows(c->t, group[i])) {
            TN_TRY(place_row(c, i, waits, err));
            *lacks &= ~(UINT64_C(1) << i);
        }
    }
    return TN_OK;
}

/* Fills rows that have their places, as many at once as are laid out and begin alike. */
static void begin_rows(const creating *c)
{
    tn_table *t = c->t;
    for (uint32_t i = 0, to; i < c->n; i = to) {
        const tn_plan *plan = tn_plan_of_row(t, c->fresh[i]);
        to = i + 1;
        while (t->alike && to < c->n && (!t->admits || tn_plan_of_row(t, c->fresh[to]) == plan)) {
            to++;
        }
        tn_new_rows_fill(t, plan, c->group[i], c->key + i, c->fresh + i, to - i);
    }
    for (uint32_t i = 0; i < c->n && tn_changed_rows_watched(&t->changes); i++) {
        const uint32_t stride = tn_plan_of_row(t, c->fresh[i])->stride;
        tn_changed_rows_note(&t->changes, c->key[i], c->fresh[i], stride, true);
    }
}

/* Returns which of the keys in `lacks` and of those whose rows wait may have whole rows. */
static uint64_t ask_whole(const creating *c, uint64_t lacks, uint64_t waiting)
{
    tn_policy_rows rows = tn_policy_rows_of(c->t, c->keys, c->run, c->row);
    uint64_t at_once = 0; /* keys of groups without segments that wait */
    for (uint64_t left = lacks; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        at_once |= (uint64_t)!tn_group_waits(c->t, rows.group[i]) << i;
    }
    rows.asked = (lacks | waiting) & ~at_once;
    for (tn_row_hook *const *hook = c->t->on[TN_ON_CREATE]; *hook != NULL; hook++) {
        rows.asked &= (*hook)(&rows);
    }
    return rows.asked | at_once;
}

tn_status tn_rows_create(tn_table_job *job, uint32_t tile, tn_range run, uint64_t *lacks,
                         tn_row **row, tn_error *err)
{
    tn_table *t = job->t;
    creating c;
    uint64_t waiting = 0;
    c.t = t;
    c.keys = job->keys;
    c.run = run;
    c.row = row;
    c.n = 0;
    for (uint32_t i = 0; i < run.to - run.from && t->waits; i++) {
        waiting |= (uint64_t)(row[i] != NULL && tn_row_waits(row[i])) << i;
    }
    if ((*lacks | waiting) == 0) {
        return TN_OK;
    }
    fetch_new(&c, *lacks);
    const uint64_t whole = t->admits ? ask_whole(&c, *lacks, waiting) : *lacks;
    TN_TRY(promote(&c, waiting & whole, err));
    const tn_status status = place_rows(&c, lacks, whole, err);
    begin_rows(&c);
    job->created[tile] += c.n;
    return status;
}
