/* delimited_quick.c - the short road from a line to a row.
 *
 * The places of all delimiters come first, and then each slot looks where its field stands. Fields
 * are often empty, at random, so an entry is written for each and counts only if there was
 * something: a guess of the processor costs more than the entry. What is unusual in a field goes
 * through tn_rows_token; what is unusual in a line is left to the long road.
 */
#include "base/key.h"
#include "io/columns.h"
#include "io/delimited.h"

#include <string.h>

enum { HEX_DIGITS = 8, COUNT_DIGITS = 4 };

/* A line whose fields have been found. */
typedef struct fields {
    const char *line;
    const uint16_t *place; /* see tn_rows_places */
    const tn_schema *schema;
    const tn_head *head;
    tn_rows *rows;
} fields;

static inline tn_bytes field_of(const fields *f, uint32_t name)
{
    uint32_t column = f->head->column[name];
    uint32_t from = (uint16_t)(f->place[column] + 1);
    return (tn_bytes){f->line + from, f->place[column + 1] - from, false};
}

/* An entry that counts if `some`; there is always room for one more. */
static inline void put(tn_rows *rows, const tn_slot_spec *spec, uint64_t sign, bool some)
{
    uint32_t n = rows->n_entries;
    rows->entry[n] = (tn_entry){tn_key_of(sign, spec->salt), spec->slot, 1};
    rows->n_entries = n + some;
}

/* False: neither eight digits nor nothing. */
static inline bool take_hex(const fields *f, const tn_slot_spec *spec, tn_bytes field)
{
    const char *end = field.data + field.size;
    uint64_t sign;
    if (end - f->line < HEX_DIGITS) {
        return field.size == 0;
    }
    bool good = tn_read_hex8(end - HEX_DIGITS, &sign) & (field.size == HEX_DIGITS);
    if (!(good | (field.size == 0))) {
        return false;
    }
    put(f->rows, spec, sign, field.size > 0);
    return true;
}

/* False: neither a small count nor nothing. */
static inline bool take_ln2(const fields *f, const tn_slot_spec *spec, tn_bytes field)
{
    const char *end = field.data + field.size;
    uint32_t count;
    if (end - f->line < COUNT_DIGITS) {
        return field.size == 0;
    }
    if (field.size > COUNT_DIGITS || !tn_count_digits(end, (uint32_t)field.size, &count) ||
        count >= TN_LN2_SMALL) {
        return false;
    }
    uint64_t small = spec->transform.small[count];
    put(f->rows, spec, count > 2 ? small : TN_LN2_OFFSET + count, field.size > 0);
    return true;
}

static inline bool take_whole(const fields *f, const tn_slot_spec *spec, tn_bytes field)
{
    uint64_t sign;
    if (!tn_token_digits(f->line, field.data, field.data + field.size, &sign) ||
        (spec->type == TN_SIGN_INT && sign > INT64_MAX)) {
        return false;
    }
    put(f->rows, spec, sign, true);
    return true;
}

/* False: not taken, by this road. */
static inline bool take_field(const fields *f, const tn_slot_spec *spec, tn_bytes field)
{
    switch (spec->road) {
    case TN_ROAD_HEX:
        return take_hex(f, spec, field);
    case TN_ROAD_LN2:
        return take_ln2(f, spec, field);
    case TN_ROAD_WHOLE:
        return field.size == 0 || take_whole(f, spec, field);
    case TN_ROAD_TEXT:
        put(f->rows, spec, tn_xxh64(field.data, field.size, 0), field.size > 0);
        return true;
    case TN_ROAD_TOKEN:
    case TN_ROAD_ANY:
    default:
        return field.size == 0;
    }
}

static bool take_slots(const fields *f)
{
    const tn_schema *schema = f->schema;
    const uint32_t *name = schema->columns->spec;
    for (uint32_t i = 0; i < schema->n_specs; i++) {
        const tn_slot_spec *spec = &schema->spec[i];
        tn_bytes field = field_of(f, name[i]);
        if (!take_field(f, spec, field) &&
            tn_rows_token(f->rows, spec, field.data, field.size, 1) != TN_FAULT_NONE) {
            return false;
        }
    }
    return true;
}

static bool take_label(const fields *f)
{
    tn_bytes label = field_of(f, f->schema->columns->label);
    float *out = &f->rows->row[f->rows->n].label;
    return (label.size == 1 && tn_label_of_bit(f->schema->label, label.data[0], out)) ||
           tn_rows_label(f->rows, label.data, label.size) == TN_FAULT_NONE;
}

/* What belongs to the row itself. */
static bool take_row(const fields *f)
{
    const tn_columns *columns = f->schema->columns;
    if (columns->label != TN_NOWHERE && !take_label(f)) {
        return false;
    }
    if (columns->weight != TN_NOWHERE) {
        tn_bytes weight = field_of(f, columns->weight);
        if (weight.size > 0 && tn_rows_weight(f->rows, weight.data, weight.size) != TN_FAULT_NONE) {
            return false;
        }
    }
    if (columns->group != TN_NOWHERE) {
        tn_bytes group = field_of(f, columns->group);
        if (group.size > 0) {
            tn_rows_group_text(f->rows, group.data, group.size);
        }
    }
    if (columns->record_id != TN_NOWHERE) {
        tn_bytes id = field_of(f, columns->record_id);
        return id.size == 0 || tn_rows_id(f->rows, id.data, id.size) == TN_FAULT_NONE;
    }
    return true;
}

bool tn_delimited_quick(tn_bytes line, const tn_schema *schema, const tn_head *head, tn_rows *rows)
{
    line.size -= line.size > 0 && line.data[line.size - 1] == '\r';
    if ((rows->private->keep & TN_ROWS_SIGNS) != 0 || line.size > TN_MARKS_LINE_MAX ||
        tn_delimited_is_nothing(line, schema) ||
        (schema->quote != TN_QUOTE_NONE && memchr(line.data, '"', line.size) != NULL)) {
        return false;
    }
    uint16_t *place = tn_rows_places(rows, line.size);
    bool odd = true;
    uint32_t n = 0;
    if (place != NULL) {
        n = rows->private->marks->fields(line.data, line.size, schema->delimiter, place + 1, &odd);
    }
    if (odd || n + 1 != head->n_columns || tn_rows_begin(rows, line.size, NULL) != TN_OK) {
        return false;
    }
    place[n + 1] = (uint16_t)line.size;
    const fields f = {line.data, place, schema, head, rows};
    const tn_slot_spec *spec = NULL;
    bool good = take_row(&f) && take_slots(&f) && tn_rows_end(rows, &spec) == TN_FAULT_NONE;
    if (!good) {
        tn_rows_rollback(rows);
    }
    return good;
}
