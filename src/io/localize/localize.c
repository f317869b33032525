/* localize.c - number the keys, place their rows, group keys by partition.
 *
 *     number   each key as read -> its number in order of first appearance, counting shows; a row
 *              lies where its number says
 *     group    numbers -> places among the keys, by a counting sort over partitions
 *     cut      for training, rows into blocks
 *
 *     table    [ 0 | 3 | 0 | 1 | 0 | 0 | 2 | 0 ]      by the key's low bits; 0 is free
 *     seen     [ - | 88, shown 5 times | 15 .. | 907 .. ]
 *
 * Keys of different share groups differ, so each group is numbered by itself, in a table just wide
 * enough for it, which mostly stays in the nearest cache. Within a group keys are numbered slot by
 * slot. The rows of a group begin on a cache line: no two blocks share one then, unless a group is
 * cut.
 */
#include "io/localize/localize.h"

#include "base/core/alloc.h"
#include "base/keys/record.h"
#include "io/rows/batch.h"

#include <stddef.h>
#include <string.h>

enum { TABLE_MIN = 64, LINE_FLOATS = TN_CACHE_LINE / sizeof(float) };

/* Shows of a key in the lower half of a count, clicks in the upper one. */
#define SHOWN UINT64_C(1)
#define CLICKED (UINT64_C(1) << 32)

/* The rows of a group while keys are numbered, and where they are. */
typedef struct group_rows {
    uint32_t stride;   /* floats from one row to the next */
    uint32_t lead;     /* floats from a cache line to the first row */
    uint32_t from, to; /* begin and end in floats */
    uint32_t number;   /* number of its first key */
    uint32_t entries;  /* keys as read */
} group_rows;

struct tn_localizer {
    tn_localizer_opts opts;
    uint32_t *slot_of;    /* n_slots: slots in the order of their groups, used ones only */
    uint32_t *group_from; /* n_groups + 1: begin of group g in slot_of */
    group_rows *rows;     /* n_groups */
    tn_bag *bag;          /* n_slots */
    tn_row_block *cut;    /* n_groups + opts.n_blocks */

    void *block; /* holds every array below; wide enough for keys_max and rows_max */
    uint32_t keys_max;
    uint32_t rows_max;
    uint32_t *table;      /* numbers, from 1; 0: free */
    uint64_t *seen;       /* keys_max + 1: keys by number */
    uint64_t *count;      /* keys_max + 1: shows and clicks by number */
    uint16_t *seen_group; /* keys_max + 1: groups by number */
    uint32_t *number_at;  /* position -> number */
    uint64_t *counts;     /* rows_max: added to `count` for each of a row's keys */
    uint32_t *no_offset;  /* rows_max + 1 zeros, for slots that nobody takes */

    uint64_t *key; /* from here on, what `local` shows to the outside */
    uint16_t *group;
    uint32_t *at;
    uint32_t *show;
    uint32_t *click;
    uint32_t *index;
    uint32_t *first; /* n_partitions + 1 */
    uint32_t n, floats;
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
    uint32_t next;   /* number of the next new key */
    uint32_t stride; /* a row lies at number * stride + at, modulo 2^32 */
    uint32_t at;
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
    size_t used = 0;
    l->table = carve(block, &used, table_size(l->keys_max), sizeof *l->table);
    l->seen = carve(block, &used, n + 1, sizeof *l->seen);
    l->count = carve(block, &used, n + 1, sizeof *l->count);
    l->seen_group = carve(block, &used, n + 1, sizeof *l->seen_group);
    l->number_at = carve(block, &used, n, sizeof *l->number_at);
    l->counts = carve(block, &used, l->rows_max, sizeof *l->counts);
    l->key = carve(block, &used, n, sizeof *l->key);
    l->group = carve(block, &used, n, sizeof *l->group);
    l->at = carve(block, &used, n, sizeof *l->at);
    l->show = carve(block, &used, n, sizeof *l->show);
    l->click = carve(block, &used, n, sizeof *l->click);
    l->index = carve(block, &used, n, sizeof *l->index);
    l->no_offset = carve(block, &used, (size_t)l->rows_max + 1, sizeof *l->no_offset);
    return used;
}

/* Floats from a line to a row. Of rows of many whole lines the widest segment begins on one. */
static uint32_t lead_of(const tn_record *r)
{
    uint32_t widest = 0;
    for (uint32_t i = 1; i < r->n_segments; i++) {
        widest = r->segment[i].dim > r->segment[widest].dim ? i : widest;
    }
    const bool lines = r->width > LINE_FLOATS && tn_localized_stride(r->width) % LINE_FLOATS == 0;
    return lines ? (LINE_FLOATS - r->segment[widest].at % LINE_FLOATS) % LINE_FLOATS : 0;
}

