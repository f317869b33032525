/* onnx.c - writes a graph as ONNX: a row per operator, and a function for those that are several
 * nodes there.
 */
#include "extra/onnx/onnx.h"

#include "base/codec/proto.h"
#include "extra/onnx/onnxnodes.h"
#include "nn/graph/embed.h"
#include "nn/graph/graphcore.h"
#include "nn/op/ops.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OPSET = 13, IR_VERSION = 7 };

#define AN_INT(attribute, value)                                                                   \
    {                                                                                              \
        .name = (attribute), .type = TN_ONNX_INT, .n = 1, .i = { value }                           \
    }
#define A_SLOPE(value)                                                                             \
    {                                                                                              \
        .name = "alpha", .type = TN_ONNX_FLOAT, .f = (float)(value)                                \
    }
#define IN(...)                                                                                    \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)
#define ATTRS(...) ((const tn_onnx_attr[]){__VA_ARGS__, {.name = NULL}})
#define WHOLE(o, ...)                                                                              \
    tn_onnx_whole((o), sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                         \
                  (const int64_t[]){__VA_ARGS__})

/* ---- steps that several operators take ---- */

static const char *reshape(tn_onnx *o, const char *out, const char *x, const char *shape)
{
    return tn_onnx_put(o, out, "Reshape", IN(x, shape), NULL);
}

/* Over the axis, which goes. */
static const char *sum_away(tn_onnx *o, const char *out, const char *x, int64_t axis)
{
    return tn_onnx_put(o, out, "ReduceSum", IN(x, WHOLE(o, axis)), ATTRS(AN_INT("keepdims", 0)));
}

static const char *sum_row(tn_onnx *o, const char *out, const char *x)
{
    return tn_onnx_put(o, out, "ReduceSum", IN(x, WHOLE(o, 1)), ATTRS(AN_INT("keepdims", 1)));
}

static const char *scaled(tn_onnx *o, const char *out, const char *x, double by)
{
    return tn_onnx_put(o, out, "Mul", IN(x, tn_onnx_number(o, by)), NULL);
}

/* x [N, F * D] as [N, F, D]. */
static const char *fields(tn_onnx *o, const char *x, uint32_t cols, uint32_t dim)
{
    return reshape(o, NULL, x, WHOLE(o, -1, cols / dim, dim));
}

/* (sum of fields)^2 - sum of squares, [N, D]. */
static const char *pair_sums(tn_onnx *o, uint32_t dim)
{
    const char *e = fields(o, tn_onnx_in(o, 0), o->y->in[0]->shape.cols, dim);
    const char *sum = sum_away(o, NULL, e, 1);
    const char *square = tn_onnx_put(o, NULL, "Mul", IN(sum, sum), NULL);
    const char *squares = sum_away(o, NULL, tn_onnx_put(o, NULL, "Mul", IN(e, e), NULL), 1);
    return tn_onnx_put(o, NULL, "Sub", IN(square, squares), NULL);
}

/* Columns i * f + j, i < j, of [N, f, f]. */
static const char *upper(tn_onnx *o, const char *out, const char *square, uint32_t f)
{
    const int64_t n = (int64_t)f * (f - 1) / 2;
    int64_t *at = TN_NEW_ARRAY(o->arena, int64_t, (size_t)n + 1);
    const char *name = tn_onnx_join(o, o->y->name, "pairs");
    int64_t k = 0;
    for (uint32_t i = 0; i < f; i++) {
        for (uint32_t j = i + 1; j < f; j++) {
            at[k++] = (int64_t)i * f + j;
        }
    }
    TN_ASSERT(k == n);
    tn_onnx_tensor(o, name, TN_ONNX_INT64S, 1, (const int64_t[TN_ONNX_RANK]){n}, at);
    const char *flat = reshape(o, NULL, square, WHOLE(o, -1, (int64_t)f * f));
    return tn_onnx_put(o, out, "Gather", IN(flat, name), ATTRS(AN_INT("axis", 1)));
}

/* ---- operators of several nodes ---- */

static void put_dense(tn_onnx *o, const char *out)
{
    static const char *const activations[] = {NULL, "Relu", "LeakyRelu", "Sigmoid", "Tanh"};
    const tn_dense_attr *a = o->y->attr;
    const char *act = a != NULL ? activations[a->activation] : NULL;
    const char *in[] = {tn_onnx_in(o, 0), tn_onnx_param(o, o->y->in[1], TN_ONNX_MATRIX),
                        o->y->n_in > 2 ? tn_onnx_param(o, o->y->in[2], TN_ONNX_ROW) : NULL};
    const char *z = tn_onnx_put(o, act == NULL ? out : NULL, "Gemm", in, o->y->n_in, NULL);
    if (act != NULL) {
        const bool leaks = strcmp(act, "LeakyRelu") == 0;
        (void)tn_onnx_put(o, out, act, IN(z), leaks ? ATTRS(A_SLOPE(a->slope)) : NULL);
    }
}

static void put_bias(tn_onnx *o, const char *out)
{
    (void)tn_onnx_put(o, out, "Add",
                      IN(tn_onnx_in(o, 0), tn_onnx_param(o, o->y->in[1], TN_ONNX_ROW)), NULL);
}

static void put_leaky_relu(tn_onnx *o, const char *out)
{
    const tn_act_attr *a = o->y->attr;
    (void)tn_onnx_put(o, out, "LeakyRelu", IN(tn_onnx_in(o, 0)), ATTRS(A_SLOPE(a->slope)));
}

static void put_prelu(tn_onnx *o, const char *out)
{
    (void)tn_onnx_put(o, out, "PRelu",
                      IN(tn_onnx_in(o, 0), tn_onnx_param(o, o->y->in[1], TN_ONNX_ROW)), NULL);
}

static void put_square(tn_onnx *o, const char *out)
{
    (void)tn_onnx_put(o, out, "Mul", IN(tn_onnx_in(o, 0), tn_onnx_in(o, 0)), NULL);
}

static void put_silu(tn_onnx *o, const char *out)
{
    const char *x = tn_onnx_in(o, 0);
    (void)tn_onnx_put(o, out, "Mul", IN(x, tn_onnx_put(o, NULL, "Sigmoid", IN(x), NULL)), NULL);
}

