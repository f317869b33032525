/* arrow_array.c - binds a column to an array: finds its buffers and checks what can be checked once
 * for all values.
 *
 * Sizes of buffers are not part of the interface, but for those of views. What is known of them
 * follows from lengths and last offsets, and no value is read beyond that.
 */
#include "io/arrow/arrow_abi.h"
#include "io/arrow/arrow_column.h"

#include "base/core/bytes.h"

#include <inttypes.h>
#include <stdio.h>

/* No array has more values: sums and products of what is below fit 64 bits. */
#define VALUES_MAX (INT64_C(1) << 40)

typedef struct binding {
    tn_arrow_column *column;
    const struct ArrowArray *array;
    char *why;
} binding;

static bool refuse(const binding *b, const char *what)
{
    (void)snprintf(b->why, TN_ARROW_WHY_BYTES, "%s", what);
    return false;
}

/* The least that an array of a kind has, and the function that finds it. */
typedef struct shape {
    int64_t buffers;
    int64_t children;
    bool (*bind)(const binding *b);
} shape;

static const shape *shape_of(tn_arrow_kind kind);

static bool check_sizes(const binding *b, int64_t n)
{
    const struct ArrowArray *a = b->array;
    if (a == NULL || a->release == NULL) {
        return refuse(b, "has no array, or one that was released");
    }
    if (a->length < 0 || a->offset < 0 || a->length > VALUES_MAX || a->offset > VALUES_MAX) {
        (void)snprintf(b->why, TN_ARROW_WHY_BYTES,
                       "has an array of length %" PRId64 " from offset %" PRId64
                       ", which cannot be",
                       a->length, a->offset);
        return false;
    }
    if (a->length < n) {
        (void)snprintf(b->why, TN_ARROW_WHY_BYTES,
                       "has an array of %" PRId64 " values, expected %" PRId64, a->length, n);
        return false;
    }
    const shape *wanted = shape_of(b->column->kind);
    if (a->n_buffers < wanted->buffers || (wanted->buffers > 0 && a->buffers == NULL)) {
        (void)snprintf(b->why, TN_ARROW_WHY_BYTES,
                       "has an array of %" PRId64 " buffers, expected %" PRId64, a->n_buffers,
                       wanted->buffers);
        return false;
    }
    if (a->n_children < wanted->children || (wanted->children > 0 && a->children == NULL)) {
        return refuse(b, "has an array without the arrays that it is made of");
    }
    return true;
}

/* Finds the bits that say which values are there. */
static bool bind_valid(const binding *b)
{
    const struct ArrowArray *a = b->array;
    const bool has_bits = shape_of(b->column->kind)->buffers > 0;
    const void *bits = has_bits ? a->buffers[0] : NULL;
    if (has_bits && bits == NULL && a->null_count > 0) {
        return refuse(b, "has an array with nulls that does not say where");
    }
    b->column->valid = a->null_count != 0 ? bits : NULL;
    return true;
}

/* Finds a buffer of `width` bytes for each value. */
static bool bind_data(const binding *b, int64_t which, uint32_t width, const char **out)
{
    const char *data = b->array->buffers[which];
    *out = data != NULL ? data : "";
    if (data == NULL && b->array->length > 0 && width > 0) {
        return refuse(b, "has an array without its buffer of values");
    }
    if (data != NULL && b->array->length > 0) {
        *out = data + (size_t)b->array->offset * width;
    }
    return true;
}

static bool bind_nothing(const binding *b)
{
    (void)b;
    return true;
}

/* Bits are counted from the array's offset. */
static bool bind_bits(const binding *b)
{
    b->column->data = b->array->buffers[1];
    return b->column->data != NULL || b->array->length == 0 ||
           refuse(b, "has an array without its buffer of values");
}

static bool bind_values(const binding *b)
{
    return bind_data(b, 1, b->column->width, &b->column->data);
}

static int64_t offset_at(const tn_arrow_column *c, int64_t i)
{
    return c->width == 4 ? (int32_t)tn_load_u32(c->data + 4 * i)
                         : (int64_t)tn_load_u64(c->data + 8 * i);
}

/* The bytes of texts end at the last offset. */
static bool bind_texts(const binding *b)
{
    tn_arrow_column *c = b->column;
    const char *texts = b->array->buffers[2];
    if (!bind_values(b)) {
        return false;
    }
    c->more = texts != NULL ? texts : "";
    c->more_n = c->length > 0 ? offset_at(c, c->length) : 0;
    return texts != NULL || c->more_n <= 0 || refuse(b, "has an array without its texts");
}

