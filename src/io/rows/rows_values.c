/* rows_values.c - what a row is given: label, weight, group, id, and the values of its slots by
 * type, transform and salt. The hot path of every parser.
 *
 * Dataframes write other words where an integer is expected. They are looked for only once a field
 * was not what was expected, so that all others pay nothing for them:
 *
 *     1.0, -7.00         1, -7      a column of integers in which something is missing holds floats
 *     True, FALSE        1, 0       of either case
 *     nan, NaN           nothing
 */
#include "base/core/bytes.h"
#include "base/core/number.h"
#include "base/math/key.h"
#include "io/rows/rows.h"
#include "io/rows/rows_parsing.h"
#include "io/text/digits.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WEIGHT_MAX 1048576.0

/* The text of a value, kept for rows that are to be written again. */
typedef struct source {
    const char *text;
    size_t size;
} source;

/* `word` is of small letters. */
static bool is_word(const char *text, size_t size, const char *word)
{
    bool same = size == strlen(word);
    for (size_t i = 0; same && i < size; i++) {
        same = (text[i] | 0x20) == word[i];
    }
    return same;
}

/* nan */
static bool is_frame_missing(const char *text, size_t size)
{
    return is_word(text, size, "nan");
}

/* Digits in front of a point and zeros; 0: something else. */
static size_t whole_part(const char *text, size_t size)
{
    size_t zeros = 0;
    while (zeros < size && text[size - zeros - 1] == '0') {
        zeros++;
    }
    bool whole = zeros > 0 && zeros + 1 < size && text[size - zeros - 1] == '.';
    return whole ? size - zeros - 1 : 0;
}

/* Returns the plain integer that the field means, within it or static; size 0: it is missing;
 * failed: it is none of the above. */
static tn_bytes frame_plain(const char *text, size_t size)
{
    size_t digits = whole_part(text, size);
    if (digits > 0) {
        return (tn_bytes){text, digits, false};
    }
    if (is_word(text, size, "true")) {
        return (tn_bytes){"1", 1, false};
    }
    if (is_word(text, size, "false")) {
        return (tn_bytes){"0", 1, false};
    }
    return (tn_bytes){text, 0, !is_frame_missing(text, size)};
}

tn_fault tn_rows_id(tn_rows *rows, const char *text, size_t size)
{
    bool kept = (rows->private->keep & (TN_ROWS_IDS | TN_ROWS_SIGNS)) == 0 ||
                tn_rows_add_text(rows, text, size, &rows->row[rows->n].id);
    return kept ? TN_FAULT_NONE : TN_FAULT_MEMORY;
}

void tn_rows_group(tn_rows *rows, uint64_t sign)
{
    rows->row[rows->n].group = sign;
}

void tn_rows_group_text(tn_rows *rows, const char *text, size_t size)
{
    const tn_slot_spec *spec = rows->schema->group_spec;
    tn_sign_type type = spec != NULL && !tn_spec_is_number(spec) ? spec->type : TN_SIGN_ID;
    uint64_t sign = 0;
    int64_t number = 0;
    tn_numeral how = TN_NUM_NONE;
    if (type == TN_SIGN_ID) {
        how = tn_read_u64(text, size, &sign);
    } else if (type == TN_SIGN_HEX) {
        how = tn_read_hex(text, size, &sign);
    } else if (type == TN_SIGN_INT) {
        how = tn_read_i64(text, size, &number);
        sign = (uint64_t)number;
    }
    bool may_be_frame = how != TN_NUM_OK && spec != NULL && rows->schema->frame_words;
    tn_bytes plain = {NULL, 0, true};
    if (may_be_frame && type != TN_SIGN_STR) {
        plain = frame_plain(text, size);
    }
    if (plain.failed) {
        tn_rows_group(rows, how == TN_NUM_OK ? sign : tn_xxh64(text, size, 0));
    } else if (plain.size > 0) { /* else it is missing */
        tn_rows_group_text(rows, plain.data, plain.size);
    }
}

