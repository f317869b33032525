/* snapshot.c - writing shard files, and reading them as hostile input.
 *
 *     file_head | blocks | index: an index_entry per partition | file_tail
 *     block     block_head | rows: row_head and its floats, per present segment w[dim], each state
 *
 * Little-endian, as these structs lie in memory. No row straddles blocks, no block straddles
 * partitions; a removed row ends after last_seen.
 *
 * At open the three parts that describe the file must agree: the blocks of the partitions tile the
 * space between header and index, the index ends where the trailer begins, the trailer ends the
 * file. After that a partition's blocks cannot be anywhere else, and each is under its crc.
 */
#include "ps/snapshot/snapshot.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/file/file.h"
#include "base/keys/keyset.h"
#include "base/math/crc32c.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum {
    TNS_MAJOR = 1,
    TNS_MINOR = 0,
    TNS_REMOVED_ROW = 16,
    TNS_FLAG_DELTA = 1,
    TNS_ROW_REMOVED = 0x8000,
    TNS_CODEC_NONE = 0,
    TNS_KIND_ROWS = 1
};

static const char file_magic[8] = "TNS1\r\n\x1a\n";
static const char tail_magic[4] = "TNSF";

typedef struct file_head {
    char magic[8];
    uint16_t major, minor;
    uint32_t bytes; /* size of this header */
    uint64_t run_id, step, base_step;
    uint8_t schema[TN_SNAPSHOT_SCHEMA_BYTES];
    uint16_t partitions; /* 0: 65536 */
    uint16_t first, last, flags;
    uint32_t zero;
    uint32_t crc; /* covers all members before it, as in the next headers */
} file_head;

typedef struct block_head {
    uint32_t stored, raw; /* bytes of the rows, which are not compressed yet */
    uint32_t rows;
    uint16_t partition;
    uint8_t codec, kind;
    uint64_t first_key;
    uint32_t zero;
    uint32_t crc; /* and of the stored bytes */
} block_head;

typedef struct row_head {
    uint64_t key;
    uint16_t group;   /* bit 15: removed */
    uint16_t present; /* segments */
    uint32_t last_seen;
    double show, click;
} row_head;

typedef struct index_entry {
    uint64_t offset; /* position of the first block; 0: none */
    uint64_t bytes, rows;
} index_entry;

typedef struct file_tail {
    uint64_t index_offset, rows;
    uint32_t partitions; /* number in the file */
    char magic[4];
    uint32_t index_crc;
    uint32_t crc;
} file_tail;

_Static_assert(sizeof(file_head) == 64 && sizeof(block_head) == 32 && sizeof(row_head) == 32 &&
                   sizeof(index_entry) == 24 && sizeof(file_tail) == 32,
               "as they are in files");

/* ---- writing ---- */

struct tn_snapshot_writer {
    tn_file *file;
    tn_snapshot_head head;
    uint32_t n_partitions; /* number in this file */
    uint32_t partition;    /* begun last; head.first - 1 before that */
    bool begun;
    uint64_t last_key; /* last one of the partition, if it has rows */
    uint64_t rows;     /* in all */
    uint32_t block_rows;
    uint32_t block_bytes;
    uint64_t block_first_key;
    index_entry *index;
    char block[sizeof(block_head) + TN_SNAPSHOT_BLOCK_MAX];
};

static tn_status begin_file(tn_snapshot_writer *w, const char *path, tn_error *err)
{
    const tn_snapshot_head *head = &w->head;
    file_head h = {.major = TNS_MAJOR,
                   .minor = TNS_MINOR,
                   .bytes = sizeof h,
                   .run_id = head->run_id,
                   .step = head->step,
                   .base_step = head->base_step,
                   .partitions = (uint16_t)(head->partitions % TN_SNAPSHOT_PARTITIONS_MAX),
                   .first = (uint16_t)head->first,
                   .last = (uint16_t)head->last,
                   .flags = head->delta ? TNS_FLAG_DELTA : 0};
    memcpy(h.magic, file_magic, sizeof h.magic);
    memcpy(h.schema, head->schema, sizeof h.schema);
    h.crc = tn_crc32c(0, &h, offsetof(file_head, crc));
    TN_TRY(TN_ALLOC(w->index, w->n_partitions, "a shard file's index", err));
    TN_TRY(tn_file_create(&w->file, path, err));
    return tn_file_write(w->file, &h, sizeof h, err);
}

