/* fieldprint.c - prints the resolved configuration as YAML. */
#include "base/core/arena.h"
#include "base/core/text.h"
#include "config/fieldtext.h"
#include "config/fieldtree.h"
#include "config/tree.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 256, COMMENT_COLUMN = 48, SOURCES_MAX = 4, ARENA_BYTES = 1 << 14 };

typedef struct printer {
    tn_text *out;
    tn_arena *arena;
    const tn_print_opts *opts;
    char path[PATH_BYTES];
    uint32_t indent;
    size_t line_start; /* of the line being written, in out->size */
} printer;

static void print_rows(printer *p, const tn_field *fields, const tn_tree *map);

static bool is_left_out(const printer *p)
{
    const char *const *path = p->opts->without;
    while (path != NULL && *path != NULL && strcmp(*path, p->path) != 0) {
        path++;
    }
    return path != NULL && *path != NULL;
}

static void begin_line(printer *p)
{
    p->line_start = p->out->size;
    for (uint32_t i = 0; i < p->indent; i++) {
        tn_text_addc(p->out, ' ');
    }
}

/* The sources of the texts in a value, each once. */
typedef struct sources {
    const tn_origin *at[SOURCES_MAX];
    uint32_t n;
} sources;

static void collect(sources *s, const tn_tree *value)
{
    for (const tn_tree *item = value->first; item != NULL; item = item->next) {
        collect(s, item);
    }
    bool known = value->first != NULL || value->at.source == NULL || s->n == SOURCES_MAX;
    for (uint32_t i = 0; i < s->n && !known; i++) {
        known = strcmp(s->at[i]->source, value->at.source) == 0;
    }
    if (!known) {
        s->at[s->n++] = &value->at;
    }
}

/* Ends the line, with the sources of `value` unless it is a map that goes on below. */
static void end_line(printer *p, const tn_tree *value)
{
    if (!p->opts->sources || value == NULL) {
        tn_text_addc(p->out, '\n');
        return;
    }
    sources s = {0};
    collect(&s, value);
    while (p->out->size - p->line_start < COMMENT_COLUMN && !p->out->failed) {
        tn_text_addc(p->out, ' ');
    }
    for (uint32_t i = 0; i < s.n; i++) {
        tn_text_adds(p->out, i == 0 ? " # " : ", ");
        for (const char *c = s.at[i]->source; *c != '\0'; c++) {
            tn_text_add(p->out, (unsigned char)*c < ' ' ? "?" : c, 1);
        }
        if (s.at[i]->line > 0) {
            tn_text_addf(p->out, ":%u", s.at[i]->line);
        }
    }
    tn_text_addc(p->out, '\n');
}

static bool equals(const tn_tree *a, const tn_tree *b)
{
    if (a->kind != b->kind || (a->kind == TN_TREE_SCALAR && strcmp(a->text, b->text) != 0)) {
        return false;
    }
    const tn_tree *x = a->first;
    const tn_tree *y = b->first;
    for (; x != NULL && y != NULL; x = x->next, y = y->next) {
        bool same_key = x->key == NULL || strcmp(x->key, y->key) == 0;
        if (!same_key || !equals(x, y)) {
            return false;
        }
    }
    return x == NULL && y == NULL;
}

/* An item of a list of tables: what is not default, in the order of the table. */
static tn_tree *item_of(const printer *p, const tn_field *table, const tn_tree *item)
{
    tn_tree *kept = tn_tree_new(p->arena, TN_TREE_MAP, item->at);
    for (const tn_field *f = table; f->kind != TN_KIND_END; f++) {
        const tn_tree *given = tn_tree_get(item, f->key);
        const tn_tree *fallback = tn_field_value(p->arena, f, NULL);
        bool is_default = tn_tree_is_null(given) || (fallback != NULL && equals(given, fallback));
        if (!is_default) {
            tn_tree_put(p->arena, kept, f->key, tn_tree_copy(p->arena, given));
        }
    }
    return kept;
}

