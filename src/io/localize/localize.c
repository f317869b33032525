/* localize.c - number the keys, group them by partition, rewrite the batch.
 *
 *     number   each key as read -> its number in order of first appearance, counting shows
 *     group    numbers -> positions, by a counting sort over partitions
 *     settle   rewrite numbers as positions; for training, list where each key stands
 *
 *     table    [ 0 | 3 | 0 | 1 | 0 | 0 | 2 | 0 ]      by the key's low bits; 0 is free
 *     seen     [ - | 88, shown 5 times | 15 .. | 907 .. ]
 *
 * Keys of different share groups differ, so each group is numbered by itself, in a table just wide
 * enough for it, which mostly stays in the nearest cache. Within a group keys are numbered slot by
 * slot.
 */
#include "io/localize/localize.h"

#include "io/localize/localize_private.h"

#include <string.h>

enum { AHEAD = 16, NEAR_TABLE = 1 << 14 /* entries that need no prefetch */ };

/* What numbering has at hand. */
typedef struct numbering {
    uint32_t *table;
    uint64_t *seen; /* keys by number */
    uint64_t *count;
    uint32_t mask;
    uint32_t next; /* number of the next new key */
} numbering;

/* Whether a key was seen before is a coin toss to the processor, so nothing branches on it: table
 * and counts are written in either case, and number 0, of free entries, takes on the key that is
 * looked for. Only a collision, which is rare, branches. */
__attribute__((always_inline)) static inline uint32_t number_key(numbering *t, uint64_t key,
                                                                 uint64_t counts)
{
    uint32_t at = (uint32_t)key & t->mask;
    uint32_t number = t->table[at];
    t->seen[0] = key;
    while (t->seen[number] != key) {
        at = (at + 1) & t->mask;
        number = t->table[at];
    }
    uint32_t old = number != 0;
    number |= t->next & (old - 1);
    t->next += 1 - old;
    t->table[at] = number;
    t->seen[number] = key;
    t->count[number] = (t->count[number] & (0 - (uint64_t)old)) + counts;
    return number;
}

/* A slot whose examples all have one key. */
static void number_ones(numbering *numbers, const tn_slot *slot, const uint64_t *counts,
                        tn_range rows, uint32_t *index)
{
    numbering t = *numbers;
    const uint64_t *key = slot->key;
    for (uint32_t r = rows.from; r < rows.to; r++) {
        index[r] = number_key(&t, key[r], counts[r]);
    }
    *numbers = t;
}

static void number_any(numbering *numbers, const tn_slot *slot, const uint64_t *counts,
                       tn_range rows, uint32_t *index)
{
    numbering t = *numbers;
    const uint64_t *key = slot->key;
    const uint32_t last = slot->offset[rows.to] - 1;
    uint32_t i = slot->offset[rows.from];
    for (uint32_t r = rows.from; r < rows.to; r++) {
        for (uint32_t end = slot->offset[r + 1]; i < end; i++) {
            __builtin_prefetch(
                &t.table[(uint32_t)key[i + AHEAD < last ? i + AHEAD : last] & t.mask]);
            index[i] = number_key(&t, key[i], counts[r]);
        }
    }
    *numbers = t;
}

static bool all_ones(const uint32_t *offset, uint32_t rows)
{
    uint32_t wrong = 0;
    for (uint32_t r = 0; r <= rows; r++) {
        wrong |= offset[r] ^ r;
    }
    return wrong == 0;
}

static void note_counts(tn_localizer *l, const tn_batch *batch)
{
    for (uint32_t r = 0; r < batch->rows; r++) {
        l->counts[r] = TN_SHOWN | (batch->label[r] > 0.5F ? TN_CLICKED : 0);
    }
}

/* How many there are, repeated ones included. */
static uint32_t number_keys(tn_localizer *l, const tn_batch *batch)
{
    uint32_t *index = l->index;
    tn_range rows = {0, batch->rows};
    numbering numbers = {.table = l->table, .seen = l->seen, .count = l->count, .next = 1};
    note_counts(l, batch);
    for (uint32_t g = 0; g < l->opts.layout->n_groups; g++) {
        uint32_t keys = 0;
        for (uint32_t i = l->group_from[g]; i < l->group_from[g + 1]; i++) {
            keys += batch->slot[l->slot_of[i]].offset[batch->rows];
        }
        size_t size = tn_key_table_size(keys);
        memset(l->table, 0, size * sizeof *l->table);
        numbers.mask = (uint32_t)(size - 1);
        uint32_t before = numbers.next;
        for (uint32_t i = l->group_from[g]; i < l->group_from[g + 1]; i++) {
            uint32_t s = l->slot_of[i];
            const tn_slot *slot = &batch->slot[s];
            bool ones = all_ones(slot->offset, batch->rows);
            (ones && size <= NEAR_TABLE ? number_ones : number_any)(&numbers, slot, l->counts, rows,
                                                                    index);
            l->bag[s] = (tn_bag){
                .offset = slot->offset, .index = index, .weight = slot->value, .ones = ones};
            l->index_at[s] = index;
            index += slot->offset[batch->rows];
        }
        for (uint32_t i = before; i < numbers.next; i++) {
            l->seen_group[i] = (uint16_t)g;
        }
    }
    l->n = numbers.next - 1;
    return (uint32_t)(index - l->index);
}

