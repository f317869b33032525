/* delimited.c - from fields to slots. */
#include "io/format/delimited.h"

#include "base/core/number.h"
#include "io/format/line.h"
#include "io/schema/columns.h"

#include <math.h>
#include <string.h>

/* One record on its way into a row. */
typedef struct taking {
    const tn_schema *schema;
    const tn_place *place;
    tn_bytes line;
    tn_rows *rows;
    const tn_head *head;
    const tn_span *span; /* head->n_columns */
} taking;

static inline bool is_null(const taking *t, const tn_span *span)
{
    if (!span->found || t->schema->empty_is_null) {
        return !span->found || (span->size == 0 && !span->quoted);
    }
    const tn_strs *null = &t->schema->data->null;
    for (uint32_t i = 0; i < null->n && !span->quoted; i++) {
        const char *text = null->item[i];
        if (strncmp(text, span->text, span->size) == 0 && text[span->size] == '\0') {
            return true;
        }
    }
    return false;
}

/* `token` lies in the span; the message points to it where it stands in the line itself. */
static tn_status fault_in(const taking *t, const tn_span *span, tn_bytes token, tn_fault fault,
                          tn_error *err)
{
    const char *end = t->line.data + t->line.size;
    if (token.data == NULL || token.data < t->line.data || token.data > end) {
        token.data = t->line.data + span->at;
        token.size = token.size <= (size_t)(end - token.data) ? token.size : 0;
    }
    return tn_place_fault(t->place, t->line, token, fault, err);
}

static tn_bytes bytes_of(const tn_span *span)
{
    return (tn_bytes){span->text, span->size, false};
}

/* The next of the values between separators; false: none is left. */
static bool next_value(tn_bytes *list, char separator, tn_bytes *out)
{
    if (list->failed) {
        return false;
    }
    const char *end =
        separator != 0 && list->size > 0 ? memchr(list->data, separator, list->size) : NULL;
    size_t size = end != NULL ? (size_t)(end - list->data) : list->size;
    *out = (tn_bytes){list->data, size, false};
    list->failed = end == NULL; /* this was the last */
    list->data += size + (end != NULL);
    list->size -= size + (end != NULL);
    return true;
}

static tn_status read_x(const taking *t, const tn_slot_spec *spec, const tn_span *span,
                        tn_bytes text, float *x, tn_error *err)
{
    tn_numeral how = tn_read_f32(text.data, text.size, x);
    if (how == TN_NUM_OK || (how == TN_NUM_NOT_FINITE && (spec->non_finite_absent || isnan(*x)))) {
        return TN_OK;
    }
    return fault_in(t, span, text,
                    how == TN_NUM_RANGE        ? TN_FAULT_FLOAT_RANGE
                    : how == TN_NUM_NOT_FINITE ? TN_FAULT_NOT_FINITE
                                               : TN_FAULT_FLOAT,
                    err);
}

/* A list beside the list of its x_j. */
static tn_status take_pairs(const taking *t, const tn_slot_spec *spec, const tn_span *span,
                            const tn_span *xs, tn_error *err)
{
    tn_bytes list = bytes_of(span);
    tn_bytes x_list = bytes_of(xs);
    list.failed = is_null(t, span);
    x_list.failed = is_null(t, xs);
    tn_bytes value;
    tn_bytes x_text;
    while (next_value(&list, spec->list, &value)) {
        float x;
        if (!next_value(&x_list, spec->list, &x_text)) {
            return tn_place_fail(t->place, t->line, t->line.data + xs->at, err,
                                 "column '%s' has fewer values than '%s'", spec->values,
                                 spec->column);
        }
        TN_TRY(read_x(t, spec, xs, x_text, &x, err));
        tn_fault fault = x - x != 0 /* not finite, and so absent */
                             ? TN_FAULT_NONE
                             : tn_rows_token(t->rows, spec, value.data, value.size, x);
        if (fault != TN_FAULT_NONE) {
            return fault_in(t, span, value, fault, err);
        }
    }
    if (next_value(&x_list, spec->list, &x_text)) {
        return tn_place_fail(t->place, t->line, t->line.data + xs->at, err,
                             "column '%s' has more values than '%s'", spec->values, spec->column);
    }
    return TN_OK;
}

static tn_status take_slot(const taking *t, uint32_t i, tn_error *err)
{
    const tn_slot_spec *spec = &t->schema->spec[i];
    const tn_columns *columns = t->schema->columns;
    const tn_span *span = &t->span[t->head->column[columns->spec[i]]];
    if (spec->values != NULL) {
        return take_pairs(t, spec, span, &t->span[t->head->column[columns->values[i]]], err);
    }
    if (is_null(t, span)) {
        return TN_OK;
    }
    tn_bytes list = bytes_of(span);
    tn_bytes value;
    while (next_value(&list, spec->list, &value)) {
        tn_fault fault = tn_rows_token(t->rows, spec, value.data, value.size, 1);
        if (fault != TN_FAULT_NONE) {
            return fault_in(t, span, value, fault, err);
        }
    }
    return TN_OK;
}

/* A column that only the row reads; NULL: none, or null. */
static const tn_span *span_of(const taking *t, uint32_t name)
{
    if (name == TN_NOWHERE) {
        return NULL;
    }
    const tn_span *span = &t->span[t->head->column[name]];
    return is_null(t, span) ? NULL : span;
}

