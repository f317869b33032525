/* cells_format.c - from a row of cells to a row of keys and numbers.
 *
 * A cell means what it would mean in a CSV file that the program had written: an empty text is no
 * value, a text may be a number or a list, a number of a slot of texts is the text of its digits
 * (7, 2.5, 3.0). A list of cells holds several values, as one in JSON does.
 */
#include "io/arrow/cells_format.h"

#include "base/core/number.h"
#include "config/values.h"
#include "io/arrow/cells.h"
#include "io/format/format.h"
#include "io/rows/rows_parsing.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* One record on its way into a row. */
typedef struct cell_walk {
    const tn_schema *schema;
    const tn_record_location *place;
    tn_rows *rows;
    const tn_arrow_cell *cell; /* place->head->n_columns */
    uint64_t number;           /* number of the row, from 0 */
} cell_walk;

/* Room for the text of a number. */
typedef struct cell_text {
    char digits[TN_NUMBER_TEXT_MAX + 2];
} cell_text;

/* ---- records ---- */

static tn_status cells_cut(tn_bytes *window, bool last, const tn_schema *schema, tn_bytes *record,
                           tn_error *err)
{
    tn_bytes rest = *window;
    const uint32_t size = tn_get_u32(&rest);
    if (!rest.failed && size > schema->data->record_bytes_max) {
        return tn_fail(err, TN_E_LIMIT, "row larger than record_bytes_max (%u bytes)", size);
    }
    if (rest.failed || size > rest.size) {
        return last && window->size > 0 ? tn_fail(err, TN_E_DATA, "truncated row") : TN_END;
    }
    *record = (tn_bytes){rest.data, size, false};
    *window = (tn_bytes){rest.data + size, rest.size - size, false};
    return TN_OK;
}

/* Nothing can be damaged on the way from memory to here: what is left is passed over. */
static size_t cells_resync(tn_bytes window, bool last, const tn_schema *schema, bool *found)
{
    (void)schema;
    *found = last;
    return window.size;
}

/* ---- the head ---- */

static tn_status no_column(const tn_schema *schema, uint32_t name, const tn_text *there,
                           const tn_record_location *place, tn_error *err)
{
    const tn_columns *c = schema->columns;
    return tn_fail(err, TN_E_DATA,
                   "%s: error: there is no column '%s', which %s names\nhint: the columns are %s",
                   place->source, c->name[name],
                   name == c->label       ? "data.label"
                   : name == c->weight    ? "data.weight"
                   : name == c->group     ? "data.group"
                   : name == c->record_id ? "data.record_id"
                                          : "'slots'",
                   tn_text_str(there));
}

/* Whether anything of a row is read of a column; a scorer's schema reads no label. */
static bool is_read(const tn_schema *schema, uint32_t name)
{
    const tn_columns *c = schema->columns;
    bool read = name == c->label || name == c->weight || name == c->group || name == c->record_id;
    for (uint32_t i = 0; !read && i < schema->n_specs; i++) {
        read = name == c->spec[i] || name == c->values[i];
    }
    return read;
}

/* A column of the head. */
typedef struct head_column {
    tn_bytes name;
    tn_bytes why; /* empty, or why its type is not read */
    uint32_t at;  /* its number in the schema; TN_NOWHERE: nothing reads it */
} head_column;

static tn_bytes take_text(tn_bytes *in)
{
    const uint32_t size = tn_get_u32(in);
    const char *data = tn_get(in, size);
    return (tn_bytes){data != NULL ? data : "", data != NULL ? size : 0, false};
}

/* Refuses a column that is there twice, or that cannot be read. */
static tn_status check_column(const head_column *c, const tn_head *head, const tn_schema *schema,
                              const tn_record_location *place, tn_error *err)
{
    char shown[100];
    if (c->at == TN_NOWHERE) {
        return TN_OK;
    }
    (void)snprintf(shown, sizeof shown, "%.*s", (int)c->name.size, c->name.data);
    tn_make_printable(shown, "");
    if (head->column[c->at] != TN_NOWHERE) {
        return tn_fail(err, TN_E_DATA, "%s: error: two columns are called '%s'", place->source,
                       shown);
    }
    return c->why.size == 0 || !is_read(schema, c->at)
               ? TN_OK
               : tn_fail(err, TN_E_DATA, "%s: error: column '%s' %.*s", place->source, shown,
                         (int)c->why.size, c->why.data);
}

