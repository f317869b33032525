/* cache.c - a .tnb file: header, shape, index and tail, read and written; blocks are bytes here. */
#include "io/read/cache.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/file/file.h"
#include "base/file/output_file.h"
#include "base/math/crc32c.h"
#include "base/math/key.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <inttypes.h>
#include <sys/stat.h>

enum {
    SOURCES_MAX = 10000000,
    PARTS_MAX = 100000000,
    ONCE = 1 << 8, /* flags beside the compression of a source */
    NOTED = 1 << 9,
};

/* The numbers in the first 64 bytes. */
typedef struct header {
    uint32_t shape_bytes, shape_crc;
    uint32_t n_slots, n_numeric;
} header;

struct tn_cache_writer {
    const tn_fileset *files;
    tn_output *file;
    uint64_t *version;   /* files->n; as in tn_cache_source */
    tn_cache_part *part; /* files->n_parts; n_blocks 0: not yet */
    uint32_t now;        /* the part that is being added */
    uint64_t n_blocks;
    tn_text block_bytes; /* u32 of each block, as they were added */
};

static tn_status damaged(const tn_cache *t, const char *what, tn_error *err)
{
    return tn_fail(err, TN_E_DATA, "binary cache '%s' is damaged: %s\nhint: make it anew", t->path,
                   what);
}

bool tn_cache_is_named(const char *path)
{
    size_t size = strlen(path);
    return size >= 4 && memcmp(path + size - 4, ".tnb", 4) == 0;
}

static tn_status check_kind(const tn_cache *t, const char *bytes, tn_error *err)
{
    enum { VERSION_AT = 8, ORDER_AT = 12 };
    uint32_t order = tn_load_u32(bytes + ORDER_AT);
    uint32_t major = tn_load_u16(bytes + VERSION_AT);
    if (memcmp(bytes, TN_CACHE_MAGIC, 8) != 0) {
        return tn_fail(err, TN_E_DATA, "'%s' is not a binary cache, by its first bytes", t->path);
    }
    if (order == __builtin_bswap32(TN_CACHE_ORDER)) {
        return tn_fail(err, TN_E_DATA,
                       "binary cache '%s' was written by a machine of the other byte order",
                       t->path);
    }
    if (major != TN_CACHE_MAJOR) {
        return tn_fail(err, TN_E_DATA,
                       "binary cache '%s' has version %u, and this TNet reads %d\nhint: make it "
                       "anew",
                       t->path, major, TN_CACHE_MAJOR);
    }
    return order == TN_CACHE_ORDER ? TN_OK : damaged(t, "its byte order is none", err);
}

static tn_status read_header(tn_cache *t, header *out, tn_error *err)
{
    enum { REST_AT = 16, CRC_AT = TN_CACHE_HEADER - 4 };
    char bytes[TN_CACHE_HEADER] = {0};
    uint64_t size = tn_infile_size(t->file);
    TN_TRY(tn_infile_read(t->file, 0, bytes, size < sizeof bytes ? size : sizeof bytes, err));
    TN_TRY(check_kind(t, bytes, err));
    if (size < TN_CACHE_HEADER + TN_CACHE_TAIL) {
        return damaged(t, "it is cut off", err);
    }
    if (tn_load_u32(bytes + CRC_AT) != tn_crc32c(0, bytes, CRC_AT)) {
        return damaged(t, "the checksum of its header does not hold", err);
    }
    tn_bytes in = {bytes + REST_AT, CRC_AT - REST_AT, false};
    out->shape_bytes = tn_get_u32(&in);
    out->shape_crc = tn_get_u32(&in);
    t->part_bytes = tn_get_u64(&in);
    out->n_slots = tn_get_u32(&in);
    out->n_numeric = tn_get_u32(&in);
    return out->shape_bytes <= TN_CACHE_SHAPE_MAX &&
                   out->shape_bytes <= size - TN_CACHE_HEADER - TN_CACHE_TAIL
               ? TN_OK
               : damaged(t, "it is cut off", err);
}

