/* format_delimited.c - csv, tsv, criteo and avazu: records, fields and names of columns.
 *
 * Places of columns are those of the header, or of data.columns if there is none. Criteo's are
 * label I1..I13 C1..C26 by tabs, 39 fields without the label, unless either names them.
 */
#include "base/core/number.h"
#include "config/diag.h"
#include "io/format/delimited.h"
#include "io/format/format.h"
#include "io/schema/dataopts.h"

#include <stdio.h>
#include <string.h>

/* Returns the quote that ends the field which begins at `from`, passing over doubled ones; NULL: it
 * is not here. */
static const char *closing_quote(const char *from, const char *end)
{
    const char *p = from;
    while (p < end && (*p != '"' || (p + 1 < end && p[1] == '"'))) {
        p += *p == '"' ? 2 : 1;
    }
    return p < end ? p : NULL;
}

/* Returns the end of the line that begins at `from`, passing over line breaks in quotes; NULL: it
 * is not here. */
static const char *end_of_record(const char *from, const char *end, char delimiter, bool trim)
{
    bool field_begins = true;
    for (const char *p = from; p < end; p++) {
        if (*p == '\n') {
            return p;
        }
        if (field_begins && *p == '"') {
            p = closing_quote(p + 1, end);
            if (p == NULL) {
                return NULL;
            }
        }
        field_begins = *p == delimiter || (trim && field_begins && tn_is_blank(*p));
    }
    return NULL;
}

static tn_status delimited_cut(tn_bytes *window, bool last, const tn_schema *schema,
                               tn_bytes *record, tn_error *err)
{
    if (schema->quote != TN_QUOTE_MULTILINE) {
        return tn_line_cut(window, last, schema, record, err);
    }
    const char *end = end_of_record(window->data, window->data + window->size, schema->delimiter,
                                    schema->data->trim);
    return tn_line_take(window, end, last, schema, record, err);
}

static void trim_span(tn_span *span)
{
    while (span->size > 0 && tn_is_blank(span->text[0])) {
        span->text++;
        span->at++;
        span->size--;
    }
    while (span->size > 0 && tn_is_blank(span->text[span->size - 1])) {
        span->size--;
    }
}

/* Takes a field in quotes, from its first quote. Returns the position after its last one. */
static const char *take_quoted(tn_split *split, const char *p, tn_span *out, const char **bad)
{
    const char *end = split->line.data + split->line.size;
    const char *from = ++p;
    size_t begin = split->scratch->size;
    bool pieces = false;
    for (;;) {
        const char *quote = p < end ? memchr(p, '"', (size_t)(end - p)) : NULL;
        if (quote == NULL) {
            *bad = from - 1;
            return end;
        }
        bool doubled = quote + 1 < end && quote[1] == '"';
        if (doubled || pieces) {
            tn_text_add(split->scratch, p, (size_t)(quote - p) + doubled);
            pieces = true;
        }
        p = quote + 1 + doubled;
        if (!doubled) {
            *out = (tn_span){.text = from, .size = (uint32_t)(quote - from), .quoted = true};
            break;
        }
    }
    if (pieces) { /* an offset, as the text may move until the line is split */
        out->text = NULL;
        out->size = (uint32_t)(split->scratch->size - begin);
    }
    out->at = (uint32_t)(from - split->line.data);
    return p;
}

bool tn_split_next(tn_split *split, tn_span *out, const char **bad)
{
    const char *end = split->line.data + split->line.size;
    const char *p = split->at;
    if (p == NULL) {
        return false;
    }
    const char *first = p;
    while (split->trim && split->quotes && first < end && tn_is_blank(*first)) {
        first++;
    }
    if (split->quotes && first < end && *first == '"') {
        p = take_quoted(split, first, out, bad);
        while (split->trim && p < end && tn_is_blank(*p)) {
            p++;
        }
        if (p < end && *p != split->delimiter && *bad == NULL) {
            *bad = p;
        }
    } else {
        const char *stop = p < end ? memchr(p, split->delimiter, (size_t)(end - p)) : NULL;
        stop = stop != NULL ? stop : end;
        *out = (tn_span){
            .text = p, .size = (uint32_t)(stop - p), .at = (uint32_t)(p - split->line.data)};
        if (split->trim) {
            trim_span(out);
        }
        p = stop;
    }
    split->at = p < end ? p + 1 : NULL;
    return true;
}

