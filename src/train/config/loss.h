/* loss.h - the losses that a run can minimise, and what follows from one: which labels there may
 * be, what a score is (base/keys/target.h), and which metrics judge it.
 *
 *     const tn_loss *loss = tn_loss_of(&run->loss);
 *     tn_apply(g, loss->op, "loss", TN_IN(score), &attr);
 *
 * To add one: an operator (nn/op/op_losses.c) and a row in loss.c.
 */
#pragma once

#include "base/keys/target.h"
#include "config/values.h"

typedef struct tn_metrics tn_metrics; /* metrics/metrics.h */
typedef struct tn_op tn_op;           /* nn/graph/op.h */

typedef struct tn_loss_opts {
    double pos_weight, label_smoothing; /* bce */
    double gamma, alpha;                /* focal */
    double delta;                       /* huber */
    uint32_t reduction;                 /* mean sum rows */
} tn_loss_opts;

typedef struct tn_loss {
    tn_choice choice;
    const tn_op *op;
    tn_target target;
    const char *metric;   /* that is the loss itself; NULL: there is none */
    const char *watched;  /* "valid.<metric>": what tells best whether a model gets better */
    const char *defaults; /* YAML, in place of common defaults; NULL: none */
} tn_loss;

extern const tn_choice *const tn_loss_choices[]; /* NULL-terminated */

const tn_loss *tn_loss_of(const tn_variant *loss); /* of a run; not set: bce */
/* Of a configuration of which other sections are read alone; what is no loss is as good as none. */
tn_target tn_loss_target(const tn_tree *root);
const char *tn_loss_defaults(const char *name); /* for tn_presets */

/* The loss of the rows in `m`; NAN: no metric tells it. */
double tn_loss_value(const tn_variant *loss, const tn_metrics *m);
