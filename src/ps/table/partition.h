/* partition.h - one of the 1024 parts of the table: a lock and, per size of row, a store.
 *
 *     partition   lock | store of record 0: index, slab | store of record 1: index, slab | ..
 *                 if keys may wait, as many stores of waiting rows: slab alone
 *
 * A slab holds rows of one size, numbered from 0, which move only when another one leaves. Its
 * chunks are small at first, so that a partition with few keys costs little:
 *
 *     chunk   0: 8 rows | 1: 8 | 2: 16 | 3: 32 | .. | k: full | k+1: full ..     full: some 16 KB
 *
 * An index leads from a key to the number of its row, whole or waiting, by extendible hashing
 * (Fagin 1979):
 *
 *     hash 32   | directory 14 | tag 8 | position 10 |      of the bits of a key that its row holds
 *
 *     directory [00] [01] [10] [11]        grows by doubling: pointers only
 *                 |    |    '--.-'
 *     block     [ .. ][ .. ][ .. ]         1024 entries each
 *     entry     | tag 8 | waits 1 | number + 1 23 |        0 is free
 *
 * Linear probing inside a block. A full block is split in two and no other is touched, so nothing
 * ever stops for a long rehash and no memory is lost. The first block starts with 64 entries
 * and grows by copying. The rows hold the keys themselves.
 *
 * A row is known by (key, group). Everything here is guarded by the partition's lock. A thread that
 * needs several locks takes them in ascending order.
 */
#pragma once

#include "base/core/alloc.h"
#include "ps/table/page_arena.h"
#include "ps/table/row.h"

enum { TN_SLAB_ROWS_MAX = (1 << 23) - 1 };

typedef struct tn_slab {
    char **chunk; /* owned; the chunks themselves belong to the extents */
    uint32_t n_chunks, chunks_max;
    uint32_t n_rows;
    uint32_t capacity; /* rows in all chunks */
    uint32_t stride;   /* bytes of a row */
    uint8_t first_log2, full_log2;
} tn_slab;

static inline tn_row *tn_slab_at(const tn_slab *s, uint32_t number)
{
    uint32_t full = number >> s->full_log2;
    uint32_t chunk = s->full_log2 - s->first_log2 + full;
    uint32_t at = number - (full << s->full_log2);
    if (__builtin_expect(full == 0, 0)) {
        uint32_t log2 = 31 - (uint32_t)__builtin_clz(number | 1);
        bool first = number >> s->first_log2 == 0;
        chunk = first ? 0 : log2 - s->first_log2 + 1;
        at = first ? number : number - (UINT32_C(1) << log2);
    }
    return (tn_row *)(void *)(s->chunk[chunk] + (size_t)at * s->stride);
}

enum {
    TN_INDEX_WAITS_BIT = 23,
    TN_INDEX_NUMBER = (1 << TN_INDEX_WAITS_BIT) - 1,
    TN_INDEX_TAG_SHIFT = 24,
};

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

/* Prefetches where a search for that hash begins. */
static inline void tn_index_fetch(const tn_index *x, uint32_t hash)
{
    const tn_index_block *block = tn_index_block_of(x, hash);
    if (block != NULL) {
        __builtin_prefetch(&block->entry[hash & x->mask]);
    }
}

typedef struct tn_row_store {
    tn_index index; /* leads to whole rows, and to those that wait */
    tn_slab slab;
    uint64_t *mark; /* a bit per row, for a sweep over the rows that a batch does not hold */
    uint32_t mark_words;
    uint16_t apart; /* stores from that of whole rows to that of rows that wait; 0: there is none */
    bool waits;     /* holds the latter */
    bool marked;    /* keep marks */
} tn_row_store;

_Static_assert(sizeof(tn_row_store) == TN_CACHE_LINE, "a store is looked at for every key");

/* The store where an entry's row lies; s: of whole rows. */
static inline const tn_row_store *tn_row_store_of_entry(const tn_row_store *s, uint32_t entry)
{
    return s + (size_t)(entry >> TN_INDEX_WAITS_BIT & 1) * s->apart;
}

static inline tn_row *tn_row_of_entry(const tn_row_store *s, uint32_t entry)
{
    return tn_slab_at(&tn_row_store_of_entry(s, entry)->slab, (entry & TN_INDEX_NUMBER) - 1);
}

typedef struct tn_partition {
    _Alignas(TN_CACHE_LINE) pthread_mutex_t lock;
    tn_row_store *store; /* one per record of the layout, then perhaps as many for rows that wait */
    uint8_t *filter;     /* counts of keys without a row (ps/table/key_filter.h); NULL: none yet */
    uint32_t raised;     /* counters above 0 */
} tn_partition;

/* `apart`, `waits`: as in the store. */
void tn_row_store_init(tn_row_store *s, uint32_t stride, uint16_t apart, bool waits, bool marked);
void tn_row_store_clear(tn_row_store *s, tn_page_arena *e);

/* The row of (key, group), whole or waiting, of a store of whole rows. NULL: there is none. *entry
 * is written for a row. */
tn_row *tn_row_store_find(const tn_row_store *s, uint64_t key, uint16_t group, uint32_t *entry);

/* The row of (key, group) in this store. Where there was none, the slab has one more: its header is
 * set, its data zero. If the key had one in the store of the other form, the index leads to the new
 * one from now on, and the old one has to be removed as one that has moved. */
tn_status tn_row_store_put(tn_row_store *s, tn_page_arena *e, uint64_t key, uint16_t group,
                           tn_row **out, tn_error *err) TN_MUST_USE;

/* The last row of this store moves to where it was, so no other row's number changes. False: it has
 * no such row. */
bool tn_row_store_remove(tn_row_store *s, uint64_t key, uint16_t group);

/* The same of a row that is there. `moved`: the index does not lead to it any more. */
void tn_row_store_remove_at(tn_row_store *s, uint32_t number, bool moved);

/* Prefetches where the index leads to the last row, which the next removal moves. */
void tn_row_store_fetch_last(const tn_row_store *s);

/* After removals, gives back chunks without rows, and makes an index anew whose blocks are nearly
 * empty. Without memory for that the index stays. */
void tn_row_store_shrink(tn_row_store *s, tn_page_arena *e);

/* About the bytes of a store that has so many rows of `stride` bytes, whatever it held before. */
uint64_t tn_row_store_need(uint32_t stride, uint32_t rows);
uint32_t tn_row_store_chunk(uint32_t stride); /* rows by which it grows, once it holds a few */

static inline void tn_row_store_mark(tn_row_store *s, uint32_t number)
{
    s->mark[number / 64] |= UINT64_C(1) << number % 64;
}

static inline bool tn_row_store_is_marked(const tn_row_store *s, uint32_t number)
{
    return (s->mark[number / 64] >> number % 64 & 1) != 0;
}

void tn_row_store_unmark(tn_row_store *s);

/* About the most bytes that `rows` more rows take beyond the room there is: keys are spread so
 * evenly that blocks of one depth split within some keys of each other. growth_most is an upper
 * bound that does not depend on the present room. */
uint64_t tn_row_store_growth(const tn_row_store *s, uint32_t rows);
uint64_t tn_row_store_growth_most(const tn_row_store *s, uint32_t rows);
