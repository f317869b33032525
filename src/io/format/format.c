/* format.c - the list of formats, and the lines that text formats share. */
#include "io/format/format.h"

#include "base/core/number.h"
#include "base/core/text.h"
#include "config/diag.h"
#include "config/fieldtree.h"
#include "config/tree.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TN_FORMAT(name) extern const tn_format tn_format_##name;
#include "io/format/formats.def"
#undef TN_FORMAT

const tn_format *const tn_all_formats[] = {
#define TN_FORMAT(name) &tn_format_##name,
#include "io/format/formats.def"
#undef TN_FORMAT
    NULL,
};

const tn_format *tn_format_find(const char *name)
{
    for (uint32_t i = 0; tn_all_formats[i] != NULL; i++) {
        if (strcmp(tn_all_formats[i]->name, name) == 0) {
            return tn_all_formats[i];
        }
    }
    return NULL;
}

tn_status tn_format_compression(const tn_format *f, uint32_t asked, uint32_t *out, tn_error *err)
{
    const bool container = f != NULL && f->container != NULL;
    if (container && asked > TN_COMPRESSION_NONE) {
        return tn_fail(err, TN_E_CONFIG,
                       "files of format '%s' are compressed within, and by nothing else", f->name);
    }
    *out = container ? TN_COMPRESSION_CONTAINER : asked;
    return TN_OK;
}

const char *tn_format_preset(const char *name)
{
    const tn_format *format = tn_format_find(name);
    return format != NULL ? format->preset : NULL;
}

bool tn_format_reads(const char *const *options, const char *key)
{
    while (options != NULL && *options != NULL && strcmp(*options, key) != 0) {
        options++;
    }
    return options != NULL && *options != NULL;
}

/* ---- options that a format does not read ---- */

static const char *const *options_of(const tn_format *f, bool of_slot)
{
    return of_slot ? f->slot_options : f->data_options;
}

/* The value of an option is another than its default. */
static bool is_changed(tn_arena *arena, const tn_field *f, const tn_tree *given)
{
    const tn_tree *usual = tn_field_value(arena, f, NULL);
    tn_text mine = {0};
    tn_text other = {0};
    if (tn_tree_is_null(given) || tn_tree_is_null(usual)) {
        return !tn_tree_is_null(given);
    }
    tn_tree_print_flow(&mine, given);
    tn_tree_print_flow(&other, usual);
    bool changed = strcmp(tn_text_str(&mine), tn_text_str(&other)) != 0;
    tn_text_done(&mine);
    tn_text_done(&other);
    return changed;
}

/* Refuses the options of a map that only other formats read; `section` is for messages. */
static void check_options(const tn_binder *b, const char *section, bool of_slot,
                          const tn_format *format, const tn_tree *map)
{
    bool is_map = map != NULL && map->kind == TN_TREE_MAP;
    for (const tn_tree *t = is_map ? map->first : NULL; t != NULL; t = t->next) {
        const tn_field *f = tn_field_find(of_slot ? tn_slot_fields : tn_data_fields, t->key);
        tn_text readers = {0};
        if (f == NULL || tn_format_reads(options_of(format, of_slot), f->key)) {
            continue;
        }
        for (const tn_format *const *other = tn_all_formats; *other != NULL; other++) {
            if (tn_format_reads(options_of(*other, of_slot), f->key)) {
                tn_text_addf(&readers, "%s%s", readers.size > 0 ? ", " : "", (*other)->name);
            }
        }
        if (readers.size > 0 && is_changed(b->arena, f, t)) {
            tn_diag_error(b->diag, &t->key_at, "'%s.%s' means nothing for format '%s', only for %s",
                          section, f->key, format->name, tn_text_str(&readers));
        }
        tn_text_done(&readers);
    }
}

