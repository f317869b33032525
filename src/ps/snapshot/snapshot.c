/* snapshot.c - writing shard files, and reading them as hostile input. Little-endian:
 *
 *     header, 64 bytes                                     block header, 32 bytes
 *     0  magic                                             0  u32 stored bytes  4  u32 raw bytes
 *     8  u16 major 1, u16 minor 0, u32 header bytes 64     8  u32 rows         12  u16 partition
 *     16 u64 run_id   24 u64 step   32 u64 base step       14 u8 codec (0 none)   15 u8 1 (rows)
 *     40 schema, 8 bytes                                   16 u64 first key    24  u32 0
 *     48 u16 partitions (0: 65536), first, last            28 u32 crc of bytes 0..27 and the
 *     54 u16 flags (1 delta)    56 u32 0                      stored bytes
 *     60 u32 crc of bytes 0..59
 *
 *     row, 32 bytes and floats                             index, 24 bytes per partition
 *     0  u64 key   8  u16 group, bit 15 removed            u64 offset of first block (0 none)
 *     10 u16 segments present                              u64 bytes, u64 rows
 *     12 u32 last_seen    16  f64 show   24  f64 click     trailer, the last 32 bytes
 *     32 f32 per present segment: w[dim], each state       0 u64 index offset    8 u64 rows
 *     a removed row ends behind last_seen                  16 u32 partitions of the file
 *                                                          20 "TNSF"  24 u32 crc of index
 *     no row straddles blocks,                             28 u32 crc of trailer 0..27
 *     no block straddles partitions
 *
 * At open the three parts that describe the file must agree: the blocks of the partitions tile the
 * space between header and index, the index ends where the trailer begins, the trailer ends the
 * file. After that a partition's blocks cannot lie anywhere else, and each is under its crc.
 */
#include "ps/snapshot/snapshot.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/file/file.h"
#include "base/keys/keyset.h"
#include "base/math/crc32c.h"

#include <math.h>
#include <string.h>

enum {
    TNS_MAJOR = 1,
    TNS_MINOR = 0,
    TNS_HEADER = 64,
    TNS_BLOCK = 32,
    TNS_ROW = 32,
    TNS_REMOVED_ROW = 16,
    TNS_INDEX = 24,
    TNS_TRAILER = 32,
    TNS_MAGIC_BYTES = 8,
    TNS_FLAG_DELTA = 1,
    TNS_ROW_REMOVED = 0x8000,
    TNS_CODEC_NONE = 0,
    TNS_KIND_ROWS = 1
};

#define TNS_MAGIC "TNS1\r\n\x1a\n"
#define TNS_TRAILER_MAGIC 0x46534e54U /* "TNSF" */

/* ---- writing ---- */

typedef struct index_entry {
    uint64_t offset, bytes, rows;
} index_entry;

struct tn_snapshot_writer {
    tn_file *file;
    tn_snapshot_head head;
    uint32_t n_partitions; /* of this file */
    uint32_t partition;    /* begun last; head.first - 1 before that */
    bool begun;
    uint64_t last_key; /* of the partition, when it has rows */
    uint64_t rows;     /* in all */
    uint32_t block_rows;
    uint32_t block_bytes;
    uint64_t block_first_key;
    index_entry *index;
    char block[TNS_BLOCK + TN_SNAPSHOT_BLOCK_MAX];
};

static void fill_header(const tn_snapshot_head *head, char bytes[TNS_HEADER])
{
    memset(bytes, 0, TNS_HEADER);
    memcpy(bytes, TNS_MAGIC, TNS_MAGIC_BYTES);
    tn_store_u16(bytes + 8, TNS_MAJOR);
    tn_store_u16(bytes + 10, TNS_MINOR);
    tn_store_u32(bytes + 12, TNS_HEADER);
    tn_store_u64(bytes + 16, head->run_id);
    tn_store_u64(bytes + 24, head->step);
    tn_store_u64(bytes + 32, head->base_step);
    memcpy(bytes + 40, head->schema, sizeof head->schema);
    tn_store_u16(bytes + 48, (uint16_t)(head->partitions % TN_SNAPSHOT_PARTITIONS_MAX));
    tn_store_u16(bytes + 50, (uint16_t)head->first);
    tn_store_u16(bytes + 52, (uint16_t)head->last);
    tn_store_u16(bytes + 54, head->delta ? TNS_FLAG_DELTA : 0);
    tn_store_u32(bytes + 60, tn_crc32c(0, bytes, 60));
}