static tn_status take_row(const taking *t, tn_error *err)
{
    const tn_columns *columns = t->schema->columns;
    tn_fault fault = TN_FAULT_NONE;
    const tn_span *span = span_of(t, columns->label);
    if (columns->label != TN_NOWHERE) {
        static const tn_span nothing = {.text = ""};
        span = span != NULL ? span : &nothing;
        fault = tn_rows_label(t->rows, span->text, span->size);
        if (fault != TN_FAULT_NONE) {
            return fault_in(t, &t->span[t->head->column[columns->label]], bytes_of(span), fault,
                            err);
        }
    }
    span = span_of(t, columns->weight);
    if (span != NULL && (fault = tn_rows_weight(t->rows, span->text, span->size)) != 0) {
        return fault_in(t, span, bytes_of(span), fault, err);
    }
    span = span_of(t, columns->group);
    if (span != NULL) {
        tn_rows_group_text(t->rows, span->text, span->size);
    }
    span = span_of(t, columns->record_id);
    if (span != NULL && (fault = tn_rows_id(t->rows, span->text, span->size)) != 0) {
        return fault_in(t, span, bytes_of(span), fault, err);
    }
    for (uint32_t i = 0; i < t->schema->n_specs; i++) {
        TN_TRY(take_slot(t, i, err));
    }
    return TN_OK;
}

/* Fields that may be quoted. Those that had to be put together are in the scratch, in order. */
static tn_status split_quoted(const taking *t, tn_span *span, uint32_t *found, tn_error *err)
{
    uint32_t max = t->head->n_columns + 1;
    tn_text *scratch = tn_rows_scratch(t->rows);
    tn_text_clear(scratch);
    tn_split split = tn_split_of(t->line, t->schema, scratch);
    const char *bad = NULL;
    while (*found < max && bad == NULL && tn_split_next(&split, &span[*found], &bad)) {
        tn_span *s = &span[(*found)++];
        s->found = true;
        if (!s->quoted && s->size > 0 && bad == NULL) { /* in quotes it is data */
            bad = memchr(s->text, '\r', s->size);
        }
    }
    if (bad != NULL) {
        return tn_place_fail(t->place, t->line, bad, err,
                             *bad == '"'    ? "quote is not closed"
                             : *bad == '\r' ? "carriage return inside a line"
                                            : "text behind a closing quote");
    }
    size_t used = 0;
    for (uint32_t i = 0; i < *found && scratch->size > 0; i++) {
        if (span[i].text == NULL) {
            span[i].text = scratch->data + used;
            used += span[i].size;
        }
    }
    return tn_text_check(scratch, "a record", err);
}

static tn_status take_fields(taking *t, tn_error *err)
{
    uint32_t n = t->head->n_columns;
    uint32_t found = 0;
    tn_span *span = tn_rows_spans(t->rows, n + 1);
    if (span == NULL) {
        return tn_fail(err, TN_E_MEMORY, "no memory for the fields of a record");
    }
    if (t->schema->plain_fields) {
        found = tn_split_plain(t->line, t->schema->delimiter, span, n + 1);
    } else {
        TN_TRY(split_quoted(t, span, &found, err));
    }
    if (found > n) {
        return tn_place_fail(t->place, t->line, t->line.data + span[n].at, err,
                             "too many fields (expected %u)", n);
    }
    if (found < n && t->schema->data->short_rows == TN_ROWS_ERROR) {
        return tn_place_fail(t->place, t->line, t->line.data + t->line.size, err,
                             "too few fields (expected %u, found %u)", n, found);
    }
    for (uint32_t i = found; i < n; i++) {
        span[i] = (tn_span){.text = "", .at = (uint32_t)t->line.size};
    }
    t->span = span;
    return TN_OK;
}

static tn_status take_line(taking *t, tn_error *err)
{
    TN_TRY(take_fields(t, err));
    TN_TRY(take_row(t, err));
    const tn_slot_spec *spec = NULL;
    tn_fault fault = tn_rows_end(t->rows, &spec);
    return fault == TN_FAULT_NONE ? TN_OK : tn_place_rule(t->place, t->line, spec, fault, err);
}

/* Line breaks in quotes may be of two bytes; anywhere else a line has one '\r' at most. */
static tn_status clean(tn_bytes *line, const tn_schema *schema, const tn_place *place,
                       tn_error *err)
{
    if (schema->quote != TN_QUOTE_MULTILINE) {
        return tn_line_clean(line, place, err);
    }
    line->size -= line->size > 0 && line->data[line->size - 1] == '\r';
    const char *nul = line->size > 0 ? memchr(line->data, '\0', line->size) : NULL;
    return nul == NULL ? TN_OK
                       : tn_place_fail(place, *line, nul, err, "binary data in a text format");
}

bool tn_delimited_is_nothing(tn_bytes line, const tn_schema *schema)
{
    const char *comment = schema->data->comment;
    line.size -= line.size > 0 && line.data[line.size - 1] == '\r';
    return tn_line_is_blank(line) || (comment != NULL && line.data[0] == comment[0]);
}

tn_status tn_delimited_parse(tn_bytes record, const tn_schema *schema, const tn_place *place,
                             tn_rows *rows, tn_error *err)
{
    TN_ASSERT(place->head != NULL);
    if (schema->quick_fields && tn_delimited_quick(record, schema, place->head, rows)) {
        return TN_OK;
    }
    taking t = {
        .schema = schema, .place = place, .line = record, .rows = rows, .head = place->head};
    TN_TRY(clean(&t.line, schema, place, err));
    if (tn_delimited_is_nothing(t.line, schema)) {
        return TN_END;
    }
    TN_TRY(tn_rows_begin(rows, t.line.size, err));
    tn_status status = take_line(&t, err);
    if (status != TN_OK) {
        tn_rows_rollback(rows);
    }
    return status;
}
