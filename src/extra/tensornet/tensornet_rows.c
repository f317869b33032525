/* tensornet_rows.c - blocks of rows, text and binary: read with every byte checked, and written. */
#include "extra/tensornet/tensornet.h"

#include "base/core/alloc.h"
#include "base/core/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const tn_tensornet_rules[] = {"adagrad", "adam", "ftrl", NULL};

static const char *const names[] = {"AdaGrad", "Adam", "Ftrl"}; /* in files */

typedef struct reading {
    tn_tensornet_rows *out;
    const char *path;
    const char *at, *end;
    const char *begin;
    uint64_t line;  /* text: of the line that was taken last */
    uint32_t width; /* floats of a row in `out` */
} reading;

static tn_status bad_line(const reading *r, const char *what, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "%s:%" PRIu64 ": error: %s", r->path, r->line, what);
}

static tn_status bad_byte(const reading *r, const char *what, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "%s:@%zu: error: %s", r->path, (size_t)(r->at - r->begin), what);
}

/* Room for n rows. */
static tn_status make_room(tn_tensornet_rows *out, uint64_t n, tn_error *err)
{
    const size_t width = tn_tensornet_width(&out->shape);
    if (n >= UINT32_MAX) {
        return tn_fail(err, TN_E_CKPT, "more than %u rows in a block", UINT32_MAX - 1);
    }
    TN_TRY(TN_ALLOC(out->sign, n + 1, "signs of a block", err));
    TN_TRY(TN_ALLOC(out->idle, n + 1, "days of a block", err));
    TN_TRY(TN_ALLOC(out->order, n + 1, "the order of a block", err));
    return TN_ALLOC(out->values, (n + 1) * width, "rows of a block", err);
}

/* Returns the fault of values that no rule makes, such as a negative counter; NULL: none. */
static const char *fault_of(const tn_tensornet_shape *s, const float *values)
{
    const uint32_t width = tn_tensornet_width(s);
    const uint32_t squares = s->rule == TN_TENSORNET_ADAGRAD ? s->dim : 2 * s->dim;
    for (uint32_t i = 0; i < width; i++) {
        if (!isfinite(values[i])) {
            return "a value that is not finite";
        }
        if (i >= squares && values[i] < 0) {
            return i >= width - 2 ? "a count below 0" : "a sum of squares below 0";
        }
    }
    return NULL;
}

/* ---- text ---- */

/* The next line without its end; false: there is none. */
static bool next_line(reading *r, tn_bytes *out)
{
    if (r->at == r->end) {
        return false;
    }
    const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
    const char *behind = stop != NULL ? stop : r->end;
    *out = (tn_bytes){.data = r->at, .size = (size_t)(behind - r->at)};
    r->at = stop != NULL ? stop + 1 : r->end;
    r->line++;
    return true;
}

/* The word up to the next tab. */
static tn_bytes next_word(tn_bytes *line)
{
    const char *tab = line->size > 0 ? memchr(line->data, '\t', line->size) : NULL;
    const size_t size = tab != NULL ? (size_t)(tab - line->data) : line->size;
    const tn_bytes word = {.data = line->data, .size = size};
    const size_t taken = size + (tab != NULL);
    *line = (tn_bytes){.data = line->data + taken, .size = line->size - taken};
    return word;
}

static bool read_float(tn_bytes *line, float *out)
{
    const tn_bytes word = next_word(line);
    return tn_read_f32(word.data, word.size, out) == TN_NUM_OK;
}

static bool read_whole(tn_bytes *line, uint64_t most, uint64_t *out)
{
    const tn_bytes word = next_word(line);
    return tn_read_u64(word.data, word.size, out) == TN_NUM_OK && *out <= most;
}