/* x/2 (1 + f), f being erf(x / sqrt 2) or tanh(sqrt(2/pi) (x + .044715 x^3)). */
static void half_of(tn_onnx *o, const char *out, const char *x, const char *f)
{
    const char *one_more = tn_onnx_put(o, NULL, "Add", IN(f, tn_onnx_number(o, 1)), NULL);
    (void)scaled(o, out, tn_onnx_put(o, NULL, "Mul", IN(x, one_more), NULL), 0.5);
}

static void put_gelu(tn_onnx *o, const char *out)
{
    const char *x = tn_onnx_in(o, 0);
    half_of(o, out, x, tn_onnx_put(o, NULL, "Erf", IN(scaled(o, NULL, x, sqrt(0.5))), NULL));
}

static void put_gelu_tanh(tn_onnx *o, const char *out)
{
    const char *x = tn_onnx_in(o, 0);
    const char *square = tn_onnx_put(o, NULL, "Mul", IN(x, x), NULL);
    const char *cube = tn_onnx_put(o, NULL, "Mul", IN(square, x), NULL);
    const char *sum = tn_onnx_put(o, NULL, "Add", IN(x, scaled(o, NULL, cube, 0.044715)), NULL);
    half_of(o, out, x,
            tn_onnx_put(o, NULL, "Tanh", IN(scaled(o, NULL, sum, sqrt(2 / M_PI))), NULL));
}

/* Weights that stay as they are. */
static void put_batch_norm(tn_onnx *o, const char *out)
{
    const uint32_t n = o->y->shape.cols;
    tn_real *by = TN_NEW_ARRAY(o->arena, tn_real, n);
    tn_real *plus = TN_NEW_ARRAY(o->arena, tn_real, n);
    const char *scale = tn_onnx_join(o, o->y->name, "scale");
    const char *shift = tn_onnx_join(o, o->y->name, "shift");
    o->y->op->norm.affine(o->y, by, plus);
    tn_onnx_tensor(o, scale, TN_ONNX_FLOATS, 1, (const int64_t[TN_ONNX_RANK]){n}, by);
    tn_onnx_tensor(o, shift, TN_ONNX_FLOATS, 1, (const int64_t[TN_ONNX_RANK]){n}, plus);
    const char *product = tn_onnx_put(o, NULL, "Mul", IN(tn_onnx_in(o, 0), scale), NULL);
    (void)tn_onnx_put(o, out, "Add", IN(product, shift), NULL);
}

/* (x - mean) rstd, by what was seen, which stays as it is. `out` NULL: a step. */
static const char *standardised(tn_onnx *o, const char *out, const char *x)
{
    const uint32_t n = o->y->shape.cols;
    const int64_t dims[TN_ONNX_RANK] = {n};
    tn_real *middle = TN_NEW_ARRAY(o->arena, tn_real, n);
    tn_real *by = TN_NEW_ARRAY(o->arena, tn_real, n);
    const char *center = tn_onnx_join(o, o->y->name, "mean");
    const char *scale = tn_onnx_join(o, o->y->name, "scale");
    o->y->op->norm.running(o->y, (tn_range){0, n}, middle, by);
    tn_onnx_tensor(o, center, TN_ONNX_FLOATS, 1, dims, middle);
    tn_onnx_tensor(o, scale, TN_ONNX_FLOATS, 1, dims, by);
    const char *d = tn_onnx_put(o, NULL, "Sub", IN(x, center), NULL);
    return tn_onnx_put(o, out, "Mul", IN(d, scale), NULL);
}

static void put_zscore(tn_onnx *o, const char *out)
{
    (void)standardised(o, out, tn_onnx_in(o, 0));
}

static void put_data_norm(tn_onnx *o, const char *out)
{
    const char *unit = standardised(o, NULL, tn_onnx_in(o, 0));
    const char *product =
        tn_onnx_put(o, NULL, "Mul", IN(unit, tn_onnx_param(o, o->y->in[1], TN_ONNX_ROW)), NULL);
    (void)tn_onnx_put(o, out, "Add", IN(product, tn_onnx_param(o, o->y->in[2], TN_ONNX_ROW)), NULL);
}

/* x (a + (1 - a) sigmoid(x^)). */
static void put_dice(tn_onnx *o, const char *out)
{
    const char *x = tn_onnx_in(o, 0);
    const char *a = tn_onnx_param(o, o->y->in[1], TN_ONNX_ROW);
    const char *share = tn_onnx_put(o, NULL, "Sigmoid", IN(standardised(o, NULL, x)), NULL);
    const char *rest = tn_onnx_put(o, NULL, "Sub", IN(tn_onnx_number(o, 1), a), NULL);
    const char *more = tn_onnx_put(o, NULL, "Mul", IN(rest, share), NULL);
    (void)tn_onnx_put(o, out, "Mul", IN(x, tn_onnx_put(o, NULL, "Add", IN(a, more), NULL)), NULL);
}

static const char *mean(tn_onnx *o, const char *x)
{
    return tn_onnx_put(o, NULL, "ReduceMean", IN(x),
                       ATTRS({.name = "axes", .type = TN_ONNX_INTS, .n = 1, .i = {1}}));
}

static void put_layer_norm(tn_onnx *o, const char *out)
{
    const tn_layer_norm_attr *a = o->y->attr;
    const char *x = tn_onnx_in(o, 0);
    const char *d = tn_onnx_put(o, NULL, "Sub", IN(x, mean(o, x)), NULL);
    const char *var = mean(o, tn_onnx_put(o, NULL, "Mul", IN(d, d), NULL));
    const char *more = tn_onnx_put(o, NULL, "Add", IN(var, tn_onnx_number(o, a->epsilon)), NULL);
    const char *unit =
        tn_onnx_put(o, NULL, "Div", IN(d, tn_onnx_put(o, NULL, "Sqrt", IN(more), NULL)), NULL);
    const char *gamma = tn_onnx_param(o, o->y->in[1], TN_ONNX_ROW);
    const char *product = tn_onnx_put(o, NULL, "Mul", IN(unit, gamma), NULL);
    (void)tn_onnx_put(o, out, "Add", IN(product, tn_onnx_param(o, o->y->in[2], TN_ONNX_ROW)), NULL);
}

