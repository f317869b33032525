/* ops.c - the list of all operators, and what many of them share. */
#include "nn/op/ops.h"

#include "base/keys/init.h"
#include "nn/loss/loss.h"

#include <string.h>

const tn_op *const tn_all_ops[] = {
#define TN_OP(name) &tn_op_##name,
#include "nn/op/ops.def"
#undef TN_OP
#define TN_LOSS(name) &tn_loss_##name.op,
#include "nn/loss/losses.def"
#undef TN_LOSS
    NULL,
};

const tn_op *tn_op_find(const char *name)
{
    for (const tn_op *const *op = tn_all_ops; *op != NULL; op++) {
        if (strcmp((*op)->name, name) == 0) {
            return *op;
        }
    }
    return NULL;
}

/* Rows of parameter `k` in a node of tn_same_shape. */
static uint32_t param_rows(const tn_op *op, uint32_t k)
{
    bool is_state = k + op->norm.n_states >= tn_params_max(op);
    return is_state && op->norm.state_rows > 0 ? op->norm.state_rows : 1;
}

tn_shape tn_same_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    for (uint32_t k = 1; k < y->n_in; k++) {
        tn_shape s = y->in[k]->shape;
        bool is_param = y->op->n_in != TN_ANY && k >= y->op->n_in;
        if (s.cols != x.cols ||
            s.rows != (is_param ? param_rows(y->op, k - y->op->n_in) : x.rows)) {
            return TN_MISFIT;
        }
    }
    return x;
}

tn_shape tn_column_shape(const tn_node *y)
{
    return (tn_shape){tn_max_rows(y), 1};
}

tn_node *tn_op_example(tn_graph *g, const tn_op *op)
{
    enum { OPERANDS = 3, IN_MAX = 8 };
    if (op->example.build != NULL) {
        return op->example.build(g);
    }
    tn_node *in[IN_MAX];
    const uint32_t cols = op->example.cols;
    const uint32_t n_params = tn_params_max(op);
    uint32_t n = 0;
    while (n < (op->n_in == TN_ANY ? OPERANDS : op->n_in)) {
        in[n++] = tn_input(g, NULL, cols, true);
    }
    TN_ASSERT(n + n_params <= IN_MAX);
    for (uint32_t k = 0; k < n_params; k++) {
        tn_shape shape = {param_rows(op, k), cols};
        in[n++] = k + op->norm.n_states < n_params
                      ? tn_param(g, NULL, NULL, shape, (tn_init){.kind = TN_INIT_CONSTANT})
                      : tn_running(g, NULL, NULL, shape, 0);
    }
    return tn_apply(g, op, NULL, in, n, op->example.attr);
}