static bool bind_views(const binding *b)
{
    tn_arrow_column *c = b->column;
    c->buffer = b->array->buffers + 2;
    c->more_n = b->array->n_buffers - 3;
    c->more = b->array->buffers[b->array->n_buffers - 1];
    if (c->more == NULL && c->more_n > 0) {
        return refuse(b, "has an array of views without the sizes of its buffers");
    }
    return bind_values(b);
}

static bool bind_child(const binding *b, tn_arrow_column *column, int64_t which, int64_t n)
{
    return tn_arrow_column_bind(column, b->array->children[which], n, b->why);
}

/* The end of each list in the array of its items is checked when it is read. */
static bool bind_list(const binding *b)
{
    return bind_values(b) && bind_child(b, b->column->of, 0, 0);
}

static bool bind_list_view(const binding *b)
{
    return bind_data(b, 2, b->column->width, &b->column->more) && bind_list(b);
}

static bool bind_fixed_list(const binding *b)
{
    const tn_arrow_column *c = b->column;
    int64_t n = 0;
    if (__builtin_mul_overflow(c->offset + c->length, (int64_t)c->width, &n)) {
        return refuse(b, "has lists of more items than can be");
    }
    return bind_child(b, c->of, 0, c->length > 0 ? n : 0);
}

static bool bind_runs(const binding *b)
{
    tn_arrow_column *c = b->column;
    c->run = 0;
    if (!bind_child(b, c->index, 0, c->length > 0 ? 1 : 0)) {
        return false;
    }
    return (c->index->valid == NULL || refuse(b, "has runs whose ends are null")) &&
           bind_child(b, c->of, 1, c->index->length);
}

/* The codes are the array itself. */
static bool bind_dictionary(const binding *b)
{
    tn_arrow_column *c = b->column;
    if (!tn_arrow_column_bind(c->index, b->array, c->length, b->why)) {
        return false;
    }
    c->valid = c->index->valid;
    return (b->array->dictionary != NULL || refuse(b, "has an array without its dictionary")) &&
           tn_arrow_column_bind(c->of, b->array->dictionary, 0, b->why);
}

#define NUMBERS                                                                                    \
    {                                                                                              \
        2, 0, bind_values                                                                          \
    }

static const shape shapes[TN_ARROW_KINDS] = {
    [TN_ARROW_NULL] = {0, 0, bind_nothing},
    [TN_ARROW_BOOL] = {2, 0, bind_bits},
    [TN_ARROW_INT8] = NUMBERS,
    [TN_ARROW_INT16] = NUMBERS,
    [TN_ARROW_INT32] = NUMBERS,
    [TN_ARROW_INT64] = NUMBERS,
    [TN_ARROW_UINT8] = NUMBERS,
    [TN_ARROW_UINT16] = NUMBERS,
    [TN_ARROW_UINT32] = NUMBERS,
    [TN_ARROW_UINT64] = NUMBERS,
    [TN_ARROW_HALF] = NUMBERS,
    [TN_ARROW_SINGLE] = NUMBERS,
    [TN_ARROW_REAL] = NUMBERS,
    [TN_ARROW_DATE32] = NUMBERS,
    [TN_ARROW_DATE64] = NUMBERS,
    [TN_ARROW_TIME32] = NUMBERS,
    [TN_ARROW_TIME64] = NUMBERS,
    [TN_ARROW_TIMESTAMP] = NUMBERS,
    [TN_ARROW_DECIMAL] = NUMBERS,
    [TN_ARROW_FIXED_TEXT] = NUMBERS,
    [TN_ARROW_TEXT] = {3, 0, bind_texts},
    [TN_ARROW_LARGE_TEXT] = {3, 0, bind_texts},
    [TN_ARROW_TEXT_VIEW] = {3, 0, bind_views},
    [TN_ARROW_LIST] = {2, 1, bind_list},
    [TN_ARROW_LARGE_LIST] = {2, 1, bind_list},
    [TN_ARROW_LIST_VIEW] = {3, 1, bind_list_view},
    [TN_ARROW_LARGE_LIST_VIEW] = {3, 1, bind_list_view},
    [TN_ARROW_FIXED_LIST] = {1, 1, bind_fixed_list},
    [TN_ARROW_DICTIONARY] = {2, 0, bind_dictionary},
    [TN_ARROW_RUNS] = {0, 2, bind_runs},
};

static const shape *shape_of(tn_arrow_kind kind)
{
    return &shapes[kind];
}

bool tn_arrow_column_bind(tn_arrow_column *column, const struct ArrowArray *array, int64_t n,
                          char why[TN_ARROW_WHY_BYTES])
{
    binding b = {.column = column, .array = array};
    b.why = why;
    if (!check_sizes(&b, n) || !bind_valid(&b)) {
        return false;
    }
    column->length = array->length;
    column->offset = array->offset;
    return shape_of(column->kind)->bind(&b);
}