static void put_add(tn_onnx *o, const char *out)
{
    const char *sum = tn_onnx_in(o, 0);
    for (uint32_t i = 1; i < o->y->n_in; i++) {
        sum =
            tn_onnx_put(o, i + 1 < o->y->n_in ? NULL : out, "Add", IN(sum, tn_onnx_in(o, i)), NULL);
    }
    if (o->y->n_in == 1) {
        (void)tn_onnx_put(o, out, "Identity", IN(sum), NULL);
    }
}

/* The operands of an operator in which each column of the narrow one meets some of the wide one's,
 * shaped so that ONNX repeats it. */
static bool spread(tn_onnx *o, uint32_t wide, uint32_t narrow, const char **w, const char **s)
{
    const uint32_t n = o->y->in[wide]->shape.cols;
    const uint32_t m = o->y->in[narrow]->shape.cols;
    *w = tn_onnx_in(o, wide);
    *s = tn_onnx_in(o, narrow);
    if (m == n || m == 1) {
        return false;
    }
    *w = reshape(o, NULL, *w, WHOLE(o, -1, m, n / m));
    *s = reshape(o, NULL, *s, WHOLE(o, -1, m, 1));
    return true;
}

/* The operator is the word of its row. */
static void put_two(tn_onnx *o, const char *out)
{
    const char *a = NULL;
    const char *b = NULL;
    const bool shaped = spread(o, 0, 1, &a, &b);
    const char *y = tn_onnx_put(o, shaped ? NULL : out, o->word, IN(a, b), NULL);
    if (shaped) {
        (void)reshape(o, out, y, WHOLE(o, -1, o->y->shape.cols));
    }
}

static void put_where(tn_onnx *o, const char *out)
{
    const char *a = NULL;
    const char *c = NULL;
    const bool shaped = spread(o, 1, 0, &a, &c);
    const char *b = tn_onnx_in(o, 2);
    if (shaped) {
        const uint32_t m = o->y->in[0]->shape.cols;
        b = reshape(o, NULL, b, WHOLE(o, -1, m, o->y->shape.cols / m));
    }
    const char *yes = tn_onnx_put(o, NULL, "Greater", IN(c, tn_onnx_number(o, 0)), NULL);
    const char *y = tn_onnx_put(o, shaped ? NULL : out, "Where", IN(yes, a, b), NULL);
    if (shaped) {
        (void)reshape(o, out, y, WHOLE(o, -1, o->y->shape.cols));
    }
}

static void put_concat(tn_onnx *o, const char *out)
{
    const char **in = TN_NEW_ARRAY(o->arena, const char *, o->y->n_in);
    for (uint32_t i = 0; i < o->y->n_in; i++) {
        in[i] = tn_onnx_in(o, i);
    }
    (void)tn_onnx_put(o, out, "Concat", in, o->y->n_in, ATTRS(AN_INT("axis", 1)));
}

static void put_slice(tn_onnx *o, const char *out)
{
    const tn_slice_attr *a = o->y->attr;
    const int64_t end = (int64_t)a->first + a->cols;
    (void)tn_onnx_put(o, out, "Slice",
                      IN(tn_onnx_in(o, 0), WHOLE(o, a->first), WHOLE(o, end), WHOLE(o, 1)), NULL);
}

static void put_sum_cols(tn_onnx *o, const char *out)
{
    (void)sum_row(o, out, tn_onnx_in(o, 0));
}

static void put_sum_groups(tn_onnx *o, const char *out)
{
    const tn_pairs_attr *a = o->y->attr;
    (void)sum_away(o, out, fields(o, tn_onnx_in(o, 0), o->y->in[0]->shape.cols, a->dim), 2);
}

static void put_max_groups(tn_onnx *o, const char *out)
{
    const tn_pairs_attr *a = o->y->attr;
    const char *e = fields(o, tn_onnx_in(o, 0), o->y->in[0]->shape.cols, a->dim);
    (void)tn_onnx_put(
        o, out, "ReduceMax", IN(e),
        ATTRS({.name = "axes", .type = TN_ONNX_INTS, .n = 1, .i = {2}}, AN_INT("keepdims", 0)));
}

static void put_scale(tn_onnx *o, const char *out)
{
    const tn_scale_attr *a = o->y->attr;
    const char *product = scaled(o, NULL, tn_onnx_in(o, 0), a->by);
    (void)tn_onnx_put(o, out, "Add", IN(product, tn_onnx_number(o, a->plus)), NULL);
}

static void put_softmax(tn_onnx *o, const char *out)
{
    (void)tn_onnx_put(o, out, "Softmax", IN(tn_onnx_in(o, 0)), ATTRS(AN_INT("axis", 1)));
}

/* A column of the gate times an expert, and the sum of these. */
static void put_mix(tn_onnx *o, const char *out)
{
    const char *gate = tn_onnx_in(o, 0);
    const char *sum = NULL;
    for (uint32_t i = 1; i < o->y->n_in; i++) {
        const bool last = i + 1 == o->y->n_in;
        const char *g = tn_onnx_put(o, NULL, "Slice",
                                    IN(gate, WHOLE(o, i - 1), WHOLE(o, i), WHOLE(o, 1)), NULL);
        const char *part =
            tn_onnx_put(o, last && sum == NULL ? out : NULL, "Mul", IN(g, tn_onnx_in(o, i)), NULL);
        sum = sum == NULL ? part : tn_onnx_put(o, last ? out : NULL, "Add", IN(sum, part), NULL);
    }
}

/* -ln(e^-a + e^-b) = min(a, b) - softplus(-|a - b|). */
static const char *soft_min(tn_onnx *o, const char *out, const char *a, const char *b)
{
    const char *far =
        tn_onnx_put(o, NULL, "Abs", IN(tn_onnx_put(o, NULL, "Sub", IN(a, b), NULL)), NULL);
    const char *more = tn_onnx_put(o, NULL, "Softplus", IN(scaled(o, NULL, far, -1)), NULL);
    return tn_onnx_put(o, out, "Sub", IN(tn_onnx_put(o, NULL, "Min", IN(a, b), NULL), more), NULL);
}

