/* onnx.c - writes a graph as ONNX: a row per operator, a function for those that are several nodes
 * there, and the few messages of onnx.proto that this takes.
 *
 * Initializers and inputs are collected while nodes are written, since they follow them.
 */
#include "extra/onnx/onnx.h"

#include "base/codec/proto.h"
#include "nn/graph/embed.h"
#include "nn/graph/graphcore.h"
#include "nn/op/ops.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OPSET = 13, IR_VERSION = 7, IS_FLOAT = 1, IS_INT64 = 7 };
enum { A_FLOAT = 1, A_INT = 2, A_INTS = 7 }; /* AttributeProto.type */
enum { NAME = 512, RANK = 4 };

/* One attribute; NULL name: none. */
typedef struct attr {
    const char *name;
    uint32_t type;
    float f;
    uint32_t n; /* A_INTS: how many */
    int64_t i[3];
} attr;

#define AN_INT(attribute, value)                                                                   \
    {                                                                                              \
        .name = (attribute), .type = A_INT, .n = 1, .i = { value }                                 \
    }
#define A_SLOPE(value)                                                                             \
    {                                                                                              \
        .name = "alpha", .type = A_FLOAT, .f = (float)(value)                                      \
    }

typedef struct onnx {
    const tn_graph *g;
    const tn_onnx_model *m;
    tn_arena *arena; /* holds names */
    tn_text nodes, inits;
    tn_text known;    /* names of initializers, each ended by NUL */
    bool *used;       /* per node of the graph: something reads it */
    uint8_t *form;    /* per parameter: 1 + the form that has its own name */
    bool unknown;     /* TN_ONNX_UNKNOWN is read */
    const tn_node *y; /* the node that is written */
    uint32_t steps;   /* nodes in between that were written for it */
} onnx;

/* ---- names ---- */

static const char *copied(onnx *o, const char *name)
{
    const size_t size = strlen(name) + 1;
    return memcpy(TN_NEW_ARRAY(o->arena, char, size), name, size);
}

static const char *joined(onnx *o, const char *a, const char *b)
{
    char name[NAME];
    (void)snprintf(name, sizeof name, "%s:%s", a, b);
    return copied(o, name);
}

static bool is_calibrated(const tn_onnx_model *m)
{
    TN_ASSERT(m->calibrated == NULL || m->n_knots == 0);
    return m->calibrated != NULL || m->n_knots > 0;
}

/* Outputs have fixed names; another node that has one of them is called otherwise. */
static const char *name_of(onnx *o, const tn_node *n)
{
    const tn_onnx_model *m = o->m;
    const bool score = m->pctr == m->logit;
    if (n == m->logit || n == m->pctr) {
        const char *name = score ? "score" : n == m->logit ? "logit" : "pctr";
        return is_calibrated(m) ? joined(o, name, "raw") : name;
    }
    const bool taken = strcmp(n->name, "logit") == 0 || strcmp(n->name, "pctr") == 0 ||
                       strcmp(n->name, "score") == 0;
    return taken ? joined(o, n->name, "node") : n->name;
}

/* An operand. */
static const char *in_of(onnx *o, uint32_t i)
{
    const tn_node *n = o->y->in[i];
    TN_ASSERT(i < o->y->n_in && !n->is_param);
    o->used[n->place->index] = true;
    return name_of(o, n);
}

/* ---- messages ---- */

static void add_text(tn_text *t, uint32_t number, const char *text)
{
    tn_proto_add_bytes(t, number, text, strlen(text));
}

static void put_attr(tn_text *t, const attr *a)
{
    const size_t at = tn_proto_begin(t, 5);
    add_text(t, 1, a->name);
    if (a->type == A_FLOAT) {
        tn_proto_add_varint(t, TN_PROTO_TAG(2, TN_WIRE_FIXED32));
        tn_text_add_f32le(t, a->f);
    } else {
        for (uint32_t i = 0; i < a->n; i++) {
            tn_proto_add_u64(t, a->type == A_INT ? 3 : 8, (uint64_t)a->i[i]);
        }
    }
    tn_proto_add_u64(t, 20, a->type);
    tn_proto_end(t, at);
}

/* A NodeProto; `out` NULL: a step, whose name is made. Returns the name of its output. */
static const char *put(onnx *o, const char *out, const char *op, const char *const *in, uint32_t n,
                       const attr *a)
{
    if (out == NULL) {
        char step[16];
        (void)snprintf(step, sizeof step, "%u", ++o->steps);
        out = joined(o, o->y->name, step);
    }
    const size_t at = tn_proto_begin(&o->nodes, 1);
    for (uint32_t i = 0; i < n; i++) {
        add_text(&o->nodes, 1, in[i]);
    }
    add_text(&o->nodes, 2, out);
    add_text(&o->nodes, 3, out);
    add_text(&o->nodes, 4, op);
    for (; a != NULL && a->name != NULL; a++) {
        put_attr(&o->nodes, a);
    }
    tn_proto_end(&o->nodes, at);
    return out;
}

