/* dictcheck.c - what a dictionary must be like before anything in it is believed. */
#include "io/dict/dictinside.h"

#include "base/core/bytes.h"
#include "base/keys/keyset.h"
#include "base/math/crc32c.h"

static tn_status bad(const tn_dict *d, const char *what, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "'%s' is damaged or no dictionary: %s", d->what, what);
}

/* Whether count things of `size` bytes fit between the header and the crcs, aligned. */
static bool inside(const tn_dict *d, uint64_t at, uint64_t count, uint64_t size, uint64_t align)
{
    uint64_t bytes = 0;
    return !__builtin_mul_overflow(count, size, &bytes) && at >= TN_DICT_HEADER &&
           at % align == 0 && at <= d->crc_at && bytes <= d->crc_at - at;
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

static tn_status read_group(const tn_dict *d, const char *at, tn_dict_set_of_tables *out,
                            tn_error *err)
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

static tn_status read_field(const tn_dict *d, const tn_dict_table *t, const char *at,
                            tn_dict_field *out, tn_error *err)
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

tn_status tn_dict_check_chunk(const tn_dict *d, uint64_t chunk, tn_error *err)
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

tn_status tn_dict_check(tn_dict *d, tn_error *err)
{
    TN_TRY(check_header(d, err));
    TN_TRY(check_parts(d, err));
    uint64_t heads_end = d->json_at + d->json_bytes - TN_DICT_HEADER;
    uint64_t chunks = d->verify == TN_VERIFY_FULL ? d->n_chunks
                      : d->verify == TN_VERIFY_LAZY
                          ? (heads_end + TN_DICT_CHUNK - 1) / TN_DICT_CHUNK
                          : 0;
    for (uint64_t i = 0; i < chunks; i++) {
        TN_TRY(tn_dict_check_chunk(d, i, err));
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

tn_status tn_dict_check_data(const tn_dict *d, tn_error *err)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < d->n_tables; i++) {
        TN_TRY(check_table(d, &d->table[i], err));
        rows += d->table[i].rows;
    }
    return rows == d->rows ? TN_OK : bad(d, "number of rows", err);
}

tn_status tn_dict_read_heads(tn_dict *d, tn_error *err)
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