static void put_both(tn_onnx *o, const char *out)
{
    const char *a = tn_onnx_in(o, 0);
    const char *b = tn_onnx_in(o, 1);
    const char *sum = tn_onnx_put(o, NULL, "Add", IN(a, b), NULL);
    (void)soft_min(o, out, soft_min(o, NULL, a, b), sum);
}

static uint32_t dim_of(const tn_onnx *o)
{
    const tn_pairs_attr *a = o->y->attr;
    return a->dim;
}

static void put_fm(tn_onnx *o, const char *out)
{
    (void)scaled(o, out, sum_row(o, NULL, pair_sums(o, dim_of(o))), 0.5);
}

static void put_bi_interaction(tn_onnx *o, const char *out)
{
    (void)scaled(o, out, pair_sums(o, dim_of(o)), 0.5);
}

static void put_inner(tn_onnx *o, const char *out)
{
    static const tn_onnx_attr turn[] = {
        {.name = "perm", .type = TN_ONNX_INTS, .n = 3, .i = {0, 2, 1}}, {.name = NULL}};
    const uint32_t f = o->y->in[0]->shape.cols / dim_of(o);
    const char *e = fields(o, tn_onnx_in(o, 0), o->y->in[0]->shape.cols, dim_of(o));
    const char *turned = tn_onnx_put(o, NULL, "Transpose", IN(e), turn);
    (void)upper(o, out, tn_onnx_put(o, NULL, "MatMul", IN(e, turned), NULL), f);
}

/* s^T s, s the sum of all fields. */
static void put_outer(tn_onnx *o, const char *out)
{
    const uint32_t dim = dim_of(o);
    const char *s = sum_away(o, NULL, fields(o, tn_onnx_in(o, 0), o->y->in[0]->shape.cols, dim), 1);
    const char *column = reshape(o, NULL, s, WHOLE(o, -1, dim, 1));
    const char *row = reshape(o, NULL, s, WHOLE(o, -1, 1, dim));
    const char *square = tn_onnx_put(o, NULL, "Mul", IN(column, row), NULL);
    (void)reshape(o, out, square, WHOLE(o, -1, (int64_t)dim * dim));
}

/* Pairs A[i,j], A[j,i]: of the matrix of vectors and of its transpose, which the columns of x are
 * in another order. */
static const char *field_pairs(tn_onnx *o, const char *out)
{
    const tn_ffm_attr *a = o->y->attr;
    const int64_t f = a->fields;
    int64_t *at = TN_NEW_ARRAY(o->arena, int64_t, (size_t)(f * f));
    const char *name = tn_onnx_join(o, o->y->name, "turned");
    for (int64_t i = 0; i < f * f; i++) {
        at[i] = i % f * f + i / f;
    }
    tn_onnx_tensor(o, name, TN_ONNX_INT64S, 1, (const int64_t[TN_ONNX_RANK]){f * f}, at);
    const char *e = fields(o, tn_onnx_in(o, 0), o->y->in[0]->shape.cols, a->dim);
    const char *turned = tn_onnx_put(o, NULL, "Gather", IN(e, name), ATTRS(AN_INT("axis", 1)));
    const char *products = tn_onnx_put(o, NULL, "Mul", IN(e, turned), NULL);
    return upper(o, out, sum_away(o, NULL, products, 2), a->fields);
}

static void put_ffm(tn_onnx *o, const char *out)
{
    (void)sum_row(o, out, field_pairs(o, NULL));
}

static void put_ffm_inner(tn_onnx *o, const char *out)
{
    (void)field_pairs(o, out);
}

/* Half of |A[i,i]|^2 less the squares of its values, summed over i. */
static void put_ffm_within(tn_onnx *o, const char *out)
{
    const tn_ffm_attr *a = o->y->attr;
    const char *own[2];
    int64_t *at = TN_NEW_ARRAY(o->arena, int64_t, a->fields);
    const char *name = tn_onnx_join(o, o->y->name, "own");
    for (int64_t i = 0; i < a->fields; i++) {
        at[i] = i * a->fields + i;
    }
    tn_onnx_tensor(o, name, TN_ONNX_INT64S, 1, (const int64_t[TN_ONNX_RANK]){a->fields}, at);
    for (uint32_t k = 0; k < 2; k++) {
        const char *e = fields(o, tn_onnx_in(o, k), o->y->in[k]->shape.cols, a->dim);
        own[k] = tn_onnx_put(o, NULL, "Gather", IN(e, name), ATTRS(AN_INT("axis", 1)));
    }
    const char *square = tn_onnx_put(o, NULL, "Mul", IN(own[0], own[0]), NULL);
    const char *pairs = tn_onnx_put(o, NULL, "Sub", IN(square, own[1]), NULL);
    (void)scaled(o, out, sum_row(o, NULL, sum_away(o, NULL, pairs, 2)), 0.5);
}

static void put_fm_values(tn_onnx *o, const char *out)
{
    const char *e = fields(o, tn_onnx_in(o, 0), o->y->in[0]->shape.cols, dim_of(o));
    const char *sum = sum_away(o, NULL, e, 1);
    const char *square = sum_row(o, NULL, tn_onnx_put(o, NULL, "Mul", IN(sum, sum), NULL));
    const char *rest =
        tn_onnx_put(o, NULL, "Sub", IN(square, sum_row(o, NULL, tn_onnx_in(o, 1))), NULL);
    (void)scaled(o, out, rest, 0.5);
}

/* v_f W_f of [N, n, dim]: vectors by matrices below each other, or all by the one that there is. */
static const char *by_matrices(tn_onnx *o, const char *v, uint32_t n, const tn_node *w)
{
    const int64_t dim = dim_of(o);
    const int64_t cols = w->shape.cols;
    const char *all = tn_onnx_param(o, w, TN_ONNX_MATRIX);
    if (w->shape.rows == dim) {
        return tn_onnx_put(o, NULL, "MatMul", IN(v, all), NULL);
    }
    const char *each = reshape(o, NULL, all, WHOLE(o, w->shape.rows / dim, dim, cols));
    const char *lone = reshape(o, NULL, v, WHOLE(o, -1, n, 1, dim));
    const char *products = tn_onnx_put(o, NULL, "MatMul", IN(lone, each), NULL);
    return reshape(o, NULL, products, WHOLE(o, -1, n, cols));
}

