/* model_plan.h - everything that is decided before the first record is read.
 *
 *     configuration -> schema (io) + list of layers (models) -> layout of rows -> rules (ps)
 *
 * Made once per run, lives in the binder's arena, then only read. What shapes the model
 * (checkpoints compare it) follows from here alone.
 */
#pragma once

#include "base/core/error.h"
#include "base/keys/init.h"
#include "base/keys/keyset.h"

typedef struct tn_binder tn_binder;             /* config/values.h */
typedef struct tn_features tn_features;         /* models/layerlist.h */
typedef struct tn_layout tn_layout;             /* base/keys/record.h */
typedef struct tn_model_inputs tn_model_inputs; /* models/layerlist.h */
typedef struct tn_rules tn_rules;               /* ps/optim/rule.h */
typedef struct tn_run tn_run;                   /* train/config/run.h */
typedef struct tn_schema tn_schema;             /* io/schema/schema.h */
typedef struct tn_tree tn_tree;                 /* config/tree.h */

typedef struct tn_model_plan {
    const tn_run *run;
    const tn_schema *schema;
    const tn_features *features;
    const tn_tree *list; /* inputs, layers, output */
    const tn_model_inputs *inputs;
    const tn_layout *layout;
    const tn_rules *rules;
    tn_init dense_init;
    const uint16_t *slot_group; /* per slot of a batch */
    const bool *slot_used;      /* per slot: some input takes it */
    const bool *missing_init;   /* per group */
    tn_owners owners;           /* owner of the partitions; alone, a process owns all of them */
} tn_model_plan;

/* Faults go to b->diag, then *out is NULL and the status TN_E_CONFIG. `run` must outlive it. */
tn_status tn_model_plan_new(const tn_model_plan **out, const tn_run *run, const tn_binder *b,
                            tn_error *err) TN_MUST_USE;
