/* column_discovery.c - the format and the columns of a file, from its first bytes. */
#include "extra/inspect/column_discovery.h"

#include "base/codec/json.h"
#include "base/codec/proto.h"
#include "base/codec/utf8.h"
#include "base/core/arena.h"
#include "base/core/number.h"
#include "base/math/crc32c.h"
#include "config/tree.h"
#include "io/format/delimited.h"
#include "io/read/fileset.h"
#include "io/schema/dataopts.h"
#include "io/source/source.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { RECORDS_MAX = 1000, LOOK_LINES = 50, FRAME_HEAD = 12, FRAME_BYTES = 16 };

/* The columns so far. */
typedef struct finding {
    tn_discovery *out;
    tn_discovery_column *column; /* TN_SLOTS_MAX */
    tn_arena *arena;
    const char *delimiter; /* csv, tsv */
    bool too_many;
} finding;

static bool is_delimited(const char *format)
{
    return strcmp(format, "csv") == 0 || strcmp(format, "tsv") == 0;
}

/* Fields of a line are columns each, whatever they hold; members and features are in many
 * records. */
static void add_column(finding *f, const char *name, size_t size, const char *type)
{
    const bool text = is_delimited(f->out->format);
    for (uint32_t i = 0; !text && i < f->out->n; i++) {
        const char *known = f->column[i].name;
        if (strncmp(known, name, size) == 0 && known[size] == '\0') {
            return;
        }
    }
    f->too_many = f->too_many || f->out->n == TN_SLOTS_MAX;
    if (!f->too_many && (text || size > 0)) {
        f->column[f->out->n] = (tn_discovery_column){
            .name = tn_tree_text(f->arena, name, size), .type = type, .place = f->out->n};
        f->out->n++;
    }
}

/* Takes the first line off; false: there is none, or its end is not there. */
static bool next_line(tn_bytes *head, bool whole, tn_bytes *line)
{
    const char *end = head->size > 0 ? memchr(head->data, '\n', head->size) : NULL;
    const size_t size = end != NULL ? (size_t)(end - head->data) : head->size;
    if (head->size == 0 || (end == NULL && !whole)) {
        return false;
    }
    *line = (tn_bytes){head->data, size, false};
    head->data += size + (end != NULL);
    head->size -= size + (end != NULL);
    line->size -= size > 0 && line->data[size - 1] == '\r';
    return true;
}

static bool is_frame(tn_bytes head)
{
    return head.size >= FRAME_HEAD &&
           tn_crc_mask(tn_crc32c(0, head.data, 8)) == tn_load_u32(head.data + 8);
}

static const char *word_at(const tn_tree *data, const char *key)
{
    const tn_tree *t = tn_tree_get(data, key);
    return t != NULL && t->kind == TN_TREE_SCALAR ? t->text : NULL;
}

/* "1 3:1 7:.5" has one colon in its last pair, "1 0:3:1" two; 0: it is no line of pairs. */
static uint32_t colons_of(tn_bytes line)
{
    uint32_t n = 0;
    if (line.size == 0 || memchr(line.data, ' ', line.size) == NULL) {
        return 0;
    }
    for (size_t i = 0; i < line.size; i++) {
        if (line.data[i] == '\0' || strchr("0123456789.:eE+- qid", line.data[i]) == NULL) {
            return 0;
        }
        n = line.data[i] == ' ' && i + 1 < line.size ? 0 : n + (line.data[i] == ':');
    }
    return n;
}

/* "1 'tag|site a b |ad c": no letters in front of the first bar but those of a tag, and a name
 * that touches a bar, or one bar alone. */
static bool is_vw(tn_bytes line)
{
    const char *end = line.data + line.size;
    const char *bar = line.size > 0 ? memchr(line.data, '|', line.size) : NULL;
    size_t before = bar != NULL ? (size_t)(bar - line.data) : 0;
    const char *tag = before > 0 ? memchr(line.data, '\'', before) : NULL;
    before = tag != NULL ? (size_t)(tag - line.data) : before;
    for (size_t i = 0; i < before; i++) {
        if (line.data[i] == '\0' || strchr("0123456789.eE+- ", line.data[i]) == NULL) {
            return false;
        }
    }
    return bar != NULL && before > 0 && line.data[before - 1] == ' ' && bar + 1 < end &&
           (bar[1] != ' ' || memchr(bar + 1, '|', (size_t)(end - bar - 1)) == NULL);
}

