/* dict.c - opening a dictionary, and finding its rows; bytes in dictformat.h.
 *
 * The checks come first: nothing in the file is believed before. Keys are looked up one at a time
 * or several together, so that their cache misses overlap.
 */
#include "dict/dict.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/bytes.h"
#include "base/file/file.h"
#include "base/keys/record.h"
#include "base/math/crc32c.h"
#include "base/thread/range.h"
#include "dict/dictvalue.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct tn_dict_table {
    const uint32_t *start;
    const uint64_t *key;
    const char *row;
    const uint16_t *group; /* NULL: not stored */
    tn_dict_table_head head;
};

struct tn_dict {
    tn_map map;
    tn_arena *arena;
    const char *what; /* path, for messages */
    tn_verify verify;
    uint32_t partitions;
    tn_dict_header head;
    tn_dict_group_head *group; /* n_groups */
    tn_dict_table *table;      /* n_tables */
    _Atomic(uint8_t) *checked; /* per chunk, lazy: 0 not yet, 1 good, 2 bad */
};

enum { AT_ONCE = 32, LINE = 64, KEYS_IN_LINE = LINE / sizeof(uint64_t), LINES_MAX = 4 };

/* A key between two passes: its place in the fullest table of its group. */
typedef struct guess {
    const tn_dict_table *table; /* NULL: that one cannot hold it */
    uint32_t bucket;
    uint32_t at; /* position of the first key that is not below this one */
    bool found;  /* the key at that position is this one */
} guess;

static tn_status bad(const tn_dict *d, const char *what, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "'%s' is damaged or no dictionary: %s", d->what, what);
}

static tn_status check_header(tn_dict *d, tn_error *err)
{
    tn_dict_header *h = &d->head;
    if (d->map.size >= sizeof *h) {
        memcpy(h, d->map.data, sizeof *h);
    }
    if (h->magic != TN_DICT_MAGIC) {
        return tn_fail(err, TN_E_CKPT, "'%s' is no dictionary", d->what);
    }
    if (h->crc != tn_crc32c(0, h, offsetof(tn_dict_header, crc))) {
        return bad(d, "crc of the header", err);
    }
    if (h->major != 1 || h->header_bytes != sizeof *h) {
        return tn_fail(err, TN_E_CKPT, "'%s' is a dictionary of version %u, this program reads 1",
                       d->what, h->major);
    }
    if ((h->flags & ~(uint32_t)(TN_DICT_DELTA | TN_DICT_GROUP_ARRAYS)) != 0) {
        return bad(d, "flags that nobody knows", err);
    }
    d->partitions = h->partitions == 0 ? UINT16_MAX + 1U : h->partitions;
    if (h->chunk_log != TN_DICT_CHUNK_LOG || h->file_bytes != d->map.size) {
        return bad(d, "size", err);
    }
    if (h->first > h->last || h->last >= d->partitions) {
        return bad(d, "partitions", err);
    }
    return TN_OK;
}

/* Returns whether `count` things of `size` bytes fit between header and checksums, aligned. */
static bool inside(const tn_dict *d, uint64_t at, uint64_t count, uint64_t size, uint64_t align)
{
    uint64_t bytes = 0;
    return !__builtin_mul_overflow(count, size, &bytes) && at >= sizeof(tn_dict_header) &&
           at % align == 0 && at <= d->head.crc_at && bytes <= d->head.crc_at - at;
}

