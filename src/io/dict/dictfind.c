/* dictfind.c - from keys to rows, one at a time or several, so that their cache misses overlap. */
#include "base/keys/keyset.h" /* tn_partition_of */
#include "base/thread/range.h"
#include "io/dict/dictinside.h"

enum { AT_ONCE = 32, LINE = 64 };

/* ---- lazy checks ---- */

static tn_status touch_chunk(const tn_dict *d, uint64_t chunk, tn_error *err)
{
    uint8_t seen = atomic_load_explicit(&d->checked[chunk], memory_order_acquire);
    if (seen == 1) {
        return TN_OK;
    }
    tn_status status = tn_dict_check_chunk(d, chunk, err);
    atomic_store_explicit(&d->checked[chunk], status == TN_OK ? 1 : 2, memory_order_release);
    return status;
}

tn_status tn_dict_touch(const tn_dict *d, const void *at, size_t size, tn_error *err)
{
    if (d->verify != TN_VERIFY_LAZY || size == 0) {
        return TN_OK;
    }
    uint64_t from = (uint64_t)((const char *)at - d->map.data) - TN_DICT_HEADER;
    uint64_t last = (from + size - 1) >> TN_DICT_CHUNK_LOG;
    for (uint64_t c = from >> TN_DICT_CHUNK_LOG; c <= last; c++) {
        TN_TRY(touch_chunk(d, c, err));
    }
    return TN_OK;
}

/* ---- look-ups ---- */

/* The bucket of a key; false: the table cannot hold it. */
static bool bucket_of(const tn_dict_table *t, uint64_t key, uint32_t *out)
{
    uint64_t b = t->shift == TN_DICT_ONE_BUCKET ? 0 : (key - t->base) >> t->shift;
    *out = (uint32_t)b;
    return key >= t->base && b < t->buckets;
}

/* First place in [from, to) whose key is not below `key`; t's keys ascend there. No step depends on
 * a branch that could be guessed wrong. */
static uint32_t lower_bound(const tn_dict_table *t, uint32_t from, uint32_t to, uint64_t key)
{
    uint32_t n = to - from;
    if (n == 0) {
        return from;
    }
    while (n > 1) {
        uint32_t half = n / 2;
        from += half & -(uint32_t)(t->key[from + half - 1] < key);
        n -= half;
    }
    return from + (t->key[from] < key);
}

tn_status tn_dict_damaged(const tn_dict *d, const char *what, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "'%s' is damaged: %s of a table", d->what, what);
}

enum { KEYS_IN_LINE = LINE / 8, LINES_MAX = 4 };

/* Fetches what a search among these keys reads, all at once, and the groups beside them. */
static void fetch_keys(const tn_dict_table *t, uint32_t from, uint32_t to)
{
    if (t->group != NULL) {
        __builtin_prefetch(t->group + from);
    }
    for (uint32_t k = 0; k < LINES_MAX && from < to; k++) {
        __builtin_prefetch(t->key + from);
        from += KEYS_IN_LINE;
    }
}

/* Looks into one table; out->table stays NULL when there is nothing. */
static tn_status find_in(const tn_dict *d, const tn_dict_table *t, const tn_dict_query *q,
                         tn_dict_row *out, tn_error *err)
{
    uint32_t b = 0;
    if (!bucket_of(t, q->key, &b)) {
        return TN_OK;
    }
    TN_TRY(tn_dict_touch(d, t->start + b, 2 * sizeof *t->start, err));
    uint32_t from = t->start[b];
    uint32_t to = t->start[b + 1];
    if (from > to || to > t->rows) {
        return tn_dict_damaged(d, "buckets", err);
    }
    fetch_keys(t, from, to);
    TN_TRY(tn_dict_touch(d, t->key + from, (to - from) * sizeof *t->key, err));
    for (uint32_t i = lower_bound(t, from, to, q->key); i < to && t->key[i] == q->key; i++) {
        const char *row = t->row + (size_t)i * t->stride;
        __builtin_prefetch(row);
        if (t->group != NULL) {
            TN_TRY(tn_dict_touch(d, t->group + i, sizeof *t->group, err));
        }
        if (t->group == NULL || t->group[i] == q->group) {
            TN_TRY(tn_dict_touch(d, row, t->stride, err));
            *out = (tn_dict_row){t, t->removed ? NULL : row};
            return TN_OK;
        }
    }
    return TN_OK;
}

static bool has_partition(const tn_dict *d, uint64_t key)
{
    if (d->first == 0 && d->last == d->partitions - 1) {
        return true;
    }
    uint32_t p = tn_partition_of(key, d->partitions);
    return p >= d->first && p <= d->last;
}