/* Counts `mark` in a line, outside of quotes. */
static uint32_t marks_of(tn_bytes line, char mark)
{
    uint32_t n = 0;
    bool quoted = false;
    for (size_t i = 0; i < line.size; i++) {
        quoted = quoted != (line.data[i] == '"');
        n += !quoted && line.data[i] == mark;
    }
    return n;
}

/* A comment or an empty line says nothing of fields. */
static bool is_passed_over(tn_bytes line, const char *comment)
{
    return tn_line_is_blank(line) || (comment != NULL && line.data[0] == comment[0]);
}

/* Returns the first mark that is in the first line, and as often in the next ones; else the first
 * that is in the first line. NULL: none is. */
static const char *delimiter_of(tn_bytes head, bool whole, const char *comment)
{
    static const char *const marks[] = {"\t", ",", ";", "|", "\x01"};
    enum { N_MARKS = sizeof marks / sizeof marks[0] };
    uint32_t in_first[N_MARKS] = {0};
    bool steady[N_MARKS] = {false};
    tn_bytes line;
    uint32_t n = 0;
    while (n < LOOK_LINES && next_line(&head, whole, &line)) {
        const bool look = !is_passed_over(line, comment);
        for (uint32_t i = 0; look && i < N_MARKS; i++) {
            const uint32_t found = marks_of(line, marks[i][0]);
            in_first[i] = n == 0 ? found : in_first[i];
            steady[i] = n == 0 ? found > 0 : steady[i] && found == in_first[i];
        }
        n += look;
    }
    const char *best = NULL;
    for (uint32_t i = N_MARKS; i-- > 0;) {
        best = in_first[i] > 0 ? marks[i] : best;
    }
    for (uint32_t i = N_MARKS; i-- > 0;) {
        best = steady[i] ? marks[i] : best;
    }
    return best;
}

/* Returns the name of the format; NULL: it cannot be recognised. */
static const char *format_of(tn_bytes head, bool whole, const tn_tree *data)
{
    const char *comment = word_at(data, "comment");
    const char *delimiter = word_at(data, "delimiter");
    tn_bytes line = {"", 0, false};
    tn_bytes rest = head;
    while (tn_line_is_blank(line)) {
        if (!next_line(&rest, whole, &line)) {
            return NULL;
        }
    }
    if (line.data[0] == '{') {
        return "jsonl";
    }
    if (delimiter != NULL) {
        return "csv";
    }
    if (is_vw(line)) {
        return "vw";
    }
    const uint32_t colons = colons_of(line);
    if (colons > 0) {
        return colons > 1 ? "libffm" : "libsvm";
    }
    delimiter = delimiter_of(head, whole, comment);
    return delimiter == NULL ? NULL : delimiter[0] == '\t' ? "tsv" : "csv";
}

/* Blanks around fields of one line, those in quotes too: to trim them does no harm. */
static bool has_blanks(tn_bytes line, char delimiter)
{
    for (size_t i = 1; i < line.size; i++) {
        if ((line.data[i] == delimiter && line.data[i - 1] == ' ') ||
            (line.data[i - 1] == delimiter && line.data[i] == ' ')) {
            return true;
        }
    }
    return false;
}

/* Describes the first text of a column, and the texts below it. */
typedef struct field_seen {
    bool number, missing;     /* the field in the first line */
    uint32_t numbers, others; /* fields in the lines below */
    bool from_start;          /* the first number below is 0 or 1 */
} field_seen;

static void see_field(field_seen *s, const char *text, size_t size, bool first)
{
    double x = 0;
    const bool number = tn_read_f64(text, size, &x) == TN_NUM_OK;
    const bool missing = size == 0 || tn_missing_word(text, size) < TN_MISSING_WORDS;
    if (first) {
        s->number = number;
        s->missing = missing;
        return;
    }
    s->from_start = s->numbers == 0 && number ? x == 0 || x == 1 : s->from_start;
    s->numbers += number;
    s->others += !number && !missing;
}

