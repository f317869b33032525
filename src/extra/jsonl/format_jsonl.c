/* format_jsonl.c - one JSON object a line; its members are columns.
 *
 *     {"label": 1, "user": {"id": 7, "tags": ["a", "b"]}, "price": 19.5, "note": null}
 *      label       user.id    user.tags: two values       price          no value
 *
 * First the whole line is checked and the members that something reads are found; then those become
 * a row. Members of objects within are columns by their dotted path. Nothing is copied but a text
 * with escapes and the path of a member within.
 *
 * NaN and Infinity, which are no JSON, are taken as Python writes them.
 */
#include "base/codec/utf8.h"
#include "base/core/number.h"
#include "io/format/format.h"
#include "io/rows/rows_parsing.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"

#include <math.h>
#include <string.h>

enum { DEPTH_MAX = 32, GUESSES = 256 };

/* A walk over one line, with its position `at`. */
typedef struct json_walk {
    const char *at;
    const char *end;
    tn_bytes line;
    const tn_record_location *place;
    const tn_schema *schema;
    tn_rows *rows;
    tn_span *span;      /* by name: the value, brackets and quotes included */
    tn_tf_shape *guess; /* GUESSES: the name of member i in the row before, and 1 */
    tn_text *path;      /* keys of the objects that are open, each with a dot */
    uint32_t n_members; /* members of the outer object so far */
    uint32_t depth;
    bool in_list; /* its objects have no columns */
} json_walk;

static tn_status scan_value(json_walk *w, tn_error *err) TN_MUST_USE;

static tn_status wrong(const json_walk *w, const char *at, const char *what, tn_error *err)
{
    return at >= w->end
               ? tn_record_location_fail(w->place, w->line, w->end, err,
                                         "the line ends within an object, %s: a record is one line",
                                         what)
               : tn_record_location_fail(w->place, w->line, at, err, "%s", what);
}

static inline void skip_blanks(json_walk *w)
{
    while (w->at < w->end && tn_is_blank(*w->at)) {
        w->at++;
    }
}

/* Returns whether a character ends a number or a word. */
static inline bool is_end(char c)
{
    static const bool ends[256] = {
        [' '] = true, ['\t'] = true, [','] = true, [']'] = true, ['}'] = true};
    return ends[(unsigned char)c];
}

static inline bool eat(json_walk *w, char c)
{
    bool there = w->at < w->end && *w->at == c;
    w->at += there;
    return there;
}

/* ---- the grammar ---- */

/* How many of the bytes at `p` are plain text: not a quote, a backslash, a control character or
 * beyond ASCII; eight at a time. */
static inline const char *skip_plain(const char *p, const char *end)
{
    const uint64_t high = TN_EACH_BYTE * 0x80;
    for (; end - p >= 8; p += 8) {
        const uint64_t x = tn_load_u64(p);
        const uint64_t quote = x ^ (TN_EACH_BYTE * '"');
        const uint64_t slash = x ^ (TN_EACH_BYTE * '\\');
        const uint64_t other =
            (((quote - TN_EACH_BYTE) & ~quote) | ((slash - TN_EACH_BYTE) & ~slash) |
             ((x - TN_EACH_BYTE * ' ') & ~x) | x) &
            high;
        if (other != 0) {
            return p + __builtin_ctzll(other) / 8;
        }
    }
    while (p < end && *p != '"' && *p != '\\' && *p >= ' ') {
        p++;
    }
    return p;
}

/* The code point of four hex digits; false: they are none. */
static bool read_code(const char *p, const char *end, uint32_t *out)
{
    uint64_t value = 0;
    bool good = end - p >= 4 && tn_read_hex(p, 4, &value) == TN_NUM_OK;
    *out = (uint32_t)value;
    return good;
}

/* Reads an escape, from its backslash, and returns the end of it; NULL: it is none. *code is the
 * character that it means. */
