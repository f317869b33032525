/* fuzz_frame.c - any bytes as a message between peers. What is read must be written back as it was,
 * byte for byte.
 *
 * Each input is read as it is; then once more with magic, version, job, session, length and
 * checksum put right. */
#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/math/crc32c.h"
#include "cluster/wire/control_messages.h"
#include "cluster/wire/key_codec.h"
#include "cluster/wire/request_headers.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); // NOLINT: libFuzzer's name

enum { SIZE_MAX_TRIED = 1 << 16, GROUPS = 300, PEER = 1 };

static const tn_frame_limits limits = {
    .job = 1,
    .session = 2,
    .bytes_max = SIZE_MAX_TRIED,
    .peers = 4,
    .count_max = {1 << 16, 1 << 20, 1 << 20},
};

static void repair(char *message, size_t size)
{
    if (size < TN_FRAME_HEAD) {
        return;
    }
    tn_store_u32(message, TN_FRAME_MAGIC);
    tn_store_u16(message + 4, TN_FRAME_VERSION);
    tn_store_u64(message + 8, limits.job);
    tn_store_u64(message + 16, limits.session);
    tn_store_u64(message + 64, size - TN_FRAME_HEAD);
    uint32_t crc = tn_crc32c(0, message, TN_FRAME_HEAD - 4);
    crc = tn_crc32c(crc, message + TN_FRAME_HEAD, size - TN_FRAME_HEAD);
    tn_store_u32(message + TN_FRAME_HEAD - 4, crc);
}

static void try_keys(const tn_frame *f, const char *from, uint64_t size)
{
    static const uint32_t owned[] = {0, 256, 1024};
    static const tn_owners owners = {2, 1024, owned};
    static const tn_record record[2] = {{.width = 9}, {.width = 1}};
    static tn_share_group group[GROUPS];
    static const tn_layout layout = {GROUPS, group, 2, record};
    static const tn_keyblock_rules rules = {&owners, &layout, PEER};
    group[GROUPS - 1].record = 1;
    tn_keyblock block = {0};
    if (tn_keyblock_read(&block, from, size, f->count, &rules) == TN_DROP_NONE) {
        const uint32_t n = block.keys.n;
        tn_key_place *scratch = tn_alloc((size_t)2 * n + 1, sizeof *scratch, "scratch");
        uint32_t *index = tn_alloc((size_t)n + 1, sizeof *index, "an order");
        tn_key_order order = tn_keyblock_sort(&block.keys, PEER, scratch, index);
        TN_ASSERT(order.n == n);
        tn_keyblock_shape shape = tn_keyblock_measure(&block.keys, order);
        TN_ASSERT(shape.bytes == size && shape.floats == f->count[TN_ROW_FLOATS]);
        char *again = tn_alloc(size, 1, "keys");
        tn_keyblock_write(&block.keys, order, &shape, again);
        TN_ASSERT(memcmp(again, from, size) == 0);
        tn_free(again);
        tn_free(index);
        tn_free(scratch);
    }
    tn_keyblock_done(&block);
}

/* Returns what lies behind them, NULL when they are not finite. */
static const char *try_values(tn_values kind, const char *from, uint32_t n)
{
    static float values[SIZE_MAX_TRIED];
    static char again[SIZE_MAX_TRIED];
    size_t bytes = n * tn_values_bytes(kind);
    if (tn_values_read(kind, from, n, values) != TN_VALUES_FINITE) {
        return NULL;
    }
    TN_ASSERT(tn_values_write(kind, values, n, again) == TN_VALUES_FINITE);
    TN_ASSERT(memcmp(again, from, bytes) == 0);
    return from + bytes;
}

static void try_missing(const tn_frame *f, const char *from)
{
    static bool missing[SIZE_MAX_TRIED];
    static uint32_t index[SIZE_MAX_TRIED];
    const uint32_t n = f->count[TN_KEYS];
    for (uint32_t i = 0; i < n; i++) {
        index[i] = i;
    }
    if (tn_missing_get(missing, (tn_key_order){n, index}, from) == TN_DROP_NONE) {
        static char again[SIZE_MAX_TRIED / 8];
        tn_missing_put(again, missing, n);
        TN_ASSERT(memcmp(again, from, (n + 7) / 8) == 0);
    }
}

static void try_floats(const tn_frame *f, const char *from)
{
    const char *at = try_values(tn_frame_row_values(f->flags), from, f->count[TN_ROW_FLOATS]);
    if (at != NULL) {
        at = try_values(tn_frame_dense_values(f->flags), at, f->count[TN_DENSE_FLOATS]);
    }
    if (at != NULL && (f->flags & TN_FRAME_MISSING) != 0) {
        try_missing(f, at);
    }
}

