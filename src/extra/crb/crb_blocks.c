/* crb_blocks.c - gathers the pieces of a record, then makes rows of its arrays. */
#include "extra/crb/crb_blocks.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/core/text.h"
#include "base/machine/library.h"
#include "extra/crb/crb_row.h"

#include <math.h>
#include <string.h>

enum {
    PIECE_MAGIC_BYTES = 4,
    BLOCK_MAX = 1 << 30,
    LZ4_RATIO_MAX = 255,
    ROWS_BYTES = 1 << 18, /* rows are made until they have so many bytes */
};

typedef struct crb {
    int (*decompress)(const char *from, char *to, int size, int room); /* LZ4_decompress_safe */
    unsigned char head[8];
    uint32_t have;   /* bytes of the head that have come */
    uint32_t left;   /* bytes of the piece's payload to come */
    uint32_t zeros;  /* zeros to come after the payload */
    bool open;       /* a record has begun, and not ended */
    tn_unpacked why; /* why a step failed */
    uint64_t most;   /* bytes that a record and its arrays may have */
    tn_text record;  /* its pieces */
    tn_text array[TN_CRB_ARRAYS];
    bool is_short;    /* its indices have 4 bytes */
    uint32_t n, next; /* number of its rows, and the first one that is not in `rows` yet */
    tn_text rows;     /* some rows as crb_row.h has them */
    size_t taken;     /* bytes of `rows` that the caller has */
} crb;

static bool no_memory(crb *c)
{
    c->why = TN_UNPACKED_NO_MEMORY;
    return false;
}

/* Returns whether a block may have `bytes` more; asked before memory for them is taken. */
static bool fits(crb *c, uint64_t bytes)
{
    uint64_t used = c->record.size;
    for (uint32_t i = 0; i < TN_CRB_ARRAYS; i++) {
        used += c->array[i].size;
    }
    const bool is_large = bytes > c->most || used > c->most - bytes;
    c->why = is_large ? TN_UNPACKED_TOO_LARGE : c->why;
    return !is_large;
}

/* Unpacks an array of `count` items; an absent one becomes empty. */
static bool take_array(crb *c, tn_bytes *record, uint32_t which, uint64_t count, uint32_t size)
{
    tn_text *array = &c->array[which];
    const int32_t packed = (int32_t)tn_get_u32(record);
    tn_text_clear(array);
    if (packed <= 0) {
        return packed == 0 && !record->failed;
    }
    const char *from = tn_get(record, (size_t)packed);
    const uint64_t bytes = count * size; /* rows are below 2^31, indices below BLOCK_MAX */
    if (from == NULL || bytes > BLOCK_MAX - 1 || bytes / LZ4_RATIO_MAX > (uint64_t)packed ||
        !fits(c, bytes)) {
        return false;
    }
    char *to = tn_text_grow(array, bytes);
    if (to == NULL) {
        return no_memory(c);
    }
    return c->decompress(from, to, packed, (int)bytes) == (int)bytes;
}

static uint64_t offset_at(const crb *c, uint64_t row)
{
    return tn_load_u64(c->array[TN_CRB_OFFSET].data + row * sizeof(uint64_t));
}

static float float_at(const tn_text *array, uint64_t i, float absent)
{
    return array->size > 0 ? tn_load_f32(array->data + i * sizeof(float)) : absent;
}

/* Appends row `r`, whose items are those of the arrays in [from, to). */
static void put_row(crb *c, uint64_t r, uint64_t from, uint64_t to, bool is_short)
{
    const bool values = c->array[TN_CRB_VALUE].size > 0;
    const uint64_t n = to - from;
    const uint64_t size =
        TN_CRB_HEAD - sizeof(uint32_t) + n * sizeof(uint64_t) + (values ? n * sizeof(float) : 0);
    tn_text_add_u32le(&c->rows, (uint32_t)size);
    tn_text_add_f32le(&c->rows, float_at(&c->array[TN_CRB_LABEL], r, NAN));
    tn_text_add_f32le(&c->rows, float_at(&c->array[TN_CRB_WEIGHT], r, 1));
    tn_text_add_u32le(&c->rows,
                      (uint32_t)n | (values ? TN_CRB_VALUES : 0) | (is_short ? TN_CRB_SHORT : 0));
    if (n == 0) {
        return;
    }
    const char *index = c->array[TN_CRB_INDEX].data;
    for (uint64_t i = from; is_short && i < to; i++) {
        tn_text_add_u64le(&c->rows, tn_load_u32(index + i * sizeof(uint32_t)));
    }
    if (!is_short) {
        tn_text_add(&c->rows, index + from * sizeof(uint64_t), n * sizeof(uint64_t));
    }
    if (values) {
        tn_text_add(&c->rows, c->array[TN_CRB_VALUE].data + from * sizeof(float),
                    n * sizeof(float));
    }
}

/* Checks that rows follow one another in the arrays and lie within them. */
static bool check_rows(const crb *c, uint64_t n)
{
    const uint64_t first = offset_at(c, 0);
    uint64_t from = 0;
    for (uint64_t r = 0; r < c->n; r++) {
        const uint64_t to = offset_at(c, r + 1) - first;
        if (to < from || to > n) {
            return false;
        }
        from = to;
    }
    return n == 0 || c->array[TN_CRB_INDEX].size > 0;
}

/* Makes the next rows of the block. */
static bool put_rows(crb *c)
{
    const uint64_t first = offset_at(c, 0);
    tn_text_clear(&c->rows);
    c->taken = 0;
    for (; c->next < c->n && c->rows.size < ROWS_BYTES; c->next++) {
        put_row(c, c->next, offset_at(c, c->next) - first, offset_at(c, c->next + 1) - first,
                c->is_short);
    }
    return !c->rows.failed || no_memory(c);
}