#define IN(...)                                                                                    \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)
#define ATTRS(...) ((const attr[]){__VA_ARGS__, {.name = NULL}})

static void put_tensor(onnx *o, const char *name, uint32_t type, uint32_t rank,
                       const int64_t dims[RANK], const void *data)
{
    size_t size = type == IS_FLOAT ? sizeof(float) : sizeof(int64_t);
    const size_t at = tn_proto_begin(&o->inits, 5);
    TN_ASSERT(rank <= RANK);
    for (uint32_t i = 0; i < rank; i++) {
        tn_proto_add_u64(&o->inits, 1, (uint64_t)dims[i]);
        size *= (size_t)dims[i];
    }
    tn_proto_add_u64(&o->inits, 2, type);
    add_text(&o->inits, 8, name);
    tn_proto_add_bytes(&o->inits, 9, data, size);
    tn_proto_end(&o->inits, at);
}

/* Whether an initializer of this name is there; from now on it is. */
static bool is_known(onnx *o, const char *name)
{
    for (size_t at = 0; at < o->known.size; at += strlen(o->known.data + at) + 1) {
        if (strcmp(o->known.data + at, name) == 0) {
            return true;
        }
    }
    tn_text_add(&o->known, name, strlen(name) + 1);
    return false;
}

typedef enum shape_as { AS_ROW, AS_MATRIX, AS_COLUMN } shape_as;

/* A parameter: [n], [rows, cols], or [n, 1]. One that is used in two ways is there twice. */
static const char *param(onnx *o, const tn_node *p, shape_as form)
{
    static const char *const forms[] = {"row", "matrix", "column"};
    const int64_t n = (int64_t)p->shape.rows * p->shape.cols;
    const int64_t dims[][RANK] = {{n}, {p->shape.rows, p->shape.cols}, {n, 1}};
    uint8_t *first = &o->form[p->place->index];
    const char *name = p->name;
    TN_ASSERT(p->is_param && p->val != NULL);
    if (*first != 0 && *first != form + 1) {
        name = joined(o, name, forms[form]);
    }
    if (!is_known(o, name)) {
        put_tensor(o, name, IS_FLOAT, form == AS_ROW ? 1 : 2, dims[form], p->val);
    }
    *first = *first == 0 ? (uint8_t)(form + 1) : *first;
    return name;
}

/* Returns the name of a number as an initializer, which is its text. */
static const char *number(onnx *o, double value)
{
    char name[64];
    const float x = (float)value;
    (void)snprintf(name, sizeof name, "number:%.9g", (double)x);
    if (!is_known(o, name)) {
        put_tensor(o, name, IS_FLOAT, 1, (const int64_t[RANK]){1}, &x);
    }
    return copied(o, name);
}

static const char *whole(onnx *o, uint32_t n, const int64_t *value)
{
    char name[NAME] = "whole";
    size_t size = strlen(name);
    for (uint32_t i = 0; i < n && i < 8; i++) {
        size += (size_t)snprintf(name + size, sizeof name - size, ":%lld", (long long)value[i]);
    }
    TN_ASSERT(n <= 8);
    if (!is_known(o, name)) {
        put_tensor(o, name, IS_INT64, 1, (const int64_t[RANK]){n}, value);
    }
    return copied(o, name);
}

#define WHOLE(o, ...)                                                                              \
    whole((o), sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__})

/* ---- steps that several operators take ---- */

static const char *reshape(onnx *o, const char *out, const char *x, const char *shape)
{
    return put(o, out, "Reshape", IN(x, shape), NULL);
}

/* Over the axis, which goes. */
static const char *sum_away(onnx *o, const char *out, const char *x, int64_t axis)
{
    return put(o, out, "ReduceSum", IN(x, WHOLE(o, axis)), ATTRS(AN_INT("keepdims", 0)));
}

static const char *sum_row(onnx *o, const char *out, const char *x)
{
    return put(o, out, "ReduceSum", IN(x, WHOLE(o, 1)), ATTRS(AN_INT("keepdims", 1)));
}

static const char *scaled(onnx *o, const char *out, const char *x, double by)
{
    return put(o, out, "Mul", IN(x, number(o, by)), NULL);
}

/* x [N, F * D] as [N, F, D]. */
static const char *fields(onnx *o, const char *x, uint32_t cols, uint32_t dim)
{
    return reshape(o, NULL, x, WHOLE(o, -1, cols / dim, dim));
}

/* (sum of fields)^2 - sum of squares, [N, D]. */
static const char *pair_sums(onnx *o, uint32_t dim)
{
    const char *e = fields(o, in_of(o, 0), o->y->in[0]->shape.cols, dim);
    const char *sum = sum_away(o, NULL, e, 1);
    const char *square = put(o, NULL, "Mul", IN(sum, sum), NULL);
    const char *squares = sum_away(o, NULL, put(o, NULL, "Mul", IN(e, e), NULL), 1);
    return put(o, NULL, "Sub", IN(square, squares), NULL);
}

