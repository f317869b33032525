/* layers.c - the list of layers, the names of their nodes and parameters, and the layers that
 * place, pick or combine columns one by one:
 *
 *     concat    the inputs side by side; a single one is handed through
 *     slice     some neighbouring columns
 *     sum, mean of a row: the wide part of a model                               -> [B,1]
 *               or of each slot's vector                                         -> [B,slots]
 *     max       the largest of these
 *     add       inputs of one width
 *     sub, mul, div, maximum, minimum
 *               two inputs; the second may have one column, or one for each slot of the first
 *     where     two inputs of one width, chosen between by a third
 *     constant  columns of one number
 *     scale     by * x + plus, both fixed
 *     bias      x + b, one trained number per column; layers may share it
 */
#include "nn/layer/layers.h"

#include "base/core/error.h"
#include "base/keys/keyspace.h"
#include "config/diag.h"
#include "config/field.h"
#include "nn/graph/embed.h"
#include "nn/graph/params.h"
#include "nn/op/ops.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const tn_layer *const tn_all_layers[] = {
#define TN_LAYER(name) &tn_layer_##name,
#include "nn/layer/layers.def"
#undef TN_LAYER
    NULL,
};

const tn_layer *tn_layer_find(const char *name)
{
    for (const tn_layer *const *l = tn_all_layers; *l != NULL; l++) {
        if (strcmp((*l)->name, name) == 0) {
            return *l;
        }
    }
    return NULL;
}

const char *tn_layer_name(char out[TN_LAYER_NAME_MAX], const char *name, const char *suffix)
{
    int used = snprintf(out, TN_LAYER_NAME_MAX, "%s%s", name, suffix);
    TN_ASSERT(used > 0 && used < TN_LAYER_NAME_MAX);
    return out;
}

const char *tn_layer_numbered(char out[TN_LAYER_NAME_MAX], const char *name, uint32_t i)
{
    char suffix[16];
    (void)snprintf(suffix, sizeof suffix, ".%u", i);
    return tn_layer_name(out, name, suffix);
}

tn_node *tn_layer_named_param(const tn_net *net, const tn_layer_args *args, const char *name,
                              tn_shape shape, tn_init init)
{
    const tn_param_slice *s = tn_params_find(net->params, name);
    if (s != NULL && (s->rows != shape.rows || s->cols != shape.cols)) {
        tn_diag_error(args->diag, args->at,
                      "two parameters are called '%s': one is [%u x %u], this one [%u x %u]", name,
                      s->rows, s->cols, shape.rows, shape.cols);
        tn_diag_hint(args->diag, "layers share one where their inputs and outputs have one width");
        return NULL;
    }
    return tn_shared_param(net->g, net->params, name, shape, init);
}

tn_node *tn_layer_param(const tn_net *net, const char *layer, const char *suffix, tn_shape shape,
                        tn_init init)
{
    char own[TN_LAYER_NAME_MAX];
    (void)tn_layer_name(own, layer, suffix);
    tn_node *shared = NULL;
    if (net->weights != NULL) {
        char name[TN_LAYER_NAME_MAX];
        const char *behind = own + strlen(net->args->name);
        shared = tn_layer_named_param(net, net->args, tn_layer_name(name, net->weights, behind),
                                      shape, init);
    }
    return shared != NULL ? shared : tn_param(net->g, net->params, own, shape, init);
}

tn_node *tn_layer_running(const tn_net *net, const char *layer, const char *suffix, tn_shape shape,
                          double value)
{
    char name[TN_LAYER_NAME_MAX];
    return tn_running(net->g, net->params, tn_layer_name(name, layer, suffix), shape, value);
}

tn_node *tn_layer_of(const tn_net *net, const tn_op *op, const char *layer, const char *node,
                     tn_node *x, const void *attr)
{
    tn_node *in[5] = {x};
    const uint32_t n = tn_params_max(op);
    TN_ASSERT(n < 5);
    for (uint32_t k = 0; k < n; k++) {
        const bool is_state = k + op->norm.n_states >= n;
        const bool one = strcmp(op->params[k], "gamma") == 0 || strcmp(op->params[k], "var") == 0;
        tn_shape shape = {is_state && op->norm.state_rows > 0 ? op->norm.state_rows : 1,
                          x->shape.cols};
        char suffix[16];
        (void)snprintf(suffix, sizeof suffix, ".%s", op->params[k]);
        in[k + 1] = is_state ? tn_layer_running(net, layer, suffix, shape, one)
                             : tn_layer_param(net, layer, suffix, shape,
                                              (tn_init){.kind = TN_INIT_CONSTANT, .a = one});
    }
    return tn_apply(net->g, op, node, in, n + 1, attr);
}

