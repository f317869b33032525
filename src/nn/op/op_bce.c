/* op_bce.c - binary cross entropy of a logit, per row, from the feed's labels.
 *
 * With y the label after smoothing, c the weight of positives, p = sigmoid(z):
 *
 *   forward     l   = c y sp(-z) + (1 - y) sp(z),  sp(x) = ln(1 + e^x) = max(x, 0) + log1p(e^-|x|)
 *   backward    dz += dl ((1 - y) p - c y (1 - p))
 *
 * Row weights and the division by their sum are in dl (graph.h, tn_reduction). No logarithm of a
 * probability anywhere: at z = 100 that is ln 0.
 */
#include "config/field.h"
#include "nn/op/ops.h"
#include "nn/vec/vecmath.h"

static const tn_field attrs[] = {
    TN_FIELD_F64(tn_loss_attr, pos_weight, "1", 0, 1e9, "", "factor of the loss of positive rows"),
    TN_FIELD_F64(tn_loss_attr, label_smoothing, "0", 0, 1, "", "pulls labels towards one half"),
    TN_FIELD_END,
};

static tn_shape bce_shape(const tn_node *l)
{
    return l->in[0]->shape.cols == 1 ? l->in[0]->shape : TN_MISFIT;
}

typedef struct bce_rule {
    tn_real c, keep, plus; /* y = keep * label + plus */
} bce_rule;

static bce_rule rule_of(const tn_node *l)
{
    const tn_loss_attr *a = l->attr;
    return (bce_rule){(tn_real)a->pos_weight, (tn_real)(1 - a->label_smoothing),
                      (tn_real)(a->label_smoothing / 2)};
}

static tn_real loss_of(bce_rule rule, tn_real z, tn_real label)
{
    tn_real y = rule.keep * label + rule.plus;
    tn_real tail = tn_log1p_of(tn_exp_of(-tn_abs_of(z)));
    tn_real up = (z > 0 ? z : 0) + tail;    /* sp(z) */
    tn_real down = (z < 0 ? -z : 0) + tail; /* sp(-z) */
    return rule.c * y * down + (1 - y) * up;
}

/* 1 - p as sigmoid(-z), which is exact where 1 - sigmoid(z) is rounding. */
static tn_real slope_of(bce_rule rule, tn_real z, tn_real label)
{
    tn_real y = rule.keep * label + rule.plus;
    return (1 - y) * tn_sigmoid_of(z) - rule.c * y * tn_sigmoid_of(-z);
}

static void bce_forward(tn_node *l, tn_range rows)
{
    const tn_real *label = tn_feed_of(l)->label;
    bce_rule rule = rule_of(l);
    for (size_t r = rows.from; r < rows.to; r++) {
        *tn_val_row(l, r) = label == NULL ? 0 : loss_of(rule, *tn_val_row(l->in[0], r), label[r]);
    }
}

static void bce_backward(tn_node *l, tn_range rows)
{
    const tn_real *label = tn_feed_of(l)->label;
    const tn_node *z = l->in[0];
    bce_rule rule = rule_of(l);
    TN_ASSERT(label != NULL);
    for (size_t r = rows.from; r < rows.to && z->grad != NULL; r++) {
        tn_real dz = *tn_grad_row(l, r) * slope_of(rule, *tn_val_row(z, r), label[r]);
        tn_real *at = tn_grad_row(z, r);
        *at = tn_adds(l, z) ? *at + dz : dz;
    }
}

const tn_op tn_op_bce = {
    TN_OP_MEMBERS(bce, bce),
    .shape = bce_shape,
    .example = {.cols = 1,
                .attr = &(const tn_loss_attr){.pos_weight = 2.5, .label_smoothing = 0.1}},
    .formula = "l = c y sp(-z) + (1 - y) sp(z)",
    .n_in = 1,
    TN_OP_ATTRS(attrs, tn_loss_attr),
    .flops_each = 60,
    .is_loss = true,
};