tn_status tn_snapshot_create(tn_snapshot_writer **out, const char *path,
                             const tn_snapshot_head *head, tn_error *err)
{
    *out = NULL;
    TN_ASSERT(head->partitions >= 1 && head->partitions <= TN_SNAPSHOT_PARTITIONS_MAX);
    TN_ASSERT(head->first <= head->last && head->last < head->partitions);
    tn_snapshot_writer *w = NULL;
    TN_TRY(TN_ALLOC(w, 1, "a shard file's block", err));
    w->head = *head;
    w->n_partitions = head->last - head->first + 1;
    tn_status status = begin_file(w, path, err);
    if (status != TN_OK) {
        tn_snapshot_abandon(w);
        return status;
    }
    *out = w;
    return TN_OK;
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
    block_head h = {.stored = w->block_bytes,
                    .raw = w->block_bytes,
                    .rows = w->block_rows,
                    .partition = (uint16_t)w->partition,
                    .codec = TNS_CODEC_NONE,
                    .kind = TNS_KIND_ROWS,
                    .first_key = w->block_first_key};
    h.crc =
        tn_crc32c(tn_crc32c(0, &h, offsetof(block_head, crc)), w->block + sizeof h, w->block_bytes);
    memcpy(w->block, &h, sizeof h);

    index_entry *entry = entry_of(w);
    if (entry->rows == 0) {
        entry->offset = tn_file_size(w->file);
    }
    TN_TRY(tn_file_write(w->file, w->block, sizeof h + w->block_bytes, err));
    entry->bytes += sizeof h + w->block_bytes;
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
    const row_head h = {.key = row->key,
                        .group = (uint16_t)(row->group | (row->removed ? TNS_ROW_REMOVED : 0)),
                        .present = row->removed ? 0 : row->present,
                        .last_seen = row->last_seen,
                        .show = row->show,
                        .click = row->click};
    memcpy(at, &h, row->removed ? TNS_REMOVED_ROW : sizeof h);
    if (row->removed) {
        return TNS_REMOVED_ROW;
    }
    if (row->n_floats > 0) {
        memcpy(at + sizeof h, row->data, row->n_floats * sizeof(float));
    }
    return (uint32_t)(sizeof h + row->n_floats * sizeof(float));
}

enum { FLOATS_MAX = (TN_SNAPSHOT_BLOCK_MAX - sizeof(row_head)) / sizeof(float) };

tn_status tn_snapshot_add(tn_snapshot_writer *w, const tn_row_view *row, tn_error *err)
{
    bool first_of_partition = entry_of(w)->rows == 0 && w->block_rows == 0;
    TN_ASSERT(first_of_partition || row->key > w->last_key);
    TN_ASSERT(tn_partition_of(row->key, w->head.partitions) == w->partition);
    TN_ASSERT((row->group & TNS_ROW_REMOVED) == 0 && (!row->removed || w->head.delta));
    if (row->n_floats > FLOATS_MAX) {
        return tn_fail(err, TN_E_LIMIT, "a row of %u floats, a checkpoint takes at most %d",
                       row->n_floats, FLOATS_MAX);
    }
    size_t most = sizeof(row_head) + row->n_floats * sizeof(float);
    if (w->block_bytes + most > TN_SNAPSHOT_BLOCK_MAX) {
        TN_TRY(end_block(w, err));
    }
    if (w->block_rows == 0) {
        w->block_first_key = row->key;
    }
    w->block_bytes += place_row(w->block + sizeof(block_head) + w->block_bytes, row);
    w->block_rows++;
    w->last_key = row->key;
    return TN_OK;
}

