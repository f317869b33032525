/* onnx.h - a finished graph as an ONNX model: opset 13, ir_version 7.
 *
 *     inputs    [N, cols] floats each, by the names of their nodes: embeddings (pooled vectors),
 *               numeric columns, and values of a row: embed_squares, embed_norm
 *     nodes     in execution order, named after their results: "deep.1"; between "deep.1:1", ..
 *     outputs   logit and pctr, or score, [N, 1]; of further tasks "buy:logit", "buy:pctr", of a
 *               share "buy:given", its probability, and "watch:score"
 *
 * Parameters are initializers of their names. Every operator that scores has a row in onnx.c but
 * those of sequences.
 * Pure functions; any thread, a graph by one at a time.
 */
#pragma once

#include "nn/graph/graph.h"

typedef struct tn_text tn_text; /* base/core/text.h */

typedef struct tn_onnx_meta {
    const char *key, *value;
} tn_onnx_meta;

/* Input of the number of a row's slots that hold keys, but none with a row: a calibration's m. */
#define TN_ONNX_UNKNOWN "in.unknown"

typedef struct tn_onnx_knot {
    double z, p;
} tn_onnx_knot;

/* A calibration of a logit z; all 0: none. */
typedef struct tn_onnx_map {
    const double *platt; /* a, b, c: it becomes a z + b + c min(m, unknown_max); or NULL */
    /* Else n_knots breakpoints (0: none), floats, z ascends: its probability is a line between two
     * of them and constant outside; it is within +-logit_max. */
    const tn_onnx_knot *knot;
    uint32_t n_knots;
} tn_onnx_map;

/* A task after the first; its nodes have one column. */
typedef struct tn_onnx_task {
    const char *name;
    bool is_click;
    const tn_node *score, *given; /* given: of a share; else NULL */
    tn_onnx_map map;              /* calibrates the score */
} tn_onnx_task;

typedef struct tn_onnx_model {
    const tn_node *logit;
    const tn_node *pctr; /* the logit itself: the output is a score */
    tn_onnx_map map;
    double unknown_max, logit_max; /* limits of maps */
    const tn_onnx_task *task;      /* the tasks after the first, if there are several */
    uint32_t n_tasks;
    const char *version; /* version of the producer */
    const tn_onnx_meta *meta;
    uint32_t n_meta;
} tn_onnx_model;

/* Appends the model. TN_E_LIMIT: more than 2 GB; TN_E_CONFIG: some node has the positions of a
 * sequence. */
tn_status tn_graph_onnx(const tn_graph *g, const tn_onnx_model *m, tn_text *out,
                        tn_error *err) TN_MUST_USE;
