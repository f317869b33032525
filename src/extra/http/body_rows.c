/* body_rows.c - values of a body are put together to records, which the readers of training parse.
 */
#include "extra/http/body_rows.h"

#include "base/core/alloc.h"
#include "io/rows/rows.h"
#include "io/schema/schema.h"

#include <string.h>

enum { COLUMNS_MAX = 4096 };

/* ---- the members of a body ---- */

/* The place of a member that is known; NULL: it is passed over. */
static tn_json_span *place_of(tn_json_body *b, tn_bytes key)
{
    const struct {
        const char *name;
        tn_json_span *place;
    } known[] = {
        {"signature_name", &b->signature_name},
        {"instances", &b->instances},
        {"inputs", &b->inputs},
        {"outputs", &b->outputs},
        {"examples", &b->examples},
        {"context", &b->context},
        {"id", &b->id},
        {"parameters", &b->parameters},
        {"dataframe_split", &b->dataframe_split},
        {"dataframe_records", &b->dataframe_records},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strlen(known[i].name) == key.size && memcmp(known[i].name, key.data, key.size) == 0) {
            return known[i].place;
        }
    }
    return NULL;
}

tn_status tn_json_body_read(tn_json_body *out, tn_bytes body, tn_error *err)
{
    tn_json_cursor c = tn_json_cursor_of(body.data, body.size);
    tn_json_span other;
    tn_bytes key;
    *out = (tn_json_body){0};
    bool more = tn_json_cursor_enter(&c, '{');
    while (more && tn_json_cursor_member(&c, &key)) {
        tn_json_span *place = place_of(out, key);
        if (place != NULL && place->data != NULL) {
            return tn_fail(err, TN_E_DATA, "the body has two members '%.*s'", (int)key.size,
                           key.data);
        }
        more = tn_json_cursor_value(&c, place != NULL ? place : &other);
    }
    return tn_json_cursor_check(&c, "the body", err);
}

/* ---- records ---- */

bool tn_json_has_field(const tn_schema *schema, tn_bytes record)
{
    tn_json_cursor c = tn_json_cursor_of(record.data, record.size);
    tn_json_span value;
    tn_bytes key;
    bool empty = true;
    bool more = tn_json_cursor_enter(&c, '{');
    while (more && tn_json_cursor_member(&c, &key)) {
        if (tn_json_cursor_peek(&c) == '{' || memchr(key.data, '\\', key.size) != NULL ||
            tn_columns_find(schema->columns, key.data, key.size) != TN_NOWHERE) {
            return true;
        }
        empty = false;
        more = tn_json_cursor_value(&c, &value);
    }
    return empty;
}

tn_status tn_row_sink_take(tn_row_sink *to, tn_bytes record, tn_error *err)
{
    const tn_record_location place = {
        .source = to->source, .line = to->rows->n + UINT64_C(1), .head = to->head};
    if (to->rows->n == to->rows_max) {
        return tn_fail(err, TN_E_LIMIT, "more than %u rows in a request", to->rows_max);
    }
    const tn_status status = to->format->parse(record, to->schema, &place, to->rows, err);
    if (status == TN_OK && to->named && !tn_json_has_field(to->schema, record)) {
        return tn_fail(err, TN_E_DATA, "%s:%u: no member is a field of the model", to->source,
                       to->rows->n);
    }
    return status == TN_END ? TN_OK : status;
}

static tn_bytes bytes_of(const tn_text *text)
{
    return (tn_bytes){tn_text_str(text), text->size, false};
}

/* Parses one object of a body as a record. */
static tn_status take_object(tn_row_sink *to, const tn_json_span *object, tn_error *err)
{
    if (*object->data != '{') {
        return tn_fail(err, TN_E_DATA, "%s:%u: expected an object with the fields of a row",
                       to->source, to->rows->n + 1);
    }
    if (!object->odd) {
        return tn_row_sink_take(to, (tn_bytes){object->data, object->size, false}, err);
    }
    tn_text_clear(to->record);
    TN_TRY(tn_json_flatten(object, to->record, err));
    return tn_row_sink_take(to, bytes_of(to->record), err);
}

tn_status tn_rows_of_objects(tn_row_sink *to, const tn_json_span *list, tn_error *err)
{
    tn_json_cursor c = tn_json_cursor_of(list->data, list->size);
    tn_json_span object;
    if (tn_json_cursor_peek(&c) == '{') {
        return take_object(to, list, err);
    }
    bool more = tn_json_cursor_enter(&c, '[');
    while (more && tn_json_cursor_item(&c)) {
        more = tn_json_cursor_value(&c, &object);
        if (more) {
            TN_TRY(take_object(to, &object, err));
        }
    }
    return tn_json_cursor_check(&c, to->source, err);
}