tn_fault tn_rows_label(tn_rows *rows, const char *text, size_t size)
{
    float *label = &rows->row[rows->n].label;
    if (tn_label_of_text(rows->schema->label, text, size, label)) {
        return TN_FAULT_NONE;
    }
    if (size == 0 || is_frame_missing(text, size)) {
        return TN_FAULT_NO_LABEL;
    }
    tn_bytes plain = frame_plain(text, size);
    bool good = rows->schema->frame_words && !plain.failed &&
                tn_label_of_text(rows->schema->label, plain.data, plain.size, label);
    return good ? TN_FAULT_NONE : TN_FAULT_LABEL;
}

tn_fault tn_rows_label_number(tn_rows *rows, double value)
{
    bool good = tn_label_of_number(rows->schema->label, value, &rows->row[rows->n].label);
    return good ? TN_FAULT_NONE : TN_FAULT_LABEL;
}

tn_fault tn_rows_weight_number(tn_rows *rows, double value)
{
    if (!(value >= 0 && value <= WEIGHT_MAX)) {
        return TN_FAULT_WEIGHT;
    }
    rows->row[rows->n].weight = (float)value;
    return TN_FAULT_NONE;
}

tn_fault tn_rows_weight(tn_rows *rows, const char *text, size_t size)
{
    double value;
    if (tn_read_f64(text, size, &value) != TN_NUM_OK) {
        return TN_FAULT_WEIGHT;
    }
    return tn_rows_weight_number(rows, value);
}

static inline tn_fault add_key(tn_rows *rows, const tn_slot_spec *spec, uint64_t sign, float x,
                               source from)
{
    if (rows->token == NULL && spec->plain_key) {
        return tn_rows_put(rows, spec, sign, x) ? TN_FAULT_NONE : TN_FAULT_VALUES;
    }
    uint32_t n = rows->n_entries;
    if (spec->drop_zero && x == 0) {
        return TN_FAULT_NONE;
    }
    if (n >= rows->private->entries_end) {
        return TN_FAULT_VALUES;
    }
    if (rows->token != NULL && !tn_rows_add_text(rows, from.text, from.size, &rows->token[n])) {
        return TN_FAULT_MEMORY;
    }
    rows->entry[n] = (tn_entry){tn_key_of(sign, spec->salt), spec->slot, x};
    rows->n_entries = n + 1;
    if (rows->real != NULL) {
        rows->real[n] = (double)NAN;
    }
    return TN_FAULT_NONE;
}

/* A number of the input, or beside the row; of a vector the one in place `k`. */
static tn_fault put_number(tn_rows *rows, const tn_slot_spec *spec, uint32_t k, float value,
                           source from)
{
    const size_t at = (size_t)rows->n * tn_schema_numbers(rows->schema) + spec->numeric + k;
    rows->numeric[at] = value;
    const bool kept = rows->numeric_token == NULL ||
                      tn_rows_add_text(rows, from.text, from.size, &rows->numeric_token[at]);
    return kept ? TN_FAULT_NONE : TN_FAULT_MEMORY;
}

/* The next number of a vector, whose length is looked at when the row ends. */
static tn_fault add_to_vector(tn_rows *rows, const tn_slot_spec *spec, double v, source from)
{
    struct rows_private *p = rows->private;
    const size_t i = (size_t)(spec - rows->schema->spec);
    const uint32_t k = p->seen[i] == p->serial ? p->filled[i] : 0;
    const float value = tn_transform_value(&spec->transform, v);
    p->seen[i] = p->serial;
    p->filled[i] = k + 1;
    if (!isfinite(value)) {
        return TN_FAULT_FLOAT_RANGE;
    }
    return k < spec->width ? put_number(rows, spec, k, value, from) : TN_FAULT_NONE;
}

