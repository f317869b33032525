/* lookup.c - many keys at once, so that their cache misses overlap.
 *
 *     pass 1   key -> hash, shelf, block: fetch the line of the index
 *     pass 2   probe by tag -> a likely row: fetch its lines
 *     pass 3   compare the key; one row in a hundred is another's, then look again alone
 */
#include "ps/lookup.h"

enum { FETCH_LINES_MAX = 8 }; /* the hardware sees the rest coming */

/* A key between two passes. */
typedef struct probe {
    const tn_shelf *shelf;
    const tn_index_block *block;
    uint32_t hash;
    uint32_t number;
} probe;

static void fetch_index(const tn_table *t, const tn_keyset *keys, tn_range run, probe *probes)
{
    for (uint32_t i = 0; i < run.to - run.from; i++) {
        probe *p = &probes[i];
        uint64_t key = keys->key[run.from + i];
        p->shelf = tn_shelf_of(t, key, keys->group[run.from + i]);
        p->hash = tn_index_hash(key);
        p->block = tn_index_block_of(&p->shelf->index, p->hash);
        if (p->block != NULL) {
            __builtin_prefetch(&p->block->entry[p->hash & p->shelf->index.mask]);
        }
    }
}

/* The first row whose tag fits, or NULL. */
static tn_row *likely_row(probe *p)
{
    if (p->block == NULL) {
        return NULL;
    }
    uint32_t mask = p->shelf->index.mask;
    uint32_t tag = tn_index_tag(p->hash);
    uint32_t at = p->hash & mask;
    for (uint32_t entry = p->block->entry[at]; entry != 0; entry = p->block->entry[at]) {
        if (entry >> TN_INDEX_NUMBER_BITS == tag) {
            p->number = (entry & TN_INDEX_NUMBER) - 1;
            return tn_slab_at(&p->shelf->slab, p->number);
        }
        at = (at + 1) & mask;
    }
    return NULL;
}

static void fetch_row(const tn_row *row, uint32_t stride)
{
    const char *line = (const char *)row - (uintptr_t)row % TN_CACHE_LINE;
    const char *end = (const char *)row + stride;
    for (uint32_t i = 0; i < FETCH_LINES_MAX && line < end; i++) {
        __builtin_prefetch(line, 1);
        line += TN_CACHE_LINE;
    }
}

void tn_look_up(const tn_table *t, const tn_keyset *keys, tn_range run, bool mark, tn_row **row)
{
    probe probes[TN_LOOK_KEYS];
    TN_ASSERT(run.to - run.from <= TN_LOOK_KEYS);
    fetch_index(t, keys, run, probes);
    for (uint32_t i = 0; i < run.to - run.from; i++) {
        row[i] = likely_row(&probes[i]);
        if (row[i] != NULL) {
            fetch_row(row[i], probes[i].shelf->slab.stride);
        }
    }
    for (uint32_t i = 0; i < run.to - run.from; i++) {
        uint64_t key = keys->key[run.from + i];
        uint16_t group = keys->group[run.from + i];
        probe *p = &probes[i];
        if (row[i] != NULL && (tn_row_key(row[i]) != key || row[i]->group != group)) {
            row[i] = tn_shelf_find(p->shelf, key, group, &p->number);
        }
        if (row[i] != NULL && mark) {
            tn_shelf_mark(tn_shelf_of(t, key, group), p->number);
        }
    }
}

void tn_look_up_hinted(const tn_table *t, const tn_keyset *keys, tn_range run, tn_row *const *hint,
                       tn_row **row)
{
    uint32_t n = run.to - run.from;
    bool right = true;
    TN_ASSERT(n <= TN_LOOK_KEYS);
    for (uint32_t i = 0; i < n; i++) {
        row[i] = hint[run.from + i];
        fetch_row(row[i], tn_plan_of(t, keys->group[run.from + i])->stride);
    }
    for (uint32_t i = 0; i < n && right; i++) {
        uint32_t k = run.from + i;
        right = tn_row_key(row[i]) == keys->key[k] && row[i]->group == keys->group[k];
    }
    if (!right) {
        tn_look_up(t, keys, run, false, row);
    }
}

tn_range tn_tile_keys(const tn_keyset *keys, uint32_t tile)
{
    uint32_t from = tile * TN_TILE_PARTITIONS;
    return (tn_range){keys->first[from], keys->first[from + TN_TILE_PARTITIONS]};
}

static bool takes_part(const tn_keyset *keys, uint32_t partition, bool all)
{
    tn_range run = tn_keys_of_partition(keys, partition);
    return all || run.from < run.to;
}

void tn_tile_lock(const tn_table *t, const tn_keyset *keys, uint32_t tile, bool all)
{
    for (uint32_t i = 0; i < TN_TILE_PARTITIONS; i++) {
        __builtin_prefetch(&t->partition[tile * TN_TILE_PARTITIONS + i], 1);
    }
    for (uint32_t i = 0; i < TN_TILE_PARTITIONS; i++) {
        uint32_t p = tile * TN_TILE_PARTITIONS + i;
        if (takes_part(keys, p, all)) {
            pthread_mutex_lock(&t->partition[p].lock);
        }
    }
}

void tn_tile_unlock(const tn_table *t, const tn_keyset *keys, uint32_t tile, bool all)
{
    for (uint32_t i = 0; i < TN_TILE_PARTITIONS; i++) {
        uint32_t p = tile * TN_TILE_PARTITIONS + i;
        if (takes_part(keys, p, all)) {
            pthread_mutex_unlock(&t->partition[p].lock);
        }
    }
}