tn_status tn_snapshot_create(tn_snapshot_writer **out, const char *path,
                             const tn_snapshot_head *head, tn_error *err)
{
    *out = NULL;
    TN_ASSERT(head->partitions >= 1 && head->partitions <= TN_SNAPSHOT_PARTITIONS_MAX);
    TN_ASSERT(head->first <= head->last && head->last < head->partitions);
    tn_status status = TN_E_MEMORY;
    tn_snapshot_writer *w = tn_try_alloc(1, sizeof *w, "a shard file's block", err);
    if (w == NULL) {
        return status;
    }
    w->head = *head;
    w->n_partitions = head->last - head->first + 1;
    w->index = tn_try_alloc(w->n_partitions, sizeof *w->index, "a shard file's index", err);
    if (w->index == NULL) {
        goto fail;
    }
    status = tn_file_create(&w->file, path, err);
    if (status != TN_OK) {
        goto fail;
    }
    char bytes[TNS_HEADER];
    fill_header(head, bytes);
    status = tn_file_write(w->file, bytes, sizeof bytes, err);
    if (status != TN_OK) {
        goto fail;
    }
    *out = w;
    return TN_OK;
fail:
    tn_snapshot_abandon(w);
    return status;
}

static index_entry *entry_of(tn_snapshot_writer *w)
{
    TN_ASSERT(w->begun && w->partition - w->head.first < w->n_partitions);
    return &w->index[w->partition - w->head.first];
}

static tn_status end_block(tn_snapshot_writer *w, tn_error *err)
{
    if (w->block_rows == 0) {
        return TN_OK;
    }
    TN_ASSERT(w->block_bytes <= TN_SNAPSHOT_BLOCK_MAX);
    char *header = w->block;
    tn_store_u32(header, w->block_bytes);
    tn_store_u32(header + 4, w->block_bytes);
    tn_store_u32(header + 8, w->block_rows);
    tn_store_u16(header + 12, (uint16_t)w->partition);
    tn_store_u8(header + 14, TNS_CODEC_NONE);
    tn_store_u8(header + 15, TNS_KIND_ROWS);
    tn_store_u64(header + 16, w->block_first_key);
    tn_store_u32(header + 24, 0);
    uint32_t crc = tn_crc32c(0, header, 28);
    tn_store_u32(header + 28, tn_crc32c(crc, header + TNS_BLOCK, w->block_bytes));

    index_entry *entry = entry_of(w);
    if (entry->rows == 0) {
        entry->offset = tn_file_size(w->file);
    }
    TN_TRY(tn_file_write(w->file, w->block, TNS_BLOCK + w->block_bytes, err));
    entry->bytes += TNS_BLOCK + w->block_bytes;
    entry->rows += w->block_rows;
    w->rows += w->block_rows;
    w->block_rows = 0;
    w->block_bytes = 0;
    return TN_OK;
}

tn_status tn_snapshot_begin(tn_snapshot_writer *w, uint32_t partition, tn_error *err)
{
    TN_ASSERT(partition >= w->head.first && partition <= w->head.last);
    TN_ASSERT(!w->begun || partition > w->partition);
    TN_TRY(end_block(w, err));
    w->begun = true;
    w->partition = partition;
    w->last_key = 0;
    return TN_OK;
}

/* Appends the row to the block; returns its bytes. */
static uint32_t place_row(char *at, const tn_row_view *row)
{
    tn_store_u64(at, row->key);
    tn_store_u16(at + 8, (uint16_t)(row->group | (row->removed ? TNS_ROW_REMOVED : 0)));
    tn_store_u16(at + 10, row->removed ? 0 : row->present);
    tn_store_u32(at + 12, row->last_seen);
    if (row->removed) {
        return TNS_REMOVED_ROW;
    }
    tn_store_f64(at + 16, row->show);
    tn_store_f64(at + 24, row->click);
    if (row->n_floats > 0) {
        memcpy(at + TNS_ROW, row->data, row->n_floats * sizeof(float));
    }
    return TNS_ROW + row->n_floats * (uint32_t)sizeof(float);
}