static tn_status read_shape(tn_cache *t, const header *h, tn_error *err)
{
    TN_TRY(tn_arena_reserve(t->arena, (size_t)h->shape_bytes + 1, "the shape of rows", err));
    char *shape = tn_arena_alloc(t->arena, (size_t)h->shape_bytes + 1, 1, 1);
    TN_TRY(tn_infile_read(t->file, TN_CACHE_HEADER, shape, h->shape_bytes, err));
    shape[h->shape_bytes] = '\0';
    t->shape = shape;
    return tn_crc32c(0, shape, h->shape_bytes) == h->shape_crc && strlen(shape) == h->shape_bytes
               ? TN_OK
               : damaged(t, "the checksum of its shape does not hold", err);
}

/* The index as it stands in the file, in memory of the arena; *at: where it begins. */
static tn_status read_index(const tn_cache *t, tn_bytes *out, uint64_t *at, tn_error *err)
{
    enum { END_AT = 24, CRC_AT = 20 };
    char tail[TN_CACHE_TAIL];
    uint64_t size = tn_infile_size(t->file);
    TN_TRY(tn_infile_read(t->file, size - sizeof tail, tail, sizeof tail, err));
    if (memcmp(tail + END_AT, TN_CACHE_END, 8) != 0) {
        return damaged(t, "it is cut off", err);
    }
    tn_bytes in = {tail, END_AT, false};
    *at = tn_get_u64(&in);
    uint64_t bytes = tn_get_u64(&in);
    uint32_t crc = tn_get_u32(&in);
    bool whole = *at <= size - sizeof tail && bytes == size - sizeof tail - *at;
    if (tn_get_u32(&in) != tn_crc32c(0, tail, CRC_AT) || !whole) {
        return damaged(t, "the checksum of its end does not hold", err);
    }
    if (bytes > UINT32_MAX) {
        return tn_fail(err, TN_E_LIMIT, "the index of binary cache '%s' has %" PRIu64 " bytes",
                       t->path, bytes);
    }
    TN_TRY(tn_arena_reserve(t->arena, (size_t)bytes + 8, "the index of a cache", err));
    char *index = tn_arena_alloc(t->arena, (size_t)bytes + 1, 1, 8);
    TN_TRY(tn_infile_read(t->file, *at, index, bytes, err));
    *out = (tn_bytes){index, (size_t)bytes, false};
    return crc == tn_crc32c(0, index, (size_t)bytes)
               ? TN_OK
               : damaged(t, "the checksum of its index does not hold", err);
}

static bool take_sources(tn_cache *t, tn_bytes *in)
{
    tn_cache_source *source = TN_NEW_ARRAY(t->arena, tn_cache_source, (size_t)t->n_sources + 1);
    for (uint32_t i = 0; i < t->n_sources; i++) {
        tn_file_entry *f = &source[i].file;
        f->size = tn_get_u64(in);
        source[i].version = tn_get_u64(in);
        uint32_t flags = tn_get_u32(in);
        uint32_t bytes = tn_get_u32(in);
        const char *path = tn_get(in, bytes);
        if (path == NULL || bytes >= TN_PATH_SIZE || memchr(path, '\0', bytes) != NULL) {
            return false;
        }
        char *copy = tn_arena_alloc(t->arena, (size_t)bytes + 1, 1, 1);
        memcpy(copy, path, bytes);
        copy[bytes] = '\0';
        f->path = copy;
        f->once = (flags & ONCE) != 0;
        source[i].noted = (flags & NOTED) != 0;
        f->compression = flags & (ONCE - 1);
    }
    t->source = source;
    return !in->failed;
}

