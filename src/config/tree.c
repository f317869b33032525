/* tree.c - builds, copies, merges and prints trees.
 *
 * A text is printed plain when no reader could take it for anything else, in double quotes
 * otherwise; single quotes and block scalars are never needed.
 */
#include "config/tree.h"

#include "base/core/arena.h"
#include "base/core/text.h"

#include <string.h>

char *tn_tree_text(tn_arena *arena, const char *bytes, size_t size)
{
    char *copy = tn_arena_alloc(arena, size + 1, 1, 1);
    memcpy(copy, bytes, size);
    return copy;
}

tn_tree *tn_tree_new(tn_arena *arena, tn_tree_kind kind, tn_origin at)
{
    tn_tree *tree = TN_NEW(arena, tn_tree);
    tree->kind = kind;
    tree->at = at;
    return tree;
}

tn_tree *tn_tree_scalar(tn_arena *arena, const char *text, tn_origin at)
{
    TN_ASSERT(text != NULL);
    tn_tree *tree = tn_tree_new(arena, TN_TREE_SCALAR, at);
    tree->text = tn_tree_text(arena, text, strlen(text));
    return tree;
}

/* Copies one node without its children and siblings; texts are shared, since trees of one run live
 * equally long. */
static tn_tree *copy_node(tn_arena *arena, const tn_tree *tree)
{
    tn_tree *copy = TN_NEW(arena, tn_tree);
    *copy = *tree;
    copy->first = copy->last = copy->next = NULL;
    return copy;
}

tn_tree *tn_tree_copy(tn_arena *arena, const tn_tree *tree)
{
    tn_tree *copy = copy_node(arena, tree);
    for (const tn_tree *item = tree->first; item != NULL; item = item->next) {
        tn_tree_append(copy, tn_tree_copy(arena, item));
    }
    return copy;
}

void tn_tree_append(tn_tree *parent, tn_tree *item)
{
    TN_ASSERT(parent->kind == TN_TREE_LIST || parent->kind == TN_TREE_MAP);
    TN_ASSERT((item->key != NULL) == (parent->kind == TN_TREE_MAP));
    TN_ASSERT(item->next == NULL);
    if (parent->last == NULL) {
        parent->first = item;
    } else {
        parent->last->next = item;
    }
    parent->last = item;
}

/* Copies `item` over the member of the same name, or puts it at the end. */
static void place(tn_tree *map, tn_tree *item)
{
    for (tn_tree *old = map->first; old != NULL; old = old->next) {
        if (strcmp(old->key, item->key) == 0) {
            tn_tree *next = old->next;
            *old = *item;
            old->next = next;
            return;
        }
    }
    tn_tree_append(map, item);
}

void tn_tree_put(tn_arena *arena, tn_tree *map, const char *key, tn_tree *value)
{
    TN_ASSERT(map->kind == TN_TREE_MAP && value->next == NULL);
    value->key = tn_tree_text(arena, key, strlen(key));
    if (value->key_at.source == NULL) {
        value->key_at = value->at;
    }
    place(map, value);
}

tn_tree *tn_tree_wrap(tn_arena *arena, const char *key, const tn_tree *tree)
{
    tn_tree *map = tn_tree_new(arena, TN_TREE_MAP, tree->at);
    map->key = tree->key;
    map->key_at = tree->key_at;
    tn_tree *value = tn_tree_copy(arena, tree);
    value->key_at = tree->at;
    tn_tree_put(arena, map, key, value);
    return map;
}

static const tn_tree *get(const tn_tree *map, const char *key, size_t size)
{
    if (map == NULL || map->kind != TN_TREE_MAP) {
        return NULL;
    }
    for (const tn_tree *item = map->first; item != NULL; item = item->next) {
        if (strncmp(item->key, key, size) == 0 && item->key[size] == '\0') {
            return item;
        }
    }
    return NULL;
}

const tn_tree *tn_tree_get(const tn_tree *map, const char *key)
{
    return get(map, key, strlen(key));
}

const tn_tree *tn_tree_at(const tn_tree *tree, const char *path)
{
    while (tree != NULL && *path != '\0') {
        size_t size = strcspn(path, ".");
        tree = get(tree, path, size);
        path += size + (path[size] == '.');
    }
    return tree;
}

