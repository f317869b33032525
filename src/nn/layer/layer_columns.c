/* layer_columns.c - layers that place, pick or combine columns one by one.
 *
 *     concat    the inputs side by side; a single one is handed through
 *     slice     some neighbouring columns
 *     sum       the sum of a row: the wide part of a model                       -> [B,1]
 *     add, mul  of inputs of one width; the second factor may have one column
 *     scale     by * x + plus, both fixed
 *     bias      x + b, one trained number per column
 */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

#include <string.h>

static tn_node *concat_build(const tn_net *net, const tn_layer_args *args)
{
    (void)net;
    return args->in[0]; /* a list of inputs is joined before the layer gets it */
}

const tn_layer tn_layer_concat = {
    .name = "concat",
    .help = "the inputs side by side",
    .build = concat_build,
};

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

static tn_node *sum_build(const tn_net *net, const tn_layer_args *args)
{
    return tn_sum_cols(net->g, args->name, args->in[0]);
}

const tn_layer tn_layer_sum = {
    .name = "sum",
    .help = "sum over the columns of each row",
    .build = sum_build,
};

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

typedef struct scale_opts {
    double by, plus;
} scale_opts;

static const tn_field scale_fields[] = {
    TN_FIELD_F64(scale_opts, by, "1", -1e30, 1e30, "", "factor"),
    TN_FIELD_F64(scale_opts, plus, "0", -1e30, 1e30, "", "added afterwards"),
    TN_FIELD_END,
};

static tn_node *scale_build(const tn_net *net, const tn_layer_args *args)
{
    const scale_opts *o = args->opts;
    return tn_scale(net->g, args->name, args->in[0], o->by, o->plus);
}

const tn_layer tn_layer_scale = {
    .name = "scale",
    .help = "by * x + plus, both fixed",
    .fields = scale_fields,
    .opts_size = sizeof(scale_opts),
    .build = scale_build,
};

typedef struct bias_opts {
    const char *param;
} bias_opts;

static const tn_field bias_fields[] = {
    TN_FIELD_STR(bias_opts, param, "~", "name of the parameter; ~: the layer's name and '.b'"),
    TN_FIELD_END,
};

static const char *param_name(char out[TN_LAYER_NAME_MAX], const char *name, const bias_opts *o)
{
    return o->param != NULL ? tn_layer_name(out, o->param, "") : tn_layer_name(out, name, ".b");
}

static tn_node *bias_build(const tn_net *net, const tn_layer_args *args)
{
    char name[TN_LAYER_NAME_MAX];
    const bias_opts *o = args->opts;
    tn_node *x = args->in[0];
    if (o->param != NULL && (o->param[0] == '\0' || strlen(o->param) >= TN_LAYER_NAME_MAX)) {
        tn_diag_error(args->diag, args->at, "'param' is a name of 1 to %d bytes",
                      TN_LAYER_NAME_MAX - 1);
        return NULL;
    }
    tn_node *b = tn_param(net->g, net->params, param_name(name, args->name, o),
                          (tn_shape){1, x->shape.cols}, (tn_init){.kind = TN_INIT_CONSTANT});
    return tn_bias(net->g, args->name, x, b);
}

static bool bias_output_bias(const char *name, const void *opts, char out[TN_LAYER_NAME_MAX])
{
    (void)param_name(out, name, opts);
    return true;
}

const tn_layer tn_layer_bias = {
    .name = "bias",
    .help = "x + b",
    .fields = bias_fields,
    .opts_size = sizeof(bias_opts),
    .build = bias_build,
    .output_bias = bias_output_bias,
};
