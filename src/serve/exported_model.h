/* exported_model.h - an export directory opened to score: what all scorers share and none changes.
 *
 *     EXPORT.json        sizes and crcs of the files
 *     model.json         slots, transforms, inputs, nodes       -> schema, inputs, nodes
 *     dense.safetensors  the weights of the nodes               -> params
 *     dict.tnd           key -> row                             -> dict
 *
 * All of them must hold one model_id. The directory is hostile: names, shapes and numbers are
 * checked before anything is built from them, and a graph is built once to see that it can be.
 * An opened model is read by any number of threads, but scorers are made one at a time.
 */
#pragma once

#include "base/file/file.h"
#include "base/keys/init.h"
#include "base/keys/record.h"
#include "base/keys/tasks.h"
#include "config/diag.h"
#include "dict/dict_deltas.h"
#include "io/schema/dataopts.h"
#include "metrics/calibrator.h"

typedef struct tn_arena tn_arena;           /* base/core/arena.h */
typedef struct tn_embed_slot tn_embed_slot; /* nn/graph/embed.h */
typedef struct tn_graph tn_graph;           /* nn/graph/graph.h */
typedef struct tn_json tn_json;             /* base/codec/json.h */
typedef struct tn_model_json tn_model_json; /* serve/model_json.h */
typedef struct tn_node tn_node;             /* nn/graph/op.h */
typedef struct tn_params tn_params;         /* nn/graph/params.h */
typedef struct tn_schema tn_schema;         /* io/schema/schema.h */

/* One entry of "inputs". */
typedef struct tn_exported_input {
    const char *name;
    bool numeric;
    uint32_t cols;
    uint32_t first; /* column of all numbers that it begins with */
    uint32_t n;     /* slots */
    const tn_embed_slot *slot;
    uint32_t max_len; /* a row for each position of the slots' lists; 0: pooled */
} tn_exported_input;

/* The segments of one share group's rows, and their places in the dictionary. */
typedef struct tn_exported_group {
    tn_record record;
    uint32_t in_dict;                  /* the dictionary's number of the group, in every layer */
    uint32_t segment[TN_SEGMENTS_MAX]; /* the dictionary's numbers of the record's segments */
    bool missing_init;                 /* a key without a row reads as first values */
    tn_init init[TN_SEGMENTS_MAX];
} tn_exported_group;

/* Nodes of a task. */
typedef struct tn_exported_task {
    const char *score, *given;  /* given: NULL where the task is no share */
    tn_calibration calibration; /* map of `score`; kind NONE: there is none */
} tn_exported_task;

typedef struct tn_exported_model {
    tn_arena *arena;
    char model_id[33];
    uint64_t step;
    const tn_schema *schema; /* schema of rows that are scored */
    tn_data_opts data;
    uint64_t seed; /* seed of first values */
    uint32_t n_inputs;
    tn_exported_input *input;
    tn_exported_group *group; /* per group of the schema */
    bool *used;               /* per slot: some input takes it */
    const tn_json *nodes;
    const char *logit; /* its nodes; of another target than clicks both are the score */
    const char *pctr;
    const tn_tasks *tasks; /* names, targets, and which are shares; n 0: one label */
    tn_exported_task task[TN_TASKS_MAX];
    tn_calibration calibration; /* map of both; kind NONE: there is none */
    tn_params *params;
    tn_dict_stack dict;
    tn_diag diag; /* used while opening */
} tn_exported_model;

typedef struct tn_exported_model_opts {
    tn_verify verify;
    bool half_weights; /* matrices are rounded to 16 bits: tn_params_round */
    const char *dict;  /* a file of the folder in place of its dictionary; NULL: none */
    bool labels;       /* labels of further tasks are read where the data have them */
    /* Tasks of the caller's, which say how, in place of the export's: as many and of the same names
     * (TN_E_CONFIG); n 0 or NULL: there are none. */
    const tn_data_opts *tasks;
    const tn_tree *data; /* options of `data` laid over those of the export; NULL: none */
    /* these are a whole configuration: places of values and labels are compared, too */
    bool judges;
    /* target in them; labels are not compared with those of an export of another target, which
     * is reported later */
    tn_target target;
} tn_exported_model_opts;

/* Finds the export that `dir` means: itself, the one in its LATEST, or the only one in it.
 * TN_E_CKPT: there is none, or there are several. */
tn_status tn_export_find(const char *dir, char out[TN_PATH_SIZE], tn_error *err) TN_MUST_USE;

/* Opens an export. TN_E_CKPT: missing, damaged, mixed up, or of another version; TN_E_CONFIG:
 * opts->data is wrong; TN_E_LIMIT, TN_E_IO, TN_E_MEMORY. On failure *out is NULL. */
tn_status tn_exported_model_open(tn_exported_model **out, const char *dir,
                                 const tn_exported_model_opts *opts, tn_error *err) TN_MUST_USE;
void tn_exported_model_close(tn_exported_model *b); /* no scorer may be left; NULL is fine */

/* The graph of the model for up to `max_rows` rows; `shares`: they may have slots in common. */
typedef struct tn_exported_graph {
    tn_graph *g;
    const tn_node *logit;
    const tn_node *pctr;
    const tn_node *score[TN_TASKS_MAX], *given[TN_TASKS_MAX]; /* one for each of several tasks */
} tn_exported_graph;
tn_status tn_exported_graph_new(tn_exported_graph *out, const tn_exported_model *b,
                                uint32_t max_rows, bool shares, tn_error *err) TN_MUST_USE;

/* Does a part of opening (model_build.c): fills *b from model.json as it was read. `what`: the
 * file. */
tn_status tn_exported_model_read(tn_exported_model *b, const tn_model_json *model,
                                 const tn_exported_model_opts *opts, const char *what,
                                 tn_error *err) TN_MUST_USE;
