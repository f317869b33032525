/* dict.c - opening a dictionary, and finding its rows; bytes in dictformat.h.
 *
 * The checks come first: nothing in the file is believed before. Keys are looked up one at a time
 * or several together, so that their cache misses overlap.
 */
#include "io/dict/dict.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/file/file.h"
#include "base/keys/keyspace.h"
#include "base/math/crc32c.h"
#include "base/thread/range.h"
#include "io/dict/dictformat.h"
#include "io/dict/dictvalue.h"

#include <stdatomic.h>
#include <string.h>

typedef struct column {
    uint32_t offset, scale; /* in the row; TN_DICT_NO_SCALE */
    uint32_t dim;
    tn_dict_type type;
    uint32_t segment;
} column;

struct tn_dict_table {
    uint64_t rows;
    const uint32_t *start;
    const uint64_t *key;
    const char *row;
    const uint16_t *group; /* NULL: not stored */
    uint64_t base;
    uint32_t buckets, stride, shift;
    bool removed;
    uint32_t n_fields;
    column field[TN_SEGMENTS_MAX];
};

typedef struct table_set {
    uint64_t salt;
    const char *name;
    uint32_t n;
    uint16_t table[TN_DICT_GROUP_TABLES];
} table_set;

struct tn_dict {
    tn_map map;
    const char *what; /* path, for messages; owned */
    tn_verify verify;
    uint64_t crc_at;
    uint32_t n_chunks, n_groups, n_tables;
    uint32_t partitions, first, last;
    uint32_t json_bytes;
    bool delta, group_arrays;
    uint64_t names_at, json_at, groups_at, rows;
    table_set *group;
    tn_dict_table *table;
    _Atomic(uint8_t) *checked; /* per chunk, lazy: 0 not yet, 1 good, 2 bad */
};

enum { AT_ONCE = 32, LINE = 64 };

enum { KEYS_IN_LINE = LINE / 8, LINES_MAX = 4 };

/* A key between two passes: where it is in the fullest table of its group, if it is there. */
typedef struct guess {
    const tn_dict_table *table; /* NULL: that one cannot hold it */
    uint32_t bucket;
    uint32_t at; /* the first that is not below it, or .. */
    bool found;  /* .. it itself */
} guess;

static tn_status bad(const tn_dict *d, const char *what, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "'%s' is damaged or no dictionary: %s", d->what, what);
}

static tn_status check_header(tn_dict *d, tn_error *err)
{
    const char *h = d->map.data;
    if (d->map.size < TN_DICT_HEADER || tn_load_u64(h) != TN_DICT_MAGIC) {
        return tn_fail(err, TN_E_CKPT, "'%s' is no dictionary", d->what);
    }
    if (tn_load_u32(h + 124) != tn_crc32c(0, h, TN_DICT_HEADER - sizeof(uint32_t))) {
        return bad(d, "crc of the header", err);
    }
    if (tn_load_u16(h + 8) != 1 || tn_load_u32(h + 12) != TN_DICT_HEADER) {
        return tn_fail(err, TN_E_CKPT, "'%s' is a dictionary of version %u, this program reads 1",
                       d->what, tn_load_u16(h + 8));
    }
    uint32_t flags = tn_load_u32(h + 112);
    if ((flags & ~(uint32_t)(TN_DICT_DELTA | TN_DICT_GROUP_ARRAYS)) != 0) {
        return bad(d, "flags that nobody knows", err);
    }
    d->delta = (flags & TN_DICT_DELTA) != 0;
    d->group_arrays = (flags & TN_DICT_GROUP_ARRAYS) != 0;
    d->rows = tn_load_u64(h + 56);
    d->groups_at = tn_load_u64(h + 64);
    d->names_at = tn_load_u64(h + 72);
    d->json_at = tn_load_u64(h + 80);
    d->crc_at = tn_load_u64(h + 88);
    d->n_groups = tn_load_u32(h + 96);
    d->n_tables = tn_load_u32(h + 100);
    d->json_bytes = tn_load_u32(h + 104);
    d->n_chunks = tn_load_u32(h + 108);
    d->partitions = tn_load_u16(h + 116);
    d->partitions = d->partitions == 0 ? UINT16_MAX + 1U : d->partitions;
    d->first = tn_load_u16(h + 118);
    d->last = tn_load_u16(h + 120);
    if (tn_load_u16(h + 122) != TN_DICT_CHUNK_LOG || tn_load_u64(h + 48) != d->map.size) {
        return bad(d, "size", err);
    }
    if (d->first > d->last || d->last >= d->partitions) {
        return bad(d, "partitions", err);
    }
    return TN_OK;
}