const tn_origin *tn_tree_place(const tn_tree *tree, const char *path)
{
    static const tn_origin nowhere = {.source = "configuration"};
    const tn_tree *t = tn_tree_at(tree, path);
    return t != NULL ? &t->at : &nowhere;
}

uint32_t tn_tree_count(const tn_tree *tree)
{
    uint32_t n = 0;
    for (const tn_tree *item = tree != NULL ? tree->first : NULL; item != NULL; item = item->next) {
        n++;
    }
    return n;
}

bool tn_tree_is_null(const tn_tree *tree)
{
    return tree == NULL || tree->kind == TN_TREE_NULL;
}

tn_origin tn_tree_later(const tn_origin *under, const tn_origin *over)
{
    return over->line > 0 || under->line == 0 ? *over : *under;
}

tn_tree *tn_tree_merge(tn_arena *arena, const tn_tree *under, const tn_tree *over)
{
    if (over == NULL) {
        TN_ASSERT(under != NULL);
        return tn_tree_copy(arena, under);
    }
    if (under == NULL || under->kind != TN_TREE_MAP || over->kind != TN_TREE_MAP) {
        return tn_tree_copy(arena, over);
    }
    tn_tree *merged = tn_tree_copy(arena, under);
    for (const tn_tree *item = over->first; item != NULL; item = item->next) {
        tn_tree *member = tn_tree_merge(arena, tn_tree_get(under, item->key), item);
        member->key = item->key;
        member->key_at = item->key_at;
        place(merged, member);
    }
    merged->key = over->key;
    merged->key_at = over->key_at;
    merged->at = tn_tree_later(&under->at, &over->at);
    return merged;
}

/* ---- as YAML that reads back equal ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Returns whether a text has no indicators with a meaning, even in flow style. ':' and '#' need a
 * blank beside them to mean something; at an edge they are left to the quotes. */
static bool is_plain(const char *text)
{
    size_t size = strlen(text);
    char first = text[0];
    bool starts = is_word(first) || strchr("/.+$(;^\\", first) != NULL ||
                  (first == '-' && (is_word(text[1]) || text[1] == '.'));
    if (size == 0 || !starts || strncmp(text, "...", 3) == 0) {
        return false;
    }
    for (size_t i = 1; i < size; i++) {
        if (!is_word(text[i]) && strchr("-/.+$()*=%@;^~!<>|&\\", text[i]) == NULL) {
            bool next = is_word(text[i + 1]) || (text[i] == ':' && text[i + 1] == '/');
            if (!next || (text[i] != ':' && text[i] != ' ')) {
                return false;
            }
        }
    }
    return true;
}

/* Escapes the characters beyond ASCII that YAML takes for line breaks, or drops: U+0085, U+2028,
 * U+2029, U+FEFF. Returns how many bytes were written as an escape, 0 for any other character. */
static size_t escape_wide(tn_text *out, const char *at)
{
    static const struct {
        const char *bytes;
        const char *escape;
    } wide[] = {
        {"\xC2\x85", "\\N"},
        {"\xE2\x80\xA8", "\\L"},
        {"\xE2\x80\xA9", "\\P"},
        {"\xEF\xBB\xBF", "\\uFEFF"},
    };
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        size_t size = strlen(wide[i].bytes);
        if (strncmp(at, wide[i].bytes, size) == 0) {
            tn_text_adds(out, wide[i].escape);
            return size;
        }
    }
    return 0;
}

static void print_quoted(tn_text *out, const char *text)
{
    tn_text_addc(out, '"');
    while (*text != '\0') {
        size_t taken = escape_wide(out, text);
        if (taken != 0) {
            text += taken;
            continue;
        }
        unsigned char c = (unsigned char)*text++;
        if (c == '"' || c == '\\') {
            tn_text_addc(out, '\\');
            tn_text_addc(out, (char)c);
        } else if (c == '\n') {
            tn_text_adds(out, "\\n");
        } else if (c == '\t') {
            tn_text_adds(out, "\\t");
        } else if (c < 0x20 || c == 0x7F) {
            tn_text_addf(out, "\\x%02X", c);
        } else {
            tn_text_addc(out, (char)c);
        }
    }
    tn_text_addc(out, '"');
}

void tn_tree_print_scalar(tn_text *out, const char *text)
{
    if (is_plain(text)) {
        tn_text_adds(out, text);
    } else {
        print_quoted(out, text);
    }
}