/* The vectors numbered `at` of [N, f, dim]. */
static const char *picked(tn_onnx *o, const char *v, const char *suffix, uint32_t n,
                          const int64_t *at)
{
    const char *name = tn_onnx_join(o, o->y->name, suffix);
    tn_onnx_tensor(o, name, TN_ONNX_INT64S, 1, (const int64_t[TN_ONNX_RANK]){n}, at);
    return tn_onnx_put(o, NULL, "Gather", IN(v, name), ATTRS(AN_INT("axis", 1)));
}

static void put_bilinear(tn_onnx *o, const char *out)
{
    const uint32_t f = o->y->in[0]->shape.cols / dim_of(o);
    const uint32_t n = o->y->shape.cols / dim_of(o);
    const tn_node *w = o->y->n_in > 1 ? o->y->in[1] : NULL;
    const bool by_slot = w != NULL && w->shape.rows != (uint64_t)n * dim_of(o);
    int64_t *at[2] = {TN_NEW_ARRAY(o->arena, int64_t, n), TN_NEW_ARRAY(o->arena, int64_t, n)};
    for (uint32_t i = 0, k = 0; i < f; i++) {
        for (uint32_t j = i + 1; j < f; j++, k++) {
            at[0][k] = i;
            at[1][k] = j;
        }
    }
    const char *v = fields(o, tn_onnx_in(o, 0), o->y->in[0]->shape.cols, dim_of(o));
    const char *right = picked(o, v, "right", n, at[1]);
    int64_t *own = TN_NEW_ARRAY(o->arena, int64_t, f); /* slots that have a matrix */
    for (uint32_t i = 0; i < f; i++) {
        own[i] = i;
    }
    const char *u = by_slot ? by_matrices(o, picked(o, v, "own", f - 1, own), f - 1, w) : v;
    u = picked(o, u, "left", n, at[0]);
    u = w != NULL && !by_slot ? by_matrices(o, u, n, w) : u;
    (void)reshape(o, out, tn_onnx_put(o, NULL, "Mul", IN(u, right), NULL),
                  WHOLE(o, -1, o->y->shape.cols));
}

/* W^T z + b of each row, z the products of a map and a vector. */
static void put_cin(tn_onnx *o, const char *out)
{
    const int64_t dim = dim_of(o);
    const tn_node *w = o->y->in[2];
    const int64_t m = o->y->in[0]->shape.cols / dim;
    const int64_t h = o->y->in[1]->shape.cols / dim;
    const char *x0 = reshape(o, NULL, tn_onnx_in(o, 0), WHOLE(o, -1, 1, m, dim));
    const char *x = reshape(o, NULL, tn_onnx_in(o, 1), WHOLE(o, -1, h, 1, dim));
    const char *z = tn_onnx_put(o, NULL, "Mul", IN(x, x0), NULL);
    z = reshape(o, NULL, z, WHOLE(o, -1, h * m, dim));
    const char *turned =
        tn_onnx_put(o, NULL, "Transpose", IN(tn_onnx_param(o, w, TN_ONNX_MATRIX)), NULL);
    const char *y = tn_onnx_put(o, NULL, "MatMul", IN(turned, z), NULL);
    if (o->y->n_in > 3) {
        y = tn_onnx_put(o, NULL, "Add", IN(y, tn_onnx_param(o, o->y->in[3], TN_ONNX_COLUMN)), NULL);
    }
    (void)reshape(o, out, y, WHOLE(o, -1, w->shape.cols * dim));
}

static void put_slot_dense(tn_onnx *o, const char *out)
{
    const uint32_t cols = o->y->in[0]->shape.cols;
    const char *v = fields(o, tn_onnx_in(o, 0), cols, dim_of(o));
    const char *y = by_matrices(o, v, cols / dim_of(o), o->y->in[1]);
    if (o->y->n_in > 2) {
        y = tn_onnx_put(o, NULL, "Add", IN(y, tn_onnx_param(o, o->y->in[2], TN_ONNX_ROW)), NULL);
    }
    (void)reshape(o, out, y, WHOLE(o, -1, o->y->shape.cols));
}

static void put_slot_sum(tn_onnx *o, const char *out)
{
    (void)sum_away(o, out, fields(o, tn_onnx_in(o, 0), o->y->in[0]->shape.cols, dim_of(o)), 1);
}

/* Operand i by heads: [N, heads, slots, n], or with the last two turned. */
static const char *heads_of(tn_onnx *o, uint32_t i, bool turned)
{
    const tn_attention_attr *a = o->y->attr;
    const int64_t slots = o->y->shape.cols / a->dim;
    const char *x =
        reshape(o, NULL, tn_onnx_in(o, i), WHOLE(o, -1, slots, a->heads, a->dim / a->heads));
    const tn_onnx_attr perm = {
        .name = "perm", .type = TN_ONNX_INTS, .n = 4, .i = {0, 2, turned ? 3 : 1, turned ? 1 : 3}};
    return tn_onnx_put(o, NULL, "Transpose", IN(x), ATTRS(perm));
}

static void put_slot_attention(tn_onnx *o, const char *out)
{
    const tn_attention_attr *a = o->y->attr;
    const tn_onnx_attr perm = {.name = "perm", .type = TN_ONNX_INTS, .n = 4, .i = {0, 2, 1, 3}};
    const char *s =
        tn_onnx_put(o, NULL, "MatMul", IN(heads_of(o, 0, false), heads_of(o, 1, true)), NULL);
    s = tn_onnx_put(o, NULL, "Softmax", IN(scaled(o, NULL, s, a->scale)), ATTRS(AN_INT("axis", 3)));
    const char *y = tn_onnx_put(o, NULL, "MatMul", IN(s, heads_of(o, 2, false)), NULL);
    y = tn_onnx_put(o, NULL, "Transpose", IN(y), ATTRS(perm));
    (void)reshape(o, out, y, WHOLE(o, -1, o->y->shape.cols));
}