/* Parts lie side by side in any order; together they are all that is in front of the index. */
static bool take_parts(tn_cache *t, tn_bytes *in)
{
    tn_cache_part *part = TN_NEW_ARRAY(t->arena, tn_cache_part, (size_t)t->n_parts + 1);
    uint64_t blocks = 0;
    uint64_t rows = 0;
    for (uint32_t i = 0; i < t->n_parts; i++) {
        tn_cache_part *p = &part[i];
        p->info.source = tn_get_u32(in);
        p->n_blocks = tn_get_u32(in);
        p->info.first = tn_get_u64(in);
        p->info.end = tn_get_u64(in);
        p->at = tn_get_u64(in);
        p->rows = tn_get_u64(in);
        p->first_block = blocks;
        blocks += p->n_blocks;
        rows += p->rows;
        if (p->info.source >= t->n_sources || p->n_blocks == 0) {
            return false;
        }
    }
    t->part = part;
    return !in->failed && blocks == t->n_blocks && rows == t->rows;
}

static bool take_blocks(tn_cache *t, tn_bytes *in, uint64_t end)
{
    const char *bytes = tn_get(in, t->n_blocks * sizeof(uint32_t));
    if (bytes == NULL || in->size != 0) {
        return false;
    }
    uint32_t *size = TN_NEW_ARRAY(t->arena, uint32_t, t->n_blocks + 1);
    for (uint64_t i = 0; i < t->n_blocks; i++) {
        size[i] = tn_load_u32(bytes + i * sizeof(uint32_t));
        if (size[i] < TN_CACHE_BLOCK || size[i] % 8 != 0) {
            return false;
        }
    }
    for (uint32_t i = 0; i < t->n_parts; i++) {
        const tn_cache_part *p = &t->part[i];
        uint64_t at = p->at;
        for (uint32_t k = 0; k < p->n_blocks; k++) {
            if (at < TN_CACHE_HEADER || at > end || size[p->first_block + k] > end - at) {
                return false;
            }
            at += size[p->first_block + k];
        }
    }
    t->block_bytes = size;
    return true;
}

/* All that is made of the index, whose counts have been found to fit into it. */
static tn_status reserve(const tn_cache *t, size_t index_bytes, tn_error *err)
{
    const size_t bytes = (t->n_sources + (size_t)1) * sizeof(tn_cache_source) +
                         (t->n_parts + (size_t)1) * sizeof(tn_cache_part) +
                         (t->n_blocks + 1) * sizeof(uint32_t) + index_bytes + TN_CACHE_LINE;
    return tn_arena_reserve(t->arena, bytes, "the index of a cache", err);
}

static tn_status open_all(tn_cache *t, tn_error *err)
{
    header h = {0};
    tn_bytes in = {0};
    uint64_t end = 0;
    TN_TRY(tn_infile_open(&t->file, t->path, err));
    TN_TRY(read_header(t, &h, err));
    TN_TRY(read_shape(t, &h, err));
    TN_TRY(read_index(t, &in, &end, err));
    t->n_sources = tn_get_u32(&in);
    t->n_parts = tn_get_u32(&in);
    t->n_blocks = tn_get_u64(&in);
    t->rows = tn_get_u64(&in);
    bool good = t->n_sources <= in.size / TN_CACHE_SOURCE && t->n_sources <= SOURCES_MAX &&
                t->n_parts <= in.size / TN_CACHE_PART && t->n_parts <= PARTS_MAX &&
                t->n_blocks <= in.size / sizeof(uint32_t);
    if (good) {
        TN_TRY(reserve(t, in.size, err));
    }
    good = good && take_sources(t, &in) && take_parts(t, &in) && take_blocks(t, &in, end);
    return good ? TN_OK : damaged(t, "its index contradicts itself", err);
}

void tn_cache_close(tn_cache *cache)
{
    if (cache != NULL) {
        tn_infile_close(cache->file);
        tn_arena_free(cache->arena);
    }
}

tn_status tn_cache_open(tn_cache **out, const char *path, tn_error *err)
{
    *out = NULL;
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_cache *t = TN_NEW(arena, tn_cache);
    size_t size = strlen(path) + 1;
    char *copy = tn_arena_alloc(arena, size, 1, 1);
    memcpy(copy, path, size);
    t->arena = arena;
    t->path = copy;
    tn_status status = open_all(t, err);
    if (status != TN_OK) {
        tn_cache_close(t);
        return status;
    }
    *out = t;
    return TN_OK;
}

/* ---- does it fit? ---- */

