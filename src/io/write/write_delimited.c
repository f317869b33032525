/* write_delimited.c - csv, tsv, Criteo's tsv and Avazu's csv: one field per column, quoted where it
 * must be. */
#include "io/write/write_kind.h"

#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <stdio.h>
#include <string.h>

enum { CRITEO_NUMBERS = 13, CRITEO_WORDS = 26, CRITEO_NAME_MAX = 8 };

/* Bytes after which a bare field would be cut short or read otherwise. */
static void plan_special(tn_writer *w)
{
    const tn_schema *s = w->schema;
    w->special['\n'] = true;
    w->special['\r'] = true;
    w->special[0] = true;
    w->special[(unsigned char)s->delimiter] = true;
    if (s->quote != TN_QUOTE_NONE) {
        w->special['"'] = true;
    }
    if (s->data->comment != NULL) {
        w->special[(unsigned char)s->data->comment[0]] = true;
    }
    if (s->data->trim) {
        w->special[' '] = true;
        w->special['\t'] = true;
    }
}

/* The column that reads `name` among those laid out, or one that holds nothing. */
static tn_write_column column_named(const tn_write_column *column, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(column[i].name, name) == 0) {
            return column[i];
        }
    }
    return (tn_write_column){WRITE_NOTHING, name, (uint32_t)strlen(name), NULL};
}

/* Puts the columns into the order of `names`; each that the schema reads must be among them. */
static tn_status order_columns(tn_writer *w, const char *const *names, uint32_t n, tn_error *err)
{
    const tn_write_column *have = w->column;
    uint32_t n_have = w->n_columns;
    w->column = TN_NEW_ARRAY(w->arena, tn_write_column, (size_t)n + 1);
    w->n_columns = n;
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) {
        w->column[i] = column_named(have, n_have, names[i]);
        found += w->column[i].source != WRITE_NOTHING;
    }
    for (uint32_t i = 0; found < n_have && i < n_have; i++) {
        if (column_named(w->column, n, have[i].name).source == WRITE_NOTHING) {
            return tn_fail(err, TN_E_CONFIG, "format '%s' has no column '%s' to write to",
                           w->kind->name, have[i].name);
        }
    }
    return TN_OK;
}

static bool is_special(const tn_writer *w, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (w->special[(unsigned char)text[i]]) {
            return true;
        }
    }
    return false;
}

/* Names that a header can say. */
static tn_status check_names(const tn_writer *w, tn_error *err)
{
    for (uint32_t i = 0; w->schema->header && i < w->n_columns; i++) {
        const tn_write_column *c = &w->column[i];
        bool quoted = is_special(w, c->name, c->name_size);
        if (strpbrk(c->name, "\r\n") != NULL || (quoted && w->schema->quote == TN_QUOTE_NONE)) {
            return tn_fail(err, TN_E_CONFIG,
                           "the name of column '%s' would read back otherwise in format '%s'",
                           c->name, w->kind->name);
        }
    }
    return TN_OK;
}

static tn_status plan_delimited(tn_writer *w, tn_error *err)
{
    TN_TRY(tn_write_plan_columns(w, err));
    plan_special(w);
    const tn_strs *columns = &w->schema->data->columns;
    if (columns->n > 0) {
        TN_TRY(order_columns(w, columns->item, columns->n, err));
    }
    return check_names(w, err);
}

static tn_status plan_criteo(tn_writer *w, tn_error *err)
{
    if (w->schema->header || w->schema->data->columns.n > 0) {
        return plan_delimited(w, err);
    }
    TN_TRY(tn_write_plan_columns(w, err));
    plan_special(w);
    uint32_t n = 0;
    const char **names = TN_NEW_ARRAY(w->arena, const char *, 1 + CRITEO_NUMBERS + CRITEO_WORDS);
    if (!w->schema->label->none) {
        names[n++] = w->schema->label->column;
    }
    for (uint32_t i = 0; i < CRITEO_NUMBERS + CRITEO_WORDS; i++) {
        char *name = TN_NEW_ARRAY(w->arena, char, CRITEO_NAME_MAX);
        bool number = i < CRITEO_NUMBERS;
        (void)snprintf(name, CRITEO_NAME_MAX, "%c%u", number ? 'I' : 'C',
                       number ? i + 1 : i + 1 - CRITEO_NUMBERS);
        names[n++] = name;
    }
    return order_columns(w, names, n, err);
}

