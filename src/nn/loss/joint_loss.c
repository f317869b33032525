/* joint_loss.c - adds up the losses of several tasks, and learns their weights. */
#include "nn/loss/joint_loss.h"

#include "nn/graph/graph.h"
#include "nn/vec/vecmath.h"

static tn_real weight_of(const tn_node *l, uint32_t k)
{
    return (tn_real)((const tn_joint_loss_attr *)l->attr)->weight[k];
}

static tn_shape joint_shape(const tn_node *l)
{
    bool fits = l->n_in <= TN_TASKS_MAX;
    for (uint32_t k = 0; k < l->n_in; k++) {
        fits = fits && l->in[k]->shape.cols == 1;
    }
    return fits ? l->in[0]->shape : TN_MISFIT;
}

static void joint_forward(tn_node *l, tn_range rows)
{
    const tn_feed_task *task = tn_feed_of(l)->task;
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_real sum = 0;
        for (uint32_t k = 0; k < l->n_in && task != NULL; k++) {
            const tn_real factor = task[k].factor[r];
            sum += factor != 0 ? weight_of(l, k) * factor * *tn_val_row(l->in[k], r) : 0;
        }
        *tn_val_row(l, r) = sum;
    }
}

static void joint_backward(tn_node *l, tn_range rows)
{
    const tn_feed_task *task = tn_feed_of(l)->task;
    TN_ASSERT(task != NULL);
    for (uint32_t k = 0; k < l->n_in; k++) {
        const tn_node *x = l->in[k];
        const bool adds = tn_adds(l, x);
        for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
            tn_real *dx = tn_grad_row(x, r);
            const tn_real d = weight_of(l, k) * task[k].factor[r] * *tn_grad_row(l, r);
            *dx = (adds ? *dx : 0) + d;
        }
    }
}

const tn_op tn_op_joint_loss = {
    .name = "joint_loss",
    .formula = "l = sum of c_k f_k l_k over tasks",
    .n_in = TN_ANY,
    .attr_size = sizeof(tn_joint_loss_attr),
    .shape = joint_shape,
    .forward = joint_forward,
    .backward = joint_backward,
    .is_loss = true,
};

static tn_shape learned_shape(const tn_node *y)
{
    return y->in[0]->shape.cols == 1 ? y->in[0]->shape : TN_MISFIT;
}

static void learned_forward(tn_node *y, tn_range rows)
{
    const tn_real s = *y->in[1]->val;
    const tn_real weight = tn_exp_of(-s);
    for (size_t r = rows.from; r < rows.to; r++) {
        *tn_val_row(y, r) = weight * *tn_val_row(y->in[0], r) + s / 2;
    }
}

static void learned_backward(tn_node *y, tn_range rows)
{
    const tn_node *l = y->in[0];
    const tn_real weight = tn_exp_of(-*y->in[1]->val);
    const bool adds = tn_adds(y, l);
    for (size_t r = rows.from; r < rows.to && l->grad != NULL; r++) {
        tn_real *dl = tn_grad_row(l, r);
        *dl = (adds ? *dl : 0) + weight * *tn_grad_row(y, r);
    }
}

static void learned_backward_params(tn_node *y, tn_range cols)
{
    const tn_real weight = tn_exp_of(-*y->in[1]->val);
    double sum = 0;
    TN_ASSERT(cols.from == 0 && cols.to == 1);
    for (size_t r = 0; r < y->shape.rows; r++) {
        const double dy = (double)*tn_grad_row(y, r);
        sum += dy != 0 ? dy * (0.5 - (double)(weight * *tn_val_row(y->in[0], r))) : 0;
    }
    tn_add_param_grad(y, y->in[1], 0, (tn_real)sum);
}

static const char *const learned_params[] = {"s", NULL};

const tn_op tn_op_learned_loss = {
    .name = "learned_loss",
    .formula = "y = e^-s l + s / 2",
    .n_in = 1,
    .params = learned_params,
    .shape = learned_shape,
    .forward = learned_forward,
    .backward = learned_backward,
    .cols[TN_BACKWARD_PARAMS] = learned_backward_params,
    .is_loss = true,
};