/* Reads the names; `there` lists them for people. TN_END: more bytes are needed. */
static tn_status read_names(tn_bytes *window, const tn_schema *schema, tn_head *head,
                            tn_text *there, const tn_record_location *place, tn_error *err)
{
    enum { LISTED_MAX = 300 };
    tn_bytes rest = *window;
    const char *magic = tn_get(&rest, TN_CELLS_MAGIC_BYTES);
    if (magic != NULL && memcmp(magic, TN_CELLS_MAGIC, TN_CELLS_MAGIC_BYTES) != 0) {
        return tn_fail(err, TN_E_DATA, "'%s' is no stream of rows in memory", place->source);
    }
    head->n_columns = tn_get_u32(&rest);
    for (uint32_t i = 0; i < head->n_columns && !rest.failed; i++) {
        head_column c = {.name = take_text(&rest)};
        c.why = take_text(&rest);
        c.at =
            rest.failed ? TN_NOWHERE : tn_columns_find(schema->columns, c.name.data, c.name.size);
        TN_TRY(check_column(&c, head, schema, place, err));
        if (c.at != TN_NOWHERE) {
            head->column[c.at] = i;
        }
        if (there->size < LISTED_MAX) {
            tn_text_addf(there, "%s%.*s", i > 0 ? ", " : "", (int)c.name.size, c.name.data);
        }
    }
    if (rest.failed) {
        return TN_END;
    }
    *window = rest;
    return tn_text_check(there, "names of columns", err);
}

static tn_status cells_head(tn_bytes *window, bool last, const tn_schema *schema,
                            const tn_record_location *place, tn_head *head, tn_error *err)
{
    tn_text there = {0};
    for (uint32_t i = 0; i < schema->columns->n; i++) {
        head->column[i] = TN_NOWHERE;
    }
    head->in_row = TN_NOWHERE;
    tn_status status = read_names(window, schema, head, &there, place, err);
    for (uint32_t i = 0; status == TN_OK && i < schema->columns->n; i++) {
        if (head->column[i] == TN_NOWHERE && is_read(schema, i) && !tn_schema_may_lack(schema, i)) {
            status = no_column(schema, i, &there, place, err);
        }
    }
    tn_text_done(&there);
    if (status == TN_END && last && window->size > 0) {
        status = tn_fail(err, TN_E_DATA, "'%s' ends within its head", place->source);
    }
    return status;
}

/* ---- cells ---- */

/* Refuses a value with the number of its row and the name of its column. */
static tn_status refuse(const cell_walk *w, const tn_slot_spec *spec, uint32_t name, tn_bytes token,
                        tn_fault fault, tn_error *err)
{
    static const tn_record_location nowhere = {.source = ""};
    static const char mark[] = "error: ";
    tn_error why = {0};
    if (fault == TN_FAULT_MEMORY) {
        return tn_fail(err, TN_E_MEMORY, "no memory for the text of a value");
    }
    (void)tn_record_location_fault(&nowhere, token, token, fault, &why);
    const char *text = strstr(why.text, mark);
    const tn_status status = tn_fail(err, TN_E_DATA, "%s: row %" PRIu64 ": error: column '%s': %s",
                                     w->place->source, w->number, w->schema->columns->name[name],
                                     text != NULL ? text + sizeof mark - 1 : why.text);
    tn_record_location_hint(w->schema, spec, token, fault, err);
    return status;
}

static tn_status refuse_column(const cell_walk *w, uint32_t name, const char *what, tn_error *err)
{
    return tn_fail(err, TN_E_DATA, "%s: row %" PRIu64 ": error: column '%s' %s", w->place->source,
                   w->number, w->schema->columns->name[name], what);
}

static const tn_arrow_cell *cell_of(const cell_walk *w, uint32_t name)
{
    static const tn_arrow_cell none = {.kind = TN_CELL_NONE};
    const uint32_t column = name != TN_NOWHERE ? w->place->head->column[name] : TN_NOWHERE;
    if (column == TN_NOWHERE) { /* nobody wanted it */
        return &none;
    }
    TN_ASSERT(w->cell != NULL); /* read_cells came before */
    return &w->cell[column];
}

