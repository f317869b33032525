/* layer_slots.c - layers over slots' vectors as a whole: the same or a matrix of its own for each,
 * attention among them, their sum, and the compressed interaction network.
 *
 *     slot_dense      v_f W + b of each slot, W shared or the slot's own         -> [B,slots*units]
 *     slot_sum        sum of v_f                                                 -> [B,dim]
 *     slot_attention  Q = v Wq, K = v Wk, V = v Wv; softmax(Q K^T) V by heads, and v or v Wr
 *                     beside it (AutoInt, Song 2019)                             -> [B,slots*units]
 *     cin             maps x_k = sum W_ij,k x_i * v_j + b_k, layer after layer; each one summed
 *                     over its columns (xDeepFM, Lian 2018)                      -> [B,all maps]
 */
#include "base/keys/keyspace.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/values.h"
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define SLOT_DIM(type)                                                                             \
    TN_FIELD_U32(type, dim, "0", 0, TN_DIM_MAX, "floats",                                          \
                 "width of one slot's vector; 0: that of the embedding input")

/* Returns whether `vectors` of `cols` columns are a node. False: reported. */
static bool is_node(const tn_layer_args *args, const char *layer, uint64_t vectors, uint64_t cols)
{
    if (vectors * cols > TN_COLS_MAX) {
        tn_diag_error(args->diag, args->at,
                      "'%s' makes %" PRIu64 " vectors of %" PRIu64
                      " columns, more than %d columns in all",
                      layer, vectors, cols, TN_COLS_MAX);
        return false;
    }
    return true;
}

/* ---- slot_dense ---- */

typedef struct slot_dense_opts {
    uint32_t units, dim;
    bool shared, bias;
} slot_dense_opts;

static const tn_field slot_dense_fields[] = {
    TN_FIELD_U32(slot_dense_opts, units, NULL, 1, TN_DIM_MAX, "units",
                 "width of each slot's output"),
    SLOT_DIM(slot_dense_opts),
    TN_FIELD_BOOL(slot_dense_opts, shared, "true", "false: each slot has a matrix of its own"),
    TN_FIELD_BOOL(slot_dense_opts, bias, "true", "false: v W alone; slots share the bias"),
    TN_FIELD_END,
};

static tn_node *slot_dense_build(const tn_net *net, const tn_layer_args *args)
{
    const slot_dense_opts *o = args->opts;
    tn_node *x = args->in[0];
    const uint32_t dim = tn_layer_slot_width(args, o->dim, "slot_dense");
    if (dim == 0 || !is_node(args, "slot_dense", x->shape.cols / dim, o->units)) {
        return NULL;
    }
    const tn_pairs_attr attr = {dim};
    const tn_init init = tn_layer_init_of(net->dense_init, dim, o->units);
    tn_node *w = tn_layer_param(net, args->name, ".W",
                                (tn_shape){o->shared ? dim : x->shape.cols, o->units}, init);
    if (!o->bias) {
        return tn_apply(net->g, &tn_op_slot_dense, args->name, TN_IN(x, w), &attr);
    }
    tn_node *b = tn_layer_param(net, args->name, ".b", (tn_shape){1, o->units},
                                (tn_init){.kind = TN_INIT_CONSTANT});
    return tn_apply(net->g, &tn_op_slot_dense, args->name, TN_IN(x, w, b), &attr);
}

const tn_layer tn_layer_slot_dense = {
    TN_LAYER_WITH_OPTIONS(slot_dense,
                          "v W + b of each slot's vector, by one matrix or each its own"),
    .weighs = true};

/* ---- slot_sum ---- */

typedef tn_pairs_attr slot_sum_opts;

static const tn_field slot_sum_fields[] = {
    SLOT_DIM(slot_sum_opts),
    TN_FIELD_END,
};

static tn_node *slot_sum_build(const tn_net *net, const tn_layer_args *args)
{
    const slot_sum_opts *o = args->opts;
    const uint32_t dim = tn_layer_slot_width(args, o->dim, "slot_sum");
    return dim == 0 ? NULL
                    : tn_apply(net->g, &tn_op_slot_sum, args->name, TN_IN(args->in[0]),
                               &(tn_pairs_attr){dim});
}

const tn_layer tn_layer_slot_sum = {
    TN_LAYER_WITH_OPTIONS(slot_sum, "sum of all slots' vectors, one value per column")};

/* ---- slot_attention ---- */

typedef struct slot_attention_opts {
    uint32_t units, dim, heads;
    bool scale, residual;
} slot_attention_opts;

static const tn_field slot_attention_fields[] = {
    TN_FIELD_U32(slot_attention_opts, units, "0", 0, TN_DIM_MAX, "units",
                 "width of each slot's output; 0: that of its vector"),
    TN_FIELD_U32(slot_attention_opts, heads, "1", 1, TN_DIM_MAX, "heads",
                 "parts that attend by themselves; units is a multiple of it"),
    TN_FIELD_BOOL(slot_attention_opts, scale, "false",
                  "divide products of query and key by the root of a head's width"),
    TN_FIELD_BOOL(slot_attention_opts, residual, "true",
                  "add the vector itself, by a matrix where it is not as wide"),
    SLOT_DIM(slot_attention_opts),
    TN_FIELD_END,
};

/* v W of each slot, W called "<layer>.<which>". */
static tn_node *projected(const tn_net *net, const tn_layer_args *args, const char *which,
                          tn_shape shape)
{
    char suffix[8];
    char name[TN_LAYER_NAME_MAX];
    (void)snprintf(suffix, sizeof suffix, ".W%s", which);
    tn_node *w = tn_layer_param(net, args->name, suffix, shape, net->dense_init);
    (void)snprintf(suffix, sizeof suffix, ".%s", which);
    return tn_apply(net->g, &tn_op_slot_dense, tn_layer_name(name, args->name, suffix),
                    TN_IN(args->in[0], w), &(tn_pairs_attr){shape.rows});
}

