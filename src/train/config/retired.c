/* retired.c - the list of options that are no more, and a copy of a configuration without them. */
#include "train/config/retired.h"

#include "base/core/arena.h"
#include "config/tree.h"

#include <stdint.h>
#include <string.h>

typedef struct retired {
    const char *section, *key;
    const char *value; /* the only one that is gone; NULL: the option is gone */
    bool deep;         /* an option of rules, which lie anywhere below the section */
} retired;

static const retired options[] = {
    {"data", "cache", NULL, false},       {"train", "workers", NULL, false},
    {"cluster", "recovery", NULL, false}, {"cluster", "on_loss", NULL, false},
    {"cluster", "wait", NULL, false},     {"compute", "gemm", "onednn", false},
    {"train", "l2_mode", "exact", true},  {"slots", "l2_mode", "exact", true},
};

/* `depth`: how many maps and lists are around the item. */
static bool is_retired(const char *section, const tn_tree *item, uint32_t depth)
{
    bool found = false;
    for (size_t i = 0; i < sizeof options / sizeof *options && !found && item->key != NULL; i++) {
        const retired *o = &options[i];
        const bool named = strcmp(o->section, section) == 0 && strcmp(o->key, item->key) == 0;
        const bool valued =
            o->value == NULL || (item->kind == TN_TREE_SCALAR && strcmp(o->value, item->text) == 0);
        found = named && valued && (depth == 1 || (o->deep && depth > 1));
    }
    return found;
}

/* NULL as `section`: `t` is the whole, whose members are sections. */
static tn_tree *copy_without(tn_arena *arena, const tn_tree *t, const char *section, uint32_t depth)
{
    if (t->first == NULL) {
        return tn_tree_copy(arena, t);
    }
    tn_tree *out = tn_tree_new(arena, t->kind, t->at);
    out->key = t->key;
    out->key_at = t->key_at;
    for (const tn_tree *item = t->first; item != NULL; item = item->next) {
        const char *within = section != NULL ? section : item->key;
        if (depth == 0 || !is_retired(within, item, depth)) {
            tn_tree_append(out, copy_without(arena, item, within, depth + 1));
        }
    }
    return out;
}

tn_tree *tn_retired_drop(tn_arena *arena, const tn_tree *config)
{
    TN_ASSERT(config->kind == TN_TREE_MAP);
    return copy_without(arena, config, NULL, 0);
}