void tn_tree_print_flow(tn_text *out, const tn_tree *tree)
{
    if (tree->kind == TN_TREE_NULL) {
        tn_text_addc(out, '~');
        return;
    }
    if (tree->kind == TN_TREE_SCALAR && tree->quoted && strcmp(tree->text, "none") == 0) {
        print_quoted(out, tree->text); /* the bare word would mean something */
        return;
    }
    if (tree->kind == TN_TREE_SCALAR) {
        tn_tree_print_scalar(out, tree->text);
        return;
    }
    bool map = tree->kind == TN_TREE_MAP;
    tn_text_addc(out, map ? '{' : '[');
    for (const tn_tree *item = tree->first; item != NULL; item = item->next) {
        if (map) {
            tn_tree_print_scalar(out, item->key);
            tn_text_adds(out, ": ");
        }
        tn_tree_print_flow(out, item);
        tn_text_adds(out, item->next != NULL ? ", " : "");
    }
    tn_text_addc(out, map ? '}' : ']');
}

/* ---- flow style, read without libyaml: libtnet links this file and not yaml.c ---- */

enum { DEPTH_MAX = 16 };

typedef struct cursor {
    tn_arena *arena;
    const char *at;
    tn_origin origin;
    uint32_t depth;
} cursor;

static tn_tree *read_node(cursor *c);

static void skip_blanks(cursor *c)
{
    c->at += strspn(c->at, " ");
}

static void expect(cursor *c, char wanted)
{
    skip_blanks(c);
    TN_ASSERT(*c->at == wanted);
    c->at++;
    skip_blanks(c);
}

/* Returns the bytes up to an indicator of flow style; a ':' is one in front of a blank only. */
static size_t plain_size(const char *text)
{
    size_t size = 0;
    while (strchr(",[]{}", text[size]) == NULL && !(text[size] == ':' && text[size + 1] == ' ')) {
        size++;
    }
    return size;
}

/* Reads a text in quotes, or up to the next indicator. Neither kind of quote knows escapes here. */
static tn_tree *read_scalar(cursor *c)
{
    tn_tree *scalar = tn_tree_new(c->arena, TN_TREE_SCALAR, c->origin);
    const char *begin = c->at;
    size_t size = 0;
    if (*begin == '"' || *begin == '\'') {
        const char *end = strchr(begin + 1, *begin);
        TN_ASSERT(end != NULL);
        c->at = end + 1;
        begin++;
        size = (size_t)(end - begin);
        scalar->quoted = true;
    } else {
        size = c->depth == 0 ? strlen(begin) : plain_size(begin);
        c->at += size;
        while (size > 0 && begin[size - 1] == ' ') {
            size--;
        }
        TN_ASSERT(size > 0);
    }
    scalar->text = tn_tree_text(c->arena, begin, size);
    if (!scalar->quoted && strcmp(scalar->text, "~") == 0) {
        scalar->kind = TN_TREE_NULL;
    }
    return scalar;
}

/* Reads "[..]" or "{..}". */
static tn_tree *read_items(cursor *c, bool map)
{
    char end = map ? '}' : ']';
    tn_tree *tree = tn_tree_new(c->arena, map ? TN_TREE_MAP : TN_TREE_LIST, c->origin);
    expect(c, map ? '{' : '[');
    while (*c->at != end) {
        const tn_tree *key = map ? read_scalar(c) : NULL;
        if (map) {
            expect(c, ':');
            TN_ASSERT(tn_tree_get(tree, key->text) == NULL);
            tn_tree_put(c->arena, tree, key->text, read_node(c));
        } else {
            tn_tree_append(tree, read_node(c));
        }
        skip_blanks(c);
        if (*c->at != end) {
            expect(c, ',');
        }
    }
    expect(c, end);
    return tree;
}

static tn_tree *read_node(cursor *c)
{
    TN_ASSERT(c->depth < DEPTH_MAX);
    if (*c->at != '[' && *c->at != '{') {
        return read_scalar(c);
    }
    c->depth++;
    tn_tree *node = read_items(c, *c->at == '{');
    c->depth--;
    return node;
}

tn_tree *tn_tree_read_flow(tn_arena *arena, const char *text, const char *source)
{
    cursor c = {.arena = arena, .at = text, .origin = {.source = source}};
    skip_blanks(&c);
    tn_tree *tree = read_node(&c);
    TN_ASSERT(*c.at == '\0');
    return tree;
}