/* Columns i * f + j, i < j, of [N, f, f]. */
static const char *upper(onnx *o, const char *out, const char *square, uint32_t f)
{
    const int64_t n = (int64_t)f * (f - 1) / 2;
    int64_t *at = TN_NEW_ARRAY(o->arena, int64_t, (size_t)n + 1);
    const char *name = joined(o, o->y->name, "pairs");
    int64_t k = 0;
    for (uint32_t i = 0; i < f; i++) {
        for (uint32_t j = i + 1; j < f; j++) {
            at[k++] = (int64_t)i * f + j;
        }
    }
    TN_ASSERT(k == n);
    put_tensor(o, name, IS_INT64, 1, (const int64_t[RANK]){n}, at);
    const char *flat = reshape(o, NULL, square, WHOLE(o, -1, (int64_t)f * f));
    return put(o, out, "Gather", IN(flat, name), ATTRS(AN_INT("axis", 1)));
}

/* ---- operators of several nodes ---- */

static void put_dense(onnx *o, const char *out)
{
    static const char *const activations[] = {NULL, "Relu", "LeakyRelu", "Sigmoid", "Tanh"};
    const tn_dense_attr *a = o->y->attr;
    const char *act = a != NULL ? activations[a->activation] : NULL;
    const char *in[] = {in_of(o, 0), param(o, o->y->in[1], AS_MATRIX),
                        o->y->n_in > 2 ? param(o, o->y->in[2], AS_ROW) : NULL};
    const char *z = put(o, act == NULL ? out : NULL, "Gemm", in, o->y->n_in, NULL);
    if (act != NULL) {
        const bool leaks = strcmp(act, "LeakyRelu") == 0;
        (void)put(o, out, act, IN(z), leaks ? ATTRS(A_SLOPE(a->slope)) : NULL);
    }
}

static void put_bias(onnx *o, const char *out)
{
    (void)put(o, out, "Add", IN(in_of(o, 0), param(o, o->y->in[1], AS_ROW)), NULL);
}

static void put_leaky_relu(onnx *o, const char *out)
{
    const tn_act_attr *a = o->y->attr;
    (void)put(o, out, "LeakyRelu", IN(in_of(o, 0)), ATTRS(A_SLOPE(a->slope)));
}

static void put_prelu(onnx *o, const char *out)
{
    (void)put(o, out, "PRelu", IN(in_of(o, 0), param(o, o->y->in[1], AS_ROW)), NULL);
}

static void put_square(onnx *o, const char *out)
{
    (void)put(o, out, "Mul", IN(in_of(o, 0), in_of(o, 0)), NULL);
}

static void put_silu(onnx *o, const char *out)
{
    const char *x = in_of(o, 0);
    (void)put(o, out, "Mul", IN(x, put(o, NULL, "Sigmoid", IN(x), NULL)), NULL);
}

/* x/2 (1 + f), f being erf(x / sqrt 2) or tanh(sqrt(2/pi) (x + .044715 x^3)). */
static void half_of(onnx *o, const char *out, const char *x, const char *f)
{
    const char *one_more = put(o, NULL, "Add", IN(f, number(o, 1)), NULL);
    (void)scaled(o, out, put(o, NULL, "Mul", IN(x, one_more), NULL), 0.5);
}

static void put_gelu(onnx *o, const char *out)
{
    const char *x = in_of(o, 0);
    half_of(o, out, x, put(o, NULL, "Erf", IN(scaled(o, NULL, x, sqrt(0.5))), NULL));
}

static void put_gelu_tanh(onnx *o, const char *out)
{
    const char *x = in_of(o, 0);
    const char *square = put(o, NULL, "Mul", IN(x, x), NULL);
    const char *cube = put(o, NULL, "Mul", IN(square, x), NULL);
    const char *sum = put(o, NULL, "Add", IN(x, scaled(o, NULL, cube, 0.044715)), NULL);
    half_of(o, out, x, put(o, NULL, "Tanh", IN(scaled(o, NULL, sum, sqrt(2 / M_PI))), NULL));
}

/* Weights that stay as they are. */
static void put_batch_norm(onnx *o, const char *out)
{
    const uint32_t n = o->y->shape.cols;
    tn_real *by = TN_NEW_ARRAY(o->arena, tn_real, n);
    tn_real *plus = TN_NEW_ARRAY(o->arena, tn_real, n);
    const char *scale = joined(o, o->y->name, "scale");
    const char *shift = joined(o, o->y->name, "shift");
    o->y->op->norm.affine(o->y, by, plus);
    put_tensor(o, scale, IS_FLOAT, 1, (const int64_t[RANK]){n}, by);
    put_tensor(o, shift, IS_FLOAT, 1, (const int64_t[RANK]){n}, plus);
    const char *product = put(o, NULL, "Mul", IN(in_of(o, 0), scale), NULL);
    (void)put(o, out, "Add", IN(product, shift), NULL);
}