/* Reads w, g2sum, show, days unless the file is old, click with CVM, which follow sign and dim. */
static const char *adagrad_line(const tn_tensornet_shape *s, tn_bytes *line, float *values,
                                uint32_t *idle)
{
    uint64_t days = 0;
    for (uint32_t i = 0; i < s->dim + 2; i++) {
        if (!read_float(line, &values[i])) {
            return "expected a decimal number for each weight, g2sum and show";
        }
    }
    values[s->dim + 2] = 0;
    if (line->size > 0 && !read_whole(line, INT32_MAX, &days)) {
        return "expected a whole number of days";
    }
    *idle = (uint32_t)days;
    if (s->cvm && !read_float(line, &values[s->dim + 2])) {
        return "expected clicks; is 'cvm' right in the map?";
    }
    return line->size == 0 ? NULL : "more columns than a row has; is 'cvm' right in the map?";
}

/* Reads w and two states of each coordinate, then show, which follow the sign. */
static const char *pairs_line(const tn_tensornet_shape *s, tn_bytes *line, float *values)
{
    bool good = true;
    float *first = values + s->dim;
    float *second = first + s->dim;
    for (uint32_t i = 0; i < s->dim && good; i++) {
        good = read_float(line, &values[i]) && read_float(line, &first[i]) &&
               read_float(line, &second[i]);
    }
    second[s->dim + 1] = 0;
    if (!good || !read_float(line, &second[s->dim])) {
        return "expected three decimal numbers for each weight, and show";
    }
    return line->size == 0 ? NULL : "more columns than a row has";
}

static tn_status text_row(reading *r, tn_bytes line, tn_error *err)
{
    tn_tensornet_rows *out = r->out;
    const tn_tensornet_shape *s = &out->shape;
    float *values = out->values + out->n * r->width;
    uint64_t dim = 0;
    const char *fault = NULL;
    if (!read_whole(&line, UINT64_MAX, &out->sign[out->n])) {
        return bad_line(r, "expected a sign, a decimal number", err);
    }
    if (s->rule == TN_TENSORNET_ADAGRAD) {
        if (!read_whole(&line, TN_TENSORNET_DIM_MAX, &dim) || dim != s->dim) {
            return bad_line(r, "another number of weights than the file's dim", err);
        }
        fault = adagrad_line(s, &line, values, &out->idle[out->n]);
    } else {
        fault = pairs_line(s, &line, values);
    }
    fault = fault != NULL ? fault : fault_of(s, values);
    out->n++;
    return fault == NULL ? TN_OK : bad_line(r, fault, err);
}

static tn_status text_head(reading *r, tn_error *err)
{
    const tn_tensornet_shape *s = &r->out->shape;
    tn_bytes line = {0};
    char want[32];
    size_t n = (size_t)snprintf(want, sizeof want, "opt_name:%s", names[s->rule]);
    if (!next_line(r, &line) || line.size != n || memcmp(line.data, want, n) != 0) {
        return tn_fail(err, TN_E_CKPT, "%s:1: error: expected '%s', as in the map, found '%.*s'",
                       r->path, want, (int)(line.size < 40 ? line.size : 40), line.data);
    }
    n = (size_t)snprintf(want, sizeof want, "dim:%u", s->dim);
    if (!next_line(r, &line) || line.size != n || memcmp(line.data, want, n) != 0) {
        return tn_fail(err, TN_E_CKPT, "%s:2: error: expected '%s', as in the model, found '%.*s'",
                       r->path, want, (int)(line.size < 40 ? line.size : 40), line.data);
    }
    return TN_OK;
}

static tn_status read_text(reading *r, tn_error *err)
{
    tn_bytes line = {0};
    TN_TRY(text_head(r, err));
    /* A digit and a tab are the least that a sign and each weight take. */
    const size_t least = 2 + 2 * (size_t)r->out->shape.dim;
    TN_TRY(make_room(r->out, (size_t)(r->end - r->at) / least, err));
    bool ended = false; /* TensorNet writes an empty line after the last row */
    while (next_line(r, &line)) {
        if (line.size == 0) {
            ended = true;
        } else if (ended) {
            return bad_line(r, "a row behind the empty line that ends a block", err);
        } else {
            TN_TRY(text_row(r, line, err));
        }
    }
    return ended ? TN_OK
                 : tn_fail(err, TN_E_CKPT,
                           "%s:%" PRIu64 ": error: no empty line at the end, so the block was cut",
                           r->path, r->line);
}

