/* delimited_fast.c - the short road from a line to a row.
 *
 * All delimiters are found first, then the fields of all slots are laid side by side
 * (io/text/token_vectors.h) and become keys at once. Fields are often empty, at random, so an entry
 * is written for each and counts only if there was something: a wrong guess of the processor costs
 * more than the entry. What is unusual in a field goes through tn_rows_token; what is unusual in a
 * line is left to the long road.
 */
#include "base/math/key.h"
#include "io/format/delimited.h"
#include "io/rows/rows_grid.h"
#include "io/schema/columns.h"

#include <string.h>

/* A line whose fields have been found. */
typedef struct fields {
    const char *line;
    const uint16_t *place; /* see tn_rows_places */
    const tn_schema *schema;
    const uint32_t *column; /* of the head */
    uint32_t in_row;        /* likewise */
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

/* Sizes of all fields, and the words that end where they end. */
static void lay(const fields *f)
{
    const uint32_t n = f->schema->n_specs;
    const uint32_t *restrict name = f->schema->columns->spec;
    const uint32_t *restrict column = f->column;
    const uint16_t *restrict place = f->place;
    uint64_t *restrict sizes = f->lanes->size;
    uint64_t *restrict low = f->lanes->low;
    if (f->in_row != TN_NOWHERE) {
        place += f->in_row;
        tn_lanes_sizes(f->lanes, n, place);
        uint32_t i = 0;
        for (; i < n && i < TN_LANES_REACH; i++) { /* a field takes a byte: they may lie in front */
            low[i] = tn_load_u64(tn_lanes_end(&f->text, place[i + 1]) - TN_LANES_WORD);
        }
        for (; i < n; i++) {
            low[i] = tn_load_u64(f->line + place[i + 1] - TN_LANES_WORD);
        }
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = column[name[i]];
        uint32_t end = place[at + 1];
        sizes[i] = end - (uint32_t)(uint16_t)(place[at] + 1);
        low[i] = tn_load_u64(tn_lanes_end(&f->text, end) - TN_LANES_WORD);
    }
}

static void lay_ln2(const fields *f, uint32_t from, uint32_t to)
{
    const tn_lanes *l = f->lanes;
    const uint8_t *small = f->schema->spec[from].transform.small; /* the same for all */
    uint64_t *restrict sign = l->sign;
    uint64_t *restrict bad = l->bad;
    bool beyond = tn_lanes_digits(l, from, to - from);
    (void)beyond; /* found by their sizes */
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
    if (!tn_lanes_digits(l, from, to - from)) {
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
        f->lanes->bad[i] = !text;
        f->lanes->sign[i] = text ? tn_xxh64(field.data, field.size, 0) : 0;
    }
}

static void lay_all(const fields *f)
{
    const tn_schema *schema = f->schema;
    uint32_t to = 0;
    lay(f);
    for (uint32_t from = 0; from < schema->n_specs; from = to) {
        to = schema->columns->road_end[from];
        switch (schema->spec[from].road) {
        case TN_ROAD_HEX:
            tn_lanes_hex(f->lanes, from, to - from);
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

static bool put_entries(const fields *f)
{
    tn_lanes_keys_each(f->lanes, f->schema->n_specs, f->schema->columns->salt);
    if (tn_lanes_some_bad(f->lanes, f->schema->n_specs)) {
        return put_some(f);
    }
    tn_rows_put_lanes(f->rows);
    return true;
}

/* The keys of unusual fields, of which *there forgets those that have none. */
static bool find_keys(const fields *f, uint64_t unusual, uint64_t *there)
{
    tn_rows *rows = f->rows;
    const uint32_t n = rows->n_entries;
    bool good = true;
    for (; unusual != 0 && good; unusual &= unusual - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(unusual);
        tn_bytes field = field_of(f, f->schema->columns->spec[i]);
        rows->n_entries = 0; /* a grid has no others */
        rows->private->entries_end = 1;
        good = tn_rows_token(rows, &f->schema->spec[i], field.data, field.size, 1) == TN_FAULT_NONE;
        f->lanes->sign[i] = rows->entry[0].key;
        *there &= ~((uint64_t)(rows->n_entries == 0) << i);
    }
    rows->n_entries = n;
    return good;
}

static bool put_keys(const fields *f, uint64_t *keys)
{
    const tn_schema *schema = f->schema;
    const uint32_t n = schema->n_specs;
    uint64_t unusual;
    uint64_t there = tn_lanes_there(f->lanes, n, &unusual);
    if (unusual == 0 && schema->n_slots == n) {
        tn_lanes_keys_to(f->lanes, n, schema->columns->salt, keys);
    } else {
        tn_lanes_keys_each(f->lanes, n, schema->columns->salt);
        if (!find_keys(f, unusual, &there)) {
            return false;
        }
        there = tn_rows_put_grid(f->rows, there, keys);
    }
    tn_rows_end_grid(f->rows, keys, there);
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

static bool put_row(const fields *f)
{
    const tn_slot_spec *spec = NULL;
    return put_entries(f) && tn_rows_end(f->rows, &spec) == TN_FAULT_NONE;
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
        !tn_lanes_reserve(&rows->private->lanes, schema->n_specs)) {
        return false;
    }
    uint64_t *keys = tn_rows_begin_grid(rows);
    if (keys == NULL && tn_rows_begin(rows, line.size, NULL) != TN_OK) {
        return false;
    }
    place[n + 1] = (uint16_t)line.size;
    fields f = {.line = line.data,
                .place = place,
                .schema = schema,
                .column = head->column,
                .in_row = head->in_row,
                .rows = rows,
                .lanes = &rows->private->lanes};
    tn_lanes_begin(&f.text, line.data, line.size);
    lay_all(&f);
    bool good = take_row(&f) && (keys != NULL ? put_keys(&f, keys) : put_row(&f));
    if (!good) {
        tn_rows_rollback(rows);
    }
    return good;
}
