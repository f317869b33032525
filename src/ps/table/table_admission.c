/* table_admission.c - keys that wait: which of them get a whole row, and their counts meanwhile.
 *
 *     key      count of earlier steps     row
 *     new      0                          none, or the segments that do not wait
 *     waits    below the threshold        the same; or its draw of this step has failed
 *     whole    at least the threshold     all segments, those that waited with first values
 *
 * A row that waits lies in a slab of its own. When it becomes whole it moves to the other slab, and
 * the last one that waits takes its place. Source: docs/numerics.md, section 9; DiFacto (Li, Liu,
 * Smola, Wang 2016).
 */
#include "ps/table/table_admission.h"

#include "base/math/rng.h"

/* ---- who is admitted ---- */

static bool is_admitted(const tn_table *t, const tn_admission *a, uint64_t key, double count)
{
    if (count < a->threshold) {
        return false;
    }
    if (a->probability >= 1) {
        return true;
    }
    const uint64_t stream = tn_stream_next(t->admission, key);
    return tn_unit(tn_draw(stream, atomic_load(&t->step))) < a->probability;
}

static uint32_t filter_count(const tn_table *t, uint64_t key)
{
    const uint8_t *filter = t->partition[tn_partition_of(key, TN_PARTITIONS)].filter;
    return filter != NULL ? tn_key_filter_count(&t->filter, filter, key) : 0;
}

tn_row_form tn_form_of_new(const tn_table *t, uint64_t key, uint32_t group)
{
    const tn_admission *a = &tn_life_of(t, group)->admission;
    const double count = a->filter && t->filter.lines > 0 ? filter_count(t, key) : 0;
    if (!a->l1_shrk && is_admitted(t, a, key, count)) {
        return TN_FORM_WHOLE;
    }
    return tn_has_waiting_rows(t, group) ? TN_FORM_WAITS : TN_FORM_NONE;
}

/* ---- weights that do not wait ---- */

/* Whether all weights of the segments in `mask` are 0; `data` holds those in `present`. */
static bool are_zero(const tn_plan *whole, const float *data, uint16_t present, uint16_t mask)
{
    bool zero = true;
    for (uint32_t s = 0; s < whole->n_segments && zero; s++) {
        const tn_plan_segment *seg = &whole->segment[s];
        if ((present >> s & 1) == 0) {
            continue;
        }
        for (uint32_t i = 0; i < seg->dim && (mask >> s & 1) != 0; i++) {
            zero = zero && data[i] == 0;
        }
        data += seg->end - seg->w;
    }
    return zero;
}

/* Of a group with l1_shrk. */
static bool has_shrunk(const tn_table *t, uint32_t group, const float *data, uint16_t present)
{
    const uint16_t waits = tn_record_of(t->layout, group)->waits;
    const tn_plan *plan = tn_plan_of(t, group);
    return are_zero(plan, data, present, (uint16_t)(plan->present & ~(uint32_t)waits));
}

bool tn_row_is_shrunk(const tn_table *t, const tn_row *row)
{
    const uint32_t group = tn_row_group(row);
    if (tn_row_waits(row) || !tn_group_waits(t, group) ||
        !tn_life_of(t, group)->admission.l1_shrk) {
        return false;
    }
    return has_shrunk(t, group, row->data, tn_plan_of(t, group)->present);
}

uint16_t tn_table_read_segments(const tn_table *t, const tn_row_view *row)
{
    if (!t->shrinks || !tn_group_waits(t, row->group) ||
        !tn_life_of(t, row->group)->admission.l1_shrk ||
        !has_shrunk(t, row->group, row->data, row->present)) {
        return row->present;
    }
    return (uint16_t)(row->present & ~(uint32_t)tn_record_of(t->layout, row->group)->waits);
}

/* ---- rows that become whole ---- */

/* What a row that waits holds, into one that begins. */
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

/* A row that was made whole, and the one that took its place among those that wait, if another did.
 */
typedef struct moved_rows {
    tn_row *whole, *from, *to;
} moved_rows;

static tn_status make_whole(tn_table *t, uint64_t key, uint16_t group, moved_rows *out,
                            tn_error *err)
{
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
    tn_row *last = tn_slab_at(&waiting->slab, waiting->slab.n_rows - 1);
    tn_row_remove(t, partition, waiting, number, true);
    *out = (moved_rows){.whole = whole, .from = last, .to = row};
    if (watched && number < waiting->slab.n_rows) {
        tn_changed_rows_moved(&t->changes, partition, tn_slab_at(&waiting->slab, number),
                              waiting->slab.stride);
    }
    atomic_fetch_add_explicit(&t->promoted, 1, memory_order_relaxed);
    tn_note_admitted(t, group);
    return TN_OK;
}