/* Whether count things of `size` bytes fit between the header and the crcs, aligned. */
static bool inside(const tn_dict *d, uint64_t at, uint64_t count, uint64_t size, uint64_t align)
{
    uint64_t bytes = 0;
    return !__builtin_mul_overflow(count, size, &bytes) && at >= TN_DICT_HEADER &&
           at % align == 0 && at <= d->crc_at && bytes <= d->crc_at - at;
}

/* That the parts which the header names lie one behind the other. */
static tn_status check_parts(const tn_dict *d, tn_error *err)
{
    if (d->n_groups > TN_GROUPS_MAX || d->n_tables > TN_DICT_TABLES_MAX ||
        d->json_bytes > TN_DICT_JSON_MAX) {
        return tn_fail(err, TN_E_LIMIT, "'%s': more than %d groups, %d tables or %d bytes of JSON",
                       d->what, TN_GROUPS_MAX, TN_DICT_TABLES_MAX, TN_DICT_JSON_MAX);
    }
    uint64_t data = d->crc_at - TN_DICT_HEADER;
    if (d->crc_at < TN_DICT_HEADER || d->crc_at > d->map.size || d->crc_at % TN_DICT_ALIGN != 0 ||
        d->n_chunks != data / TN_DICT_CHUNK + (data % TN_DICT_CHUNK != 0) ||
        d->map.size - d->crc_at != ((uint64_t)d->n_chunks + 1) * sizeof(uint32_t)) {
        return bad(d, "place of the crcs", err);
    }
    uint64_t heads = (uint64_t)d->n_groups * TN_DICT_GROUP + (uint64_t)d->n_tables * TN_DICT_TABLE;
    if (!inside(d, d->groups_at, 1, heads, 8) || d->names_at < d->groups_at + heads ||
        d->json_at < d->names_at || !inside(d, d->json_at, d->json_bytes, 1, 1)) {
        return bad(d, "place of groups, tables or names", err);
    }
    const char *crcs = d->map.data + d->crc_at;
    size_t size = (size_t)d->n_chunks * sizeof(uint32_t);
    if (tn_load_u32(crcs + size) != tn_crc32c(0, crcs, size)) {
        return bad(d, "crc of the crcs", err);
    }
    return TN_OK;
}

static tn_status check_chunk(const tn_dict *d, uint64_t chunk, tn_error *err)
{
    uint64_t from = TN_DICT_HEADER + chunk * TN_DICT_CHUNK;
    uint64_t left = d->crc_at - from;
    size_t size = left < TN_DICT_CHUNK ? (size_t)left : (size_t)TN_DICT_CHUNK;
    uint32_t want = tn_load_u32(d->map.data + d->crc_at + chunk * sizeof(uint32_t));
    uint32_t is = tn_crc32c(0, d->map.data + from, size);
    if (want != is) {
        return tn_fail(err, TN_E_CKPT, "'%s':@%llu: error: damaged (crc %08x, computed %08x)",
                       d->what, (unsigned long long)from, want, is);
    }
    return TN_OK;
}

/* The header, where its parts lie, and the crcs that `verify` asks for. */
static tn_status check_head(tn_dict *d, tn_error *err)
{
    TN_TRY(check_header(d, err));
    TN_TRY(check_parts(d, err));
    uint64_t heads_end = d->json_at + d->json_bytes - TN_DICT_HEADER;
    uint64_t chunks = d->verify == TN_VERIFY_FULL ? d->n_chunks
                      : d->verify == TN_VERIFY_LAZY
                          ? (heads_end + TN_DICT_CHUNK - 1) / TN_DICT_CHUNK
                          : 0;
    for (uint64_t i = 0; i < chunks; i++) {
        TN_TRY(check_chunk(d, i, err));
    }
    return TN_OK;
}