tn_status tn_snapshot_add(tn_snapshot_writer *w, const tn_row_view *row, tn_error *err)
{
    bool first_of_partition = entry_of(w)->rows == 0 && w->block_rows == 0;
    TN_ASSERT(first_of_partition || row->key > w->last_key);
    TN_ASSERT(tn_partition_of(row->key, w->head.partitions) == w->partition);
    TN_ASSERT((row->group & TNS_ROW_REMOVED) == 0 && (!row->removed || w->head.delta));
    if (row->n_floats > (TN_SNAPSHOT_BLOCK_MAX - TNS_ROW) / sizeof(float)) {
        return tn_fail(err, TN_E_LIMIT, "a row of %u floats, a checkpoint takes at most %zu",
                       row->n_floats, (TN_SNAPSHOT_BLOCK_MAX - TNS_ROW) / sizeof(float));
    }
    size_t most = TNS_ROW + row->n_floats * sizeof(float);
    if (w->block_bytes + most > TN_SNAPSHOT_BLOCK_MAX) {
        TN_TRY(end_block(w, err));
    }
    if (w->block_rows == 0) {
        w->block_first_key = row->key;
    }
    w->block_bytes += place_row(w->block + TNS_BLOCK + w->block_bytes, row);
    w->block_rows++;
    w->last_key = row->key;
    return TN_OK;
}

/* Index and trailer. */
static tn_status write_tail(tn_snapshot_writer *w, tn_error *err)
{
    char trailer[TNS_TRAILER];
    uint64_t offset = tn_file_size(w->file);
    TN_ASSERT(w->block_rows == 0);
    uint32_t crc = 0;
    uint64_t at = TNS_HEADER;
    uint64_t rows = 0;
    for (uint32_t i = 0; i < w->n_partitions; i++) {
        char bytes[TNS_INDEX];
        at += w->index[i].bytes;
        rows += w->index[i].rows;
        tn_store_u64(bytes, w->index[i].offset);
        tn_store_u64(bytes + 8, w->index[i].bytes);
        tn_store_u64(bytes + 16, w->index[i].rows);
        crc = tn_crc32c(crc, bytes, sizeof bytes);
        TN_TRY(tn_file_write(w->file, bytes, sizeof bytes, err));
    }
    TN_ASSERT(at == offset && rows == w->rows); /* as check_index reads it */
    tn_store_u64(trailer, offset);
    tn_store_u64(trailer + 8, w->rows);
    tn_store_u32(trailer + 16, w->n_partitions);
    tn_store_u32(trailer + 20, TNS_TRAILER_MAGIC);
    tn_store_u32(trailer + 24, crc);
    tn_store_u32(trailer + 28, tn_crc32c(0, trailer, 28));
    return tn_file_write(w->file, trailer, sizeof trailer, err);
}

tn_status tn_snapshot_commit(tn_snapshot_writer *w, tn_snapshot_done *out, tn_error *err)
{
    tn_status status = end_block(w, err);
    if (status == TN_OK) {
        status = write_tail(w, err);
    }
    if (status == TN_OK) {
        tn_snapshot_done done = {
            .bytes = tn_file_size(w->file), .rows = w->rows, .crc = tn_file_crc(w->file)};
        tn_file *file = w->file;
        w->file = NULL; /* commit frees it either way */
        status = tn_file_commit(file, err);
        if (status == TN_OK) {
            *out = done;
        }
    }
    tn_snapshot_abandon(w);
    return status;
}

void tn_snapshot_abandon(tn_snapshot_writer *w)
{
    if (w != NULL) {
        tn_file_abandon(w->file);
        tn_free(w->index);
        tn_free(w);
    }
}

/* ---- reading ---- */

enum { HEADER_MAX = 4096 }; /* of a later minor version */

struct tn_snapshot {
    tn_infile *file;
    tn_snapshot_head head;
    uint32_t header_bytes;
    uint32_t n_partitions;
    uint64_t index_offset;
    uint64_t rows;
    char *index;                       /* n_partitions * TNS_INDEX bytes */
    char block[TN_SNAPSHOT_BLOCK_MAX]; /* rows begin on multiples of 4 */
};

/* A place in the rows of a partition. */
typedef struct cursor {
    uint32_t partition;
    const tn_row_schema *schema;
    tn_row_visit *visit;
    void *arg;
    uint64_t block_at; /* offset of the block in the file */
    uint64_t rows;     /* read so far */
    uint64_t last_key;
} cursor;

static tn_status broken(const tn_snapshot *s, uint64_t at, const char *why, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "'%s' at byte %llu: %s", tn_infile_path(s->file),
                   (unsigned long long)at, why);
}

