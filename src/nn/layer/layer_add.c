/* layer_add.c - sum of inputs of equal width. */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

static tn_node *add_build(const tn_net *net, const tn_layer_args *args)
{
    for (uint32_t i = 1; i < args->n_in; i++) {
        if (args->in[i]->shape.cols != args->in[0]->shape.cols) {
            tn_diag_error(args->diag, args->at, "inputs of 'add' have %u and %u columns",
                          args->in[0]->shape.cols, args->in[i]->shape.cols);
            return NULL;
        }
    }
    return args->n_in == 1 ? args->in[0] : tn_add(net->g, args->name, args->in, args->n_in);
}

const tn_layer tn_layer_add = {
    .name = "add",
    .help = "elementwise sum of inputs of equal width",
    .many = true,
    .build = add_build,
};