static tn_status read_group(const tn_dict *d, const char *at, table_set *out, tn_error *err)
{
    uint64_t name_at = d->names_at + tn_load_u32(at + 8);
    uint64_t length = tn_load_u16(at + 12);
    out->salt = tn_load_u64(at);
    out->n = (uint8_t)at[14];
    if (name_at >= d->json_at || length >= d->json_at - name_at ||
        memchr(d->map.data + name_at, 0, (size_t)length + 1) != d->map.data + name_at + length) {
        return bad(d, "name of a group", err);
    }
    out->name = d->map.data + name_at;
    if (out->n > TN_DICT_GROUP_TABLES || at[15] != 0) {
        return bad(d, "tables of a group", err);
    }
    for (uint32_t i = 0; i < out->n; i++) {
        out->table[i] = tn_load_u16(at + 16 + (size_t)i * 2);
        if (out->table[i] >= d->n_tables) {
            return bad(d, "tables of a group", err);
        }
    }
    return TN_OK;
}

/* Arrays as pointers; the offsets are multiples of 64 in a mapping, so they are aligned. */
static tn_status place_arrays(const tn_dict *d, const char *at, tn_dict_table *t, tn_error *err)
{
    uint64_t start = tn_load_u64(at + 8);
    uint64_t key = tn_load_u64(at + 16);
    uint64_t row = tn_load_u64(at + 24);
    uint64_t group = tn_load_u64(at + 32);
    if (!inside(d, start, (uint64_t)t->buckets + 1, sizeof(uint32_t), TN_DICT_ALIGN) ||
        !inside(d, key, t->rows, sizeof(uint64_t), TN_DICT_ALIGN) ||
        !inside(d, row, t->rows, t->stride, TN_DICT_ALIGN) || (group != 0) != d->group_arrays ||
        (group != 0 && !inside(d, group, t->rows, sizeof(uint16_t), TN_DICT_ALIGN))) {
        return bad(d, "place of a table", err);
    }
    const char *base = d->map.data;
    t->start = (const uint32_t *)(const void *)(base + start);
    t->key = (const uint64_t *)(const void *)(base + key);
    t->row = base + row;
    t->group = group != 0 ? (const uint16_t *)(const void *)(base + group) : NULL;
    return TN_OK;
}

static tn_status read_field(const tn_dict *d, const tn_dict_table *t, const char *at, column *out,
                            tn_error *err)
{
    out->offset = tn_load_u32(at);
    out->scale = tn_load_u32(at + 4);
    out->dim = tn_load_u16(at + 8);
    uint32_t type = (uint8_t)at[10];
    out->segment = (uint8_t)at[11];
    if (type >= TN_DICT_TYPES || out->dim == 0 || out->dim > TN_DIM_MAX ||
        out->segment >= TN_SEGMENTS_MAX) {
        return bad(d, "segment of a table", err);
    }
    out->type = (tn_dict_type)type;
    bool scaled = out->type == TN_DICT_INT8;
    uint64_t end = (uint64_t)out->offset + tn_dict_bytes(out->type, out->dim);
    if (out->offset % 4 != 0 || end > t->stride || scaled != (out->scale != TN_DICT_NO_SCALE) ||
        (scaled && (out->scale % 4 != 0 || (uint64_t)out->scale + 4 > t->stride))) {
        return bad(d, "place of a segment", err);
    }
    return TN_OK;
}

static bool stands_before(const tn_dict_table *t, uint32_t i)
{
    uint32_t k = 0;
    while (t->field[k].segment != t->field[i].segment) {
        k++;
    }
    return k < i;
}

