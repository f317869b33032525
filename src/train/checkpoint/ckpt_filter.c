/* ckpt_filter.c - writes and reads the counts of keys without a row.
 *
 *     whole     | 64 bytes of line 0 | of line 1 | ..
 *     listed    | u32 number, 64 bytes | u32 number, 64 bytes | ..      lines that are not all 0
 *
 * A partition is listed where that takes less, as of a filter that holds few keys yet.
 */
#include "train/checkpoint/ckpt_filter.h"

#include "base/core/alloc.h"
#include "base/core/log.h"
#include "base/core/number.h"
#include "base/file/file.h"
#include "base/keys/keyspace.h"
#include "ps/table/key_filter.h"
#include "ps/table/table_snapshot.h"
#include "train/step/worker.h"

#include <stdio.h>
#include <string.h>

enum { PIECE_BYTES = 8 << 20, NAME_SIZE = 16, LINE = TN_KEY_FILTER_LINE, LISTED = 4 + LINE };

struct tn_filter_pieces {
    tn_cut *cut;
    tn_range left;     /* partitions */
    uint32_t together; /* partitions of one piece */
    uint8_t *one;      /* counts of a partition */
    uint8_t *counts;   /* bytes as they are written, one partition after the other */
    tn_tensor tensor[TN_PARTITIONS];
    char name[TN_PARTITIONS][NAME_SIZE];
};

static bool is_zero(const uint8_t *line)
{
    uint64_t word[LINE / 8];
    uint64_t any = 0;
    memcpy(word, line, LINE);
    for (uint32_t i = 0; i < LINE / 8; i++) {
        any |= word[i];
    }
    return any == 0;
}

/* Returns how many bytes `to` has now, at most as many as `from` has. */
static size_t put_lines(const uint8_t *from, size_t bytes, uint8_t *to)
{
    size_t size = 0;
    for (uint32_t i = 0; i < bytes / LINE; i++) {
        const uint8_t *line = from + (size_t)i * LINE;
        if (is_zero(line)) {
            continue;
        }
        if (size + LISTED >= bytes) {
            memcpy(to, from, bytes);
            return bytes;
        }
        memcpy(to + size, &i, sizeof i);
        memcpy(to + size + sizeof i, line, LINE);
        size += LISTED;
    }
    return size;
}

/* *n: how many of these partitions have counts. */
static tn_status take_counts(tn_filter_pieces *p, tn_range which, uint32_t *n, tn_error *err)
{
    const size_t bytes = tn_cut_filter_bytes(p->cut);
    uint8_t *at = p->counts;
    *n = 0;
    for (uint32_t i = which.from; i < which.to; i++) {
        bool any = false;
        TN_TRY(tn_cut_filter(p->cut, i, p->one, &any, err));
        if (any) {
            const size_t size = put_lines(p->one, bytes, at);
            TN_ASSERT(size <= bytes && *n < p->together);
            (void)snprintf(p->name[*n], NAME_SIZE, "p%u", i);
            p->tensor[*n] = (tn_tensor){.name = p->name[*n],
                                        .dtype = "U8",
                                        .rank = 1,
                                        .shape = {size},
                                        .data = (const char *)at,
                                        .size = size};
            (*n)++;
            at += size;
        }
    }
    return TN_OK;
}

tn_status tn_filter_pieces_next(tn_filter_pieces *p, tn_safetensors *doc, tn_range *which,
                                tn_error *err)
{
    uint32_t n = 0;
    while (p->left.from < p->left.to && n == 0) {
        *which = p->left;
        which->to =
            p->left.to - p->left.from > p->together ? p->left.from + p->together : which->to;
        p->left.from = which->to;
        TN_TRY(take_counts(p, *which, &n, err));
    }
    *doc = (tn_safetensors){.n_tensors = n, .tensor = p->tensor};
    return n > 0 ? TN_OK : TN_END;
}

