/* config.h - one configuration out of layers.
 *
 *     default < preset < include < file < environment < command line
 *
 * Defaults are in the option tables and are not part of the tree. Each layer is
 * merged key by key (config/fieldtree.h) and every node keeps its origin:
 * `configs/a.yaml:7`, `preset criteo`, `TNET_TRAIN__EPOCHS`, `command line`.
 *
 *     tn_diag diag = {0};
 *     const tn_tree *tree = tn_config_load(&in, arena, &diag);
 *     if (tree != NULL)
 *         tn_run_bind(&(tn_binder){.arena = arena, .diag = &diag}, tree, &run);
 *     TN_TRY(tn_diag_check(&diag, err));
 */
#pragma once

#include "base/core/compiler.h"
#include "config/values.h"

enum { TN_INCLUDE_DEPTH_MAX = 16 };

/* Sources of the YAML of presets; NULL from either: there is none of that name. */
typedef struct tn_text tn_text; /* base/core/text.h */

#define TN_DEFAULT_OF "default of " /* with the model's name: the origin of its own defaults */

typedef struct tn_presets {
    const char *(*format)(const char *format); /* data.format */
    /* model.type, model.preset; preset NULL: what this model has in place of common defaults */
    const char *(*model)(const char *model, const char *preset);
    void (*list)(const char *model, tn_text *out); /* the presets of a model; NULL: not known */
    const char *(*loss)(const char *loss); /* loss.type: its defaults; NULL: no loss has any */
    /* Writes options that follow from others into the merged layers; NULL: there are none. */
    const tn_tree *(*spread)(const tn_binder *b, const tn_tree *tree);
} tn_presets;

typedef struct tn_config_in {
    const tn_field *fields;       /* table of the whole configuration */
    const tn_presets *presets;    /* NULL: none */
    const char *path;             /* the file; NULL: none */
    const char *text;             /* its YAML, in place of what the file holds; NULL: it is read */
    const char *top;              /* config.yaml on top of it, which is then run.yaml; NULL: none */
    const char *const *env;       /* "NAME=value", NULL-terminated; NULL: none */
    const char *const *overrides; /* "section.key=value" */
    uint32_t n_overrides;
} tn_config_in;

/* NULL: a text could not be read, reported. Other faults are reported too, but the tree is there to
 * be bound, so that the user sees all of them at once. Copies what it needs of `in`. */
const tn_tree *tn_config_load(const tn_config_in *in, tn_arena *arena, tn_diag *diag) TN_MUST_USE;