/* Slots of one group side by side, groups in their order. */
static void sort_slots(tn_localizer *l, const tn_localizer_opts *opts)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < opts->layout->n_groups; g++) {
        l->group_from[g] = n;
        l->rows[g].stride = tn_localized_stride(tn_record_of(opts->layout, g)->width);
        l->rows[g].lead = lead_of(tn_record_of(opts->layout, g));
        for (uint32_t s = 0; s < opts->n_slots; s++) {
            if (opts->slot_group[s] == g && opts->slot_used[s]) {
                l->slot_of[n++] = s;
            }
        }
    }
    l->group_from[opts->layout->n_groups] = n;
}

uint32_t tn_localized_stride(uint32_t width)
{
    enum { OF_ROW = 12 }; /* up to 1/12 of a row is given for whole lines */
    uint32_t stride = 1;
    while (stride < width && stride < LINE_FLOATS) {
        stride *= 2;
    }
    const uint32_t pad = (LINE_FLOATS - width % LINE_FLOATS) % LINE_FLOATS; /* for longer rows */
    if (stride < width) {
        stride = pad <= width / OF_ROW && width + pad > width ? width + pad : width;
    }
    return stride;
}

void tn_localizer_free(tn_localizer *localizer)
{
    if (localizer != NULL) {
        tn_free(localizer->slot_of);
        tn_free(localizer->group_from);
        tn_free(localizer->rows);
        tn_free(localizer->bag);
        tn_free(localizer->cut);
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
        TN_ALLOC(l->rows, n_groups, what, err) != TN_OK ||
        TN_ALLOC(l->bag, n_slots, what, err) != TN_OK ||
        TN_ALLOC(l->cut, n_groups + opts->n_blocks, what, err) != TN_OK ||
        TN_ALLOC(l->first, (size_t)opts->owners->n_partitions + 1, what, err) != TN_OK) {
        tn_localizer_free(l);
        return TN_E_MEMORY;
    }
    sort_slots(l, opts);
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

static inline uint32_t row_of(const numbering *t, uint32_t number)
{
    return number * t->stride + t->at;
}

/* A slot whose examples all have one key. */
static void number_ones(numbering *numbers, const tn_slot *slot, const uint64_t *counts,
                        uint32_t rows, uint32_t *index)
{
    numbering t = *numbers;
    const uint64_t *key = slot->key;
    for (uint32_t r = 0; r < rows; r++) {
        index[r] = row_of(&t, number_key(&t, key[r], counts[r]));
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
            index[i] = row_of(&t, number_key(&t, key[i], counts[r]));
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

/* The slots of group g. */
static void number_group(tn_localizer *l, const tn_batch *batch, uint32_t g, numbering *numbers,
                         uint32_t *index)
{
    size_t size = table_size(l->rows[g].entries);
    memset(l->table, 0, size * sizeof *l->table);
    numbers->mask = (uint32_t)(size - 1);
    for (uint32_t i = l->group_from[g]; i < l->group_from[g + 1]; i++) {
        uint32_t s = l->slot_of[i];
        const tn_slot *slot = &batch->slot[s];
        bool ones = all_ones(slot->offset, batch->rows);
        (ones && size <= NEAR_TABLE ? number_ones : number_any)(numbers, slot, l->counts,
                                                                batch->rows, index);
        l->bag[s] =
            (tn_bag){.offset = slot->offset, .index = index, .weight = slot->value, .ones = ones};
        index += slot->offset[batch->rows];
    }
}

/* TN_E_LIMIT: the rows of the keys do not fit into 2^32 floats. */
static tn_status number_keys(tn_localizer *l, const tn_batch *batch, tn_error *err)
{
    uint32_t *index = l->index;
    uint64_t floats = 0;
    numbering numbers = {.table = l->table, .seen = l->seen, .count = l->count, .next = 1};
    for (uint32_t r = 0; r < batch->rows; r++) {
        l->counts[r] = SHOWN | (batch->label[r] > 0.5F ? CLICKED : 0);
    }
    for (uint32_t g = 0; g < l->opts.layout->n_groups; g++) {
        group_rows *rows = &l->rows[g];
        rows->entries = 0;
        for (uint32_t i = l->group_from[g]; i < l->group_from[g + 1]; i++) {
            rows->entries += batch->slot[l->slot_of[i]].offset[batch->rows];
        }
        floats += rows->lead;
        rows->from = (uint32_t)floats;
        rows->number = numbers.next;
        numbers.stride = rows->stride;
        numbers.at = rows->from - rows->number * rows->stride;
        number_group(l, batch, g, &numbers, index);
        index += rows->entries;
        for (uint32_t i = rows->number; i < numbers.next; i++) {
            l->seen_group[i] = (uint16_t)g;
        }
        floats += (uint64_t)(numbers.next - rows->number) * rows->stride;
        rows->to = (uint32_t)floats;
        floats = (floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
        if (floats > UINT32_MAX) {
            return tn_fail(err, TN_E_LIMIT, "the keys of a batch take more than %u floats",
                           UINT32_MAX);
        }
    }
    l->n = numbers.next - 1;
    l->floats = (uint32_t)floats;
    return TN_OK;
}

/* Orders the keys. Only 4 bytes per key are scattered; others are gathered in order. */
static void place_keys(tn_localizer *l)
{
    const uint32_t n_partitions = l->opts.owners->n_partitions;
    const uint32_t n = l->n;
    const uint64_t *seen = l->seen;
    uint32_t *restrict number_at = l->number_at;
    uint32_t *restrict first = l->first;
    memset(first, 0, ((size_t)n_partitions + 1) * sizeof *first);
    for (uint32_t i = 1; i <= n; i++) {
        first[tn_partition_of(seen[i], n_partitions) + 1]++;
    }
    for (uint32_t q = 0; q < n_partitions; q++) {
        first[q + 1] += first[q];
    }
    for (uint32_t i = 1; i <= n; i++) { /* moves first[q] to the end of partition q */
        number_at[first[tn_partition_of(seen[i], n_partitions)]++] = i;
    }
    memmove(first + 1, first, n_partitions * sizeof *first); /* partition q + 1 begins there */
    first[0] = 0;
}

static void gather_keys(const tn_localizer *l)
{
    for (uint32_t k = 0; k < l->n; k++) {
        uint32_t number = l->number_at[k];
        uint16_t group = l->seen_group[number];
        const group_rows *rows = &l->rows[group];
        l->key[k] = l->seen[number];
        l->show[k] = (uint32_t)l->count[number];
        l->click[k] = (uint32_t)(l->count[number] >> 32);
        l->group[k] = group;
        l->at[k] = rows->from + (number - rows->number) * rows->stride;
    }
}

/* ---- blocks ---- */

/* The rows of group g in blocks that are taken `most` times or a little more. */
static tn_row_block *cut_group(const tn_localizer *l, uint32_t g, uint32_t most, tn_row_block *out)
{
    const group_rows *rows = &l->rows[g];
    tn_row_block block = {.from = rows->from,
                          .slot = l->slot_of + l->group_from[g],
                          .n_slots = l->group_from[g + 1] - l->group_from[g]};
    uint32_t number = rows->number;
    while (block.from < rows->to) {
        block.to = block.from;
        for (uint32_t taken = 0; taken < most && block.to < rows->to; number++) {
            block.to += rows->stride;
            taken += (uint32_t)l->count[number];
        }
        *out++ = block;
        block.from = block.to;
    }
    return out;
}

/* A group stays in one block unless it has much more than its share of the work. Returns how many
 * there are. */
static uint32_t cut_rows(const tn_localizer *l)
{
    if (l->opts.n_blocks == 0) {
        return 0;
    }
    uint64_t entries = 0;
    for (uint32_t g = 0; g < l->opts.layout->n_groups; g++) {
        entries += l->rows[g].entries;
    }
    const uint32_t share = (uint32_t)(entries / l->opts.n_blocks) + 1;
    tn_row_block *out = l->cut;
    for (uint32_t g = 0; g < l->opts.layout->n_groups; g++) {
        const group_rows *rows = &l->rows[g];
        if (rows->entries / 2 > share) {
            out = cut_group(l, g, share, out);
        } else if (rows->entries > 0) {
            *out++ = (tn_row_block){.from = rows->from,
                                    .to = rows->to,
                                    .slot = l->slot_of + l->group_from[g],
                                    .n_slots = l->group_from[g + 1] - l->group_from[g],
                                    .whole = true};
        }
    }
    return (uint32_t)(out - l->cut);
}

tn_status tn_localize(tn_localizer *localizer, const tn_batch *batch, const tn_local **out,
                      tn_error *err)
{
    tn_localizer *l = localizer;
    TN_ASSERT(batch->n_slots == l->opts.n_slots);
    TN_TRY(localizer_make_room(l, batch, err));
    for (uint32_t s = 0; s < l->opts.n_slots; s++) { /* for slots that nobody takes */
        l->bag[s] = (tn_bag){.offset = l->no_offset, .index = l->index};
    }
    TN_TRY(number_keys(l, batch, err));
    place_keys(l);
    gather_keys(l);
    l->local = (tn_local){
        .keys = {.owners = l->opts.owners,
                 .layout = l->opts.layout,
                 .n = l->n,
                 .floats = l->floats,
                 .key = l->key,
                 .group = l->group,
                 .at = l->at,
                 .show = l->show,
                 .click = l->click,
                 .first = l->first},
        .bag = l->bag,
        .block = l->cut,
        .n_blocks = cut_rows(l),
    };
    *out = &l->local;
    return TN_OK;
}