/* (x - mean) rstd, by what was seen, which stays as it is. `out` NULL: a step. */
static const char *standardised(onnx *o, const char *out, const char *x)
{
    const uint32_t n = o->y->shape.cols;
    const int64_t dims[RANK] = {n};
    tn_real *middle = TN_NEW_ARRAY(o->arena, tn_real, n);
    tn_real *by = TN_NEW_ARRAY(o->arena, tn_real, n);
    const char *center = joined(o, o->y->name, "mean");
    const char *scale = joined(o, o->y->name, "scale");
    o->y->op->norm.running(o->y, (tn_range){0, n}, middle, by);
    put_tensor(o, center, IS_FLOAT, 1, dims, middle);
    put_tensor(o, scale, IS_FLOAT, 1, dims, by);
    const char *d = put(o, NULL, "Sub", IN(x, center), NULL);
    return put(o, out, "Mul", IN(d, scale), NULL);
}

static void put_zscore(onnx *o, const char *out)
{
    (void)standardised(o, out, in_of(o, 0));
}

static void put_data_norm(onnx *o, const char *out)
{
    const char *unit = standardised(o, NULL, in_of(o, 0));
    const char *product = put(o, NULL, "Mul", IN(unit, param(o, o->y->in[1], AS_ROW)), NULL);
    (void)put(o, out, "Add", IN(product, param(o, o->y->in[2], AS_ROW)), NULL);
}

/* x (a + (1 - a) sigmoid(x^)). */
static void put_dice(onnx *o, const char *out)
{
    const char *x = in_of(o, 0);
    const char *a = param(o, o->y->in[1], AS_ROW);
    const char *share = put(o, NULL, "Sigmoid", IN(standardised(o, NULL, x)), NULL);
    const char *rest = put(o, NULL, "Sub", IN(number(o, 1), a), NULL);
    const char *more = put(o, NULL, "Mul", IN(rest, share), NULL);
    (void)put(o, out, "Mul", IN(x, put(o, NULL, "Add", IN(a, more), NULL)), NULL);
}

static const char *mean(onnx *o, const char *x)
{
    return put(o, NULL, "ReduceMean", IN(x),
               ATTRS({.name = "axes", .type = A_INTS, .n = 1, .i = {1}}));
}

static void put_layer_norm(onnx *o, const char *out)
{
    const tn_layer_norm_attr *a = o->y->attr;
    const char *x = in_of(o, 0);
    const char *d = put(o, NULL, "Sub", IN(x, mean(o, x)), NULL);
    const char *var = mean(o, put(o, NULL, "Mul", IN(d, d), NULL));
    const char *more = put(o, NULL, "Add", IN(var, number(o, a->epsilon)), NULL);
    const char *unit = put(o, NULL, "Div", IN(d, put(o, NULL, "Sqrt", IN(more), NULL)), NULL);
    const char *gamma = param(o, o->y->in[1], AS_ROW);
    const char *product = put(o, NULL, "Mul", IN(unit, gamma), NULL);
    (void)put(o, out, "Add", IN(product, param(o, o->y->in[2], AS_ROW)), NULL);
}

static void put_add(onnx *o, const char *out)
{
    const char *sum = in_of(o, 0);
    for (uint32_t i = 1; i < o->y->n_in; i++) {
        sum = put(o, i + 1 < o->y->n_in ? NULL : out, "Add", IN(sum, in_of(o, i)), NULL);
    }
    if (o->y->n_in == 1) {
        (void)put(o, out, "Identity", IN(sum), NULL);
    }
}

/* The operands of an operator in which each column of the narrow one meets some of the wide one's,
 * shaped so that ONNX repeats it. */
static bool spread(onnx *o, uint32_t wide, uint32_t narrow, const char **w, const char **s)
{
    const uint32_t n = o->y->in[wide]->shape.cols;
    const uint32_t m = o->y->in[narrow]->shape.cols;
    *w = in_of(o, wide);
    *s = in_of(o, narrow);
    if (m == n || m == 1) {
        return false;
    }
    *w = reshape(o, NULL, *w, WHOLE(o, -1, m, n / m));
    *s = reshape(o, NULL, *s, WHOLE(o, -1, m, 1));
    return true;
}

static void put_two(onnx *o, const char *out, const char *op)
{
    const char *a = NULL;
    const char *b = NULL;
    const bool shaped = spread(o, 0, 1, &a, &b);
    const char *y = put(o, shaped ? NULL : out, op, IN(a, b), NULL);
    if (shaped) {
        (void)reshape(o, out, y, WHOLE(o, -1, o->y->shape.cols));
    }
}

