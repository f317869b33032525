/* column_discovery.c - the format and the columns of a file, from its first bytes. */
#include "io/read/column_discovery.h"

#include "base/codec/json.h"
#include "base/codec/proto.h"
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

enum { RECORDS_MAX = 1000, FRAME_HEAD = 12, FRAME_BYTES = 16 };

/* The columns so far. */
typedef struct finding {
    tn_discovery *out;
    tn_discovery_column *column; /* TN_SLOTS_MAX */
    tn_arena *arena;
    bool too_many;
} finding;

/* Fields of a line are columns each, whatever they hold; members and features stand in many
 * records. */
static void add_column(finding *f, const char *name, size_t size, const char *type)
{
    const bool text = strcmp(f->out->format, "csv") == 0 || strcmp(f->out->format, "tsv") == 0;
    for (uint32_t i = 0; !text && i < f->out->n; i++) {
        const char *known = f->column[i].name;
        if (strncmp(known, name, size) == 0 && known[size] == '\0') {
            return;
        }
    }
    f->too_many = f->too_many || f->out->n == TN_SLOTS_MAX;
    if (!f->too_many && size > 0) {
        f->column[f->out->n++] = (tn_discovery_column){tn_tree_text(f->arena, name, size), type};
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

/* "1 3:1 7:.5" has one colon in its last pair, "1 0:3:1" two; 0: it is no line of pairs. */
static uint32_t colons_of(tn_bytes line)
{
    uint32_t n = 0;
    for (size_t i = 0; i < line.size; i++) {
        if (line.data[i] == '\0' || strchr("0123456789.:eE+- qid", line.data[i]) == NULL) {
            return 0;
        }
        n = line.data[i] == ' ' && i + 1 < line.size ? 0 : n + (line.data[i] == ':');
    }
    return n;
}

/* NULL: it cannot be told. */
static const char *format_of(tn_bytes head, bool whole)
{
    tn_bytes line = {"", 0, false};
    if (is_frame(head)) {
        return "tfrecord";
    }
    while (tn_line_is_blank(line)) {
        if (!next_line(&head, whole, &line)) {
            return NULL;
        }
    }
    const uint32_t colons = colons_of(line);
    return line.data[0] == '{'                       ? "jsonl"
           : colons > 0                              ? (colons > 1 ? "libffm" : "libsvm")
           : memchr(line.data, '\t', line.size) != 0 ? "tsv"
           : memchr(line.data, ',', line.size) != 0  ? "csv"
                                                     : NULL;
}

static const char *word_at(const tn_tree *data, const char *key)
{
    const tn_tree *t = tn_tree_get(data, key);
    return t != NULL && t->kind == TN_TREE_SCALAR ? t->text : NULL;
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

/* The names in the first line, or c1, c2, .. where one of them is a number. */
static void name_fields(finding *f, tn_bytes line, char delimiter, const char *header)
{
    tn_text scratch = {0};
    tn_span span = {.text = NULL};
    const char *bad = NULL;
    double number;
    tn_split split = {.line = line,
                      .at = line.data,
                      .delimiter = delimiter,
                      .quotes = strcmp(f->out->format, "csv") == 0,
                      .trim = true,
                      .scratch = &scratch};
    f->out->named = header == NULL || strcmp(header, "false") != 0;
    while (tn_split_next(&split, &span, &bad) && bad == NULL) {
        const char *name = span.text != NULL ? span.text : tn_text_str(&scratch);
        const bool data = span.size == 0 || tn_read_f64(name, span.size, &number) == TN_NUM_OK;
        f->out->named = f->out->named && (header != NULL || !data);
        add_column(f, span.size > 0 ? name : " ", span.size > 0 ? span.size : 1, "str");
        tn_text_clear(&scratch);
    }
    tn_text_done(&scratch);
    for (uint32_t i = 0; !f->out->named && i < f->out->n; i++) {
        char text[16];
        const int size = snprintf(text, sizeof text, "c%u", i + 1);
        f->column[i].name = tn_tree_text(f->arena, text, (size_t)size);
    }
}

/* Whether fields have blanks around them, and, where nothing names them, what the first line does.
 */
static void see_lines(finding *f, tn_bytes head, bool whole, const tn_tree *data, bool named)
{
    const char *given = word_at(data, "delimiter");
    const char *comment = word_at(data, "comment");
    const char *usual = strcmp(f->out->format, "csv") == 0 ? "," : "\t";
    const char *delimiters = given != NULL ? given : usual;
    const char delimiter = delimiters[0];
    const size_t skip = comment != NULL ? strlen(comment) : 0;
    tn_bytes line;
    bool first = true;
    for (uint32_t i = 0; i < RECORDS_MAX && next_line(&head, whole, &line); i++) {
        const bool is_comment = skip > 0 && line.size >= skip && !memcmp(line.data, comment, skip);
        if (tn_line_is_blank(line) || is_comment) {
            continue;
        }
        f->out->trim = f->out->trim || has_blanks(line, delimiter);
        if (first && !named) {
            name_fields(f, line, delimiter, word_at(data, "header"));
        }
        first = false;
    }
}

static void find_fields(finding *f, tn_bytes head, bool whole, const tn_tree *data)
{
    const char *trim = word_at(data, "trim");
    const char *header = word_at(data, "header");
    const bool by_header = header != NULL && strcmp(header, "true") == 0;
    const tn_tree *columns = by_header ? NULL : tn_tree_get(data, "columns");
    if (head.size >= 3 && memcmp(head.data, "\xef\xbb\xbf", 3) == 0) {
        head.data += 3;
        head.size -= 3;
    }
    f->out->trim = trim != NULL && strcmp(trim, "true") == 0;
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
    if (status == TN_OK) {
        status = tn_source_read(source, to, TN_DISCOVERY_BYTES, n, err);
    }
    tn_source_close(source);
    return status;
}

bool tn_discovery_has_columns(const char *format)
{
    return strcmp(format, "csv") == 0 || strcmp(format, "tsv") == 0 ||
           strcmp(format, "jsonl") == 0 || strcmp(format, "tfrecord") == 0;
}

static tn_status find_columns(finding *f, tn_bytes head, const tn_tree *data, tn_error *err)
{
    const bool whole = head.size < TN_DISCOVERY_BYTES;
    tn_discovery *out = f->out;
    out->format = word_at(data, "format");
    out->format = out->format != NULL ? out->format : format_of(head, whole);
    if (out->format == NULL) {
        return tn_fail(err, TN_E_DATA,
                       "the format of '%s' cannot be told by its first bytes\n"
                       "hint: 'format=csv' names it",
                       out->path);
    }
    if (strcmp(out->format, "csv") == 0 || strcmp(out->format, "tsv") == 0) {
        find_fields(f, head, whole, data);
    } else if (strcmp(out->format, "jsonl") == 0) {
        find_members(f, head, whole);
    } else if (strcmp(out->format, "tfrecord") == 0) {
        find_features(f, head);
    }
    if (f->too_many) {
        return tn_fail(err, TN_E_DATA, "'%s' has more than %d columns", out->path, TN_SLOTS_MAX);
    }
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

void tn_discovery_name(const tn_discovery *d, uint32_t i, tn_text *out)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    enum { NAME_MAX = 48 };
    TN_ASSERT(i < d->n);
    const char *name = d->column[i].name;
    const size_t size = strlen(name);
    if (size <= NAME_MAX && strspn(name, good) == size) {
        tn_text_adds(out, "name: ");
        tn_tree_print_scalar(out, name);
        return;
    }
    tn_text_addf(out, "name: c%u", i + 1);
    tn_text_adds(out, size > 0 ? "_" : "");
    for (size_t k = 0; k < size && k < NAME_MAX; k++) {
        tn_text_add(out, strchr(good, name[k]) != NULL ? name + k : "_", 1);
    }
    tn_text_adds(out, ", column: ");
    tn_tree_print_scalar(out, name);
}

void tn_discovery_config(const tn_discovery *d, tn_text *out)
{
    const bool text = strcmp(d->format, "csv") == 0 || strcmp(d->format, "tsv") == 0;
    tn_text_addf(out, "data:\n  format: %s\n", d->format);
    if (text) {
        tn_text_addf(out, "  header: %s\n%s", d->named ? "true" : "false",
                     d->trim ? "  trim: true\n" : "");
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
        tn_discovery_name(d, i, out);
        tn_text_addf(out, ", type: %s}\n", d->column[i].type);
    }
}
