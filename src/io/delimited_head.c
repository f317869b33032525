/* delimited_head.c - where the columns of a delimited file stand: by its header, or by
 * data.columns. */
#include "io/columns.h"
#include "io/delimited.h"
#include "io/line.h"

#include <string.h>

bool tn_head_set(tn_head *head, const tn_schema *schema, const char *name, size_t size,
                 uint32_t place)
{
    uint32_t i = tn_columns_find(schema->columns, name, size);
    if (i == TN_NOWHERE) {
        return true;
    }
    bool first = head->column[i] == TN_NOWHERE;
    head->column[i] = place;
    return first;
}

static uint32_t in_row(const tn_head *head, const tn_schema *schema)
{
    uint32_t first = head->column[schema->columns->spec[0]];
    for (uint32_t i = 1; i < schema->n_specs; i++) {
        if (head->column[schema->columns->spec[i]] != first + i) {
            return TN_NOWHERE;
        }
    }
    return first;
}

tn_status tn_head_check(tn_head *head, const tn_schema *schema, const tn_place *place,
                        tn_bytes line, tn_error *err)
{
    for (uint32_t i = 0; i < schema->columns->n; i++) {
        if (head->column[i] == TN_NOWHERE) {
            return tn_place_fail(place, line, NULL, err, "there is no column '%s'",
                                 schema->columns->name[i]);
        }
    }
    head->in_row = in_row(head, schema);
    return TN_OK;
}

void tn_head_clear(tn_head *head, const tn_schema *schema)
{
    head->n_columns = 0;
    for (uint32_t i = 0; i < schema->columns->n; i++) {
        head->column[i] = TN_NOWHERE;
    }
}

tn_split tn_split_of(tn_bytes line, const tn_schema *schema, tn_text *scratch)
{
    return (tn_split){.line = line,
                      .at = line.data,
                      .delimiter = schema->delimiter,
                      .quotes = schema->quote != TN_QUOTE_NONE,
                      .trim = schema->data->trim,
                      .scratch = scratch};
}

static tn_status head_from_line(tn_bytes line, const tn_schema *schema, const tn_place *place,
                                tn_head *head, tn_error *err)
{
    TN_TRY(tn_line_clean(&line, place, err));
    tn_text scratch = {0};
    tn_split split = tn_split_of(line, schema, &scratch);
    tn_span span;
    const char *bad = NULL;
    tn_status status = TN_OK;
    while (status == TN_OK && tn_split_next(&split, &span, &bad)) {
        const char *name = span.text != NULL ? span.text : tn_text_str(&scratch);
        if (bad != NULL) {
            status = tn_place_fail(place, line, bad, err, "quote at fault in the header");
        } else if (head->n_columns == TN_COLUMNS_MAX) {
            status = tn_place_fail(place, line, NULL, err, "more than %d columns", TN_COLUMNS_MAX);
        } else if (!tn_head_set(head, schema, name, span.size, head->n_columns++)) {
            status = tn_place_fail(place, line, line.data + span.at, err,
                                   "column '%.*s' stands twice", (int)span.size, name);
        }
        tn_text_clear(&scratch);
    }
    tn_text_done(&scratch);
    return status == TN_OK ? tn_head_check(head, schema, place, line, err) : status;
}

/* The names in the first line that is neither blank nor a comment. */
static tn_status head_from_lines(tn_bytes *window, bool last, const tn_schema *schema,
                                 const tn_place *place, tn_head *head, tn_error *err)
{
    tn_place at = *place;
    tn_bytes rest = *window;
    tn_bytes line = rest;
    do {
        tn_error what = {0};
        tn_status status = tn_delimited_cut(&rest, last, schema, &line, &what);
        if (status != TN_OK) {
            return status == TN_END ? TN_END : tn_place_fail(&at, rest, NULL, err, "%s", what.text);
        }
        at.line++;
    } while (tn_delimited_is_nothing(line, schema));
    at.line--;
    *window = rest;
    return head_from_line(line, schema, &at, head, err);
}

tn_status tn_delimited_head(tn_bytes *window, bool last, const tn_schema *schema,
                            const tn_place *place, tn_head *head, tn_error *err)
{
    static const tn_bytes no_line = {"", 0, false};
    tn_head_clear(head, schema);
    if (schema->header) {
        return head_from_lines(window, last, schema, place, head, err);
    }
    const tn_strs *columns = &schema->data->columns;
    if (columns->n == 0) {
        return tn_fail(err, TN_E_DATA,
                       "'%s' has no header and data.columns is not set\nhint: 'header: true' "
                       "takes the names from the first line",
                       place->source);
    }
    for (uint32_t i = 0; i < columns->n; i++) {
        if (!tn_head_set(head, schema, columns->item[i], strlen(columns->item[i]), i)) {
            return tn_fail(err, TN_E_DATA, "data.columns names '%s' twice", columns->item[i]);
        }
    }
    head->n_columns = columns->n;
    return tn_head_check(head, schema, place, no_line, err);
}
