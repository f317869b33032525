/* snapshotread.c - reading shard files as hostile input; the bytes are drawn in snapshotfmt.h.
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
#include "ps/snapshot/snapshotfmt.h"

#include <math.h>
#include <string.h>

enum { HEADER_MAX = 4096 }; /* of a later minor version */

struct tn_snapshot {
    tn_infile *file;
    tn_snapshot_head head;
    uint32_t header_bytes;
    uint32_t n_partitions;
    uint64_t index_offset;
    uint64_t rows;
    char *index;                       /* n_partitions * TN_TNS_INDEX bytes */
    char block[TN_SNAPSHOT_BLOCK_MAX]; /* rows begin on multiples of 4 */
};

/* A place in the rows of a partition. */
typedef struct cursor {
    uint32_t partition;
    const tn_snapshot_layout *layout;
    tn_snapshot_visit *visit;
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

/* Its crc is right: it is whole, and more than this build knows. */
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
    char bytes[TN_TNS_HEADER];
    TN_TRY(tn_infile_read(s->file, 0, bytes, sizeof bytes, err));
    if (memcmp(bytes, TN_TNS_MAGIC, TN_TNS_MAGIC_BYTES) != 0) {
        return broken(s, 0, "not a shard file", err);
    }
    if (tn_load_u32(bytes + 60) != tn_crc32c(0, bytes, 60)) {
        return broken(s, 60, "the header's crc is wrong", err);
    }
    if (tn_load_u16(bytes + 8) > TN_TNS_MAJOR) {
        return newer(s, 8, "written by a newer version", err);
    }
    if (tn_load_u16(bytes + 8) == 0) {
        return broken(s, 8, "there is no version 0", err);
    }
    s->header_bytes = tn_load_u32(bytes + 12);
    bool longer = tn_load_u16(bytes + 10) > TN_TNS_MINOR;
    if (s->header_bytes < TN_TNS_HEADER ||
        s->header_bytes > (longer ? (uint32_t)HEADER_MAX : (uint32_t)TN_TNS_HEADER)) {
        return broken(s, 12, "a wrong header size", err);
    }
    uint16_t flags = tn_load_u16(bytes + 54);
    if ((flags & ~TN_TNS_FLAG_DELTA) != 0 || tn_load_u32(bytes + 56) != 0) {
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
        .delta = (flags & TN_TNS_FLAG_DELTA) != 0,
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
    uint64_t at = size - TN_TNS_TRAILER;
    char bytes[TN_TNS_TRAILER];
    TN_TRY(tn_infile_read(s->file, at, bytes, sizeof bytes, err));
    if (tn_load_u32(bytes + 20) != TN_TNS_TRAILER_MAGIC ||
        tn_load_u32(bytes + 28) != tn_crc32c(0, bytes, 28)) {
        return broken(s, at, "no trailer: the file is cut or damaged at its end", err);
    }
    s->index_offset = tn_load_u64(bytes);
    s->rows = tn_load_u64(bytes + 8);
    size_t index_bytes = (size_t)s->n_partitions * TN_TNS_INDEX;
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
        const char *entry = s->index + (size_t)i * TN_TNS_INDEX;
        uint64_t offset = tn_load_u64(entry);
        uint64_t bytes = tn_load_u64(entry + 8);
        uint64_t entry_rows = tn_load_u64(entry + 16);
        bool empty = entry_rows == 0 && bytes == 0 && offset == 0;
        bool follows = entry_rows > 0 && bytes > TN_TNS_BLOCK && offset == at &&
                       bytes <= s->index_offset - at && entry_rows <= bytes;
        if (!empty && !follows) {
            return broken(s, s->index_offset + (uint64_t)i * TN_TNS_INDEX,
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
    if (tn_infile_size(s->file) < TN_TNS_HEADER + TN_TNS_INDEX + TN_TNS_TRAILER) {
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

/* Floats of a row. False: a group or a segment that the layout does not have. */
static bool count_values(const tn_snapshot_layout *layout, const tn_snapshot_row *row,
                         uint32_t *out)
{
    if (row->group >= layout->n_groups) {
        return false;
    }
    const tn_snapshot_record *record = &layout->record[layout->record_of_group[row->group]];
    TN_ASSERT(record->n_segments <= TN_SEGMENTS_MAX);
    if (row->present >> record->n_segments != 0) {
        return false;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < record->n_segments; i++) {
        n += (row->present >> i & 1) != 0 ? record->words[i] : 0;
    }
    *out = n;
    return true;
}

static bool is_count(double value)
{
    return isfinite(value) && value >= 0;
}

/* Takes one row off the block. Returns what is wrong with it, or NULL. */
static const char *take_row(const tn_snapshot *s, const cursor *c, tn_bytes *in,
                            tn_snapshot_row *row)
{
    *row = (tn_snapshot_row){.key = tn_get_u64(in)};
    uint16_t group = tn_get_u16(in);
    row->removed = (group & TN_TNS_ROW_REMOVED) != 0;
    row->group = (uint16_t)(group & ~TN_TNS_ROW_REMOVED);
    row->present = tn_get_u16(in);
    row->last_seen = tn_get_u32(in);
    if (in->failed) {
        return "a row runs past its block";
    }
    if (!count_values(c->layout, row, &row->n_values)) {
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
    row->values = (const float *)(const void *)tn_get(in, row->n_values * sizeof(float));
    if (in->failed) {
        return "a row runs past its block";
    }
    return is_count(row->show) && is_count(row->click) ? NULL : "a counter that is no count";
}

/* Hands the rows of s->block to the visitor. */
static tn_status read_rows(const tn_snapshot *s, cursor *c, const char *header, tn_error *err)
{
    tn_bytes in = {.data = s->block, .size = tn_load_u32(header + 4)};
    uint64_t rows_at = c->block_at + TN_TNS_BLOCK;
    uint32_t n_rows = tn_load_u32(header + 8);
    for (uint32_t i = 0; i < n_rows; i++) {
        uint64_t at = rows_at + (uint64_t)(in.data - s->block);
        tn_snapshot_row row;
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
                            char header[TN_TNS_BLOCK], tn_error *err)
{
    if (bytes_left < TN_TNS_BLOCK) {
        return broken(s, c->block_at, "a block runs past its partition", err);
    }
    TN_TRY(tn_infile_read(s->file, c->block_at, header, TN_TNS_BLOCK, err));
    uint32_t stored = tn_load_u32(header);
    uint32_t raw = tn_load_u32(header + 4);
    if (stored > bytes_left - TN_TNS_BLOCK || stored > TN_SNAPSHOT_BLOCK_MAX ||
        raw > TN_SNAPSHOT_BLOCK_MAX) {
        return broken(s, c->block_at, "a block runs past its partition", err);
    }
    TN_TRY(tn_infile_read(s->file, c->block_at + TN_TNS_BLOCK, s->block, stored, err));
    uint32_t crc = tn_crc32c(tn_crc32c(0, header, 28), s->block, stored);
    if (crc != tn_load_u32(header + 28)) {
        return broken(s, c->block_at, "a block's crc is wrong", err);
    }
    if (tn_load_u8(header + 14) != TN_TNS_CODEC_NONE) {
        return newer(s, c->block_at + 14, "compressed by a codec that this build lacks", err);
    }
    if (stored != raw || tn_load_u16(header + 12) != c->partition ||
        tn_load_u8(header + 15) != TN_TNS_KIND_ROWS || tn_load_u32(header + 24) != 0 ||
        tn_load_u32(header + 8) == 0) {
        return broken(s, c->block_at, "a block's header makes no sense", err);
    }
    return TN_OK;
}

tn_status tn_snapshot_read(tn_snapshot *s, uint32_t partition, const tn_snapshot_layout *layout,
                           tn_snapshot_visit *visit, void *arg, tn_error *err)
{
    TN_ASSERT(partition >= s->head.first && partition <= s->head.last);
    const char *entry = s->index + (size_t)(partition - s->head.first) * TN_TNS_INDEX;
    uint64_t bytes_left = tn_load_u64(entry + 8);
    cursor c = {.partition = partition,
                .layout = layout,
                .visit = visit,
                .arg = arg,
                .block_at = tn_load_u64(entry)};
    while (bytes_left > 0) {
        char header[TN_TNS_BLOCK];
        TN_TRY(read_block(s, &c, bytes_left, header, err));
        TN_TRY(read_rows(s, &c, header, err));
        uint64_t bytes = TN_TNS_BLOCK + (uint64_t)tn_load_u32(header);
        c.block_at += bytes;
        bytes_left -= bytes;
    }
    if (c.rows != tn_load_u64(entry + 16)) {
        return broken(s, c.block_at, "a partition has another number of rows than its index", err);
    }
    return TN_OK;
}