/* Checks that the parts which the header names follow one another. */
static tn_status check_parts(const tn_dict *d, tn_error *err)
{
    if (d->head.n_groups > TN_GROUPS_MAX || d->head.n_tables > TN_DICT_TABLES_MAX ||
        d->head.json_bytes > TN_DICT_JSON_MAX) {
        return tn_fail(err, TN_E_LIMIT, "'%s': more than %d groups, %d tables or %d bytes of JSON",
                       d->what, TN_GROUPS_MAX, TN_DICT_TABLES_MAX, TN_DICT_JSON_MAX);
    }
    uint64_t data = d->head.crc_at - sizeof(tn_dict_header);
    if (d->head.crc_at < sizeof(tn_dict_header) || d->head.crc_at > d->map.size ||
        d->head.crc_at % TN_DICT_ALIGN != 0 ||
        d->head.n_crcs != data / TN_DICT_CHUNK + (data % TN_DICT_CHUNK != 0) ||
        d->map.size - d->head.crc_at != ((uint64_t)d->head.n_crcs + 1) * sizeof(uint32_t)) {
        return bad(d, "place of the crcs", err);
    }
    uint64_t heads = (uint64_t)d->head.n_groups * sizeof(tn_dict_group_head) +
                     (uint64_t)d->head.n_tables * sizeof(tn_dict_table_head);
    if (!inside(d, d->head.groups_at, 1, heads, 8) ||
        d->head.names_at < d->head.groups_at + heads || d->head.json_at < d->head.names_at ||
        !inside(d, d->head.json_at, d->head.json_bytes, 1, 1)) {
        return bad(d, "place of groups, tables or names", err);
    }
    const char *crcs = d->map.data + d->head.crc_at;
    size_t size = (size_t)d->head.n_crcs * sizeof(uint32_t);
    if (tn_load_u32(crcs + size) != tn_crc32c(0, crcs, size)) {
        return bad(d, "crc of the crcs", err);
    }
    return TN_OK;
}

static tn_status check_chunk(const tn_dict *d, uint64_t chunk, tn_error *err)
{
    uint64_t from = sizeof(tn_dict_header) + chunk * TN_DICT_CHUNK;
    uint64_t left = d->head.crc_at - from;
    size_t size = left < TN_DICT_CHUNK ? (size_t)left : (size_t)TN_DICT_CHUNK;
    uint32_t want = tn_load_u32(d->map.data + d->head.crc_at + chunk * sizeof(uint32_t));
    uint32_t is = tn_crc32c(0, d->map.data + from, size);
    if (want != is) {
        return tn_fail(err, TN_E_CKPT, "'%s':@%llu: error: damaged (crc %08x, computed %08x)",
                       d->what, (unsigned long long)from, want, is);
    }
    return TN_OK;
}

/* Checks the header, the places of its parts, and the checksums that `verify` asks for. */
static tn_status check_head(tn_dict *d, tn_error *err)
{
    TN_TRY(check_header(d, err));
    TN_TRY(check_parts(d, err));
    uint64_t heads_end = d->head.json_at + d->head.json_bytes - sizeof(tn_dict_header);
    uint64_t chunks = d->verify == TN_VERIFY_FULL ? d->head.n_crcs
                      : d->verify == TN_VERIFY_LAZY
                          ? (heads_end + TN_DICT_CHUNK - 1) / TN_DICT_CHUNK
                          : 0;
    for (uint64_t i = 0; i < chunks; i++) {
        TN_TRY(check_chunk(d, i, err));
    }
    return TN_OK;
}

static const char *name_of(const tn_dict *d, uint32_t group)
{
    return d->map.data + d->head.names_at + d->group[group].name_at;
}

static tn_status check_group(const tn_dict *d, uint32_t group, tn_error *err)
{
    const tn_dict_group_head *g = &d->group[group];
    uint64_t name_at = d->head.names_at + g->name_at;
    if (name_at >= d->head.json_at || g->name_bytes >= d->head.json_at - name_at ||
        memchr(name_of(d, group), 0, (size_t)g->name_bytes + 1) !=
            name_of(d, group) + g->name_bytes) {
        return bad(d, "name of a group", err);
    }
    bool good = g->n_tables <= TN_DICT_GROUP_TABLES && g->zero == 0;
    for (uint32_t i = 0; good && i < g->n_tables; i++) {
        good = g->table[i] < d->head.n_tables;
    }
    return good ? TN_OK : bad(d, "tables of a group", err);
}

