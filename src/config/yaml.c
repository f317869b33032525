/* yaml.c - libyaml's events to a tree.
 *
 * libyaml counts characters from 0, people and editors count lines from 1; our columns are bytes.
 * It takes quadratic time for deeply nested flow brackets when it is allowed to go on; the loop
 * below stops at the first event that is too deep.
 */
#include "config/yaml.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/file/file.h"
#include "config/diag.h"
#include "config/tree.h"

#include <string.h>
#include <yaml.h>

/* ---- places in the text ---- */

typedef struct text_lines {
    const tn_yaml_in *in;
    const char *text; /* copy of the text in which every line ends with a NUL */
    const char **line;
    uint32_t n;
} text_lines;

/* Returns the bytes of the line break at `at`, 0 when there is none. */
static size_t break_size(const char *at, const char *end)
{
    static const struct {
        const char *bytes;
        size_t size;
    } breaks[] = {
        {"\r\n", 2},     {"\n", 1},           {"\r", 1},
        {"\xC2\x85", 2}, {"\xE2\x80\xA8", 3}, {"\xE2\x80\xA9", 3},
    };
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        size_t size = breaks[i].size;
        if (size <= (size_t)(end - at) && memcmp(at, breaks[i].bytes, size) == 0) {
            return size;
        }
    }
    return 0;
}

/* Splits at what libyaml takes for line breaks. `text` has `size` bytes, valid UTF-8 or not. */
static text_lines split_lines(tn_arena *arena, const tn_yaml_in *in, const char *text, size_t size)
{
    char *copy = TN_NEW_ARRAY(arena, char, size + 1);
    memcpy(copy, text, size);
    const char *end = copy + size;
    uint32_t n = 1;
    for (const char *at = copy; at < end;) {
        size_t gap = break_size(at, end);
        n += gap > 0;
        at += gap > 0 ? gap : 1;
    }
    const char **line = TN_NEW_ARRAY(arena, const char *, n);
    line[0] = copy;
    uint32_t filled = 1;
    for (char *at = copy; at < end;) {
        size_t gap = break_size(at, end);
        if (gap > 0) {
            *at = '\0';
            line[filled++] = at + gap;
        }
        at += gap > 0 ? gap : 1;
    }
    TN_ASSERT(filled == n);
    return (text_lines){.in = in, .text = copy, .line = line, .n = n};
}

/* Returns the bytes of the first `count` characters of a line. */
static size_t bytes_of(const char *line, size_t count)
{
    size_t at = 0;
    while (count > 0 && line[at] != '\0') {
        at++;
        while (((unsigned char)line[at] & 0xC0) == 0x80) {
            at++;
        }
        count--;
    }
    return at;
}

static tn_origin place_at(const text_lines *lines, size_t line, size_t bytes)
{
    const tn_yaml_in *in = lines->in;
    if (in->lines) {
        return (tn_origin){.source = in->source,
                           .line = (uint32_t)line + 1,
                           .col = (uint32_t)bytes + 1,
                           .text = lines->line[line]};
    }
    /* After the first line, columns of the text are not columns of the line that is shown. */
    return (tn_origin){.source = in->source,
                       .col = in->col + (line == 0 ? (uint32_t)bytes : 0),
                       .text = in->shown};
}

/* Returns the place of `line` and `column`, both from 0, the column in characters. */
static tn_origin place_of(const text_lines *lines, size_t line, size_t column)
{
    if (line >= lines->n) { /* the end of the text */
        line = lines->n - 1;
        column = strlen(lines->line[line]);
    }
    return place_at(lines, line, bytes_of(lines->line[line], column));
}

/* Returns the place of byte `offset` of the text. */
static tn_origin place_of_byte(const text_lines *lines, size_t offset)
{
    size_t line = lines->n - 1;
    while (line > 0 && (size_t)(lines->line[line] - lines->text) > offset) {
        line--;
    }
    size_t bytes = offset - (size_t)(lines->line[line] - lines->text);
    size_t most = strlen(lines->line[line]);
    return place_at(lines, line, bytes < most ? bytes : most);
}

/* ---- events ---- */

