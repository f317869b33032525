/* index.c - see index.h. */
#include "ps/table/index.h"

#include "base/core/alloc.h"

enum {
    FIRST_ENTRIES = 64,
    BLOCK_ENTRIES = 1024,
    AHEAD = 32,     /* rows asked for before they are needed */
    DEPTH_MAX = 14, /* bits of the hash that neither tag nor position use */
    SPREAD = 16,    /* keys by which blocks of one depth differ, at least most of them */
};

static size_t block_bytes(uint32_t entries)
{
    return sizeof(tn_index_block) + entries * sizeof(uint32_t);
}

/* Linear probing slows down beyond 27 of 32. */
static bool is_full(const tn_index *x, const tn_index_block *b)
{
    return b->n >= (x->mask + 1) / 32 * 27;
}

static tn_index_block *block_of(const tn_index *x, uint32_t hash)
{
    return x->directory[(uint64_t)hash >> (32 - x->depth)];
}

void tn_index_clear(tn_index *x, tn_extents *e)
{
    if (x->directory != NULL) {
        if (x->mask + 1 < BLOCK_ENTRIES) {
            tn_extents_refund(e, block_bytes(x->mask + 1));
            tn_free(x->directory[0]);
        }
        tn_extents_refund(e, sizeof(void *) << x->depth);
        tn_free(x->directory);
    }
    *x = (tn_index){0};
}

static void put(tn_index_block *b, uint32_t mask, uint32_t hash, uint32_t entry)
{
    uint32_t at = hash & mask;
    while (b->entry[at] != 0) {
        at = (at + 1) & mask;
    }
    b->entry[at] = entry;
    b->n++;
}

void tn_index_put(tn_index *x, uint32_t hash, uint32_t number)
{
    tn_index_block *b = block_of(x, hash);
    TN_ASSERT(b->n < x->mask && number < TN_INDEX_NUMBER);
    put(b, x->mask, hash, tn_index_tag(hash) << TN_INDEX_NUMBER_BITS | (number + 1));
}

/* Blocks of full size come from the extents, smaller ones from the heap, which takes them back. */
static tn_status new_block(uint32_t entries, tn_extents *e, tn_index_block **out, tn_error *err)
{
    size_t bytes = block_bytes(entries);
    void *block = NULL;
    if (entries == BLOCK_ENTRIES) {
        TN_TRY(tn_extents_take(e, bytes, &block, err));
        *out = block;
        return TN_OK;
    }
    tn_extents_charge(e, bytes);
    block = tn_try_alloc(1, bytes, "an index of rows", err);
    if (block == NULL) {
        tn_extents_refund(e, bytes);
        return TN_E_MEMORY;
    }
    *out = block;
    return TN_OK;
}

static tn_status new_directory(uint32_t depth, tn_extents *e, tn_index_block ***out, tn_error *err)
{
    tn_index_block **directory = NULL;
    size_t bytes = sizeof(void *) << depth;
    tn_extents_charge(e, bytes);
    directory = tn_try_alloc(1, bytes, "the directory of an index", err);
    if (directory == NULL) {
        tn_extents_refund(e, bytes);
        return TN_E_MEMORY;
    }
    *out = directory;
    return TN_OK;
}

static tn_status begin(tn_index *x, tn_extents *e, tn_error *err)
{
    tn_index_block **directory = NULL;
    tn_index_block *block = NULL;
    TN_TRY(new_directory(0, e, &directory, err));
    tn_status status = new_block(FIRST_ENTRIES, e, &block, err);
    if (status != TN_OK) {
        tn_extents_refund(e, sizeof(void *));
        tn_free(directory);
        return status;
    }
    directory[0] = block;
    *x = (tn_index){.directory = directory, .mask = FIRST_ENTRIES - 1};
    return TN_OK;
}

static uint32_t hash_of_entry(const tn_slab *rows, uint32_t entry)
{
    return tn_index_hash(tn_row_key(tn_slab_at(rows, (entry & TN_INDEX_NUMBER) - 1), 0));
}

/* The rows of a block lie anywhere. */
static inline void fetch_row(const tn_slab *rows, uint32_t entry)
{
    if (entry != 0) {
        __builtin_prefetch(tn_slab_at(rows, (entry & TN_INDEX_NUMBER) - 1));
    }
}

/* A single block below full size: copied into one of twice the size. */
static tn_status grow_first_block(tn_index *x, const tn_slab *rows, tn_extents *e, tn_error *err)
{
    tn_index_block *old = x->directory[0];
    uint32_t entries = x->mask + 1;
    tn_index_block *block = NULL;
    TN_TRY(new_block(2 * entries, e, &block, err));
    for (uint32_t i = 0; i < entries; i++) {
        if (old->entry[i] != 0) {
            put(block, 2 * entries - 1, hash_of_entry(rows, old->entry[i]), old->entry[i]);
        }
    }
    x->directory[0] = block;
    x->mask = 2 * entries - 1;
    tn_extents_refund(e, block_bytes(entries));
    tn_free(old);
    return TN_OK;
}

