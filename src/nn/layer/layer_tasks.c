/* layer_tasks.c - layers of models with several tasks: mix, both. */
#include "config/diag.h"
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

/* Refuses what the operator would take for a bug: a gate that has not one column for each expert,
 * experts of several widths. */
static tn_node *mix_build(const tn_net *net, const tn_layer_args *args)
{
    const uint32_t n = args->n_in - 1;
    if (n == 0 || args->in[0]->shape.cols != n) {
        tn_diag_error(args->diag, args->at,
                      "'mix' takes a gate and one input for each of its %u columns, not %u",
                      args->in[0]->shape.cols, n);
        return NULL;
    }
    for (uint32_t i = 2; i < args->n_in; i++) {
        if (args->in[i]->shape.cols != args->in[1]->shape.cols) {
            tn_diag_error(args->diag, args->at, "'mix' adds inputs of %u and %u columns",
                          args->in[1]->shape.cols, args->in[i]->shape.cols);
            return NULL;
        }
    }
    return tn_apply(net->g, &tn_op_mix, args->name, args->in, args->n_in, NULL);
}

const tn_layer tn_layer_mix = {
    TN_LAYER_PLAIN(mix, "the first input, a gate, has a column for each of the others: their sum, "
                        "each times its column"),
    .many = true};

static tn_node *both_build(const tn_net *net, const tn_layer_args *args)
{
    if (args->n_in != 2 || args->in[0]->shape.cols != args->in[1]->shape.cols) {
        tn_diag_error(args->diag, args->at, "'both' takes two logits of one width");
        return NULL;
    }
    return tn_apply(net->g, &tn_op_both, args->name, args->in, 2, NULL);
}

const tn_layer tn_layer_both = {
    TN_LAYER_PLAIN(both, "the logit of the product of two probabilities, from their logits"),
    .many = true};
