/* exportkit.h - a small run in a folder of its own: data, training, checkpoint, export. */
#pragma once

#include "cluster/launch/membership.h"
#include "serve/exported_model.h"
#include "train/config/run.h"
#include "train/export/export.h"

#include "base/core/arena.h"
#include "config/diag.h"

typedef struct exportkit {
    char dir[256];
    tn_arena *arena;
    tn_diag diag;
    tn_binder binder;
    tn_run run;
    const tn_model_plan *plan;
} exportkit;

/* Slots of every kind over csv files train.csv and edge.csv in the folder, which are written.
 * `model` is YAML of the section `model`; `overrides` are "key=value", NULL-terminated, or NULL. */
void exportkit_open(exportkit *k, const char *model, const char *const *overrides);
void exportkit_close(exportkit *k);

/* The same configuration for one of several processes, with other overrides; in the binder's arena.
 */
const tn_model_plan *exportkit_plan_of(const exportkit *k, const char *const *overrides,
                                       const tn_membership *membership, tn_binder *b);

/* Trains and leaves a checkpoint in <dir>/run. */
void exportkit_train(exportkit *k);

/* Exports into <dir>/export. */
tn_exported exportkit_export(exportkit *k);

/* Logits that the trainer gives the rows of edge.csv, corrected for sampled negatives; the caller
 * frees them. */
float *exportkit_trainer_logits(exportkit *k, uint32_t *n);
/* The same by the export. */
float *exportkit_scorer_logits(exportkit *k, const char *path, uint32_t *n);

extern const char
    *const exportkit_edge_lines[]; /* of edge.csv, without its header; NULL at the end */
extern const char exportkit_header[];