/* The fields of a line; those of the first become columns. */
static void see_line(finding *f, tn_bytes line, char delimiter, bool first, field_seen *seen)
{
    tn_text scratch = {0};
    tn_span span = {.text = NULL};
    const char *bad = NULL;
    tn_split split = {.line = line,
                      .at = line.data,
                      .delimiter = delimiter,
                      .quotes = strcmp(f->out->format, "csv") == 0,
                      .trim = true,
                      .scratch = &scratch};
    for (uint32_t i = 0; tn_split_next(&split, &span, &bad) && bad == NULL; i++) {
        const char *text = span.text != NULL ? span.text : tn_text_str(&scratch);
        if (first) {
            add_column(f, text, span.size, "str");
        }
        if (i < f->out->n) {
            see_field(&seen[i], text, span.size, first);
        }
        tn_text_clear(&scratch);
    }
    tn_text_done(&scratch);
}

/* 0, 1, 2 .. as a dataframe calls columns without names, perhaps after one of the index. */
static bool is_counted(const finding *f)
{
    const uint32_t from = f->out->n > 0 && f->column[0].name[0] == '\0';
    bool same = f->out->n >= 3 + from;
    for (uint32_t i = from; i < f->out->n && same; i++) {
        char number[16];
        (void)snprintf(number, sizeof number, "%u", i - from);
        same = strcmp(f->column[i].name, number) == 0;
    }
    return same;
}

/* Whether the first line names the columns. One of words alone does. Where it has numbers or empty
 * fields, words above numbers do; an index may be without a name. */
static bool is_header(const finding *f, const field_seen *seen)
{
    uint32_t numbers = 0;
    uint32_t empty = 0;
    uint32_t above = 0;
    bool label = false;
    for (uint32_t i = 0; i < f->out->n; i++) {
        const char *name = f->column[i].name;
        numbers += seen[i].number;
        empty += name[0] == '\0';
        above += !seen[i].number && !seen[i].missing && seen[i].numbers > 0 && seen[i].others == 0;
        label = label || tn_discovery_is_label(name);
    }
    const bool index = f->out->n > 0 && f->column[0].name[0] == '\0' && seen[0].from_start;
    if (numbers == 0) {
        return empty == 0 || above > 0 || (empty == 1 && index);
    }
    return is_counted(f) || above >= 2 || (above == 1 && label);
}

/* Moves columns that a reader cannot find by their name after the others. */
static void set_aside(finding *f)
{
    const uint32_t all = f->out->n;
    tn_discovery_column *column = TN_NEW_ARRAY(f->arena, tn_discovery_column, all + 1);
    memcpy(column, f->column, all * sizeof *column);
    f->out->n = 0;
    for (uint32_t i = 0; i < all; i++) {
        uint32_t same = 0;
        for (uint32_t k = 0; k < all; k++) {
            same += strcmp(column[k].name, column[i].name) == 0;
        }
        column[i].unread = column[i].name[0] == '\0' ? "has no name"
                           : same > 1                ? "stands twice in the header"
                                                     : NULL;
        if (column[i].unread == NULL) {
            f->column[f->out->n++] = column[i];
        }
    }
    for (uint32_t i = 0; i < all; i++) {
        if (column[i].unread != NULL) {
            f->column[f->out->n + f->out->n_unread++] = column[i];
        }
    }
}

static void name_by_place(finding *f)
{
    for (uint32_t i = 0; i < f->out->n; i++) {
        char text[16];
        const int size = snprintf(text, sizeof text, "c%u", i + 1);
        f->column[i].name = tn_tree_text(f->arena, text, (size_t)size);
    }
}

/* Whether fields have blanks around them, and, where nothing names them, what the first lines do.
 */
static void see_lines(finding *f, tn_bytes head, bool whole, const tn_tree *data, bool named)
{
    const char *comment = word_at(data, "comment");
    const char *header = word_at(data, "header");
    const char delimiter = f->delimiter[0];
    const size_t skip = comment != NULL ? strlen(comment) : 0;
    field_seen *seen = TN_NEW_ARRAY(f->arena, field_seen, TN_SLOTS_MAX);
    tn_bytes line;
    uint32_t n = 0;
    for (uint32_t i = 0; i < RECORDS_MAX && next_line(&head, whole, &line); i++) {
        const bool is_comment = skip > 0 && line.size >= skip && !memcmp(line.data, comment, skip);
        if (tn_line_is_blank(line) || is_comment) {
            continue;
        }
        f->out->trim = f->out->trim || has_blanks(line, delimiter);
        if (!named && n < LOOK_LINES) {
            see_line(f, line, delimiter, n == 0, seen);
        }
        n++;
    }
    const bool asked = header != NULL && strcmp(header, "auto") != 0;
    f->out->named = !named && (asked ? strcmp(header, "true") == 0 : is_header(f, seen));
    if (f->out->named) {
        set_aside(f);
    } else if (!named) {
        name_by_place(f);
    }
}

