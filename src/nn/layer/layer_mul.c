/* layer_mul.c - elementwise product of two inputs; the second may have one column. */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

static tn_node *mul_build(const tn_net *net, const tn_layer_args *args)
{
    if (args->n_in != 2) {
        tn_diag_error(args->diag, args->at, "'mul' takes two inputs, not %u", args->n_in);
        return NULL;
    }
    uint32_t a = args->in[0]->shape.cols;
    uint32_t b = args->in[1]->shape.cols;
    if (b != a && b != 1) {
        tn_diag_error(args->diag, args->at, "inputs of 'mul' have %u and %u columns", a, b);
        return NULL;
    }
    return tn_mul(net->g, args->name, args->in[0], args->in[1]);
}

const tn_layer tn_layer_mul = {
    .name = "mul",
    .help = "elementwise product of two inputs; the second may have one column",
    .many = true,
    .build = mul_build,
};