/* A finite number of a slot that wants one. */
static tn_fault add_number(tn_rows *rows, const tn_slot_spec *spec, double v, source from)
{
    if (spec->as == TN_AS_KEY) {
        const uint32_t n = rows->n_entries;
        const tn_fault fault =
            tn_transform_takes(&spec->transform, v)
                ? add_key(rows, spec, tn_transform_sign(&spec->transform, v), 1, from)
                : TN_FAULT_DATE;
        if (rows->real != NULL && rows->n_entries > n) {
            rows->real[n] = v;
        }
        return fault;
    }
    if (spec->width > 0) {
        return add_to_vector(rows, spec, v, from);
    }
    uint32_t *seen = &rows->private->seen[spec - rows->schema->spec];
    if (*seen == rows->private->serial) {
        return TN_FAULT_TWO_VALUES;
    }
    *seen = rows->private->serial;
    float value = tn_transform_value(&spec->transform, v);
    if (!isfinite(value)) {
        return TN_FAULT_FLOAT_RANGE;
    }
    if (spec->label != NULL && !tn_label_of_number(spec->label, v, &value)) {
        return TN_FAULT_LABEL;
    }
    if (spec->weighs && !(value >= 0 && value <= (float)WEIGHT_MAX)) {
        return TN_FAULT_WEIGHT;
    }
    if (spec->as == TN_AS_WEIGHTED) {
        return fabsf(value) <= TN_X_MAX ? add_key(rows, spec, 0, value, from) : TN_FAULT_X_RANGE;
    }
    return put_number(rows, spec, 0, value, from);
}

/* The label of a task that is one of some texts. */
static tn_fault take_label_text(tn_rows *rows, const tn_slot_spec *spec, source from)
{
    uint32_t *seen = &rows->private->seen[spec - rows->schema->spec];
    const tn_bytes plain = frame_plain(from.text, from.size);
    float value = 0;
    if (*seen == rows->private->serial) {
        return TN_FAULT_TWO_VALUES;
    }
    *seen = rows->private->serial;
    const bool good = tn_label_of_text(spec->label, from.text, from.size, &value) ||
                      (rows->schema->frame_words && !plain.failed && plain.size > 0 &&
                       tn_label_of_text(spec->label, plain.data, plain.size, &value));
    return good ? put_number(rows, spec, 0, value, from) : TN_FAULT_LABEL;
}

static tn_fault not_read(tn_numeral how, tn_fault none, tn_fault range)
{
    return how == TN_NUM_RANGE ? range : none;
}

tn_fault tn_rows_read_x(const tn_slot_spec *spec, const char *text, size_t size, float *x)
{
    tn_numeral how = tn_read_f32(text, size, x);
    if (how == TN_NUM_NOT_FINITE) {
        return spec->non_finite_absent ? TN_FAULT_NONE : TN_FAULT_NOT_FINITE;
    }
    if (how == TN_NUM_OK) {
        return fabsf(*x) <= TN_X_MAX ? TN_FAULT_NONE : TN_FAULT_X_RANGE;
    }
    return not_read(how, TN_FAULT_FLOAT, TN_FAULT_FLOAT_RANGE);
}

tn_fault tn_rows_read_number(const tn_slot_spec *spec, const char *text, size_t size, double *v)
{
    tn_numeral how = tn_read_f64(text, size, v);
    if (how == TN_NUM_NOT_FINITE) {
        return spec->non_finite_absent ? TN_FAULT_NONE : TN_FAULT_NOT_FINITE;
    }
    if (how == TN_NUM_OK && !tn_transform_is_sign(&spec->transform)) {
        float x = 0;
        how = tn_round_f32(*v, &x);
        *v = tn_transform_rounds(&spec->transform, *v) ? (double)x : *v;
    }
    return how == TN_NUM_OK ? TN_FAULT_NONE : not_read(how, TN_FAULT_FLOAT, TN_FAULT_FLOAT_RANGE);
}