/* The columns of the set, in its order; those that nothing reads stay empty. */
static tn_status plan_avazu(tn_writer *w, tn_error *err)
{
    static const char *const names[] = {
        "id",         "click",        "hour",         "C1",
        "banner_pos", "site_id",      "site_domain",  "site_category",
        "app_id",     "app_domain",   "app_category", "device_id",
        "device_ip",  "device_model", "device_type",  "device_conn_type",
        "C14",        "C15",          "C16",          "C17",
        "C18",        "C19",          "C20",          "C21"};
    enum { N_NAMES = sizeof names / sizeof *names, CLICK = 1 };
    if (!w->schema->header || w->schema->data->columns.n > 0) {
        return plan_delimited(w, err);
    }
    TN_TRY(tn_write_plan_columns(w, err));
    plan_special(w);
    const char *order[N_NAMES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < N_NAMES; i++) {
        if (i != CLICK || !w->schema->label->none) {
            order[n++] = i == CLICK ? w->schema->label->column : names[i];
        }
    }
    TN_TRY(order_columns(w, order, n, err));
    return check_names(w, err);
}

static void add_quoted(tn_text *out, const char *text, size_t size)
{
    tn_text_addc(out, '"');
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"') {
            tn_text_addc(out, '"');
        }
        tn_text_addc(out, text[i]);
    }
    tn_text_addc(out, '"');
}

static void write_header(const tn_writer *w, tn_text *out)
{
    if (!w->schema->header) {
        return;
    }
    for (uint32_t i = 0; i < w->n_columns; i++) {
        if (i > 0) {
            tn_text_addc(out, w->schema->delimiter);
        }
        const tn_write_column *c = &w->column[i];
        if (is_special(w, c->name, c->name_size)) {
            add_quoted(out, c->name, c->name_size);
        } else {
            tn_text_add(out, c->name, c->name_size);
        }
    }
    tn_text_addc(out, '\n');
}

static bool is_null_word(const tn_writer *w, const char *text, size_t size)
{
    const tn_strs *words = &w->schema->data->null;
    uint32_t i = 0;
    while (i < words->n &&
           (strlen(words->item[i]) != size || memcmp(words->item[i], text, size) != 0)) {
        i++;
    }
    return i < words->n;
}

/* The field that was written as it is from `at` on: put into quotes when it has to be. */
static tn_status finish_field(const tn_writer *w, const tn_write_column *column, size_t at,
                              tn_text *out, tn_error *err)
{
    size_t size = out->size - at;
    const char *text = size > 0 ? out->data + at : "";
    if (out->failed || (!is_special(w, text, size) && !is_null_word(w, text, size))) {
        return TN_OK;
    }
    uint32_t quote = w->schema->quote;
    bool breaks = memchr(text, '\n', size) != NULL || memchr(text, '\r', size) != NULL;
    bool nul = memchr(text, 0, size) != NULL;
    if (quote == TN_QUOTE_NONE || nul || (breaks && quote != TN_QUOTE_MULTILINE)) {
        return tn_fail(err, TN_E_DATA,
                       "the value '%.*s' of column '%s' would read back otherwise in format '%s'",
                       (int)(size < 80 ? size : 80), text, column->name, w->kind->name);
    }
    tn_text bare = {0};
    tn_text_add(&bare, text, size);
    TN_TRY(tn_text_check(&bare, "a field", err));
    out->size = at;
    add_quoted(out, bare.data, size);
    tn_text_done(&bare);
    return TN_OK;
}

static tn_status no_list(const tn_writer *w, const tn_slot_spec *spec, tn_error *err)
{
    return tn_fail(err, TN_E_DATA,
                   "slot '%s' has several values here and no 'list', the byte between them in "
                   "format '%s'",
                   spec->name, w->kind->name);
}

static tn_status write_item(const tn_writer *w, const tn_slot_spec *spec, const tn_bytes *token,
                            tn_text *out, tn_error *err)
{
    if (spec->list != 0 &&
        (token->size == 0 || memchr(token->data, spec->list, token->size) != NULL ||
         is_null_word(w, token->data, token->size))) {
        return tn_fail(err, TN_E_DATA,
                       "the value '%.*s' of slot '%s' is empty, means no value (data.null) or "
                       "holds '%c', which separates values in format '%s'",
                       (int)(token->size < 80 ? token->size : 80), token->data, spec->name,
                       spec->list, w->kind->name);
    }
    tn_text_add(out, token->data, token->size);
    return TN_OK;
}

