/* slotpairs.c - what the layers of pairs of slots share: the width of a slot's vector, pairs of
 * values, instance normalisation. */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

/* Of an embedding whose slots all have one width; else 0. */
static uint32_t slot_width(const tn_node *x)
{
    uint32_t width = 0;
    for (uint32_t i = 0; x->op == &tn_op_embed && i < tn_embed_count(x); i++) {
        uint32_t first = 0;
        uint32_t cols = 0;
        tn_embed_columns(x, i, &first, &cols);
        if (i > 0 && cols != width) {
            return 0;
        }
        width = cols;
    }
    return width;
}

uint32_t tn_pairs_width(const tn_layer_args *args, uint32_t dim, const char *layer)
{
    const tn_node *x = args->in[0];
    dim = dim != 0 ? dim : slot_width(x);
    if (dim > TN_DIM_MAX) {
        tn_diag_error(args->diag, args->at, "'%s' takes slots of at most %d columns, not %u", layer,
                      TN_DIM_MAX, dim);
        return 0;
    }
    if (dim == 0 || x->shape.cols % dim != 0) {
        tn_diag_error(args->diag, args->at,
                      "'%s' needs slots of one width, but '%s' has %u columns of several", layer,
                      x->name, x->shape.cols);
        return 0;
    }
    return dim;
}

bool tn_pairs_embedded(const tn_layer_args *args, const char *option)
{
    const tn_node *x = args->in[0];
    if (x->op != &tn_op_embed) {
        tn_diag_error(args->diag, args->at, "'%s' needs an embedding input, not '%s'", option,
                      x->name);
    }
    return x->op == &tn_op_embed;
}

bool tn_pairs_summed(const tn_layer_args *args, const char *option)
{
    const tn_node *x = args->in[0];
    if (!tn_pairs_embedded(args, option)) {
        return false;
    }
    for (uint32_t i = 0; i < tn_embed_count(x); i++) {
        if (tn_embed_get(x, i)->pool != TN_POOL_SUM) {
            tn_diag_error(args->diag, args->at, "'%s' needs 'pool: sum', which slot '%s' has not",
                          option, tn_embed_get(x, i)->name);
            return false;
        }
    }
    return true;
}

tn_node *tn_pairs_norm(const tn_net *net, const tn_layer_args *args)
{
    char name[TN_LAYER_NAME_MAX];
    return tn_embed_norm(net->g, tn_layer_name(name, args->name, ".norm"), args->in[0]);
}
