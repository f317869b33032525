/* tensor_rows.c - tensors of the Open Inference Protocol become records of columns: a tensor is a
 * column, and its first dimension the rows.
 *
 *     "inputs": [{"name": "user", "shape": [2], "datatype": "INT64", "data": [7, 8]},
 *                {"name": "tags", "shape": [2, 2], "datatype": "BYTES",
 *                 "parameters": {"binary_data_size": 28}}]          then the bytes of `tags`
 *
 *     {"user":7,"tags":["a","b"]}
 *     {"user":8,"tags":["c","d"]}
 *
 * Binary tensors are little-endian, row by row; an element of BYTES is a u32 and as many bytes.
 */
#include "base/core/alloc.h"
#include "base/core/number.h"
#include "extra/http/body_rows.h"
#include "io/rows/rows.h"

#include <math.h>
#include <string.h>

enum { TENSORS_MAX = 4096, DIMENSIONS_MAX = 8 };

typedef enum element {
    ELEMENT_BOOL,
    ELEMENT_UNSIGNED,
    ELEMENT_SIGNED,
    ELEMENT_REAL,
    ELEMENT_BYTES,
} element;

static const struct datatype {
    const char *name;
    element kind;
    uint32_t size; /* bytes; 0: of any length */
} datatypes[] = {
    {"BOOL", ELEMENT_BOOL, 1},       {"UINT8", ELEMENT_UNSIGNED, 1},
    {"UINT16", ELEMENT_UNSIGNED, 2}, {"UINT32", ELEMENT_UNSIGNED, 4},
    {"UINT64", ELEMENT_UNSIGNED, 8}, {"INT8", ELEMENT_SIGNED, 1},
    {"INT16", ELEMENT_SIGNED, 2},    {"INT32", ELEMENT_SIGNED, 4},
    {"INT64", ELEMENT_SIGNED, 8},    {"FP32", ELEMENT_REAL, 4},
    {"FP64", ELEMENT_REAL, 8},       {"BYTES", ELEMENT_BYTES, 0},
};

typedef struct tensor {
    tn_json_span name, shape, data, size; /* size: binary_data_size */
    const struct datatype *type;
    uint64_t rows, each; /* `each`: elements of a row */
    bool list;           /* a row has a list, if of one element */
    tn_json_cursor text; /* the place of the next element in `data` */
    tn_bytes binary;     /* its bytes that are left, if `size` is given */
} tensor;

typedef struct tensors {
    uint32_t n, capacity;
    tensor *item; /* owned */
    const char *source;
    tn_bytes binary; /* the bytes after the header that are left */
} tensors;

static bool is_key(tn_bytes key, const char *name)
{
    return key.size == strlen(name) && memcmp(key.data, name, key.size) == 0;
}

static tn_status wrong(const tensors *all, const tensor *t, const char *what, tn_error *err)
{
    return tn_fail(err, TN_E_DATA, "%s: tensor %.*s %s", all->source,
                   (int)(t->name.data != NULL ? t->name.size : 1),
                   t->name.data != NULL ? t->name.data : "?", what);
}

/* Reads {"binary_data_size": N}. */
static void read_parameters(tn_json_cursor *c, tensor *t)
{
    tn_json_span other;
    tn_bytes key;
    bool more = tn_json_cursor_enter(c, '{');
    while (more && tn_json_cursor_member(c, &key)) {
        more = tn_json_cursor_value(c, is_key(key, "binary_data_size") ? &t->size : &other);
    }
}

/* The place of a member of a tensor; others are passed over. */
static tn_json_span *place_of(tensor *t, tn_bytes key, tn_json_span *type, tn_json_span *other)
{
    return is_key(key, "name")       ? &t->name
           : is_key(key, "shape")    ? &t->shape
           : is_key(key, "datatype") ? type
           : is_key(key, "data")     ? &t->data
                                     : other;
}

static void read_members(tn_json_cursor *c, tensor *t)
{
    tn_json_span other;
    tn_json_span type = {0};
    tn_bytes key;
    bool more = tn_json_cursor_enter(c, '{');
    while (more && tn_json_cursor_member(c, &key)) {
        if (is_key(key, "parameters")) {
            read_parameters(c, t);
            more = c->fault == NULL;
        } else {
            more = tn_json_cursor_value(c, place_of(t, key, &type, &other));
        }
    }
    for (size_t i = 0; i < sizeof datatypes / sizeof datatypes[0]; i++) {
        if (tn_json_span_is(&type, datatypes[i].name)) {
            t->type = &datatypes[i];
        }
    }
}

