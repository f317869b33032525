/* crb_blocks.c - gathers the pieces of a record, then makes rows of its arrays. */
#include "io/source/crb_blocks.h"

#include "base/core/bytes.h"
#include "io/schema/crb_row.h"

#include <math.h>
#include <string.h>

enum {
    PIECE_MAGIC_BYTES = 4,
    BLOCK_MAX = 1 << 30,
    LZ4_RATIO_MAX = 255,
    ROWS_BYTES = 1 << 18, /* of rows that are made at once, and the last of them */
};

void tn_crb_done(tn_crb *c)
{
    tn_text_done(&c->record);
    tn_text_done(&c->rows);
    for (uint32_t i = 0; i < TN_CRB_ARRAYS; i++) {
        tn_text_done(&c->array[i]);
    }
}

bool tn_crb_at_end(const tn_crb *c)
{
    return c->have == 0 && !c->open && c->taken == c->rows.size && c->next == c->n;
}

static bool no_memory(tn_crb *c)
{
    c->no_memory = true;
    return false;
}

/* Before memory for it is taken: `bytes` more of a block. */
static bool fits(tn_crb *c, uint64_t bytes)
{
    uint64_t used = c->record.size;
    for (uint32_t i = 0; i < TN_CRB_ARRAYS; i++) {
        used += c->array[i].size;
    }
    c->too_large = bytes > c->most || used > c->most - bytes;
    return !c->too_large;
}

/* One array of `count` items; absent ones become empty. */
static bool take_array(tn_crb *c, tn_bytes *record, uint32_t which, uint64_t count, uint32_t size)
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

static uint64_t offset_at(const tn_crb *c, uint64_t row)
{
    return tn_load_u64(c->array[TN_CRB_OFFSET].data + row * sizeof(uint64_t));
}

static float float_at(const tn_text *array, uint64_t i, float absent)
{
    return array->size > 0 ? tn_load_f32(array->data + i * sizeof(float)) : absent;
}

/* Row `r`, whose items are from .. to of the arrays. */
static void put_row(tn_crb *c, uint64_t r, uint64_t from, uint64_t to, bool is_short)
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

/* Rows follow one another in the arrays, and are within them. */
static bool check_rows(const tn_crb *c, uint64_t n)
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

/* The next rows of a block that is open. */
static bool put_rows(tn_crb *c)
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

/* A whole record: its arrays and the first rows. */
static bool open_block(tn_crb *c)
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

/* The head of a piece is whole. */
static bool begin_piece(tn_crb *c)
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
        tn_text_add_u32le(&c->record, TN_CRB_PIECE_MAGIC); /* at which the record was cut */
    }
    c->open = flag != TN_CRB_WHOLE;
    c->zeros = (4 - length % 4) % 4;
    c->left = length;
    return c->record.size + length <= TN_CRB_RECORD_MAX && fits(c, length);
}

/* The payload of a piece is whole. */
static bool end_piece(tn_crb *c)
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

bool tn_crb_feed(tn_crb *c, const unsigned char *in, size_t size, size_t *taken)
{
    size_t at = 0;
    bool good = c->taken < c->rows.size || c->next == c->n || put_rows(c);
    while (good && at < size && c->taken == c->rows.size) {
        if (c->have < sizeof c->head) {
            c->head[c->have++] = in[at++];
            good = c->have < sizeof c->head || begin_piece(c);
        } else {
            uint32_t *part = c->left > 0 ? &c->left : &c->zeros;
            const size_t n = *part < size - at ? *part : size - at;
            tn_text_add(&c->record, in + at, c->left > 0 ? n : 0);
            *part -= (uint32_t)n;
            at += n;
        }
        if (good && c->have == sizeof c->head && c->left + c->zeros == 0) {
            good = end_piece(c);
        }
    }
    *taken = at;
    return good;
}