static tn_status read_table(const tn_dict *d, const char *at, tn_dict_table *t, tn_error *err)
{
    t->rows = tn_load_u64(at);
    t->base = tn_load_u64(at + 40);
    t->buckets = tn_load_u32(at + 48);
    t->stride = tn_load_u32(at + 52);
    t->shift = (uint8_t)at[56];
    t->n_fields = (uint8_t)at[57];
    uint32_t kind = tn_load_u16(at + 58);
    t->removed = kind == TN_DICT_REMOVED;
    if (t->rows > UINT32_MAX || t->buckets == 0 || t->shift > TN_DICT_ONE_BUCKET ||
        (t->shift == TN_DICT_ONE_BUCKET && t->buckets != 1) || t->n_fields > TN_SEGMENTS_MAX ||
        t->stride % 4 != 0 || kind > TN_DICT_REMOVED || (t->removed && !d->delta) ||
        (t->removed && t->stride != 0)) {
        return bad(d, "head of a table", err);
    }
    TN_TRY(place_arrays(d, at, t, err));
    for (uint32_t i = 0; i < t->n_fields; i++) {
        const char *field = at + TN_DICT_SEGMENTS_AT + (size_t)i * TN_DICT_SEGMENT;
        TN_TRY(read_field(d, t, field, &t->field[i], err));
        if (stands_before(t, i)) {
            return bad(d, "a segment stands twice", err);
        }
    }
    return TN_OK;
}

/* Fills d->group and d->table, which have room. */
static tn_status read_heads(tn_dict *d, tn_error *err)
{
    const char *at = d->map.data + d->groups_at;
    for (uint32_t g = 0; g < d->n_groups; g++, at += TN_DICT_GROUP) {
        TN_TRY(read_group(d, at, &d->group[g], err));
    }
    for (uint32_t i = 0; i < d->n_tables; i++, at += TN_DICT_TABLE) {
        TN_TRY(read_table(d, at, &d->table[i], err));
    }
    return TN_OK;
}

static tn_status check_table(const tn_dict *d, const tn_dict_table *t, tn_error *err)
{
    if (t->start[0] != 0 || t->start[t->buckets] != t->rows ||
        (t->rows > 0 && t->key[0] < t->base)) {
        return bad(d, "buckets of a table", err);
    }
    for (uint32_t b = 0; b < t->buckets; b++) {
        if (t->start[b] > t->start[b + 1] || t->start[b + 1] > t->rows) {
            return bad(d, "buckets of a table", err);
        }
    }
    for (uint64_t i = 0; i < t->rows; i++) {
        if ((i > 0 && t->key[i] < t->key[i - 1]) ||
            (t->group != NULL && t->group[i] >= d->n_groups)) {
            return bad(d, "keys of a table", err);
        }
        uint64_t b = t->shift == TN_DICT_ONE_BUCKET ? 0 : (t->key[i] - t->base) >> t->shift;
        if (b >= t->buckets || i < t->start[b] || i >= t->start[b + 1]) {
            return bad(d, "a key outside its bucket", err);
        }
    }
    return TN_OK;
}

/* Keys and starts ascend, every key lies in its bucket. */
static tn_status check_data(const tn_dict *d, tn_error *err)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < d->n_tables; i++) {
        TN_TRY(check_table(d, &d->table[i], err));
        rows += d->table[i].rows;
    }
    return rows == d->rows ? TN_OK : bad(d, "number of rows", err);
}

static tn_status open_heads(tn_dict *d, const char *path, tn_error *err)
{
    size_t size = strlen(path) + 1;
    char *what = tn_try_alloc(1, size, "a dictionary", err);
    d->what = what;
    if (what == NULL) {
        return TN_E_MEMORY;
    }
    memcpy(what, path, size);
    TN_TRY(tn_map_file(&d->map, path, err));
    TN_TRY(check_head(d, err));
    d->group = tn_try_alloc((size_t)d->n_groups + 1, sizeof *d->group, "a dictionary", err);
    d->table = tn_try_alloc((size_t)d->n_tables + 1, sizeof *d->table, "a dictionary", err);
    d->checked = tn_try_alloc((size_t)d->n_chunks + 1, sizeof *d->checked, "a dictionary", err);
    if (d->group == NULL || d->table == NULL || d->checked == NULL) {
        return TN_E_MEMORY;
    }
    TN_TRY(read_heads(d, err));
    return d->verify == TN_VERIFY_FULL ? check_data(d, err) : TN_OK;
}