/* Makes pointers of offsets, which are multiples of 64 in a mapping, so they are aligned. */
static tn_status place_arrays(const tn_dict *d, tn_dict_table *t, tn_error *err)
{
    const tn_dict_table_head *h = &t->head;
    const bool groups = (d->head.flags & TN_DICT_GROUP_ARRAYS) != 0;
    if (!inside(d, h->start_at, (uint64_t)h->buckets + 1, sizeof(uint32_t), TN_DICT_ALIGN) ||
        !inside(d, h->key_at, h->rows, sizeof(uint64_t), TN_DICT_ALIGN) ||
        !inside(d, h->rows_at, h->rows, h->stride, TN_DICT_ALIGN) || (h->group_at != 0) != groups ||
        (groups && !inside(d, h->group_at, h->rows, sizeof(uint16_t), TN_DICT_ALIGN))) {
        return bad(d, "place of a table", err);
    }
    const char *base = d->map.data;
    t->start = (const uint32_t *)(const void *)(base + h->start_at);
    t->key = (const uint64_t *)(const void *)(base + h->key_at);
    t->row = base + h->rows_at;
    t->group = groups ? (const uint16_t *)(const void *)(base + h->group_at) : NULL;
    return TN_OK;
}

static tn_status check_segment(const tn_dict *d, const tn_dict_table_head *t, uint32_t i,
                               tn_error *err)
{
    const tn_dict_segment_head *s = &t->segment[i];
    if (s->type >= TN_DICT_TYPES) {
        return bad(d, "values of a kind that this program does not know", err);
    }
    if (s->dim == 0 || s->dim > TN_DIM_MAX || s->segment >= TN_SEGMENTS_MAX) {
        return bad(d, "segment of a table", err);
    }
    const bool scaled = tn_dict_is_scaled((tn_dict_type)s->type);
    uint64_t end = (uint64_t)s->offset + tn_dict_bytes((tn_dict_type)s->type, s->dim);
    if (s->offset % 4 != 0 || end > t->stride || scaled != (s->scale != TN_DICT_NO_SCALE) ||
        (scaled && (s->scale % 4 != 0 || (uint64_t)s->scale + 4 > t->stride))) {
        return bad(d, "place of a segment", err);
    }
    for (uint32_t k = 0; k < i; k++) {
        if (t->segment[k].segment == s->segment) {
            return bad(d, "a segment stands twice", err);
        }
    }
    return TN_OK;
}

static tn_status check_table_head(const tn_dict *d, tn_dict_table *t, tn_error *err)
{
    const tn_dict_table_head *h = &t->head;
    bool delta = (d->head.flags & TN_DICT_DELTA) != 0;
    if (h->rows > UINT32_MAX || h->buckets == 0 || h->shift > TN_DICT_ONE_BUCKET ||
        (h->shift == TN_DICT_ONE_BUCKET && h->buckets != 1) || h->n_segments > TN_DICT_SEGMENTS ||
        h->stride % 4 != 0 || h->kind > TN_DICT_REMOVED ||
        (h->kind == TN_DICT_REMOVED && (!delta || h->stride != 0))) {
        return bad(d, "head of a table", err);
    }
    TN_TRY(place_arrays(d, t, err));
    for (uint32_t i = 0; i < h->n_segments; i++) {
        TN_TRY(check_segment(d, h, i, err));
    }
    return TN_OK;
}

/* Fills d->group and d->table, which have room. */
static tn_status read_heads(tn_dict *d, tn_error *err)
{
    const char *at = d->map.data + d->head.groups_at;
    memcpy(d->group, at, d->head.n_groups * sizeof *d->group);
    at += d->head.n_groups * sizeof *d->group;
    for (uint32_t g = 0; g < d->head.n_groups; g++) {
        TN_TRY(check_group(d, g, err));
    }
    for (uint32_t i = 0; i < d->head.n_tables; i++, at += sizeof(tn_dict_table_head)) {
        memcpy(&d->table[i].head, at, sizeof(tn_dict_table_head));
        TN_TRY(check_table_head(d, &d->table[i], err));
    }
    return TN_OK;
}