tn_fault tn_rows_double(tn_rows *rows, const tn_slot_spec *spec, double value)
{
    char text[TN_NUMBER_TEXT_MAX];
    source from = {text, 0};
    float single = 0;
    const bool is_sign = tn_transform_is_sign(&spec->transform);
    if (!isfinite(value)) {
        return spec->non_finite_absent ? TN_FAULT_NONE : TN_FAULT_NOT_FINITE;
    }
    if (!is_sign && tn_round_f32(value, &single) != TN_NUM_OK) {
        return TN_FAULT_FLOAT_RANGE;
    }
    if (rows->private->keep & TN_ROWS_SIGNS) {
        from.size = tn_write_f64(text, value);
    }
    const bool rounds = !is_sign && tn_transform_rounds(&spec->transform, value);
    return add_number(rows, spec, rounds ? (double)single : value, from);
}

static tn_fault take_float(tn_rows *rows, const tn_slot_spec *spec, source from)
{
    double v = 0;
    const tn_fault fault = tn_rows_read_number(spec, from.text, from.size, &v);
    if (fault != TN_FAULT_NONE || !isfinite(v)) {
        return fault;
    }
    return add_number(rows, spec, v, from);
}

/* An integer, signed or not. */
static inline tn_fault take_whole(tn_rows *rows, const tn_slot_spec *spec, bool is_signed, float x,
                                  source from)
{
    enum { SHORT_MAX = 18 }; /* digits, which always fit */
    uint64_t v = 0;
    const char *end = from.text + from.size;
    if (from.size == 0 || from.size > SHORT_MAX || tn_take_digits(from.text, end, &v) != end) {
        int64_t number = 0;
        tn_numeral how = is_signed ? tn_read_i64(from.text, from.size, &number)
                                   : tn_read_u64(from.text, from.size, &v);
        if (how != TN_NUM_OK) {
            return is_signed ? not_read(how, TN_FAULT_INT, TN_FAULT_INT_RANGE)
                             : not_read(how, TN_FAULT_ID, TN_FAULT_ID_RANGE);
        }
        v = is_signed ? (uint64_t)number : v;
    }
    return tn_spec_is_number(spec)
               ? add_number(rows, spec, is_signed ? (double)(int64_t)v : (double)v, from)
               : add_key(rows, spec, v, x, from);
}

/* A field that is no number as such: it may be a date, or one as dataframes write it. */
static tn_fault take_frame_word(tn_rows *rows, const tn_slot_spec *spec, float x, source from,
                                tn_fault fault)
{
    uint64_t sign = 0;
    if (tn_transform_is_date(&spec->transform)) {
        if (tn_transform_date(&spec->transform, from.text, from.size, &sign)) {
            return add_key(rows, spec, sign, 1, from);
        }
        fault = TN_FAULT_DATE;
    }
    if (!rows->schema->frame_words) {
        return fault;
    }
    tn_bytes plain = frame_plain(from.text, from.size);
    if (plain.failed || plain.size == 0) {
        return plain.failed ? fault : TN_FAULT_NONE;
    }
    if (fault == TN_FAULT_DATE) { /* neither 1.0 nor true is one */
        return fault;
    }
    from = (source){plain.data, plain.size};
    return spec->type == TN_SIGN_FLOAT ? take_float(rows, spec, from)
                                       : take_whole(rows, spec, spec->type == TN_SIGN_INT, x, from);
}

/* A number, or the label of a task that is one of some texts. */
static tn_fault take_real(tn_rows *rows, const tn_slot_spec *spec, float x, source from)
{
    if (spec->label != NULL && spec->label->n_values > 0) {
        return take_label_text(rows, spec, from);
    }
    const tn_fault fault = take_float(rows, spec, from);
    return (fault == TN_FAULT_FLOAT || fault == TN_FAULT_NOT_FINITE) && spec->width == 0
               ? take_frame_word(rows, spec, x, from, fault)
               : fault;
}