/* The text of a value as a CSV file has it: a whole float with its point, 3.0. */
static tn_bytes text_of(const tn_arrow_cell *cell, cell_text *room)
{
    char *out = room->digits; // cppcheck-suppress ctuuninitvar ; it is written here
    size_t size = 0;
    if (cell->kind == TN_CELL_TEXT) {
        return cell->bytes;
    }
    if (cell->kind == TN_CELL_INT) {
        size = (size_t)snprintf(out, sizeof room->digits, "%" PRId64, cell->whole);
        return (tn_bytes){out, size, false};
    }
    size = cell->kind == TN_CELL_SINGLE ? tn_write_f32(out, (float)cell->real)
                                        : tn_write_f64(out, cell->real);
    if (isfinite(cell->real) && strpbrk(out, ".e") == NULL) {
        memcpy(out + size, ".0", 3);
        size += 2;
    }
    return (tn_bytes){out, size, false};
}

/* Whether a value is none: of no kind, not a number, or one of data.null. */
static bool is_missing(const cell_walk *w, const tn_arrow_cell *cell)
{
    const tn_strs *null = &w->schema->data->null;
    if (cell->kind == TN_CELL_REAL || cell->kind == TN_CELL_SINGLE) {
        return isnan(cell->real);
    }
    if (cell->kind != TN_CELL_TEXT) {
        return cell->kind == TN_CELL_NONE;
    }
    bool is_null = cell->bytes.size == 0;
    for (uint32_t i = 0; !is_null && !w->schema->empty_is_null && i < null->n; i++) {
        is_null = strlen(null->item[i]) == cell->bytes.size &&
                  memcmp(null->item[i], cell->bytes.data, cell->bytes.size) == 0;
    }
    return is_null;
}

/* Adds a value as it is, where the slot takes numbers of this kind; else by its text. */
static tn_fault put(const cell_walk *w, const tn_slot_spec *spec, const tn_arrow_cell *cell,
                    float x)
{
    const bool whole = cell->kind == TN_CELL_INT && spec->type != TN_SIGN_HEX &&
                       spec->type != TN_SIGN_STR && (spec->type != TN_SIGN_ID || cell->whole >= 0);
    cell_text room;
    if (whole) {
        return tn_rows_integer(w->rows, spec, cell->whole, x);
    }
    if (cell->kind == TN_CELL_SINGLE && spec->type == TN_SIGN_FLOAT) {
        return tn_rows_real(w->rows, spec, cell->real);
    }
    if (cell->kind == TN_CELL_REAL && spec->type == TN_SIGN_FLOAT) {
        return tn_rows_double(w->rows, spec, cell->real);
    }
    const tn_bytes text = text_of(cell, &room);
    return tn_rows_token(w->rows, spec, text.data, text.size, x);
}

/* The values of a column: those of a list, the pieces of a text that the slot splits, or one. */
typedef struct cell_items {
    tn_bytes cells; /* cells of a list */
    tn_bytes text;  /* to split */
    tn_arrow_cell one;
    char separator; /* 0: the text is not split */
    bool more;      /* `one`, or a piece of the text, is left */
} cell_items;

static cell_items items_of(const cell_walk *w, uint32_t name, char separator)
{
    const tn_arrow_cell *cell = cell_of(w, name);
    if (cell->kind == TN_CELL_LIST) {
        return (cell_items){.cells = cell->bytes};
    }
    const bool splits = separator != 0 && cell->kind == TN_CELL_TEXT;
    cell_items items = {.one = *cell, .more = !is_missing(w, cell)};
    if (splits) {
        items.text = cell->bytes;
        items.separator = separator;
    }
    return items;
}

/* Takes the next value; false: none is left. */
static bool next_item(cell_items *items, tn_arrow_cell *out)
{
    if (items->cells.size > 0) {
        *out = tn_arrow_cell_take(&items->cells);
        return true;
    }
    if (!items->more) {
        return false;
    }
    *out = items->one;
    items->more = items->separator != 0;
    if (items->separator != 0) {
        const char *end = memchr(items->text.data, items->separator, items->text.size);
        const size_t size = end != NULL ? (size_t)(end - items->text.data) : items->text.size;
        out->bytes = (tn_bytes){items->text.data, size, false};
        items->more = end != NULL;
        items->text.data += size + (end != NULL);
        items->text.size -= size + (end != NULL);
    }
    return true;
}

