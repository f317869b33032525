/* layer_sequence.c - layers over the positions of a sequence: a history beside what is looked at.
 *
 *     attend          [clicks, target]: each position weighed by a small net of it and the target,
 *                     and summed (the local activation unit of DIN, Zhou 2018)       -> [B,h]
 *     self_attention  each position by all of its row (a block of a Transformer, as BST has it,
 *                     Chen 2019)                                                     -> [P,h]
 *     append          [clicks, target]: the target as one more position, the last    -> [P+B,h]
 *     positions       plus a trained vector for each position, counted from the end  -> [P,h]
 *     pool            sum, mean or max of a row's positions, or the last             -> [B,h]
 *
 * The first product of DIN's unit takes [h, t, h - t, h t]. With W = [Wh; Wt; Wd; Wp] it is
 *
 *     h (Wh + Wd) + t (Wt - Wd) + (h t) Wp
 *
 * so the layer has a weight for each of these three sums: the same functions, half of the products,
 * and that of t is made once for a row. Where the history has more columns than the target, those
 * that are paired come first, and the rest beside them.
 */
#include "config/diag.h"
#include "config/field.h"
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

#include <string.h>

static const tn_init zeros = {.kind = TN_INIT_CONSTANT};

static bool has_positions(const tn_node *x)
{
    return x->positions.max_len > 0;
}

static bool needs_positions(const tn_layer_args *args, const char *layer)
{
    if (!has_positions(args->in[0])) {
        tn_diag_error(args->diag, args->at,
                      "'%s' takes a value for each position of a sequence, and '%s' has one for "
                      "each row",
                      layer, args->in[0]->name);
        tn_diag_hint(args->diag, "an input {sequence: <name>} has them");
        return false;
    }
    return true;
}

/* Returns whether the inputs are the positions of a sequence and a value of the row. */
static bool is_pair(const tn_layer_args *args, const char *layer)
{
    if (args->n_in != 2 || has_positions(args->in[1])) {
        tn_diag_error(args->diag, args->at, "'%s' takes two inputs: a sequence, and its target",
                      layer);
        return false;
    }
    return needs_positions(args, layer);
}

/* x W + b as "<layer><suffix>"; without b where `bias` is false. */
static tn_node *product(const tn_net *net, const char *layer, const char *suffix, tn_node *x,
                        uint32_t units, bool bias)
{
    char own[TN_LAYER_NAME_MAX];
    (void)tn_layer_name(own, layer, suffix);
    tn_node *w = tn_layer_param(net, own, ".W", (tn_shape){x->shape.cols, units}, net->dense_init);
    tn_node *y = tn_apply(net->g, &tn_op_matmul,
                          bias ? tn_layer_name((char[TN_LAYER_NAME_MAX]){0}, own, ".matmul") : own,
                          TN_IN(x, w), NULL);
    return !bias ? y
                 : tn_apply(net->g, &tn_op_bias, own,
                            TN_IN(y, tn_layer_param(net, own, ".b", (tn_shape){1, units}, zeros)),
                            NULL);
}

/* ---- attend ---- */

typedef struct attend_opts {
    tn_f64s hidden;
    uint32_t activation;
    bool softmax;
} attend_opts;

static const tn_field attend_fields[] = {
    TN_FIELD_F64S(attend_opts, hidden, "[64]", 1, 65536, "widths of the net that weighs"),
    TN_FIELD_CHOICE(attend_opts, activation, "dice", tn_activation_words, "of these layers"),
    TN_FIELD_BOOL(attend_opts, softmax, "false",
                  "weights of a row are its softmax; else as they are, as DIN has them"),
    TN_FIELD_END,
};

/* The first columns of h, as many as t has. */
static tn_node *paired_columns(const tn_net *net, const tn_layer_args *args)
{
    tn_node *h = args->in[0];
    const uint32_t cols = args->in[1]->shape.cols;
    return h->shape.cols == cols ? h
                                 : TN_LAYER_NODE(net, slice, args->name, ".paired", TN_IN(h),
                                                 &(tn_slice_attr){0, cols});
}