/* The line that begins at *at, without its end; *at goes behind it. */
static tn_bytes take_line(const char **at)
{
    const char *end = strchr(*at, '\n');
    size_t size = end != NULL ? (size_t)(end - *at) : strlen(*at);
    tn_bytes line = {*at, size, false};
    *at += size + (end != NULL);
    return line;
}

static tn_status tell_shape(const tn_cache *cache, const char *ours, tn_error *err)
{
    enum { SHOWN = 200 };
    const char *theirs = cache->shape;
    tn_bytes a;
    tn_bytes b;
    do {
        a = take_line(&ours);
        b = take_line(&theirs);
    } while (a.size == b.size && memcmp(a.data, b.data, a.size) == 0 && *ours != '\0');
    return tn_fail(err, TN_E_CONFIG,
                   "binary cache '%s' was made with another configuration\n  cache  %.*s\n  now    "
                   "%.*s\nhint: make it anew, or read it as it was made",
                   cache->path, (int)(b.size < SHOWN ? b.size : SHOWN), b.data,
                   (int)(a.size < SHOWN ? a.size : SHOWN), a.data);
}

static tn_status check_shape(const tn_cache *cache, const tn_schema *schema, tn_error *err)
{
    tn_text shape = {0};
    tn_cache_shape(schema, &shape);
    tn_status status = tn_text_check(&shape, "the shape of rows", err);
    if (status == TN_OK && strcmp(shape.data, cache->shape) != 0) {
        status = tell_shape(cache, shape.data, err);
    }
    tn_text_done(&shape);
    TN_TRY(status);
    bool one_part = schema->data->part_bytes == TN_PART_WHOLE; /* tools: they ask for no parts */
    if (!one_part && cache->part_bytes != schema->data->part_bytes) {
        return tn_fail(err, TN_E_CONFIG,
                       "binary cache '%s' was made with data.part_bytes %" PRIu64 ", not %" PRIu64,
                       cache->path, cache->part_bytes, schema->data->part_bytes);
    }
    return TN_OK;
}

/* Size and version of a regular file; *there: it is one, and can be read. */
static tn_status look_at_file(const char *path, bool *there, uint64_t *size, uint64_t *version,
                              tn_error *err)
{
    struct stat st;
    tn_infile *f = NULL;
    uint64_t hash = 0;
    *there = false;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) {
        return TN_OK;
    }
    const uint64_t ns =
        (uint64_t)st.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)st.st_mtim.tv_nsec;
    tn_status status = tn_infile_open(&f, path, err);
    if (status == TN_OK) {
        status = tn_infile_sample(f, &hash, err);
        *there = status == TN_OK;
        *size = tn_infile_size(f);
        *version = tn_key_of(ns, hash);
        tn_infile_close(f);
    }
    return status == TN_E_MEMORY ? status : TN_OK;
}

tn_status tn_cache_check(const tn_cache *cache, const tn_schema *schema, tn_error *err)
{
    TN_TRY(check_shape(cache, schema, err));
    for (uint32_t i = 0; i < cache->n_sources; i++) {
        const tn_cache_source *s = &cache->source[i];
        bool there = false;
        uint64_t size = 0;
        uint64_t version = 0;
        if (!s->file.once) {
            TN_TRY(look_at_file(s->file.path, &there, &size, &version, err));
        }
        if (!there) {
            continue;
        }
        if (!s->noted) {
            return tn_fail(err, TN_E_DATA,
                           "binary cache '%s' is of an earlier version, which did not note what "
                           "'%s' held\nhint: make it anew",
                           cache->path, s->file.path);
        }
        if (size != s->file.size || version != s->version) {
            return tn_fail(err, TN_E_DATA,
                           "'%s' has changed since binary cache '%s' was made of it\nhint: make it "
                           "anew",
                           s->file.path, cache->path);
        }
    }
    return TN_OK;
}