static tn_status double_directory(tn_index *x, tn_extents *e, tn_error *err)
{
    if (x->depth == DEPTH_MAX) {
        return tn_fail(err, TN_E_LIMIT,
                       "a partition of the table holds more than %d blocks of keys",
                       1 << DEPTH_MAX);
    }
    tn_index_block **directory = NULL;
    TN_TRY(new_directory(x->depth + 1, e, &directory, err));
    for (uint32_t i = 0; i < UINT32_C(2) << x->depth; i++) {
        directory[i] = x->directory[i / 2];
    }
    tn_extents_refund(e, sizeof(void *) << x->depth);
    tn_free(x->directory);
    x->directory = directory;
    x->depth++;
    return TN_OK;
}

/* Moves the half of b whose next bit is 1 into a new block. */
static tn_status split(tn_index *x, const tn_slab *rows, uint32_t hash, tn_extents *e,
                       tn_error *err)
{
    tn_index_block *b = block_of(x, hash);
    if (b->depth == x->depth) {
        TN_TRY(double_directory(x, e, err));
    }
    tn_index_block *half = NULL;
    TN_TRY(new_block(BLOCK_ENTRIES, e, &half, err));
    uint32_t entry[BLOCK_ENTRIES];
    memcpy(entry, b->entry, sizeof entry);
    memset(b->entry, 0, sizeof entry);

    uint32_t bit = 31 - b->depth;
    b->n = 0;
    half->depth = ++b->depth;
    for (uint32_t i = 0; i < AHEAD; i++) {
        fetch_row(rows, entry[i]);
    }
    for (uint32_t i = 0; i < BLOCK_ENTRIES; i++) {
        fetch_row(rows, i + AHEAD < BLOCK_ENTRIES ? entry[i + AHEAD] : 0);
        if (entry[i] != 0) {
            uint32_t h = hash_of_entry(rows, entry[i]);
            put((h >> bit & 1) != 0 ? half : b, x->mask, h, entry[i]);
        }
    }
    uint32_t span = UINT32_C(1) << (x->depth - b->depth);
    uint32_t from = (uint32_t)((uint64_t)hash >> (32 - x->depth)) & ~(2 * span - 1);
    for (uint32_t i = 0; i < span; i++) {
        x->directory[from + span + i] = half;
    }
    return TN_OK;
}

tn_status tn_index_reserve(tn_index *x, const tn_slab *rows, uint32_t hash, tn_extents *e,
                           tn_error *err)
{
    if (x->directory == NULL) {
        TN_TRY(begin(x, e, err));
    }
    while (is_full(x, block_of(x, hash))) {
        if (x->mask + 1 < BLOCK_ENTRIES) {
            TN_TRY(grow_first_block(x, rows, e, err));
        } else {
            TN_TRY(split(x, rows, hash, e, err));
        }
    }
    return TN_OK;
}

uint64_t tn_index_bytes(const tn_index *x, uint64_t *entries)
{
    if (x->directory == NULL) {
        return 0;
    }
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < UINT32_C(1) << x->depth; i++) {
        blocks += i == 0 || x->directory[i] != x->directory[i - 1];
    }
    *entries += blocks * (x->mask + 1);
    return (sizeof(void *) << x->depth) + blocks * block_bytes(x->mask + 1);
}

static uint32_t place_of(const tn_index_block *b, uint32_t mask, uint32_t hash, uint32_t number)
{
    uint32_t at = hash & mask;
    while ((b->entry[at] & TN_INDEX_NUMBER) != number + 1) {
        TN_ASSERT(b->entry[at] != 0);
        at = (at + 1) & mask;
    }
    return at;
}

/* Knuth 6.4, algorithm R: entries behind the hole that may stand in it move up. */
void tn_index_remove(tn_index *x, const tn_slab *rows, uint32_t hash, uint32_t number)
{
    tn_index_block *b = block_of(x, hash);
    uint32_t mask = x->mask;
    uint32_t hole = place_of(b, mask, hash, number);
    for (uint32_t at = (hole + 1) & mask; b->entry[at] != 0; at = (at + 1) & mask) {
        uint32_t home = hash_of_entry(rows, b->entry[at]) & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            b->entry[hole] = b->entry[at];
            hole = at;
        }
    }
    b->entry[hole] = 0;
    b->n--;
}

void tn_index_renumber(tn_index *x, uint32_t hash, uint32_t from, uint32_t to)
{
    tn_index_block *b = block_of(x, hash);
    uint32_t at = place_of(b, x->mask, hash, from);
    b->entry[at] = tn_index_tag(hash) << TN_INDEX_NUMBER_BITS | (to + 1);
}

uint64_t tn_index_growth(const tn_index *x, uint32_t rows)
{
    if (rows == 0) {
        return 0;
    }
    const bool whole = x->directory != NULL && x->mask + 1 == BLOCK_ENTRIES;
    const uint32_t n = x->directory != NULL && !whole ? x->directory[0]->n : 0;
    uint32_t entries = x->directory == NULL ? FIRST_ENTRIES : x->mask + 1;
    if (whole) {
        const uint64_t blocks = UINT64_C(1) << x->depth;
        const uint64_t splits = 1 + rows / SPREAD;
        return (splits < blocks ? splits : blocks) * block_bytes(BLOCK_ENTRIES);
    }
    while (entries < BLOCK_ENTRIES && n + rows > entries / 32 * 27) {
        entries *= 2;
    }
    const bool grows = x->directory == NULL || entries > x->mask + 1;
    return grows ? block_bytes(entries) + sizeof(void *) : 0;
}

uint64_t tn_index_growth_most(uint32_t rows)
{
    return (2 + (uint64_t)rows / SPREAD) * block_bytes(BLOCK_ENTRIES);
}