/* Checks that keys and starts ascend, and that every key lies in its bucket. */
static tn_status check_table(const tn_dict *d, const tn_dict_table *t, tn_error *err)
{
    if (t->start[0] != 0 || t->start[t->head.buckets] != t->head.rows ||
        (t->head.rows > 0 && t->key[0] < t->head.key_base)) {
        return bad(d, "buckets of a table", err);
    }
    for (uint32_t b = 0; b < t->head.buckets; b++) {
        if (t->start[b] > t->start[b + 1] || t->start[b + 1] > t->head.rows) {
            return bad(d, "buckets of a table", err);
        }
    }
    for (uint64_t i = 0; i < t->head.rows; i++) {
        if ((i > 0 && t->key[i] < t->key[i - 1]) ||
            (t->group != NULL && t->group[i] >= d->head.n_groups)) {
            return bad(d, "keys of a table", err);
        }
        uint64_t b = t->head.shift == TN_DICT_ONE_BUCKET
                         ? 0
                         : (t->key[i] - t->head.key_base) >> t->head.shift;
        if (b >= t->head.buckets || i < t->start[b] || i >= t->start[b + 1]) {
            return bad(d, "a key outside its bucket", err);
        }
    }
    return TN_OK;
}

static tn_status open_heads(tn_dict *d, const char *path, tn_error *err)
{
    size_t size = strlen(path) + 1;
    TN_TRY(tn_arena_open(&d->arena, size, "a dictionary", err));
    d->what = memcpy(TN_NEW_ARRAY(d->arena, char, size), path, size);
    TN_TRY(tn_map_file(&d->map, path, err));
    TN_TRY(check_head(d, err));
    const tn_dict_header *h = &d->head;
    size_t bytes = h->n_groups * sizeof *d->group + h->n_tables * sizeof *d->table + h->n_crcs;
    TN_TRY(tn_arena_reserve(d->arena, bytes + TN_CACHE_LINE, "a dictionary", err));
    d->group = TN_NEW_ARRAY(d->arena, tn_dict_group_head, h->n_groups);
    d->table = TN_NEW_ARRAY(d->arena, tn_dict_table, h->n_tables);
    d->checked = tn_arena_alloc(d->arena, h->n_crcs, sizeof *d->checked, 1);
    TN_TRY(read_heads(d, err));
    uint64_t rows = 0;
    if (d->verify != TN_VERIFY_FULL) {
        return TN_OK;
    }
    for (uint32_t i = 0; i < h->n_tables; i++) {
        TN_TRY(check_table(d, &d->table[i], err));
        rows += d->table[i].head.rows;
    }
    return rows == h->rows ? TN_OK : bad(d, "number of rows", err);
}

void tn_dict_close(tn_dict *d)
{
    if (d == NULL) {
        return;
    }
    tn_unmap(&d->map);
    tn_arena_free(d->arena);
    tn_free(d);
}

tn_status tn_dict_open(tn_dict **out, const char *path, tn_verify verify, tn_error *err)
{
    *out = NULL;
    tn_dict *d = NULL;
    TN_TRY(TN_ALLOC(d, 1, "a dictionary", err));
    d->verify = verify;
    tn_status status = open_heads(d, path, err);
    if (status != TN_OK) {
        tn_dict_close(d);
        return status;
    }
    *out = d;
    return TN_OK;
}

const tn_dict_header *tn_dict_head(const tn_dict *d)
{
    return &d->head;
}