static tn_status write_header(const tn_cache_writer *w, const tn_schema *schema, tn_error *err)
{
    static const char zeros[8] = {0};
    tn_text shape = {0};
    tn_text head = {0};
    tn_cache_shape(schema, &shape);
    tn_text_add(&head, TN_CACHE_MAGIC, 8);
    tn_text_add_u16(&head, TN_CACHE_MAJOR);
    tn_text_add_u16(&head, TN_CACHE_MINOR);
    tn_text_add_u32le(&head, TN_CACHE_ORDER);
    tn_text_add_u32le(&head, (uint32_t)shape.size);
    tn_text_add_u32le(&head, tn_crc32c(0, tn_text_str(&shape), shape.size));
    tn_text_add_u64le(&head, schema->data->part_bytes);
    tn_text_add_u32le(&head, schema->n_slots);
    tn_text_add_u32le(&head, schema->n_numeric);
    for (uint32_t i = 0; i < 5; i++) {
        tn_text_add_u32le(&head, 0);
    }
    tn_text_add_u32le(&head, tn_crc32c(0, tn_text_str(&head), head.size));
    TN_ASSERT(head.failed || head.size == TN_CACHE_HEADER);
    tn_text_add(&head, tn_text_str(&shape), shape.size);
    tn_text_add(&head, zeros, (8 - shape.size % 8) % 8);
    tn_status status = tn_text_check(&head, "the head of a binary cache", err);
    if (status == TN_OK && shape.size > TN_CACHE_SHAPE_MAX) {
        status = tn_fail(err, TN_E_LIMIT, "the slots are too many words for a binary cache");
    }
    if (status == TN_OK) {
        status = tn_output_write(w->file, head.data, head.size, err);
    }
    tn_text_done(&shape);
    tn_text_done(&head);
    return status;
}

/* Notes what the sources are; `again`: they are what they were then. */
static tn_status look_at_sources(const tn_cache_writer *w, bool again, tn_error *err)
{
    for (uint32_t i = 0; i < w->files->n; i++) {
        const tn_file_entry *f = &w->files->file[i];
        const uint64_t before = w->version[i];
        bool there = false;
        uint64_t size = 0;
        if (f->once || f->object != NULL) {
            continue;
        }
        TN_TRY(look_at_file(f->path, &there, &size, &w->version[i], err));
        if (!there || size != f->size || (again && w->version[i] != before)) {
            return tn_fail(err, TN_E_DATA, "'%s' %s read", f->path,
                           again ? "changed while it was" : "changes while it is");
        }
    }
    return TN_OK;
}

static tn_status begin(tn_cache_writer *w, const char *path, const tn_output_with *with,
                       const tn_schema *schema, tn_error *err)
{
    const tn_fileset *files = w->files;
    TN_TRY(TN_ALLOC(w->version, (size_t)files->n + 1, "a binary cache", err));
    TN_TRY(TN_ALLOC(w->part, (size_t)files->n_parts + 1, "a binary cache", err));
    w->now = files->n_parts;
    w->block_bytes.size_max = (size_t)UINT32_MAX;
    TN_TRY(look_at_sources(w, false, err));
    TN_TRY(tn_output_open(&w->file, path, with, err));
    return write_header(w, schema, err);
}

void tn_cache_abandon(tn_cache_writer *w)
{
    if (w == NULL) {
        return;
    }
    tn_output_abandon(w->file);
    tn_text_done(&w->block_bytes);
    tn_free(w->version);
    tn_free(w->part);
    tn_free(w);
}

tn_status tn_cache_create(tn_cache_writer **out, const char *path, const tn_output_with *with,
                          const tn_schema *schema, const tn_fileset *files, tn_error *err)
{
    *out = NULL;
    tn_cache_writer *w = NULL;
    TN_TRY(TN_ALLOC(w, 1, "a binary cache", err));
    w->files = files;
    tn_status status = begin(w, path, with, schema, err);
    if (status != TN_OK) {
        tn_cache_abandon(w);
        return status;
    }
    *out = w;
    return TN_OK;
}