static void put_cross(tn_onnx *o, const char *out)
{
    const char *product = tn_onnx_put(
        o, NULL, "Gemm", IN(tn_onnx_in(o, 1), tn_onnx_param(o, o->y->in[2], TN_ONNX_COLUMN)), NULL);
    const char *first = tn_onnx_put(o, NULL, "Mul", IN(tn_onnx_in(o, 0), product), NULL);
    const char *more =
        tn_onnx_put(o, NULL, "Add", IN(first, tn_onnx_param(o, o->y->in[3], TN_ONNX_ROW)), NULL);
    (void)tn_onnx_put(o, out, "Add", IN(more, tn_onnx_in(o, 1)), NULL);
}

static void put_cross_merge(tn_onnx *o, const char *out)
{
    const char *product = tn_onnx_put(o, NULL, "Mul", IN(tn_onnx_in(o, 0), tn_onnx_in(o, 1)), NULL);
    (void)tn_onnx_put(o, out, "Add", IN(product, tn_onnx_in(o, 2)), NULL);
}

static bool is_input(const tn_node *n)
{
    return !n->is_param &&
           (n->op == NULL || tn_embed_list_of(n) != NULL || n->op == &tn_op_numeric ||
            n->op == &tn_op_embed_squares || n->op == &tn_op_embed_norm);
}

/* As many rows as an input has. */
static void put_constant(tn_onnx *o, const char *out)
{
    const tn_constant_attr *a = o->y->attr;
    const tn_node *any = NULL;
    for (uint32_t i = 0; any == NULL; i++) {
        const tn_node *n = tn_graph_node(o->g, i);
        TN_ASSERT(n != NULL); /* a constant alone is no model */
        any = n->place->alive && is_input(n) ? n : NULL;
    }
    o->used[any->place->index] = true;
    const char *shape = tn_onnx_put(o, NULL, "Shape", IN(tn_onnx_name(o, any)), NULL);
    const char *n_rows =
        tn_onnx_put(o, NULL, "Slice", IN(shape, WHOLE(o, 0), WHOLE(o, 1), WHOLE(o, 0)), NULL);
    const char *wanted =
        tn_onnx_put(o, NULL, "Concat", IN(n_rows, WHOLE(o, a->cols)), ATTRS(AN_INT("axis", 0)));
    (void)tn_onnx_put(o, out, "Expand", IN(tn_onnx_number(o, a->value), wanted), NULL);
}

/* ---- all of them ---- */

/* An operator in ONNX: one node of its operands, or the nodes that a function writes. */
static const struct row {
    const tn_op *op;
    const char *name;
    void (*put)(tn_onnx *o, const char *out);
} rows[] = {
    {&tn_op_dense, NULL, put_dense},
    {&tn_op_matmul, NULL, put_dense},
    {&tn_op_bias, NULL, put_bias},
    {&tn_op_constant, NULL, put_constant},
    {&tn_op_relu, "Relu", NULL},
    {&tn_op_leaky_relu, NULL, put_leaky_relu},
    {&tn_op_sigmoid, "Sigmoid", NULL},
    {&tn_op_tanh, "Tanh", NULL},
    {&tn_op_gelu, NULL, put_gelu},
    {&tn_op_gelu_tanh, NULL, put_gelu_tanh},
    {&tn_op_silu, NULL, put_silu},
    {&tn_op_softplus, "Softplus", NULL},
    {&tn_op_exp, "Exp", NULL},
    {&tn_op_log, "Log", NULL},
    {&tn_op_square, NULL, put_square},
    {&tn_op_sqrt, "Sqrt", NULL},
    {&tn_op_abs, "Abs", NULL},
    {&tn_op_prelu, NULL, put_prelu},
    {&tn_op_batch_norm, NULL, put_batch_norm},
    {&tn_op_zscore, NULL, put_zscore},
    {&tn_op_dice, NULL, put_dice},
    {&tn_op_data_norm, NULL, put_data_norm},
    {&tn_op_layer_norm, NULL, put_layer_norm},
    {&tn_op_add, NULL, put_add},
    {&tn_op_mul, "Mul", put_two},
    {&tn_op_sub, "Sub", put_two},
    {&tn_op_div, "Div", put_two},
    {&tn_op_maximum, "Max", put_two},
    {&tn_op_minimum, "Min", put_two},
    {&tn_op_where, NULL, put_where},
    {&tn_op_concat, NULL, put_concat},
    {&tn_op_slice, NULL, put_slice},
    {&tn_op_sum_cols, NULL, put_sum_cols},
    {&tn_op_sum_groups, NULL, put_sum_groups},
    {&tn_op_max_groups, NULL, put_max_groups},
    {&tn_op_scale, NULL, put_scale},
    {&tn_op_softmax, NULL, put_softmax},
    {&tn_op_mix, NULL, put_mix},
    {&tn_op_both, NULL, put_both},
    {&tn_op_fm, NULL, put_fm},
    {&tn_op_fm_values, NULL, put_fm_values},
    {&tn_op_ffm, NULL, put_ffm},
    {&tn_op_ffm_within, NULL, put_ffm_within},
    {&tn_op_ffm_inner, NULL, put_ffm_inner},
    {&tn_op_inner, NULL, put_inner},
    {&tn_op_outer, NULL, put_outer},
    {&tn_op_bilinear, NULL, put_bilinear},
    {&tn_op_cin, NULL, put_cin},
    {&tn_op_slot_dense, NULL, put_slot_dense},
    {&tn_op_slot_sum, NULL, put_slot_sum},
    {&tn_op_slot_attention, NULL, put_slot_attention},
    {&tn_op_bi_interaction, NULL, put_bi_interaction},
    {&tn_op_cross, NULL, put_cross},
    {&tn_op_cross_merge, NULL, put_cross_merge},
};

/* test_onnx.c walks the list of operators: whatever scores has a row. */
static void put_node(tn_onnx *o, const tn_node *n)
{
    const struct row *row = rows;
    while (row->op != n->op) {
        row++;
        TN_ASSERT(row < rows + sizeof rows / sizeof *rows);
    }
    o->y = n;
    o->word = row->name;
    o->steps = 0;
    if (row->put != NULL) {
        row->put(o, tn_onnx_name(o, n));
    } else {
        (void)tn_onnx_put(o, tn_onnx_name(o, n), row->name, IN(tn_onnx_in(o, 0)), NULL);
    }
}

/* ---- calibrations, after the logit of the model ---- */

