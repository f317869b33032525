/* rows_fields.c - what a row has beside its keys: label, weight, group, id; and scratch of parsers.
 */
#include "base/core/number.h"
#include "base/math/key.h"
#include "io/rows/rows_private.h"
#include "io/schema/dataframe_words.h"

#include <string.h>

#define WEIGHT_MAX 1048576.0

tn_span *tn_rows_spans(tn_rows *rows, uint32_t n)
{
    void *span = rows->private->span;
    bool grown = tn_rows_grow(&span, 0, n, sizeof(tn_span), &rows->private->spans_max);
    rows->private->span = span;
    return grown ? span : NULL;
}

uint32_t *tn_rows_guesses(tn_rows *rows, uint32_t n)
{
    void *guess = rows->private->guess;
    bool grown = tn_rows_grow(&guess, 0, n, sizeof(uint32_t), &rows->private->guesses_max);
    rows->private->guess = guess;
    return grown ? guess : NULL;
}

tn_tf_shape *tn_rows_shapes(tn_rows *rows, uint32_t n)
{
    void *shape = rows->private->shape;
    bool grown = tn_rows_grow(&shape, 0, n, sizeof(tn_tf_shape), &rows->private->shapes_max);
    rows->private->shape = shape;
    return grown ? shape : NULL;
}

uint16_t *tn_rows_places(tn_rows *rows, size_t line_bytes)
{
    void *place = rows->private->place;
    bool grown = tn_rows_grow(&place, 0, (uint32_t)line_bytes + 1 + TN_MARKS_SPARE,
                              sizeof(uint16_t), &rows->private->places_max);
    rows->private->place = place;
    if (!grown) {
        return NULL;
    }
    rows->private->place[0] = UINT16_MAX;
    return rows->private->place;
}

tn_text *tn_rows_scratch(tn_rows *rows)
{
    return &rows->private->scratch;
}

bool tn_rows_add_text(tn_rows *rows, const char *text, size_t size, tn_token *out)
{
    if (size >= TN_ROWS_ITEMS_MAX) {
        return false;
    }
    void *bytes = rows->text;
    bool grown = tn_rows_grow(&bytes, rows->text_size, (uint32_t)size, 1, &rows->private->text_max);
    rows->text = bytes;
    if (!grown) {
        return false;
    }
    if (size > 0) {
        memcpy(rows->text + rows->text_size, text, size);
    }
    *out = (tn_token){rows->text_size, (uint32_t)size};
    rows->text_size += (uint32_t)size;
    return true;
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
        plain = tn_frame_plain(text, size);
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
    if (size == 0 || tn_frame_missing(text, size)) {
        return TN_FAULT_NO_LABEL;
    }
    tn_bytes plain = tn_frame_plain(text, size);
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