const tn_dict_table_head *tn_dict_table_at(const tn_dict *d, uint32_t i)
{
    TN_ASSERT(i < d->head.n_tables);
    return &d->table[i].head;
}

uint32_t tn_dict_table_number(const tn_dict *d, const tn_dict_table *t)
{
    TN_ASSERT(t >= d->table && t < d->table + d->head.n_tables);
    return (uint32_t)(t - d->table);
}

const char *tn_dict_json(const tn_dict *d)
{
    return d->map.data + d->head.json_at;
}

void tn_dict_hex(const uint8_t *model_id, char out[TN_MODEL_HEX])
{
    for (size_t i = 0; i < TN_MODEL_ID_BYTES; i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", model_id[i]);
    }
}

uint32_t tn_dict_group(const tn_dict *d, const char *name)
{
    for (uint32_t g = 0; g < d->head.n_groups; g++) {
        if (strcmp(name_of(d, g), name) == 0) {
            return g;
        }
    }
    return TN_DICT_NO_GROUP;
}

const char *tn_dict_group_name(const tn_dict *d, uint32_t group)
{
    TN_ASSERT(group < d->head.n_groups);
    return name_of(d, group);
}

uint64_t tn_dict_salt(const tn_dict *d, uint32_t group)
{
    TN_ASSERT(group < d->head.n_groups);
    return d->group[group].salt;
}

bool tn_dict_get(const tn_dict_row *row, uint32_t segment, uint32_t dim, float *w)
{
    const tn_dict_table *t = row->at != NULL ? row->table : NULL;
    for (uint32_t i = 0; t != NULL && i < t->head.n_segments; i++) {
        const tn_dict_segment_head *s = &t->head.segment[i];
        if (s->segment == segment && s->dim == dim) {
            float scale = s->scale != TN_DICT_NO_SCALE ? tn_load_f32(row->at + s->scale) : 1;
            tn_dict_decode((tn_dict_type)s->type, dim, row->at + s->offset, scale, w);
            return true;
        }
    }
    memset(w, 0, dim * sizeof *w);
    return false;
}

uint32_t tn_dict_floats(const tn_dict_table *t, const tn_record *record, const uint32_t *segment)
{
    uint32_t begin = TN_DICT_NO_FLOATS;
    for (uint32_t k = 0; k < record->n_segments; k++) {
        const tn_dict_segment_head *s = t->head.segment;
        const tn_dict_segment_head *end = s + t->head.n_segments;
        while (s < end && s->segment != segment[k]) {
            s++;
        }
        if (s == end || s->type != TN_DICT_F32 || s->dim != record->segment[k].dim ||
            s->offset < record->segment[k].at * sizeof(float)) {
            return TN_DICT_NO_FLOATS;
        }
        uint32_t from = s->offset - record->segment[k].at * (uint32_t)sizeof(float);
        if (k > 0 && from != begin) {
            return TN_DICT_NO_FLOATS;
        }
        begin = from;
    }
    return begin;
}

static tn_status touch_chunk(const tn_dict *d, uint64_t chunk, tn_error *err)
{
    uint8_t seen = atomic_load_explicit(&d->checked[chunk], memory_order_acquire);
    if (seen == 1) {
        return TN_OK;
    }
    tn_status status = check_chunk(d, chunk, err);
    atomic_store_explicit(&d->checked[chunk], status == TN_OK ? 1 : 2, memory_order_release);
    return status;
}

/* Checks what is about to be read, when `verify` is lazy. */
static tn_status touch(const tn_dict *d, const void *at, size_t size, tn_error *err)
{
    if (d->verify != TN_VERIFY_LAZY || size == 0) {
        return TN_OK;
    }
    uint64_t from = (uint64_t)((const char *)at - d->map.data) - sizeof(tn_dict_header);
    uint64_t last = (from + size - 1) >> TN_DICT_CHUNK_LOG;
    for (uint64_t c = from >> TN_DICT_CHUNK_LOG; c <= last; c++) {
        TN_TRY(touch_chunk(d, c, err));
    }
    return TN_OK;
}