/* a z + b + c m. */
static void put_platt(tn_onnx *o, const double *by, const char *logit, const char *out)
{
    const char *product = scaled(o, NULL, logit, by[0]);
    const bool shifts = by[2] < 0 || by[2] > 0;
    const char *z =
        tn_onnx_put(o, shifts ? NULL : out, "Add", IN(product, tn_onnx_number(o, by[1])), NULL);
    if (shifts) {
        o->unknown = true;
        const char *m = tn_onnx_put(
            o, NULL, "Min", IN(TN_ONNX_UNKNOWN, tn_onnx_number(o, o->m->unknown_max)), NULL);
        (void)tn_onnx_put(o, out, "Add", IN(z, scaled(o, NULL, m, by[2])), NULL);
    }
}

/* The least float that is not below x: a float reaches it just where it reaches x. */
static float float_above(double x)
{
    const float f = (float)x;
    TN_ASSERT(fabs(x) < (double)FLT_MAX);
    return (double)f < x ? nextafterf(f, INFINITY) : f;
}

enum { LINE_AT, LINE_AT_LOW, LINE_SLOPE, LINE_BASE, LINE_TABLES };

/* Makes the lines of p and of 1 - p that hold below breakpoint i. A line begins at the breakpoint
 * from which nothing cancels; before the first one and after the last one it is flat. */
static void lay_lines(const tn_onnx_map *m, float *table[LINE_TABLES])
{
    for (uint32_t i = 0; i <= m->n_knots; i++) {
        const tn_onnx_knot *left = &m->knot[i > 0 ? i - 1 : 0];
        const tn_onnx_knot *right = &m->knot[i < m->n_knots ? i : i - 1];
        const double rise = right->p - left->p;
        const double slope = left != right ? fmin(rise / (right->z - left->z), (double)FLT_MAX) : 0;
        const double ends[2][3] = {{left->z, slope, left->p}, {right->z, -slope, 1 - right->p}};
        for (uint32_t k = 0; k < 2; k++) {
            const size_t at = 2 * (size_t)i + k;
            table[LINE_AT][at] = (float)ends[k][0];
            table[LINE_AT_LOW][at] = (float)(ends[k][0] - (double)table[LINE_AT][at]);
            table[LINE_SLOPE][at] = (float)ends[k][1];
            table[LINE_BASE][at] = (float)ends[k][2];
        }
    }
}

/* Gathers the tables' rows of the line that holds at z: its number is that of the breakpoints which
 * are not above z. */
static void gather_lines(tn_onnx *o, const tn_onnx_map *map, const char *z,
                         const char *line[LINE_TABLES])
{
    static const char *const names[] = {"at", "at_low", "slope", "base"};
    const uint32_t n = map->n_knots;
    float *table[LINE_TABLES];
    float *knot = TN_NEW_ARRAY(o->arena, float, n);
    const char *knots = tn_onnx_join(o, o->y->name, "knots");
    for (uint32_t i = 0; i < n; i++) {
        knot[i] = float_above(map->knot[i].z);
    }
    tn_onnx_tensor(o, knots, TN_ONNX_FLOATS, 1, (const int64_t[TN_ONNX_RANK]){n}, knot);
    const char *reached = tn_onnx_put(o, NULL, "GreaterOrEqual", IN(z, knots), NULL);
    const char *ones =
        tn_onnx_put(o, NULL, "Cast", IN(reached), ATTRS(AN_INT("to", TN_ONNX_FLOATS)));
    const char *below = sum_away(o, NULL, ones, 1);
    const char *row = tn_onnx_put(o, NULL, "Cast", IN(below), ATTRS(AN_INT("to", TN_ONNX_INT64S)));
    for (uint32_t k = 0; k < LINE_TABLES; k++) {
        table[k] = TN_NEW_ARRAY(o->arena, float, 2 * (size_t)n + 2);
    }
    lay_lines(map, table);
    for (uint32_t k = 0; k < LINE_TABLES; k++) {
        const char *name = tn_onnx_join(o, o->y->name, names[k]);
        tn_onnx_tensor(o, name, TN_ONNX_FLOATS, 2, (const int64_t[TN_ONNX_RANK]){n + 1, 2},
                       table[k]);
        line[k] = tn_onnx_put(o, NULL, "Gather", IN(name, row), ATTRS(AN_INT("axis", 0)));
    }
}

/* ln p - ln(1 - p), within +-logit_max; p and 1 - p are base + slope (z - at). z is kept near the
 * breakpoints, since an infinite one times a slope of 0 is no number. */
static void put_isotonic(tn_onnx *o, const tn_onnx_map *m, const char *logit, const char *name)
{
    const char *line[LINE_TABLES];
    const float top = float_above(m->knot[m->n_knots - 1].z);
    const float bottom = nextafterf(float_above(m->knot[0].z), -INFINITY);
    const char *z = tn_onnx_put(o, NULL, "Min", IN(logit, tn_onnx_number(o, (double)top)), NULL);
    z = tn_onnx_put(o, NULL, "Max", IN(z, tn_onnx_number(o, (double)bottom)), NULL);
    gather_lines(o, m, z, line);
    const char *d = tn_onnx_put(o, NULL, "Sub", IN(z, line[LINE_AT]), NULL);
    d = tn_onnx_put(o, NULL, "Sub", IN(d, line[LINE_AT_LOW]), NULL);
    const char *rise = tn_onnx_put(o, NULL, "Mul", IN(d, line[LINE_SLOPE]), NULL);
    const char *ln = tn_onnx_put(
        o, NULL, "Log", IN(tn_onnx_put(o, NULL, "Add", IN(rise, line[LINE_BASE]), NULL)), NULL);
    const char *signs = tn_onnx_join(o, o->y->name, "signs");
    tn_onnx_tensor(o, signs, TN_ONNX_FLOATS, 1, (const int64_t[TN_ONNX_RANK]){2},
                   (const float[]){1, -1});
    const char *sum = sum_row(o, NULL, tn_onnx_put(o, NULL, "Mul", IN(ln, signs), NULL));
    const char *most =
        tn_onnx_put(o, NULL, "Min", IN(sum, tn_onnx_number(o, o->m->logit_max)), NULL);
    (void)tn_onnx_put(o, name, "Max", IN(most, tn_onnx_number(o, -o->m->logit_max)), NULL);
}

