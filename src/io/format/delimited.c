/* delimited.c - from the fields of a line to a row.
 *
 * A line as most are takes the fast path. All delimiters are found first, then the fields of all
 * slots are laid side by side (io/text/token_vectors.h) and become keys at once. Fields are often
 * empty, at random, so an entry is written for each and counts only if there was something: a wrong
 * guess of the processor costs more than the entry. An unusual field goes through tn_rows_token; an
 * unusual line is left to the slow path, which also finds what is wrong.
 */
#include "io/format/delimited.h"

#include "base/math/key.h"
#include "io/schema/dataopts.h"

#include <math.h>
#include <string.h>

/* A line whose fields have been found. */
typedef struct fields {
    const char *line;
    const uint16_t *place; /* see tn_rows_places */
    const tn_schema *schema;
    const uint32_t *column; /* as in the head */
    uint32_t in_row;        /* likewise */
    tn_rows *rows;
    const tn_token_vectors *lanes;
    tn_token_vectors_text text;
} fields;

/* One record on its way into a row. */
typedef struct taking {
    const tn_schema *schema;
    const tn_record_location *place;
    tn_bytes line;
    tn_rows *rows;
    const tn_head *head;
    const tn_span *span; /* head->n_columns */
} taking;

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
        for (uint32_t i = 0; i < n; i++) {
            sizes[i] = (uint16_t)(place[i + 1] - place[i] - 1);
        }
        for (uint32_t i = 0; i < n; i++) {
            low[i] =
                tn_load_u64(tn_token_vectors_end(&f->text, place[i + 1]) - TN_TOKEN_VECTORS_WORD);
        }
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = column[name[i]];
        uint32_t end = place[at + 1];
        sizes[i] = end - (uint32_t)(uint16_t)(place[at] + 1);
        low[i] = tn_load_u64(tn_token_vectors_end(&f->text, end) - TN_TOKEN_VECTORS_WORD);
    }
}

static void lay_ln2(const fields *f, uint32_t from, uint32_t to)
{
    const tn_token_vectors *l = f->lanes;
    const uint8_t *small = f->schema->spec[from].transform.small; /* the same for all */
    uint64_t *restrict sign = l->sign;
    uint64_t *restrict bad = l->bad;
    bool beyond = tn_token_vectors_digits(l, from, to - from);
    (void)beyond; /* found by their sizes */
    tn_token_vectors_short(l, from, to - from);
    for (uint32_t i = from; i < to; i++) {
        uint64_t v = sign[i];
        uint64_t bucket = small[v & (TN_LN2_SMALL - 1)];
        bad[i] |= v / TN_LN2_SMALL;
        sign[i] = v > 2 ? bucket : TN_LN2_OFFSET + v;
    }
}

static void lay_whole(const fields *f, uint32_t from, uint32_t to)
{
    const tn_token_vectors *l = f->lanes;
    if (!tn_token_vectors_digits(l, from, to - from)) {
        tn_token_vectors_short(l, from, to - from);
        return;
    }
    for (uint32_t i = from; i < to; i++) {
        uint32_t end = f->place[f->column[f->schema->columns->spec[i]] + 1];
        tn_token_vectors_set_high(l, i, tn_token_vectors_end(&f->text, end));
    }
    tn_token_vectors_long(l, from, to - from);
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
        to = schema->columns->fast_path_end[from];
        switch (schema->spec[from].fast_path) {
        case TN_FAST_PATH_HEX:
            tn_token_vectors_hex(f->lanes, from, to - from);
            break;
        case TN_FAST_PATH_LN2:
            lay_ln2(f, from, to);
            break;
        case TN_FAST_PATH_WHOLE:
            lay_whole(f, from, to);
            break;
        case TN_FAST_PATH_TEXT:
        case TN_FAST_PATH_TOKEN:
        case TN_FAST_PATH_NONE:
        default:
            lay_rest(f, from, to, schema->spec[from].fast_path == TN_FAST_PATH_TEXT);
            break;
        }
    }
}

/* Entries of all fields, of which some are unusual. */
static bool put_some(const fields *f)
{
    const tn_schema *schema = f->schema;
    const tn_token_vectors *l = f->lanes;
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
    tn_token_vectors_keys_each(f->lanes, f->schema->n_specs, f->schema->columns->salt);
    if (tn_token_vectors_some_bad(f->lanes, f->schema->n_specs)) {
        return put_some(f);
    }
    tn_rows_put_lanes(f->rows);
    return true;
}