/* The first layer's sums: those of h and h t in one product, and those of t, once for a row. */
static tn_node *first_sums(const tn_net *net, const tn_layer_args *args, uint32_t units)
{
    tn_node *h = args->in[0];
    tn_node *t = args->in[1];
    tn_node *pairs = TN_LAYER_NODE(net, sequence_mul, args->name, ".mul",
                                   TN_IN(paired_columns(net, args), t), NULL);
    tn_node *x = TN_LAYER_NODE(net, concat, args->name, ".x", TN_IN(h, pairs), NULL);
    char name[TN_LAYER_NAME_MAX];
    tn_node *w = tn_layer_param(net, tn_layer_name(name, args->name, ".history"), ".W",
                                (tn_shape){x->shape.cols, units}, net->dense_init);
    tn_node *u = product(net, args->name, ".target", t, units, true);
    return tn_apply(net->g, &tn_op_sequence_dense, name, TN_IN(x, u, w), NULL);
}

static tn_node *attend_build(const tn_net *net, const tn_layer_args *args)
{
    const attend_opts *o = args->opts;
    char name[TN_LAYER_NAME_MAX];
    if (!is_pair(args, "attend") || !tn_layer_widths(&o->hidden, args->at, args->diag)) {
        return NULL;
    }
    if (args->in[1]->shape.cols > args->in[0]->shape.cols) {
        tn_diag_error(args->diag, args->at,
                      "'attend' pairs '%s' of %u columns with the target '%s' of %u: the first as "
                      "many of them",
                      args->in[0]->name, args->in[0]->shape.cols, args->in[1]->name,
                      args->in[1]->shape.cols);
        return NULL;
    }
    const uint32_t first = o->hidden.n > 0 ? (uint32_t)o->hidden.item[0] : 1;
    tn_node *z = first_sums(net, args, first);
    for (uint32_t i = 0; i < o->hidden.n; i++) {
        if (i > 0) {
            (void)tn_layer_numbered(name, args->name, i + 1);
            z = product(net, name, ".sums", z, (uint32_t)o->hidden.item[i], true);
        }
        z = tn_layer_activate(net, tn_layer_numbered(name, args->name, i + 1), z, o->activation);
    }
    z = o->hidden.n > 0 ? product(net, args->name, ".weight", z, 1, true) : z;
    if (o->softmax) {
        z = TN_LAYER_NODE(net, sequence_softmax, args->name, ".softmax", TN_IN(z), NULL);
    }
    return tn_apply(net->g, &tn_op_sequence_sum, args->name, TN_IN(z, args->in[0]), NULL);
}

const tn_layer tn_layer_attend = {
    TN_LAYER_WITH_OPTIONS(attend, "sum of a sequence's positions, weighed by a net of each and the "
                                  "target: [sequence, target]"),
    .many = true, .mixes = true, .weighs = true};

/* ---- append, positions, pool ---- */

static tn_node *append_build(const tn_net *net, const tn_layer_args *args)
{
    if (!is_pair(args, "append")) {
        return NULL;
    }
    if (args->in[0]->shape.cols != args->in[1]->shape.cols || args->in[0]->positions.extra != 0) {
        tn_diag_error(args->diag, args->at,
                      "'append' takes a sequence without a target yet and a target as wide, not %u "
                      "and %u columns",
                      args->in[0]->shape.cols, args->in[1]->shape.cols);
        return NULL;
    }
    return tn_apply(net->g, &tn_op_sequence_append, args->name, args->in, 2, NULL);
}

const tn_layer tn_layer_append = {
    TN_LAYER_PLAIN(append, "the target as the last position: [sequence, target]"), .many = true,
    .mixes = true};

static tn_node *positions_build(const tn_net *net, const tn_layer_args *args)
{
    tn_node *x = args->in[0];
    if (!needs_positions(args, "positions")) {
        return NULL;
    }
    const tn_shape shape = {x->positions.max_len + x->positions.extra, x->shape.cols};
    tn_node *table = tn_layer_param(net, args->name, ".T", shape,
                                    (tn_init){.kind = TN_INIT_NORMAL, .a = 0, .b = 0.02});
    return tn_apply(net->g, &tn_op_sequence_positions, args->name, TN_IN(x, table), NULL);
}

const tn_layer tn_layer_positions = {
    TN_LAYER_PLAIN(positions, "plus a trained vector for each position, counted from the end"),
    .weighs = true};

