/* lookup.c - many keys at once, so that their cache misses overlap; the rows of the last few
 * keysets, found by address, the oldest replaced.
 *
 *     pass 1   key -> hash, store, block: fetch the line of the index
 *     pass 2   probe by tag -> a likely row: fetch its lines
 *     pass 3   compare the key; one row in a hundred is another's, then look again alone
 */
#include "ps/table/tabledef.h"

#include "base/core/alloc.h"

enum {
    FETCH_LINES_MAX = 8, /* the hardware sees the rest coming */
    STORES_FETCHED = 4 * TN_TILE_PARTITIONS,
};

/* A key between two passes. */
typedef struct probe {
    const tn_row_store *store; /* the store of whole rows */
    uint32_t hash;
    uint32_t entry; /* 0: no row has this tag */
} probe;

static void fetch_index(const tn_table *t, const tn_keyset *keys, tn_range run, probe *probes)
{
    const uint64_t *key = keys->key + run.from;
    const uint16_t *group = keys->group + run.from;
    const tn_share_group *groups = t->layout->group;
    const tn_row_store *stores = t->stores;
    const uint32_t n = run.to - run.from;
    const size_t n_plans = t->n_plans;
    for (uint32_t i = 0; i < n; i++) {
        size_t record = n_plans == 1 ? 0 : groups[group[i]].record;
        const tn_row_store *store =
            &stores[tn_partition_of(key[i], TN_PARTITIONS) * n_plans + record];
        uint32_t hash = tn_index_hash(key[i]);
        tn_index_fetch(&store->index, hash);
        probes[i].store = store;
        probes[i].hash = hash;
    }
}

static inline void fetch_row(const tn_row *row, uint32_t stride)
{
    const char *line = (const char *)row - (uintptr_t)row % TN_CACHE_LINE;
    const char *end = (const char *)row + stride;
    for (uint32_t i = 0; i < FETCH_LINES_MAX && line < end; i++) {
        __builtin_prefetch(line, 1);
        line += TN_CACHE_LINE;
    }
}

/* The entry of the first row that has the key's tag: that of the key, or in one case of a hundred
 * another's. 0: the key has no row. */
static inline uint32_t index_likely(const tn_index *x, uint32_t hash)
{
    const tn_index_block *b = tn_index_block_of(x, hash);
    if (b == NULL) {
        return 0;
    }
    uint32_t tag = tn_index_tag(hash);
    uint32_t at = hash & x->mask;
    uint32_t entry = b->entry[at];
    while (entry != 0 && entry >> TN_INDEX_TAG_SHIFT != tag) {
        at = (at + 1) & x->mask;
        entry = b->entry[at];
    }
    return entry;
}

/* `waits`: some of them may. */
static inline __attribute__((always_inline)) void fetch_rows(probe *probes, uint32_t n, bool waits,
                                                             tn_row **row)
{
    for (uint32_t i = 0; i < n; i++) {
        const tn_row_store *store = probes[i].store;
        const uint32_t entry = index_likely(&store->index, probes[i].hash);
        probes[i].entry = entry;
        row[i] = NULL;
        if (entry != 0) {
            store = waits ? tn_row_store_of_entry(store, entry) : store;
            row[i] = tn_slab_at(&store->slab, (entry & TN_INDEX_NUMBER) - 1);
            fetch_row(row[i], store->slab.stride);
        }
    }
}

uint64_t tn_look_up(const tn_table *t, const tn_keyset *keys, tn_range run, bool mark, tn_row **row)
{
    uint64_t lacks = 0;
    probe probes[TN_LOOK_KEYS];
    const uint64_t *key = keys->key + run.from;
    const uint16_t *group = keys->group + run.from;
    const uint32_t n = run.to - run.from;
    TN_ASSERT(n <= TN_LOOK_KEYS);
    fetch_index(t, keys, run, probes);
    if (t->waits) {
        fetch_rows(probes, n, true, row);
    } else {
        fetch_rows(probes, n, false, row);
    }
    for (uint32_t i = 0; i < n; i++) {
        probe *p = &probes[i];
        if (row[i] != NULL && !tn_row_is(row[i], key[i], group[i])) {
            row[i] = tn_row_store_find(p->store, key[i], group[i], &p->entry);
        }
        if (row[i] == NULL) {
            lacks |= UINT64_C(1) << i;
        } else if (mark) {
            tn_row_store *store = tn_row_store_of(t, key[i], group[i]);
            store += tn_row_waits(row[i]) ? store->apart : 0;
            tn_row_store_mark(store, (p->entry & TN_INDEX_NUMBER) - 1);
        }
    }
    return lacks;
}

uint64_t tn_look_up_hinted(const tn_table *t, const tn_keyset *keys, tn_range run,
                           tn_row *const *hint, tn_row **row)
{
    uint64_t lacks = 0;
    const uint64_t *key = keys->key + run.from;
    const uint16_t *group = keys->group + run.from;
    const tn_share_group *groups = t->layout->group;
    const tn_plan *plan = t->plan;
    const uint32_t n = run.to - run.from;
    TN_ASSERT(n <= TN_LOOK_KEYS);
    for (uint32_t i = 0; i < n; i++) {
        row[i] = hint[run.from + i];
        if (row[i] != NULL) {
            fetch_row(row[i], plan[groups[group[i]].record].stride);
        } else {
            lacks |= UINT64_C(1) << i;
        }
    }
    bool right = lacks == 0 || t->admits;
    for (uint32_t i = 0; i < n && right; i++) {
        right = row[i] == NULL || tn_row_is(row[i], key[i], group[i]);
    }
    return right ? lacks : tn_look_up(t, keys, run, false, row);
}