static const char *read_escape(const char *p, const char *end, uint32_t *code)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    uint32_t low = 0;
    const char *letter = p + 1 < end && p[1] != 0 ? strchr(letters, p[1]) : NULL;
    if (letter != NULL) {
        *code = (unsigned char)meant[letter - letters];
        return p + 2;
    }
    if (end - p < 6 || p[1] != 'u' || !read_code(p + 2, end, code)) {
        return NULL;
    }
    if (*code < 0xd800 || *code > 0xdfff) {
        return p + 6;
    }
    if (*code > 0xdbff || end - p < 12 || p[6] != '\\' || p[7] != 'u' ||
        !read_code(p + 8, end, &low) || low < 0xdc00 || low > 0xdfff) {
        return NULL;
    }
    *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    return p + 12;
}

/* Passes over a text, from its first quote to the character after its last. */
static tn_status scan_text(json_walk *w, tn_error *err)
{
    const char *p = w->at + 1;
    for (;;) {
        p = skip_plain(p, w->end);
        if (p == w->end) {
            return wrong(w, p, "in a text", err);
        }
        if (*p == '"') {
            w->at = p + 1;
            return TN_OK;
        }
        if (*p == '\\') {
            uint32_t code;
            const char *next = read_escape(p, w->end, &code);
            if (next == NULL) {
                return wrong(w, p, "unknown escape in a text", err);
            }
            p = next;
            continue;
        }
        size_t size = tn_utf8_size(p, (size_t)(w->end - p));
        if (size < 2) {
            return wrong(w, p, size == 0 ? "invalid UTF-8" : "control character in a text", err);
        }
        p += size;
    }
}

static bool eat_digits(json_walk *w)
{
    const char *from = w->at;
    while (w->at < w->end && (unsigned)(*w->at - '0') <= 9) {
        w->at++;
    }
    return w->at > from;
}

static bool eat_word(json_walk *w, const char *word)
{
    size_t size = strlen(word);
    bool there = size <= (size_t)(w->end - w->at) && memcmp(w->at, word, size) == 0;
    w->at += there ? size : 0;
    return there;
}

static bool eat_number(json_walk *w)
{
    (void)eat(w, '-');
    if (eat_word(w, "Infinity")) {
        return true;
    }
    bool good = eat(w, '0') || eat_digits(w);
    if (eat(w, '.')) {
        good = eat_digits(w) && good;
    }
    if (eat(w, 'e') || eat(w, 'E')) {
        (void)(eat(w, '-') || eat(w, '+'));
        good = eat_digits(w) && good;
    }
    return good && (w->at == w->end || is_end(*w->at));
}

static tn_status scan_list(json_walk *w, tn_error *err)
{
    const bool outside = !w->in_list;
    w->in_list = true;
    w->at++;
    skip_blanks(w);
    bool done = eat(w, ']');
    while (!done) {
        skip_blanks(w);
        TN_TRY(scan_value(w, err));
        skip_blanks(w);
        done = eat(w, ']');
        if (!done && !eat(w, ',')) {
            return wrong(w, w->at, "expected ',' or ']'", err);
        }
    }
    w->in_list = !outside;
    return TN_OK;
}

/* Unescapes the inside of a text to the end of `out`. */
static void add_unescaped(tn_text *out, tn_bytes inside)
{
    const char *p = inside.data;
    const char *end = p + inside.size;
    while (p < end) {
        const char *slash = memchr(p, '\\', (size_t)(end - p));
        tn_text_add(out, p, (size_t)((slash != NULL ? slash : end) - p));
        p = slash != NULL ? slash : end;
        if (slash != NULL) {
            char text[4];
            uint32_t code = 0;
            p = read_escape(p, end, &code);
            TN_ASSERT(p != NULL); /* the line was scanned */
            tn_text_add(out, text, (size_t)(tn_utf8_put(text, code) - text));
        }
    }
}