/* Reads the dimensions; false: they are none, or too many. */
static bool read_shape(tensor *t)
{
    tn_json_cursor c = tn_json_cursor_of(t->shape.data, t->shape.size);
    tn_json_span value;
    uint32_t n = 0;
    t->each = 1;
    bool good = tn_json_cursor_enter(&c, '[');
    while (good && tn_json_cursor_item(&c)) {
        uint64_t size = 0;
        good = n < DIMENSIONS_MAX && tn_json_cursor_value(&c, &value) &&
               tn_json_span_u64(&value, &size) && size <= UINT32_MAX;
        if (n == 0) {
            t->rows = size;
        } else {
            good = good && size * t->each <= UINT32_MAX;
            t->each *= size;
        }
        n++;
    }
    t->list = n > 1 && t->each != 1;
    return good && c.fault == NULL && n > 0 && t->rows * t->each <= UINT32_MAX;
}

/* Takes the bytes of a binary tensor off those after the header. */
static tn_status take_binary(tensors *all, tensor *t, tn_error *err)
{
    uint64_t size = 0;
    const uint64_t n = t->rows * t->each;
    if (!tn_json_span_u64(&t->size, &size) || size > all->binary.size) {
        return wrong(all, t, "has more binary_data_size than there are bytes", err);
    }
    if (t->type->size > 0 && size != n * t->type->size) {
        return wrong(all, t, "has a binary_data_size that is not that of its shape", err);
    }
    t->binary = (tn_bytes){all->binary.data, (size_t)size, false};
    all->binary.data += size;
    all->binary.size -= (size_t)size;
    return TN_OK;
}

static tn_status check_tensor(tensors *all, tensor *t, tn_error *err)
{
    if (t->name.data == NULL || *t->name.data != '"') {
        return wrong(all, t, "has no name", err);
    }
    if (t->type == NULL) {
        return wrong(all, t, "has no datatype that is read", err);
    }
    if (t->shape.data == NULL || !read_shape(t)) {
        return wrong(all, t, "has no shape of whole numbers", err);
    }
    if (all->n > 1 && t->rows != all->item[0].rows) {
        return wrong(all, t, "has another first dimension than the first tensor", err);
    }
    if (t->size.data != NULL) {
        return take_binary(all, t, err);
    }
    if (t->data.data == NULL) {
        return wrong(all, t, "has no data", err);
    }
    t->text = tn_json_cursor_of(t->data.data, t->data.size);
    return TN_OK;
}

static tn_status read_tensors(tensors *all, const tn_json_span *inputs, tn_error *err)
{
    tn_json_cursor c = tn_json_cursor_of(inputs->data, inputs->size);
    bool more = tn_json_cursor_enter(&c, '[');
    while (more && tn_json_cursor_item(&c)) {
        if (all->n == TENSORS_MAX) {
            return tn_fail(err, TN_E_LIMIT, "more than %d tensors in a request", TENSORS_MAX);
        }
        if (all->n == all->capacity) {
            const uint32_t room = all->capacity == 0 ? 32 : 2 * all->capacity;
            TN_TRY(TN_GROW(all->item, all->n, room, "tensors of a request", err));
            all->capacity = room;
        }
        tensor *t = &all->item[all->n++];
        *t = (tensor){0};
        read_members(&c, t);
        if (c.fault != NULL) {
            break;
        }
        TN_TRY(check_tensor(all, t, err));
    }
    TN_TRY(tn_json_cursor_check(&c, all->source, err));
    return all->n > 0 ? TN_OK : tn_fail(err, TN_E_DATA, "%s: no tensor", all->source);
}

/* ---- values ---- */

static void add_real(tn_text *out, double value, bool single)
{
    char text[TN_NUMBER_TEXT_MAX];
    if (isnan(value)) {
        tn_text_adds(out, "NaN");
    } else if (isinf(value)) {
        tn_text_adds(out, value < 0 ? "-Infinity" : "Infinity");
    } else {
        const size_t size = single ? tn_write_f32(text, (float)value) : tn_write_f64(text, value);
        tn_text_add(out, text, size);
    }
}