/* Reads the x_j of the next value; NAN stays, for there is none. */
static tn_status next_x(const cell_walk *w, uint32_t i, cell_items *xs, float *x, tn_error *err)
{
    const tn_slot_spec *spec = &w->schema->spec[i];
    const uint32_t name = w->schema->columns->values[i];
    const bool none = isnan(*x);
    tn_arrow_cell cell;
    cell_text room;
    if (!next_item(xs, &cell)) {
        return refuse_column(w, name, "has fewer values than the column whose values it weighs",
                             err);
    }
    *x = NAN;
    const tn_bytes text =
        cell.kind == TN_CELL_NONE ? (tn_bytes){"nan", 3, false} : text_of(&cell, &room);
    const tn_fault fault = none ? TN_FAULT_NONE : tn_rows_read_x(spec, text.data, text.size, x);
    return fault == TN_FAULT_NONE ? TN_OK : refuse(w, spec, name, text, fault, err);
}

/* Takes one value, which is there. */
static tn_status take_value(const cell_walk *w, uint32_t i, const tn_arrow_cell *cell, float x,
                            tn_error *err)
{
    const tn_slot_spec *spec = &w->schema->spec[i];
    const uint32_t before = w->rows->n_entries;
    cell_text room;
    tn_fault fault = isfinite(x) ? put(w, spec, cell, x) : TN_FAULT_NONE;
    fault = fault == TN_FAULT_NONE ? tn_rows_keep_place(w->rows, spec, before, x) : fault;
    return fault == TN_FAULT_NONE
               ? TN_OK
               : refuse(w, spec, w->schema->columns->spec[i], text_of(cell, &room), fault, err);
}

/* Takes the values of a list, of a text that is split, or of a column with weights. */
static tn_status take_values(const cell_walk *w, uint32_t i, tn_error *err)
{
    const tn_slot_spec *spec = &w->schema->spec[i];
    const tn_columns *columns = w->schema->columns;
    const bool weighed = spec->values != NULL;
    cell_items items = items_of(w, columns->spec[i], spec->list);
    cell_items xs = {.more = false};
    if (weighed) {
        xs = items_of(w, columns->values[i], spec->list);
    }
    tn_arrow_cell cell;
    while (next_item(&items, &cell)) {
        float x = is_missing(w, &cell) ? NAN : 1;
        if (weighed) {
            TN_TRY(next_x(w, i, &xs, &x, err));
        }
        TN_TRY(take_value(w, i, &cell, x, err));
    }
    return weighed && next_item(&xs, &cell)
               ? refuse_column(w, columns->values[i],
                               "has more values than the column whose values it weighs", err)
               : TN_OK;
}

/* The most usual column has one value, which is not copied. */
static tn_status take_slot(const cell_walk *w, uint32_t i, tn_error *err)
{
    const tn_slot_spec *spec = &w->schema->spec[i];
    const tn_arrow_cell *cell = cell_of(w, w->schema->columns->spec[i]);
    const bool several = cell->kind == TN_CELL_LIST || spec->values != NULL ||
                         (spec->list != 0 && cell->kind == TN_CELL_TEXT);
    if (several) {
        return take_values(w, i, err);
    }
    return is_missing(w, cell) ? TN_OK : take_value(w, i, cell, 1, err);
}

/* The one value of a column that only the row reads; kind NONE: there is none. */
static tn_status one_value(const cell_walk *w, uint32_t name, tn_arrow_cell *out, tn_error *err)
{
    *out = (tn_arrow_cell){.kind = TN_CELL_NONE};
    if (name != TN_NOWHERE) {
        *out = *cell_of(w, name);
    }
    if (out->kind == TN_CELL_LIST) {
        return refuse_column(w, name, "holds a list, expected one value", err);
    }
    out->kind = is_missing(w, out) ? TN_CELL_NONE : out->kind;
    return TN_OK;
}