/* The name of a member, by its path; TN_NOWHERE: nothing reads it. */
static uint32_t find_name(const json_walk *w, tn_bytes key)
{
    const tn_columns *columns = w->schema->columns;
    const bool escaped = key.size > 0 && memchr(key.data, '\\', key.size) != NULL;
    if (w->path->size > 0 || escaped) {
        add_unescaped(w->path, key);
        return tn_columns_find(columns, tn_text_str(w->path), w->path->size);
    }
    const uint32_t name = tn_columns_find(columns, key.data, key.size);
    if (w->n_members <= GUESSES && name != TN_NOWHERE) {
        w->guess[w->n_members - 1].name = name + 1;
    }
    return name;
}

/* At a quote: the key of a member, which most often is that of the row before. */
static tn_status scan_key(json_walk *w, tn_bytes *key, uint32_t *name, tn_error *err)
{
    const tn_columns *columns = w->schema->columns;
    const bool outer = w->depth == 1;
    w->n_members += outer;
    const uint32_t guess = outer && w->n_members <= GUESSES ? w->guess[w->n_members - 1].name : 0;
    const size_t left = (size_t)(w->end - w->at);
    if (guess > 0) {
        const uint32_t size = columns->name_size[guess - 1];
        if (left > size + 1U && memcmp(w->at + 1, columns->name[guess - 1], size) == 0 &&
            w->at[size + 1] == '"') {
            w->at += size + 2;
            *name = guess - 1;
            return TN_OK; /* one that is read, and so no object */
        }
    }
    const char *from = w->at + 1;
    TN_TRY(scan_text(w, err));
    *key = (tn_bytes){from, (size_t)(w->at - 1 - from), false};
    *name = w->in_list ? TN_NOWHERE : find_name(w, *key);
    return TN_OK;
}

/* Passes over the value of a member; an object adds its key to the path, unless it is there. */
static tn_status scan_member_value(json_walk *w, size_t path, tn_bytes key, tn_error *err)
{
    if (*w->at == '{' && !w->in_list) {
        if (w->path->size == path) {
            add_unescaped(w->path, key);
        }
        tn_text_addc(w->path, '.');
        TN_TRY(tn_text_check(w->path, "the path of a member", err));
    }
    TN_TRY(scan_value(w, err));
    w->path->size = path;
    return tn_text_check(w->path, "the path of a member", err);
}

static tn_status scan_member(json_walk *w, tn_error *err)
{
    const size_t path = w->path->size;
    uint32_t name;
    tn_bytes key = {0};
    const char *from = w->at;
    if (w->at == w->end || *w->at != '"') {
        return wrong(w, w->at, "expected a key in quotes", err);
    }
    TN_TRY(scan_key(w, &key, &name, err));
    if (name != TN_NOWHERE && w->span[name].found) {
        return wrong(w, from, "a key stands twice", err);
    }
    skip_blanks(w);
    if (!eat(w, ':')) {
        return wrong(w, w->at, "expected ':' behind a key", err);
    }
    skip_blanks(w);
    const char *value = w->at;
    if (name != TN_NOWHERE && value < w->end && *value == '{') {
        return tn_record_location_fail(w->place, w->line, value, err,
                                       "column '%s' is an object, expected a value or a list",
                                       w->schema->columns->name[name]);
    }
    if (value == w->end) {
        return wrong(w, value, "expected a value", err);
    }
    TN_TRY(scan_member_value(w, path, key, err));
    if (name != TN_NOWHERE) {
        w->span[name] = (tn_span){.text = value,
                                  .size = (uint32_t)(w->at - value),
                                  .at = (uint32_t)(value - w->line.data),
                                  .found = true};
    }
    return TN_OK;
}

static tn_status scan_object(json_walk *w, tn_error *err)
{
    w->at++;
    skip_blanks(w);
    bool done = eat(w, '}');
    while (!done) {
        skip_blanks(w);
        TN_TRY(scan_member(w, err));
        skip_blanks(w);
        done = eat(w, '}');
        if (!done && !eat(w, ',')) {
            return wrong(w, w->at, "expected ',' or '}'", err);
        }
    }
    return TN_OK;
}