static tn_status write_tail(tn_snapshot_writer *w, tn_error *err)
{
    const size_t bytes = w->n_partitions * sizeof *w->index;
    file_tail tail = {.index_offset = tn_file_size(w->file),
                      .rows = w->rows,
                      .partitions = w->n_partitions,
                      .index_crc = tn_crc32c(0, w->index, bytes)};
    memcpy(tail.magic, tail_magic, sizeof tail.magic);
    tail.crc = tn_crc32c(0, &tail, offsetof(file_tail, crc));
    TN_ASSERT(w->block_rows == 0);
    TN_TRY(tn_file_write(w->file, w->index, bytes, err));
    return tn_file_write(w->file, &tail, sizeof tail, err);
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

enum { HEADER_MAX = 4096 }; /* bytes of the header of a later minor version */

struct tn_snapshot {
    tn_infile *file;
    tn_snapshot_head head;
    uint32_t header_bytes;
    uint32_t n_partitions;
    uint64_t index_offset;
    uint64_t rows;
    index_entry *index; /* n_partitions */
    char *block;        /* as long as the file's largest; rows begin on multiples of 4 */
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
    file_head h = {.bytes = 0};
    TN_TRY(tn_infile_read(s->file, 0, &h, sizeof h, err));
    if (memcmp(h.magic, file_magic, sizeof h.magic) != 0) {
        return broken(s, 0, "not a shard file", err);
    }
    if (h.crc != tn_crc32c(0, &h, offsetof(file_head, crc))) {
        return broken(s, offsetof(file_head, crc), "the header's crc is wrong", err);
    }
    if (h.major > TNS_MAJOR) {
        return newer(s, 8, "written by a newer version", err);
    }
    if (h.major == 0) {
        return broken(s, 8, "there is no version 0", err);
    }
    if (h.bytes < sizeof h || h.bytes > (h.minor > TNS_MINOR ? HEADER_MAX : sizeof h)) {
        return broken(s, 12, "a wrong header size", err);
    }
    if ((h.flags & ~TNS_FLAG_DELTA) != 0 || h.zero != 0) {
        return broken(s, 54, "unknown flags", err);
    }
    s->header_bytes = h.bytes;
    s->head = (tn_snapshot_head){
        .run_id = h.run_id,
        .step = h.step,
        .base_step = h.base_step,
        .partitions = h.partitions != 0 ? h.partitions : TN_SNAPSHOT_PARTITIONS_MAX,
        .first = h.first,
        .last = h.last,
        .delta = (h.flags & TNS_FLAG_DELTA) != 0,
    };
    memcpy(s->head.schema, h.schema, sizeof s->head.schema);
    if (h.first > h.last || h.last >= s->head.partitions) {
        return broken(s, 48, "partitions out of range", err);
    }
    s->n_partitions = s->head.last - s->head.first + 1;
    return TN_OK;
}

/* The trailer, and with it where the index lies; then the index, whose size is known by now. */
static tn_status read_tail(tn_snapshot *s, tn_error *err)
{
    const uint64_t at = tn_infile_size(s->file) - sizeof(file_tail);
    const size_t index_bytes = s->n_partitions * sizeof *s->index;
    file_tail tail = {.rows = 0};
    TN_TRY(tn_infile_read(s->file, at, &tail, sizeof tail, err));
    if (memcmp(tail.magic, tail_magic, sizeof tail.magic) != 0 ||
        tail.crc != tn_crc32c(0, &tail, offsetof(file_tail, crc))) {
        return broken(s, at, "no trailer: the file is cut or damaged at its end", err);
    }
    s->index_offset = tail.index_offset;
    s->rows = tail.rows;
    if (tail.partitions != s->n_partitions || index_bytes > at ||
        s->index_offset != at - index_bytes || s->index_offset < s->header_bytes) {
        return broken(s, at, "the trailer does not fit the file", err);
    }
    TN_TRY(TN_ALLOC(s->index, s->n_partitions, "a shard file's index", err));
    TN_TRY(tn_infile_read(s->file, s->index_offset, s->index, index_bytes, err));
    if (tail.index_crc != tn_crc32c(0, s->index, index_bytes)) {
        return broken(s, s->index_offset, "the index's crc is wrong", err);
    }
    return TN_OK;
}

/* The partitions of the index tile the space of the blocks and their rows add up. Makes room for a
 * block: clearing the most that a block may have took longer than reading a small file. */
static tn_status check_index(tn_snapshot *s, tn_error *err)
{
    uint64_t at = s->header_bytes;
    uint64_t rows = 0;
    uint64_t largest = 1;
    for (uint32_t i = 0; i < s->n_partitions; i++) {
        const index_entry *e = &s->index[i];
        bool empty = e->rows == 0 && e->bytes == 0 && e->offset == 0;
        bool follows = e->rows > 0 && e->bytes > sizeof(block_head) && e->offset == at &&
                       e->bytes <= s->index_offset - at && e->rows <= e->bytes;
        if (!empty && !follows) {
            return broken(s, s->index_offset + i * sizeof *e, "the index does not fit the file",
                          err);
        }
        at += e->bytes;
        rows += e->rows;
        largest = e->bytes > largest ? e->bytes : largest;
    }
    if (at != s->index_offset || rows != s->rows) {
        return broken(s, s->index_offset, "the index does not cover the file", err);
    }
    const size_t bytes = largest < TN_SNAPSHOT_BLOCK_MAX ? largest : TN_SNAPSHOT_BLOCK_MAX;
    return TN_ALLOC(s->block, bytes, "a shard file's block", err);
}

static tn_status open_file(tn_snapshot *s, const char *path, tn_error *err)
{
    TN_TRY(tn_infile_open(&s->file, path, err));
    if (tn_infile_size(s->file) < sizeof(file_head) + sizeof(index_entry) + sizeof(file_tail)) {
        return broken(s, tn_infile_size(s->file), "the file ends too early", err);
    }
    TN_TRY(read_header(s, err));
    TN_TRY(read_tail(s, err));
    return check_index(s, err);
}

tn_status tn_snapshot_open(tn_snapshot **out, const char *path, tn_error *err)
{
    *out = NULL;
    tn_snapshot *s = NULL;
    TN_TRY(TN_ALLOC(s, 1, "a shard file", err));
    tn_status status = open_file(s, path, err);
    if (status != TN_OK) {
        tn_snapshot_close(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

void tn_snapshot_close(tn_snapshot *s)
{
    if (s != NULL) {
        tn_infile_close(s->file);
        tn_free(s->index);
        tn_free(s->block);
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
    row_head h;
    const char *at = tn_get(in, TNS_REMOVED_ROW);
    if (at == NULL) {
        return "a row runs past its block";
    }
    memcpy(&h, at, TNS_REMOVED_ROW);
    *row = (tn_row_view){.key = h.key,
                         .group = (uint16_t)(h.group & ~TNS_ROW_REMOVED),
                         .present = h.present,
                         .last_seen = h.last_seen,
                         .removed = (h.group & TNS_ROW_REMOVED) != 0};
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
static tn_status read_rows(const tn_snapshot *s, cursor *c, const block_head *h, tn_error *err)
{
    tn_bytes in = {.data = s->block, .size = h->raw};
    uint64_t rows_at = c->block_at + sizeof *h;
    TN_ASSERT(in.size <= TN_SNAPSHOT_BLOCK_MAX && h->rows > 0);
    for (uint32_t i = 0; i < h->rows; i++) {
        uint64_t at = rows_at + (uint64_t)(in.data - s->block);
        tn_row_view row;
        const char *why = take_row(s, c, &in, &row);
        if (why != NULL) {
            return broken(s, at, why, err);
        }
        if (i == 0 && row.key != h->first_key) {
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
static tn_status read_block(tn_snapshot *s, const cursor *c, uint64_t bytes_left, block_head *h,
                            tn_error *err)
{
    if (bytes_left < sizeof *h) {
        return broken(s, c->block_at, "a block runs past its partition", err);
    }
    TN_TRY(tn_infile_read(s->file, c->block_at, h, sizeof *h, err));
    if (h->stored > bytes_left - sizeof *h || h->stored > TN_SNAPSHOT_BLOCK_MAX ||
        h->raw > TN_SNAPSHOT_BLOCK_MAX) {
        return broken(s, c->block_at, "a block runs past its partition", err);
    }
    TN_TRY(tn_infile_read(s->file, c->block_at + sizeof *h, s->block, h->stored, err));
    const uint32_t crc = tn_crc32c(0, h, offsetof(block_head, crc));
    if (h->crc != tn_crc32c(crc, s->block, h->stored)) {
        return broken(s, c->block_at, "a block's crc is wrong", err);
    }
    if (h->codec != TNS_CODEC_NONE) {
        return newer(s, c->block_at + 14, "compressed by a codec that this build lacks", err);
    }
    if (h->stored != h->raw || h->partition != c->partition || h->kind != TNS_KIND_ROWS ||
        h->zero != 0 || h->rows == 0) {
        return broken(s, c->block_at, "a block's header makes no sense", err);
    }
    return TN_OK;
}

tn_status tn_snapshot_read(tn_snapshot *s, uint32_t partition, const tn_row_schema *schema,
                           tn_row_visit *visit, void *arg, tn_error *err)
{
    TN_ASSERT(schema != NULL && s->index != NULL);
    TN_ASSERT(partition >= s->head.first && partition <= s->head.last);
    const index_entry *entry = &s->index[partition - s->head.first];
    uint64_t bytes_left = entry->bytes;
    cursor c = {.partition = partition,
                .schema = schema,
                .visit = visit,
                .arg = arg,
                .block_at = entry->offset};
    while (bytes_left > 0) {
        block_head h = {.rows = 0};
        TN_TRY(read_block(s, &c, bytes_left, &h, err));
        TN_TRY(read_rows(s, &c, &h, err));
        c.block_at += sizeof h + h.stored;
        bytes_left -= sizeof h + h.stored;
    }
    if (c.rows != entry->rows) {
        return broken(s, c.block_at, "a partition has another number of rows than its index", err);
    }
    return TN_OK;
}