typedef struct frame {
    tn_tree *node;
    const char *anchor; /* NULL: none */
    const char *key;    /* in a map: the name whose value comes next; NULL: a name comes next */
    tn_origin key_at;
    bool duplicate; /* the value that comes next is dropped */
} frame;

typedef struct anchor {
    const char *name;
    const tn_tree *node;
} anchor;

typedef struct builder {
    tn_arena *arena;
    tn_diag *diag;
    text_lines lines;
    frame stack[TN_YAML_DEPTH_MAX];
    uint32_t depth;
    tn_tree *root;
    anchor *anchors;
    uint32_t n_anchors;
    uint32_t n_nodes;
    uint32_t n_from_aliases;
    uint32_t n_documents;
} builder;

static tn_origin place(const builder *b, const yaml_mark_t *mark)
{
    return place_of(&b->lines, mark->line, mark->column);
}

static bool refuse(const builder *b, const yaml_event_t *event, const char *what)
{
    tn_origin at = place(b, &event->start_mark);
    tn_diag_error(b->diag, &at, "%s", what);
    return false;
}

static const char *copy_name(const builder *b, const yaml_char_t *name)
{
    return name != NULL ? tn_tree_text(b->arena, (const char *)name, strlen((const char *)name))
                        : NULL;
}

static bool remember(builder *b, const yaml_event_t *event, const char *name, const tn_tree *node)
{
    if (name == NULL) {
        return true;
    }
    if (b->n_anchors == TN_YAML_ANCHORS_MAX) {
        return refuse(b, event, "more than 1000 anchors");
    }
    if (b->anchors == NULL) {
        b->anchors = TN_NEW_ARRAY(b->arena, anchor, TN_YAML_ANCHORS_MAX);
    }
    b->anchors[b->n_anchors++] = (anchor){name, node};
    return true;
}

static bool take_key(builder *b, const yaml_event_t *event, frame *map)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t size = event->data.scalar.length;
    if (size > TN_YAML_KEY_MAX) {
        return refuse(b, event, "a key of more than 255 bytes");
    }
    if (event->data.scalar.anchor != NULL) {
        return refuse(b, event, "a key cannot have an anchor");
    }
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (plain && strcmp(text, "<<") == 0) {
        (void)refuse(b, event, "merge keys are not supported");
        tn_diag_hint(b->diag, "put what is shared into a file of its own and 'include' it");
        return false;
    }
    if (tn_tree_count(map->node) == TN_YAML_MEMBERS_MAX) {
        return refuse(b, event, "more than 2000 keys in one map");
    }
    map->key = tn_tree_text(b->arena, text, size);
    map->key_at = place(b, &event->start_mark);
    const tn_tree *first = tn_tree_get(map->node, map->key);
    map->duplicate = first != NULL;
    if (map->duplicate) {
        tn_diag_error(b->diag, &map->key_at, "duplicate key '%s'", map->key);
        if (first->key_at.line > 0) {
            tn_diag_hint(b->diag, "the first one is in line %u", first->key_at.line);
        }
    }
    return true;
}

/* Hangs a node under the list or map that is open. */
static bool attach(builder *b, const yaml_event_t *event, tn_tree *node)
{
    if (++b->n_nodes > TN_YAML_NODES_MAX) {
        return refuse(b, event, "more than 100000 values");
    }
    if (b->depth == 0) {
        b->root = node;
        return true;
    }
    frame *parent = &b->stack[b->depth - 1];
    if (parent->node->kind == TN_TREE_LIST) {
        tn_tree_append(parent->node, node);
        return true;
    }
    if (parent->key == NULL) {
        return refuse(b, event, "a key must be a single word");
    }
    if (!parent->duplicate) {
        node->key = parent->key;
        node->key_at = parent->key_at;
        tn_tree_append(parent->node, node);
    }
    parent->key = NULL;
    return true;
}

static bool on_scalar(builder *b, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t size = event->data.scalar.length;
    if (event->data.scalar.tag != NULL) {
        return refuse(b, event, "tags are not supported");
    }
    if (memchr(text, '\0', size) != NULL) {
        return refuse(b, event, "a text cannot hold a NUL");
    }
    frame *top = b->depth > 0 ? &b->stack[b->depth - 1] : NULL;
    if (top != NULL && top->node->kind == TN_TREE_MAP && top->key == NULL) {
        return take_key(b, event, top);
    }
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    bool null = plain && (size == 0 || strcmp(text, "~") == 0);
    tn_tree *node =
        tn_tree_new(b->arena, null ? TN_TREE_NULL : TN_TREE_SCALAR, place(b, &event->start_mark));
    node->text = null ? NULL : tn_tree_text(b->arena, text, size);
    node->quoted = !plain;
    return remember(b, event, copy_name(b, event->data.scalar.anchor), node) &&
           attach(b, event, node);
}

