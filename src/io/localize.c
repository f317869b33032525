/* localize.c - number the keys, group them by partition, rewrite the batch.
 *
 *     number   each key as read -> its number in order of first appearance, counting shows
 *     group    numbers -> positions, by a counting sort over partitions
 *     settle   rewrite numbers as positions; for training, list where each key stands
 *
 * Keys of different share groups differ, so each group is numbered by itself, in a hash table just
 * wide enough for it that mostly stays in the cache. The table is emptied by raising `stamp`: an
 * entry of an older stamp is free. Within a group keys are numbered slot by slot.
 */
#include "io/localize.h"

#include "io/localize_private.h"

#include <string.h>

enum { AHEAD = 16 };

/* A free table of `keys` places at least; its mask. */
static uint32_t clear_table(tn_localizer *l, uint32_t keys)
{
    if (++l->stamp == 0) { /* once in four billion groups */
        memset(l->table, 0, (size_t)tn_key_table_size(l->keys_max) * sizeof *l->table);
        l->stamp = 1;
    }
    return tn_key_table_size(keys) - 1;
}

/* Numbers one slot. Whether a key was seen before is a coin toss to the processor, so nothing
 * branches on it: the entry is written in either case. Only a collision, which is rare, branches.
 */
static void number_slot(tn_localizer *l, const tn_slot *slot, const tn_batch *batch,
                        uint32_t *index, uint32_t mask)
{
    tn_key_entry *table = l->table;
    tn_key_seen *all = l->seen;
    const uint32_t stamp = l->stamp;
    const uint64_t *key = slot->key;
    uint32_t n = slot->offset[batch->rows];
    uint32_t next = l->n;
    uint32_t i = 0;
    for (uint32_t r = 0; r < batch->rows; r++) {
        uint32_t clicked = batch->label[r] > 0.5F;
        for (uint32_t end = slot->offset[r + 1]; i < end; i++) {
            uint32_t ahead = i + AHEAD < n ? i + AHEAD : i;
            __builtin_prefetch(&table[(uint32_t)key[ahead] & mask]);
            tn_key_entry *e = &table[(uint32_t)key[i] & mask];
            while (e->stamp == stamp && e->key != key[i]) {
                e = &table[(uint32_t)(e - table + 1) & mask];
            }
            uint32_t old = e->stamp == stamp;
            uint32_t number = old ? e->number : next;
            next += 1 - old;
            *e = (tn_key_entry){key[i], stamp, number};
            uint32_t keep = 0 - old; /* all ones, or none */
            all[number] = (tn_key_seen){key[i], (all[number].show & keep) + 1,
                                        (all[number].click & keep) + clicked};
            index[i] = number;
        }
    }
    l->n = next;
}

/* How many there are, repeated ones included. */
static uint32_t number_keys(tn_localizer *l, const tn_batch *batch)
{
    uint32_t *index = l->index;
    l->n = 0;
    for (uint32_t g = 0; g < l->opts.layout->n_groups; g++) {
        uint32_t before = l->n;
        uint32_t keys = 0;
        for (uint32_t i = l->group_from[g]; i < l->group_from[g + 1]; i++) {
            keys += batch->slot[l->slot_of[i]].offset[batch->rows];
        }
        uint32_t mask = clear_table(l, keys);
        for (uint32_t i = l->group_from[g]; i < l->group_from[g + 1]; i++) {
            uint32_t s = l->slot_of[i];
            const tn_slot *slot = &batch->slot[s];
            number_slot(l, slot, batch, index, mask);
            l->bag[s] = (tn_bag){.offset = slot->offset, .index = index, .weight = slot->value};
            l->index_at[s] = index;
            index += slot->offset[batch->rows];
        }
        for (uint32_t k = before; k < l->n; k++) {
            l->seen_group[k] = (uint16_t)g;
        }
    }
    return (uint32_t)(index - l->index);
}

/* TN_E_LIMIT: the rows of the keys do not fit into 2^32 floats. */
static tn_status group_keys(tn_localizer *l, tn_error *err)
{
    uint32_t n_partitions = l->opts.owners->n_partitions;
    uint32_t *first = l->first;
    memset(first, 0, ((size_t)n_partitions + 1) * sizeof *first);
    for (uint32_t i = 0; i < l->n; i++) {
        first[tn_partition_of(l->seen[i].key, n_partitions) + 1]++;
    }
    for (uint32_t q = 0; q < n_partitions; q++) {
        first[q + 1] += first[q];
    }
    for (uint32_t i = 0; i < l->n; i++) { /* moves first[q] to the end of partition q .. */
        uint32_t at = first[tn_partition_of(l->seen[i].key, n_partitions)]++;
        l->key[at] = l->seen[i].key;
        l->show[at] = l->seen[i].show;
        l->click[at] = l->seen[i].click;
        l->group[at] = l->seen_group[i];
        l->position[i] = at;
    }
    memmove(first + 1, first, n_partitions * sizeof *first); /* .. which is where q + 1 begins */
    first[0] = 0;
    uint64_t floats = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        l->at[i] = (uint32_t)floats;
        floats += l->width[l->group[i]];
    }
    l->at[l->n] = (uint32_t)floats;
    return floats <= UINT32_MAX
               ? TN_OK
               : tn_fail(err, TN_E_LIMIT, "the keys of a batch take %llu floats, more than %u",
                         (unsigned long long)floats, UINT32_MAX);
}

/* Rows of one slot, in order; `next` is moved from the first place of each key to its end. */
static void list_rows(tn_localizer *l, const tn_batch *batch, uint32_t s, tn_range rows)
{
    const uint32_t *offset = batch->slot[s].offset;
    const uint32_t *index = l->index_at[s];
    uint32_t *next = l->occurrence_first + 1;
    for (uint32_t r = rows.from; r < rows.to; r++) {
        for (uint32_t i = offset[r]; i < offset[r + 1]; i++) {
            l->occurrence[next[index[i]]++] = (tn_occurrence){r, s, i};
        }
    }
}

/* A key stands in the slots of its group alone: a group of one slot is listed slot by slot, which
 * is the order of rows; one of several row by row. */
static void list_occurrences(tn_localizer *l, const tn_batch *batch)
{
    uint32_t *first = l->occurrence_first; /* shifted by one while it is being filled */
    first[0] = 0;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        first[i + 1] = sum;
        sum += l->show[i];
    }
    for (uint32_t g = 0; g < l->opts.layout->n_groups; g++) {
        uint32_t from = l->group_from[g];
        uint32_t to = l->group_from[g + 1];
        if (to - from == 1) {
            list_rows(l, batch, l->slot_of[from], (tn_range){0, batch->rows});
            continue;
        }
        for (uint32_t r = 0; r < batch->rows && from < to; r++) {
            for (uint32_t i = from; i < to; i++) {
                list_rows(l, batch, l->slot_of[i], (tn_range){r, r + 1});
            }
        }
    }
}

static void settle(tn_localizer *l, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        l->index[i] = l->position[l->index[i]];
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
    TN_TRY(group_keys(l, err));
    settle(l, n);
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
    };
    if (l->opts.occurrences) {
        list_occurrences(l, batch);
        l->local.occurrences = (tn_occurrences){l->occurrence_first, l->occurrence};
    }
    *out = &l->local;
    return TN_OK;
}
