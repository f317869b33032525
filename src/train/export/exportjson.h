/* exportjson.h - model.json: what a model reads and how its graph runs; the writing half.
 *
 *     {"format":"tnet-model","version":[1,0],"model_id":"..","weights":"dense.safetensors",
 *      "dictionary":"dict.tnd","slots":[..],"numeric":[..],"inputs":[..],"nodes":[..],
 *      "outputs":[{"task":"click","logit":"logit","pctr":"pctr"}],
 *      "tasks":[{"name":"click","task":"click","score":"logit"},..],"seed":"..","init":[..],
 *      "source":{..},"crc32c":".."}
 *
 * tasks are there when there are several. seed and init are there when some key without a row reads
 * as first values. source holds the options of `data` that are not default, for programs that read
 * rows in the format the model was trained on; after `segments` a slot has what else its
 * configuration said. A calibrated output has a member "calibration", and the version is [2,0],
 * which readers without it refuse; a further task has its own, and the version is [5,0].
 */
#pragma once

#include "metrics/calibrator.h"
#include "nn/graph/graph.h"
#include "serve/model_json.h"
#include "train/step/model_plan.h"

typedef struct tn_text tn_text; /* base/core/text.h */

typedef struct tn_export_graph {
    const tn_model_plan *plan;
    const tn_binder *binder;
    tn_graph *g;       /* forward only, norms folded, with the correction for sampled negatives */
    tn_params *params; /* its own copy of the weights */
    tn_node *logit;
    tn_node *pctr;       /* if the target is not clicks: the logit, which is the score itself */
    uint32_t n_tasks;    /* 0: one label */
    tn_model_task *task; /* names of nodes; lives in the arena */
    const char *nodes;   /* JSON; lives in the arena */
    const struct tn_json *node; /* the same, parsed; lives in the arena */
} tn_export_graph;

/* Builds the graph for serving from the weights in `from`. `plan` and `b` must outlive it. Faults
 * of the list cannot be: the worker was made from the same. TN_E_CKPT: a weight is not finite. */
tn_status tn_export_graph_new(tn_export_graph *out, const tn_model_plan *plan, tn_params *from,
                              const tn_binder *b, tn_error *err) TN_MUST_USE;
void tn_export_graph_done(tn_export_graph *x);

/* Writes model.json. `calibration`: one for each task; of kind NONE: its scores are served as they
 * are. */
tn_status tn_export_model_json(tn_text *out, const tn_export_graph *x, const char *model_id,
                               const tn_calibration *calibration, tn_error *err) TN_MUST_USE;

/* Appends its list "inputs" alone. */
void tn_export_inputs_json(tn_text *out, const tn_export_graph *x);
