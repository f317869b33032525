/* layerblocks.c - writes uses of named blocks out: layers called "<use>.<layer>", whose inputs are
 * those of the use.
 *
 *     {name: a, block: tower, x: [deep, num], weights: w}
 *
 *     {name: a.x, concat: [deep, num]}                    an argument of several inputs
 *     {name: a.h, dense: a.x, units: 32, weights: w.h}    h of the block, which reads x
 *     {name: a, concat: a.h}                              the block's output
 */
#include "models/layerblocks.h"

#include "base/core/arena.h"
#include "base/core/error.h"
#include "config/diag.h"
#include "config/tree.h"
#include "models/layerlist.h"
#include "nn/layer/layers.h"

#include <stdio.h>
#include <string.h>

enum { LAYERS_MAX = 4096, DEPTH_MAX = 32, NAMES_MAX = 64 };

/* The node of the list that a name of a block refers to. */
typedef struct meaning {
    const char *name, *full;
    struct meaning *next;
} meaning;

typedef struct writer {
    const tn_binder *binder;
    const tn_tree *blocks;
    tn_tree *list;
    uint32_t n;
} writer;

/* One use of a block that is being written; outer NULL: the list itself, in which every name means
 * itself. */
typedef struct scope {
    const struct scope *outer;
    const tn_tree *block;
    const char *name;    /* name of the use, in the list */
    const char *weights; /* prefix of the names of its layers; NULL: they have their own */
    meaning *known;
} scope;

static const char *text_of(const tn_tree *t)
{
    return t != NULL && t->kind == TN_TREE_SCALAR && t->text[0] != '\0' ? t->text : NULL;
}

static const char *dotted(const writer *w, const char *a, const char *b)
{
    const size_t size = strlen(a) + strlen(b) + 2;
    char *out = TN_NEW_ARRAY(w->binder->arena, char, size);
    (void)snprintf(out, size, "%s.%s", a, b);
    return out;
}

static const char *full_name(const writer *w, const scope *s, const char *name)
{
    return s->outer == NULL ? name : dotted(w, s->name, name);
}

static const meaning *find(const scope *s, const char *name)
{
    const meaning *m = s->known;
    while (m != NULL && strcmp(m->name, name) != 0) {
        m = m->next;
    }
    return m;
}

/* Adds a name to the scope. Returns false after a report: the block has this name already. */
static bool know(const writer *w, scope *s, const tn_tree *name, const char *full)
{
    if (s->outer == NULL) {
        return true; /* layerlist.c looks after the names of the list */
    }
    if (find(s, name->text) != NULL) {
        tn_diag_error(w->binder->diag, &name->at,
                      "two arguments or layers of block '%s' are called '%s'", s->block->key,
                      name->text);
        return false;
    }
    meaning *m = TN_NEW(w->binder->arena, meaning);
    *m = (meaning){name->text, full, s->known};
    s->known = m;
    return true;
}

/* Returns the input of a layer as the list calls it. NULL: reported. */
static const char *resolve(const writer *w, const scope *s, const tn_tree *name)
{
    const char *text = text_of(name);
    if (text == NULL) {
        tn_diag_error(w->binder->diag, &name->at, "expected the name of an input or layer");
        return NULL;
    }
    if (s->outer == NULL) {
        return text;
    }
    const meaning *found = find(s, text);
    if (found != NULL) {
        return found->full;
    }
    const char *names[NAMES_MAX];
    uint32_t n = 0;
    for (const meaning *m = s->known; m != NULL && n < NAMES_MAX; m = m->next) {
        names[n++] = m->name;
    }
    const char *near = tn_nearest(text, names, n);
    tn_diag_error(w->binder->diag, &name->at,
                  "block '%s' has no argument or layer '%s' above this one%s%s%s", s->block->key,
                  text, near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                  near != NULL ? "'?)" : "");
    return NULL;
}

/* Resolves a name or a list of names. NULL: reported. */
static tn_tree *resolve_all(const writer *w, const scope *s, const tn_tree *names)
{
    if (names->kind != TN_TREE_LIST) {
        const char *one = resolve(w, s, names);
        return one != NULL ? tn_tree_scalar(w->binder->arena, one, names->at) : NULL;
    }
    tn_tree *list = tn_tree_new(w->binder->arena, TN_TREE_LIST, names->at);
    for (const tn_tree *t = names->first; t != NULL; t = t->next) {
        const char *one = resolve(w, s, t);
        if (one == NULL) {
            return NULL;
        }
        tn_tree_append(list, tn_tree_scalar(w->binder->arena, one, t->at));
    }
    return list;
}

/* Appends a layer to the list. Returns false after a report: too many. */
static bool append(writer *w, tn_tree *layer)
{
    if (w->n++ == LAYERS_MAX) {
        tn_diag_error(w->binder->diag, &layer->at, "blocks make more than %d layers", LAYERS_MAX);
        return false;
    }
    tn_tree_append(w->list, layer);
    return true;
}