tn_init tn_layer_init_of(tn_init rule, double in, double out)
{
    const bool he = rule.kind == TN_INIT_HE_UNIFORM || rule.kind == TN_INIT_HE_NORMAL;
    const double fans = he ? in : in + out;
    if (rule.kind == TN_INIT_GLOROT_UNIFORM || rule.kind == TN_INIT_HE_UNIFORM) {
        return (tn_init){.kind = TN_INIT_UNIFORM, .a = -sqrt(6 / fans), .b = sqrt(6 / fans)};
    }
    if (rule.kind == TN_INIT_XAVIER_NORMAL || rule.kind == TN_INIT_HE_NORMAL) {
        return (tn_init){.kind = TN_INIT_NORMAL, .a = 0, .b = sqrt(2 / fans)};
    }
    return rule;
}

tn_node *tn_layer_build(const tn_layer *layer, const tn_net *net, const tn_layer_args *args)
{
    return layer->build != NULL
               ? layer->build(net, args)
               : tn_layer_of(net, layer->op, args->name, args->name, args->in[0], args->opts);
}

/* Returns the width of all slots of an embedding, if they have one; else 0. */
static uint32_t slot_width(const tn_node *x)
{
    const tn_embed_list *e = tn_embed_list_of(x);
    uint32_t width = e != NULL ? e->at[1] : 0;
    for (uint32_t i = 1; e != NULL && i < e->n; i++) {
        width = e->at[i + 1] - e->at[i] == width ? width : 0;
    }
    return width;
}

uint32_t tn_layer_slot_width(const tn_layer_args *args, uint32_t dim, const char *option)
{
    const tn_node *x = args->in[0];
    dim = dim != 0 ? dim : slot_width(x);
    if (dim > TN_DIM_MAX) {
        tn_diag_error(args->diag, args->at, "'%s' takes slots of at most %d columns, not %u",
                      option, TN_DIM_MAX, dim);
        return 0;
    }
    if (dim == 0 || x->shape.cols % dim != 0) {
        tn_diag_error(args->diag, args->at,
                      "'%s' needs slots of one width, but '%s' has %u columns of several", option,
                      x->name, x->shape.cols);
        return 0;
    }
    return dim;
}

bool tn_layer_per_slot(const tn_layer_args *args, bool per_slot, uint32_t dim, uint32_t *out)
{
    if (!per_slot && dim != 0) {
        tn_diag_error(args->diag, args->at,
                      "'dim' is the width of a slot: it needs 'per_slot: true'");
        return false;
    }
    *out = per_slot ? tn_layer_slot_width(args, dim, "per_slot") : 0;
    return !per_slot || *out != 0;
}

/* ---- layers of columns ---- */

static tn_node *concat_build(const tn_net *net, const tn_layer_args *args)
{
    (void)net;
    return args->in[0]; /* a list of inputs is joined before the layer gets it */
}

const tn_layer tn_layer_concat = {TN_LAYER_PLAIN(concat, "the inputs side by side")};

typedef tn_slice_attr slice_opts;

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
    return tn_apply(net->g, &tn_op_slice, args->name, args->in, 1, o);
}

const tn_layer tn_layer_slice = {TN_LAYER_WITH_OPTIONS(slice, "neighbouring columns of the input")};

typedef struct sum_opts {
    bool per_slot;
    uint32_t dim;
} sum_opts;

static const tn_field sum_fields[] = {
    TN_PER_SLOT_FIELDS(sum_opts, "one for each slot's vector instead of the row"),
    TN_FIELD_END,
};

/* Under `name`; *terms: how many are added up. NULL: reported. */
static tn_node *sums(const tn_net *net, const tn_layer_args *args, const char *name,
                     uint32_t *terms)
{
    const sum_opts *o = args->opts;
    tn_node *x = args->in[0];
    uint32_t dim = 0;
    if (!tn_layer_per_slot(args, o->per_slot, o->dim, &dim)) {
        return NULL;
    }
    *terms = dim > 0 ? dim : x->shape.cols;
    return dim > 0 ? tn_apply(net->g, &tn_op_sum_groups, name, TN_IN(x), &(tn_pairs_attr){dim})
                   : tn_apply(net->g, &tn_op_sum_cols, name, TN_IN(x), NULL);
}