static void put_mul(onnx *o, const char *out)
{
    put_two(o, out, "Mul");
}

static void put_sub(onnx *o, const char *out)
{
    put_two(o, out, "Sub");
}

static void put_div(onnx *o, const char *out)
{
    put_two(o, out, "Div");
}

static void put_maximum(onnx *o, const char *out)
{
    put_two(o, out, "Max");
}

static void put_minimum(onnx *o, const char *out)
{
    put_two(o, out, "Min");
}

static void put_where(onnx *o, const char *out)
{
    const char *a = NULL;
    const char *c = NULL;
    const bool shaped = spread(o, 1, 0, &a, &c);
    const char *b = in_of(o, 2);
    if (shaped) {
        const uint32_t m = o->y->in[0]->shape.cols;
        b = reshape(o, NULL, b, WHOLE(o, -1, m, o->y->shape.cols / m));
    }
    const char *yes = put(o, NULL, "Greater", IN(c, number(o, 0)), NULL);
    const char *y = put(o, shaped ? NULL : out, "Where", IN(yes, a, b), NULL);
    if (shaped) {
        (void)reshape(o, out, y, WHOLE(o, -1, o->y->shape.cols));
    }
}

static void put_concat(onnx *o, const char *out)
{
    const char **in = TN_NEW_ARRAY(o->arena, const char *, o->y->n_in);
    for (uint32_t i = 0; i < o->y->n_in; i++) {
        in[i] = in_of(o, i);
    }
    (void)put(o, out, "Concat", in, o->y->n_in, ATTRS(AN_INT("axis", 1)));
}

static void put_slice(onnx *o, const char *out)
{
    const tn_slice_attr *a = o->y->attr;
    const int64_t end = (int64_t)a->first + a->cols;
    (void)put(o, out, "Slice", IN(in_of(o, 0), WHOLE(o, a->first), WHOLE(o, end), WHOLE(o, 1)),
              NULL);
}

static void put_sum_cols(onnx *o, const char *out)
{
    (void)sum_row(o, out, in_of(o, 0));
}

static void put_sum_groups(onnx *o, const char *out)
{
    const tn_pairs_attr *a = o->y->attr;
    (void)sum_away(o, out, fields(o, in_of(o, 0), o->y->in[0]->shape.cols, a->dim), 2);
}

static void put_max_groups(onnx *o, const char *out)
{
    const tn_pairs_attr *a = o->y->attr;
    const char *e = fields(o, in_of(o, 0), o->y->in[0]->shape.cols, a->dim);
    (void)put(o, out, "ReduceMax", IN(e),
              ATTRS({.name = "axes", .type = A_INTS, .n = 1, .i = {2}}, AN_INT("keepdims", 0)));
}

static void put_scale(onnx *o, const char *out)
{
    const tn_scale_attr *a = o->y->attr;
    const char *product = scaled(o, NULL, in_of(o, 0), a->by);
    (void)put(o, out, "Add", IN(product, number(o, a->plus)), NULL);
}

static void put_softmax(onnx *o, const char *out)
{
    (void)put(o, out, "Softmax", IN(in_of(o, 0)), ATTRS(AN_INT("axis", 1)));
}

static uint32_t dim_of(const onnx *o)
{
    const tn_pairs_attr *a = o->y->attr;
    return a->dim;
}

static void put_fm(onnx *o, const char *out)
{
    (void)scaled(o, out, sum_row(o, NULL, pair_sums(o, dim_of(o))), 0.5);
}

static void put_bi_interaction(onnx *o, const char *out)
{
    (void)scaled(o, out, pair_sums(o, dim_of(o)), 0.5);
}

static void put_inner(onnx *o, const char *out)
{
    static const attr turn[] = {{.name = "perm", .type = A_INTS, .n = 3, .i = {0, 2, 1}},
                                {.name = NULL}};
    const uint32_t f = o->y->in[0]->shape.cols / dim_of(o);
    const char *e = fields(o, in_of(o, 0), o->y->in[0]->shape.cols, dim_of(o));
    const char *turned = put(o, NULL, "Transpose", IN(e), turn);
    (void)upper(o, out, put(o, NULL, "MatMul", IN(e, turned), NULL), f);
}

/* s^T s, s the sum of all fields. */
static void put_outer(onnx *o, const char *out)
{
    const uint32_t dim = dim_of(o);
    const char *s = sum_away(o, NULL, fields(o, in_of(o, 0), o->y->in[0]->shape.cols, dim), 1);
    const char *column = reshape(o, NULL, s, WHOLE(o, -1, dim, 1));
    const char *row = reshape(o, NULL, s, WHOLE(o, -1, 1, dim));
    const char *square = put(o, NULL, "Mul", IN(column, row), NULL);
    (void)reshape(o, out, square, WHOLE(o, -1, (int64_t)dim * dim));
}