/* For a part whose crc is right: the file is whole, but this build does not know all of it. */
static tn_status newer(const tn_snapshot *s, uint64_t at, const char *why, tn_error *err)
{
    (void)broken(s, at, why, err);
    if (err != NULL) {
        err->code = TN_E_LIMIT;
    }
    return TN_E_LIMIT;
}

static tn_status read_header(tn_snapshot *s, tn_error *err)
{
    char bytes[TNS_HEADER];
    TN_TRY(tn_infile_read(s->file, 0, bytes, sizeof bytes, err));
    if (memcmp(bytes, TNS_MAGIC, TNS_MAGIC_BYTES) != 0) {
        return broken(s, 0, "not a shard file", err);
    }
    if (tn_load_u32(bytes + 60) != tn_crc32c(0, bytes, 60)) {
        return broken(s, 60, "the header's crc is wrong", err);
    }
    if (tn_load_u16(bytes + 8) > TNS_MAJOR) {
        return newer(s, 8, "written by a newer version", err);
    }
    if (tn_load_u16(bytes + 8) == 0) {
        return broken(s, 8, "there is no version 0", err);
    }
    s->header_bytes = tn_load_u32(bytes + 12);
    bool longer = tn_load_u16(bytes + 10) > TNS_MINOR;
    if (s->header_bytes < TNS_HEADER ||
        s->header_bytes > (longer ? (uint32_t)HEADER_MAX : (uint32_t)TNS_HEADER)) {
        return broken(s, 12, "a wrong header size", err);
    }
    uint16_t flags = tn_load_u16(bytes + 54);
    if ((flags & ~TNS_FLAG_DELTA) != 0 || tn_load_u32(bytes + 56) != 0) {
        return broken(s, 54, "unknown flags", err);
    }
    uint32_t partitions = tn_load_u16(bytes + 48);
    s->head = (tn_snapshot_head){
        .run_id = tn_load_u64(bytes + 16),
        .step = tn_load_u64(bytes + 24),
        .base_step = tn_load_u64(bytes + 32),
        .partitions = partitions != 0 ? partitions : TN_SNAPSHOT_PARTITIONS_MAX,
        .first = tn_load_u16(bytes + 50),
        .last = tn_load_u16(bytes + 52),
        .delta = (flags & TNS_FLAG_DELTA) != 0,
    };
    memcpy(s->head.schema, bytes + 40, sizeof s->head.schema);
    if (s->head.first > s->head.last || s->head.last >= s->head.partitions) {
        return broken(s, 48, "partitions out of range", err);
    }
    s->n_partitions = s->head.last - s->head.first + 1;
    return TN_OK;
}

/* The trailer, and with it where the index lies; then the index, whose size is known by now. */
static tn_status read_tail(tn_snapshot *s, tn_error *err)
{
    uint64_t size = tn_infile_size(s->file);
    uint64_t at = size - TNS_TRAILER;
    char bytes[TNS_TRAILER];
    TN_TRY(tn_infile_read(s->file, at, bytes, sizeof bytes, err));
    if (tn_load_u32(bytes + 20) != TNS_TRAILER_MAGIC ||
        tn_load_u32(bytes + 28) != tn_crc32c(0, bytes, 28)) {
        return broken(s, at, "no trailer: the file is cut or damaged at its end", err);
    }
    s->index_offset = tn_load_u64(bytes);
    s->rows = tn_load_u64(bytes + 8);
    size_t index_bytes = (size_t)s->n_partitions * TNS_INDEX;
    if (tn_load_u32(bytes + 16) != s->n_partitions || index_bytes > at ||
        s->index_offset != at - index_bytes || s->index_offset < s->header_bytes) {
        return broken(s, at, "the trailer does not fit the file", err);
    }
    s->index = tn_try_alloc(1, index_bytes, "a shard file's index", err);
    if (s->index == NULL) {
        return TN_E_MEMORY;
    }
    TN_TRY(tn_infile_read(s->file, s->index_offset, s->index, index_bytes, err));
    if (tn_load_u32(bytes + 24) != tn_crc32c(0, s->index, index_bytes)) {
        return broken(s, s->index_offset, "the index's crc is wrong", err);
    }
    return TN_OK;
}