static tn_node *sum_build(const tn_net *net, const tn_layer_args *args)
{
    uint32_t terms = 0;
    return sums(net, args, args->name, &terms);
}

const tn_layer tn_layer_sum = {
    TN_LAYER_WITH_OPTIONS(sum, "sum over the columns of each row, or of each slot")};

typedef sum_opts mean_opts;
#define mean_fields sum_fields

static tn_node *mean_build(const tn_net *net, const tn_layer_args *args)
{
    char name[TN_LAYER_NAME_MAX];
    uint32_t terms = 0;
    tn_node *sum = sums(net, args, tn_layer_name(name, args->name, ".sum"), &terms);
    return sum == NULL ? NULL
                       : tn_apply(net->g, &tn_op_scale, args->name, TN_IN(sum),
                                  &(tn_scale_attr){.by = 1.0 / terms});
}

const tn_layer tn_layer_mean = {
    TN_LAYER_WITH_OPTIONS(mean, "mean over the columns of each row, or of each slot")};

typedef sum_opts max_opts;
#define max_fields sum_fields

static tn_node *max_build(const tn_net *net, const tn_layer_args *args)
{
    const max_opts *o = args->opts;
    uint32_t dim = 0;
    if (!tn_layer_per_slot(args, o->per_slot, o->dim, &dim)) {
        return NULL;
    }
    return tn_apply(net->g, &tn_op_max_groups, args->name, args->in, 1,
                    &(tn_pairs_attr){dim > 0 ? dim : args->in[0]->shape.cols});
}

const tn_layer tn_layer_max = {
    TN_LAYER_WITH_OPTIONS(max, "the largest of the columns of each row, or of each slot")};

static tn_node *add_build(const tn_net *net, const tn_layer_args *args)
{
    for (uint32_t i = 1; i < args->n_in; i++) {
        if (args->in[i]->shape.cols != args->in[0]->shape.cols) {
            tn_diag_error(args->diag, args->at, "inputs of 'add' have %u and %u columns",
                          args->in[0]->shape.cols, args->in[i]->shape.cols);
            return NULL;
        }
    }
    return args->n_in == 1 ? args->in[0]
                           : tn_apply(net->g, &tn_op_add, args->name, args->in, args->n_in, NULL);
}

const tn_layer tn_layer_add = {TN_LAYER_PLAIN(add, "elementwise sum of inputs of equal width"),
                               .many = true};

/* Returns whether each column of `few` can be paired with some of `many`. False: reported. */
static bool spreads(const tn_layer_args *args, const char *layer, const tn_node *many,
                    const tn_node *few)
{
    uint32_t a = many->shape.cols;
    uint32_t b = few->shape.cols;
    const bool slots = tn_embed_list_of(many) != NULL && b != 1 && b != a;
    if (a % b == 0 && (!slots || a / b == slot_width(many))) {
        return true;
    }
    tn_diag_error(args->diag, args->at, "inputs of '%s' have %u and %u columns", layer,
                  args->in[0]->shape.cols, args->in[1]->shape.cols);
    tn_diag_hint(args->diag,
                 "the %s has as many as the %s, one, or one for each slot, where slots "
                 "have one width",
                 few == args->in[0] ? "first" : "second", few == args->in[0] ? "others" : "first");
    return false;
}

static bool has_inputs(const tn_layer_args *args, const char *layer, uint32_t n)
{
    if (args->n_in != n) {
        tn_diag_error(args->diag, args->at, "'%s' takes %s inputs, not %u", layer,
                      n == 2 ? "two" : "three", args->n_in);
    }
    return args->n_in == n;
}

static tn_node *pair_build(const tn_net *net, const tn_layer_args *args, const tn_op *op)
{
    return has_inputs(args, op->name, 2) && spreads(args, op->name, args->in[0], args->in[1])
               ? tn_apply(net->g, op, args->name, args->in, 2, NULL)
               : NULL;
}