static void report_unknown(const tn_binder *b, const tn_tree *map, const char *format)
{
    const char *names[sizeof tn_all_formats / sizeof(void *)];
    uint32_t n = 0;
    const tn_tree *at = tn_tree_get(map, "format");
    for (const tn_format *const *f = tn_all_formats; *f != NULL; f++) {
        names[n++] = (*f)->name;
    }
    tn_diag_unknown(b->diag, at != NULL ? &at->at : NULL, "format", format, names, n);
}

void tn_format_check_data(const tn_binder *b, const tn_tree *tree, const tn_data_opts *data)
{
    const tn_format *format = data->format != NULL ? tn_format_find(data->format) : NULL;
    if (format != NULL) {
        check_options(b, b->path, false, format, tree);
    } else if (data->format != NULL) {
        report_unknown(b, tree, data->format);
    }
}

void tn_format_check_slots(const tn_binder *b, const char *format, const tn_tables *slots)
{
    const tn_format *found = format != NULL ? tn_format_find(format) : NULL;
    for (uint32_t i = 0; found != NULL && slots->tree != NULL && i < slots->n; i++) {
        check_options(b, "slots", true, found, slots->tree[i]);
        const tn_slot_opts *o = (const tn_slot_opts *)slots->item + i;
        if (found->pairs && o->type == TN_TYPE_VECTOR) {
            tn_diag_error(b->diag, &slots->tree[i]->at,
                          "slot '%s' is a vector, and records of format '%s' have none", o->name,
                          format);
        }
    }
}

/* ---- lines ---- */

tn_status tn_line_take(tn_bytes *window, const char *end, bool last, const tn_schema *schema,
                       tn_bytes *record, tn_error *err)
{
    uint64_t max = schema->data->record_bytes_max;
    size_t size = end != NULL ? (size_t)(end - window->data) : window->size;
    if (size > max) {
        return tn_fail(err, TN_E_LIMIT, "record longer than record_bytes_max (%" PRIu64 ")", max);
    }
    if (end == NULL && (!last || size == 0)) {
        return TN_END;
    }
    *record = (tn_bytes){window->data, size, false};
    size_t taken = size + (end != NULL);
    window->data += taken;
    window->size -= taken;
    return TN_OK;
}

tn_status tn_line_cut(tn_bytes *window, bool last, const tn_schema *schema, tn_bytes *record,
                      tn_error *err)
{
    const char *end = window->size > 0 ? memchr(window->data, '\n', window->size) : NULL;
    return tn_line_take(window, end, last, schema, record, err);
}

size_t tn_line_resync(tn_bytes window, bool last, const tn_schema *schema, bool *found)
{
    (void)schema;
    const char *end = window.size > 0 ? memchr(window.data, '\n', window.size) : NULL;
    *found = end != NULL || last;
    if (end == NULL) {
        return window.size;
    }
    return (size_t)(end - window.data) + 1;
}

tn_status tn_line_clean(tn_bytes *line, const tn_record_location *place, tn_error *err)
{
    if (line->size == 0) {
        return TN_OK;
    }
    const char *nul = memchr(line->data, '\0', line->size);
    if (nul != NULL) {
        return tn_record_location_fail(place, *line, nul, err, "binary data in a text format");
    }
    const char *cr = memchr(line->data, '\r', line->size);
    if (cr == line->data + line->size - 1) {
        line->size--;
    } else if (cr != NULL) {
        return tn_record_location_fail(place, *line, cr, err, "carriage return inside a line");
    }
    return TN_OK;
}

bool tn_line_is_blank(tn_bytes line)
{
    for (size_t i = 0; i < line.size; i++) {
        if (!tn_is_blank(line.data[i])) {
            return false;
        }
    }
    return true;
}

tn_status tn_line_begin(tn_bytes *line, const tn_record_location *place, tn_rows *rows,
                        tn_error *err)
{
    TN_TRY(tn_line_clean(line, place, err));
    return tn_line_is_blank(*line) ? TN_END : tn_rows_begin(rows, line->size, err);
}

/* ---- faults in data, with their place, line and a caret ---- */

enum { SHOWN_MAX = 80, FOUND_MAX = 40, MESSAGE_MAX = 512 };