/* ---- where rows were ---- */

void tn_row_positions_init(tn_row_positions *h)
{
    int failure = pthread_mutex_init(&h->lock, NULL);
    TN_ASSERT(failure == 0);
}

void tn_row_positions_done(tn_row_positions *h)
{
    for (uint32_t i = 0; i < TN_ROW_POSITIONS_MAX; i++) {
        TN_ASSERT(!h->hint[i].busy);
        tn_free(h->hint[i].row);
    }
    pthread_mutex_destroy(&h->lock);
}

void tn_row_positions_forget(tn_row_positions *h)
{
    for (uint32_t i = 0; i < TN_ROW_POSITIONS_MAX; i++) {
        TN_ASSERT(!h->hint[i].busy);
        h->hint[i].keys = NULL;
    }
}

static tn_keyset_rows *find_hint(tn_row_positions *h, const tn_keyset *keys)
{
    for (uint32_t i = 0; i < TN_ROW_POSITIONS_MAX; i++) {
        if (h->hint[i].keys == keys) {
            return &h->hint[i];
        }
    }
    return NULL;
}

/* The one that was not used for longest, or NULL if all are busy. */
static tn_keyset_rows *oldest_hint(tn_row_positions *h)
{
    tn_keyset_rows *best = NULL;
    for (uint32_t i = 0; i < TN_ROW_POSITIONS_MAX; i++) {
        tn_keyset_rows *x = &h->hint[i];
        if (!x->busy && (best == NULL || x->age < best->age)) {
            best = x;
        }
    }
    return best;
}

/* Marks a hint as used now; NULL if another thread has it. */
static tn_keyset_rows *claim(tn_row_positions *h, tn_keyset_rows *x)
{
    if (x == NULL || x->busy) {
        return NULL;
    }
    x->busy = true;
    x->age = ++h->age;
    return x;
}

tn_status tn_row_positions_write(tn_row_positions *h, const tn_keyset *keys, tn_keyset_rows **out,
                                 tn_error *err)
{
    pthread_mutex_lock(&h->lock);
    tn_keyset_rows *known = find_hint(h, keys);
    tn_keyset_rows *x = claim(h, known != NULL ? known : oldest_hint(h));
    if (x != NULL) {
        x->keys = keys;
        x->n = keys->n;
    }
    pthread_mutex_unlock(&h->lock);
    *out = x;
    if (x == NULL || x->rows_max >= keys->n) {
        return TN_OK;
    }
    uint32_t most = keys->n + keys->n / 4;
    tn_row **row = tn_try_alloc(most, sizeof(void *), "the rows of a batch", err);
    if (row == NULL) {
        *out = NULL;
        tn_row_positions_release(h, x, false);
        return TN_E_MEMORY;
    }
    tn_free(x->row);
    x->row = row;
    x->rows_max = most;
    return TN_OK;
}

tn_keyset_rows *tn_row_positions_read(tn_row_positions *h, const tn_keyset *keys)
{
    pthread_mutex_lock(&h->lock);
    tn_keyset_rows *x = find_hint(h, keys);
    x = x != NULL && x->n == keys->n ? claim(h, x) : NULL;
    pthread_mutex_unlock(&h->lock);
    return x;
}

void tn_row_positions_release(tn_row_positions *h, tn_keyset_rows *hint, bool good)
{
    if (hint == NULL) {
        return;
    }
    pthread_mutex_lock(&h->lock);
    TN_ASSERT(hint->busy);
    hint->busy = false;
    hint->keys = good ? hint->keys : NULL;
    pthread_mutex_unlock(&h->lock);
}

/* ---- the locks and ways of a tile ---- */

static bool takes_part(const tn_keyset *keys, uint32_t partition, bool all)
{
    tn_range run = tn_keys_of_partition(keys, partition);
    return all || run.from < run.to;
}

void tn_tile_lock(const tn_table *t, const tn_keyset *keys, uint32_t tile, bool all)
{
    uint32_t n_stores = TN_TILE_PARTITIONS * t->n_plans;
    for (uint32_t i = 0; i < TN_TILE_PARTITIONS; i++) {
        __builtin_prefetch(&t->partition[tile * TN_TILE_PARTITIONS + i], 1);
    }
    for (uint32_t i = 0; i < n_stores && i < STORES_FETCHED; i++) {
        __builtin_prefetch(&t->stores[(size_t)tile * n_stores + i]);
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

/* A partition's directory and list of chunks, if its keys are worth all of them. */
static void fetch_ways(const tn_row_store *s, uint32_t n_keys)
{
    const size_t in_line = TN_CACHE_LINE / sizeof(void *);
    size_t blocks = s->index.directory != NULL ? (size_t)1 << s->index.depth : 0;
    size_t chunks = s->slab.n_chunks;
    if ((blocks + chunks) / in_line > n_keys) {
        return;
    }
    for (size_t i = 0; i < blocks; i += in_line) {
        __builtin_prefetch(&s->index.directory[i]);
    }
    for (size_t i = 0; i < chunks; i += in_line) {
        __builtin_prefetch(&s->slab.chunk[i]);
    }
}

void tn_tile_fetch(const tn_table *t, const tn_keyset *keys, uint32_t tile)
{
    for (uint32_t p = tile * TN_TILE_PARTITIONS; p < (tile + 1) * TN_TILE_PARTITIONS; p++) {
        tn_range run = tn_keys_of_partition(keys, p);
        for (uint32_t r = 0; r < t->n_plans && run.from < run.to; r++) {
            fetch_ways(&t->partition[p].store[r], run.to - run.from);
        }
    }
}
