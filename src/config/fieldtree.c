/* fieldtree.c - how an option table looks at a tree: shorthands, defaults, layers upon layers. */
#include "config/fieldtree.h"

#include "base/core/arena.h"
#include "config/diag.h"
#include "config/tree.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const type_key = "type";

const tn_field *tn_field_find(const tn_field *fields, const char *key)
{
    for (const tn_field *f = fields; f != NULL && f->kind != TN_KIND_END; f++) {
        if (strcmp(f->key, key) == 0) {
            return f;
        }
    }
    return NULL;
}

uint32_t tn_word_find(const char *const *words, const char *text)
{
    for (uint32_t i = 0; words != NULL && words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

static uint32_t add_keys(const char **keys, uint32_t n, const tn_field *fields)
{
    for (const tn_field *f = fields; f != NULL && f->kind != TN_KIND_END; f++, n++) {
        if (keys != NULL) {
            keys[n] = f->key;
        }
    }
    return n;
}

const char *const *tn_field_keys(tn_arena *arena, const tn_field *fields, const tn_field *more,
                                 bool variant, uint32_t *n)
{
    uint32_t count = add_keys(NULL, add_keys(NULL, variant, fields), more);
    const char **keys = TN_NEW_ARRAY(arena, const char *, count);
    if (variant) {
        keys[0] = type_key;
    }
    *n = add_keys(keys, add_keys(keys, variant, fields), more);
    return keys;
}

const tn_tree *tn_field_unfold(tn_arena *arena, const tn_field *f, const tn_tree *tree)
{
    bool table = f->kind == TN_KIND_TABLE || f->kind == TN_KIND_TABLES;
    if (tree == NULL || tree->kind != TN_TREE_SCALAR || (!table && f->kind != TN_KIND_VARIANT)) {
        return tree;
    }
    TN_ASSERT(!table || f->table->kind != TN_KIND_END);
    return tn_tree_wrap(arena, table ? f->table->key : type_key, tree);
}

static const tn_tree *default_of(tn_arena *arena, const tn_field *f)
{
    if (f->fallback == NULL) {
        return NULL;
    }
    if (f->fallback[0] == '\0') {
        return tn_tree_scalar(arena, "", (tn_origin){.source = "default"});
    }
    return tn_field_unfold(arena, f, tn_tree_read_flow(arena, f->fallback, "default"));
}

/* Returns the written type of a variant or rule; NULL: none. */
static const tn_tree *type_of(const tn_tree *map)
{
    const tn_tree *type = tn_tree_get(map, type_key);
    return type != NULL && type->kind == TN_TREE_SCALAR ? type : NULL;
}

static const tn_choice *choice_of(const tn_field *f, const tn_tree *map)
{
    const tn_tree *type = type_of(map);
    for (const tn_choice *const *c = f->choices; type != NULL && *c != NULL; c++) {
        if (strcmp((*c)->name, type->text) == 0) {
            return *c;
        }
    }
    return NULL;
}

const tn_choice *tn_field_choice(tn_arena *arena, const tn_field *f, const tn_tree *map)
{
    bool named = !tn_tree_is_null(tn_tree_get(map, type_key));
    return choice_of(f, named ? map : default_of(arena, f));
}

/* ---- layers ---- */

/* Rules by which two trees merge. */
typedef struct merger {
    const tn_binder *b;
    bool one_layer; /* pieces of the same layer: a type that is not written is not another one */
} merger;

/* Sources of the row of a key: the first table that has it; else `each`, the row of every key. May
 * all be NULL. */
typedef struct rows {
    const tn_field *table[2];
    const tn_field *each;
} rows;

static tn_tree *merge_value(const merger *m, const tn_field *f, const tn_tree *under,
                            const tn_tree *over);

static const tn_field *row_of(const rows *r, const char *key)
{
    const tn_field *row = tn_field_find(r->table[0], key);
    row = row != NULL ? row : tn_field_find(r->table[1], key);
    return row != NULL ? row : r->each;
}

static tn_tree *merge_maps(const merger *m, const rows *r, const tn_tree *under,
                           const tn_tree *over)
{
    tn_arena *arena = m->b->arena;
    tn_tree *merged = tn_tree_copy(arena, under);
    for (const tn_tree *item = over->first; item != NULL; item = item->next) {
        const tn_field *row = row_of(r, item->key);
        const tn_tree *old = tn_tree_get(under, item->key);
        tn_tree *value =
            row != NULL ? merge_value(m, row, old, item) : tn_tree_merge(arena, old, item);
        value->key_at = item->key_at;
        tn_tree_put(arena, merged, item->key, value);
    }
    merged->at = tn_tree_later(&under->at, &over->at);
    merged->key = over->key;
    merged->key_at = over->key_at;
    return merged;
}

/* Returns the members of `under`, options of choice `old`, that still mean something once the type
 * has changed: of choices with shared options (models) those that the new one has too, of the same
 * kind (`layers` of a graph are a list, of another model a number), of others (rules) none. Members
 * that `old` does not know stay, to be refused. */
static const tn_tree *carry_over(tn_arena *arena, const tn_field *f, const tn_tree *under,
                                 const tn_choice *old, const tn_choice *new)
{
    tn_tree *kept = tn_tree_new(arena, TN_TREE_MAP, under->at);
    for (const tn_tree *item = under->first; item != NULL; item = item->next) {
        bool shared = strcmp(item->key, type_key) == 0 || tn_field_find(f->table, item->key);
        const tn_field *was = tn_field_find(old->fields, item->key);
        const tn_field *is = tn_field_find(new->fields, item->key);
        bool lost =
            !shared && was != NULL && (f->table == NULL || is == NULL || is->kind != was->kind);
        if (!lost) {
            tn_tree_append(kept, tn_tree_copy(arena, item));
        }
    }
    return kept;
}

static tn_tree *merge_variant(const merger *m, const tn_field *f, const tn_tree *under,
                              const tn_tree *over)
{
    tn_arena *arena = m->b->arena;
    const tn_choice *old = tn_field_choice(arena, f, under);
    const tn_choice *new =
        tn_tree_is_null(tn_tree_get(over, type_key)) ? old : tn_field_choice(arena, f, over);
    bool unwritten = m->one_layer && type_of(under) == NULL;
    if (old != NULL && new != NULL && old != new && !unwritten) {
        under = carry_over(arena, f, under, old, new);
    }
    const rows r = {.table = {new != NULL ? new->fields : NULL, f->table}};
    return merge_maps(m, &r, under, over);
}

/* Finds an item by name. Variables of the environment have no small letters, so a name is also
 * found in another case. */
static tn_tree *find_named(const tn_field *f, tn_tree *list, const char *name)
{
    tn_tree *similar = NULL;
    for (tn_tree *item = list->first; item != NULL; item = item->next) {
        const tn_tree *own = item->kind == TN_TREE_MAP ? tn_tree_get(item, f->table->key) : item;
        if (own == NULL || own->kind != TN_TREE_SCALAR) {
            continue;
        }
        if (strcmp(own->text, name) == 0) {
            return item;
        }
        if (strcasecmp(own->text, name) == 0) {
            similar = item;
        }
    }
    return similar;
}

static void report_no_item(const tn_binder *b, const tn_field *f, const tn_tree *list,
                           const tn_tree *item)
{
    uint32_t n = 0;
    const char **names = TN_NEW_ARRAY(b->arena, const char *, tn_tree_count(list));
    for (const tn_tree *each = list->first; each != NULL; each = each->next) {
        const tn_tree *own = each->kind == TN_TREE_MAP ? tn_tree_get(each, f->table->key) : each;
        if (own != NULL && own->kind == TN_TREE_SCALAR) {
            names[n++] = own->text;
        }
    }
    char what[80];
    (void)snprintf(what, sizeof what, "%s in '%s':", f->table->key, f->key);
    tn_diag_unknown(b->diag, &item->key_at, what, item->key, names, n);
}

static tn_tree *merge_by_name(const merger *m, const tn_field *f, const tn_tree *under,
                              const tn_tree *over)
{
    const tn_binder *b = m->b;
    tn_tree *list = tn_tree_copy(b->arena, under);
    for (const tn_tree *item = over->first; item != NULL; item = item->next) {
        tn_tree *old = find_named(f, list, item->key);
        if (old == NULL) {
            report_no_item(b, f, list, item);
            continue;
        }
        const tn_tree *base = tn_field_unfold(b->arena, f, old);
        if (item->kind != TN_TREE_MAP || base->kind != TN_TREE_MAP) {
            tn_diag_error(b->diag, &item->at, "'%s' must be a map", item->key);
            continue;
        }
        const rows r = {.table = {f->table}};
        const tn_tree *merged = merge_maps(m, &r, base, item);
        tn_tree *next = old->next;
        tn_origin at = old->at;
        *old = *merged;
        old->next = next;
        old->at = at;
        old->key = NULL;
    }
    return list;
}

/* Merges rules, see TN_FIELD_TREE_OF. */
static tn_tree *merge_rule(const merger *m, const tn_tree *under, const tn_tree *over)
{
    tn_arena *arena = m->b->arena;
    const tn_tree *old = type_of(under);
    const tn_tree *new = type_of(over);
    bool unwritten = old == NULL && m->one_layer;
    if (new != NULL && !unwritten && (old == NULL || strcmp(old->text, new->text) != 0)) {
        return tn_tree_copy(arena, over);
    }
    if (old != NULL || new != NULL) {
        return tn_tree_merge(arena, under, over);
    }
    static const tn_field rule = {.kind = TN_KIND_TREE, .first = "type"};
    return merge_maps(m, &(rows){.each = &rule}, under, over);
}

/* Merges trees, see TN_FIELD_TREE_OF. */
static tn_tree *merge_trees(const merger *m, const tn_field *f, const tn_tree *under,
                            const tn_tree *over)
{
    tn_arena *arena = m->b->arena;
    if (f->first == NULL) {
        return tn_tree_merge(arena, under, over);
    }
    if (f->first[0] == '\0' || over->kind != TN_TREE_MAP) {
        return tn_tree_copy(arena, over);
    }
    if (under->kind == TN_TREE_SCALAR) {
        under = tn_tree_wrap(arena, f->first, under);
    }
    if (under->kind != TN_TREE_MAP) {
        return tn_tree_copy(arena, over);
    }
    if (strcmp(f->first, type_key) == 0) {
        return merge_rule(m, under, over);
    }
    bool replaces = tn_tree_get(over, f->first) != NULL && tn_tree_get(under, f->first) == NULL;
    return replaces ? tn_tree_copy(arena, over) : tn_tree_merge(arena, under, over);
}

static tn_tree *merge_value(const merger *m, const tn_field *f, const tn_tree *under,
                            const tn_tree *over)
{
    tn_arena *arena = m->b->arena;
    if (under == NULL || tn_tree_is_null(over)) {
        return tn_tree_copy(arena, over);
    }
    if (f->kind == TN_KIND_TABLES && under->kind == TN_TREE_LIST && over->kind == TN_TREE_MAP) {
        return merge_by_name(m, f, under, over);
    }
    if (f->kind == TN_KIND_TABLES && under->kind == TN_TREE_MAP && over->kind == TN_TREE_MAP) {
        const tn_field item = {.kind = TN_KIND_TABLE, .table = f->table};
        /* items of a list, matched by their names */
        return merge_maps(m, &(rows){.each = &item}, under, over);
    }
    if (f->kind == TN_KIND_TREE) {
        return merge_trees(m, f, under, over);
    }
    if (f->kind != TN_KIND_TABLE && f->kind != TN_KIND_VARIANT) {
        return tn_tree_copy(arena, over);
    }
    under = tn_field_unfold(arena, f, under);
    over = tn_field_unfold(arena, f, over);
    if (under->kind != TN_TREE_MAP || over->kind != TN_TREE_MAP) {
        return tn_tree_copy(arena, over);
    }
    if (f->kind == TN_KIND_VARIANT) {
        return merge_variant(m, f, under, over);
    }
    return merge_maps(m, &(rows){.table = {f->table}}, under, over);
}

static tn_tree *merge_roots(const merger *m, const tn_field *fields, const tn_tree *under,
                            const tn_tree *over)
{
    TN_ASSERT(over->kind == TN_TREE_MAP && (under == NULL || under->kind == TN_TREE_MAP));
    if (under == NULL) {
        return tn_tree_copy(m->b->arena, over);
    }
    return merge_maps(m, &(rows){.table = {fields}}, under, over);
}

const tn_tree *tn_field_value(tn_arena *arena, const tn_field *f, const tn_tree *given)
{
    const tn_tree *fallback = default_of(arena, f);
    if (tn_tree_is_null(given)) {
        return fallback;
    }
    given = tn_field_unfold(arena, f, given);
    bool layered = f->kind == TN_KIND_TABLE ||
                   (f->kind == TN_KIND_VARIANT && tn_tree_is_null(tn_tree_get(given, type_key)));
    if (!layered || tn_tree_is_null(fallback)) {
        return given;
    }
    const tn_binder b = {.arena = arena};
    return merge_value(&(merger){.b = &b}, f, fallback, given);
}

tn_tree *tn_fields_merge(const tn_binder *b, const tn_field *fields, const tn_tree *under,
                         const tn_tree *over)
{
    return merge_roots(&(merger){.b = b}, fields, under, over);
}

tn_tree *tn_fields_join(const tn_binder *b, const tn_field *fields, const tn_tree *first,
                        const tn_tree *second)
{
    return merge_roots(&(merger){.b = b, .one_layer = true}, fields, first, second);
}
