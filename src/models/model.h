/* model.h - a model is a function that writes a list of layers.
 *
 * The list is the one that `type: graph` users write by hand (docs/models.md), so `--print-graph`
 * turns any model into a file that trains to the same bits, and there is one
 * path from layers to a graph: models/layerlist.h.
 *
 * To add one: write tn_model_<name> in a model_*.c, add TN_MODEL(<name>) to models.def. Its options
 * come from its choice; loss, metrics, pulling, pushing, saving and exporting are the trainer's,
 * the same for all.
 */
#pragma once

#include "base/core/compiler.h"
#include "config/values.h"

#include <stdbool.h>

typedef struct tn_features tn_features; /* models/layerlist.h */
typedef struct tn_text tn_text;         /* base/core/text.h */

/* Options that every model has. */
typedef struct tn_model_common {
    const char *preset;       /* applied when the configuration is loaded */
    const tn_tree *slots;     /* {wide: [user, item], deep: all} */
    const char *bias_init;    /* prior, or a number */
    const tn_tree *init;      /* first values of dense weights */
    const tn_tree *wide_init; /* first values of the segment `wide` */
} tn_model_common;

extern const tn_field tn_model_common_fields[];

/* Settings laid under the user's file by `model.preset`. */
typedef struct tn_preset {
    const char *name;
    const char *yaml;
} tn_preset;

/* The list that a model writes to. */
typedef struct tn_list_writer {
    tn_arena *arena;
    tn_diag *diag;
    const tn_features *features;
    tn_tree *list;
} tn_list_writer;

/* A list of names, up to a NULL. */
#define TN_NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Adds a layer; `inputs` ends with NULL. Returns it for tn_list_set. */
tn_tree *tn_list_layer(tn_list_writer *w, const char *name, const char *layer,
                       const char *const *inputs);
void tn_list_set(tn_list_writer *w, tn_tree *layer, const char *key, const char *value);
/* Sets an option that is a list of numbers. */
void tn_list_set_numbers(tn_list_writer *w, tn_tree *layer, const char *key,
                         const tn_f64s *numbers);
/* A dense layer; `activation` NULL: none. */
tn_tree *tn_list_dense(tn_list_writer *w, const char *name, const char *x, uint32_t units,
                       const char *activation);
void tn_list_output(tn_list_writer *w, const char *name);
/* A layer that has a loss of the label, too; `weight` is a number or "excess". */
void tn_list_loss(tn_list_writer *w, const char *name, const char *weight);
/* The output of task k of features->tasks; that of the model where there is one label. */
void tn_list_task_output(tn_list_writer *w, uint32_t k, const char *name);

/* The options that a model is written from. */
typedef struct tn_model_args {
    const char *name; /* name of the model, for messages */
    const tn_model_common *common;
    const void *opts;
    const tn_tree *tree; /* the section `model`, for messages */
} tn_model_args;

typedef struct tn_model {
    tn_choice choice;         /* name, help, options; impl is this constant */
    const tn_preset *presets; /* ends with name NULL; NULL: none */
    const char *defaults;     /* YAML, in place of common defaults; NULL: none */
    bool keys_only;           /* it has no numeric input, whatever its options are */
    bool sums_pairs;          /* its logit adds products of all pairs of vectors, as they are */
    bool attends;             /* positions of a sequence are an input, or may be, and not pooled */
    bool linear; /* a weight per value and no more: it takes many passes without harm */

    /* Adds inputs, layers and the output to w->list. Faults go to w->diag. */
    void (*write)(const tn_model_args *args, tn_list_writer *w);
} tn_model;

