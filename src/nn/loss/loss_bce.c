/* loss_bce.c - binary cross entropy of a logit.
 *
 * With y the label after smoothing, c the weight of positives, p = sigmoid(z):
 *
 *     l         c y sp(-z) + (1 - y) sp(z),  sp(x) = ln(1 + e^x) = max(x, 0) + log1p(e^-|x|)
 *     dl / dz   (1 - y) p - c y (1 - p)
 *
 * Row weights and the division by their sum are in the gradient of l (graph.h, tn_reduction). No
 * logarithm of a probability anywhere: at z = 100 that is ln 0.
 */
#include "config/field.h"
#include "nn/loss/rowloss.h"
#include "nn/vec/vecmath.h"

typedef struct bce_opts {
    double pos_weight, label_smoothing;
} bce_opts;

static const tn_field fields[] = {
    TN_FIELD_F64(bce_opts, pos_weight, "1", 0, 1e6, "", "factor of the loss of clicks"),
    TN_FIELD_F64(bce_opts, label_smoothing, "0", 0, 1, "", "label y becomes y (1 - e) + e/2"),
    TN_FIELD_END,
};

/* 1 - p is sigmoid(-z), which is exact where 1 - sigmoid(z) is rounding. */
TN_ROW_LOSS_OF bce_of(const void *opts, tn_real z, tn_real label)
{
    const bce_opts *o = opts;
    const tn_real c = (tn_real)o->pos_weight;
    const tn_real y = (tn_real)(1 - o->label_smoothing) * label + (tn_real)(o->label_smoothing / 2);
    const tn_real tail = tn_log1p_of(tn_exp_of(-tn_abs_of(z)));
    const tn_real up = (z > 0 ? z : 0) + tail;    /* sp(z) */
    const tn_real down = (z < 0 ? -z : 0) + tail; /* sp(-z) */
    return (tn_row_loss){c * y * down + (1 - y) * up,
                         (1 - y) * tn_sigmoid_of(z) - c * y * tn_sigmoid_of(-z)};
}

TN_ROW_LOSS(bce)
const tn_loss tn_loss_bce = {
    TN_ROW_LOSS_MEMBERS(bce, "binary cross entropy of the logit"),
    TN_LOSS_OPTIONS(fields, bce_opts, {.pos_weight = 2.5, .label_smoothing = 0.1}),
    .op.formula = "l = c y sp(-z) + (1 - y) sp(z)",
    .op.flops_each = 60,
    .target = TN_TARGET_CLICK,
    .corrects_sampling = true,
    .metric = "logloss",
    .watched = "valid.logloss",
};
