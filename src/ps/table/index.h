/* index.h - key -> row number in one slab, by extendible hashing (Fagin 1979).
 *
 *     hash 32   | directory 14 | tag 8 | position 10 |      of the bits of a key that its row holds
 *
 *     directory [00] [01] [10] [11]        grows by doubling: pointers only
 *                 |    |    '--.-'
 *     block     [ .. ][ .. ][ .. ]         1024 entries each: tag 8, number + 1 24; 0 is free
 *
 * Linear probing inside a block. A full block is split in two and no other is touched, so nothing
 * ever stops for a long rehash and no memory is left behind. The first block starts with 64 entries
 * and grows by copying. The keys themselves stand in the rows. Guarded by the partition's lock.
 */
#ifndef TN_PS_INDEX_H
#define TN_PS_INDEX_H

#include "ps/table/slab.h"

enum { TN_INDEX_NUMBER_BITS = 24, TN_INDEX_NUMBER = (1 << TN_INDEX_NUMBER_BITS) - 1 };

#define TN_INDEX_NONE UINT32_MAX

typedef struct tn_index_block {
    uint32_t n;
    uint32_t depth; /* leading bits that all its hashes share */
    uint32_t unused[14];
    uint32_t entry[];
} tn_index_block;

typedef struct tn_index {
    tn_index_block **directory; /* 1 << depth; NULL: no key yet */
    uint32_t depth;
    uint32_t mask; /* entries of a block - 1 */
} tn_index;

void tn_index_clear(tn_index *x, tn_extents *e);

/* Makes sure that one more key with this hash can be put. */
tn_status tn_index_reserve(tn_index *x, const tn_slab *rows, uint32_t hash, tn_extents *e,
                           tn_error *err) TN_MUST_USE;

/* About the most that `rows` more keys take: keys are spread so evenly that blocks of one depth
 * split within some keys of each other. And at most, whatever there is. */
uint64_t tn_index_growth(const tn_index *x, uint32_t rows);
uint64_t tn_index_growth_most(uint32_t rows);

/* After tn_index_reserve. */
void tn_index_put(tn_index *x, uint32_t hash, uint32_t number);

/* What it takes; *entries grows by the room for keys. */
uint64_t tn_index_bytes(const tn_index *x, uint64_t *entries);

/* Forgets row `number`, while its key still stands in it. */
void tn_index_remove(tn_index *x, const tn_slab *rows, uint32_t hash, uint32_t number);

/* Row `from` is row `to` now. */
void tn_index_renumber(tn_index *x, uint32_t hash, uint32_t from, uint32_t to);

/* The upper half of a product depends on all bits of the key below it. */
static inline uint32_t tn_index_hash(uint64_t key)
{
    return (uint32_t)((key << TN_ROW_PARTITION_BITS) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static inline uint32_t tn_index_tag(uint32_t hash)
{
    return hash >> 10 & UINT8_MAX;
}

/* NULL: the index is empty. */
static inline tn_index_block *tn_index_block_of(const tn_index *x, uint32_t hash)
{
    return x->directory != NULL ? x->directory[(uint64_t)hash >> (32 - x->depth)] : NULL;
}

/* The number of the first row that has the key's tag: that of the key, or in one case of a hundred
 * another's. TN_INDEX_NONE: the key has no row. */
static inline uint32_t tn_index_likely(const tn_index *x, uint32_t hash)
{
    const tn_index_block *b = tn_index_block_of(x, hash);
    if (b == NULL) {
        return TN_INDEX_NONE;
    }
    uint32_t tag = tn_index_tag(hash);
    uint32_t at = hash & x->mask;
    for (uint32_t entry = b->entry[at]; entry != 0; entry = b->entry[at]) {
        if (entry >> TN_INDEX_NUMBER_BITS == tag) {
            return (entry & TN_INDEX_NUMBER) - 1;
        }
        at = (at + 1) & x->mask;
    }
    return TN_INDEX_NONE;
}

#endif