tn_fault tn_rows_token(tn_rows *rows, const tn_slot_spec *spec, const char *text, size_t size,
                       float x)
{
    source from = {text, size};
    tn_fault fault;
    uint64_t sign;
    switch (spec->type) {
    case TN_SIGN_ID:
        fault = take_whole(rows, spec, false, x, from);
        return fault == TN_FAULT_ID ? take_frame_word(rows, spec, x, from, fault) : fault;
    case TN_SIGN_INT:
        fault = take_whole(rows, spec, true, x, from);
        return fault == TN_FAULT_INT ? take_frame_word(rows, spec, x, from, fault) : fault;
    case TN_SIGN_HEX:
        if ((size != 8 || !tn_read_hex8(text, &sign)) &&
            tn_read_hex(text, size, &sign) != TN_NUM_OK) {
            return rows->schema->frame_words && is_frame_missing(text, size) ? TN_FAULT_NONE
                                                                             : TN_FAULT_HEX;
        }
        return add_key(rows, spec, sign, x, from);
    case TN_SIGN_FLOAT:
        return take_real(rows, spec, x, from);
    case TN_SIGN_STR:
    default:
        if (tn_transform_is_date(&spec->transform)) {
            return take_frame_word(rows, spec, x, from, TN_FAULT_DATE);
        }
        return add_key(rows, spec, tn_xxh64(text, size, 0), x, from);
    }
}

tn_fault tn_rows_keep_place(tn_rows *rows, const tn_slot_spec *spec, uint32_t before, float x)
{
    static const source null = {"", 0};
    if (spec->sequence == NULL || rows->n_entries > before) {
        return TN_FAULT_NONE;
    }
    return add_key(rows, spec, tn_xxh64("", 0, 0), isfinite(x) ? x : 1, null);
}

tn_fault tn_rows_integer(tn_rows *rows, const tn_slot_spec *spec, int64_t value, float x)
{
    if (rows->token == NULL && !tn_spec_is_number(spec)) {
        return add_key(rows, spec, (uint64_t)value, x, (source){NULL, 0});
    }
    char text[TN_NUMBER_TEXT_MAX];
    source from = {text, 0};
    if (rows->private->keep & TN_ROWS_SIGNS) {
        int size = spec->type == TN_SIGN_ID
                       ? snprintf(text, sizeof text, "%" PRIu64, (uint64_t)value)
                       : snprintf(text, sizeof text, "%" PRId64, value);
        from.size = (size_t)size;
    }
    if (tn_spec_is_number(spec)) {
        double v =
            spec->type == TN_SIGN_ID ? (double)(uint64_t)value
            : spec->type == TN_SIGN_FLOAT && tn_transform_rounds(&spec->transform, (double)value)
                ? (double)(float)value /* as from text */
                : (double)value;
        return add_number(rows, spec, v, from);
    }
    return add_key(rows, spec, (uint64_t)value, x, from);
}

tn_fault tn_rows_real(tn_rows *rows, const tn_slot_spec *spec, double value)
{
    const float single = (float)value;
    const bool rounds = tn_transform_rounds(&spec->transform, value);
    const bool is_single = rounds || (double)single == value;
    if (!isfinite(value)) {
        return spec->non_finite_absent ? TN_FAULT_NONE : TN_FAULT_NOT_FINITE;
    }
    if (!isfinite(single) && !tn_transform_is_sign(&spec->transform)) {
        return TN_FAULT_FLOAT_RANGE;
    }
    char text[TN_NUMBER_TEXT_MAX];
    source from = {text, 0};
    if (rows->private->keep & TN_ROWS_SIGNS) {
        from.size = is_single ? tn_write_f32(text, single) : tn_write_f64(text, value);
    }
    const double v = is_single ? tn_transform_of_single(&spec->transform, single) : value;
    return add_number(rows, spec, v, from);
}
