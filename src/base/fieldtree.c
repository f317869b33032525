/* fieldtree.c - see fieldtree.h. */
#include "base/fieldtree.h"

#include "base/flow.h"

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

/* {key: tree} in the place of `tree`. */
static const tn_tree *wrap(tn_arena *arena, const char *key, const tn_tree *tree)
{
    tn_tree *map = tn_tree_new(arena, TN_TREE_MAP, tree->at);
    map->key = tree->key;
    map->key_at = tree->key_at;
    tn_tree *value = tn_tree_copy(arena, tree);
    value->key_at = tree->at;
    tn_tree_put(arena, map, key, value);
    return map;
}

const tn_tree *tn_field_unfold(tn_arena *arena, const tn_field *f, const tn_tree *tree)
{
    bool table = f->kind == TN_KIND_TABLE || f->kind == TN_KIND_TABLES;
    if (tree == NULL || tree->kind != TN_TREE_SCALAR || (!table && f->kind != TN_KIND_VARIANT)) {
        return tree;
    }
    TN_ASSERT(!table || f->table->kind != TN_KIND_END);
    return wrap(arena, table ? f->table->key : type_key, tree);
}

static const tn_tree *default_of(tn_arena *arena, const tn_field *f)
{
    if (f->fallback == NULL) {
        return NULL;
    }
    if (f->fallback[0] == '\0') {
        return tn_tree_scalar(arena, "", (tn_origin){.source = "default"});
    }
    return tn_field_unfold(arena, f, tn_flow_read(arena, f->fallback, "default"));
}

/* {type: NAME} or NAME; NULL when neither. */
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

static tn_tree *merge_value(const tn_binder *b, const tn_field *f, const tn_tree *under,
                            const tn_tree *over);

static tn_tree *empty_map(tn_arena *arena, const tn_tree *like)
{
    tn_tree *map = tn_tree_new(arena, TN_TREE_MAP, like->at);
    map->key = like->key;
    map->key_at = like->key_at;
    return map;
}

/* `tables`: where the row of a key is looked up, the first that has it. */
static tn_tree *merge_maps(const tn_binder *b, const tn_field *const tables[2],
                           const tn_tree *under, const tn_tree *over)
{
    tn_tree *merged = empty_map(b->arena, over);
    merged->at = tn_tree_later(&under->at, &over->at);
    for (const tn_tree *item = under->first; item != NULL; item = item->next) {
        if (tn_tree_get(over, item->key) == NULL) {
            tn_tree_append(merged, tn_tree_copy(b->arena, item));
        }
    }
    for (const tn_tree *item = over->first; item != NULL; item = item->next) {
        const tn_field *row = tn_field_find(tables[0], item->key);
        row = row != NULL ? row : tn_field_find(tables[1], item->key);
        const tn_tree *old = tn_tree_get(under, item->key);
        tn_tree *value =
            row != NULL ? merge_value(b, row, old, item) : tn_tree_merge(b->arena, old, item);
        value->key = item->key;
        value->key_at = item->key_at;
        tn_tree_append(merged, value);
    }
    return merged;
}

/* What of `under`, options of choice `old`, still means something once the type has changed. */
static const tn_tree *carry_over(tn_arena *arena, const tn_field *f, const tn_tree *under,
                                 const tn_choice *old, const tn_choice *new)
{
    tn_tree *kept = empty_map(arena, under);
    for (const tn_tree *item = under->first; item != NULL; item = item->next) {
        bool shared = strcmp(item->key, type_key) == 0 || tn_field_find(f->table, item->key);
        bool lost = !shared && tn_field_find(old->fields, item->key) != NULL &&
                    tn_field_find(new->fields, item->key) == NULL;
        if (!lost) {
            tn_tree_append(kept, tn_tree_copy(arena, item));
        }
    }
    return kept;
}

static tn_tree *merge_variant(const tn_binder *b, const tn_field *f, const tn_tree *under,
                              const tn_tree *over)
{
    const tn_choice *old = tn_field_choice(b->arena, f, under);
    const tn_choice *new = tn_tree_is_null(tn_tree_get(over, type_key)) ? old : choice_of(f, over);
    if (old != NULL && new != NULL && old != new) {
        under = carry_over(b->arena, f, under, old, new);
    }
    const tn_field *tables[2] = {new != NULL ? new->fields : NULL, f->table};
    return merge_maps(b, tables, under, over);
}