static void print_items(printer *p, const tn_tree *list, const tn_field *table)
{
    p->indent += 2;
    for (const tn_tree *item = list->first; item != NULL; item = item->next) {
        const tn_field row = {.kind = TN_KIND_TABLES, .table = table};
        const tn_tree *map = table != NULL ? tn_field_unfold(p->arena, &row, item) : item;
        bool is_row = table != NULL && map->kind == TN_TREE_MAP;
        begin_line(p);
        tn_text_adds(p->out, "- ");
        tn_tree_print_flow(p->out, is_row ? item_of(p, table, map) : item);
        end_line(p, item);
    }
    p->indent -= 2;
}

/* Whether each item of a list, or member of a tree, gets a line of its own. */
static bool has_lines(const tn_field *f, const tn_tree *value)
{
    if (f->kind == TN_KIND_TABLES) {
        return value->kind == TN_TREE_LIST && value->first != NULL;
    }
    for (const tn_tree *item = value->first; item != NULL; item = item->next) {
        if (item->kind == TN_TREE_MAP) {
            return true;
        }
    }
    return false;
}

/* A tree of maps: each of its members on a line of its own. */
static void print_members(printer *p, const tn_tree *map)
{
    p->indent += 2;
    for (const tn_tree *item = map->first; item != NULL; item = item->next) {
        begin_line(p);
        tn_tree_print_scalar(p->out, item->key);
        tn_text_adds(p->out, ": ");
        tn_tree_print_flow(p->out, item);
        end_line(p, item);
    }
    p->indent -= 2;
}

static void print_variant(printer *p, const tn_field *f, const tn_tree *map)
{
    const tn_choice *choice = tn_field_choice(p->arena, f, map);
    const tn_tree *type = tn_tree_get(map, "type");
    p->indent += 2;
    if (choice != NULL && type != NULL) {
        begin_line(p);
        tn_text_addf(p->out, "type: %s", choice->name);
        end_line(p, type);
    }
    print_rows(p, f->table, map);
    print_rows(p, choice != NULL ? choice->fields : NULL, map);
    p->indent -= 2;
}

static void print_value(printer *p, const tn_field *f, const tn_tree *value)
{
    begin_line(p);
    tn_text_addf(p->out, "%s:", f->key);
    bool map = value->kind == TN_TREE_MAP;
    if (map && f->kind == TN_KIND_TABLE) {
        end_line(p, NULL);
        p->indent += 2;
        print_rows(p, f->table, value);
        p->indent -= 2;
    } else if (map && f->kind == TN_KIND_VARIANT) {
        end_line(p, NULL);
        print_variant(p, f, value);
    } else if (map && has_lines(f, value)) {
        end_line(p, NULL);
        print_members(p, value);
    } else if (has_lines(f, value)) {
        end_line(p, NULL);
        print_items(p, value, f->kind == TN_KIND_TABLES ? f->table : NULL);
    } else {
        tn_text_addc(p->out, ' ');
        tn_tree_print_flow(p->out, value);
        end_line(p, value);
    }
}

static void print_rows(printer *p, const tn_field *fields, const tn_tree *map)
{
    size_t section = strlen(p->path);
    for (const tn_field *f = fields; f != NULL && f->kind != TN_KIND_END; f++) {
        int size = snprintf(p->path + section, sizeof p->path - section, "%s%s",
                            section > 0 ? "." : "", f->key);
        TN_ASSERT(size >= 0 && (size_t)size < sizeof p->path - section);
        const tn_tree *value = tn_field_value(p->arena, f, tn_tree_get(map, f->key));
        if (value != NULL && !is_left_out(p)) {
            print_value(p, f, value);
        }
        p->path[section] = '\0';
    }
}

void tn_fields_print(tn_text *out, const tn_field *fields, const tn_tree *tree,
                     const tn_print_opts *opts)
{
    printer p = {.out = out, .arena = tn_arena_new(ARENA_BYTES), .opts = opts};
    print_rows(&p, fields, tree);
    tn_arena_free(p.arena);
}