/* TN_E_CKPT: `what` of a table cannot be. */
static tn_status damaged_table(const tn_dict *d, const char *what, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "'%s' is damaged: %s of a table", d->what, what);
}

static tn_dict_row row_at(const tn_dict_table *t, uint64_t i)
{
    bool removed = t->head.kind == TN_DICT_REMOVED;
    return (tn_dict_row){t, removed ? NULL : t->row + (size_t)i * t->head.stride};
}

tn_status tn_dict_walk(const tn_dict *d, tn_dict_each *each, void *arg, tn_error *err)
{
    for (uint32_t i = 0; i < d->head.n_tables; i++) {
        const tn_dict_table *t = &d->table[i];
        TN_TRY(touch(d, t->key, (size_t)t->head.rows * sizeof *t->key, err));
        TN_TRY(touch(d, t->row, (size_t)t->head.rows * t->head.stride, err));
        TN_TRY(touch(d, t->group, t->group != NULL ? (size_t)t->head.rows * sizeof *t->group : 0,
                     err));
        for (uint64_t k = 0; k < t->head.rows; k++) {
            tn_dict_item item = {
                .key = t->key[k],
                .group = t->group != NULL ? t->group[k] : TN_DICT_NO_GROUP,
                .row = row_at(t, k),
            };
            if (t->group != NULL && item.group >= d->head.n_groups) {
                return damaged_table(d, "groups", err);
            }
            TN_TRY(each(arg, &item, err));
        }
    }
    return TN_OK;
}

/* The bucket of a key; false: the table cannot hold it. */
static bool bucket_of(const tn_dict_table *t, uint64_t key, uint32_t *out)
{
    uint64_t b =
        t->head.shift == TN_DICT_ONE_BUCKET ? 0 : (key - t->head.key_base) >> t->head.shift;
    *out = (uint32_t)b;
    return key >= t->head.key_base && b < t->head.buckets;
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
    TN_TRY(touch(d, t->start + b, 2 * sizeof *t->start, err));
    uint32_t from = t->start[b];
    uint32_t to = t->start[b + 1];
    if (from > to || to > t->head.rows) {
        return damaged_table(d, "buckets", err);
    }
    fetch_keys(t, from, to);
    TN_TRY(touch(d, t->key + from, (to - from) * sizeof *t->key, err));
    for (uint32_t i = lower_bound(t, from, to, q->key); i < to && t->key[i] == q->key; i++) {
        const char *row = t->row + (size_t)i * t->head.stride;
        __builtin_prefetch(row);
        if (t->group != NULL) {
            TN_TRY(touch(d, t->group + i, sizeof *t->group, err));
        }
        if (t->group == NULL || t->group[i] == q->group) {
            TN_TRY(touch(d, row, t->head.stride, err));
            *out = row_at(t, i);
            return TN_OK;
        }
    }
    return TN_OK;
}

static bool has_partition(const tn_dict *d, uint64_t key)
{
    if (d->head.first == 0 && d->head.last == d->partitions - 1) {
        return true;
    }
    uint32_t p = tn_partition_of(key, d->partitions);
    return p >= d->head.first && p <= d->head.last;
}

static tn_status find_one(const tn_dict *d, const tn_dict_query *q, tn_dict_row *out, tn_error *err)
{
    TN_ASSERT(q->group < d->head.n_groups);
    const tn_dict_group_head *g = &d->group[q->group];
    *out = (tn_dict_row){NULL, NULL};
    for (uint32_t i = 0; i < g->n_tables && out->table == NULL && has_partition(d, q->key); i++) {
        TN_TRY(find_in(d, &d->table[g->table[i]], q, out, err));
    }
    return TN_OK;
}

