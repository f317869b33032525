/* yaml_flow.c - reads the defaults of option tables, without libyaml: libtnet links this file and
 * not yaml.c. */
#include "config/yaml_flow.h"

#include <string.h>

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

/* Up to an indicator of flow style; a ':' is one in front of a blank only. */
static size_t plain_size(const char *text)
{
    size_t size = 0;
    while (strchr(",[]{}", text[size]) == NULL && !(text[size] == ':' && text[size + 1] == ' ')) {
        size++;
    }
    return size;
}

/* A text in quotes, or up to the next indicator. Neither kind of quote knows escapes here. */
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

static tn_tree *read_list(cursor *c)
{
    tn_tree *list = tn_tree_new(c->arena, TN_TREE_LIST, c->origin);
    expect(c, '[');
    while (*c->at != ']') {
        tn_tree_append(list, read_node(c));
        skip_blanks(c);
        if (*c->at != ']') {
            expect(c, ',');
        }
    }
    expect(c, ']');
    return list;
}

static tn_tree *read_map(cursor *c)
{
    tn_tree *map = tn_tree_new(c->arena, TN_TREE_MAP, c->origin);
    expect(c, '{');
    while (*c->at != '}') {
        const tn_tree *key = read_scalar(c);
        expect(c, ':');
        tn_tree *value = read_node(c);
        TN_ASSERT(tn_tree_get(map, key->text) == NULL);
        tn_tree_put(c->arena, map, key->text, value);
        skip_blanks(c);
        if (*c->at != '}') {
            expect(c, ',');
        }
    }
    expect(c, '}');
    return map;
}

static tn_tree *read_node(cursor *c)
{
    TN_ASSERT(c->depth < DEPTH_MAX);
    if (*c->at != '[' && *c->at != '{') {
        return read_scalar(c);
    }
    c->depth++;
    tn_tree *node = *c->at == '[' ? read_list(c) : read_map(c);
    c->depth--;
    return node;
}

tn_tree *tn_flow_read(tn_arena *arena, const char *text, const char *source)
{
    cursor c = {.arena = arena, .at = text, .origin = {.source = source}};
    skip_blanks(&c);
    tn_tree *tree = read_node(&c);
    TN_ASSERT(*c.at == '\0');
    return tree;
}