/* Unpacks the arrays of a whole record and makes its first rows. */
static bool open_block(crb *c)
{
    tn_bytes record = {c->record.data, c->record.size, false};
    c->n = c->next = 0;
    const bool magic = tn_get_u32(&record) == TN_CRB_BLOCK_MAGIC;
    const uint32_t index_bytes = tn_get_u32(&record);
    const uint32_t rows = tn_get_u32(&record);
    if (record.failed || !magic || (index_bytes != 4 && index_bytes != 8) || rows > INT32_MAX) {
        return false;
    }
    if (!take_array(c, &record, TN_CRB_LABEL, rows, sizeof(float)) ||
        !take_array(c, &record, TN_CRB_OFFSET, (uint64_t)rows + 1, sizeof(uint64_t)) ||
        c->array[TN_CRB_OFFSET].size == 0) {
        return false;
    }
    const uint64_t n = offset_at(c, rows) - offset_at(c, 0);
    c->n = rows;
    c->is_short = index_bytes == 4;
    return n < BLOCK_MAX && take_array(c, &record, TN_CRB_INDEX, n, index_bytes) &&
           take_array(c, &record, TN_CRB_VALUE, n, sizeof(float)) &&
           take_array(c, &record, TN_CRB_WEIGHT, rows, sizeof(float)) && record.size == 0 &&
           check_rows(c, n) && put_rows(c);
}

/* Reads the head of a piece. */
static bool begin_piece(crb *c)
{
    const uint32_t word = tn_load_u32(c->head + PIECE_MAGIC_BYTES);
    const uint32_t flag = word >> 29;
    const uint32_t length = word & ((UINT32_C(1) << 29) - 1);
    const bool begins = flag == TN_CRB_WHOLE || flag == TN_CRB_FIRST;
    if (tn_load_u32(c->head) != TN_CRB_PIECE_MAGIC || flag > TN_CRB_LAST || begins == c->open) {
        return false;
    }
    if (begins) {
        tn_text_clear(&c->record);
        for (uint32_t i = 0; i < TN_CRB_ARRAYS; i++) {
            tn_text_clear(&c->array[i]);
        }
    } else {
        tn_text_add_u32le(&c->record, TN_CRB_PIECE_MAGIC); /* the record was cut at this word */
    }
    c->open = flag != TN_CRB_WHOLE;
    c->zeros = (4 - length % 4) % 4;
    c->left = length;
    return c->record.size + length <= TN_CRB_RECORD_MAX && fits(c, length);
}

/* Ends a piece whose payload is whole. */
static bool end_piece(crb *c)
{
    const uint32_t flag = tn_load_u32(c->head + PIECE_MAGIC_BYTES) >> 29;
    c->have = 0;
    if (c->record.failed) {
        return no_memory(c);
    }
    if (flag != TN_CRB_WHOLE && flag != TN_CRB_LAST) {
        return true;
    }
    c->open = false;
    return open_block(c);
}

/* Takes bytes of a piece's head, or, once that is whole, of its content. */
static bool take_bytes(crb *c, tn_bytes *in)
{
    if (c->have < sizeof c->head) {
        const size_t room = sizeof c->head - c->have;
        const size_t n = room < in->size ? room : in->size;
        memcpy(c->head + c->have, in->data, n);
        c->have += (uint32_t)n;
        (void)tn_get(in, n);
        return c->have < sizeof c->head || begin_piece(c);
    }
    uint32_t *part = c->left > 0 ? &c->left : &c->zeros;
    const size_t n = *part < in->size ? *part : in->size;
    tn_text_add(&c->record, in->data, c->left > 0 ? n : 0);
    *part -= (uint32_t)n;
    (void)tn_get(in, n);
    return true;
}

/* Takes bytes until rows of a block are made or no bytes are left. */
static bool feed(crb *c, tn_bytes *in)
{
    bool good = c->taken < c->rows.size || c->next == c->n || put_rows(c);
    while (good && in->size > 0 && c->taken == c->rows.size) {
        good = take_bytes(c, in);
        if (good && c->have == sizeof c->head && c->left + c->zeros == 0) {
            good = end_piece(c);
        }
    }
    return good;
}

static tn_status crb_open(void **state, uint64_t record_max, tn_error *err)
{
    static const tn_library_name of = {"liblz4.so.1", "crb needs the library of lz4, which",
                                       "install liblz4-1"};
    void *library = NULL;
    crb *c = NULL;
    TN_TRY(TN_ALLOC(c, 1, "a decompressor", err));
    *state = c;
    c->most = record_max;
    TN_TRY(tn_library_load(&library, &of, err));
    return tn_library_find(library, &of, "LZ4_decompress_safe", &c->decompress, err);
}

static void crb_close(void *state)
{
    crb *c = state;
    tn_text_done(&c->record);
    tn_text_done(&c->rows);
    for (uint32_t i = 0; i < TN_CRB_ARRAYS; i++) {
        tn_text_done(&c->array[i]);
    }
}

static tn_unpacked crb_step(void *state, tn_bytes *in, unsigned char *out, size_t room,
                            size_t *made)
{
    crb *c = state;
    *made = 0;
    c->why = TN_UNPACKED_CORRUPT;
    if (!feed(c, in)) {
        return c->why;
    }
    *made = c->rows.size - c->taken < room ? c->rows.size - c->taken : room;
    if (*made > 0) {
        memcpy(out, c->rows.data + c->taken, *made);
    }
    c->taken += *made;
    const bool all = c->have == 0 && !c->open && c->taken == c->rows.size && c->next == c->n;
    return all ? TN_UNPACKED_END : TN_UNPACKED_SOME;
}

const tn_container tn_container_crb = {"crb", crb_open, crb_close, crb_step};
