/* sequence_plan.h - the sequences of a configuration as models see them. */
#pragma once

typedef struct tn_binder tn_binder;     /* config/values.h */
typedef struct tn_features tn_features; /* models/layerlist.h */
typedef struct tn_model_inputs tn_model_inputs;
typedef struct tn_run tn_run; /* train/config/run.h */

/* Sets f->sequence, whose slots are there. A target must be a slot with keys, of no sequence, and
 * as wide as what it is paired with. Faults go to b->diag. Lives in b->arena. */
void tn_sequence_features_make(const tn_run *run, const tn_binder *b, tn_features *f);

/* Refuses what a model whose inputs have the positions of a sequence cannot have: export.graph:
 * onnx. Faults go to b->diag. */
void tn_sequence_inputs_check(const tn_run *run, const tn_model_inputs *inputs, const tn_binder *b);