#define PAIR_BUILD(id)                                                                             \
    static tn_node *id##_build(const tn_net *net, const tn_layer_args *args)                       \
    {                                                                                              \
        return pair_build(net, args, &tn_op_##id);                                                 \
    }
#define PAIR_LAYER(id, help_)                                                                      \
    TN_LAYER_PLAIN(id, help_ "; the second may have one column, or one for each slot of the "      \
                             "first"),                                                             \
        .many = true

PAIR_BUILD(sub)
PAIR_BUILD(mul)
PAIR_BUILD(div)
PAIR_BUILD(maximum)
PAIR_BUILD(minimum)

const tn_layer tn_layer_sub = {PAIR_LAYER(sub, "the first input less the second")};
const tn_layer tn_layer_mul = {PAIR_LAYER(mul, "elementwise product of two inputs")};
const tn_layer tn_layer_div = {PAIR_LAYER(div, "the first input divided by the second")};
const tn_layer tn_layer_maximum = {PAIR_LAYER(maximum, "the larger of two inputs, elementwise")};
const tn_layer tn_layer_minimum = {PAIR_LAYER(minimum, "the smaller of two inputs, elementwise")};

static tn_node *where_build(const tn_net *net, const tn_layer_args *args)
{
    if (!has_inputs(args, "where", 3)) {
        return NULL;
    }
    if (args->in[1]->shape.cols != args->in[2]->shape.cols) {
        tn_diag_error(args->diag, args->at, "'where' chooses between inputs of %u and %u columns",
                      args->in[1]->shape.cols, args->in[2]->shape.cols);
        return NULL;
    }
    return spreads(args, "where", args->in[1], args->in[0])
               ? tn_apply(net->g, &tn_op_where, args->name, args->in, 3, NULL)
               : NULL;
}

const tn_layer tn_layer_where = {
    TN_LAYER_PLAIN(where, "the second input where the first is above 0, else the third; the first "
                          "may have one column, or one for each slot of the second"),
    .many = true};

typedef struct constant_opts {
    double constant;
    uint32_t cols;
} constant_opts;

static const tn_field constant_fields[] = {
    TN_FIELD_F64(constant_opts, constant, NULL, -1e30, 1e30, "", "the number, in place of inputs"),
    TN_FIELD_U32(constant_opts, cols, "1", 1, 1e6, "columns", "how many"),
    TN_FIELD_END,
};

static tn_node *constant_build(const tn_net *net, const tn_layer_args *args)
{
    const constant_opts *o = args->opts;
    return tn_apply(net->g, &tn_op_constant, args->name, NULL, 0,
                    &(tn_constant_attr){o->constant, o->cols});
}

const tn_layer tn_layer_constant = {TN_LAYER_WITH_OPTIONS(constant, "columns of one number"),
                                    .source = true};

typedef tn_scale_attr scale_opts;

static const tn_field scale_fields[] = {
    TN_FIELD_F64(scale_opts, by, "1", -1e30, 1e30, "", "factor"),
    TN_FIELD_F64(scale_opts, plus, "0", -1e30, 1e30, "", "added afterwards"),
    TN_FIELD_END,
};

const tn_layer tn_layer_scale = {TN_LAYER_OF(scale, scale, "by * x + plus, both fixed"),
                                 TN_LAYER_OPTIONS(scale)};

typedef struct bias_opts {
    const char *param;
} bias_opts;

static const tn_field bias_fields[] = {
    TN_FIELD_STR(bias_opts, param, "~",
                 "name of the parameter, which layers may share; ~: the layer's name and '.b'"),
    TN_FIELD_END,
};

static tn_node *bias_build(const tn_net *net, const tn_layer_args *args)
{
    const bias_opts *o = args->opts;
    tn_node *x = args->in[0];
    if (o->param != NULL && (o->param[0] == '\0' || strlen(o->param) >= TN_LAYER_NAME_MAX)) {
        tn_diag_error(args->diag, args->at, "'param' is a name of 1 to %d bytes",
                      TN_LAYER_NAME_MAX - 1);
        return NULL;
    }
    const tn_shape shape = {1, x->shape.cols};
    const tn_init zero = {.kind = TN_INIT_CONSTANT};
    tn_node *b = o->param != NULL ? tn_layer_named_param(net, args, o->param, shape, zero)
                                  : tn_layer_param(net, args->name, ".b", shape, zero);
    return b == NULL ? NULL : tn_apply(net->g, &tn_op_bias, args->name, TN_IN(x, b), NULL);
}

static bool bias_output_bias(const char *name, const void *opts, char out[TN_LAYER_NAME_MAX])
{
    const bias_opts *o = opts;
    (void)tn_layer_name(out, o->param != NULL ? o->param : name, o->param != NULL ? "" : ".b");
    return true;
}

const tn_layer tn_layer_bias = {TN_LAYER_WITH_OPTIONS(bias, "x + b"), .weighs = true,
                                .output_bias = bias_output_bias};