/* The partitions of the index tile the space of the blocks and their rows add up. */
static tn_status check_index(const tn_snapshot *s, tn_error *err)
{
    uint64_t at = s->header_bytes;
    uint64_t rows = 0;
    for (uint32_t i = 0; i < s->n_partitions; i++) {
        const char *entry = s->index + (size_t)i * TNS_INDEX;
        uint64_t offset = tn_load_u64(entry);
        uint64_t bytes = tn_load_u64(entry + 8);
        uint64_t entry_rows = tn_load_u64(entry + 16);
        bool empty = entry_rows == 0 && bytes == 0 && offset == 0;
        bool follows = entry_rows > 0 && bytes > TNS_BLOCK && offset == at &&
                       bytes <= s->index_offset - at && entry_rows <= bytes;
        if (!empty && !follows) {
            return broken(s, s->index_offset + (uint64_t)i * TNS_INDEX,
                          "the index does not fit the file", err);
        }
        at += bytes;
        rows += entry_rows;
    }
    if (at != s->index_offset || rows != s->rows) {
        return broken(s, s->index_offset, "the index does not cover the file", err);
    }
    return TN_OK;
}

tn_status tn_snapshot_open(tn_snapshot **out, const char *path, tn_error *err)
{
    *out = NULL;
    tn_status status = TN_E_MEMORY;
    tn_snapshot *s = tn_try_alloc(1, sizeof *s, "a shard file's block", err);
    if (s == NULL) {
        return status;
    }
    status = tn_infile_open(&s->file, path, err);
    if (status != TN_OK) {
        goto fail;
    }
    if (tn_infile_size(s->file) < TNS_HEADER + TNS_INDEX + TNS_TRAILER) {
        status = broken(s, tn_infile_size(s->file), "the file ends too early", err);
        goto fail;
    }
    status = read_header(s, err);
    if (status == TN_OK) {
        status = read_tail(s, err);
    }
    if (status == TN_OK) {
        status = check_index(s, err);
    }
    if (status != TN_OK) {
        goto fail;
    }
    *out = s;
    return TN_OK;
fail:
    tn_snapshot_close(s);
    return status;
}

void tn_snapshot_close(tn_snapshot *s)
{
    if (s != NULL) {
        tn_infile_close(s->file);
        tn_free(s->index);
        tn_free(s);
    }
}

const tn_snapshot_head *tn_snapshot_head_of(const tn_snapshot *s)
{
    return &s->head;
}

uint64_t tn_snapshot_rows(const tn_snapshot *s)
{
    return s->rows;
}

/* Floats of a row. False: a group or a segment that the schema does not have. */
static bool count_values(const tn_row_schema *schema, const tn_row_view *row, uint32_t *out)
{
    if (row->group >= schema->n_groups) {
        return false;
    }
    TN_ASSERT(schema->group[row->group].record < schema->n_records);
    const tn_row_record *record = &schema->record[schema->group[row->group].record];
    if (row->present >> record->n_segments != 0) {
        return false;
    }
    *out = 0;
    for (uint32_t i = 0; i < record->n_segments; i++) {
        const tn_row_segment *segment = &record->segment[i];
        const bool present = (row->present >> i & 1) != 0;
        *out += present ? segment->dim : 0;
        for (uint32_t k = 0; present && k < segment->n_states; k++) {
            *out += segment->state[k].words;
        }
    }
    return true;
}

static bool is_count(double value)
{
    return isfinite(value) && value >= 0;
}

/* Takes one row off the block. Returns the fault as words, or NULL. */
static const char *take_row(const tn_snapshot *s, const cursor *c, tn_bytes *in, tn_row_view *row)
{
    *row = (tn_row_view){.key = tn_get_u64(in)};
    uint16_t group = tn_get_u16(in);
    row->removed = (group & TNS_ROW_REMOVED) != 0;
    row->group = (uint16_t)(group & ~TNS_ROW_REMOVED);
    row->present = tn_get_u16(in);
    row->last_seen = tn_get_u32(in);
    if (in->failed) {
        return "a row runs past its block";
    }
    if (!count_values(c->schema, row, &row->n_floats)) {
        return "a row of an unknown group or segment";
    }
    if (tn_partition_of(row->key, s->head.partitions) != c->partition) {
        return "a key of another partition";
    }
    if (c->rows > 0 && row->key <= c->last_key) {
        return "keys do not ascend";
    }
    if (row->removed) {
        return s->head.delta && row->present == 0 ? NULL : "a removed row that makes no sense";
    }
    row->show = tn_get_f64(in);
    row->click = tn_get_f64(in);
    row->data = (const float *)(const void *)tn_get(in, row->n_floats * sizeof(float));
    if (in->failed) {
        return "a row runs past its block";
    }
    return is_count(row->show) && is_count(row->click) ? NULL : "a counter that is no count";
}