/* Sets the place of one column; a name that nothing reads is passed over. False: it has one. */
static bool set_column(tn_head *head, const tn_schema *schema, const char *name, size_t size,
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
    tn_make_printable(shown, "");
    if (l->names.size < LISTED_MAX) {
        tn_text_addf(&l->names, "%s%s", l->n > 0 ? ", " : "", shown);
    } else if (tn_text_str(&l->names)[l->names.size - 1] != '.') {
        tn_text_adds(&l->names, ", ..");
    }
    double number;
    l->n++;
    l->n_numbers += tn_read_f64(name, size, &number) == TN_NUM_OK;
    const char *const one = shown;
    if (l->wanted != NULL && l->near[0] == '\0' && tn_nearest(l->wanted, &one, 1) != NULL) {
        memcpy(l->near, shown, sizeof shown);
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
    tn_span span = {.text = NULL}; /* a quote at fault leaves it as it is */
    const char *bad = NULL;
    while (tn_split_next(&split, &span, &bad) && bad == NULL) {
        list_name(listing, span.text != NULL ? span.text : tn_text_str(&scratch), span.size);
        tn_text_clear(&scratch);
    }
    tn_text_done(&scratch);
}

/* Names the option that asks for the column, and the columns that there are. */
static tn_status no_column(const tn_schema *schema, uint32_t i, const tn_record_location *place,
                           tn_bytes line, tn_error *err)
{
    const tn_columns *c = schema->columns;
    tn_listing there = {.wanted = c->name[i]};
    tn_error fault = {0};
    tn_listing_add(&there, line, schema);
    tn_status status = tn_record_location_fail(
        place, line, NULL, &fault, "there is no column '%s', which %s names%s%s%s", c->name[i],
        i == c->label       ? "data.label"
        : i == c->weight    ? "data.weight"
        : i == c->group     ? "data.group"
        : i == c->record_id ? "data.record_id"
                            : "'slots'",
        there.near[0] != '\0' ? " (did you mean '" : "", there.near,
        there.near[0] != '\0' ? "'?)" : "");
    if (there.n == 0) { /* neither a header nor data.columns: criteo */
        (void)tn_fail(err, status,
                      "%s\nhint: beside the label the columns are I1 .. I13 and C1 .. C26",
                      fault.text);
    } else if (there.n_numbers > 0 && there.n > 1) {
        (void)tn_fail(
            err, status,
            "%s\nhint: the first line looks like data: 'header: false' and 'columns: [..]' "
            "name its fields\nhint: as a header its columns are %s",
            fault.text, tn_text_str(&there.names));
    } else if (there.n == 1) {
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

/* Completes a head. Fails when a column that something reads has no place. */
static tn_status check_head(tn_head *head, const tn_schema *schema, const tn_record_location *place,
                            tn_bytes line, tn_error *err)
{
    for (uint32_t i = 0; i < schema->columns->n; i++) {
        if (head->column[i] == TN_NOWHERE && tn_schema_may_lack(schema, i)) {
            head->column[i] = head->n_columns++;
            head->n_absent++;
        } else if (head->column[i] == TN_NOWHERE) {
            return no_column(schema, i, place, line, err);
        }
    }
    head->in_row = in_row(head, schema);
    return TN_OK;
}

/* No column has a place. */
static void clear_head(tn_head *head, const tn_schema *schema)
{
    head->n_columns = 0;
    head->n_absent = 0;
    for (uint32_t i = 0; i < schema->columns->n; i++) {
        head->column[i] = TN_NOWHERE;
    }
}

static tn_status head_from_line(tn_bytes line, const tn_schema *schema,
                                const tn_record_location *place, tn_head *head, tn_error *err)
{
    TN_TRY(tn_line_clean(&line, place, err));
    tn_text scratch = {0};
    tn_split split = tn_split_of(line, schema, &scratch);
    tn_span span = {.text = NULL}; /* a quote at fault leaves it as it is */
    const char *bad = NULL;
    tn_status status = TN_OK;
    while (status == TN_OK && tn_split_next(&split, &span, &bad)) {
        const char *name = span.text != NULL ? span.text : tn_text_str(&scratch);
        if (bad != NULL) {
            status = tn_record_location_fail(place, line, bad, err, "quote at fault in the header");
        } else if (head->n_columns == TN_COLUMNS_MAX) {
            status = tn_record_location_fail(place, line, NULL, err, "more than %d columns",
                                             TN_COLUMNS_MAX);
        } else if (!set_column(head, schema, name, span.size, head->n_columns++)) {
            status = tn_record_location_fail(place, line, line.data + span.at, err,
                                             "column '%.*s' stands twice", (int)span.size, name);
        }
        tn_text_clear(&scratch);
    }
    tn_text_done(&scratch);
    return status == TN_OK ? check_head(head, schema, place, line, err) : status;
}

/* The names in the first line that is neither blank nor a comment. */
static tn_status head_from_lines(tn_bytes *window, bool last, const tn_schema *schema,
                                 const tn_record_location *place, tn_head *head, tn_error *err)
{
    tn_record_location at = *place;
    tn_bytes rest = *window;
    tn_bytes line = rest;
    do {
        tn_error what = {0};
        tn_status status = delimited_cut(&rest, last, schema, &line, &what);
        if (status != TN_OK) {
            return status == TN_END
                       ? TN_END
                       : tn_record_location_fail(&at, rest, NULL, err, "%s", what.text);
        }
        at.line++;
    } while (tn_delimited_is_nothing(line, schema));
    at.line--;
    *window = rest;
    return head_from_line(line, schema, &at, head, err);
}

static tn_status delimited_head(tn_bytes *window, bool last, const tn_schema *schema,
                                const tn_record_location *place, tn_head *head, tn_error *err)
{
    static const tn_bytes no_line = {"", 0, false};
    clear_head(head, schema);
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
        if (!set_column(head, schema, columns->item[i], strlen(columns->item[i]), i)) {
            return tn_fail(err, TN_E_DATA, "data.columns names '%s' twice", columns->item[i]);
        }
    }
    head->n_columns = columns->n;
    return check_head(head, schema, place, no_line, err);
}

enum { CRITEO_INTEGERS = 13, CRITEO_CATEGORIES = 26 };

static const char criteo_preset[] = "data:\n"
                                    "  label: label\n"
                                    "slots:\n"
                                    "  - {name: \"I{1..13}\", type: int, as: key, "
                                    "transform: ln2_bucket}\n"
                                    "  - {name: \"C{1..26}\", type: hex}\n";

/* The hour is YYMMDDHH. Categories are hashes of eight hex digits. */
static const char avazu_preset[] =
    "data:\n"
    "  label: click\n"
    "  record_id: id\n"
    "slots:\n"
    "  - {name: hour, type: int, transform: hour}\n"
    "  - {name: weekday, column: hour, type: int, transform: weekday}\n"
    "  - {name: weekend, column: hour, type: int, transform: weekend}\n"
    "  - {name: C1, type: int}\n"
    "  - {name: banner_pos, type: int}\n"
    "  - {name: site_id, type: hex}\n"
    "  - {name: site_domain, type: hex}\n"
    "  - {name: site_category, type: hex}\n"
    "  - {name: app_id, type: hex}\n"
    "  - {name: app_domain, type: hex}\n"
    "  - {name: app_category, type: hex}\n"
    "  - {name: device_id, type: hex}\n"
    "  - {name: device_ip, type: hex}\n"
    "  - {name: device_model, type: hex}\n"
    "  - {name: device_type, type: int}\n"
    "  - {name: device_conn_type, type: int}\n"
    "  - {name: \"C{14..21}\", type: int}\n";

static uint32_t set_numbered(tn_head *head, const tn_schema *schema, char letter, int n,
                             uint32_t column)
{
    for (int i = 1; i <= n; i++) {
        char name[16];
        int size = snprintf(name, sizeof name, "%c%d", letter, i);
        (void)set_column(head, schema, name, (size_t)size, column++);
    }
    return column;
}

static tn_status criteo_head(tn_bytes *window, bool last, const tn_schema *schema,
                             const tn_record_location *place, tn_head *head, tn_error *err)
{
    static const tn_bytes no_line = {"", 0, false};
    const char *label = schema->label->column;
    if (schema->header || schema->data->columns.n > 0) {
        return delimited_head(window, last, schema, place, head, err);
    }
    clear_head(head, schema);
    uint32_t column = 0;
    if (label != NULL) {
        (void)set_column(head, schema, label, strlen(label), column++);
    }
    column = set_numbered(head, schema, 'I', CRITEO_INTEGERS, column);
    head->n_columns = set_numbered(head, schema, 'C', CRITEO_CATEGORIES, column);
    return check_head(head, schema, place, no_line, err);
}

static const char *const data_options[] = {"delimiter", "header",     "columns",   "quote",
                                           "trim",      "null",       "list",      "comment",
                                           "group",     "short_rows", "record_id", NULL};

#define DELIMITED_FORMAT(name_, head_, preset_, help_)                                             \
    {                                                                                              \
        .name = (name_), .help = (help_), .preset = (preset_), .data_options = data_options,       \
        .cut = delimited_cut, .resync = tn_line_resync, .head = (head_),                           \
        .parse = tn_delimited_parse                                                                \
    }

extern const tn_format tn_format_csv, tn_format_tsv, tn_format_criteo, tn_format_avazu;
const tn_format tn_format_csv = DELIMITED_FORMAT(
    "csv", delimited_head, NULL, "comma-separated, with a header that names the columns");
const tn_format tn_format_tsv = DELIMITED_FORMAT(
    "tsv", delimited_head, NULL, "tab-separated; data.columns or a header name the columns");
const tn_format tn_format_criteo = DELIMITED_FORMAT(
    "criteo", criteo_head, criteo_preset, "tab-separated: label, 13 integers, 26 hex categories");
const tn_format tn_format_avazu = DELIMITED_FORMAT(
    "avazu", delimited_head, avazu_preset,
    "comma-separated, with a header: click, hour as YYMMDDHH, 9 hex and 12 integer categories");