/* All values of a slot, or all their x_j, with the list's byte between them; *n counts them. */
static tn_status write_slot(const tn_writer *w, const tn_write_column *column, tn_write_walk *walk,
                            tn_text *out, uint32_t *n, tn_error *err)
{
    const tn_slot_spec *spec = column->spec;
    uint32_t i = tn_write_first(walk, spec->slot);
    for (; i < walk->to; i = tn_write_next(walk, spec->slot, i)) {
        char buffer[TN_WRITE_TOKEN_MAX];
        tn_bytes token = {0};
        if (!tn_write_token(w, walk->rows, i, buffer, &token)) {
            continue;
        }
        if (*n > 0 && spec->list == 0) {
            return no_list(w, spec, err);
        }
        if ((*n)++ > 0) {
            tn_text_addc(out, spec->list);
        }
        if (column->source == WRITE_VALUES) {
            tn_write_float(out, walk->rows->entry[i].value);
            continue;
        }
        TN_TRY(tn_write_check_x(spec, walk->rows->entry[i].value, err));
        TN_TRY(write_item(w, spec, &token, out, err));
    }
    return TN_OK;
}

static tn_status write_column(const tn_writer *w, const tn_write_column *column, uint32_t row,
                              tn_write_walk *walk, tn_text *out, tn_error *err)
{
    const tn_rows *rows = walk->rows;
    const tn_parsed_row *r = &rows->row[row];
    size_t at = out->size;
    tn_bytes token = {0};
    uint32_t n = 0;
    switch (column->source) {
    case WRITE_LABEL:
        tn_write_float(out, r->label);
        return TN_OK;
    case WRITE_WEIGHT:
        tn_write_float(out, r->weight);
        return TN_OK;
    case WRITE_GROUP:
        if (r->group != TN_NO_GROUP) {
            tn_text_add_u64(out, r->group);
        }
        return TN_OK;
    case WRITE_NOTHING:
        return TN_OK;
    case WRITE_ID:
        if (r->id.size == 0) {
            return TN_OK;
        }
        tn_text_add(out, rows->text + r->id.at, r->id.size);
        break;
    case WRITE_NUMERIC:
        for (; n < tn_spec_cols(column->spec); n++) {
            if (!tn_write_numeric(rows, row, column->spec->numeric + n, &token)) {
                return TN_OK;
            }
            tn_text_add(out, &column->spec->list, n > 0);
            tn_text_add(out, token.data, token.size);
        }
        break;
    case WRITE_SLOT:
    case WRITE_VALUES:
        TN_TRY(write_slot(w, column, walk, out, &n, err));
        if (n == 0) {
            return TN_OK;
        }
        break;
    }
    return finish_field(w, column, at, out, err);
}

/* Readers skip a line of blanks. */
static bool is_blank(const tn_text *out, size_t begin)
{
    for (size_t i = begin; i < out->size; i++) {
        if (out->data[i] != ' ' && out->data[i] != '\t') {
            return false;
        }
    }
    return !out->failed;
}

static tn_status write_delimited(const tn_writer *w, const tn_rows *rows, uint32_t row,
                                 tn_text *out, tn_error *err)
{
    TN_TRY(tn_write_check_row(w, &rows->row[row], err));
    size_t begin = out->size;
    tn_write_walk walk = tn_write_walk_row(rows, row);
    for (uint32_t i = 0; i < w->n_columns; i++) {
        if (i > 0) {
            tn_text_addc(out, w->schema->delimiter);
        }
        TN_TRY(write_column(w, &w->column[i], row, &walk, out, err));
    }
    if (is_blank(out, begin)) {
        return tn_fail(err, TN_E_DATA, "a row without any value would read back as a blank line");
    }
    tn_text_addc(out, '\n');
    return TN_OK;
}

extern const tn_write_kind tn_write_kind_csv;
const tn_write_kind tn_write_kind_csv = {
    .name = "csv", .plan = plan_delimited, .head = write_header, .row = write_delimited};
extern const tn_write_kind tn_write_kind_tsv;
const tn_write_kind tn_write_kind_tsv = {
    .name = "tsv", .plan = plan_delimited, .head = write_header, .row = write_delimited};
extern const tn_write_kind tn_write_kind_criteo;
const tn_write_kind tn_write_kind_criteo = {
    .name = "criteo", .plan = plan_criteo, .head = write_header, .row = write_delimited};
extern const tn_write_kind tn_write_kind_avazu;
const tn_write_kind tn_write_kind_avazu = {
    .name = "avazu", .plan = plan_avazu, .head = write_header, .row = write_delimited};