/* Appends a whole number of a tensor's type, whose bytes are these. */
static void add_whole(tn_text *out, const struct datatype *type, const char *at)
{
    uint64_t value = 0;
    TN_ASSERT(type->size >= 1 && type->size <= sizeof value);
    memcpy(&value, at, type->size);
    if (type->kind == ELEMENT_SIGNED) {
        const uint32_t unused = 64 - 8 * type->size;
        const int64_t number = (int64_t)(value << unused) >> unused;
        value = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
        if (number < 0) {
            tn_text_addc(out, '-');
        }
    }
    tn_text_add_u64(out, value);
}

/* Appends the next element of a binary tensor; false: there are fewer bytes. */
static bool add_element(tn_text *out, tensor *t)
{
    const struct datatype *type = t->type;
    const uint32_t size = type->size > 0 ? type->size : tn_get_u32(&t->binary);
    const char *at = tn_get(&t->binary, size);
    if (at == NULL) {
        return false;
    }
    if (type->kind == ELEMENT_BYTES) {
        tn_json_quote(out, at, size);
    } else if (type->kind == ELEMENT_BOOL) {
        tn_text_adds(out, *at != 0 ? "true" : "false");
    } else if (type->kind == ELEMENT_REAL && size == sizeof(float)) {
        float value;
        memcpy(&value, at, sizeof value);
        add_real(out, (double)value, true);
    } else if (type->kind == ELEMENT_REAL) {
        double value;
        memcpy(&value, at, sizeof value);
        add_real(out, value, false);
    } else {
        add_whole(out, type, at);
    }
    return true;
}

/* Appends the elements of the next row of a tensor. */
static tn_status add_row(tn_text *out, const tensors *all, tensor *t, tn_error *err)
{
    tn_json_span value;
    tn_text_adds(out, t->list ? "[" : "");
    for (uint64_t i = 0; i < t->each; i++) {
        if (i > 0) {
            tn_text_addc(out, ',');
        }
        if (t->size.data != NULL) {
            if (!add_element(out, t)) {
                return wrong(all, t, "has fewer bytes than its shape says", err);
            }
        } else if (tn_json_cursor_scalar(&t->text, &value)) {
            tn_text_add(out, value.data, value.size);
        } else {
            return wrong(all, t, "has fewer values than its shape says", err);
        }
    }
    tn_text_adds(out, t->list ? "]" : "");
    return TN_OK;
}

/* Checks that a tensor is used up. */
static tn_status check_end(const tensors *all, tensor *t, tn_error *err)
{
    tn_json_span value;
    const bool more =
        t->size.data != NULL ? t->binary.size > 0 : tn_json_cursor_scalar(&t->text, &value);
    return more ? wrong(all, t, "has more values than its shape says", err) : TN_OK;
}

static tn_status take_tensors(tn_row_sink *to, tensors *all, tn_error *err)
{
    tn_text *record = to->record;
    TN_ASSERT(all->item != NULL);
    for (uint64_t r = 0; r < all->item[0].rows; r++) {
        tn_text_clear(record);
        for (uint32_t i = 0; i < all->n; i++) {
            tn_text_addc(record, (char)(i > 0 ? ',' : '{'));
            tn_text_add(record, all->item[i].name.data, all->item[i].name.size);
            tn_text_addc(record, ':');
            TN_TRY(add_row(record, all, &all->item[i], err));
        }
        tn_text_addc(record, '}');
        TN_TRY(tn_text_check(record, "a row", err));
        const tn_bytes line = {tn_text_str(record), record->size, false};
        TN_TRY(tn_row_sink_take(to, line, err));
    }
    for (uint32_t i = 0; i < all->n; i++) {
        TN_TRY(check_end(all, &all->item[i], err));
    }
    return TN_OK;
}

tn_status tn_rows_of_tensors(tn_row_sink *to, const tn_json_span *inputs, tn_bytes binary,
                             tn_error *err)
{
    tensors all = {.source = to->source, .binary = binary};
    tn_status status = read_tensors(&all, inputs, err);
    status = status == TN_OK ? take_tensors(to, &all, err) : status;
    tn_free(all.item);
    return status;
}