/* Pairs A[i,j], A[j,i]: of the matrix of vectors and of its transpose, which the columns of x are
 * in another order. */
static void put_ffm(onnx *o, const char *out)
{
    const tn_ffm_attr *a = o->y->attr;
    const int64_t f = a->fields;
    int64_t *at = TN_NEW_ARRAY(o->arena, int64_t, (size_t)(f * f));
    const char *name = joined(o, o->y->name, "turned");
    for (int64_t i = 0; i < f * f; i++) {
        at[i] = i % f * f + i / f;
    }
    put_tensor(o, name, IS_INT64, 1, (const int64_t[RANK]){f * f}, at);
    const char *e = fields(o, in_of(o, 0), o->y->in[0]->shape.cols, a->dim);
    const char *turned = put(o, NULL, "Gather", IN(e, name), ATTRS(AN_INT("axis", 1)));
    const char *products = put(o, NULL, "Mul", IN(e, turned), NULL);
    (void)sum_row(o, out, upper(o, NULL, sum_away(o, NULL, products, 2), a->fields));
}

/* Half of |A[i,i]|^2 less the squares of its values, summed over i. */
static void put_ffm_within(onnx *o, const char *out)
{
    const tn_ffm_attr *a = o->y->attr;
    const char *own[2];
    int64_t *at = TN_NEW_ARRAY(o->arena, int64_t, a->fields);
    const char *name = joined(o, o->y->name, "own");
    for (int64_t i = 0; i < a->fields; i++) {
        at[i] = i * a->fields + i;
    }
    put_tensor(o, name, IS_INT64, 1, (const int64_t[RANK]){a->fields}, at);
    for (uint32_t k = 0; k < 2; k++) {
        const char *e = fields(o, in_of(o, k), o->y->in[k]->shape.cols, a->dim);
        own[k] = put(o, NULL, "Gather", IN(e, name), ATTRS(AN_INT("axis", 1)));
    }
    const char *square = put(o, NULL, "Mul", IN(own[0], own[0]), NULL);
    const char *pairs = put(o, NULL, "Sub", IN(square, own[1]), NULL);
    (void)scaled(o, out, sum_row(o, NULL, sum_away(o, NULL, pairs, 2)), 0.5);
}

static void put_fm_values(onnx *o, const char *out)
{
    const char *e = fields(o, in_of(o, 0), o->y->in[0]->shape.cols, dim_of(o));
    const char *sum = sum_away(o, NULL, e, 1);
    const char *square = sum_row(o, NULL, put(o, NULL, "Mul", IN(sum, sum), NULL));
    const char *rest = put(o, NULL, "Sub", IN(square, sum_row(o, NULL, in_of(o, 1))), NULL);
    (void)scaled(o, out, rest, 0.5);
}

static void put_cross(onnx *o, const char *out)
{
    const char *product =
        put(o, NULL, "Gemm", IN(in_of(o, 1), param(o, o->y->in[2], AS_COLUMN)), NULL);
    const char *first = put(o, NULL, "Mul", IN(in_of(o, 0), product), NULL);
    const char *more = put(o, NULL, "Add", IN(first, param(o, o->y->in[3], AS_ROW)), NULL);
    (void)put(o, out, "Add", IN(more, in_of(o, 1)), NULL);
}

static void put_cross_merge(onnx *o, const char *out)
{
    const char *product = put(o, NULL, "Mul", IN(in_of(o, 0), in_of(o, 1)), NULL);
    (void)put(o, out, "Add", IN(product, in_of(o, 2)), NULL);
}

static bool is_input(const tn_node *n)
{
    return !n->is_param &&
           (n->op == NULL || tn_embed_list_of(n) != NULL || n->op == &tn_op_numeric ||
            n->op == &tn_op_embed_squares || n->op == &tn_op_embed_norm);
}

/* As many rows as an input has. */
static void put_constant(onnx *o, const char *out)
{
    const tn_constant_attr *a = o->y->attr;
    const tn_node *any = NULL;
    for (uint32_t i = 0; any == NULL; i++) {
        const tn_node *n = tn_graph_node(o->g, i);
        TN_ASSERT(n != NULL); /* a constant alone is no model */
        any = n->place->alive && is_input(n) ? n : NULL;
    }
    o->used[any->place->index] = true;
    const char *shape = put(o, NULL, "Shape", IN(name_of(o, any)), NULL);
    const char *n_rows =
        put(o, NULL, "Slice", IN(shape, WHOLE(o, 0), WHOLE(o, 1), WHOLE(o, 0)), NULL);
    const char *wanted =
        put(o, NULL, "Concat", IN(n_rows, WHOLE(o, a->cols)), ATTRS(AN_INT("axis", 0)));
    (void)put(o, out, "Expand", IN(number(o, a->value), wanted), NULL);
}

/* ---- all of them ---- */

