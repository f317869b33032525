/* tree.c - see tree.h. */
#include "config/tree.h"

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

/* One node without its children and siblings; texts are shared, since trees of one run live
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

/* Puts `item` where the member of the same name stands, or at the end. */
static void place(tn_tree *map, tn_tree *item)
{
    tn_tree *before = NULL;
    for (tn_tree *old = map->first; old != NULL; before = old, old = old->next) {
        if (strcmp(old->key, item->key) != 0) {
            continue;
        }
        item->next = old->next;
        if (before == NULL) {
            map->first = item;
        } else {
            before->next = item;
        }
        if (map->last == old) {
            map->last = item;
        }
        return;
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