static tn_status find_one(const tn_dict *d, const tn_dict_query *q, tn_dict_row *out, tn_error *err)
{
    TN_ASSERT(q->group < d->n_groups);
    const tn_dict_set_of_tables *g = &d->group[q->group];
    *out = (tn_dict_row){NULL, NULL};
    for (uint32_t i = 0; i < g->n && out->table == NULL && has_partition(d, q->key); i++) {
        TN_TRY(find_in(d, &d->table[g->table[i]], q, out, err));
    }
    return TN_OK;
}

tn_status tn_dict_find(const tn_dict *d, uint32_t group, uint64_t key, tn_dict_row *out,
                       tn_error *err)
{
    tn_dict_query q = {key, group};
    return find_one(d, &q, out, err);
}

/* The fullest table of the query's group, where most keys are; NULL: it cannot hold this one. */
static const tn_dict_table *likely(const tn_dict *d, const tn_dict_query *q, uint32_t *bucket)
{
    TN_ASSERT(q->group < d->n_groups);
    const tn_dict_set_of_tables *g = &d->group[q->group];
    const tn_dict_table *t = g->n > 0 ? &d->table[g->table[0]] : NULL;
    return t != NULL && bucket_of(t, q->key, bucket) ? t : NULL;
}

/* The keys of a bucket, if there is one and nothing is wrong with it. */
static bool keys_of(const tn_dict_table *t, uint32_t bucket, tn_range *out)
{
    if (t == NULL) {
        return false;
    }
    *out = (tn_range){t->start[bucket], t->start[bucket + 1]};
    return out->from < out->to && out->to <= t->rows;
}

/* A key between two passes: where it is in the fullest table of its group, if it is there. */
typedef struct guess {
    const tn_dict_table *table; /* NULL: that one cannot hold it */
    uint32_t bucket;
    uint32_t at; /* the first that is not below it, or .. */
    bool found;  /* .. it itself */
} guess;

/* Passes over some keys, so that their cache misses overlap: fetch the buckets, fetch their keys,
 * search them and fetch the rows. */
static void search(const tn_dict *d, uint32_t n, const tn_dict_query *query, guess *g)
{
    tn_range keys;
    for (uint32_t i = 0; i < n; i++) {
        g[i] = (guess){.table = NULL};
        g[i].table = likely(d, &query[i], &g[i].bucket);
        if (g[i].table != NULL) {
            __builtin_prefetch(g[i].table->start + g[i].bucket);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (keys_of(g[i].table, g[i].bucket, &keys)) {
            fetch_keys(g[i].table, keys.from, keys.to);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        const tn_dict_table *t = g[i].table;
        if (keys_of(t, g[i].bucket, &keys)) {
            g[i].at = lower_bound(t, keys.from, keys.to, query[i].key);
            g[i].found = g[i].at < keys.to && t->key[g[i].at] == query[i].key;
            if (g[i].found) {
                __builtin_prefetch(t->row + (size_t)g[i].at * t->stride);
            }
        }
    }
}

/* What the guess says for certain; false: look properly. */
static bool settle(const tn_dict *d, const tn_dict_query *q, const guess *g, tn_dict_row *out)
{
    const tn_dict_table *t = g->table;
    if (d->verify == TN_VERIFY_LAZY || t == NULL || !has_partition(d, q->key)) {
        return false;
    }
    if (!g->found) {
        tn_range keys;
        *out = (tn_dict_row){NULL, NULL};
        return d->group[q->group].n == 1 && keys_of(t, g->bucket, &keys);
    }
    if (t->group != NULL && t->group[g->at] != q->group) {
        return false;
    }
    *out = (tn_dict_row){t, t->removed ? NULL : t->row + (size_t)g->at * t->stride};
    return true;
}

/* At most AT_ONCE of them. */
static tn_status find_some(const tn_dict *d, uint32_t n, const tn_dict_query *query,
                           tn_dict_row *out, tn_error *err)
{
    guess g[AT_ONCE];
    TN_ASSERT(n <= AT_ONCE);
    search(d, n, query, g);
    for (uint32_t i = 0; i < n; i++) {
        if (!settle(d, &query[i], &g[i], &out[i])) {
            TN_TRY(find_one(d, &query[i], &out[i], err));
        }
    }
    return TN_OK;
}

tn_status tn_dict_find_all(const tn_dict *d, uint32_t n, const tn_dict_query *query,
                           tn_dict_row *out, tn_error *err)
{
    for (uint32_t from = 0; from < n; from += AT_ONCE) {
        uint32_t left = n - from;
        TN_TRY(
            find_some(d, left < AT_ONCE ? left : (uint32_t)AT_ONCE, query + from, out + from, err));
    }
    return TN_OK;
}