/* ---- binary ---- */

static size_t packed_bytes(const tn_tensornet_shape *s)
{
    return s->rule == TN_TENSORNET_ADAGRAD ? 8 + 4 * ((size_t)s->dim + 3 + s->cvm)
                                           : 8 + 4 * (3 * (size_t)s->dim + 1);
}

/* A row at r->at; floats may lie anywhere. */
static tn_status packed_row(reading *r, tn_error *err)
{
    tn_tensornet_rows *out = r->out;
    const tn_tensornet_shape *s = &out->shape;
    float *values = out->values + out->n * r->width;
    const bool adagrad = s->rule == TN_TENSORNET_ADAGRAD;
    const size_t floats = adagrad ? (size_t)s->dim + 2 : 3 * (size_t)s->dim + 1;
    const char *at = r->at;
    int32_t days = 0;
    memcpy(&out->sign[out->n], at, sizeof *out->sign);
    memcpy(values, at + 8, floats * sizeof *values);
    values[floats] = 0;
    if (adagrad) {
        memcpy(&days, at + 8 + floats * sizeof *values, sizeof days);
    }
    if (s->cvm) {
        memcpy(&values[floats], at + 12 + floats * sizeof *values, sizeof *values);
    }
    const char *fault = days < 0 ? "days below 0" : fault_of(s, values);
    out->idle[out->n++] = (uint32_t)days;
    if (fault != NULL) {
        return bad_byte(r, fault, err);
    }
    r->at += packed_bytes(s);
    return TN_OK;
}

static tn_status read_packed(reading *r, tn_error *err)
{
    const tn_tensornet_shape *s = &r->out->shape;
    const size_t row = packed_bytes(s);
    const size_t size = (size_t)(r->end - r->at);
    int32_t dim = 0;
    if (size < sizeof dim) {
        return bad_byte(r, "a block without a head", err);
    }
    memcpy(&dim, r->at, sizeof dim);
    if (dim != (int32_t)s->dim) {
        return tn_fail(err, TN_E_CKPT, "%s:@0: error: rows of %d weights, of the model %u", r->path,
                       dim, s->dim);
    }
    r->at += sizeof dim;
    const size_t left = (size - sizeof dim) % row;
    if (left > 1 || (left == 1 && r->end[-1] != '\n')) {
        return tn_fail(err, TN_E_CKPT,
                       "%s:@%zu: error: %zu bytes are no whole number of rows of %zu bytes, as of "
                       "%s%s with %u weights",
                       r->path, size, size - sizeof dim, row, names[s->rule],
                       s->cvm ? " and CVM" : "", s->dim);
    }
    TN_TRY(make_room(r->out, (size - sizeof dim) / row, err));
    while ((size_t)(r->end - r->at) >= row) {
        TN_TRY(packed_row(r, err));
    }
    return TN_OK;
}

/* ---- a block ---- */

static int by_sign(const void *left, const void *right, void *arg)
{
    const uint64_t *sign = arg;
    const uint64_t a = sign[*(const uint32_t *)left];
    const uint64_t b = sign[*(const uint32_t *)right];
    return a < b ? -1 : a > b;
}

static tn_status sort(tn_tensornet_rows *out, const char *path, tn_error *err)
{
    for (uint32_t i = 0; i < out->n; i++) {
        out->order[i] = i;
    }
    if (out->n > 1) {
        qsort_r(out->order, out->n, sizeof *out->order, by_sign, out->sign);
    }
    for (uint32_t i = 1; i < out->n; i++) {
        const uint32_t a = out->order[i - 1];
        const uint32_t b = out->order[i];
        if (out->sign[a] == out->sign[b]) {
            return tn_fail(err, TN_E_CKPT, "%s: error: sign %" PRIu64 " twice, in rows %u and %u",
                           path, out->sign[a], (a < b ? a : b) + 1, (a < b ? b : a) + 1);
        }
    }
    return TN_OK;
}