static tn_status scan_value(json_walk *w, tn_error *err)
{
    const char *from = w->at;
    const char c = (char)(from < w->end ? *from : 0);
    if (c == '"') {
        return scan_text(w, err);
    }
    if (c == '{' || c == '[') {
        if (++w->depth > DEPTH_MAX) {
            return tn_record_location_fail(w->place, w->line, from, err, "nested deeper than %d",
                                           DEPTH_MAX);
        }
        tn_status status = c == '{' ? scan_object(w, err) : scan_list(w, err);
        w->depth--;
        return status;
    }
    if (c == '-' || (unsigned)(c - '0') <= 9 || c == 'I') {
        return eat_number(w) ? TN_OK : wrong(w, from, "malformed number", err);
    }
    bool word =
        eat_word(w, "null") || eat_word(w, "true") || eat_word(w, "false") || eat_word(w, "NaN");
    return word ? TN_OK : wrong(w, from, "expected a value", err);
}

/* The whole line, one object. */
static tn_status scan_line(json_walk *w, tn_error *err)
{
    skip_blanks(w);
    if (*w->at != '{') {
        return wrong(w, w->at, "expected a JSON object", err);
    }
    TN_TRY(scan_value(w, err));
    skip_blanks(w);
    return w->at == w->end ? TN_OK : wrong(w, w->at, "something stands behind the object", err);
}

/* ---- from members to a row ---- */

/* The values of a column, which may be one. */
typedef struct json_items {
    const char *at; /* NULL: none is left */
    const char *end;
    bool list;
} json_items;

/* One value; `missing`: null. */
typedef struct json_item {
    tn_bytes text;
    bool missing;
    bool nested; /* a list or an object */
} json_item;

