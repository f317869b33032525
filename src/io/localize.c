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

#include "base/alloc.h"

#include <string.h>

enum { AHEAD = 16, SMALLEST_TABLE = 64 };

#define KEYS_MAX (UINT32_C(1) << 31)

typedef struct entry {
    uint64_t key;
    uint32_t stamp;
    uint32_t number;
} entry;

/* A key as numbered. */
typedef struct seen {
    uint64_t key;
    uint32_t show;
    uint32_t click;
} seen;

struct tn_localizer {
    tn_localizer_opts opts;
    uint32_t *slot_of;    /* n_slots: slots in the order of their groups, used ones only */
    uint32_t *group_from; /* n_groups + 1: .. of group g */
    uint32_t *width;      /* n_groups: floats in a row */
    tn_bag *bag;          /* n_slots */
    uint32_t **index_at;  /* n_slots: the bag's index, to write */

    void *block; /* holds every array below; wide enough for keys_max and rows_max */
    uint32_t keys_max;
    uint32_t rows_max;
    entry *table;
    uint32_t stamp;
    seen *seen;
    uint32_t *position; /* number -> position */
    uint16_t *seen_group;
    uint32_t *no_offset; /* rows_max + 1 zeros, for slots that nobody takes */

    uint64_t *key; /* from here on, what `local` shows to the outside */
    uint16_t *group;
    uint32_t *at;
    uint32_t *show;
    uint32_t *click;
    uint32_t *index;
    uint32_t *occurrence_first;
    tn_occurrence *occurrence;
    uint32_t *first; /* n_partitions + 1 */
    uint32_t n;
    tn_local local;
};

/* The next piece of the block, on a cache line of its own; NULL while only measuring. */
static void *carve(char *block, size_t *used, size_t count, size_t size)
{
    char *at = block != NULL ? block + *used : NULL;
    *used += (count * size + TN_CACHE_LINE - 1) / TN_CACHE_LINE * TN_CACHE_LINE;
    return at;
}

static uint32_t table_size(uint32_t keys)
{
    uint32_t power = SMALLEST_TABLE;
    while (power / 2 < keys) {
        power *= 2;
    }
    return power;
}

/* Puts all arrays into `block` and returns its size; with NULL, only that. */
static size_t lay_out(tn_localizer *l, char *block)
{
    size_t n = l->keys_max;
    size_t more = l->opts.occurrences ? n : 0;
    size_t used = 0;
    l->table = carve(block, &used, table_size(l->keys_max), sizeof *l->table);
    l->seen = carve(block, &used, n, sizeof *l->seen);
    l->seen_group = carve(block, &used, n, sizeof *l->seen_group);
    l->position = carve(block, &used, n, sizeof *l->position);
    l->key = carve(block, &used, n, sizeof *l->key);
    l->group = carve(block, &used, n, sizeof *l->group);
    l->at = carve(block, &used, n + 1, sizeof *l->at);
    l->show = carve(block, &used, n, sizeof *l->show);
    l->click = carve(block, &used, n, sizeof *l->click);
    l->index = carve(block, &used, n, sizeof *l->index);
    l->occurrence_first = carve(block, &used, n + 2, sizeof *l->occurrence_first);
    l->occurrence = carve(block, &used, more, sizeof *l->occurrence);
    l->no_offset = carve(block, &used, (size_t)l->rows_max + 1, sizeof *l->no_offset);
    return used;
}

/* Slots of one group side by side, groups in their order. */
static void sort_slots(tn_localizer *l, const tn_localizer_opts *opts)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < opts->layout->n_groups; g++) {
        l->group_from[g] = n;
        l->width[g] = tn_record_of(opts->layout, g)->width;
        for (uint32_t s = 0; s < opts->n_slots; s++) {
            if (opts->slot_group[s] == g && opts->slot_used[s]) {
                l->slot_of[n++] = s;
            }
        }
    }
    l->group_from[opts->layout->n_groups] = n;
}