static const char *const fault_text[] = {
    [TN_FAULT_NONE] = "no fault",
    [TN_FAULT_ID] = "expected a decimal integer",
    [TN_FAULT_ID_RANGE] = "integer larger than 18446744073709551615",
    [TN_FAULT_INT] = "expected an integer",
    [TN_FAULT_INT_RANGE] = "integer beyond 64 bits",
    [TN_FAULT_HEX] = "expected 1 to 16 hex digits",
    [TN_FAULT_FLOAT] = "expected a number",
    [TN_FAULT_FLOAT_RANGE] = "number too large for a float",
    [TN_FAULT_NOT_FINITE] = "number is not finite",
    [TN_FAULT_LABEL] = "expected a label",
    [TN_FAULT_NO_LABEL] = "the label is missing",
    [TN_FAULT_WEIGHT] = "expected a weight from 0 to 1048576",
    [TN_FAULT_VALUES] = "more than 1048576 values in a row",
    [TN_FAULT_TWO_VALUES] = "a second value for a number",
    [TN_FAULT_DUPLICATE] = "a value stands twice in its slot",
    [TN_FAULT_UNEVEN] = "lists of one sequence have several lengths",
    [TN_FAULT_WIDTH] = "a vector of another length",
    [TN_FAULT_DATE] =
        "expected a date: YYMMDDHH, unix seconds, or 2026-11-29 with or without a time",
    [TN_FAULT_BASE] = "index 0 with index_base 1",
    [TN_FAULT_X_RANGE] = "value too large to train on (at most 1e18)",
    [TN_FAULT_SUM] = "a sum of equal keys is too large to train on (at most 1e18)",
    [TN_FAULT_MEMORY] = "no memory for parsed rows",
};

/* Appends `size` bytes as a terminal may show them. */
static void add_shown(char *out, size_t room, const char *bytes, size_t size)
{
    size_t used = strlen(out);
    for (size_t i = 0; i < size && used + 5 < room; i++) {
        unsigned char c = (unsigned char)bytes[i];
        bool shown = (c >= ' ' && c < 0x7f) || c == '\t';
        used += (size_t)snprintf(out + used, room - used, shown ? "%c" : "\\x%02x", c);
    }
}

/* The line around `at`, and a caret below. */
static void add_line(char *out, size_t room, tn_bytes record, size_t at)
{
    size_t from = at > SHOWN_MAX / 2 ? at - SHOWN_MAX / 2 : 0;
    size_t size = record.size - from < SHOWN_MAX ? record.size - from : SHOWN_MAX;
    size_t used = strlen(out);
    (void)snprintf(out + used, room - used, "\n  ");
    size_t head = strlen(out);
    add_shown(out, room, record.data + from, at - from);
    char under[4 * SHOWN_MAX + 1];
    size_t n = 0;
    for (const char *c = out + head; *c != '\0'; c++) {
        under[n++] = *c == '\t' ? '\t' : ' ';
    }
    under[n] = '\0';
    add_shown(out, room, record.data + at, from + size - at);
    used = strlen(out);
    (void)snprintf(out + used, room - used, "\n  %s^", under);
}

tn_status tn_record_location_fail(const tn_record_location *place, tn_bytes record, const char *at,
                                  tn_error *err, const char *fmt, ...)
{
    if (err == NULL) {
        return TN_E_DATA;
    }
    char message[MESSAGE_MAX];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    if (place->line == 0) {
        return tn_fail(err, TN_E_DATA, "%s:@%" PRIu64 ": error: %s", place->source, place->offset,
                       message);
    }
    size_t col = at != NULL ? (size_t)(at - record.data) : 0;
    TN_ASSERT(col <= record.size);
    char line[5 * SHOWN_MAX * 2] = "";
    add_line(line, sizeof line, record, col);
    return tn_fail(err, TN_E_DATA, "%s:%" PRIu64 ":%zu: error: %s%s", place->source, place->line,
                   col + 1, message, line);
}

