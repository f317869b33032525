/* arrow_values.c - appends the cells of values, by a function for each kind of column.
 *
 * A value is found by what was bound (arrow_array.c); what differs from value to value is checked
 * here: offsets, codes, ends of runs, pieces of views.
 */
#include "io/arrow/arrow_column.h"
#include "io/arrow/arrow_text.h"
#include "io/arrow/cells.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A kind, and what comes before the bytes of a text or the items of a list. */
enum { TEXT_HEAD = 5, LIST_HEAD = 9 };

typedef bool put_function(tn_arrow_column *c, int64_t i, tn_cell_writer *w);

static bool refuse(tn_cell_writer *w, const char *what)
{
    (void)snprintf(w->why, sizeof w->why, "%s", what);
    return false;
}

bool tn_cell_writer_grow(tn_cell_writer *w, size_t size)
{
    tn_text *out = w->out;
    out->size = out->data != NULL ? (size_t)(w->at - out->data) : 0;
    const size_t before = out->size;
    if (tn_text_grow(out, size) == NULL) {
        return false;
    }
    w->at = out->data + before;
    w->end = out->data + out->capacity - 1; /* the text ends with a NUL */
    return true;
}

/* ---- cells ---- */

static bool is_there(const tn_arrow_column *c, int64_t i)
{
    const uint64_t bit = (uint64_t)(c->offset + i);
    return c->valid == NULL || (c->valid[bit / 8] >> (bit % 8) & 1) != 0;
}

/* A number of 4 or 8 bytes. */
static bool put_number(tn_cell_writer *w, tn_arrow_cell_kind kind, const void *value, size_t bytes)
{
    if (!tn_cell_writer_has(w, 1 + bytes)) {
        return false;
    }
    w->at[0] = (char)kind;
    memcpy(w->at + 1, value, bytes);
    w->at += 1 + bytes;
    return true;
}

/* Copies a text; most are short, and a call takes longer than they do. */
static void copy_text(char *to, const char *from, size_t size)
{
    if (size >= 8 && size <= 16) {
        memcpy(to, from, 8);
        memcpy(to + (size - 8), from + (size - 8), 8);
    } else if (size >= 4 && size < 8) {
        memcpy(to, from, 4);
        memcpy(to + (size - 4), from + (size - 4), 4);
    } else if (size > 0) {
        memcpy(to, from, size);
    }
}

static bool put_text_cell(tn_cell_writer *w, const char *text, size_t size)
{
    if (size > UINT32_MAX - TEXT_HEAD) {
        return refuse(w, "holds a text of more than 4 GiB");
    }
    if (!tn_cell_writer_has(w, TEXT_HEAD + size)) {
        return false;
    }
    w->at[0] = TN_CELL_TEXT;
    tn_store_u32(w->at + 1, (uint32_t)size);
    copy_text(w->at + TEXT_HEAD, text, size);
    w->at += TEXT_HEAD + size;
    return true;
}

/* ---- numbers ---- */

#define PUT_INT(name, type)                                                                        \
    static bool put_##name(tn_arrow_column *c, int64_t i, tn_cell_writer *w)                       \
    {                                                                                              \
        type value;                                                                                \
        if (!is_there(c, i)) {                                                                     \
            return tn_cell_writer_none(w);                                                         \
        }                                                                                          \
        memcpy(&value, c->data + (size_t)i * sizeof value, sizeof value);                          \
        const int64_t whole = (int64_t)value;                                                      \
        return put_number(w, TN_CELL_INT, &whole, sizeof whole);                                   \
    }
PUT_INT(int8, int8_t)
PUT_INT(int16, int16_t)
PUT_INT(int32, int32_t)
PUT_INT(int64, int64_t)
PUT_INT(uint8, uint8_t)
PUT_INT(uint16, uint16_t)
PUT_INT(uint32, uint32_t)