tn_status tn_localizer_new(tn_localizer **out, const tn_localizer_opts *opts, tn_error *err)
{
    static const char what[] = "a localizer";
    *out = NULL;
    uint32_t n_groups = opts->layout->n_groups;
    tn_localizer *l = tn_try_alloc(1, sizeof *l, what, err);
    if (l == NULL) {
        return TN_E_MEMORY;
    }
    l->opts = *opts;
    l->opts.slot_group = NULL; /* read once, in sort_slots */
    l->opts.slot_used = NULL;
    l->slot_of = tn_try_alloc((size_t)opts->n_slots + 1, sizeof *l->slot_of, what, err);
    l->group_from = tn_try_alloc((size_t)n_groups + 1, sizeof *l->group_from, what, err);
    l->width = tn_try_alloc((size_t)n_groups + 1, sizeof *l->width, what, err);
    l->bag = tn_try_alloc((size_t)opts->n_slots + 1, sizeof *l->bag, what, err);
    l->index_at = tn_try_alloc((size_t)opts->n_slots + 1, sizeof *l->index_at, what, err);
    l->first = tn_try_alloc((size_t)opts->owners->n_partitions + 1, sizeof *l->first, what, err);
    if (l->slot_of == NULL || l->group_from == NULL || l->width == NULL || l->bag == NULL ||
        l->index_at == NULL || l->first == NULL) {
        tn_localizer_free(l);
        return TN_E_MEMORY;
    }
    sort_slots(l, opts);
    *out = l;
    return TN_OK;
}

void tn_localizer_free(tn_localizer *localizer)
{
    if (localizer != NULL) {
        tn_free(localizer->slot_of);
        tn_free(localizer->group_from);
        tn_free(localizer->width);
        tn_free(localizer->bag);
        tn_free(localizer->index_at);
        tn_free(localizer->first);
        tn_free(localizer->block);
        tn_free(localizer);
    }
}

/* Room for the batch; what is there is kept when it is enough. */
static tn_status make_room(tn_localizer *l, const tn_batch *batch, tn_error *err)
{
    uint64_t keys = 0;
    for (uint32_t s = 0; s < l->opts.n_slots; s++) {
        keys += batch->slot[s].offset[batch->rows];
    }
    if (keys >= KEYS_MAX) {
        return tn_fail(err, TN_E_LIMIT, "%llu keys in a batch, more than %u",
                       (unsigned long long)keys, KEYS_MAX - 1);
    }
    if (l->block != NULL && keys <= l->keys_max && batch->rows <= l->rows_max) {
        return TN_OK;
    }
    uint64_t most = keys + keys / 8 + SMALLEST_TABLE; /* the next one may be a little larger */
    tn_free(l->block);
    l->block = NULL;
    l->keys_max = most < KEYS_MAX ? (uint32_t)most : KEYS_MAX - 1;
    l->rows_max = batch->rows > l->rows_max ? batch->rows : l->rows_max;
    l->block = tn_try_alloc(1, lay_out(l, NULL), "localized keys", err);
    if (l->block == NULL) {
        l->keys_max = 0;
        return TN_E_MEMORY;
    }
    (void)lay_out(l, l->block);
    l->stamp = 0;
    return TN_OK;
}

/* A free table of `keys` places at least; its mask. */
static uint32_t clear_table(tn_localizer *l, uint32_t keys)
{
    if (++l->stamp == 0) { /* once in four billion groups */
        memset(l->table, 0, (size_t)table_size(l->keys_max) * sizeof *l->table);
        l->stamp = 1;
    }
    return table_size(keys) - 1;
}

/* The number of `key`, a new one when it was not seen before. */
static inline uint32_t number_of(tn_localizer *l, uint64_t key, uint32_t mask)
{
    uint32_t at = (uint32_t)key & mask;
    while (l->table[at].stamp == l->stamp) {
        if (l->table[at].key == key) {
            return l->table[at].number;
        }
        at = (at + 1) & mask;
    }
    uint32_t number = l->n++;
    l->table[at] = (entry){key, l->stamp, number};
    l->seen[number] = (seen){key, 0, 0};
    return number;
}

static void number_slot(tn_localizer *l, const tn_slot *slot, const tn_batch *batch,
                        uint32_t *index, uint32_t mask)
{
    uint32_t n = slot->offset[batch->rows];
    uint32_t i = 0;
    for (uint32_t r = 0; r < batch->rows; r++) {
        uint32_t clicked = batch->label[r] > 0.5F;
        for (; i < slot->offset[r + 1]; i++) {
            if (i + AHEAD < n) {
                __builtin_prefetch(&l->table[(uint32_t)slot->key[i + AHEAD] & mask]);
            }
            uint32_t number = number_of(l, slot->key[i], mask);
            index[i] = number;
            l->seen[number].show++;
            l->seen[number].click += clicked;
        }
    }
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
    TN_TRY(make_room(l, batch, err));
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