/* Members of model `id`: its struct id_opts with the table id_fields, id_presets, id_write. */
#define TN_MODEL_MEMBERS(id, help_)                                                                \
    .choice = {.name = #id,                                                                        \
               .help = (help_),                                                                    \
               .fields = id##_fields,                                                              \
               .size = sizeof(id##_opts),                                                          \
               .impl = &tn_model_##id},                                                            \
    .presets = id##_presets, .write = id##_write

#define TN_MODEL(name) extern const tn_model tn_model_##name;
#include "models/models.def"
#undef TN_MODEL

extern const tn_model *const tn_all_models[];     /* NULL-terminated, as in models.def */
extern const tn_choice *const tn_model_choices[]; /* the same for option tables */

/* Returns the YAML text of a model's preset, for preset NULL of its own defaults; NULL: there is
 * none. */
const char *tn_model_preset(const char *model, const char *preset);

/* Appends "bars-frappe, bars-criteo, tensornet"; nothing for a model that is not there. */
void tn_model_list_presets(const char *model, tn_text *out);

/* Returns the list of layers of a configured model: a map of inputs, layers, output. NULL: faults
 * in b->diag. */
const tn_tree *tn_model_list(const tn_variant *model, const tn_features *features,
                             const tn_binder *b);

/* Options of the MLP that most models end in, and of its companions in some of them. */
typedef struct tn_deep_opts {
    tn_f64s hidden;
    uint32_t activation;
    double dropout;
    bool batch_norm;
    uint32_t bn_gamma; /* one uniform */
    uint32_t head;     /* sum concat */
    bool within_slot;
    uint32_t layers, rank, structure, experts; /* options of cross networks */
} tn_deep_opts;

enum { TN_HEAD_SUM, TN_HEAD_CONCAT };
extern const char *const tn_head_words[];

/* Defines the rows of the MLP. A struct with more options begins with a tn_deep_opts, whose rows
 * these are. */
#define TN_DEEP_FIELDS(type, hidden_)                                                              \
    TN_FIELD_F64S(type, hidden, hidden_, 1, 65536, "widths of the hidden layers"),                 \
        TN_FIELD_CHOICE(type, activation, "relu", tn_activation_words, "of the hidden layers"),    \
        TN_FIELD_F64(type, dropout, "0", 0, 0.999, "", "behind each hidden layer"),                \
        TN_FIELD_BOOL(type, batch_norm, "false", "in each hidden layer, before the activation"),   \
        TN_BN_GAMMA_FIELD(type)

#define TN_BN_GAMMA_FIELD(type)                                                                    \
    TN_FIELD_CHOICE(type, bn_gamma, "one", tn_bn_gamma_words,                                      \
                    "first scales of batch_norm: 1, or drawn from 0 to 1")

#define TN_HEAD_FIELD(type)                                                                        \
    TN_FIELD_CHOICE(type, head, "sum", tn_head_words,                                              \
                    "sum of the parts, or a dense layer over them side by side")

#define TN_WITHIN_SLOT_FIELD(type)                                                                 \
    TN_FIELD_BOOL(type, within_slot, "false",                                                      \
                  "fm: pair the values of one slot too, as libFM does; needs pool: sum")

#define TN_NORMALISE_FIELD(type)                                                                   \
    TN_FIELD_BOOL(type, normalise, "false", "pairs: divide by the sum of the row's squared values")

/* Adds dense layers "deep.1", "deep.2", and so on, on `x` and, if `units` is not 0, a linear one
 * after them; returns the name of the last. */
const char *tn_write_mlp(tn_list_writer *w, const tn_deep_opts *o, const char *x, uint32_t units);

/* Does the same with layers "<name>.1", "<name>.2", and so on. */
const char *tn_write_named_mlp(tn_list_writer *w, const char *name, const tn_deep_opts *o,
                               const char *x, uint32_t units);

/* Adds what follows the sums of a layer, as asked: "<name>.bn", "<name>.act", "<name>.drop";
 * returns the name of the last, or x. */
const char *tn_write_tail(tn_list_writer *w, const char *name, const char *x,
                          const tn_deep_opts *o);

/* Formats text in the arena, for names and numbers. */
const char *tn_list_text(tn_list_writer *w, const char *fmt, ...) TN_PRINTF(2, 3);

/* Adds "out", a dense layer over `parts` (up to a NULL) side by side, as the output. */
void tn_write_concat_head(tn_list_writer *w, const char *const *parts);

/* Shape of the input that tn_write_deep_input has written, for layers that must be as wide. */
typedef struct tn_deep_shape {
    uint32_t cols; /* columns that an MLP reads, numbers included */
    uint32_t slot; /* columns of the first slot */
    uint32_t slots;
} tn_deep_shape;
bool tn_find_deep_shape(tn_list_writer *w, tn_deep_shape *out);

/* Adds the input "deep" of vectors; for ffm `k` floats of a slot's vector for each slot, else 0. */
void tn_write_vectors(tn_list_writer *w, const tn_model_args *args, uint32_t k);
/* Does the same with the input `name`, for the slots of "deep". */
void tn_write_field_vectors(tn_list_writer *w, const tn_model_args *args, const char *name,
                            uint32_t k);

/* Adds the input "deep" and those of tn_write_numbers_input; returns the name of what an MLP reads:
 * "deep", or "x", which is [deep, num, cvm]. */
const char *tn_write_deep_input(tn_list_writer *w, const tn_model_args *args);

/* Adds an input without members, for tn_list_set and tn_tree_put. */
tn_tree *tn_write_input(tn_list_writer *w, const char *name);

/* Adds an input of slots, each with a vector of its own width in it; `slots` null: all of them. */
void tn_write_slots_input(tn_list_writer *w, const char *name, const tn_tree *slots);

/* Adds the input "num" of all numbers and "cvm" of the counts of slots, as far as there are any. */
void tn_write_numbers_input(tn_list_writer *w);

/* Puts x (NULL: nothing) and these inputs side by side, as layer `name` where they are several;
 * returns what to read. NULL: there is nothing. */
const char *tn_write_numbers(tn_list_writer *w, const char *name, const char *x);

/* Adds the layer "fm" over the input "deep". */
void tn_write_fm(tn_list_writer *w, bool within_slot);
void tn_write_wide_input(tn_list_writer *w, const tn_model_args *args);

/* Parts that presets of several models share, as pieces of YAML. bars-<set> are the recipes of the
 * open CTR benchmark (BARS, FuxiCTR 1.1, sets x1) for its four sets of data; tensornet has the
 * defaults of TensorNet and of its Wide & Deep example. TN_BARS_NORM is that of PyTorch 1.0, by
 * which all of BARS with batch norm was run: it drew gamma from 0 to 1.
 *
 *     TN_BARS_WIDE("frappe", TN_BARS_NORM "dropout: 0.2", "0.05"),
 */
#define TN_BARS_NORM "batch_norm: true, bn_gamma: uniform, "
#define TN_BARS_EMBEDDING "embedding: {dim: 10, init: {normal: [0, 1e-4]}}\n"
#define TN_BARS_TRAIN                                                                              \
    "train:\n"                                                                                     \
    "  epochs: 100\n"                                                                              \
    "  batch: 4096\n"                                                                              \
    "  optimizer: {type: adam, lr: 1e-3}\n"                                                        \
    "  sparse:\n"
#define TN_BARS_ROWS(segment, l2)                                                                  \
    "    " segment ": {type: adam, lr: 1e-3, bias: global, l2: " l2 ", l2_mode: dense}\n"
#define TN_BARS_STOP                                                                               \
    "  clip: {global: 10}\n"                                                                       \
    "  stop: {monitor: valid.auc, patience: 2, min_delta: 1e-6, restore: best}\n"                  \
    "  reduce_on_plateau: {factor: 0.1, patience: 1, min_lr: 1e-6}\n"

/* An MLP beside a wide part. */
#define TN_BARS_WIDE(set, options, l2)                                                             \
    {                                                                                              \
        "bars-" set, "model: {hidden: [400, 400, 400], head: sum, " options ",\n"                  \
                     "        init: xavier_normal, wide_init: {normal: [0, 1e-4]}, bias_init: "    \
                     "0}\n" TN_BARS_EMBEDDING TN_BARS_TRAIN TN_BARS_ROWS("deep", l2)               \
                         TN_BARS_ROWS("wide", l2) TN_BARS_STOP                                     \
    }
/* A cross network beside an MLP. */
#define TN_BARS_CROSS(set, options, l2)                                                            \
    {                                                                                              \
        "bars-" set,                                                                               \
            "model: {" options                                                                     \
            ", init: xavier_normal, bias_init: 0}\n" TN_BARS_EMBEDDING TN_BARS_TRAIN TN_BARS_ROWS( \
                "deep", l2) TN_BARS_STOP                                                           \
    }
/* Pairs of vectors and a wide part, nothing else. */
#define TN_BARS_PAIRS(set, options, l2)                                                            \
    {                                                                                              \
        "bars-" set,                                                                               \
            "model: {" options                                                                     \
            "wide_init: {normal: [0, 1e-4]}, bias_init: 0}\n" TN_BARS_EMBEDDING TN_BARS_TRAIN      \
                TN_BARS_ROWS("deep", l2) TN_BARS_ROWS("wide", l2) TN_BARS_STOP                     \
    }

#define TN_TENSORNET_EMBEDDING "embedding: {dim: 8, pool: mean, init: {normal: [0, 0.0353553]}}\n"
#define TN_TENSORNET_WIDE "bias_init: 0, wide_init: {normal: [0, 0.1]}"
#define TN_TENSORNET_TRAIN                                                                         \
    "data: {shuffle: 0}\n"                                                                         \
    "train:\n"                                                                                     \
    "  batch: 32\n"                                                                                \
    "  optimizer: {type: adam, lr: 1e-3}\n"                                                        \
    "  sparse:\n"
#define TN_TENSORNET_ROWS(segment)                                                                 \
    "    " segment ": {type: adagrad, rowwise: true, lr: 0.01, n0: 0.1}\n"
#define TN_TENSORNET_DEEP TN_TENSORNET_EMBEDDING TN_TENSORNET_TRAIN TN_TENSORNET_ROWS("deep")
#define TN_TENSORNET_BOTH TN_TENSORNET_DEEP TN_TENSORNET_ROWS("wide")

/* Vectors by the rule of all else; `batch`: "  batch: 512\n", or nothing. */
#define TN_PAPER_TRAIN(batch, rule)                                                                \
    "train:\n" batch "  optimizer: {" rule "}\n  sparse: {deep: {" rule "}}\n"
