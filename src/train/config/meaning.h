/* meaning.h - what a row means to a model: which key or value a cell becomes, which label the row
 * has, and what corrects its score.
 *
 *     the model of 'runs/a/ckpt-3' was learned with other options:
 *       slots.age.transform: here {buckets: [30, 60]}, in the checkpoint {buckets: [10, 20]}
 *       data.negative_sampling: here 1, in the checkpoint 0.2
 *
 * It belongs to the model: whoever reads a checkpoint, goes on from it, or begins with its weights
 * compares his configuration with config.yaml of the checkpoint, after choices are made
 * (choices.h). Each option of `data` and `slots` says in its table what it is (tn_field_meaning),
 * so that a new one must decide.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_binder tn_binder; /* config/values.h */
typedef struct tn_run tn_run;       /* train/config/run.h */
typedef struct tn_text tn_text;     /* base/core/text.h */
typedef struct tn_tree tn_tree;     /* config/tree.h */

typedef struct tn_meaning {
    const tn_binder *b;
    const tn_run *run;
    const char *past; /* config.yaml of the checkpoint; "": nothing is compared */
    const char *path; /* path of the checkpoint, for the message */
    const char *hint; /* remedy for a difference */
    const tn_tree
        *from;  /* checkpoint.from, where its rows begin a new run; NULL: it is read or gone
                            on with */
    bool reads; /* nothing is learned: rows may have no label */
} tn_meaning;

/* TN_E_CONFIG: the options that differ, one on a line. */
tn_status tn_meaning_check(const tn_meaning *m, tn_error *err) TN_MUST_USE;

/* Keeps the first of lines that begin with '\n' each, and says how many more there were. */
void tn_meaning_shorten(tn_text *lines);

/* The configuration of whoever only reads a checkpoint: `tree` with the checkpoint's rules of
 * training, which no score depends on, but the state that is in its rows. */
const tn_tree *tn_meaning_read_rules(const tn_binder *b, const tn_tree *tree, const char *past);

/* Finds what `data.index_base: auto` was when the checkpoint was learned. Returns false when it is
 * not known. */
bool tn_meaning_index_base(const tn_binder *b, const char *past, uint32_t *out);