tn_status tn_tensornet_rows_read(tn_tensornet_rows *out, const tn_tensornet_shape *shape,
                                 tn_bytes bytes, const char *path, tn_error *err)
{
    static const char text[] = "opt_name:";
    TN_ASSERT(shape->dim >= 1 && shape->dim <= TN_TENSORNET_DIM_MAX);
    TN_ASSERT(!shape->cvm || shape->rule == TN_TENSORNET_ADAGRAD);
    *out = (tn_tensornet_rows){.shape = *shape};
    reading r = {.out = out,
                 .path = path,
                 .begin = bytes.data,
                 .at = bytes.data,
                 .end = bytes.data + bytes.size,
                 .width = tn_tensornet_width(shape)};
    const bool is_text =
        bytes.size >= sizeof text - 1 && memcmp(bytes.data, text, sizeof text - 1) == 0;
    TN_TRY(is_text ? read_text(&r, err) : read_packed(&r, err));
    return sort(out, path, err);
}

void tn_tensornet_rows_done(tn_tensornet_rows *r)
{
    tn_free(r->sign);
    tn_free(r->values);
    tn_free(r->idle);
    tn_free(r->order);
    *r = (tn_tensornet_rows){0};
}

tn_tensornet_row tn_tensornet_row_at(const tn_tensornet_rows *r, uint64_t i)
{
    TN_ASSERT(i < r->n);
    const uint32_t at = r->order[i];
    const float *values = r->values + (size_t)at * tn_tensornet_width(&r->shape);
    return (tn_tensornet_row){r->sign[at], values, r->idle[at]};
}

/* ---- writing ---- */

void tn_tensornet_begin(tn_text *out, const tn_tensornet_shape *s, bool binary)
{
    if (binary) {
        tn_text_add_u32le(out, s->dim);
    } else {
        tn_text_addf(out, "opt_name:%s\ndim:%u\n", names[s->rule], s->dim);
    }
}

static void add_packed(tn_text *out, const tn_tensornet_shape *s, const tn_tensornet_row *row)
{
    const bool adagrad = s->rule == TN_TENSORNET_ADAGRAD;
    const size_t floats = adagrad ? (size_t)s->dim + 2 : 3 * (size_t)s->dim + 1;
    tn_text_add_u64le(out, row->sign);
    tn_text_add(out, row->values, floats * sizeof *row->values);
    if (adagrad) {
        tn_text_add_u32le(out, row->idle);
    }
    if (s->cvm) {
        tn_text_add_f32le(out, row->values[floats]);
    }
}

/* %.9g brings every bit back. */
static void add_line(tn_text *out, const tn_tensornet_shape *s, const tn_tensornet_row *row)
{
    const float *v = row->values;
    tn_text_addf(out, "%" PRIu64, row->sign);
    if (s->rule == TN_TENSORNET_ADAGRAD) {
        tn_text_addf(out, "\t%u", s->dim);
        for (uint32_t i = 0; i < s->dim + 2; i++) {
            tn_text_addf(out, "\t%.9g", (double)v[i]);
        }
        tn_text_addf(out, "\t%u\t", row->idle);
        if (s->cvm) {
            tn_text_addf(out, "%.9g", (double)v[s->dim + 2]);
        }
    } else {
        const float *first = v + s->dim;
        const float *second = first + s->dim;
        for (uint32_t i = 0; i < s->dim; i++) {
            tn_text_addf(out, "\t%.9g\t%.9g\t%.9g", (double)v[i], (double)first[i],
                         (double)second[i]);
        }
        tn_text_addf(out, "\t%.9g", (double)second[s->dim]);
    }
    tn_text_addc(out, '\n');
}

void tn_tensornet_add(tn_text *out, const tn_tensornet_shape *s, bool binary,
                      const tn_tensornet_row *row)
{
    (binary ? add_packed : add_line)(out, s, row);
}

void tn_tensornet_end(tn_text *out)
{
    tn_text_addc(out, '\n');
}
