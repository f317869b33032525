/* delimited_head.c - where the columns of a delimited file stand: by its header, or by
 * data.columns. */
#include "io/format/delimited.h"
#include "io/format/line.h"
#include "io/schema/columns.h"

#include <stdio.h>
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

/* Text of others goes to a terminal. */
static void list_name(tn_listing *l, const char *name, size_t size)
{
    enum { LISTED_MAX = 300 };
    char shown[sizeof l->near];
    (void)snprintf(shown, sizeof shown, "%.*s",
                   (int)(size < sizeof shown ? size : sizeof shown - 1), name);
    for (char *c = shown; *c != '\0'; c++) {
        *c = (char)((unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c);
    }
    if (l->names.size < LISTED_MAX) {
        tn_text_addf(&l->names, "%s%s", l->n > 0 ? ", " : "", shown);
    } else if (tn_text_str(&l->names)[l->names.size - 1] != '.') {
        tn_text_adds(&l->names, ", ..");
    }
    l->n++;
    const char *const one = shown;
    if (l->wanted != NULL && l->near[0] == '\0' && tn_nearest(l->wanted, &one, 1) != NULL) {
        memcpy(l->near, shown, sizeof shown);
    }
}

void tn_listing_add(tn_listing *listing, tn_bytes line, const tn_schema *schema)
{
    const tn_strs *columns = &schema->data->columns;
    if (!schema->header) {
        for (uint32_t i = 0; i < columns->n; i++) {
            list_name(listing, columns->item[i], strlen(columns->item[i]));
        }
        return;
    }
    tn_text scratch = {0};
    tn_split split = tn_split_of(line, schema, &scratch);
    tn_span span;
    const char *bad = NULL;
    while (tn_split_next(&split, &span, &bad) && bad == NULL) {
        list_name(listing, span.text != NULL ? span.text : tn_text_str(&scratch), span.size);
        tn_text_clear(&scratch);
    }
    tn_text_done(&scratch);
}

/* Names the option that asks for the column, and the columns that there are. */
static tn_status no_column(const tn_schema *schema, uint32_t i, const tn_place *place,
                           tn_bytes line, tn_error *err)
{
    const tn_columns *c = schema->columns;
    tn_listing there = {.wanted = c->name[i]};
    tn_error fault = {0};
    tn_listing_add(&there, line, schema);
    tn_status status = tn_place_fail(place, line, NULL, &fault,
                                     "there is no column '%s', which %s names%s%s%s", c->name[i],
                                     i == c->label       ? "data.label"
                                     : i == c->weight    ? "data.weight"
                                     : i == c->group     ? "data.group"
                                     : i == c->record_id ? "data.record_id"
                                                         : "'slots'",
                                     there.near[0] != '\0' ? " (did you mean '" : "", there.near,
                                     there.near[0] != '\0' ? "'?)" : "");
    if (there.n == 1) {
        (void)tn_fail(err, status,
                      "%s\nhint: the line is one column; does data.format or "
                      "data.delimiter say another thing than the file?",
                      fault.text);
    } else {
        (void)tn_fail(err, status, "%s\nhint: the columns are %s", fault.text,
                      tn_text_str(&there.names));
    }
    tn_text_done(&there.names);
    return status;
}

tn_status tn_head_check(tn_head *head, const tn_schema *schema, const tn_place *place,
                        tn_bytes line, tn_error *err)
{
    for (uint32_t i = 0; i < schema->columns->n; i++) {
        if (head->column[i] == TN_NOWHERE) {
            return no_column(schema, i, place, line, err);
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
