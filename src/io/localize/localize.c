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

#include "base/core/alloc.h"
#include "base/keys/record.h"
#include "io/rows/batch.h"

#include <stddef.h>
#include <string.h>

enum { TABLE_MIN = 64 };

/* Shows of a key in the lower half of a count, clicks in the upper one. */
#define SHOWN UINT64_C(1)
#define CLICKED (UINT64_C(1) << 32)

/* A cursor takes the place of a count: the key's position in the lower half, where its next
 * occurrence is listed in the upper one. */
enum { CURSOR_NEXT = 32 };

struct tn_localizer {
    tn_localizer_opts opts;
    uint32_t *slot_of;    /* n_slots: slots in the order of their groups, used ones only */
    uint32_t *group_from; /* n_groups + 1: .. of group g */
    uint32_t *width;      /* n_groups: floats in a row */
    tn_bag *bag;          /* n_slots */
    uint32_t **index_at;  /* n_slots: the bag's index, to write */
    bool apart;           /* see tn_local */

    void *block; /* holds every array below; wide enough for keys_max and rows_max */
    uint32_t keys_max;
    uint32_t rows_max;
    uint32_t *table;      /* numbers, from 1; 0: free */
    uint64_t *seen;       /* keys_max + 1, by number: keys .. */
    uint64_t *count;      /* .. and how often they are there, later their cursors */
    uint16_t *seen_group; /* likewise */
    uint32_t *number_at;  /* position -> number */
    uint64_t *counts;     /* rows_max: what one of its keys adds to `count` */
    uint32_t *no_offset;  /* rows_max + 1 zeros, for slots that nobody takes */

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

#define KEYS_MAX (UINT32_C(1) << 31)

enum { AHEAD = 16, NEAR_TABLE = 1 << 14 /* entries that need no prefetch */ };

/* The arrays of one group while its keys are numbered. */
typedef struct numbering {
    uint32_t *table;
    uint64_t *seen; /* keys by number */
    uint64_t *count;
    uint32_t mask;
    uint32_t next; /* number of the next new key */
} numbering;

/* Places for that many keys: a power of two, at most a quarter full: fewer
 * collisions are fewer wrong guesses of the processor. */
static inline size_t table_size(uint32_t keys)
{
    size_t power = TABLE_MIN;
    while (power / 4 < keys) {
        power *= 2;
    }
    return power;
}

/* The next piece of the block, on a cache line of its own; NULL while only measuring. */
static void *carve(char *block, size_t *used, size_t count, size_t size)
{
    char *at = block != NULL ? block + *used : NULL;
    *used += (count * size + TN_CACHE_LINE - 1) / TN_CACHE_LINE * TN_CACHE_LINE;
    return at;
}

/* Puts all arrays into `block` and returns its size; with NULL, only that. */
static size_t lay_out(tn_localizer *l, char *block)
{
    size_t n = l->keys_max;
    size_t more = l->opts.occurrences ? n : 0;
    size_t used = 0;
    l->table = carve(block, &used, table_size(l->keys_max), sizeof *l->table);
    l->seen = carve(block, &used, n + 1, sizeof *l->seen);
    l->count = carve(block, &used, n + 1, sizeof *l->count);
    l->seen_group = carve(block, &used, n + 1, sizeof *l->seen_group);
    l->number_at = carve(block, &used, n, sizeof *l->number_at);
    l->counts = carve(block, &used, l->rows_max, sizeof *l->counts);
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

/* No group has two slots. */
static bool are_apart(const tn_localizer *l)
{
    bool apart = true;
    for (uint32_t g = 0; g < l->opts.layout->n_groups; g++) {
        apart &= l->group_from[g + 1] - l->group_from[g] <= 1;
    }
    return apart;
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

tn_status tn_localizer_new(tn_localizer **out, const tn_localizer_opts *opts, tn_error *err)
{
    static const char what[] = "a localizer";
    *out = NULL;
    size_t n_groups = (size_t)opts->layout->n_groups + 1;
    size_t n_slots = (size_t)opts->n_slots + 1;
    tn_localizer *l = NULL;
    TN_TRY(TN_ALLOC(l, 1, what, err));
    l->opts = *opts;
    l->opts.slot_group = NULL; /* read once, in sort_slots */
    l->opts.slot_used = NULL;
    if (TN_ALLOC(l->slot_of, n_slots, what, err) != TN_OK ||
        TN_ALLOC(l->group_from, n_groups, what, err) != TN_OK ||
        TN_ALLOC(l->width, n_groups, what, err) != TN_OK ||
        TN_ALLOC(l->bag, n_slots, what, err) != TN_OK ||
        TN_ALLOC(l->index_at, n_slots, what, err) != TN_OK ||
        TN_ALLOC(l->first, (size_t)opts->owners->n_partitions + 1, what, err) != TN_OK) {
        tn_localizer_free(l);
        return TN_E_MEMORY;
    }
    sort_slots(l, opts);
    l->apart = opts->occurrences && opts->by_slot && are_apart(l);
    l->opts.occurrences = opts->occurrences && !l->apart;
    *out = l;
    return TN_OK;
}

/* Room for the batch; what is there is kept when it is enough. */
static tn_status localizer_make_room(tn_localizer *l, const tn_batch *batch, tn_error *err)
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
    uint64_t most = keys + keys / 8 + TABLE_MIN; /* the next one may be a little larger */
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
    return TN_OK;
}

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
                        uint32_t rows, uint32_t *index)
{
    numbering t = *numbers;
    const uint64_t *key = slot->key;
    for (uint32_t r = 0; r < rows; r++) {
        index[r] = number_key(&t, key[r], counts[r]);
    }
    *numbers = t;
}

static void number_any(numbering *numbers, const tn_slot *slot, const uint64_t *counts,
                       uint32_t rows, uint32_t *index)
{
    numbering t = *numbers;
    const uint64_t *key = slot->key;
    const uint32_t last = slot->offset[rows] - 1;
    uint32_t i = 0;
    for (uint32_t r = 0; r < rows; r++) {
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

/* How many there are, repeated ones included. */
static uint32_t number_keys(tn_localizer *l, const tn_batch *batch)
{
    uint32_t *index = l->index;
    numbering numbers = {.table = l->table, .seen = l->seen, .count = l->count, .next = 1};
    for (uint32_t r = 0; r < batch->rows; r++) {
        l->counts[r] = SHOWN | (batch->label[r] > 0.5F ? CLICKED : 0);
    }
    for (uint32_t g = 0; g < l->opts.layout->n_groups; g++) {
        uint32_t keys = 0;
        for (uint32_t i = l->group_from[g]; i < l->group_from[g + 1]; i++) {
            keys += batch->slot[l->slot_of[i]].offset[batch->rows];
        }
        size_t size = table_size(keys);
        memset(l->table, 0, size * sizeof *l->table);
        numbers.mask = (uint32_t)(size - 1);
        uint32_t before = numbers.next;
        for (uint32_t i = l->group_from[g]; i < l->group_from[g + 1]; i++) {
            uint32_t s = l->slot_of[i];
            const tn_slot *slot = &batch->slot[s];
            bool ones = all_ones(slot->offset, batch->rows);
            (ones && size <= NEAR_TABLE ? number_ones : number_any)(&numbers, slot, l->counts,
                                                                    batch->rows, index);
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
        l->count[number] = at | (uint64_t)shown << CURSOR_NEXT;
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
            cursors[index[i]] = cursor + (UINT64_C(1) << CURSOR_NEXT);
            index[i] = (uint32_t)cursor;
            occurrence[cursor >> CURSOR_NEXT] = (tn_occurrence){r, s, i};
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
    TN_TRY(localizer_make_room(l, batch, err));
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