/* Takes the delimiter that is given, or finds one in the first lines. */
static void find_delimiter(finding *f, tn_bytes head, bool whole, const tn_tree *data)
{
    const bool csv = strcmp(f->out->format, "csv") == 0;
    const char *usual = csv ? "," : "\t";
    const char *given = word_at(data, "delimiter");
    const char *seen = given == NULL ? delimiter_of(head, whole, word_at(data, "comment")) : NULL;
    f->delimiter = given != NULL && given[0] != '\0' ? given : seen != NULL ? seen : usual;
    f->out->delimiter = seen != NULL && strcmp(seen, usual) != 0 ? seen : NULL;
}

static void find_fields(finding *f, tn_bytes head, bool whole, const tn_tree *data)
{
    const char *trim = word_at(data, "trim");
    const char *header = word_at(data, "header");
    const bool by_header = header != NULL && strcmp(header, "true") == 0;
    const tn_tree *columns = by_header ? NULL : tn_tree_get(data, "columns");
    f->out->trim = trim != NULL && strcmp(trim, "true") == 0;
    find_delimiter(f, head, whole, data);
    see_lines(f, head, whole, data, tn_tree_count(columns) > 0);
    for (const tn_tree *t = columns != NULL ? columns->first : NULL; t != NULL; t = t->next) {
        add_column(f, t->text != NULL ? t->text : "", t->text != NULL ? strlen(t->text) : 0, "str");
    }
}

static void add_members(finding *f, const tn_json *object, tn_text *path)
{
    const size_t size = path->size;
    for (const tn_json *m = object->first; m != NULL; m = m->next) {
        tn_text_adds(path, m->key);
        if (m->kind == TN_JSON_OBJECT) {
            tn_text_addc(path, '.');
            add_members(f, m, path);
        } else if (m->kind != TN_JSON_LIST || m->first == NULL ||
                   m->first->kind < TN_JSON_LIST) { /* lists of objects are no values */
            add_column(f, tn_text_str(path), path->size, "str");
        }
        path->size = size;
    }
}

static void find_members(finding *f, tn_bytes head, bool whole)
{
    tn_text path = {0};
    tn_bytes line;
    for (uint32_t i = 0; i < RECORDS_MAX && next_line(&head, whole, &line); i++) {
        const tn_json *object = NULL;
        tn_arena *arena = tn_arena_new(1 << 16);
        if (tn_json_parse(&object, line.data, line.size, arena, "a record", NULL) == TN_OK &&
            object->kind == TN_JSON_OBJECT) {
            add_members(f, object, &path);
        }
        tn_arena_free(arena);
    }
    tn_text_done(&path);
}

/* The kind of a tf Feature, or of the first one in a FeatureList. NULL: it has no values. */
static const char *kind_of(tn_bytes value, bool list)
{
    static const char *const types[] = {NULL, "str", "float", "int"};
    tn_proto_field f;
    if (list && !(tn_proto_next(&value, &f) && f.tag == TN_PROTO_TAG(1, TN_WIRE_BYTES))) {
        return NULL;
    }
    value = list ? f.bytes : value;
    const bool some = tn_proto_next(&value, &f) && f.bytes.size > 0;
    const uint32_t number = some ? f.tag >> 3 : 0;
    return number <= 3 ? types[number] : NULL;
}

static void add_features(finding *f, tn_bytes map, bool list)
{
    tn_proto_field entry;
    while (tn_proto_next(&map, &entry)) {
        tn_bytes key = {"", 0, false};
        tn_bytes value = {"", 0, false};
        tn_proto_field part;
        while (tn_proto_next(&entry.bytes, &part)) {
            key = part.tag == TN_PROTO_TAG(1, TN_WIRE_BYTES) ? part.bytes : key;
            value = part.tag == TN_PROTO_TAG(2, TN_WIRE_BYTES) ? part.bytes : value;
        }
        const char *type = kind_of(value, list);
        if (type != NULL && memchr(key.data, '\0', key.size) == NULL) {
            add_column(f, key.data, key.size, type);
        }
    }
}