static void put_text(const writer *w, tn_tree *map, const char *key, const char *text, tn_origin at)
{
    tn_tree_put(w->binder->arena, map, key, tn_tree_scalar(w->binder->arena, text, at));
}

/* Appends {name: .., concat: ..}. */
static bool append_concat(writer *w, const char *name, tn_tree *inputs, const tn_tree *use)
{
    tn_tree *layer = tn_tree_new(w->binder->arena, TN_TREE_MAP, use->at);
    put_text(w, layer, "name", name, use->at);
    tn_tree_put(w->binder->arena, layer, "concat", inputs);
    return append(w, layer);
}

/* Writes a layer of a block, under its full name. Returns false after a report. */
static bool write_layer(writer *w, scope *s, const tn_tree *item)
{
    tn_arena *arena = w->binder->arena;
    const tn_tree *name = tn_tree_get(item, "name");
    tn_tree *layer = tn_tree_copy(arena, item);
    if (s->outer == NULL) {
        return append(w, layer); /* if it is wrong, layerlist.c says so */
    }
    if (text_of(name) == NULL) {
        tn_diag_error(w->binder->diag, &item->at, "a layer of a block needs a name");
        return false;
    }
    const tn_tree *word = tn_list_word(item, w->binder->diag);
    if (word == NULL) {
        return false;
    }
    const tn_layer *kind = tn_layer_find(word->key);
    const char *full = full_name(w, s, name->text);
    put_text(w, layer, "name", full, name->at);
    if (!kind->source) {
        tn_tree *inputs = resolve_all(w, s, word);
        if (inputs == NULL) {
            return false;
        }
        tn_tree_put(arena, layer, word->key, inputs);
    }
    if (kind->weighs && s->weights != NULL && tn_tree_get(item, "weights") == NULL) {
        put_text(w, layer, "weights", dotted(w, s->weights, name->text), name->at);
    }
    return know(w, s, name, full) && append(w, layer);
}

/* ---- uses ---- */

/* Returns the block that `use` names, which may not be one that is being written. NULL:
 * reported. */
static const tn_tree *find_block(const writer *w, const scope *s, const tn_tree *use)
{
    const tn_tree *word = tn_tree_get(use, "block");
    const char *name = text_of(word);
    const tn_tree *block = name != NULL ? tn_tree_get(w->blocks, name) : NULL;
    if (block == NULL) {
        const char *names[NAMES_MAX];
        uint32_t n = 0;
        for (const tn_tree *t = w->blocks != NULL ? w->blocks->first : NULL;
             t != NULL && n < NAMES_MAX; t = t->next) {
            names[n++] = t->key;
        }
        tn_diag_unknown(w->binder->diag, &word->at, "block", name != NULL ? name : "", names, n);
        return NULL;
    }
    uint32_t depth = 0;
    for (const scope *o = s; o->outer != NULL; o = o->outer) {
        if (o->block == block) {
            tn_diag_error(w->binder->diag, &word->at, "block '%s' uses itself", name);
            return NULL;
        }
        if (++depth == DEPTH_MAX) {
            tn_diag_error(w->binder->diag, &word->at, "blocks in blocks, deeper than %d", depth);
            return NULL;
        }
    }
    return block;
}

/* Checks that every member of the use is an argument, or one that every use has. */
static bool check_members(const writer *w, const tn_tree *use, const tn_tree *block)
{
    const char *names[NAMES_MAX + 4] = {"name", "block", "weights"};
    uint32_t n = 3;
    for (const tn_tree *t = tn_tree_get(block, "args")->first; t != NULL; t = t->next) {
        names[n++] = t->text;
    }
    for (const tn_tree *t = use->first; t != NULL; t = t->next) {
        uint32_t i = 0;
        while (i < n && strcmp(names[i], t->key) != 0) {
            i++;
        }
        if (i == n) {
            tn_diag_unknown(w->binder->diag, &t->key_at, "argument", t->key, names, n);
            return false;
        }
    }
    return true;
}

/* Resolves the arguments of the block. Returns false after a report. */
static bool take_arguments(writer *w, const scope *outer, scope *s, const tn_tree *use)
{
    if (!check_members(w, use, s->block)) {
        return false;
    }
    for (const tn_tree *t = tn_tree_get(s->block, "args")->first; t != NULL; t = t->next) {
        const tn_tree *given = tn_tree_get(use, t->text);
        if (given == NULL || tn_tree_is_null(given)) {
            tn_diag_error(w->binder->diag, given != NULL ? &given->at : &use->at,
                          "block '%s' needs its argument '%s'", s->block->key, t->text);
            return false;
        }
        tn_tree *inputs = resolve_all(w, outer, given);
        if (inputs == NULL) {
            return false;
        }
        const char *full = inputs->text;
        if (inputs->kind == TN_TREE_LIST) {
            full = dotted(w, s->name, t->text);
            if (!append_concat(w, full, inputs, use)) {
                return false;
            }
        }
        if (!know(w, s, t, full)) {
            return false;
        }
    }
    return true;
}