/* The signs of unusual fields, of which *there forgets those that have none. */
static bool find_signs(const fields *f, uint64_t unusual, uint64_t *there)
{
    tn_rows *rows = f->rows;
    const uint32_t n = rows->n_entries;
    bool good = true;
    for (; unusual != 0 && good; unusual &= unusual - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(unusual);
        const tn_slot_spec *spec = &f->schema->spec[i];
        tn_bytes field = field_of(f, f->schema->columns->spec[i]);
        rows->n_entries = 0; /* a grid has no others */
        rows->private->entries_end = 1;
        good = tn_rows_token(rows, spec, field.data, field.size, 1) == TN_FAULT_NONE;
        f->lanes->sign[i] = tn_sign_of(rows->entry[0].key, spec->salt);
        *there &= ~((uint64_t)(rows->n_entries == 0) << i);
    }
    rows->n_entries = n;
    return good;
}

static bool put_grid(const fields *f)
{
    uint64_t unusual;
    uint64_t there = tn_token_vectors_there(f->lanes, f->schema->n_specs, &unusual);
    return (unusual == 0 || find_signs(f, unusual, &there)) && tn_rows_end_grid(f->rows, there);
}

static bool take_label(const fields *f)
{
    tn_bytes label = field_of(f, f->schema->columns->label);
    float *out = &f->rows->row[f->rows->n].label;
    return (label.size == 1 && tn_label_of_bit(f->schema->label, label.data[0], out)) ||
           tn_rows_label(f->rows, label.data, label.size) == TN_FAULT_NONE;
}

/* Takes label, weight, group and record id. */
static bool fast_row(const fields *f)
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

static bool fast_put_row(const fields *f)
{
    const tn_slot_spec *spec = NULL;
    return put_entries(f) && tn_rows_end(f->rows, &spec) == TN_FAULT_NONE;
}

bool tn_delimited_is_nothing(tn_bytes line, const tn_schema *schema)
{
    const char *comment = schema->data->comment;
    line.size -= line.size > 0 && line.data[line.size - 1] == '\r';
    return tn_line_is_blank(line) || (comment != NULL && line.data[0] == comment[0]);
}

/* The fast path of tn_delimited_parse: a line as most are, of slots as most are. False: any other;
 * nothing was appended, and whoever takes the slow path finds what is wrong. */