static void find_features(finding *f, tn_bytes head)
{
    for (uint32_t i = 0; i < RECORDS_MAX && is_frame(head); i++) {
        const uint64_t size = tn_load_u64(head.data);
        if (head.size < FRAME_BYTES || size > head.size - FRAME_BYTES) {
            break;
        }
        tn_bytes message = {head.data + FRAME_HEAD, (size_t)size, false};
        tn_proto_field m;
        while (tn_proto_next(&message, &m)) {
            if (m.tag == TN_PROTO_TAG(1, TN_WIRE_BYTES) ||
                m.tag == TN_PROTO_TAG(2, TN_WIRE_BYTES)) {
                add_features(f, m.bytes, m.tag == TN_PROTO_TAG(2, TN_WIRE_BYTES));
            }
        }
        head.data += size + FRAME_BYTES;
        head.size -= size + FRAME_BYTES;
    }
}

static tn_status read_head(const char *path, tn_text *text, size_t *n, tn_error *err)
{
    tn_source *source = NULL;
    tn_bytes first;
    uint32_t compression = TN_COMPRESSION_NONE;
    char *to = tn_text_grow(text, TN_DISCOVERY_BYTES);
    TN_TRY(tn_text_check(text, "the head of the data", err));
    TN_TRY(tn_source_open(&source, path, 0, NULL, err));
    tn_status status = tn_source_peek(source, &first, err);
    if (status == TN_OK) {
        status = tn_compression_of(first, is_frame(first), path, &compression, err);
    }
    if (status == TN_OK && compression != TN_COMPRESSION_NONE) {
        status = tn_source_decompress(source, compression, err);
    }
    status = status == TN_OK ? tn_source_read(source, to, TN_DISCOVERY_BYTES, n, err) : status;
    tn_source_close(source);
    return status;
}

bool tn_discovery_has_columns(const char *format)
{
    return is_delimited(format) || strcmp(format, "jsonl") == 0 || strcmp(format, "tfrecord") == 0;
}

