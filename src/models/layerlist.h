/* layerlist.h - a model as a list of layers with named inputs, and the graph made from it.
 *
 *     inputs:
 *       wide: {embed: all, dim: 1}            [rows x slots]
 *       deep: {embed: all}                    [rows x slots*dim]
 *       num:  {numeric: all}                  or a list: [price, title_vector]
 *       cvm:  {cvm: all}                      [rows x slots*2]
 *       clicks: {sequence: clicks, vectors: deep}   [positions x slots*dim]
 *     layers:
 *       - {name: x, concat: [deep, num]}
 *       - {name: deep.1, dense: x, units: 256, activation: relu}
 *       - {name: logit, dense: [deep.1, wide], units: 1}
 *     output: logit                         of several tasks: {click: n1, buy: n2}
 *     losses: {deep.out: 0.5}               layers that have a loss of that label, too
 *
 * An embedding input is a segment of every row it takes (base/keys/record.h), called like the
 * input, or with `vectors` the segment of another one. A sequence has a row for each position
 * (tn_positions), which layers of sequences take. Cvm are the counts of these rows before the
 * batch, not trained: ln(1 + show) and ln(1 + click) - ln(1 + show), the mean over a slot's values;
 * `form: tensornet`: show itself, and pooled like the slot's vectors. The list is a tn_tree:
 * written by a model (models/model.h) or by the user. It is read in two steps, because rows are
 * laid out once and graphs are built several times:
 *
 *     tn_inputs_read    inputs -> which slots take part in which segment
 *     tn_layout_make    -> segments side by side in each group's record
 *     tn_list_build     layers -> nodes of one graph
 */
#pragma once

#include "base/keys/tasks.h"
#include "config/values.h"
#include "nn/graph/embed.h"

typedef struct tn_init tn_init;               /* base/keys/init.h */
typedef struct tn_layout tn_layout;           /* base/keys/record.h */
typedef struct tn_net tn_net;                 /* nn/layer/layers.h */
typedef struct tn_share_group tn_share_group; /* base/keys/record.h */

/* A slot as models see it. */
typedef struct tn_model_slot {
    const char *name;
    uint32_t slot; /* index in the schema */
    uint32_t group;
    uint32_t dim; /* its own width or embedding.dim */
    tn_pool pool;
    uint32_t pool_k;
    bool single;  /* at most one value an example */
    bool cvm;     /* its counts are an input of the built-in models */
    tn_strs uses; /* inputs that may take it; n 0: all */
} tn_model_slot;

/* Says which segments of a group's keys wait for admission (base/keys/record.h). */
typedef struct tn_group_waits {
    bool any;
    tn_strs uses; /* embedding inputs; n 0: all */
    const tn_origin *at;
} tn_group_waits;

/* A sequence as models see it: slots whose lists have one length in each row. */
typedef struct tn_model_sequence {
    const char *name;
    uint32_t n;
    const uint32_t *item;   /* indexes into features->slot */
    uint32_t n_target;      /* at most n; 0: none */
    const uint32_t *target; /* likewise: what the first n_target of `item` are paired with */
    uint32_t max_len;
} tn_model_sequence;

/* A slot that is a number, or a vector of them. */
typedef struct tn_model_number {
    const char *name;
    uint32_t at, cols;      /* columns of the numeric input */
    uint64_t zscore_freeze; /* rows of a running zscore; 0: none */
} tn_model_number;

typedef struct tn_features {
    uint32_t n_slots;
    const tn_model_slot *slot;
    uint32_t n_sequences;
    const tn_model_sequence *sequence;
    uint32_t n_numeric; /* columns of numbers */
    uint32_t n_numbers;
    const tn_model_number *number; /* the slots that have these columns, in order */
    uint32_t n_groups;
    const tn_share_group *group; /* record is not set */
    const uint32_t *group_class; /* groups of one class may share a record (equal optimizers) */
    const tn_group_waits *waits; /* waits of each group; NULL: none waits */
    const tn_tasks *tasks;       /* tasks that the model has an output for; NULL: one label */
} tn_features;

/* One entry of `inputs:`, resolved. */
typedef struct tn_model_input {
    const char *name;
    bool numeric;
    bool cvm;             /* counts are its input; at most one input of a model has them */
    bool raw_show;        /* counts are in TensorNet's form */
    uint32_t n;           /* slots, or numbers */
    const uint32_t *item; /* indexes into features->slot, or ->number */
    uint32_t dim;         /* 0: each slot's own */
    const tn_tree *init;
    const char *segment; /* the segment of its rows; its name, or another input's */
    uint32_t max_len;    /* a sequence, whose slots these are: a row for each position; 0: none */
    const tn_origin *at;
} tn_model_input;

typedef struct tn_model_inputs {
    uint32_t n;
    const tn_model_input *input;
} tn_model_inputs;

/* Reads the inputs. NULL: faults in b->diag. Lives in b->arena, as all below. */
const tn_model_inputs *tn_inputs_read(const tn_tree *list, const tn_features *features,
                                      const tn_binder *b);

/* Returns how an input pools a slot that it takes. */
tn_pool tn_input_pool(const tn_model_input *input, const tn_model_slot *slot);

/* Returns the columns of an input. */
uint64_t tn_input_cols(const tn_model_input *input, const tn_features *features);

/* Makes the layout of rows. NULL: faults (a shared group with two widths, too many segments, an
 * input that is to wait and is none). */
const tn_layout *tn_layout_make(const tn_model_inputs *inputs, const tn_features *features,
                                const tn_binder *b);

/* The output of a task. */
typedef struct tn_task_output {
    tn_node *logit;   /* [B,1] */
    tn_node *given;   /* a share's logit given a click of the task that it is a share of, as the
                       * list names it; NULL: it is no share */
    const char *bias; /* the parameter that shifts what the list names; NULL: none */
} tn_task_output;

enum { TN_FURTHER_LOSSES_MAX = 8 };

/* A layer that is a score of the same label as the output is, in `losses` of a list. */
typedef struct tn_further_score {
    const char *name;
    tn_node *score; /* [B,1] */
    double weight;  /* the weight of its loss (nn/loss/further_loss.h) */
} tn_further_score;

typedef struct tn_list_graph {
    tn_node *logit;          /* the output, or that of the first task, [B,1] */
    const char *output_bias; /* the parameter that shifts it; NULL: none */
    uint32_t n_outputs;      /* tasks; 1 where there is one label */
    tn_task_output output[TN_TASKS_MAX];
    uint32_t n_further;
    tn_further_score further[TN_FURTHER_LOSSES_MAX];
} tn_list_graph;

typedef struct tn_list_source {
    const tn_tree *list;
    const tn_model_inputs *inputs;
    const tn_features *features;
    const tn_layout *layout;
    bool whole; /* inputs and layers that the output does not follow from are faults */
} tn_list_source;

/* Adds all nodes to net->g. Returns false with faults in b->diag. */
bool tn_list_build(const tn_net *net, const tn_list_source *source, const tn_binder *b,
                   tn_list_graph *out);

/* Returns the member of a layer's map that names the layer. NULL: reported. */
const tn_tree *tn_list_word(const tn_tree *item, tn_diag *diag);

/* Reads {uniform: [a, b]}, {normal: [mean, deviation]}, {truncated: ..}, {constant: c}, a number,
 * glorot_uniform, xavier_normal, he_uniform, he_normal. Returns false after a report. */
bool tn_init_read(const tn_tree *tree, tn_diag *diag, tn_init *out);