static bool is_null_word(const json_walk *w, tn_bytes text)
{
    const tn_strs *null = &w->schema->data->null;
    if (w->schema->empty_is_null) {
        return text.size == 0;
    }
    for (uint32_t i = 0; i < null->n; i++) {
        if (strlen(null->item[i]) == text.size &&
            memcmp(null->item[i], text.data, text.size) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns the end of a value that is no list and no object. */
static const char *behind(const char *p, const char *end)
{
    if (*p != '"') {
        while (p < end && !is_end(*p)) {
            p++;
        }
        return p;
    }
    for (p++; *p != '"'; p++) {
        p += *p == '\\';
    }
    return p + 1;
}

/* Reads the value in [from, next). Its text lasts until the next call. */
static json_item item_at(json_walk *w, const char *from, const char *next)
{
    json_item item = {.text = {from, 1, false}, .nested = *from == '[' || *from == '{'};
    if (item.nested) {
        return item;
    }
    item.missing = *from == 'n' || *from == 'N';
    const bool quoted = *from == '"';
    item.text = (tn_bytes){from + quoted, (size_t)(next - from) - (quoted ? 2U : 0U), false};
    if (quoted && item.text.size > 0 && memchr(item.text.data, '\\', item.text.size) != NULL) {
        tn_text *text = &w->rows->private->scratch;
        tn_text_clear(text);
        add_unescaped(text, item.text);
        item.text = (tn_bytes){tn_text_str(text), text->size, text->failed};
    }
    return item;
}

static json_items items_of(const json_walk *w, uint32_t name)
{
    const tn_span *span = &w->span[name];
    json_items items = {NULL, NULL, false};
    if (span->found) {
        items.list = span->text[0] == '[';
        items.at = span->text + items.list;
        items.end = span->text + span->size;
    }
    return items;
}

static bool next_item(json_walk *w, json_items *items, json_item *out)
{
    while (items->list && items->at < items->end &&
           (tn_is_blank(*items->at) || *items->at == ',')) {
        items->at++;
    }
    if (items->at == NULL || items->at == items->end || (items->list && *items->at == ']')) {
        return false;
    }
    const char *from = items->at;
    items->at = items->list && *from != '[' && *from != '{' ? behind(from, items->end) : items->end;
    *out = item_at(w, from, items->at);
    if (!items->list) {
        out->missing = out->missing || (!out->nested && is_null_word(w, out->text));
    }
    return true;
}

static tn_status fault_in(const json_walk *w, const tn_slot_spec *spec, uint32_t name,
                          tn_bytes token, tn_fault fault, tn_error *err)
{
    const tn_bytes found = token;
    const tn_span *span = &w->span[name];
    if (token.size == 0 || token.data < w->line.data || token.data > w->end) { /* unescaped */
        token = span->found ? (tn_bytes){span->text, span->size, false}
                            : (tn_bytes){w->line.data, 0, false};
    }
    tn_status status = tn_record_location_fault(w->place, w->line, token, fault, err);
    tn_record_location_hint(w->schema, spec, found, fault, err);
    return status;
}

static tn_status refuse_nested(const json_walk *w, uint32_t name, const char *at, bool list,
                               tn_error *err)
{
    return tn_record_location_fail(
        w->place, w->line, at, err, "column '%s' holds %s", w->schema->columns->name[name],
        list ? "a list or an object within a list" : "a list, expected one value");
}

/* The x_j of the next value. */
static tn_status next_x(json_walk *w, uint32_t i, json_items *xs, float *x, tn_error *err)
{
    const tn_slot_spec *spec = &w->schema->spec[i];
    const uint32_t name = w->schema->columns->values[i];
    json_item item = {.missing = true};
    if (!next_item(w, xs, &item)) {
        return tn_record_location_fail(w->place, w->line, NULL, err,
                                       "column '%s' has fewer values than '%s'", spec->values,
                                       spec->column);
    }
    if (item.nested) {
        return refuse_nested(w, name, item.text.data, true, err);
    }
    *x = NAN;
    tn_fault fault = TN_FAULT_NONE;
    if (!item.missing || !spec->non_finite_absent) {
        fault = tn_rows_read_x(spec, item.text.data, item.text.size, x);
    }
    return fault == TN_FAULT_NONE ? TN_OK : fault_in(w, spec, name, item.text, fault, err);
}

static tn_status take_slot(json_walk *w, uint32_t i, tn_error *err)
{
    const tn_slot_spec *spec = &w->schema->spec[i];
    const tn_columns *columns = w->schema->columns;
    json_items items = items_of(w, columns->spec[i]);
    json_items xs = {NULL, NULL, false};
    json_item item = {.missing = true};
    if (spec->values != NULL) {
        xs = items_of(w, columns->values[i]);
    }
    while (next_item(w, &items, &item)) {
        float x = 1;
        const uint32_t before = w->rows->n_entries;
        tn_fault fault = TN_FAULT_NONE;
        if (item.nested) {
            return refuse_nested(w, columns->spec[i], item.text.data, true, err);
        }
        if (spec->values != NULL && (items.list || !item.missing)) {
            TN_TRY(next_x(w, i, &xs, &x, err));
        }
        if (item.text.failed) {
            fault = TN_FAULT_MEMORY;
        } else if (!item.missing && isfinite(x)) {
            fault = tn_rows_token(w->rows, spec, item.text.data, item.text.size, x);
        }
        if (spec->sequence != NULL && fault == TN_FAULT_NONE && (items.list || !item.missing)) {
            fault = tn_rows_keep_place(w->rows, spec, before, x);
        }
        if (fault != TN_FAULT_NONE) {
            return fault_in(w, spec, columns->spec[i], item.text, fault, err);
        }
    }
    if (spec->values != NULL && next_item(w, &xs, &item) && !item.missing) {
        return tn_record_location_fail(
            w->place, w->line, w->line.data + w->span[columns->values[i]].at, err,
            "column '%s' has more values than '%s'", spec->values, spec->column);
    }
    return TN_OK;
}

/* The one value of a column that only the row reads; *found: it is there. */
static tn_status one_value(json_walk *w, uint32_t name, tn_bytes *out, bool *found, tn_error *err)
{
    json_item item = {.missing = true};
    json_items items = {NULL, NULL, false};
    if (name != TN_NOWHERE) {
        items = items_of(w, name);
    }
    if (items.list) {
        return refuse_nested(w, name, w->span[name].text, false, err);
    }
    *found = next_item(w, &items, &item) && !item.missing;
    *out = *found ? item.text : (tn_bytes){"", 0, false};
    return out->failed ? tn_fail(err, TN_E_MEMORY, "no memory for a text") : TN_OK;
}

static tn_status take_row(json_walk *w, tn_error *err)
{
    const tn_columns *columns = w->schema->columns;
    tn_fault fault = TN_FAULT_NONE;
    tn_bytes text = {"", 0, false};
    bool found = false;
    TN_TRY(one_value(w, columns->label, &text, &found, err));
    if (columns->label != TN_NOWHERE) {
        fault = tn_rows_label(w->rows, text.data, text.size);
        if (fault != TN_FAULT_NONE) {
            return fault_in(w, NULL, columns->label, text, fault, err);
        }
    }
    TN_TRY(one_value(w, columns->weight, &text, &found, err));
    if (found && (fault = tn_rows_weight(w->rows, text.data, text.size)) != TN_FAULT_NONE) {
        return fault_in(w, NULL, columns->weight, text, fault, err);
    }
    TN_TRY(one_value(w, columns->group, &text, &found, err));
    if (found) {
        tn_rows_group_text(w->rows, text.data, text.size);
    }
    TN_TRY(one_value(w, columns->record_id, &text, &found, err));
    if (found && (fault = tn_rows_id(w->rows, text.data, text.size)) != TN_FAULT_NONE) {
        return fault_in(w, NULL, columns->record_id, text, fault, err);
    }
    for (uint32_t i = 0; i < w->schema->n_specs; i++) {
        TN_TRY(take_slot(w, i, err));
    }
    return TN_OK;
}

static tn_status take_line(json_walk *w, tn_error *err)
{
    struct rows_private *p = w->rows->private;
    const uint32_t n = w->schema->columns->n;
    if (!tn_rows_grow(&p->span, 0, n, sizeof *p->span, &p->spans_max) ||
        !tn_rows_grow(&p->shape, 0, GUESSES, sizeof *p->shape, &p->shapes_max)) {
        return tn_fail(err, TN_E_MEMORY, "no memory for the members of a record");
    }
    w->span = p->span;
    w->guess = p->shape;
    w->path = &p->scratch;
    tn_text_clear(w->path);
    for (uint32_t i = 0; i < n; i++) {
        w->span[i].found = false;
    }
    TN_TRY(scan_line(w, err));
    return take_row(w, err);
}

static tn_status jsonl_parse(tn_bytes record, const tn_schema *schema,
                             const tn_record_location *place, tn_rows *rows, tn_error *err)
{
    json_walk w = {.line = record, .place = place, .schema = schema, .rows = rows};
    TN_TRY(tn_line_begin(&w.line, place, rows, err));
    w.at = w.line.data;
    w.end = w.line.data + w.line.size;
    return tn_record_end(w.line, place, take_line(&w, err), rows, err);
}

static const char *const jsonl_data[] = {"null", "group", "record_id", NULL};

extern const tn_format tn_format_jsonl;
const tn_format tn_format_jsonl = {
    .name = "jsonl",
    .help = "one JSON object a line; keys name the columns, lists hold several values",
    .data_options = jsonl_data,
    .cut = tn_line_cut,
    .resync = tn_line_resync,
    .parse = jsonl_parse,
};
