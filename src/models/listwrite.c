/* listwrite.c - writing a list of layers as a tree; see layerlist.h. */
#include "models/layerlist.h"

#include "base/core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 512 };

static tn_origin written(void)
{
    return (tn_origin){.source = "model"};
}

static tn_tree *member(tn_list_writer *w, const char *key, tn_tree_kind kind)
{
    for (tn_tree *t = w->list->first; t != NULL; t = t->next) {
        if (strcmp(t->key, key) == 0) {
            return t;
        }
    }
    tn_tree *t = tn_tree_new(w->arena, kind, written());
    tn_tree_put(w->arena, w->list, key, t);
    return t;
}

/* An input of these slots, without its width. */
static tn_tree *embed_input(tn_list_writer *w, const char *name, const tn_tree *slots)
{
    tn_tree *input = tn_tree_new(w->arena, TN_TREE_MAP, written());
    tn_tree *which = tn_tree_is_null(slots) ? tn_tree_scalar(w->arena, "all", written())
                                            : tn_tree_copy(w->arena, slots);
    tn_tree_put(w->arena, input, "embed", which);
    tn_tree_put(w->arena, member(w, "inputs", TN_TREE_MAP), name, input);
    return input;
}

void tn_list_embed(tn_list_writer *w, const char *name, const tn_tree *slots, uint32_t dim,
                   const tn_tree *init)
{
    tn_tree *input = embed_input(w, name, slots);
    if (dim != 0) {
        tn_list_set(w, input, "dim", "%u", dim);
    }
    if (!tn_tree_is_null(init)) {
        tn_tree_put(w->arena, input, "init", tn_tree_copy(w->arena, init));
    }
}

void tn_list_fields(tn_list_writer *w, const char *name, const tn_tree *slots, uint32_t k)
{
    tn_list_set(w, embed_input(w, name, slots), "field_dim", "%u", k);
}

void tn_list_numeric(tn_list_writer *w, const char *name)
{
    tn_tree *input = tn_tree_new(w->arena, TN_TREE_MAP, written());
    tn_list_set(w, input, "numeric", "all");
    tn_tree_put(w->arena, member(w, "inputs", TN_TREE_MAP), name, input);
}

tn_tree *tn_list_layer(tn_list_writer *w, const char *name, const char *layer,
                       const char *const *inputs)
{
    tn_tree *item = tn_tree_new(w->arena, TN_TREE_MAP, written());
    tn_list_set(w, item, "name", "%s", name);
    if (inputs[1] == NULL) {
        tn_list_set(w, item, layer, "%s", inputs[0]);
    } else {
        tn_tree *in = tn_tree_new(w->arena, TN_TREE_LIST, written());
        for (uint32_t i = 0; inputs[i] != NULL; i++) {
            tn_tree_append(in, tn_tree_scalar(w->arena, inputs[i], written()));
        }
        tn_tree_put(w->arena, item, layer, in);
    }
    tn_tree_append(member(w, "layers", TN_TREE_LIST), item);
    return item;
}

void tn_list_set(tn_list_writer *w, tn_tree *layer, const char *key, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    int used = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    TN_ASSERT(used >= 0 && used < TEXT_MAX);
    tn_tree_put(w->arena, layer, key, tn_tree_scalar(w->arena, text, written()));
}

void tn_list_output(tn_list_writer *w, const char *name)
{
    tn_list_set(w, w->list, "output", "%s", name);
}