tn_status tn_cache_add(tn_cache_writer *w, uint32_t part, const tn_text *block, uint32_t rows,
                       tn_error *err)
{
    tn_cache_part *p = &w->part[part];
    TN_ASSERT(part < w->files->n_parts && (part == w->now || p->n_blocks == 0));
    TN_TRY(tn_text_check(block, "a block of a binary cache", err));
    if (part != w->now) {
        p->at = tn_output_size(w->file);
        p->first_block = w->n_blocks;
        w->now = part;
    }
    p->n_blocks++;
    p->rows += rows;
    w->n_blocks++;
    tn_text_add_u32le(&w->block_bytes, (uint32_t)block->size);
    TN_TRY(tn_text_check(&w->block_bytes, "the index of a binary cache", err));
    return tn_output_write(w->file, block->data, block->size, err);
}

static void add_sources(const tn_cache_writer *w, tn_text *index)
{
    for (uint32_t i = 0; i < w->files->n; i++) {
        const tn_file_entry *f = &w->files->file[i];
        uint32_t bytes = (uint32_t)strlen(f->path);
        tn_text_add_u64le(index, f->size);
        tn_text_add_u64le(index, w->version[i]);
        const bool noted = !f->once && f->object == NULL;
        tn_text_add_u32le(index, f->compression | (f->once ? ONCE : 0U) | (noted ? NOTED : 0U));
        tn_text_add_u32le(index, bytes);
        tn_text_add(index, f->path, bytes);
    }
}

/* In the order of the sources, whatever the order they were added in. */
static void add_parts(const tn_cache_writer *w, tn_text *index)
{
    for (uint32_t i = 0; i < w->files->n_parts; i++) {
        const tn_part_info *info = &w->files->part[i];
        const tn_cache_part *p = &w->part[i];
        TN_ASSERT(p->n_blocks > 0);
        tn_text_add_u32le(index, info->source);
        tn_text_add_u32le(index, p->n_blocks);
        tn_text_add_u64le(index, info->first);
        tn_text_add_u64le(index, info->end);
        tn_text_add_u64le(index, p->at);
        tn_text_add_u64le(index, p->rows);
    }
    for (uint32_t i = 0; i < w->files->n_parts; i++) {
        const tn_cache_part *p = &w->part[i];
        tn_text_add(index, w->block_bytes.data + p->first_block * sizeof(uint32_t),
                    p->n_blocks * sizeof(uint32_t));
    }
}

static tn_status write_index(const tn_cache_writer *w, tn_error *err)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < w->files->n_parts; i++) {
        rows += w->part[i].rows;
    }
    tn_text index = {.size_max = (size_t)UINT32_MAX};
    tn_text tail = {0};
    tn_text_add_u32le(&index, w->files->n);
    tn_text_add_u32le(&index, w->files->n_parts);
    tn_text_add_u64le(&index, w->n_blocks);
    tn_text_add_u64le(&index, rows);
    add_sources(w, &index);
    add_parts(w, &index);
    tn_status status = tn_text_check(&index, "the index of a binary cache", err);
    if (status == TN_OK) {
        tn_text_add_u64le(&tail, tn_output_size(w->file));
        tn_text_add_u64le(&tail, index.size);
        tn_text_add_u32le(&tail, tn_crc32c(0, index.data, index.size));
        tn_text_add_u32le(&tail, tn_crc32c(0, tn_text_str(&tail), tail.size));
        tn_text_add(&tail, TN_CACHE_END, 8);
        status = tn_text_check(&tail, "the end of a binary cache", err);
    }
    if (status == TN_OK) {
        status = tn_output_write(w->file, index.data, index.size, err);
    }
    if (status == TN_OK) {
        status = tn_output_write(w->file, tail.data, tail.size, err);
    }
    tn_text_done(&index);
    tn_text_done(&tail);
    return status;
}

tn_status tn_cache_commit(tn_cache_writer *w, tn_error *err)
{
    tn_status status = write_index(w, err);
    if (status == TN_OK) {
        status = look_at_sources(w, true, err);
    }
    if (status == TN_OK) {
        tn_output *file = w->file;
        w->file = NULL; /* gone either way */
        status = tn_output_commit(file, err);
    }
    tn_cache_abandon(w);
    return status;
}
