/* model_json.h - model.json as a struct, for who writes an export and who opens one
 * (docs/formats.md section 6.5).
 *
 * Slots, numbers and the source are options of tables (config/fieldjson.h), nodes a graph
 * (nn/passes/graphjson.h): their owners write and read them.
 */
#pragma once

#include "base/codec/document.h"
#include "base/keys/init.h"
#include "base/keys/target.h"
#include "base/keys/tasks.h"
#include "config/field.h"
#include "metrics/calibrator.h"

/* A slot's columns of an input: ["user",0,16]. */
typedef struct tn_model_columns {
    const char *slot;
    uint32_t first, cols;
} tn_model_columns;

typedef struct tn_model_json_input {
    const char *name;
    uint32_t cols;
    bool mean;           /* it takes the mean, whatever its slots do */
    bool embeds;         /* else it is that of numbers: */
    uint32_t first;      /* its first column among theirs */
    const char *segment; /* segment of its rows; NULL: its name without "in." */
    uint32_t max_len;    /* a row for each position of lists of at most so many values; 0: pooled */
    uint32_t n;
    const tn_model_columns *from;
} tn_model_json_input;

/* First values of a segment, of keys without a row. */
typedef struct tn_model_first {
    const char *group, *segment;
    tn_init init;
} tn_model_first;

typedef struct tn_model_output {
    tn_target target;
    const char *logit, *pctr; /* nodes of a model of clicks */
    const char *score;        /* the node of a model of another target */
    bool calibrated;
    tn_calibration calibration;
} tn_model_output;

/* The label and the rows of a task, as the configuration says them. */
typedef struct tn_task_source {
    const tn_tree *label; /* as tn_data_opts.label; of the first task unused */
    const char *where;    /* name of a task; NULL: all rows count */
    const char *weight;   /* column of factors; NULL: none */
} tn_task_source;
extern const tn_field tn_task_source_fields[];

/* One of several tasks; the first one has the output of the model, too. */
typedef struct tn_model_task {
    const char *name;
    tn_target target;
    bool calibrated;   /* not the first, which has the calibration of the output */
    const char *score; /* the node of its score: of clicks the logit */
    const char *given; /* a share's logit given a click; NULL: it is no share */
    tn_calibration calibration;
    tn_doc_raw source; /* a tn_task_source; an older export has none */
} tn_model_task;

typedef struct tn_model_json {
    uint32_t version; /* major, for a write */
    char model_id[33];
    const char *weights, *dictionary; /* files; the second may be NULL */
    tn_doc_raw slots, numeric, nodes, source;
    uint32_t n_inputs, n_outputs, n_first;
    const tn_model_json_input *input;
    tn_model_output output[1];
    uint32_t n_tasks; /* 0: one label */
    const tn_model_task *task;
    bool seeded;
    uint64_t seed;
    const tn_model_first *first;
} tn_model_json;

extern const tn_document tn_model_document;

/* The list of inputs alone, of the same struct. */
extern const tn_doc_row tn_model_inputs_row;
