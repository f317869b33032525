/* loss.h - the losses that a run can minimise. A loss is one constant of type tn_loss: the operator
 * that computes it for each row, its options, and what follows from it: which labels there may be
 * and what a score is (base/keys/target.h), and which metrics judge it.
 *
 *     const tn_loss *loss = tn_loss_of(&run->loss);
 *     tn_apply(g, &loss->op, "loss", TN_IN(score), run->loss.opts);
 *
 * To add one:
 *   1. write src/nn/loss/loss_<name>.c, or add to the file of its kind (copy huber of
 *      loss_errors.c, which has an option)
 *   2. add TN_LOSS(<name>) to losses.def, which options, operators, the gradient test and
 *      `tnet-train --list-losses` walk
 */
#pragma once

#include "base/keys/target.h"
#include "config/values.h"
#include "nn/graph/op.h"

#define TN_LOSS_DEFAULT "bce" /* the loss of a run that names none */

typedef struct tn_loss {
    tn_choice choice; /* name, help and options; impl is this constant */
    tn_op op;         /* its attributes are the options */
    tn_target target;
    bool corrects_sampling; /* whether its scores can be corrected for data.negative_sampling */
    const char *metric;     /* the metric that is the loss itself; NULL: there is none */
    const char *watched;    /* "valid.<metric>": it shows best whether a model gets better */
    const char *defaults;   /* YAML, in place of common defaults; NULL: none */
} tn_loss;

/* Options that every loss has. */
typedef struct tn_loss_common {
    uint32_t reduction; /* a tn_reduction */
} tn_loss_common;

extern const tn_field tn_loss_common_fields[];
extern const tn_choice *const tn_loss_choices[]; /* &tn_loss_<name>.choice; NULL-terminated */

#define TN_LOSS(name) extern const tn_loss tn_loss_##name;
#include "nn/loss/losses.def"
#undef TN_LOSS

const tn_loss *tn_loss_of(const tn_variant *loss); /* not set: TN_LOSS_DEFAULT */
const tn_loss *tn_loss_find(const char *name);     /* NULL: none */

/* ---- for files of losses ---- */

/* Members that all losses have. */
#define TN_LOSS_MEMBERS(id, text)                                                                  \
    .choice.name = #id, .choice.help = (text), .choice.impl = &tn_loss_##id, .op.name = #id,       \
    .op.shape = tn_loss_shape, .op.n_in = 1, .op.is_loss = true, .op.example.cols = 1
/* Members of a loss with options: their table, their struct, and an example of it. */
#define TN_LOSS_OPTIONS(table, type, ...)                                                          \
    .choice.fields = (table), .choice.size = sizeof(type), .op.attrs = (table),                    \
    .op.attr_size = sizeof(type), .op.example.attr = &(const type)__VA_ARGS__

tn_shape tn_loss_shape(const tn_node *l); /* one value per row, as the score */