static bool put_uint64(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    char text[TN_ARROW_TEXT_ROOM];
    if (!is_there(c, i)) {
        return tn_cell_writer_none(w);
    }
    const uint64_t value = tn_load_u64(c->data + (size_t)i * 8);
    return value <= INT64_MAX ? put_number(w, TN_CELL_INT, &value, sizeof value)
                              : put_text_cell(w, text, tn_arrow_write_u64(text, value));
}

static float half_of(uint16_t half)
{
    const int exponent = half >> 10 & 31;
    const int fraction = half & 1023;
    float value = exponent == 0 ? ldexpf((float)fraction, -24)
                                : ldexpf((float)(fraction + 1024), exponent - 25);
    if (exponent == 31) {
        value = fraction != 0 ? NAN : INFINITY;
    }
    return (half & 0x8000) != 0 ? -value : value;
}

static bool put_half(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    if (!is_there(c, i)) {
        return tn_cell_writer_none(w);
    }
    const float value = half_of(tn_load_u16(c->data + (size_t)i * 2));
    return put_number(w, TN_CELL_SINGLE, &value, sizeof value);
}

static bool put_single(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    return is_there(c, i) ? put_number(w, TN_CELL_SINGLE, c->data + (size_t)i * 4, 4)
                          : tn_cell_writer_none(w);
}

static bool put_real(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    return is_there(c, i) ? put_number(w, TN_CELL_REAL, c->data + (size_t)i * 8, 8)
                          : tn_cell_writer_none(w);
}

/* ---- what becomes a text ---- */

static bool put_null(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    (void)c;
    (void)i;
    return tn_cell_writer_none(w);
}

static bool put_bool(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    if (!is_there(c, i)) {
        return tn_cell_writer_none(w);
    }
    const uint64_t bit = (uint64_t)(c->offset + i);
    return ((uint8_t)c->data[bit / 8] >> (bit % 8) & 1) != 0 ? put_text_cell(w, "True", 4)
                                                             : put_text_cell(w, "False", 5);
}

/* A signed number of `width` bytes, 1 to 8. */
static int64_t whole_at(const tn_arrow_column *c, int64_t i)
{
    const char *at = c->data + (size_t)i * c->width;
    return c->width == 8   ? (int64_t)tn_load_u64(at)
           : c->width == 4 ? (int32_t)tn_load_u32(at)
           : c->width == 2 ? (int16_t)tn_load_u16(at)
                           : (int8_t)*at;
}

static bool put_decimal(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    char text[TN_ARROW_TEXT_ROOM];
    if (!is_there(c, i)) {
        return tn_cell_writer_none(w);
    }
    const char *value = c->data + (size_t)i * c->width;
    return put_text_cell(w, text, tn_arrow_write_decimal(text, value, c->width, c->scale));
}

static bool put_date32(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    char text[TN_ARROW_TEXT_ROOM];
    return is_there(c, i) ? put_text_cell(w, text, tn_arrow_write_date(text, whole_at(c, i)))
                          : tn_cell_writer_none(w);
}

static bool put_date64(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    enum { DAY_MS = 86400000 };
    char text[TN_ARROW_TEXT_ROOM];
    if (!is_there(c, i)) {
        return tn_cell_writer_none(w);
    }
    const int64_t ms = whole_at(c, i);
    return put_text_cell(w, text, tn_arrow_write_date(text, ms / DAY_MS - (ms % DAY_MS < 0)));
}

static bool put_time(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    char text[TN_ARROW_TEXT_ROOM];
    return is_there(c, i)
               ? put_text_cell(w, text, tn_arrow_write_time(text, whole_at(c, i), c->digits))
               : tn_cell_writer_none(w);
}

static bool put_timestamp(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    char text[TN_ARROW_TEXT_ROOM];
    if (!is_there(c, i)) {
        return tn_cell_writer_none(w);
    }
    const size_t size = tn_arrow_write_timestamp(text, whole_at(c, i), c->digits, c->zone_s);
    return put_text_cell(w, text, size);
}

/* ---- texts ---- */