/* Where each key goes. Only 4 bytes per key are scattered; the rest is gathered, in order. */
static void place_keys(tn_localizer *l)
{
    uint32_t n_partitions = l->opts.owners->n_partitions;
    uint32_t *first = l->first;
    memset(first, 0, ((size_t)n_partitions + 1) * sizeof *first);
    for (uint32_t i = 1; i <= l->n; i++) {
        first[tn_partition_of(l->seen[i], n_partitions) + 1]++;
    }
    for (uint32_t q = 0; q < n_partitions; q++) {
        first[q + 1] += first[q];
    }
    for (uint32_t i = 1; i <= l->n; i++) { /* moves first[q] to the end of partition q .. */
        l->number_at[first[tn_partition_of(l->seen[i], n_partitions)]++] = i;
    }
    memmove(first + 1, first, n_partitions * sizeof *first); /* .. which is where q + 1 begins */
    first[0] = 0;
}

/* Counts are read here for the last time: in their places, cursors remain. TN_E_LIMIT: the rows of
 * the keys do not fit into 2^32 floats. */
static tn_status gather_keys(tn_localizer *l, tn_error *err)
{
    uint64_t floats = 0;
    uint32_t shown = 0;
    for (uint32_t at = 0; at < l->n; at++) {
        uint32_t number = l->number_at[at];
        uint16_t group = l->seen_group[number];
        uint64_t count = l->count[number];
        l->count[number] = at | (uint64_t)shown << TN_CURSOR_NEXT;
        l->occurrence_first[at] = shown;
        shown += (uint32_t)count;
        l->key[at] = l->seen[number];
        l->show[at] = (uint32_t)count;
        l->click[at] = (uint32_t)(count >> 32);
        l->group[at] = group;
        l->at[at] = (uint32_t)floats;
        floats += l->width[group];
    }
    l->occurrence_first[l->n] = shown;
    l->at[l->n] = (uint32_t)floats;
    return floats <= UINT32_MAX
               ? TN_OK
               : tn_fail(err, TN_E_LIMIT, "the keys of a batch take %llu floats, more than %u",
                         (unsigned long long)floats, UINT32_MAX);
}

/* Rewrites rows of one slot, in order, and lists them. */
static void settle_rows(const tn_localizer *l, const tn_batch *batch, uint32_t s, tn_range rows)
{
    const uint32_t *offset = batch->slot[s].offset;
    uint64_t *cursors = l->count;
    uint32_t *index = l->index_at[s];
    tn_occurrence *occurrence = l->occurrence;
    uint32_t i = offset[rows.from];
    for (uint32_t r = rows.from; r < rows.to; r++) {
        for (uint32_t end = offset[r + 1]; i < end; i++) {
            uint64_t cursor = cursors[index[i]];
            cursors[index[i]] = cursor + (UINT64_C(1) << TN_CURSOR_NEXT);
            index[i] = (uint32_t)cursor;
            occurrence[cursor >> TN_CURSOR_NEXT] = (tn_occurrence){r, s, i};
        }
    }
}

/* Rewrites the batch and lists occurrences. A key stands in the slots of its group alone: a group
 * of one slot is listed slot by slot, which is the order of rows; one of several row by row. */
static void settle_and_list(const tn_localizer *l, const tn_batch *batch)
{
    for (uint32_t g = 0; g < l->opts.layout->n_groups; g++) {
        uint32_t from = l->group_from[g];
        uint32_t to = l->group_from[g + 1];
        if (to - from == 1) {
            settle_rows(l, batch, l->slot_of[from], (tn_range){0, batch->rows});
            continue;
        }
        for (uint32_t r = 0; r < batch->rows && from < to; r++) {
            for (uint32_t i = from; i < to; i++) {
                settle_rows(l, batch, l->slot_of[i], (tn_range){r, r + 1});
            }
        }
    }
}

static void settle(const tn_localizer *l, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        l->index[i] = (uint32_t)l->count[l->index[i]];
    }
}

tn_status tn_localize(tn_localizer *localizer, const tn_batch *batch, const tn_local **out,
                      tn_error *err)
{
    tn_localizer *l = localizer;
    TN_ASSERT(batch->n_slots == l->opts.n_slots);
    TN_TRY(tn_localizer_make_room(l, batch, err));
    for (uint32_t s = 0; s < l->opts.n_slots; s++) { /* of slots that nobody takes */
        l->bag[s] = (tn_bag){.offset = l->no_offset, .index = l->index};
    }
    uint32_t n = number_keys(l, batch);
    place_keys(l);
    TN_TRY(gather_keys(l, err));
    if (l->opts.occurrences) {
        settle_and_list(l, batch);
    } else {
        settle(l, n);
    }
    l->local = (tn_local){
        .keys = {.owners = l->opts.owners,
                 .n = l->n,
                 .key = l->key,
                 .group = l->group,
                 .at = l->at,
                 .show = l->show,
                 .click = l->click,
                 .first = l->first},
        .bag = l->bag,
        .apart = l->apart,
    };
    if (l->opts.occurrences) {
        l->local.occurrences = (tn_occurrences){l->occurrence_first, l->occurrence};
    }
    *out = &l->local;
    return TN_OK;
}