typedef struct pool_opts {
    uint32_t kind;
} pool_opts;

static const tn_field pool_fields[] = {
    TN_FIELD_CHOICE(pool_opts, kind, "mean", tn_sequence_pool_words,
                    "sum, mean or the largest of the positions, or the last one"),
    TN_FIELD_END,
};

static tn_node *pool_build(const tn_net *net, const tn_layer_args *args)
{
    const pool_opts *o = args->opts;
    return needs_positions(args, "pool")
               ? tn_apply(net->g, &tn_op_sequence_pool, args->name, TN_IN(args->in[0]),
                          &(tn_sequence_pool_attr){o->kind})
               : NULL;
}

const tn_layer tn_layer_pool = {
    TN_LAYER_WITH_OPTIONS(pool, "one value of a row from those of a sequence's positions")};

/* ---- self_attention ---- */

typedef struct self_attention_opts {
    uint32_t heads, hidden;
    double dropout;
} self_attention_opts;

static const tn_field self_attention_fields[] = {
    TN_FIELD_U32(self_attention_opts, heads, "2", 1, TN_HEADS_MAX, "heads",
                 "parts of the columns that attend by themselves"),
    TN_FIELD_U32(self_attention_opts, hidden, "0", 0, 65536, "units",
                 "width of the layer between the two products that follow; 0: of the input"),
    TN_FIELD_F64(self_attention_opts, dropout, "0", 0, 0.999, "", "after each of the two parts"),
    TN_FIELD_END,
};

/* norm(x + drop(y)) as "<layer><suffix>", the layer itself where that is "". */
static tn_node *close_part(const tn_net *net, const tn_layer_args *args, const char *suffix,
                           tn_node *x, tn_node *y)
{
    const self_attention_opts *o = args->opts;
    char part[TN_LAYER_NAME_MAX];
    char norm[TN_LAYER_NAME_MAX];
    (void)tn_layer_name(part, args->name, suffix[0] != '\0' ? suffix : ".net");
    (void)tn_layer_name(norm, part, ".norm");
    if (o->dropout > 0) {
        y = TN_LAYER_NODE(net, dropout, part, ".drop", TN_IN(y), &(tn_dropout_attr){o->dropout});
    }
    y = TN_LAYER_NODE(net, add, part, ".sum", TN_IN(x, y), NULL);
    return tn_layer_of(net, &tn_op_layer_norm, norm, suffix[0] != '\0' ? norm : args->name, y,
                       &(tn_layer_norm_attr){1e-5});
}

/* x = norm(x + attention(x Q, x K, x V) O), then norm(x + lrelu(x U + u) D + d). */
static tn_node *self_attention_build(const tn_net *net, const tn_layer_args *args)
{
    const self_attention_opts *o = args->opts;
    tn_node *x = args->in[0];
    const uint32_t cols = x->shape.cols;
    if (!needs_positions(args, "self_attention")) {
        return NULL;
    }
    if (cols % o->heads != 0) {
        tn_diag_error(args->diag, args->at,
                      "'self_attention' of %u heads takes columns that they "
                      "divide, not %u",
                      o->heads, cols);
        return NULL;
    }
    tn_node *in[] = {product(net, args->name, ".q", x, cols, false),
                     product(net, args->name, ".k", x, cols, false),
                     product(net, args->name, ".v", x, cols, false)};
    tn_node *y = TN_LAYER_NODE(net, sequence_attention, args->name, ".heads", in, 3,
                               &(tn_sequence_attention_attr){o->heads});
    y = product(net, args->name, ".out", y, cols, false);
    x = close_part(net, args, ".attention", x, y);
    char up[TN_LAYER_NAME_MAX];
    y = product(net, args->name, ".up.sums", x, o->hidden > 0 ? o->hidden : cols, true);
    y = tn_activate(net->g, tn_layer_name(up, args->name, ".up"), y, "leaky_relu");
    y = product(net, args->name, ".down", y, cols, true);
    return close_part(net, args, "", x, y);
}

const tn_layer tn_layer_self_attention = {
    TN_LAYER_WITH_OPTIONS(self_attention, "each position of a sequence by all of its row, then a "
                                          "net: a block of a Transformer"),
    .weighs = true};