/* An operator in ONNX: one node of its operands, or the nodes that a function writes. */
static const struct row {
    const tn_op *op;
    const char *name;
    void (*put)(onnx *o, const char *out);
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
    {&tn_op_mul, NULL, put_mul},
    {&tn_op_sub, NULL, put_sub},
    {&tn_op_div, NULL, put_div},
    {&tn_op_maximum, NULL, put_maximum},
    {&tn_op_minimum, NULL, put_minimum},
    {&tn_op_where, NULL, put_where},
    {&tn_op_concat, NULL, put_concat},
    {&tn_op_slice, NULL, put_slice},
    {&tn_op_sum_cols, NULL, put_sum_cols},
    {&tn_op_sum_groups, NULL, put_sum_groups},
    {&tn_op_max_groups, NULL, put_max_groups},
    {&tn_op_scale, NULL, put_scale},
    {&tn_op_softmax, NULL, put_softmax},
    {&tn_op_fm, NULL, put_fm},
    {&tn_op_fm_values, NULL, put_fm_values},
    {&tn_op_ffm, NULL, put_ffm},
    {&tn_op_ffm_within, NULL, put_ffm_within},
    {&tn_op_inner, NULL, put_inner},
    {&tn_op_outer, NULL, put_outer},
    {&tn_op_bi_interaction, NULL, put_bi_interaction},
    {&tn_op_cross, NULL, put_cross},
    {&tn_op_cross_merge, NULL, put_cross_merge},
};

/* test_onnx.c walks the list of operators: whatever scores has a row. */
static void put_node(onnx *o, const tn_node *n)
{
    const struct row *row = rows;
    while (row->op != n->op) {
        row++;
        TN_ASSERT(row < rows + sizeof rows / sizeof *rows);
    }
    o->y = n;
    o->steps = 0;
    if (row->put != NULL) {
        row->put(o, name_of(o, n));
    } else {
        (void)put(o, name_of(o, n), row->name, IN(in_of(o, 0)), NULL);
    }
}

/* ---- calibrations, after the logit of the model ---- */