tn_status tn_filter_pieces_new(tn_filter_pieces **out, tn_cut *cut, tn_range partitions,
                               tn_error *err)
{
    const size_t bytes = tn_cut_filter_bytes(cut);
    *out = NULL;
    if (bytes == 0) {
        return TN_OK;
    }
    TN_ASSERT(partitions.from < partitions.to && partitions.to <= TN_PARTITIONS);
    tn_filter_pieces *p = NULL;
    TN_TRY(TN_ALLOC(p, 1, "counts of keys", err));
    p->cut = cut;
    p->left = partitions;
    p->together = bytes < PIECE_BYTES ? (uint32_t)(PIECE_BYTES / bytes) : 1;
    tn_status status = TN_ALLOC(p->counts, p->together * bytes, "counts of keys", err);
    if (status == TN_OK) {
        status = TN_ALLOC(p->one, bytes, "counts of keys", err);
    }
    if (status != TN_OK) {
        tn_filter_pieces_free(p);
        return status;
    }
    *out = p;
    return TN_OK;
}

void tn_filter_pieces_free(tn_filter_pieces *p)
{
    if (p != NULL) {
        tn_free(p->one);
        tn_free(p->counts);
        tn_free(p);
    }
}

/* ---- reading ---- */

/* Into counts[bytes], which are zeros. False: what is there does not fit them. */
static bool get_lines(const tn_tensor *t, uint8_t *counts, size_t bytes)
{
    if (t->size == bytes) {
        memcpy(counts, t->data, bytes);
        return true;
    }
    bool fits = t->size % LISTED == 0 && t->size < bytes;
    for (size_t at = 0; fits && at < t->size; at += LISTED) {
        uint32_t number;
        memcpy(&number, t->data + at, sizeof number);
        fits = number < bytes / LINE;
        if (fits) {
            memcpy(counts + (size_t)number * LINE, t->data + at + sizeof number, LINE);
        }
    }
    return fits;
}

static tn_status take_tensor(const tn_tensor *t, const char *path, tn_worker *w, bool *fits,
                             tn_error *err)
{
    const uint32_t *own = w->shares->owners.from + w->rank;
    uint64_t partition = 0;
    if (t->name[0] != 'p' ||
        tn_read_u64(t->name + 1, strlen(t->name + 1), &partition) != TN_NUM_OK ||
        partition >= TN_PARTITIONS || strcmp(t->dtype, "U8") != 0) {
        return tn_fail(err, TN_E_CKPT, "'%s': '%s' is no partition's counts of keys", path,
                       t->name);
    }
    if (partition < own[0] || partition >= own[1]) {
        return TN_OK;
    }
    size_t bytes = 0;
    uint8_t *counts = NULL;
    (void)tn_table_filter(w->shard.table, (uint32_t)partition, &bytes);
    if (bytes == 0) {
        return TN_OK; /* nothing counts in a filter any more */
    }
    TN_TRY(TN_ALLOC(counts, bytes, "counts of keys", err));
    tn_status status = TN_OK;
    if (get_lines(t, counts, bytes)) {
        status = tn_table_set_filter(w->shard.table, (uint32_t)partition, counts, err);
    } else {
        *fits = false;
    }
    tn_free(counts);
    return status;
}

tn_status tn_ckpt_read_filter(const char *path, tn_worker *w, tn_error *err)
{
    tn_map map = {0};
    tn_safetensors doc;
    bool fits = true;
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_status status = tn_map_file(&map, path, err);
    if (status == TN_OK) {
        status = tn_safetensors_read(&doc, &map, arena, path, err);
    }
    for (uint32_t i = 0; status == TN_OK && i < doc.n_tensors; i++) {
        status = take_tensor(&doc.tensor[i], path, w, &fits, err);
    }
    if (status == TN_OK && !fits) {
        tn_log(TN_LOG_WARN,
               "'%s' is of a filter of another size: keys that wait are counted anew "
               "(admission: keys, error or threshold have changed)",
               path);
    }
    tn_arena_free(arena);
    tn_unmap(&map);
    return status;
}