static bool write_layers(writer *w, scope *s, const tn_tree *layers);

/* Returns the weights of the use: those it names, else a part of those of the block around it. */
static const char *weights_of(const writer *w, const scope *outer, const tn_tree *use)
{
    const char *named = text_of(tn_tree_get(use, "weights"));
    if (named != NULL || outer->weights == NULL) {
        return named;
    }
    return dotted(w, outer->weights, tn_tree_get(use, "name")->text);
}

static bool write_use(writer *w, scope *outer, const tn_tree *use)
{
    const tn_tree *name = tn_tree_get(use, "name");
    const tn_tree *weights = tn_tree_get(use, "weights");
    if (text_of(name) == NULL || (weights != NULL && text_of(weights) == NULL)) {
        tn_diag_error(w->binder->diag, weights != NULL ? &weights->at : &use->at,
                      text_of(name) == NULL ? "a use of a block needs a name"
                                            : "'weights' is a name");
        return false;
    }
    scope s = {.outer = outer, .block = find_block(w, outer, use)};
    s.name = full_name(w, outer, name->text);
    s.weights = weights_of(w, outer, use);
    if (s.block == NULL || !take_arguments(w, outer, &s, use) ||
        !write_layers(w, &s, tn_tree_get(s.block, "layers"))) {
        return false;
    }
    tn_tree *output = resolve_all(w, &s, tn_tree_get(s.block, "output"));
    return output != NULL && know(w, outer, name, s.name) && append_concat(w, s.name, output, use);
}

static bool write_layers(writer *w, scope *s, const tn_tree *layers)
{
    for (const tn_tree *item = layers->first; item != NULL; item = item->next) {
        const bool use = tn_tree_get(item, "block") != NULL;
        if (!(use ? write_use(w, s, item) : write_layer(w, s, item))) {
            return false;
        }
    }
    return true;
}

/* ---- definitions ---- */

static bool check_args(const writer *w, const tn_tree *block)
{
    const tn_tree *args = tn_tree_get(block, "args");
    if (args == NULL || args->kind != TN_TREE_LIST || args->first == NULL ||
        tn_tree_count(args) > NAMES_MAX) {
        tn_diag_error(w->binder->diag, args != NULL ? &args->at : &block->at,
                      "block '%s' needs 'args', a list of 1 to %d names", block->key, NAMES_MAX);
        return false;
    }
    for (const tn_tree *t = args->first; t != NULL; t = t->next) {
        const char *name = text_of(t);
        if (name == NULL || strcmp(name, "name") == 0 || strcmp(name, "block") == 0 ||
            strcmp(name, "weights") == 0) {
            tn_diag_error(w->binder->diag, &t->at, "an argument of a block cannot be called '%s'",
                          name != NULL ? name : "");
            return false;
        }
    }
    return true;
}

static bool check_block(const writer *w, const tn_tree *block)
{
    static const char *const keys[] = {"args", "layers", "output"};
    tn_diag *diag = w->binder->diag;
    if (block->kind != TN_TREE_MAP) {
        tn_diag_error(diag, &block->at, "expected {args: [..], layers: [..], output: ..}");
        return false;
    }
    for (const tn_tree *t = block->first; t != NULL; t = t->next) {
        uint32_t i = 0;
        while (i < 3 && strcmp(keys[i], t->key) != 0) {
            i++;
        }
        if (i == 3) {
            tn_diag_unknown(diag, &t->key_at, "member of a block", t->key, keys, 3);
            return false;
        }
    }
    const tn_tree *layers = tn_tree_get(block, "layers");
    if (layers == NULL || layers->kind != TN_TREE_LIST || layers->first == NULL) {
        tn_diag_error(diag, layers != NULL ? &layers->at : &block->at,
                      "block '%s' needs 'layers', a list", block->key);
        return false;
    }
    if (tn_tree_get(block, "output") == NULL) {
        tn_diag_error(diag, &block->at, "block '%s' needs 'output', one of its layers", block->key);
        return false;
    }
    return check_args(w, block);
}

tn_tree *tn_blocks_write_out(const tn_tree *blocks, const tn_tree *layers, const tn_binder *b)
{
    writer w = {.binder = b, .blocks = blocks};
    w.list = tn_tree_new(b->arena, TN_TREE_LIST, layers->at);
    if (!tn_tree_is_null(blocks) && blocks->kind != TN_TREE_MAP) {
        tn_diag_error(b->diag, &blocks->at, "'blocks' must be a map of names to blocks");
        return NULL;
    }
    for (const tn_tree *t = blocks != NULL ? blocks->first : NULL; t != NULL; t = t->next) {
        if (!check_block(&w, t)) {
            return NULL;
        }
    }
    scope list = {0};
    return write_layers(&w, &list, layers) ? w.list : NULL;
}