tn_status tn_rows_of_lines(tn_row_sink *to, tn_bytes body, tn_error *err)
{
    const tn_record_location place = {.source = to->source, .line = 1, .head = to->head};
    tn_bytes record;
    if (to->format->head != NULL && body.size > 0) {
        const tn_status status = to->format->head(&body, true, to->schema, &place, to->head, err);
        TN_TRY(status == TN_END ? TN_OK : status);
    }
    while (body.size > 0) {
        const tn_status status = to->format->cut(&body, true, to->schema, &record, err);
        TN_TRY(status == TN_END ? TN_OK : status);
        TN_TRY(tn_row_sink_take(to, record, err));
    }
    return TN_OK;
}

/* ---- columns ---- */

/* A column of a body: its name as it is written, and where its next value is. */
typedef struct body_column {
    tn_bytes key;
    tn_json_cursor values;
} body_column;

typedef struct body_columns {
    uint32_t n, capacity;
    body_column *column; /* owned */
} body_columns;

static tn_status add_column(body_columns *all, tn_bytes key, tn_json_cursor values, tn_error *err)
{
    if (all->n == COLUMNS_MAX) {
        return tn_fail(err, TN_E_LIMIT, "more than %d columns in a request", COLUMNS_MAX);
    }
    if (all->n == all->capacity) {
        const uint32_t more = all->capacity == 0 ? 32 : 2 * all->capacity;
        TN_TRY(TN_GROW(all->column, all->n, more, "columns of a request", err));
        all->capacity = more;
    }
    all->column[all->n++] = (body_column){key, values};
    return TN_OK;
}

static void begin_member(tn_text *record, uint32_t i, tn_bytes key)
{
    tn_text_adds(record, i > 0 ? ",\"" : "{\"");
    tn_text_add(record, key.data, key.size);
    tn_text_adds(record, "\":");
}

static tn_status read_columns(body_columns *all, const tn_json_span *object, const char *source,
                              tn_error *err)
{
    tn_json_cursor c = tn_json_cursor_of(object->data, object->size);
    tn_json_span value;
    tn_bytes key;
    bool more = tn_json_cursor_enter(&c, '{');
    while (more && tn_json_cursor_member(&c, &key)) {
        more = tn_json_cursor_value(&c, &value);
        if (more) {
            tn_json_cursor values = tn_json_cursor_of(value.data, value.size);
            if (!tn_json_cursor_enter(&values, '[')) {
                return tn_fail(err, TN_E_DATA, "%s: column '%.*s' is no list", source,
                               (int)key.size, key.data);
            }
            TN_TRY(add_column(all, key, values, err));
        }
    }
    return tn_json_cursor_check(&c, source, err);
}

/* Makes the record of the next row. TN_END: no column has a value any more. */
static tn_status next_of_columns(tn_row_sink *to, body_columns *all, tn_error *err)
{
    uint32_t ended = 0;
    tn_text_clear(to->record);
    for (uint32_t i = 0; i < all->n; i++) {
        body_column *column = &all->column[i];
        tn_json_span value;
        if (!tn_json_cursor_item(&column->values)) {
            TN_TRY(tn_json_cursor_check(&column->values, to->source, err));
            ended++;
            continue;
        }
        begin_member(to->record, i, column->key);
        if (!tn_json_cursor_value(&column->values, &value)) {
            return tn_json_cursor_check(&column->values, to->source, err);
        }
        TN_TRY(tn_json_flatten(&value, to->record, err));
    }
    if (ended > 0 && ended < all->n) {
        return tn_fail(err, TN_E_DATA,
                       "%s: columns have different numbers of values: some end after %u",
                       to->source, to->rows->n);
    }
    tn_text_addc(to->record, '}');
    return ended > 0 || all->n == 0 ? TN_END : tn_text_check(to->record, "a row", err);
}

static tn_status take_columns(tn_row_sink *to, body_columns *all, tn_error *err)
{
    tn_status status = TN_OK;
    while (status == TN_OK && (status = next_of_columns(to, all, err)) == TN_OK) {
        status = tn_row_sink_take(to, bytes_of(to->record), err);
    }
    return status == TN_END ? TN_OK : status;
}

tn_status tn_rows_of_columns(tn_row_sink *to, const tn_json_span *object, tn_error *err)
{
    body_columns all = {0};
    tn_status status = read_columns(&all, object, to->source, err);
    status = status == TN_OK ? take_columns(to, &all, err) : status;
    tn_free(all.column);
    return status;
}

/* ---- pandas ---- */

static tn_status read_names(body_columns *all, const tn_json_span *list, const char *source,
                            tn_error *err)
{
    tn_json_cursor c = tn_json_cursor_of(list->data, list->size);
    tn_json_span name;
    bool more = tn_json_cursor_enter(&c, '[');
    while (more && tn_json_cursor_item(&c)) {
        more = tn_json_cursor_value(&c, &name);
        if (more) {
            const bool text = *name.data == '"';
            const tn_bytes key = {name.data + text, name.size - (text ? 2U : 0U), false};
            TN_TRY(add_column(all, key, c, err));
        }
    }
    return tn_json_cursor_check(&c, source, err);
}