bool tn_discovery_is_label(const char *name)
{
    static const char *const names[] = {"label", "click", "clicked", "is_click", "target", "y"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool begins(tn_bytes head, const char *mark, size_t size)
{
    return head.size >= size && memcmp(head.data, mark, size) == 0;
}

/* Refuses bytes that no text begins with. A first line without an end in sight has no columns. */
static tn_status check_text(const char *path, tn_bytes head, const char *format, tn_error *err)
{
    const bool whole = head.size < TN_DISCOVERY_BYTES;
    if (head.size == 0) {
        return tn_fail(err, TN_E_DATA, "'%s' is empty", path);
    }
    if (begins(head, "\xff\xfe", 2) || begins(head, "\xfe\xff", 2)) {
        return tn_fail(err, TN_E_DATA, "'%s' looks like UTF-16\nhint: " TN_HINT_UTF16, path);
    }
    if (memchr(head.data, '\0', head.size) != NULL) {
        return tn_fail(err, TN_E_DATA, "'%s' is binary: there are NUL bytes in it", path);
    }
    if (whole || memchr(head.data, '\n', head.size) != NULL ||
        (format != NULL && !tn_discovery_has_columns(format))) {
        return TN_OK;
    }
    return tn_fail(
        err, TN_E_DATA,
        "the first line of '%s' is longer than %d bytes, in which %u commas and %u tabs "
        "stand\nhint: a model has at most %d slots; a file of many features is libsvm or "
        "jsonl",
        path, TN_DISCOVERY_BYTES, marks_of(head, ','), marks_of(head, '\t'), TN_SLOTS_MAX);
}

/* Checks names, which get into a configuration, so are UTF-8. */
static tn_status check_names(const tn_discovery *found, tn_error *err)
{
    for (uint32_t i = 0; i < found->n + found->n_unread; i++) {
        const char *name = found->column[i].name;
        for (size_t left = strlen(name), size = 0; left > 0; name += size, left -= size) {
            size = tn_utf8_size(name, left);
            if (size == 0) {
                return tn_fail(err, TN_E_DATA,
                               "the name of column %u of '%s' is not UTF-8\nhint: 'iconv -f LATIN1 "
                               "-t UTF-8 FILE' writes it so where it is Latin 1",
                               found->column[i].place + 1, found->path);
            }
        }
    }
    return TN_OK;
}

static tn_status find_columns(finding *f, tn_bytes head, const tn_tree *data, tn_error *err)
{
    const bool whole = head.size < TN_DISCOVERY_BYTES;
    tn_discovery *out = f->out;
    out->format = word_at(data, "format");
    out->format = out->format == NULL && is_frame(head) ? "tfrecord" : out->format;
    const tn_format *known = out->format != NULL ? tn_format_find(out->format) : NULL;
    if (known == NULL || !known->binary) {
        TN_TRY(check_text(out->path, head, out->format, err));
    }
    if (begins(head, "\xef\xbb\xbf", 3)) {
        head = (tn_bytes){head.data + 3, head.size - 3, false};
    }
    out->format = out->format != NULL ? out->format : format_of(head, whole, data);
    if (out->format == NULL) {
        return tn_fail(err, TN_E_DATA,
                       "the format of '%s' cannot be told by its first bytes: its lines have no "
                       "tab, comma, ';' or '|'\n"
                       "hint: 'format=csv' names it, and 'delimiter' what separates fields",
                       out->path);
    }
    if (is_delimited(out->format)) {
        find_fields(f, head, whole, data);
    } else if (strcmp(out->format, "jsonl") == 0) {
        find_members(f, head, whole);
    } else if (strcmp(out->format, "tfrecord") == 0) {
        find_features(f, head);
    }
    if (f->too_many) {
        return tn_fail(err, TN_E_DATA, "'%s' has more than %d columns", out->path, TN_SLOTS_MAX);
    }
    TN_TRY(check_names(out, err));
    return tn_discovery_has_columns(out->format) && out->n == 0
               ? tn_fail(err, TN_E_DATA, "no columns are found in the head of '%s'", out->path)
               : TN_OK;
}

tn_status tn_discovery_find(tn_discovery *out, const tn_strs *paths, const tn_tree *data,
                            tn_arena *arena, tn_error *err)
{
    tn_text text = {0};
    size_t n = 0;
    *out = (tn_discovery){0};
    TN_TRY(tn_fileset_first(paths, arena, &out->path, err));
    finding f = {.out = out,
                 .column = TN_NEW_ARRAY(arena, tn_discovery_column, TN_SLOTS_MAX),
                 .arena = arena};
    out->column = f.column;
    tn_status status = read_head(out->path, &text, &n, err);
    if (status == TN_OK) {
        TN_ASSERT(n <= TN_DISCOVERY_BYTES);
        status = find_columns(&f, (tn_bytes){text.data, n, false}, data, err);
    }
    tn_text_done(&text);
    return status;
}

void tn_discovery_name(const tn_discovery *d, uint32_t i, const char *more, tn_text *out)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    enum { NAME_MAX = 48 };
    TN_ASSERT(i < d->n);
    const char *name = d->column[i].name;
    const size_t size = strlen(name);
    const bool plain = size <= NAME_MAX && strspn(name, good) == size;
    tn_text_adds(out, "name: ");
    if (plain && more[0] == '\0') {
        tn_tree_print_scalar(out, name);
        return;
    }
    if (!plain) {
        tn_text_addf(out, "c%u%s", d->column[i].place + 1, size > 0 ? "_" : "");
    }
    for (size_t k = 0; k < size && k < NAME_MAX; k++) {
        tn_text_add(out, strchr(good, name[k]) != NULL ? name + k : "_", 1);
    }
    tn_text_addf(out, "%s, column: ", more);
    tn_tree_print_scalar(out, name);
}

void tn_discovery_config(const tn_discovery *d, tn_text *out)
{
    const bool text = is_delimited(d->format);
    tn_text_addf(out, "data:\n  format: %s\n", d->format);
    if (text) {
        tn_text_addf(out, "  header: %s\n%s", d->named ? "true" : "false",
                     d->trim ? "  trim: true\n" : "");
    }
    if (d->delimiter != NULL) {
        tn_text_adds(out, "  delimiter: ");
        tn_tree_print_scalar(out, d->delimiter);
        tn_text_addc(out, '\n');
    }
    if (text && !d->named) {
        tn_text_adds(out, "  columns: [");
        for (uint32_t i = 0; i < d->n; i++) {
            tn_text_adds(out, i > 0 ? ", " : "");
            tn_tree_print_scalar(out, d->column[i].name);
        }
        tn_text_adds(out, "]\n");
    }
    tn_text_adds(out, d->n > 0 ? "slots:\n" : "");
    for (uint32_t i = 0; i < d->n; i++) {
        tn_text_adds(out, "  - {");
        tn_discovery_name(d, i, "", out);
        tn_text_addf(out, ", type: %s}\n", d->column[i].type);
    }
}
