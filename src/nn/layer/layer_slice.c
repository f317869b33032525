/* layer_slice.c - some neighbouring columns of the input. */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

typedef struct slice_opts {
    uint32_t first, cols;
} slice_opts;

static const tn_field slice_fields[] = {
    TN_FIELD_U32(slice_opts, first, "0", 0, 1e6, "columns", "the first one, from 0"),
    TN_FIELD_U32(slice_opts, cols, NULL, 1, 1e6, "columns", "how many"),
    TN_FIELD_END,
};

static tn_node *slice_build(const tn_net *net, const tn_layer_args *args)
{
    const slice_opts *o = args->opts;
    uint32_t cols = args->in[0]->shape.cols;
    if (o->first > cols || o->cols > cols - o->first) {
        tn_diag_error(args->diag, args->at, "columns %u to %u of an input of %u", o->first,
                      o->first + o->cols - 1, cols);
        return NULL;
    }
    return tn_slice(net->g, args->name, args->in[0], o->first, o->cols);
}

const tn_layer tn_layer_slice = {
    .name = "slice",
    .help = "neighbouring columns of the input",
    .fields = slice_fields,
    .opts_size = sizeof(slice_opts),
    .build = slice_build,
};