static bool on_begin(builder *b, const yaml_event_t *event)
{
    bool list = event->type == YAML_SEQUENCE_START_EVENT;
    if ((list ? event->data.sequence_start.tag : event->data.mapping_start.tag) != NULL) {
        return refuse(b, event, "tags are not supported");
    }
    tn_tree *node =
        tn_tree_new(b->arena, list ? TN_TREE_LIST : TN_TREE_MAP, place(b, &event->start_mark));
    if (!attach(b, event, node)) {
        return false;
    }
    if (b->depth == TN_YAML_DEPTH_MAX) {
        return refuse(b, event, "nested more than 64 deep");
    }
    const yaml_char_t *name =
        list ? event->data.sequence_start.anchor : event->data.mapping_start.anchor;
    b->stack[b->depth++] = (frame){.node = node, .anchor = copy_name(b, name)};
    return true;
}

static bool on_end(builder *b, const yaml_event_t *event)
{
    TN_ASSERT(b->depth > 0);
    const frame *closed = &b->stack[--b->depth];
    return remember(b, event, closed->anchor, closed->node);
}

/* Adds the nodes of a tree to *n and returns its depth. */
static uint32_t measure(const tn_tree *tree, uint32_t *n)
{
    uint32_t deepest = 0;
    ++*n;
    for (const tn_tree *item = tree->first; item != NULL; item = item->next) {
        uint32_t depth = 1 + measure(item, n);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}

/* Resolves an alias. An anchor is known from its node's end on, so no tree holds itself. */
static bool on_alias(builder *b, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    const tn_tree *target = NULL;
    for (uint32_t i = b->n_anchors; i-- > 0 && target == NULL;) {
        target = strcmp(b->anchors[i].name, name) == 0 ? b->anchors[i].node : NULL;
    }
    if (target == NULL) {
        tn_origin at = place(b, &event->start_mark);
        tn_diag_error(b->diag, &at, "unknown anchor '%s'", name);
        tn_diag_hint(b->diag, "a text that begins with '*' must stand in quotes");
        return false;
    }
    uint32_t depth = b->depth + measure(target, &b->n_from_aliases);
    if (b->n_from_aliases > TN_YAML_ALIAS_NODES_MAX) {
        return refuse(b, event, "aliases make more than 10000 values");
    }
    if (depth > TN_YAML_DEPTH_MAX) {
        return refuse(b, event, "nested more than 64 deep");
    }
    tn_tree *node = tn_tree_copy(b->arena, target);
    node->key = NULL;
    return attach(b, event, node);
}

static bool on_document(builder *b, const yaml_event_t *event)
{
    return ++b->n_documents == 1 || refuse(b, event, "more than one document");
}

typedef bool on_event(builder *b, const yaml_event_t *event);

/* Handlers by event; the other events carry nothing. */
static on_event *const handlers[] = {
    [YAML_DOCUMENT_START_EVENT] = on_document, [YAML_ALIAS_EVENT] = on_alias,
    [YAML_SCALAR_EVENT] = on_scalar,           [YAML_SEQUENCE_START_EVENT] = on_begin,
    [YAML_SEQUENCE_END_EVENT] = on_end,        [YAML_MAPPING_START_EVENT] = on_begin,
    [YAML_MAPPING_END_EVENT] = on_end,
};

/* Returns whether a line is "name:value", which YAML takes for one word; "name://.." is an
 * address. */
static bool lacks_blank(const char *line)
{
    line += strspn(line, " -");
    const size_t size = strspn(line, "abcdefghijklmnopqrstuvwxyz_");
    return size > 0 && line[size] == ':' && strchr(" \t/", line[size + 1]) == NULL;
}

/* Adds a hint to the last error. libyaml finds the fault below such a line: where the next one has
 * its colon, or the text ends. */
static bool hint_blank(const builder *b, uint32_t line)
{
    for (uint32_t i = line; i > 0 && i + 3 > line; i--) {
        if (lacks_blank(b->lines.line[i - 1])) {
            tn_diag_hint(b->diag, "a blank is missing behind ':' in line %u", i);
            return true;
        }
    }
    return false;
}

static void report_syntax(const builder *b, const yaml_parser_t *parser)
{
    const char *problem = parser->problem != NULL ? parser->problem : "no memory";
    if (parser->error == YAML_READER_ERROR) {
        tn_origin at = place_of_byte(&b->lines, parser->problem_offset);
        tn_diag_error(b->diag, &at, "not a text in UTF-8: %s", problem);
        return;
    }
    tn_origin at = place(b, &parser->problem_mark);
    tn_diag_error(b->diag, &at, "not YAML: %s", problem);
    bool elsewhere =
        parser->context != NULL && parser->context_mark.line < parser->problem_mark.line;
    if (!hint_blank(b, at.line) && elsewhere && at.line > 0) {
        tn_diag_hint(b->diag, "%s that begins in line %zu", parser->context,
                     parser->context_mark.line + 1);
    }
}

static bool run(builder *b, yaml_parser_t *parser)
{
    bool ok = true;
    for (bool more = true; ok && more;) {
        yaml_event_t event;
        if (yaml_parser_parse(parser, &event) == 0) {
            report_syntax(b, parser);
            return false;
        }
        TN_ASSERT((size_t)event.type < sizeof handlers / sizeof *handlers);
        if (tn_alloc_check(NULL) != TN_OK) {
            const tn_origin at = place_of(&b->lines, event.start_mark.line, 0);
            tn_diag_error(b->diag, &at, "out of memory");
            yaml_event_delete(&event);
            return false;
        }
        ok = handlers[event.type] == NULL || handlers[event.type](b, &event);
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    return ok;
}

/* Looks for directives. libyaml compares every %TAG with every other, which takes quadratic time;
 * none is needed here. */
static bool has_directive(builder *b)
{
    for (uint32_t i = 0; i < b->lines.n; i++) {
        if (b->lines.line[i][0] == '%') {
            tn_origin at = place_of(&b->lines, i, 0);
            tn_diag_error(b->diag, &at, "directives are not supported");
            return true;
        }
    }
    return false;
}

tn_tree *tn_yaml_read(tn_arena *arena, tn_diag *diag, const tn_yaml_in *in)
{
    const char *text = in->text;
    size_t size = in->size;
    if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
        size -= 3;
    }
    if (size > TN_YAML_BYTES_MAX) {
        const tn_origin at = {.source = in->source};
        tn_diag_error(diag, &at, "%zu bytes of YAML, more than %d", size, (int)TN_YAML_BYTES_MAX);
        return NULL;
    }
    builder *b = TN_NEW(arena, builder);
    b->arena = arena;
    b->diag = diag;
    b->lines = split_lines(arena, in, text, size);
    yaml_parser_t parser;
    if (has_directive(b)) {
        return NULL;
    }
    if (yaml_parser_initialize(&parser) == 0) {
        const tn_origin at = {.source = in->source};
        tn_diag_error(diag, &at, "no memory for a YAML parser");
        return NULL;
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    bool ok = run(b, &parser);
    yaml_parser_delete(&parser);
    if (!ok) {
        return NULL;
    }
    return b->root != NULL ? b->root : tn_tree_new(arena, TN_TREE_NULL, place_of(&b->lines, 0, 0));
}

tn_tree *tn_yaml_read_file(tn_arena *arena, tn_diag *diag, const char *path)
{
    tn_text text = {0};
    tn_error err = {0};
    tn_tree *tree = NULL;
    if (tn_file_read_all(path, TN_YAML_BYTES_MAX, &text, &err) == TN_OK) {
        const char *source = tn_tree_text(arena, path, strlen(path));
        const tn_yaml_in in = {tn_text_str(&text), text.size, source, true, NULL, 0};
        tree = tn_yaml_read(arena, diag, &in);
    } else {
        tn_diag_error(diag, NULL, "%s", err.text);
    }
    tn_text_done(&text);
    return tree;
}