tn_status tn_record_location_fault(const tn_record_location *place, tn_bytes record, tn_bytes token,
                                   tn_fault fault, tn_error *err)
{
    if (fault == TN_FAULT_MEMORY) {
        return tn_fail(err, TN_E_MEMORY, "%s", fault_text[fault]);
    }
    char found[4 * FOUND_MAX + 8] = "";
    bool all = token.size <= FOUND_MAX;
    size_t size = all ? token.size : FOUND_MAX;
    add_shown(found, sizeof found, token.data, size);
    return tn_record_location_fail(place, record, token.data, err, "%s, found \"%s%s\"",
                                   fault_text[fault], found, all ? "" : "..");
}

static void hint_label(const tn_label_rule *rule, bool is_number, char *out, size_t room)
{
    if (rule->n_values > 0) {
        (void)snprintf(out, room, "\nhint: name it, too, in 'values' of data.label");
        return;
    }
    if (rule->target > TN_TARGET_SIDE) {
        (void)snprintf(out, room, "\nhint: labels of this loss are numbers within +-%g",
                       TN_LABEL_MAX);
        return;
    }
    char column[MESSAGE_MAX] = "";
    if (strcmp(rule->column, "label") != 0) {
        (void)snprintf(column, sizeof column, "column: %s, ", rule->column);
    }
    (void)snprintf(out, room, "\nhint: 'label: {%s%s", column,
                   is_number
                       ? "threshold: T}' makes numbers above T clicks; losses of numbers take "
                         "them as they are: tnet-train --list-losses"
                       : "values: {TEXT: 1, OTHER: 0}}' says which texts are clicks");
}

tn_status tn_record_advise(tn_status fault, const char *hint, tn_error *err)
{
    if (err != NULL && hint != NULL) {
        const size_t used = strlen(err->text);
        (void)snprintf(err->text + used, sizeof err->text - used, "\nhint: %s", hint);
    }
    return fault;
}

const char *const tn_missing_words[TN_MISSING_WORDS] = {
    "NA",   "na",   "N/A",     "n/a",     "NULL",    "null",    "Null",    "None",
    "none", "NONE", "NaN",     "nan",     "NAN",     "\\N",     "?",       "<NA>",
    "NaT",  "nil",  "#N/A",    "(null)",  "-",       "--",      ".",       "missing",
    "n.a.", "N.A.", "Missing", "MISSING", "unknown", "Unknown", "UNKNOWN", "undefined",
};

uint32_t tn_missing_word(const char *text, size_t size)
{
    uint32_t i = 0;
    while (i < TN_MISSING_WORDS &&
           (strlen(tn_missing_words[i]) != size || memcmp(tn_missing_words[i], text, size) != 0)) {
        i++;
    }
    return i;
}

/* Adds a hint to the fault of a token that no slot of this type takes. */
static void hint_slot(const tn_schema *schema, const tn_slot_spec *spec, tn_bytes token,
                      tn_fault fault, char *out, size_t room)
{
    int64_t whole;
    double number;
    const tn_format *format = tn_format_find(schema->data->format);
    const bool is_number =
        token.size > 0 && tn_read_f64(token.data, token.size, &number) == TN_NUM_OK;
    const bool is_whole = is_number && tn_read_i64(token.data, token.size, &whole) == TN_NUM_OK;
    const uint32_t missing = tn_missing_word(token.data, token.size);
    TN_ASSERT(format != NULL);
    if (spec->width > 0) {
        const bool lacks = spec->list == 0 && tn_format_reads(format->data_options, "list");
        if (lacks) {
            (void)snprintf(out, room, "\nhint: 'list' of slot '%s' is the byte between its numbers",
                           spec->name);
        }
    } else if (fault == TN_FAULT_NOT_FINITE) {
        (void)snprintf(out, room,
                       "\nhint: slot '%s' with 'non_finite: absent' takes it for no value",
                       spec->name);
    } else if (missing < TN_MISSING_WORDS && tn_format_reads(format->data_options, "null")) {
        (void)snprintf(out, room, "\nhint: 'null: [\"\", \"%s\"]' in 'data' takes it for no value",
                       tn_missing_words[missing]);
    } else {
        const bool in_range = fault == TN_FAULT_ID || fault == TN_FAULT_INT;
        const char *type = is_whole && in_range ? "int" : is_number && in_range ? "float" : "str";
        (void)snprintf(out, room, "\nhint: slot '%s' with 'type: %s' takes %s", spec->name, type,
                       *type != 's' ? "such numbers" : "any text");
    }
}

