/* fieldtree.c - see fieldtree.h. */
#include "config/fieldtree.h"

#include "config/yaml_flow.h"

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
    return tn_field_merge(&(tn_binder){.arena = arena}, f, fallback, given);
}
