/* snapshot.c - writing shard files; the bytes are drawn in snapshotfmt.h. */
#include "ps/snapshot/snapshot.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/file/file.h"
#include "base/keys/keyset.h"
#include "base/math/crc32c.h"
#include "ps/snapshot/snapshotfmt.h"

#include <string.h>

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
    char block[TN_TNS_BLOCK + TN_SNAPSHOT_BLOCK_MAX];
};

static void fill_header(const tn_snapshot_head *head, char bytes[TN_TNS_HEADER])
{
    memset(bytes, 0, TN_TNS_HEADER);
    memcpy(bytes, TN_TNS_MAGIC, TN_TNS_MAGIC_BYTES);
    tn_store_u16(bytes + 8, TN_TNS_MAJOR);
    tn_store_u16(bytes + 10, TN_TNS_MINOR);
    tn_store_u32(bytes + 12, TN_TNS_HEADER);
    tn_store_u64(bytes + 16, head->run_id);
    tn_store_u64(bytes + 24, head->step);
    tn_store_u64(bytes + 32, head->base_step);
    memcpy(bytes + 40, head->schema, sizeof head->schema);
    tn_store_u16(bytes + 48, (uint16_t)(head->partitions % TN_SNAPSHOT_PARTITIONS_MAX));
    tn_store_u16(bytes + 50, (uint16_t)head->first);
    tn_store_u16(bytes + 52, (uint16_t)head->last);
    tn_store_u16(bytes + 54, head->delta ? TN_TNS_FLAG_DELTA : 0);
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
    char bytes[TN_TNS_HEADER];
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
    char *header = w->block;
    tn_store_u32(header, w->block_bytes);
    tn_store_u32(header + 4, w->block_bytes);
    tn_store_u32(header + 8, w->block_rows);
    tn_store_u16(header + 12, (uint16_t)w->partition);
    tn_store_u8(header + 14, TN_TNS_CODEC_NONE);
    tn_store_u8(header + 15, TN_TNS_KIND_ROWS);
    tn_store_u64(header + 16, w->block_first_key);
    tn_store_u32(header + 24, 0);
    uint32_t crc = tn_crc32c(0, header, 28);
    tn_store_u32(header + 28, tn_crc32c(crc, header + TN_TNS_BLOCK, w->block_bytes));

    index_entry *entry = entry_of(w);
    if (entry->rows == 0) {
        entry->offset = tn_file_size(w->file);
    }
    TN_TRY(tn_file_write(w->file, w->block, TN_TNS_BLOCK + w->block_bytes, err));
    entry->bytes += TN_TNS_BLOCK + w->block_bytes;
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

/* Puts the row behind those of the block; returns its bytes. */
static uint32_t place_row(char *at, const tn_snapshot_row *row)
{
    tn_store_u64(at, row->key);
    tn_store_u16(at + 8, (uint16_t)(row->group | (row->removed ? TN_TNS_ROW_REMOVED : 0)));
    tn_store_u16(at + 10, row->removed ? 0 : row->present);
    tn_store_u32(at + 12, row->last_seen);
    if (row->removed) {
        return TN_TNS_REMOVED_ROW;
    }
    tn_store_f64(at + 16, row->show);
    tn_store_f64(at + 24, row->click);
    if (row->n_values > 0) {
        memcpy(at + TN_TNS_ROW, row->values, row->n_values * sizeof(float));
    }
    return TN_TNS_ROW + row->n_values * (uint32_t)sizeof(float);
}

tn_status tn_snapshot_add(tn_snapshot_writer *w, const tn_snapshot_row *row, tn_error *err)
{
    bool first_of_partition = entry_of(w)->rows == 0 && w->block_rows == 0;
    TN_ASSERT(first_of_partition || row->key > w->last_key);
    TN_ASSERT(tn_partition_of(row->key, w->head.partitions) == w->partition);
    TN_ASSERT((row->group & TN_TNS_ROW_REMOVED) == 0 && (!row->removed || w->head.delta));
    if (row->n_values > (TN_SNAPSHOT_BLOCK_MAX - TN_TNS_ROW) / sizeof(float)) {
        return tn_fail(err, TN_E_LIMIT, "a row of %u floats, a checkpoint takes at most %zu",
                       row->n_values, (TN_SNAPSHOT_BLOCK_MAX - TN_TNS_ROW) / sizeof(float));
    }
    size_t most = TN_TNS_ROW + row->n_values * sizeof(float);
    if (w->block_bytes + most > TN_SNAPSHOT_BLOCK_MAX) {
        TN_TRY(end_block(w, err));
    }
    if (w->block_rows == 0) {
        w->block_first_key = row->key;
    }
    w->block_bytes += place_row(w->block + TN_TNS_BLOCK + w->block_bytes, row);
    w->block_rows++;
    w->last_key = row->key;
    return TN_OK;
}

uint64_t tn_snapshot_bytes(const tn_snapshot_writer *w)
{
    return tn_file_size(w->file) + w->block_bytes;
}

/* Index and trailer. */
static tn_status write_tail(tn_snapshot_writer *w, tn_error *err)
{
    char trailer[TN_TNS_TRAILER];
    uint64_t offset = tn_file_size(w->file);
    uint32_t crc = 0;
    for (uint32_t i = 0; i < w->n_partitions; i++) {
        char bytes[TN_TNS_INDEX];
        tn_store_u64(bytes, w->index[i].offset);
        tn_store_u64(bytes + 8, w->index[i].bytes);
        tn_store_u64(bytes + 16, w->index[i].rows);
        crc = tn_crc32c(crc, bytes, sizeof bytes);
        TN_TRY(tn_file_write(w->file, bytes, sizeof bytes, err));
    }
    tn_store_u64(trailer, offset);
    tn_store_u64(trailer + 8, w->rows);
    tn_store_u32(trailer + 16, w->n_partitions);
    tn_store_u32(trailer + 20, TN_TNS_TRAILER_MAGIC);
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