/* Hands the rows of s->block to the visitor. */
static tn_status read_rows(const tn_snapshot *s, cursor *c, const char *header, tn_error *err)
{
    tn_bytes in = {.data = s->block, .size = tn_load_u32(header + 4)};
    uint64_t rows_at = c->block_at + TNS_BLOCK;
    uint32_t n_rows = tn_load_u32(header + 8);
    TN_ASSERT(in.size <= TN_SNAPSHOT_BLOCK_MAX && n_rows > 0);
    for (uint32_t i = 0; i < n_rows; i++) {
        uint64_t at = rows_at + (uint64_t)(in.data - s->block);
        tn_row_view row;
        const char *why = take_row(s, c, &in, &row);
        if (why != NULL) {
            return broken(s, at, why, err);
        }
        if (i == 0 && row.key != tn_load_u64(header + 16)) {
            return broken(s, c->block_at + 16, "a block's first key is another", err);
        }
        c->last_key = row.key;
        c->rows++;
        if (c->visit != NULL) {
            TN_TRY(c->visit(c->arg, &row, err));
        }
    }
    return in.size == 0 ? TN_OK : broken(s, rows_at, "bytes behind a block's last row", err);
}

/* Reads the block at c->block_at into s->block, of which at most `bytes_left` belong to it. */
static tn_status read_block(tn_snapshot *s, const cursor *c, uint64_t bytes_left,
                            char header[TNS_BLOCK], tn_error *err)
{
    if (bytes_left < TNS_BLOCK) {
        return broken(s, c->block_at, "a block runs past its partition", err);
    }
    TN_TRY(tn_infile_read(s->file, c->block_at, header, TNS_BLOCK, err));
    uint32_t stored = tn_load_u32(header);
    uint32_t raw = tn_load_u32(header + 4);
    if (stored > bytes_left - TNS_BLOCK || stored > TN_SNAPSHOT_BLOCK_MAX ||
        raw > TN_SNAPSHOT_BLOCK_MAX) {
        return broken(s, c->block_at, "a block runs past its partition", err);
    }
    TN_TRY(tn_infile_read(s->file, c->block_at + TNS_BLOCK, s->block, stored, err));
    uint32_t crc = tn_crc32c(tn_crc32c(0, header, 28), s->block, stored);
    if (crc != tn_load_u32(header + 28)) {
        return broken(s, c->block_at, "a block's crc is wrong", err);
    }
    if (tn_load_u8(header + 14) != TNS_CODEC_NONE) {
        return newer(s, c->block_at + 14, "compressed by a codec that this build lacks", err);
    }
    if (stored != raw || tn_load_u16(header + 12) != c->partition ||
        tn_load_u8(header + 15) != TNS_KIND_ROWS || tn_load_u32(header + 24) != 0 ||
        tn_load_u32(header + 8) == 0) {
        return broken(s, c->block_at, "a block's header makes no sense", err);
    }
    return TN_OK;
}

tn_status tn_snapshot_read(tn_snapshot *s, uint32_t partition, const tn_row_schema *schema,
                           tn_row_visit *visit, void *arg, tn_error *err)
{
    TN_ASSERT(schema != NULL && s->index != NULL);
    TN_ASSERT(partition >= s->head.first && partition <= s->head.last);
    const char *entry = s->index + (size_t)(partition - s->head.first) * TNS_INDEX;
    uint64_t bytes_left = tn_load_u64(entry + 8);
    cursor c = {.partition = partition,
                .schema = schema,
                .visit = visit,
                .arg = arg,
                .block_at = tn_load_u64(entry)};
    while (bytes_left > 0) {
        char header[TNS_BLOCK];
        TN_TRY(read_block(s, &c, bytes_left, header, err));
        TN_TRY(read_rows(s, &c, header, err));
        uint64_t bytes = TNS_BLOCK + (uint64_t)tn_load_u32(header);
        c.block_at += bytes;
        bytes_left -= bytes;
    }
    if (c.rows != tn_load_u64(entry + 16)) {
        return broken(s, c.block_at, "a partition has another number of rows than its index", err);
    }
    return TN_OK;
}