static bool put_fixed_text(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    return is_there(c, i) ? put_text_cell(w, c->data + (size_t)i * c->width, c->width)
                          : tn_cell_writer_none(w);
}

static bool put_piece(const tn_arrow_column *c, int64_t from, int64_t to, tn_cell_writer *w)
{
    if (from < 0 || from > to || to > c->more_n) {
        return refuse(w, "has an array whose offsets go back");
    }
    return put_text_cell(w, c->more + from, (size_t)(to - from));
}

static bool put_text(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    const char *at = c->data + (size_t)i * 4;
    return is_there(c, i) ? put_piece(c, (int32_t)tn_load_u32(at), (int32_t)tn_load_u32(at + 4), w)
                          : tn_cell_writer_none(w);
}

static bool put_large_text(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    const char *at = c->data + (size_t)i * 8;
    return is_there(c, i) ? put_piece(c, (int64_t)tn_load_u64(at), (int64_t)tn_load_u64(at + 8), w)
                          : tn_cell_writer_none(w);
}

/* i32 size, and up to 12 bytes; or 4 bytes, i32 buffer, i32 offset. */
static bool put_text_view(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    enum { INLINE_MAX = 12 };
    if (!is_there(c, i)) {
        return tn_cell_writer_none(w);
    }
    const char *view = c->data + (size_t)i * 16;
    const int32_t size = (int32_t)tn_load_u32(view);
    if (size >= 0 && size <= INLINE_MAX) {
        return put_text_cell(w, view + 4, (size_t)size);
    }
    const int32_t buffer = (int32_t)tn_load_u32(view + 8);
    const int64_t offset = (int32_t)tn_load_u32(view + 12);
    if (size < 0 || buffer < 0 || buffer >= c->more_n || c->buffer[buffer] == NULL || offset < 0 ||
        offset + size > (int64_t)tn_load_u64(c->more + (size_t)buffer * 8)) {
        return refuse(w, "has a view of a text that is in none of its buffers");
    }
    return put_text_cell(w, (const char *)c->buffer[buffer] + offset, (size_t)size);
}

/* ---- what is made of other columns ---- */

/* The list of items from, from + 1, .. of the array of items. */
static bool put_items(const tn_arrow_column *c, int64_t from, int64_t n, tn_cell_writer *w)
{
    if (from < 0 || n < 0 || from > c->of->length || n > c->of->length - from || n > UINT32_MAX) {
        return refuse(w, "has a list whose items are not all there");
    }
    if (!tn_cell_writer_has(w, LIST_HEAD)) {
        return false;
    }
    w->at[0] = TN_CELL_LIST;
    tn_store_u32(w->at + 1, (uint32_t)n);
    w->at += LIST_HEAD;
    const size_t start = (size_t)(w->at - w->out->data);
    for (int64_t i = 0; i < n; i++) {
        if (!tn_arrow_column_put(c->of, from + i, w)) {
            return false;
        }
    }
    const size_t size = (size_t)(w->at - w->out->data) - start;
    if (size > UINT32_MAX - LIST_HEAD) {
        return refuse(w, "holds a list of more than 4 GiB");
    }
    tn_store_u32(w->out->data + start - sizeof(uint32_t), (uint32_t)size);
    return true;
}

static bool put_list(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    if (!is_there(c, i)) {
        return tn_cell_writer_none(w);
    }
    const int64_t from = whole_at(c, i);
    const int64_t to = whole_at(c, i + 1);
    if (from < 0 || to < from) {
        return refuse(w, "has an array whose offsets go back");
    }
    return put_items(c, from, to - from, w);
}

static bool put_list_view(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    if (!is_there(c, i)) {
        return tn_cell_writer_none(w);
    }
    const char *at = c->more + (size_t)i * c->width;
    const int64_t n = c->width == 4 ? (int32_t)tn_load_u32(at) : (int64_t)tn_load_u64(at);
    return put_items(c, whole_at(c, i), n, w);
}