tn_status tn_rows_admit(tn_table *t, const tn_keyset *keys, tn_range run, tn_row **row,
                        tn_error *err)
{
    uint32_t waiting[TN_LOOK_KEYS];
    uint32_t whole[TN_LOOK_KEYS];
    uint32_t n_waiting = 0;
    uint32_t n = 0;
    for (uint32_t k = run.from; k < run.to; k++) {
        const tn_row *r = row[k - run.from];
        waiting[n_waiting] = k;
        n_waiting += r != NULL && tn_row_waits(r);
    }
    for (uint32_t i = 0; i < n_waiting; i++) {
        const uint32_t k = waiting[i];
        const tn_row *r = row[k - run.from];
        const uint32_t group = keys->group[k];
        const tn_admission *a = &tn_life_of(t, group)->admission;
        const double count = tn_row_count(r->show_high, r->show_low);
        if (is_admitted(t, a, keys->key[k], count) &&
            !(a->l1_shrk && has_shrunk(t, group, r->data, tn_waiting_plan_of(t, group)->present))) {
            const tn_slab *waiting_rows = &tn_waiting_store_of(t, keys->key[k], group)->slab;
            __builtin_prefetch(tn_slab_at(waiting_rows, waiting_rows->n_rows - 1));
            whole[n++] = k;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        tn_row_store_fetch_last(tn_waiting_store_of(t, keys->key[whole[i]], keys->group[whole[i]]));
    }
    for (uint32_t i = 0; i < n; i++) {
        moved_rows moved;
        TN_TRY(make_whole(t, keys->key[whole[i]], keys->group[whole[i]], &moved, err));
        for (uint32_t k = 0; k < run.to - run.from; k++) {
            row[k] = row[k] == moved.from ? moved.to : row[k];
        }
        row[whole[i] - run.from] = moved.whole;
    }
    return TN_OK;
}

/* ---- counts of keys without a row ---- */

tn_status tn_tile_filter_reserve(tn_table *t, const tn_keyset *keys, uint32_t tile, tn_error *err)
{
    for (uint32_t p = tile * TN_TILE_PARTITIONS; p < (tile + 1) * TN_TILE_PARTITIONS; p++) {
        const tn_range run = tn_keys_of_partition(keys, p);
        if (run.from < run.to && t->partition[p].filter == NULL) {
            void *filter = NULL;
            TN_TRY(tn_page_arena_take(&t->pages, tn_key_filter_bytes(&t->filter), &filter, err));
            t->partition[p].filter = filter;
        }
    }
    return TN_OK;
}

void tn_filter_fetch(const tn_table *t, uint64_t key, uint32_t group)
{
    const uint8_t *filter = t->partition[tn_partition_of(key, TN_PARTITIONS)].filter;
    if (filter != NULL && tn_life_of(t, group)->admission.filter) {
        const size_t line = tn_key_filter_line(&t->filter, key);
        __builtin_prefetch(filter + line * TN_KEY_FILTER_LINE, 1);
    }
}

void tn_filter_add(tn_table *t, uint64_t key, uint32_t group, uint32_t n)
{
    const uint32_t p = tn_partition_of(key, TN_PARTITIONS);
    uint8_t *filter = t->partition[p].filter;
    if (filter == NULL || !tn_group_waits(t, group) || !tn_life_of(t, group)->admission.filter) {
        return;
    }
    if (tn_changed_rows_watched(&t->changes)) {
        const uint32_t line = tn_key_filter_line(&t->filter, key);
        tn_changed_rows_line(&t->changes, p, line, filter + (size_t)line * TN_KEY_FILTER_LINE);
    }
    t->partition[p].raised += tn_key_filter_add(&t->filter, filter, key, n);
}

void tn_filter_age(tn_table *t, uint32_t partition)
{
    tn_partition *part = &t->partition[partition];
    uint8_t *filter = part->filter;
    if (filter == NULL || !tn_key_filter_is_overfull(&t->filter, part->raised)) {
        return;
    }
    for (uint32_t i = 0; i < t->filter.lines && tn_changed_rows_watched(&t->changes); i++) {
        tn_changed_rows_line(&t->changes, partition, i, filter + (size_t)i * TN_KEY_FILTER_LINE);
    }
    tn_key_filter_age(&t->filter, filter);
    part->raised = tn_key_filter_raised(&t->filter, filter);
    atomic_fetch_add(&t->aged, 1);
}

uint64_t tn_table_aged(const tn_table *t)
{
    return atomic_load(&t->aged);
}

const uint8_t *tn_table_filter(const tn_table *t, uint32_t partition, size_t *bytes)
{
    *bytes = tn_key_filter_bytes(&t->filter);
    return t->partition[partition].filter;
}

tn_status tn_table_set_filter(tn_table *t, uint32_t partition, const uint8_t *counts, tn_error *err)
{
    const size_t bytes = tn_key_filter_bytes(&t->filter);
    TN_ASSERT(bytes > 0);
    void *filter = t->partition[partition].filter;
    if (filter == NULL) {
        TN_TRY(tn_page_arena_take(&t->pages, bytes, &filter, err));
    }
    memcpy(filter, counts, bytes);
    t->partition[partition].filter = filter;
    t->partition[partition].raised = tn_key_filter_raised(&t->filter, filter);
    return TN_OK;
}