static bool parse_fast(tn_bytes line, const tn_schema *schema, const tn_head *head, tn_rows *rows)
{
    line.size -= line.size > 0 && line.data[line.size - 1] == '\r';
    if ((rows->private->keep & TN_ROWS_SIGNS) != 0 || line.size > TN_DELIMITER_MASKS_LINE_MAX ||
        tn_delimited_is_nothing(line, schema) ||
        (schema->quote != TN_QUOTE_NONE && memchr(line.data, '"', line.size) != NULL)) {
        return false;
    }
    uint16_t *place = tn_rows_places(rows, line.size);
    bool odd = true;
    uint32_t n = 0;
    if (place != NULL) {
        n = rows->private->marks->find(line.data, line.size, schema->delimiter, place + 1, &odd);
    }
    if (odd || n + 1 != head->n_columns ||
        !tn_token_vectors_reserve(&rows->private->lanes, schema->n_specs)) {
        return false;
    }
    bool grid = tn_rows_begin_grid(rows);
    if (!grid && tn_rows_begin(rows, line.size, NULL) != TN_OK) {
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
    tn_token_vectors_begin(&f.text, line.data, line.size);
    lay_all(&f);
    bool good = fast_row(&f) && (grid ? put_grid(&f) : fast_put_row(&f));
    if (!good) {
        tn_rows_rollback(rows);
    }
    return good;
}

/* One of data.null. */
static bool is_null_word(const taking *t, const char *text, size_t size)
{
    const tn_strs *null = &t->schema->data->null;
    for (uint32_t i = 0; i < null->n; i++) {
        if (strncmp(null->item[i], text, size) == 0 && null->item[i][size] == '\0') {
            return true;
        }
    }
    return false;
}

static inline bool is_null(const taking *t, const tn_span *span)
{
    if (!span->found || t->schema->empty_is_null) {
        return !span->found || (span->size == 0 && !span->quoted);
    }
    return !span->quoted && is_null_word(t, span->text, span->size);
}

/* Makes a fault of `token`, which lies in the span; the message points to it if it is in the line.
 */
static tn_status fault_in(const taking *t, const tn_slot_spec *spec, const tn_span *span,
                          tn_bytes token, tn_fault fault, tn_error *err)
{
    const tn_bytes found = token;
    const char *end = t->line.data + t->line.size;
    if (token.data == NULL || token.data < t->line.data || token.data > end) {
        token.data = t->line.data + span->at;
        token.size = token.size <= (size_t)(end - token.data) ? token.size : 0;
    }
    tn_status status = tn_record_location_fault(t->place, t->line, token, fault, err);
    tn_record_location_hint(t->schema, spec, found, fault, err);
    return status;
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

/* An item without text is no value, quoted or not, and neither is one of data.null. */
static bool is_no_item(const taking *t, const tn_slot_spec *spec, tn_bytes item)
{
    return spec->list != 0 &&
           (item.size == 0 || (!t->schema->empty_is_null && is_null_word(t, item.data, item.size)));
}

/* The x_j of the next value; NAN stays, for there is none. */
static tn_status next_x(const taking *t, const tn_slot_spec *spec, const tn_span *xs,
                        tn_bytes *x_list, float *x, tn_error *err)
{
    tn_bytes text;
    const bool none = isnan(*x);
    if (!next_value(x_list, spec->list, &text)) {
        return tn_record_location_fail(t->place, t->line, t->line.data + xs->at, err,
                                       "column '%s' has fewer values than '%s'", spec->values,
                                       spec->column);
    }
    *x = NAN;
    tn_fault fault = none ? TN_FAULT_NONE : tn_rows_read_x(spec, text.data, text.size, x);
    bool good = fault == TN_FAULT_NONE || (fault == TN_FAULT_NOT_FINITE && isnan(*x));
    return good ? TN_OK : fault_in(t, spec, xs, text, fault, err);
}

/* A list, beside the list of its x_j where the slot has one. */
static tn_status take_slot(const taking *t, uint32_t i, tn_error *err)
{
    const tn_slot_spec *spec = &t->schema->spec[i];
    const tn_columns *columns = t->schema->columns;
    const tn_span *span = &t->span[t->head->column[columns->spec[i]]];
    const tn_span *xs = spec->values != NULL ? &t->span[t->head->column[columns->values[i]]] : NULL;
    tn_bytes list = bytes_of(span);
    tn_bytes x_list = xs != NULL ? bytes_of(xs) : (tn_bytes){.failed = true};
    list.failed = is_null(t, span);
    x_list.failed = x_list.failed || is_null(t, xs);
    tn_bytes value;
    while (next_value(&list, spec->list, &value)) {
        float x = is_no_item(t, spec, value) ? NAN : 1;
        if (xs != NULL) {
            TN_TRY(next_x(t, spec, xs, &x_list, &x, err));
        }
        const uint32_t before = t->rows->n_entries;
        tn_fault fault = x - x != 0 /* not finite, and so absent */
                             ? TN_FAULT_NONE
                             : tn_rows_token(t->rows, spec, value.data, value.size, x);
        fault = fault == TN_FAULT_NONE ? tn_rows_keep_place(t->rows, spec, before, x) : fault;
        if (fault != TN_FAULT_NONE) {
            return fault_in(t, spec, span, value, fault, err);
        }
    }
    if (xs != NULL && next_value(&x_list, spec->list, &value)) {
        return tn_record_location_fail(t->place, t->line, t->line.data + xs->at, err,
                                       "column '%s' has more values than '%s'", spec->values,
                                       spec->column);
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
            return fault_in(t, NULL, &t->span[t->head->column[columns->label]], bytes_of(span),
                            fault, err);
        }
    }
    span = span_of(t, columns->weight);
    if (span != NULL && (fault = tn_rows_weight(t->rows, span->text, span->size)) != 0) {
        return fault_in(t, NULL, span, bytes_of(span), fault, err);
    }
    span = span_of(t, columns->group);
    if (span != NULL) {
        tn_rows_group_text(t->rows, span->text, span->size);
    }
    span = span_of(t, columns->record_id);
    if (span != NULL && (fault = tn_rows_id(t->rows, span->text, span->size)) != 0) {
        return fault_in(t, NULL, span, bytes_of(span), fault, err);
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
    tn_text *scratch = &t->rows->private->scratch;
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
        const char *what = *bad == '"'    ? "quote is not closed"
                           : *bad == '\r' ? "carriage return inside a line"
                                          : "text behind a closing quote";
        const bool may_go_on = *bad == '"' && t->schema->quote == TN_QUOTE_LINE;
        return tn_record_advise(
            tn_record_location_fail(t->place, t->line, bad, err, "%s", what),
            may_go_on ? "'data.quote: multiline' lets quoted text go on in the next line" : NULL,
            err);
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

/* Fields of a line without quotes and trimming, at most `max`; how many, 0: no memory. */
static uint32_t split_plain(const taking *t, tn_span *span, uint32_t max)
{
    const tn_bytes line = t->line;
    uint16_t *place = tn_rows_places(t->rows, line.size);
    bool odd;
    if (place == NULL) {
        return 0;
    }
    const tn_delimiter_masks *marks = t->rows->private->marks;
    uint32_t n = 1 + marks->find(line.data, line.size, t->schema->delimiter, place + 1, &odd);
    place[n] = (uint16_t)line.size;
    n = n < max ? n : max;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = (uint16_t)(place[i] + 1);
        span[i] = (tn_span){
            .text = line.data + from, .size = place[i + 1] - from, .at = from, .found = true};
    }
    return n;
}

/* Names the delimiter that a line of one field holds, and else who takes short lines. */
static tn_status too_few(const taking *t, uint32_t found, tn_error *err)
{
    static const char marks[] = ",\t;|";
    const char *mark = marks;
    tn_error fault = {0};
    while (*mark != '\0' && memchr(t->line.data, *mark, t->line.size) == NULL) {
        mark++;
    }
    tn_status status = tn_record_location_fail(t->place, t->line, t->line.data + t->line.size,
                                               &fault, "too few fields (expected %u, found %u)",
                                               t->head->n_columns - t->head->n_absent, found);
    if (found > 1 || *mark == '\0') {
        return tn_fail(err, status,
                       "%s\nhint: 'short_rows: pad' in 'data' takes what is missing for no value",
                       fault.text);
    }
    return tn_fail(err, status,
                   "%s\nhint: '%s' stands in the line, and format '%s' has another delimiter; "
                   "'tnet-data infer FILE' writes what reads it",
                   fault.text, *mark == '\t' ? "\\t" : (const char[]){*mark, '\0'},
                   t->schema->data->format);
}

static tn_status take_fields(taking *t, tn_error *err)
{
    const uint32_t n = t->head->n_columns;
    const uint32_t there = n - t->head->n_absent;
    uint32_t found = 0;
    struct rows_private *p = t->rows->private;
    bool room = tn_rows_grow(&p->span, 0, n + 1, sizeof *p->span, &p->spans_max);
    tn_span *span = p->span;
    bool plain = t->schema->plain_fields && t->line.size <= TN_DELIMITER_MASKS_LINE_MAX;
    if (room && plain) {
        found = split_plain(t, span, n + 1);
    }
    if (!room || (plain && found == 0)) {
        return tn_fail(err, TN_E_MEMORY, "no memory for the fields of a record");
    }
    if (!plain) {
        TN_TRY(split_quoted(t, span, &found, err));
    }
    if (found > there) {
        return tn_record_location_fail(t->place, t->line, t->line.data + span[there].at, err,
                                       "too many fields (expected %u)", there);
    }
    if (found < there && t->schema->data->short_rows == TN_ROWS_ERROR) {
        return too_few(t, found, err);
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
    return take_row(t, err);
}

/* Line breaks in quotes may be of two bytes; anywhere else a line has one '\r' at most. */
static tn_status clean(tn_bytes *line, const tn_schema *schema, const tn_record_location *place,
                       tn_error *err)
{
    if (schema->quote != TN_QUOTE_MULTILINE) {
        return tn_line_clean(line, place, err);
    }
    line->size -= line->size > 0 && line->data[line->size - 1] == '\r';
    const char *nul = line->size > 0 ? memchr(line->data, '\0', line->size) : NULL;
    return nul == NULL
               ? TN_OK
               : tn_record_location_fail(place, *line, nul, err, "binary data in a text format");
}

tn_status tn_delimited_parse(tn_bytes record, const tn_schema *schema,
                             const tn_record_location *place, tn_rows *rows, tn_error *err)
{
    TN_ASSERT(place->head != NULL);
    if (schema->quick_fields && parse_fast(record, schema, place->head, rows)) {
        return TN_OK;
    }
    taking t = {
        .schema = schema, .place = place, .line = record, .rows = rows, .head = place->head};
    TN_TRY(clean(&t.line, schema, place, err));
    if (tn_delimited_is_nothing(t.line, schema)) {
        return TN_END;
    }
    TN_TRY(tn_rows_begin(rows, t.line.size, err));
    return tn_record_end(t.line, place, take_line(&t, err), rows, err);
}