static bool put_fixed_list(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    return is_there(c, i) ? put_items(c, (c->offset + i) * c->width, c->width, w)
                          : tn_cell_writer_none(w);
}

/* A code, negative where none can be. */
static int64_t code_at(const tn_arrow_column *c, int64_t i)
{
    const char *at = c->data + (size_t)i * c->width;
    return c->kind == TN_ARROW_UINT8    ? (uint8_t)*at
           : c->kind == TN_ARROW_UINT16 ? tn_load_u16(at)
           : c->kind == TN_ARROW_UINT32 ? (int64_t)tn_load_u32(at)
                                        : whole_at(c, i);
}

static bool put_dictionary(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    if (!is_there(c, i)) {
        return tn_cell_writer_none(w);
    }
    const int64_t code = code_at(c->index, i);
    if (code < 0 || code >= c->of->length) {
        (void)snprintf(w->why, sizeof w->why,
                       "has code %" PRId64 ", but its dictionary has %" PRId64 " values", code,
                       c->of->length);
        return false;
    }
    return tn_arrow_column_put(c->of, code, w);
}

/* Finds the run that holds a position, beginning at the one that was read last. Returns the number
 * of runs where none does. */
static int64_t find_run(const tn_arrow_column *c, int64_t position)
{
    int64_t low = 0;
    int64_t high = c->index->length;
    for (int64_t k = c->run; k < c->run + 2 && k < high; k++) {
        if (position < whole_at(c->index, k) && (k == 0 || position >= whole_at(c->index, k - 1))) {
            return k;
        }
    }
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (position < whole_at(c->index, middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static bool put_runs(tn_arrow_column *c, int64_t i, tn_cell_writer *w)
{
    const int64_t run = find_run(c, c->offset + i);
    if (run == c->index->length) {
        return refuse(w, "has runs that end before its array does");
    }
    c->run = run;
    return tn_arrow_column_put(c->of, run, w);
}

static put_function *const put_of[TN_ARROW_KINDS] = {
    [TN_ARROW_NULL] = put_null,
    [TN_ARROW_BOOL] = put_bool,
    [TN_ARROW_INT8] = put_int8,
    [TN_ARROW_INT16] = put_int16,
    [TN_ARROW_INT32] = put_int32,
    [TN_ARROW_INT64] = put_int64,
    [TN_ARROW_UINT8] = put_uint8,
    [TN_ARROW_UINT16] = put_uint16,
    [TN_ARROW_UINT32] = put_uint32,
    [TN_ARROW_UINT64] = put_uint64,
    [TN_ARROW_HALF] = put_half,
    [TN_ARROW_SINGLE] = put_single,
    [TN_ARROW_REAL] = put_real,
    [TN_ARROW_DATE32] = put_date32,
    [TN_ARROW_DATE64] = put_date64,
    [TN_ARROW_TIME32] = put_time,
    [TN_ARROW_TIME64] = put_time,
    [TN_ARROW_TIMESTAMP] = put_timestamp,
    [TN_ARROW_DECIMAL] = put_decimal,
    [TN_ARROW_FIXED_TEXT] = put_fixed_text,
    [TN_ARROW_TEXT] = put_text,
    [TN_ARROW_LARGE_TEXT] = put_large_text,
    [TN_ARROW_TEXT_VIEW] = put_text_view,
    [TN_ARROW_LIST] = put_list,
    [TN_ARROW_LARGE_LIST] = put_list,
    [TN_ARROW_LIST_VIEW] = put_list_view,
    [TN_ARROW_LARGE_LIST_VIEW] = put_list_view,
    [TN_ARROW_FIXED_LIST] = put_fixed_list,
    [TN_ARROW_DICTIONARY] = put_dictionary,
    [TN_ARROW_RUNS] = put_runs,
};

bool tn_arrow_column_put(tn_arrow_column *column, int64_t i, tn_cell_writer *w)
{
    return put_of[column->kind](column, i, w);
}