void tn_record_location_hint(const tn_schema *schema, const tn_slot_spec *spec, tn_bytes token,
                             tn_fault fault, tn_error *err)
{
    if (err == NULL) {
        return;
    }
    double number;
    const size_t used = strlen(err->text);
    char *out = err->text + used;
    const size_t room = sizeof err->text - used;
    const tn_label_rule *label = spec != NULL ? spec->label : NULL; /* the rule of a task's label */
    if (spec != NULL && label == NULL && !spec->weighs &&
        (fault == TN_FAULT_ID || fault == TN_FAULT_ID_RANGE || fault == TN_FAULT_INT ||
         fault == TN_FAULT_INT_RANGE || (fault == TN_FAULT_FLOAT && spec->type == TN_SIGN_FLOAT) ||
         fault == TN_FAULT_NOT_FINITE)) {
        hint_slot(schema, spec, token, fault, out, room);
    } else if (fault == TN_FAULT_LABEL || (label != NULL && fault == TN_FAULT_FLOAT)) {
        hint_label(label != NULL ? label : schema->label,
                   token.size > 0 && tn_read_f64(token.data, token.size, &number) == TN_NUM_OK, out,
                   room);
    }
}

/* Fails for a rule of a whole slot, which tn_rows_end found broken. */
tn_status tn_record_broken_rule(const tn_record_location *place, tn_bytes record,
                                const tn_rows *rows, const tn_slot_spec *spec, tn_fault fault,
                                tn_error *err)
{
    if (fault == TN_FAULT_MEMORY) {
        return tn_fail(err, TN_E_MEMORY, "%s", fault_text[fault]);
    }
    TN_ASSERT(spec != NULL);
    tn_text why = {0};
    tn_rows_explain(rows, spec, fault, &why);
    if (why.size == 0) {
        tn_text_addf(&why, "%s in slot '%s'",
                     fault == TN_FAULT_DUPLICATE ? "a value stands twice" : fault_text[fault],
                     spec->name);
    } else if (fault == TN_FAULT_UNEVEN) {
        tn_text_adds(&why, "\nhint: 'uneven: cut' of the sequence cuts them to the shortest");
    }
    const tn_status status =
        tn_record_location_fail(place, record, NULL, err, "%s", tn_text_str(&why));
    tn_text_done(&why);
    return status;
}

tn_status tn_record_end(tn_bytes record, const tn_record_location *place, tn_status status,
                        tn_rows *rows, tn_error *err)
{
    const tn_slot_spec *spec = NULL;
    tn_fault fault = status == TN_OK ? tn_rows_end(rows, &spec) : TN_FAULT_NONE;
    if (fault != TN_FAULT_NONE) {
        status = tn_record_broken_rule(place, record, rows, spec, fault, err);
    }
    if (status != TN_OK) {
        tn_rows_rollback(rows);
    }
    return status;
}

tn_bytes tn_record_location_reason(const char *text)
{
    static const char mark[] = ": error: ";
    const char *from = strstr(text, mark);
    from = from != NULL ? from + sizeof mark - 1 : text;
    size_t size = 0;
    while (from[size] != '\0' && from[size] != '\n' && from[size] != '\'' && from[size] != '"' &&
           from[size] != '(' && from[size] != ',') {
        size++;
    }
    while (size > 0 && from[size - 1] == ' ') {
        size--;
    }
    return (tn_bytes){from, size, false};
}