/* Variables of the environment have no small letters, so a name is also found in another case. */
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

static tn_tree *merge_by_name(const tn_binder *b, const tn_field *f, const tn_tree *under,
                              const tn_tree *over)
{
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
        const tn_field *tables[2] = {f->table, NULL};
        const tn_tree *merged = merge_maps(b, tables, base, item);
        tn_tree *next = old->next;
        tn_origin at = old->at;
        *old = *merged;
        old->next = next;
        old->at = at;
        old->key = NULL;
    }
    return list;
}

/* See TN_FIELD_TREE_OF. */
static tn_tree *merge_trees(const tn_binder *b, const tn_field *f, const tn_tree *under,
                            const tn_tree *over)
{
    if (f->first == NULL) {
        return tn_tree_merge(b->arena, under, over);
    }
    bool replaces = f->first[0] == '\0' || over->kind != TN_TREE_MAP;
    if (!replaces && under->kind == TN_TREE_MAP) {
        replaces = tn_tree_get(over, f->first) != NULL && tn_tree_get(under, f->first) == NULL;
    }
    if (replaces) {
        return tn_tree_copy(b->arena, over);
    }
    if (under->kind == TN_TREE_SCALAR) {
        under = wrap(b->arena, f->first, under);
    }
    return tn_tree_merge(b->arena, under, over);
}

static tn_tree *merge_value(const tn_binder *b, const tn_field *f, const tn_tree *under,
                            const tn_tree *over)
{
    if (under == NULL || tn_tree_is_null(over)) {
        return tn_tree_copy(b->arena, over);
    }
    if (f->kind == TN_KIND_TABLES && under->kind == TN_TREE_LIST && over->kind == TN_TREE_MAP) {
        return merge_by_name(b, f, under, over);
    }
    if (f->kind == TN_KIND_TABLES && under->kind == TN_TREE_MAP && over->kind == TN_TREE_MAP) {
        return tn_tree_merge(b->arena, under, over); /* the list lies further down */
    }
    if (f->kind == TN_KIND_TREE) {
        return merge_trees(b, f, under, over);
    }
    if (f->kind != TN_KIND_TABLE && f->kind != TN_KIND_VARIANT) {
        return tn_tree_copy(b->arena, over);
    }
    under = tn_field_unfold(b->arena, f, under);
    over = tn_field_unfold(b->arena, f, over);
    if (under->kind != TN_TREE_MAP || over->kind != TN_TREE_MAP) {
        return tn_tree_copy(b->arena, over);
    }
    if (f->kind == TN_KIND_VARIANT) {
        return merge_variant(b, f, under, over);
    }
    const tn_field *tables[2] = {f->table, NULL};
    return merge_maps(b, tables, under, over);
}

const tn_tree *tn_field_value(tn_arena *arena, const tn_field *f, const tn_tree *given)
{
    const tn_tree *fallback = default_of(arena, f);
    if (tn_tree_is_null(given)) {
        return fallback;
    }
    given = tn_field_unfold(arena, f, given);
    bool layered = f->kind == TN_KIND_TABLE ||
                   (f->kind == TN_KIND_VARIANT &&
                    tn_field_choice(arena, f, given) == tn_field_choice(arena, f, fallback));
    if (!layered || tn_tree_is_null(fallback)) {
        return given;
    }
    const tn_binder b = {.arena = arena};
    return merge_value(&b, f, fallback, given);
}

tn_tree *tn_fields_merge(const tn_binder *b, const tn_field *fields, const tn_tree *under,
                         const tn_tree *over)
{
    TN_ASSERT(over->kind == TN_TREE_MAP && (under == NULL || under->kind == TN_TREE_MAP));
    if (under == NULL) {
        return tn_tree_copy(b->arena, over);
    }
    const tn_field *tables[2] = {fields, NULL};
    return merge_maps(b, tables, under, over);
}