void tn_dict_close(tn_dict *d)
{
    if (d == NULL) {
        return;
    }
    tn_unmap(&d->map);
    char *what = NULL;
    memcpy(&what, &d->what, sizeof what);
    tn_free(what);
    tn_free(d->group);
    tn_free(d->table);
    tn_free(d->checked);
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

tn_dict_about tn_dict_about_of(const tn_dict *d)
{
    return (tn_dict_about){
        .model_id = (const uint8_t *)d->map.data + 16,
        .base_id = (const uint8_t *)d->map.data + 32,
        .delta = d->delta,
        .rows = d->rows,
        .bytes = d->map.size,
        .n_groups = d->n_groups,
        .n_tables = d->n_tables,
        .json = d->map.data + d->json_at,
        .json_bytes = d->json_bytes,
    };
}

uint32_t tn_dict_group(const tn_dict *d, const char *name)
{
    for (uint32_t g = 0; g < d->n_groups; g++) {
        if (strcmp(d->group[g].name, name) == 0) {
            return g;
        }
    }
    return TN_DICT_NO_GROUP;
}

const char *tn_dict_group_name(const tn_dict *d, uint32_t group)
{
    TN_ASSERT(group < d->n_groups);
    return d->group[group].name;
}

uint64_t tn_dict_salt(const tn_dict *d, uint32_t group)
{
    TN_ASSERT(group < d->n_groups);
    return d->group[group].salt;
}

bool tn_dict_get(const tn_dict_row *row, uint32_t segment, uint32_t dim, float *w)
{
    const tn_dict_table *t = row->at != NULL ? row->table : NULL;
    for (uint32_t i = 0; t != NULL && i < t->n_fields; i++) {
        const column *f = &t->field[i];
        if (f->segment == segment && f->dim == dim) {
            float scale = f->scale != TN_DICT_NO_SCALE ? tn_load_f32(row->at + f->scale) : 1;
            tn_dict_decode(f->type, dim, row->at + f->offset, scale, w);
            return true;
        }
    }
    memset(w, 0, dim * sizeof *w);
    return false;
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
    uint64_t from = (uint64_t)((const char *)at - d->map.data) - TN_DICT_HEADER;
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

tn_status tn_dict_walk(const tn_dict *d, tn_dict_each *each, void *arg, tn_error *err)
{
    for (uint32_t i = 0; i < d->n_tables; i++) {
        const tn_dict_table *t = &d->table[i];
        TN_TRY(touch(d, t->key, (size_t)t->rows * sizeof *t->key, err));
        TN_TRY(touch(d, t->row, (size_t)t->rows * t->stride, err));
        TN_TRY(touch(d, t->group, t->group != NULL ? (size_t)t->rows * sizeof *t->group : 0, err));
        for (uint64_t k = 0; k < t->rows; k++) {
            tn_dict_item item = {
                .key = t->key[k],
                .group = t->group != NULL ? t->group[k] : TN_DICT_NO_GROUP,
                .row = {t, t->removed ? NULL : t->row + (size_t)k * t->stride},
            };
            if (t->group != NULL && item.group >= d->n_groups) {
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
    if (from > to || to > t->rows) {
        return damaged_table(d, "buckets", err);
    }
    fetch_keys(t, from, to);
    TN_TRY(touch(d, t->key + from, (to - from) * sizeof *t->key, err));
    for (uint32_t i = lower_bound(t, from, to, q->key); i < to && t->key[i] == q->key; i++) {
        const char *row = t->row + (size_t)i * t->stride;
        __builtin_prefetch(row);
        if (t->group != NULL) {
            TN_TRY(touch(d, t->group + i, sizeof *t->group, err));
        }
        if (t->group == NULL || t->group[i] == q->group) {
            TN_TRY(touch(d, row, t->stride, err));
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
    const table_set *g = &d->group[q->group];
    *out = (tn_dict_row){NULL, NULL};
    for (uint32_t i = 0; i < g->n && out->table == NULL && has_partition(d, q->key); i++) {
        TN_TRY(find_in(d, &d->table[g->table[i]], q, out, err));
    }
    return TN_OK;
}

/* The fullest table of the query's group, where most keys are; NULL: it cannot hold this one. */
static const tn_dict_table *likely(const tn_dict *d, const tn_dict_query *q, uint32_t *bucket)
{
    TN_ASSERT(q->group < d->n_groups);
    const table_set *g = &d->group[q->group];
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