/* Returns whether slots can attend to each other so. False: reported. */
static bool can_attend(const tn_layer_args *args, uint64_t slots, uint32_t units, uint32_t heads)
{
    if (slots > TN_ATTENTION_SLOTS_MAX) {
        tn_diag_error(args->diag, args->at,
                      "'slot_attention' takes at most %d slots, and there are %" PRIu64,
                      TN_ATTENTION_SLOTS_MAX, slots);
        return false;
    }
    if (units % heads != 0) {
        tn_diag_error(args->diag, args->at, "vectors of %u columns cannot have %u heads", units,
                      heads);
        tn_diag_hint(args->diag, "take a number of heads that divides the units");
        return false;
    }
    return is_node(args, "slot_attention", slots, units);
}

static tn_node *slot_attention_build(const tn_net *net, const tn_layer_args *args)
{
    const slot_attention_opts *o = args->opts;
    tn_node *x = args->in[0];
    const uint32_t dim = tn_layer_slot_width(args, o->dim, "slot_attention");
    const uint32_t units = o->units != 0 ? o->units : dim;
    if (dim == 0 || !can_attend(args, x->shape.cols / dim, units, o->heads)) {
        return NULL;
    }
    const tn_shape shape = {dim, units};
    const uint32_t width = units / o->heads;
    const tn_attention_attr attr = {
        .dim = units, .heads = o->heads, .scale = o->scale ? 1 / sqrt(width) : 1};
    tn_node *qkv[3];
    qkv[0] = projected(net, args, "q", shape);
    qkv[1] = projected(net, args, "k", shape);
    qkv[2] = projected(net, args, "v", shape);
    if (!o->residual) {
        return tn_apply(net->g, &tn_op_slot_attention, args->name, qkv, 3, &attr);
    }
    char name[TN_LAYER_NAME_MAX];
    tn_node *y = tn_apply(net->g, &tn_op_slot_attention, tn_layer_name(name, args->name, ".heads"),
                          qkv, 3, &attr);
    tn_node *own = units == dim ? x : projected(net, args, "r", shape);
    return tn_apply(net->g, &tn_op_add, args->name, TN_IN(y, own), NULL);
}

const tn_layer tn_layer_slot_attention = {
    TN_LAYER_WITH_OPTIONS(slot_attention, "slots attend to each other's vectors, by heads"),
    .weighs = true};

/* ---- cin ---- */

typedef struct cin_opts {
    tn_f64s hidden;
    bool bias;
    uint32_t dim;
} cin_opts;

static const tn_field cin_fields[] = {
    TN_FIELD_F64S(cin_opts, hidden, NULL, 1, 65536, "maps of each layer"),
    TN_FIELD_BOOL(cin_opts, bias, "true", "false: maps are weighted sums of products alone"),
    SLOT_DIM(cin_opts),
    TN_FIELD_END,
};

/* Adds a layer of maps over x, called `name`. NULL: reported. */
static tn_node *add_maps(const tn_net *net, const tn_layer_args *args, const char *name, tn_node *x,
                         const uint32_t shape[2])
{
    const uint32_t dim = shape[0];
    const uint32_t units = shape[1];
    tn_node *x0 = args->in[0];
    const uint64_t depth = (uint64_t)(x->shape.cols / dim) * (x0->shape.cols / dim);
    if (!is_node(args, "cin", units, dim) || depth > TN_COLS_MAX) {
        if (depth > TN_COLS_MAX) {
            tn_diag_error(args->diag, args->at,
                          "'cin' takes at most %d products, and %u maps times %u slots are more",
                          TN_COLS_MAX, x->shape.cols / dim, x0->shape.cols / dim);
        }
        return NULL;
    }
    tn_node *wb[2];
    wb[0] = tn_layer_param(net, name, ".W", (tn_shape){(uint32_t)depth, units}, net->dense_init);
    if (!((const cin_opts *)args->opts)->bias) {
        return tn_apply(net->g, &tn_op_cin, name, TN_IN(x0, x, wb[0]), &(tn_pairs_attr){dim});
    }
    wb[1] =
        tn_layer_param(net, name, ".b", (tn_shape){1, units}, (tn_init){.kind = TN_INIT_CONSTANT});
    return tn_apply(net->g, &tn_op_cin, name, TN_IN(x0, x, wb[0], wb[1]), &(tn_pairs_attr){dim});
}

static tn_node *cin_build(const tn_net *net, const tn_layer_args *args)
{
    const cin_opts *o = args->opts;
    const uint32_t dim = tn_layer_slot_width(args, o->dim, "cin");
    if (dim == 0 || !tn_layer_widths(&o->hidden, args->at, args->diag)) {
        return NULL;
    }
    tn_node *sum[64];
    tn_node *x = args->in[0];
    for (uint32_t i = 0; i < o->hidden.n; i++) {
        char name[TN_LAYER_NAME_MAX];
        const uint32_t shape[] = {dim, (uint32_t)o->hidden.item[i]};
        x = add_maps(net, args, tn_layer_numbered(name, args->name, i + 1), x, shape);
        if (x == NULL) {
            return NULL;
        }
        sum[i] = TN_LAYER_NODE(net, sum_groups, name, ".sum", TN_IN(x), &(tn_pairs_attr){dim});
    }
    return tn_apply(net->g, &tn_op_concat, args->name, sum, o->hidden.n, NULL);
}

const tn_layer tn_layer_cin = {
    TN_LAYER_WITH_OPTIONS(cin, "compressed interaction network: maps of products of slots, summed"),
    .weighs = true};