static tn_status take_label(const cell_walk *w, tn_error *err)
{
    const tn_label_rule *rule = w->schema->label;
    const uint32_t name = w->schema->columns->label;
    tn_arrow_cell cell;
    cell_text room;
    TN_TRY(one_value(w, name, &cell, err));
    if (name == TN_NOWHERE) {
        return TN_OK;
    }
    const tn_bytes text =
        cell.kind == TN_CELL_NONE ? (tn_bytes){"", 0, false} : text_of(&cell, &room);
    const bool number = rule->n_values == 0 && cell.kind >= TN_CELL_INT;
    const double value = cell.kind == TN_CELL_INT ? (double)cell.whole : cell.real;
    const tn_fault fault = number ? tn_rows_label_number(w->rows, value)
                                  : tn_rows_label(w->rows, text.data, text.size);
    return fault == TN_FAULT_NONE ? TN_OK : refuse(w, NULL, name, text, fault, err);
}

static tn_status take_row(const cell_walk *w, tn_error *err)
{
    const tn_columns *columns = w->schema->columns;
    tn_fault fault;
    tn_arrow_cell cell;
    cell_text room;
    TN_TRY(take_label(w, err));
    TN_TRY(one_value(w, columns->weight, &cell, err));
    if (cell.kind != TN_CELL_NONE) {
        const tn_bytes text = text_of(&cell, &room);
        fault = tn_rows_weight(w->rows, text.data, text.size);
        TN_TRY(fault == TN_FAULT_NONE ? TN_OK : refuse(w, NULL, columns->weight, text, fault, err));
    }
    TN_TRY(one_value(w, columns->group, &cell, err));
    if (cell.kind != TN_CELL_NONE) {
        const tn_bytes text = text_of(&cell, &room);
        tn_rows_group_text(w->rows, text.data, text.size);
    }
    TN_TRY(one_value(w, columns->record_id, &cell, err));
    if (cell.kind != TN_CELL_NONE) {
        const tn_bytes text = text_of(&cell, &room);
        fault = tn_rows_id(w->rows, text.data, text.size);
        TN_TRY(fault == TN_FAULT_NONE ? TN_OK
                                      : refuse(w, NULL, columns->record_id, text, fault, err));
    }
    for (uint32_t i = 0; i < w->schema->n_specs; i++) {
        TN_TRY(take_slot(w, i, err));
    }
    return TN_OK;
}

/* Reads the cells of all columns. */
static tn_status read_cells(cell_walk *w, tn_bytes in, tn_error *err)
{
    struct rows_private *p = w->rows->private;
    const uint32_t n = w->place->head->n_columns;
    if (!tn_rows_grow(&p->cell, 0, n, sizeof *p->cell, &p->cells_max)) {
        return tn_fail(err, TN_E_MEMORY, "no memory for the cells of a row");
    }
    for (uint32_t i = 0; i < n; i++) {
        p->cell[i] = tn_arrow_cell_take(&in);
    }
    w->cell = p->cell;
    return in.failed || in.size > 0 ? tn_fail(err, TN_E_DATA, "%s: row %" PRIu64 ": damaged cells",
                                              w->place->source, w->number)
                                    : TN_OK;
}

/* Ends a row. A message about a rule that the row breaks has the row's number. */
static tn_status end_row(const cell_walk *w, tn_bytes record, tn_error *err)
{
    static const char mark[] = "error: ";
    tn_error why = {0};
    const tn_status status = tn_record_end(record, w->place, TN_OK, w->rows, &why);
    const char *text = strstr(why.text, mark);
    if (status == TN_OK || text == NULL) {
        return status == TN_OK ? TN_OK : tn_fail(err, status, "%s", why.text);
    }
    return tn_fail(err, status, "%s: row %" PRIu64 ": %s", w->place->source, w->number, text);
}

static tn_status cells_parse(tn_bytes record, const tn_schema *schema,
                             const tn_record_location *place, tn_rows *rows, tn_error *err)
{
    tn_bytes in = record;
    cell_walk w = {.schema = schema, .place = place, .rows = rows};
    w.number = tn_get_u64(&in);
    TN_TRY(tn_rows_begin(rows, record.size, err));
    tn_status status = read_cells(&w, in, err);
    status = status == TN_OK ? take_row(&w, err) : status;
    if (status == TN_OK) {
        return end_row(&w, record, err);
    }
    tn_rows_rollback(rows);
    return status;
}

const tn_format tn_cells_format = {
    .name = "cells",
    .help = "rows in memory",
    .binary = true,
    .cut = cells_cut,
    .resync = cells_resync,
    .head = cells_head,
    .parse = cells_parse,
};