/* a z + b + c m. */
static void put_platt(onnx *o)
{
    const double *by = o->m->calibrated;
    const char *product = scaled(o, NULL, name_of(o, o->m->logit), by[0]);
    const bool shifts = by[2] < 0 || by[2] > 0;
    const char *z = put(o, shifts ? NULL : "logit", "Add", IN(product, number(o, by[1])), NULL);
    if (shifts) {
        o->unknown = true;
        const char *m =
            put(o, NULL, "Min", IN(TN_ONNX_UNKNOWN, number(o, o->m->unknown_max)), NULL);
        (void)put(o, "logit", "Add", IN(z, scaled(o, NULL, m, by[2])), NULL);
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
static void lay_lines(const tn_onnx_model *m, float *table[LINE_TABLES])
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
static void gather_lines(onnx *o, const char *z, const char *line[LINE_TABLES])
{
    static const char *const names[] = {"at", "at_low", "slope", "base"};
    const uint32_t n = o->m->n_knots;
    float *table[LINE_TABLES];
    float *knot = TN_NEW_ARRAY(o->arena, float, n);
    const char *knots = joined(o, o->y->name, "knots");
    for (uint32_t i = 0; i < n; i++) {
        knot[i] = float_above(o->m->knot[i].z);
    }
    put_tensor(o, knots, IS_FLOAT, 1, (const int64_t[RANK]){n}, knot);
    const char *reached = put(o, NULL, "GreaterOrEqual", IN(z, knots), NULL);
    const char *ones = put(o, NULL, "Cast", IN(reached), ATTRS(AN_INT("to", IS_FLOAT)));
    const char *below = sum_away(o, NULL, ones, 1);
    const char *row = put(o, NULL, "Cast", IN(below), ATTRS(AN_INT("to", IS_INT64)));
    for (uint32_t k = 0; k < LINE_TABLES; k++) {
        table[k] = TN_NEW_ARRAY(o->arena, float, 2 * (size_t)n + 2);
    }
    lay_lines(o->m, table);
    for (uint32_t k = 0; k < LINE_TABLES; k++) {
        const char *name = joined(o, o->y->name, names[k]);
        put_tensor(o, name, IS_FLOAT, 2, (const int64_t[RANK]){n + 1, 2}, table[k]);
        line[k] = put(o, NULL, "Gather", IN(name, row), ATTRS(AN_INT("axis", 0)));
    }
}

/* ln p - ln(1 - p), within +-logit_max; p and 1 - p are base + slope (z - at). z is kept near the
 * breakpoints, since an infinite one times a slope of 0 is no number. */
static void put_isotonic(onnx *o)
{
    const tn_onnx_model *m = o->m;
    const char *line[LINE_TABLES];
    const float top = float_above(m->knot[m->n_knots - 1].z);
    const float bottom = nextafterf(float_above(m->knot[0].z), -INFINITY);
    const char *z = put(o, NULL, "Min", IN(name_of(o, m->logit), number(o, (double)top)), NULL);
    z = put(o, NULL, "Max", IN(z, number(o, (double)bottom)), NULL);
    gather_lines(o, z, line);
    const char *d = put(o, NULL, "Sub", IN(z, line[LINE_AT]), NULL);
    d = put(o, NULL, "Sub", IN(d, line[LINE_AT_LOW]), NULL);
    const char *rise = put(o, NULL, "Mul", IN(d, line[LINE_SLOPE]), NULL);
    const char *ln =
        put(o, NULL, "Log", IN(put(o, NULL, "Add", IN(rise, line[LINE_BASE]), NULL)), NULL);
    const char *signs = joined(o, o->y->name, "signs");
    put_tensor(o, signs, IS_FLOAT, 1, (const int64_t[RANK]){2}, (const float[]){1, -1});
    const char *sum = sum_row(o, NULL, put(o, NULL, "Mul", IN(ln, signs), NULL));
    const char *most = put(o, NULL, "Min", IN(sum, number(o, m->logit_max)), NULL);
    (void)put(o, "logit", "Max", IN(most, number(o, -m->logit_max)), NULL);
}

static void put_calibration(onnx *o)
{
    const tn_onnx_model *m = o->m;
    o->y = m->pctr; /* it is not written itself, but nodes in between are named after it */
    o->steps = 0;
    (m->n_knots > 0 ? put_isotonic : put_platt)(o);
    (void)put(o, "pctr", "Sigmoid", IN("logit"), NULL);
}

static void put_nodes(onnx *o)
{
    const tn_node *n = NULL;
    const bool calibrated = is_calibrated(o->m);
    for (uint32_t i = 0; (n = tn_graph_node(o->g, i)) != NULL; i++) {
        const bool replaced = calibrated && n == o->m->pctr;
        if (n->place->alive && !n->is_param && !is_input(n) && !replaced) {
            put_node(o, n);
        }
    }
    if (calibrated) {
        put_calibration(o);
    }
}

/* ValueInfoProto: floats [N, cols]. */
static void put_value(tn_text *t, uint32_t field, const char *name, uint32_t cols)
{
    const size_t value = tn_proto_begin(t, field);
    add_text(t, 1, name);
    const size_t type = tn_proto_begin(t, 2);
    const size_t tensor = tn_proto_begin(t, 1);
    tn_proto_add_u64(t, 1, IS_FLOAT);
    const size_t shape = tn_proto_begin(t, 2);
    size_t dim = tn_proto_begin(t, 1);
    add_text(t, 2, "N");
    tn_proto_end(t, dim);
    dim = tn_proto_begin(t, 1);
    tn_proto_add_u64(t, 1, cols);
    tn_proto_end(t, dim);
    tn_proto_end(t, shape);
    tn_proto_end(t, tensor);
    tn_proto_end(t, type);
    tn_proto_end(t, value);
}

static void put_graph(onnx *o, tn_text *out)
{
    const bool score = o->m->pctr == o->m->logit;
    const size_t at = tn_proto_begin(out, 7);
    tn_text_add(out, o->nodes.data, o->nodes.size);
    add_text(out, 2, "tnet");
    tn_text_add(out, tn_text_str(&o->inits), o->inits.size);
    const tn_node *n = NULL;
    for (uint32_t i = 0; (n = tn_graph_node(o->g, i)) != NULL; i++) {
        if (is_input(n) && o->used[i]) {
            put_value(out, 11, name_of(o, n), n->shape.cols);
        }
    }
    if (o->unknown) {
        put_value(out, 11, TN_ONNX_UNKNOWN, 1);
    }
    put_value(out, 12, score ? "score" : "logit", 1);
    if (!score) {
        put_value(out, 12, "pctr", 1);
    }
    tn_proto_end(out, at);
}

static void put_model(onnx *o, tn_text *out)
{
    tn_proto_add_u64(out, 1, IR_VERSION);
    add_text(out, 2, "tnet");
    add_text(out, 3, o->m->version);
    tn_proto_add_u64(out, 5, 1);
    put_graph(o, out);
    const size_t opset = tn_proto_begin(out, 8);
    add_text(out, 1, "");
    tn_proto_add_u64(out, 2, OPSET);
    tn_proto_end(out, opset);
    for (uint32_t i = 0; i < o->m->n_meta; i++) {
        const size_t at = tn_proto_begin(out, 14);
        add_text(out, 1, o->m->meta[i].key);
        add_text(out, 2, o->m->meta[i].value);
        tn_proto_end(out, at);
    }
}

tn_status tn_graph_onnx(const tn_graph *g, const tn_onnx_model *m, tn_text *out, tn_error *err)
{
    onnx o = {.g = g, .m = m, .arena = tn_arena_new(1 << 14)};
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
    tn_arena_free(o.arena);
    return status;
}