static void try_pull(const tn_frame *f)
{
    tn_pull_params p;
    if (tn_pull_params_get(&p, f->payload) == TN_DROP_NONE) {
        char again[TN_PULL_PARAMS];
        memcpy(again, &p, TN_PULL_PARAMS);
        TN_ASSERT(memcmp(again, f->payload, sizeof again) == 0);
    }
    try_keys(f, f->payload + TN_PULL_PARAMS, f->bytes - TN_PULL_PARAMS);
}

static void try_push(const tn_frame *f)
{
    tn_push_params p;
    if (tn_push_params_get(&p, f->payload) == TN_DROP_NONE) {
        char again[TN_PUSH_PARAMS];
        memcpy(again, &p, TN_PUSH_PARAMS);
        TN_ASSERT(memcmp(again, f->payload, sizeof again) == 0);
    }
    try_floats(f, f->payload + TN_PUSH_PARAMS);
}

static void try_rows(const tn_frame *f)
{
    tn_rows_params p;
    if (tn_rows_params_get(&p, f->payload) == TN_DROP_NONE) {
        char again[TN_ROWS_PARAMS];
        memcpy(again, &p, TN_ROWS_PARAMS);
        TN_ASSERT(memcmp(again, f->payload, sizeof again) == 0);
    }
    try_floats(f, f->payload + TN_ROWS_PARAMS);
}

static void try_dense(const tn_frame *f)
{
    tn_dense_params p;
    if (tn_dense_params_get(&p, f->payload) == TN_DROP_NONE) {
        char again[TN_DENSE_PARAMS];
        memcpy(again, &p, TN_DENSE_PARAMS);
        TN_ASSERT(memcmp(again, f->payload, sizeof again) == 0);
    }
    try_floats(f, f->payload + TN_DENSE_PARAMS);
}

static void try_share(const tn_frame *f)
{
    static double sums[SIZE_MAX_TRIED / sizeof(double)];
    const uint32_t n = f->count[TN_DENSE_FLOATS];
    if (tn_share_get(sums, n, f->payload) == TN_DROP_NONE) {
        static char again[SIZE_MAX_TRIED];
        memcpy(again, sums, n * sizeof(double));
        TN_ASSERT(memcmp(again, f->payload, f->bytes) == 0);
    }
}

/* Unknown fields and long forms of numbers are not kept: what is written is the same from then on.
 */
static void try_note(const tn_frame *f)
{
    union {
        tn_hello_note hello;
        tn_welcome_note welcome;
        tn_beat_note beat;
        tn_ask_note ask;
        tn_part_note part;
        tn_report_note report;
        tn_order_note order;
        tn_done_note done;
        tn_refused_note refused;
    } note;
    tn_text first = {0};
    tn_text second = {0};
    tn_arena *arena = tn_arena_new(4096);
    if (tn_note_read(&note, f->type, f->payload, f->bytes, arena) == TN_DROP_NONE) {
        tn_note_write(f->type, &note, &first);
        TN_ASSERT(tn_text_check(&first, "a note", NULL) == TN_OK && first.size <= f->bytes);
        tn_drop why = tn_note_read(&note, f->type, tn_text_str(&first), first.size, arena);
        TN_ASSERT(why == TN_DROP_NONE);
        tn_note_write(f->type, &note, &second);
        TN_ASSERT(tn_text_check(&second, "a note", NULL) == TN_OK && first.size == second.size);
        TN_ASSERT(memcmp(tn_text_str(&first), tn_text_str(&second), first.size) == 0);
    }
    tn_arena_free(arena);
    tn_text_done(&first);
    tn_text_done(&second);
}

static void try_payload(const tn_frame *f)
{
    if (f->type == TN_FRAME_PULL) {
        try_pull(f);
    } else if (f->type == TN_FRAME_PEEK) {
        try_keys(f, f->payload, f->bytes);
    } else if (f->type == TN_FRAME_PUSH) {
        try_push(f);
    } else if (f->type == TN_FRAME_DENSE) {
        try_dense(f);
    } else if (f->type == TN_FRAME_ROWS) {
        try_rows(f);
    } else if (f->type == TN_FRAME_SHARE) {
        try_share(f);
    } else if (f->type != TN_FRAME_BYE && f->type != TN_FRAME_NOTED) {
        try_note(f);
    }
}

static void try_message(const char *message, size_t size)
{
    tn_frame f;
    tn_drop why = tn_frame_read(&f, message, size, &limits);
    TN_ASSERT(tn_drop_text(why) != NULL);
    if (why != TN_DROP_NONE) {
        return;
    }
    char *again = tn_alloc(size, 1, "a message");
    memcpy(again + TN_FRAME_HEAD, f.payload, f.bytes);
    tn_frame_seal(again, &f);
    TN_ASSERT(memcmp(again, message, size) == 0);
    tn_free(again);
    try_payload(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) // NOLINT
{
    if (size > SIZE_MAX_TRIED) {
        return 0;
    }
    char *message = tn_alloc(size + 1, 1, "a message");
    memcpy(message, data, size);
    try_message(message, size);
    repair(message, size);
    try_message(message, size);
    tn_free(message);
    return 0;
}
