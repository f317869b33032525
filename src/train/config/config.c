/* config.c - see config.h.
 *
 * Which presets apply is itself an option that any layer may set, so the layers
 * are merged twice: once without presets, to learn their names, and once on top
 * of them. Only the second time speaks.
 */
#include "train/config/config.h"

#include "config/fieldtree.h"
#include "config/yaml.h"
#include "train/config/configfile.h"
#include "train/config/slot_ranges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENVIRONMENT, COMMAND_LINE, N_OVERS };

typedef struct layers {
    const tn_config_in *in;
    tn_binder b;
    const tn_tree *file;          /* with its includes */
    const tn_tree *over[N_OVERS]; /* NULL: nothing */
    bool failed;
} layers;

static int by_text(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;
    return strcmp(*left, *right);
}

/* Adds a variable or override to its layer. */
static void add_over(layers *l, const tn_tree **layer, const tn_tree *over)
{
    if (over == NULL) {
        l->failed = true;
        return;
    }
    *layer = tn_fields_join(&l->b, l->in->fields, *layer, over);
}

/* Variables in the order of their names: TNET_SLOTS before TNET_SLOTS__C1__DIM. */
static void read_overs(layers *l)
{
    const tn_config_in *in = l->in;
    uint32_t n = 0;
    while (in->env != NULL && in->env[n] != NULL) {
        n++;
    }
    const char **names = TN_NEW_ARRAY(l->b.arena, const char *, n);
    uint32_t n_names = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (tn_is_config_variable(in->fields, in->env[i])) {
            names[n_names++] = in->env[i];
        }
    }
    qsort(names, n_names, sizeof *names, by_text);
    for (uint32_t i = 0; i < n_names; i++) {
        add_over(l, &l->over[ENVIRONMENT], tn_config_variable(&l->b, names[i]));
    }
    for (uint32_t i = 0; i < in->n_overrides; i++) {
        add_over(l, &l->over[COMMAND_LINE], tn_config_override(&l->b, in->overrides[i]));
    }
}

static const tn_tree *merge_overs(const layers *l, const tn_binder *b, const tn_tree *tree)
{
    for (uint32_t i = 0; i < N_OVERS; i++) {
        tree = l->over[i] != NULL ? tn_fields_merge(b, l->in->fields, tree, l->over[i]) : tree;
    }
    return tree;
}

/* What the value of option `f` offers its parts: the table of each key. */
static const tn_field *row_below(tn_arena *arena, const tn_field *f, const tn_tree *value,
                                 const char *key)
{
    if (f->kind == TN_KIND_TABLE) {
        return tn_field_find(f->table, key);
    }
    if (f->kind != TN_KIND_VARIANT) {
        return NULL;
    }
    const tn_field *row = tn_field_find(f->table, key);
    const tn_choice *choice = tn_field_choice(arena, f, value);
    return row == NULL && choice != NULL ? tn_field_find(choice->fields, key) : row;
}

const tn_tree *tn_config_value(tn_arena *arena, const tn_field *fields, const tn_tree *tree,
                               const char *path)
{
    const tn_field root = {.kind = TN_KIND_TABLE, .key = "", .fallback = "{}", .table = fields};
    const tn_field *row = &root;
    const tn_tree *value = tn_field_value(arena, &root, tree);
    while (value != NULL && *path != '\0') {
        size_t size = strcspn(path, ".");
        const char *key = tn_tree_text(arena, path, size);
        path += size + (path[size] == '.');
        row = row != NULL ? row_below(arena, row, value, key) : NULL;
        value = tn_tree_get(value, key);
        value = row != NULL ? tn_field_value(arena, row, value) : value;
    }
    return value;
}

static const char *text_at(layers *l, const tn_tree *tree, const char *path, tn_origin *at)
{
    const tn_tree *value = tn_config_value(l->b.arena, l->in->fields, tree, path);
    if (value == NULL || value->kind != TN_TREE_SCALAR) {
        return NULL;
    }
    *at = value->at;
    return value->text;
}

/* The YAML of a preset on top of `under`. */
static const tn_tree *add_preset(layers *l, const tn_tree *under, const char *source,
                                 const char *yaml)
{
    const char *name = tn_tree_text(l->b.arena, source, strlen(source));
    const tn_yaml_in in = {.text = yaml, .size = strlen(yaml), .source = name};
    const tn_tree *tree = tn_yaml_read(l->b.arena, l->b.diag, &in);
    TN_ASSERT(tree != NULL && tree->kind == TN_TREE_MAP); /* part of the program */
    tree = tn_names_expand(l->b.arena, l->b.diag, tree);
    return tn_fields_merge(&l->b, l->in->fields, under, tree);
}

/* The presets that `first`, the merged layers, ask for: the format's, and the model's above it. */
static const tn_tree *merge_presets(layers *l, const tn_tree *first)
{
    const tn_presets *presets = l->in->presets;
    const tn_tree *merged = tn_tree_new(l->b.arena, TN_TREE_MAP, (tn_origin){.source = "preset"});
    tn_origin at = {0};
    char source[200];
    const char *format = text_at(l, first, "data.format", &at);
    const char *yaml = format != NULL && presets != NULL ? presets->format(format) : NULL;
    if (yaml != NULL) {
        (void)snprintf(source, sizeof source, "preset %s", format);
        merged = add_preset(l, merged, source, yaml);
    }
    const char *model = text_at(l, first, "model.type", &at);
    const char *preset = text_at(l, first, "model.preset", &at);
    if (presets == NULL || model == NULL || preset == NULL) {
        return merged;
    }
    yaml = presets->model(model, preset);
    if (yaml == NULL) {
        tn_diag_error(l->b.diag, &at, "model '%s' has no preset '%s'", model, preset);
        return merged;
    }
    (void)snprintf(source, sizeof source, "preset %s of %s", preset, model);
    return add_preset(l, merged, source, yaml);
}

const tn_tree *tn_config_load(const tn_config_in *in, tn_arena *arena, tn_diag *diag)
{
    layers l = {.in = in, .b = {.arena = arena, .diag = diag}};
    l.file = in->path != NULL ? tn_config_file(&l.b, in->fields, in->path)
                              : tn_tree_new(arena, TN_TREE_MAP, (tn_origin){0});
    read_overs(&l);
    if (l.file == NULL || l.failed) {
        return NULL;
    }
    tn_diag unheard = {0};
    const tn_binder quiet = {.arena = arena, .diag = &unheard};
    const tn_tree *first = merge_overs(&l, &quiet, l.file);
    tn_diag_done(&unheard);

    const tn_tree *tree = merge_presets(&l, first);
    tree = tn_fields_merge(&l.b, in->fields, tree, l.file);
    return merge_overs(&l, &l.b, tree);
}
