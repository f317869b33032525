/* fuzz_tnb.c - any bytes as a binary cache. The reader works on files, so each input becomes one in
 * memory; checksums are put right first, so that what they cover is looked at. */
#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/math/crc32c.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/read/block_reader.h"
#include "io/read/cache.h"
#include "io/read/dataset.h"
#include "io/read/schema_inference.h"
#include "io/rows/rows.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

enum { SIZE_MAX_TRIED = 1 << 16, KINDS = 3 };

static const char text[] =
    "{data: {format: csv, record_id: id}, slots: [{name: a}, {name: b, type: "
    "str}, {name: i, type: int}, {name: v, as: value}, {name: w, as: "
    "weighted}]}";

/* Header, shape, tail and index. */
static void repair_frame(char *bytes, size_t size)
{
    if (size < TN_CACHE_HEADER + TN_CACHE_TAIL) {
        return;
    }
    uint32_t shape = tn_load_u32(bytes + 16);
    if (shape <= size - TN_CACHE_HEADER) {
        tn_store_u32(bytes + 20, tn_crc32c(0, bytes + TN_CACHE_HEADER, shape));
    }
    tn_store_u32(bytes + TN_CACHE_HEADER - 4, tn_crc32c(0, bytes, TN_CACHE_HEADER - 4));
    char *tail = bytes + size - TN_CACHE_TAIL;
    uint64_t index = tn_load_u64(tail);
    uint64_t index_bytes = tn_load_u64(tail + 8);
    if (index <= size && index_bytes <= size - index) {
        tn_store_u32(tail + 16, tn_crc32c(0, bytes + index, (size_t)index_bytes));
    }
    tn_store_u32(tail + 20, tn_crc32c(0, tail, 20));
}

/* A schema and rows of each kind, made on first use and kept. */
static tn_rows *rows_of(uint32_t kind)
{
    static tn_dataset c;
    static tn_arena *arena;
    static tn_rows *made[KINDS];
    if (made[0] == NULL) {
        arena = tn_arena_new(1 << 16);
        tn_diag diag = {0};
        tn_binder b = {.arena = arena, .diag = &diag};
        tn_error err = {0};
        const tn_schema *schema = NULL;
        tn_fields_bind(&b, tn_dataset_fields, tn_tree_read_flow(arena, text, "fuzz"), &c);
        TN_ASSERT(tn_schema_new(&schema, &c.data, &c.slots, &b, &err) == TN_OK);
        for (uint32_t i = 0; i < KINDS; i++) {
            static const uint32_t keep[KINDS] = {TN_ROWS_IDS, TN_ROWS_SIGNS, TN_ROWS_BARE};
            TN_ASSERT(tn_rows_new(&made[i], schema, keep[i], &err) == TN_OK);
        }
        tn_diag_done(&diag);
    }
    return made[kind];
}

/* What was unpacked can be walked. */
static void look_at(const tn_parsed *parsed)
{
    const tn_rows *rows = parsed->rows;
    uint64_t sum = 0;
    for (uint32_t r = 0; r < rows->n; r++) {
        TN_ASSERT(rows->row[r].first <= tn_rows_end_of(rows, r));
        TN_ASSERT(tn_rows_end_of(rows, r) <= rows->n_entries);
        for (uint32_t i = 0; i < rows->row[r].id.size; i++) {
            sum += (unsigned char)rows->text[rows->row[r].id.at + i];
        }
    }
    const tn_bare *bare = tn_rows_bare(rows);
    for (uint32_t r = 0; bare != NULL && bare->stride > 0 && r < rows->n; r++) {
        const uint64_t *keys = bare->key + (size_t)r * bare->stride + 1;
        TN_ASSERT(keys[-1] >> rows->schema->n_slots == 0);
        for (uint64_t there = keys[-1]; there != 0; there &= there - 1) {
            sum += keys[__builtin_ctzll(there)];
        }
    }
    for (uint32_t i = 0; bare == NULL && i < rows->n_entries; i++) {
        TN_ASSERT(rows->entry[i].slot < rows->schema->n_slots);
        sum += rows->entry[i].key;
    }
    for (uint32_t i = 0; i < parsed->n_messages; i++) {
        sum += strlen(tn_parsed_message(parsed, i));
    }
    TN_ASSERT(sum != 1 || rows->n > 0 || parsed->n_messages > 0);
}

static void read_blocks(const tn_cache *t, const char *bytes, uint32_t kind)
{
    tn_parsed parsed = {.rows = rows_of(kind)};
    for (uint32_t i = 0; i < t->n_parts; i++) {
        const tn_cache_part *p = &t->part[i];
        uint64_t at = p->at;
        for (uint32_t k = 0; k < p->n_blocks; k++) {
            uint32_t size = t->block_bytes[p->first_block + k];
            const char *block = bytes + at;
            tn_error err = {0};
            tn_status status = tn_cache_unpack((tn_bytes){block, size, false}, &parsed, &err);
            TN_ASSERT(status == TN_OK || (err.text[0] != '\0' && parsed.rows->n == 0));
            if (status == TN_OK) {
                look_at(&parsed);
            }
            at += size;
        }
    }
    tn_parsed_done(&parsed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    char path[32];
    if (size < 1 || size > SIZE_MAX_TRIED) {
        return 0;
    }
    char *bytes = tn_try_alloc(size, 1, "an input", NULL);
    TN_ASSERT(bytes != NULL);
    memcpy(bytes, data, size);
    repair_frame(bytes, size);
    int fd = memfd_create("fuzz", 0);
    TN_ASSERT(fd >= 0);
    TN_ASSERT(write(fd, bytes, size) == (ssize_t)size);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    tn_cache *t = NULL;
    tn_error err = {0};
    if (tn_cache_open(&t, path, &err) == TN_OK) {
        for (uint32_t kind = 0; kind < KINDS; kind++) {
            read_blocks(t, bytes, kind);
        }
        tn_status status = tn_cache_check(t, rows_of(0)->schema, &err);
        TN_ASSERT(status == TN_OK || err.text[0] != '\0');
    } else {
        TN_ASSERT(err.text[0] != '\0');
    }
    tn_cache_close(t);
    (void)close(fd);
    tn_free(bytes);
    return 0;
}