/* Makes a record of one row of values. */
static tn_status take_values(tn_row_sink *to, const body_columns *all, tn_json_cursor *c,
                             tn_error *err)
{
    tn_json_span value;
    uint32_t i = 0;
    bool more = tn_json_cursor_enter(c, '[');
    tn_text_clear(to->record);
    while (more && tn_json_cursor_item(c)) {
        more = tn_json_cursor_value(c, &value);
        if (more && i < all->n) {
            begin_member(to->record, i, all->column[i].key);
            TN_TRY(tn_json_flatten(&value, to->record, err));
        }
        i++;
    }
    if (c->fault != NULL) {
        return tn_json_cursor_check(c, to->source, err);
    }
    if (i != all->n || i == 0) {
        return tn_fail(err, TN_E_DATA, "%s:%u: %u values for %u columns", to->source,
                       to->rows->n + 1, i, all->n);
    }
    tn_text_addc(to->record, '}');
    TN_TRY(tn_text_check(to->record, "a row", err));
    return tn_row_sink_take(to, bytes_of(to->record), err);
}

static tn_status take_frame(tn_row_sink *to, body_columns *all, const tn_json_span *frame,
                            tn_error *err)
{
    tn_json_cursor c = tn_json_cursor_of(frame->data, frame->size);
    tn_json_span columns = {0};
    tn_json_span data = {0};
    tn_json_span other;
    tn_bytes key;
    bool more = tn_json_cursor_enter(&c, '{');
    while (more && tn_json_cursor_member(&c, &key)) {
        const bool names = key.size == 7 && memcmp(key.data, "columns", 7) == 0;
        const bool values = key.size == 4 && memcmp(key.data, "data", 4) == 0;
        more = tn_json_cursor_value(&c, names ? &columns : values ? &data : &other);
    }
    TN_TRY(tn_json_cursor_check(&c, to->source, err));
    if (columns.data == NULL || data.data == NULL) {
        return tn_fail(err, TN_E_DATA, "%s: expected 'columns' and 'data'", to->source);
    }
    TN_TRY(read_names(all, &columns, to->source, err));
    c = tn_json_cursor_of(data.data, data.size);
    more = tn_json_cursor_enter(&c, '[');
    while (more && tn_json_cursor_item(&c)) {
        TN_TRY(take_values(to, all, &c, err));
    }
    return tn_json_cursor_check(&c, to->source, err);
}

tn_status tn_rows_of_frame(tn_row_sink *to, const tn_json_span *frame, tn_error *err)
{
    body_columns all = {0};
    const tn_status status = take_frame(to, &all, frame, err);
    tn_free(all.column);
    return status;
}

/* ---- what rows share ---- */

/* Appends the paths of an object's members, as the JSON reader names columns: a NUL after each. */
static bool add_paths(tn_json_cursor *c, tn_text *path, tn_text *out)
{
    const size_t size = path->size;
    tn_json_span value;
    tn_bytes key;
    bool more = tn_json_cursor_enter(c, '{');
    while (more && tn_json_cursor_member(c, &key)) {
        tn_text_add(path, key.data, key.size);
        if (tn_json_cursor_peek(c) == '{' && path->size < 4096) {
            tn_text_addc(path, '.');
            more = add_paths(c, path, out); // NOLINT(misc-no-recursion): as deep as `path` is long
        } else {
            more = tn_json_cursor_value(c, &value);
            tn_text_add(out, path->data, path->size);
            tn_text_addc(out, '\0');
        }
        path->size = size;
    }
    return c->fault == NULL;
}

static void mark_column(const tn_schema *schema, const char *name, bool *slot, bool *numeric)
{
    const tn_columns *columns = schema->columns;
    const uint32_t at = tn_columns_find(columns, name, strlen(name));
    for (uint32_t i = 0; i < schema->n_specs && at != TN_NOWHERE; i++) {
        const tn_slot_spec *spec = &schema->spec[i];
        if (columns->spec[i] != at) {
            continue;
        }
        if (spec->slot != TN_NOWHERE) {
            slot[spec->slot] = true;
        } else {
            memset(numeric + spec->numeric, true, tn_spec_cols(spec));
        }
    }
}

tn_status tn_mark_members(const tn_schema *schema, const tn_json_span *object, bool *slot,
                          bool *numeric, tn_error *err)
{
    tn_json_cursor c = tn_json_cursor_of(object->data, object->size);
    tn_text path = {0};
    tn_text names = {0};
    (void)add_paths(&c, &path, &names);
    tn_status status = tn_json_cursor_check(&c, "the context", err);
    status = status == TN_OK ? tn_text_check(&names, "the context", err) : status;
    for (size_t at = 0; at < names.size && status == TN_OK; at += strlen(names.data + at) + 1) {
        mark_column(schema, names.data + at, slot, numeric);
    }
    tn_text_done(&path);
    tn_text_done(&names);
    return status;
}
