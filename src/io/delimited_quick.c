/* delimited_quick.c - the short road from a line to a row.
 *
 * All delimiters are found first, then the fields of all slots are laid side by side (io/lanes.h)
 * and become keys at once. Fields are often empty, at random, so an entry is written for each and
 * counts only if there was something: a wrong guess of the processor costs more than the entry.
 * What is unusual in a field goes through tn_rows_token; what is unusual in a line is left to the
 * long road.
 */
#include "base/key.h"
#include "io/columns.h"
#include "io/delimited.h"

#include <string.h>

/* A line whose fields have been found. */
typedef struct fields {
    const char *line;
    const uint16_t *place; /* see tn_rows_places */
    const tn_schema *schema;
    const uint32_t *column; /* of the head */
    tn_rows *rows;
    const tn_lanes *lanes;
    tn_lanes_text text;
} fields;

static inline tn_bytes field_of(const fields *f, uint32_t name)
{
    uint32_t column = f->column[name];
    uint32_t from = (uint16_t)(f->place[column] + 1);
    return (tn_bytes){f->line + from, f->place[column + 1] - from, false};
}

/* Lays fields side by side; the size of the longest. */
static inline uint64_t lay(const fields *f, uint32_t from, uint32_t to, bool digits)
{
    const uint32_t *restrict name = f->schema->columns->spec;
    const uint32_t *restrict column = f->column;
    const uint16_t *restrict place = f->place;
    const tn_lanes_text *text = &f->text;
    uint64_t *restrict sizes = f->lanes->size;
    uint64_t *restrict low = f->lanes->low;
    uint64_t longest = 0;
    for (uint32_t i = from; i < to; i++) {
        uint32_t at = column[name[i]];
        uint32_t end = place[at + 1];
        uint64_t size = end - (uint32_t)(uint16_t)(place[at] + 1);
        const char *last = tn_lanes_end(text, end);
        sizes[i] = size;
        low[i] = digits ? tn_lanes_digits(last, size) : tn_load_u64(last - TN_LANES_WORD);
        longest = size > longest ? size : longest;
    }
    return longest;
}

static void lay_hex(const fields *f, uint32_t from, uint32_t to)
{
    (void)lay(f, from, to, false);
    tn_lanes_hex(f->lanes, from, to - from);
}

static void lay_ln2(const fields *f, uint32_t from, uint32_t to)
{
    const tn_lanes *l = f->lanes;
    const uint8_t *small = f->schema->spec[from].transform.small; /* the same for all */
    uint64_t *restrict sign = l->sign;
    uint64_t *restrict bad = l->bad;
    (void)lay(f, from, to, true);
    tn_lanes_short(l, from, to - from);
    for (uint32_t i = from; i < to; i++) {
        uint64_t v = sign[i];
        uint64_t bucket = small[v & (TN_LN2_SMALL - 1)];
        bad[i] |= v / TN_LN2_SMALL;
        sign[i] = v > 2 ? bucket : TN_LN2_OFFSET + v;
    }
}

static void lay_whole(const fields *f, uint32_t from, uint32_t to)
{
    const tn_lanes *l = f->lanes;
    if (lay(f, from, to, true) <= TN_LANES_WORD) {
        tn_lanes_short(l, from, to - from);
        return;
    }
    for (uint32_t i = from; i < to; i++) {
        uint32_t end = f->place[f->column[f->schema->columns->spec[i]] + 1];
        tn_lanes_set_high(l, i, tn_lanes_end(&f->text, end));
    }
    tn_lanes_long(l, from, to - from);
    for (uint32_t i = from; i < to; i++) {
        l->bad[i] |= f->schema->spec[i].type == TN_SIGN_INT ? l->sign[i] >> 63 : 0;
    }
}

static void lay_rest(const fields *f, uint32_t from, uint32_t to, bool text)
{
    for (uint32_t i = from; i < to; i++) {
        tn_bytes field = field_of(f, f->schema->columns->spec[i]);
        f->lanes->size[i] = field.size;
        f->lanes->bad[i] = !text;
        f->lanes->sign[i] = text ? tn_xxh64(field.data, field.size, 0) : 0;
    }
}

static void lay_all(const fields *f)
{
    const tn_schema *schema = f->schema;
    uint32_t to = 0;
    for (uint32_t from = 0; from < schema->n_specs; from = to) {
        to = schema->columns->road_end[from];
        switch (schema->spec[from].road) {
        case TN_ROAD_HEX:
            lay_hex(f, from, to);
            break;
        case TN_ROAD_LN2:
            lay_ln2(f, from, to);
            break;
        case TN_ROAD_WHOLE:
            lay_whole(f, from, to);
            break;
        case TN_ROAD_TEXT:
        case TN_ROAD_TOKEN:
        case TN_ROAD_ANY:
        default:
            lay_rest(f, from, to, schema->spec[from].road == TN_ROAD_TEXT);
            break;
        }
    }
    tn_lanes_keys_each(f->lanes, schema->n_specs, schema->columns->salt);
}

/* Entries of all fields, of which some are unusual. */
static bool put_some(const fields *f)
{
    const tn_schema *schema = f->schema;
    const tn_lanes *l = f->lanes;
    tn_rows *rows = f->rows;
    for (uint32_t i = 0; i < schema->n_specs; i++) {
        if (l->size[i] == 0) {
            continue;
        }
        if (l->bad[i] == 0) {
            rows->entry[rows->n_entries++] = (tn_entry){l->sign[i], schema->columns->slot[i], 1};
            continue;
        }
        tn_bytes field = field_of(f, schema->columns->spec[i]);
        if (tn_rows_token(rows, &schema->spec[i], field.data, field.size, 1) != TN_FAULT_NONE) {
            return false;
        }
    }
    return true;
}

static bool take_slots(const fields *f)
{
    lay_all(f);
    if (tn_lanes_some_bad(f->lanes, f->schema->n_specs)) {
        return put_some(f);
    }
    tn_rows_put_lanes(f->rows);
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
    if (odd || n + 1 != head->n_columns ||
        !tn_lanes_reserve(&rows->private->lanes, schema->n_specs) ||
        tn_rows_begin(rows, line.size, NULL) != TN_OK) {
        return false;
    }
    place[n + 1] = (uint16_t)line.size;
    fields f = {.line = line.data,
                .place = place,
                .schema = schema,
                .column = head->column,
                .rows = rows,
                .lanes = &rows->private->lanes};
    const tn_slot_spec *spec = NULL;
    tn_lanes_begin(&f.text, line.data, line.size);
    bool good = take_row(&f) && take_slots(&f) && tn_rows_end(rows, &spec) == TN_FAULT_NONE;
    if (!good) {
        tn_rows_rollback(rows);
    }
    return good;
}