void tn_onnx_put_map(tn_onnx *o, const tn_onnx_map *map, const char *logit, const char *out)
{
    if (map->n_knots > 0) {
        put_isotonic(o, map, logit, out);
    } else {
        put_platt(o, map->platt, logit, out);
    }
}

static void put_calibration(tn_onnx *o)
{
    const tn_onnx_model *m = o->m;
    o->y = m->pctr; /* it is not written itself, but nodes in between are named after it */
    o->steps = 0;
    tn_onnx_put_map(o, &m->map, tn_onnx_name(o, m->logit), "logit");
    (void)tn_onnx_put(o, "pctr", "Sigmoid", IN("logit"), NULL);
}

static void put_nodes(tn_onnx *o)
{
    const tn_node *n = NULL;
    const bool calibrated = o->calibrated;
    for (uint32_t i = 0; (n = tn_graph_node(o->g, i)) != NULL; i++) {
        const bool replaced = calibrated && n == o->m->pctr;
        if (n->place->alive && !n->is_param && !is_input(n) && !replaced) {
            put_node(o, n);
        }
    }
    if (calibrated) {
        put_calibration(o);
    }
    tn_onnx_put_tasks(o);
}

/* ValueInfoProto: floats [N, cols]. */
static void put_value(tn_text *t, uint32_t field, const char *name, uint32_t cols)
{
    const size_t value = tn_proto_begin(t, field);
    tn_onnx_text(t, 1, name);
    const size_t type = tn_proto_begin(t, 2);
    const size_t tensor = tn_proto_begin(t, 1);
    tn_proto_add_u64(t, 1, TN_ONNX_FLOATS);
    const size_t shape = tn_proto_begin(t, 2);
    size_t dim = tn_proto_begin(t, 1);
    tn_onnx_text(t, 2, "N");
    tn_proto_end(t, dim);
    dim = tn_proto_begin(t, 1);
    tn_proto_add_u64(t, 1, cols);
    tn_proto_end(t, dim);
    tn_proto_end(t, shape);
    tn_proto_end(t, tensor);
    tn_proto_end(t, type);
    tn_proto_end(t, value);
}

static void put_graph(tn_onnx *o, tn_text *out)
{
    const bool score = o->m->pctr == o->m->logit;
    const size_t at = tn_proto_begin(out, 7);
    tn_text_add(out, o->nodes.data, o->nodes.size);
    tn_onnx_text(out, 2, "tnet");
    tn_text_add(out, tn_text_str(&o->inits), o->inits.size);
    const tn_node *n = NULL;
    for (uint32_t i = 0; (n = tn_graph_node(o->g, i)) != NULL; i++) {
        if (is_input(n) && o->used[i]) {
            put_value(out, 11, tn_onnx_name(o, n), n->shape.cols);
        }
    }
    if (o->unknown) {
        put_value(out, 11, TN_ONNX_UNKNOWN, 1);
    }
    put_value(out, 12, score ? "score" : "logit", 1);
    if (!score) {
        put_value(out, 12, "pctr", 1);
    }
    const char *name = tn_text_str(&o->outputs);
    for (size_t i = 0; i < o->outputs.size; i += strlen(name + i) + 1) {
        put_value(out, 12, name + i, 1);
    }
    tn_proto_end(out, at);
}

static void put_model(tn_onnx *o, tn_text *out)
{
    tn_proto_add_u64(out, 1, IR_VERSION);
    tn_onnx_text(out, 2, "tnet");
    tn_onnx_text(out, 3, o->m->version);
    tn_proto_add_u64(out, 5, 1);
    put_graph(o, out);
    const size_t opset = tn_proto_begin(out, 8);
    tn_onnx_text(out, 1, "");
    tn_proto_add_u64(out, 2, OPSET);
    tn_proto_end(out, opset);
    for (uint32_t i = 0; i < o->m->n_meta; i++) {
        const size_t at = tn_proto_begin(out, 14);
        tn_onnx_text(out, 1, o->m->meta[i].key);
        tn_onnx_text(out, 2, o->m->meta[i].value);
        tn_proto_end(out, at);
    }
}

/* A value for each position of a sequence has as many rows as a batch has positions. */
static tn_status check_positions(const tn_graph *g, tn_error *err)
{
    const tn_node *n;
    for (uint32_t i = 0; (n = tn_graph_node(g, i)) != NULL; i++) {
        if (n->place->alive && n->positions.max_len > 0) {
            return tn_fail(err, TN_E_CONFIG,
                           "export.graph: 'onnx' has no form of '%s', the positions of a sequence\n"
                           "hint: libtnet scores the model; leave 'onnx' out of export.graph",
                           n->name);
        }
    }
    return TN_OK;
}

tn_status tn_graph_onnx(const tn_graph *g, const tn_onnx_model *m, tn_text *out, tn_error *err)
{
    TN_TRY(check_positions(g, err));
    tn_onnx o = {.g = g,
                 .m = m,
                 .logit = m->logit,
                 .pctr = m->pctr,
                 .calibrated = m->map.platt != NULL || m->map.n_knots > 0,
                 .arena = tn_arena_new(1 << 14)};
    TN_ASSERT(m->map.platt == NULL || m->map.n_knots == 0);
    TN_ASSERT(m->logit->shape.cols == 1 && m->pctr->shape.cols == 1);
    o.used = TN_NEW_ARRAY(o.arena, bool, TN_NODES_MAX);
    o.form = TN_NEW_ARRAY(o.arena, uint8_t, TN_NODES_MAX);
    o.nodes.size_max = o.inits.size_max = out->size_max = INT32_MAX; /* the limit of protobuf */
    put_nodes(&o);
    tn_status status = tn_text_check(&o.nodes, "an ONNX graph", err);
    status = status == TN_OK ? tn_text_check(&o.inits, "weights of an ONNX graph", err) : status;
    if (status == TN_OK) {
        put_model(&o, out);
        status = tn_text_check(out, "an ONNX model", err);
    }
    tn_text_done(&o.nodes);
    tn_text_done(&o.inits);
    tn_text_done(&o.known);
    tn_text_done(&o.outputs);
    tn_arena_free(o.arena);
    return status;
}