/* The fullest table of the query's group, where most keys are; NULL: it cannot hold this one. */
static const tn_dict_table *likely(const tn_dict *d, const tn_dict_query *q, uint32_t *bucket)
{
    TN_ASSERT(q->group < d->head.n_groups);
    const tn_dict_group_head *g = &d->group[q->group];
    const tn_dict_table *t = g->n_tables > 0 ? &d->table[g->table[0]] : NULL;
    return t != NULL && bucket_of(t, q->key, bucket) ? t : NULL;
}

/* The keys of a bucket, if there is one and nothing is wrong with it. */
static bool keys_of(const tn_dict_table *t, uint32_t bucket, tn_range *out)
{
    if (t == NULL) {
        return false;
    }
    *out = (tn_range){t->start[bucket], t->start[bucket + 1]};
    return out->from < out->to && out->to <= t->head.rows;
}

enum { CROWD = 64 }; /* keys in a bucket, four times what is written */

/* Estimates the position of a key among those of its bucket. Keys are hashes, which lie evenly, so
 * it is hardly two positions off. */
static uint32_t place_of(const tn_dict_table *t, tn_range keys, uint64_t key)
{
    const uint32_t low = TN_DICT_ONE_BUCKET - t->head.shift;
    const uint64_t part = low < TN_DICT_ONE_BUCKET ? (key - t->head.key_base) << low : 0;
    return keys.from + (uint32_t)((part >> 32) * (keys.to - keys.from) >> 32);
}

/* lower_bound of a bucket, from a place that is likely. */
static uint32_t lower_bound_from(const tn_dict_table *t, tn_range keys, uint32_t at, uint64_t key)
{
    if (keys.to - keys.from > CROWD) {
        return lower_bound(t, keys.from, keys.to, key);
    }
    while (at < keys.to && t->key[at] < key) {
        at++;
    }
    while (at > keys.from && t->key[at - 1] >= key) {
        at--;
    }
    return at;
}

/* Fetches what a search from there reads, mostly: of two lines of keys in three, one. */
static void fetch_place(const tn_dict_table *t, uint32_t at)
{
    __builtin_prefetch(t->key + (at > 1 ? at - 2 : 0));
    __builtin_prefetch(t->key + at + 1);
    if (t->group != NULL) {
        __builtin_prefetch(t->group + at);
    }
}

/* All of a row that is not too long: it may lie in two lines, and a row of 36 bytes does half of
 * the time. */
static void fetch_row(const char *row, uint32_t size)
{
    for (uint32_t k = 0; k < LINES_MAX * LINE && k < size; k += LINE) {
        __builtin_prefetch(row + k);
    }
    if (size > 0) {
        __builtin_prefetch(row + size - 1);
    }
}

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
            g[i].at = place_of(g[i].table, keys, query[i].key);
            fetch_place(g[i].table, g[i].at);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        const tn_dict_table *t = g[i].table;
        if (keys_of(t, g[i].bucket, &keys)) {
            g[i].at = lower_bound_from(t, keys, g[i].at, query[i].key);
            g[i].found = g[i].at < keys.to && t->key[g[i].at] == query[i].key;
            if (g[i].found) {
                fetch_row(t->row + (size_t)g[i].at * t->head.stride, t->head.stride);
            }
        }
    }
}

/* Takes the row from the guess, where that is certain; false: the table must be searched. */
static bool settle(const tn_dict *d, const tn_dict_query *q, const guess *g, tn_dict_row *out)
{
    const tn_dict_table *t = g->table;
    if (d->verify == TN_VERIFY_LAZY || t == NULL || !has_partition(d, q->key)) {
        return false;
    }
    if (!g->found) {
        tn_range keys;
        *out = (tn_dict_row){NULL, NULL};
        return d->group[q->group].n_tables == 1 && keys_of(t, g->bucket, &keys);
    }
    if (t->group != NULL && t->group[g->at] != q->group) {
        return false;
    }
    *out = row_at(t, g->at);
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
