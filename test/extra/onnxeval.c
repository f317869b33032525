/* onnxeval.c - see onnxeval.h. Numbers of all types are doubles here. */
#include "extra/onnxeval.h"

#include "base/codec/proto.h"
#include "support/test.h"

enum { RANK = 4, IN_MAX = 16, TENSORS_MAX = 512, INT64 = 7 };

typedef struct tensor {
    tn_bytes name;
    uint32_t rank;
    size_t dim[RANK];
    double *at;
} tensor;

typedef struct node {
    tn_bytes op, out;
    const tensor *in[IN_MAX];
    uint32_t n_in;
    size_t axis, ints[RANK];
    bool keepdims;
    double alpha;
} node;

typedef struct eval {
    tn_arena *arena;
    uint32_t n;
    tensor list[TENSORS_MAX];
} eval;

/* ---- tensors ---- */

static bool same(tn_bytes name, const char *text)
{
    return strlen(text) == name.size && memcmp(text, name.data, name.size) == 0;
}

static size_t product(const size_t *dim, uint32_t from, uint32_t to)
{
    size_t n = 1;
    for (uint32_t i = from; i < to; i++) {
        n *= dim[i];
    }
    return n;
}

static size_t size_of(const tensor *t)
{
    return product(t->dim, 0, t->rank);
}

static tensor *add_tensor(eval *e, tn_bytes name, uint32_t rank, const size_t *dim)
{
    assert_true(e->n < TENSORS_MAX && rank <= RANK);
    tensor *t = &e->list[e->n++];
    *t = (tensor){.name = name, .rank = rank};
    memcpy(t->dim, dim, rank * sizeof *dim);
    t->at = TN_NEW_ARRAY(e->arena, double, size_of(t));
    return t;
}

static const tensor *find(const eval *e, tn_bytes name)
{
    for (uint32_t i = 0; i < e->n; i++) {
        if (e->list[i].name.size == name.size &&
            memcmp(e->list[i].name.data, name.data, name.size) == 0) {
            return &e->list[i];
        }
    }
    fail_msg("no '%.*s'", (int)name.size, name.data);
    return e->list;
}

/* ---- element by element ---- */

typedef double each_fn(const double *v, double alpha);

#define EACH(name, formula)                                                                        \
    static double name(const double *v, double alpha)                                              \
    {                                                                                              \
        (void)alpha;                                                                               \
        return formula;                                                                            \
    }
EACH(is_v, v[0])
EACH(is_relu, v[0] > 0 ? v[0] : 0)
EACH(is_leaky_relu, v[0] < 0 ? alpha * v[0] : v[0])
EACH(is_prelu, v[0] < 0 ? v[1] * v[0] : v[0])
EACH(is_sigmoid, 1 / (1 + exp(-v[0])))
EACH(is_tanh, tanh(v[0]))
EACH(is_softplus, log1p(exp(v[0])))
EACH(is_exp, exp(v[0]))
EACH(is_log, log(v[0]))
EACH(is_sqrt, sqrt(v[0]))
EACH(is_abs, fabs(v[0]))
EACH(is_erf, erf(v[0]))
EACH(is_sum, v[0] + v[1])
EACH(is_rest, v[0] - v[1])
EACH(is_product, v[0] * v[1])
EACH(is_ratio, v[0] / v[1])
EACH(is_larger, v[0] > v[1] ? v[0] : v[1])
EACH(is_smaller, v[0] < v[1] ? v[0] : v[1])
EACH(is_above, v[0] > v[1] ? 1 : 0)
EACH(is_reached, v[0] >= v[1] ? 1 : 0)
EACH(is_chosen, v[0] > 0 ? v[1] : v[2])

/* The entry of t that stands at entry i of dim, to which it is repeated. */
static double repeated(const tensor *t, size_t i, uint32_t rank, const size_t *dim)
{
    size_t at = 0;
    size_t step = 1;
    for (uint32_t k = rank; k-- > 0; i /= dim[k]) {
        const uint32_t less = rank - t->rank;
        const size_t here = k < less ? 1 : t->dim[k - less];
        assert_true(here == 1 || here == dim[k]);
        at += here > 1 ? i % dim[k] * step : 0;
        step *= here;
    }
    return t->at[at];
}

static void put_each(eval *e, const node *n, each_fn *f)
{
    uint32_t rank = 0;
    size_t dim[RANK];
    for (uint32_t i = 0; i < n->n_in; i++) {
        rank = n->in[i]->rank > rank ? n->in[i]->rank : rank;
    }
    for (uint32_t k = 0; k < rank; k++) {
        dim[k] = 1;
        for (uint32_t i = 0; i < n->n_in; i++) {
            const uint32_t less = rank - n->in[i]->rank;
            dim[k] =
                k >= less && n->in[i]->dim[k - less] > dim[k] ? n->in[i]->dim[k - less] : dim[k];
        }
    }
    tensor *y = add_tensor(e, n->out, rank, dim);
    for (size_t at = 0; at < size_of(y); at++) {
        double v[IN_MAX];
        for (uint32_t i = 0; i < n->n_in; i++) {
            v[i] = repeated(n->in[i], at, rank, dim);
        }
        y->at[at] = f(v, n->alpha);
    }
}

/* ---- others ---- */

/* The first entry of the matrix of t that batch i of a product reads, whose first axes are `dim`.
 * */
static size_t matrix_at(const tensor *t, size_t i, uint32_t rank, const size_t *dim)
{
    size_t at = 0;
    size_t step = t->dim[t->rank - 2] * t->dim[t->rank - 1];
    for (uint32_t k = rank - 2; k-- > 0; i /= dim[k]) {
        const uint32_t less = rank - t->rank;
        const size_t here = k < less ? 1 : t->dim[k - less];
        assert_true(here == 1 || here == dim[k]);
        at += here > 1 ? i % dim[k] * step : 0;
        step *= here;
    }
    return at;
}

/* [.., m, k] times [.., k, n], plus what is repeated; the first axes are repeated, too. */
static void put_product(eval *e, const node *n)
{
    const tensor *a = n->in[0];
    const tensor *b = n->in[1];
    const uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
    assert_true(a->rank >= 2 && b->rank >= 2 && a->dim[a->rank - 1] == b->dim[b->rank - 2]);
    size_t dim[RANK];
    for (uint32_t c = 0; c < rank - 2; c++) {
        const size_t of_a = c < rank - a->rank ? 1 : a->dim[c - (rank - a->rank)];
        const size_t of_b = c < rank - b->rank ? 1 : b->dim[c - (rank - b->rank)];
        dim[c] = of_a > of_b ? of_a : of_b;
    }
    const size_t rows = dim[rank - 2] = a->dim[a->rank - 2];
    const size_t cols = dim[rank - 1] = b->dim[b->rank - 1];
    const size_t k = a->dim[a->rank - 1];
    tensor *y = add_tensor(e, n->out, rank, dim);
    for (size_t i = 0; i < size_of(y); i++) {
        const double *left = a->at + matrix_at(a, i / cols / rows, rank, dim);
        const double *right = b->at + matrix_at(b, i / cols / rows, rank, dim);
        y->at[i] = n->n_in > 2 ? repeated(n->in[2], i, y->rank, dim) : 0;
        for (size_t j = 0; j < k; j++) {
            y->at[i] += left[i / cols % rows * k + j] * right[j * cols + i % cols];
        }
    }
}

static void put_reduced(eval *e, const node *n)
{
    const tensor *x = n->in[0];
    const size_t axis = n->n_in > 1 ? (size_t)n->in[1]->at[0] : n->ints[0];
    const size_t inner = product(x->dim, (uint32_t)axis + 1, x->rank);
    size_t dim[RANK];
    uint32_t rank = 0;
    for (uint32_t k = 0; k < x->rank; k++) {
        if (k != axis || n->keepdims) {
            dim[rank++] = k == axis ? 1 : x->dim[k];
        }
    }
    tensor *y = add_tensor(e, n->out, rank, dim);
    const bool takes_max = same(n->op, "ReduceMax");
    for (size_t i = 0; i < size_of(y); i++) {
        const double *at = x->at + i / inner * x->dim[axis] * inner + i % inner;
        y->at[i] = takes_max ? *at : 0;
        for (size_t k = 0; k < x->dim[axis]; k++) {
            const double v = at[k * inner];
            y->at[i] = takes_max ? fmax(y->at[i], v) : y->at[i] + v;
        }
        y->at[i] /= same(n->op, "ReduceMean") ? (double)x->dim[axis] : 1;
    }
}

/* Entries `index` of the axis, which become the axes of `dim` there. */
static void pick(eval *e, const node *n, size_t axis, const tensor *index)
{
    const tensor *x = n->in[0];
    const size_t inner = product(x->dim, (uint32_t)axis + 1, x->rank);
    const size_t some = size_of(index);
    size_t dim[2 * RANK];
    uint32_t rank = 0;
    for (uint32_t k = 0; k < x->rank; k++) {
        for (uint32_t i = 0; k == axis && i < index->rank; i++) {
            dim[rank++] = index->dim[i];
        }
        if (k != axis) {
            dim[rank++] = x->dim[k];
        }
    }
    tensor *y = add_tensor(e, n->out, rank, dim);
    for (size_t i = 0; i < size_of(y); i++) {
        const size_t k = (size_t)index->at[i / inner % some];
        assert_true(k < x->dim[axis]);
        y->at[i] = x->at[(i / inner / some * x->dim[axis] + k) * inner + i % inner];
    }
}

static void put_gather(eval *e, const node *n)
{
    pick(e, n, n->axis, n->in[1]);
}

static void put_slice(eval *e, const node *n)
{
    const size_t from = (size_t)n->in[1]->at[0];
    const size_t some = (size_t)n->in[2]->at[0] - from;
    tensor index = {.rank = 1, .dim = {some}, .at = TN_NEW_ARRAY(e->arena, double, some)};
    for (size_t i = 0; i < some; i++) {
        index.at[i] = (double)(from + i);
    }
    pick(e, n, (size_t)n->in[3]->at[0], &index);
}

/* Of the first axis, or of matrices of the second. */
static void put_concat(eval *e, const node *n)
{
    size_t dim[RANK];
    size_t to = 0;
    memcpy(dim, n->in[0]->dim, sizeof dim);
    dim[n->axis] = 0;
    for (uint32_t i = 0; i < n->n_in; i++) {
        dim[n->axis] += n->in[i]->dim[n->axis];
    }
    tensor *y = add_tensor(e, n->out, n->in[0]->rank, dim);
    assert_int_equal(n->axis + 1, y->rank);
    for (size_t r = 0; r < product(dim, 0, (uint32_t)n->axis); r++) {
        for (uint32_t i = 0; i < n->n_in; i++) {
            const size_t cols = n->in[i]->dim[n->axis];
            memcpy(y->at + to, n->in[i]->at + r * cols, cols * sizeof *y->at);
            to += cols;
        }
    }
}

static void put_reshaped(eval *e, const node *n)
{
    const tensor *shape = n->in[1];
    size_t dim[RANK];
    size_t known = 1;
    for (size_t k = 0; k < shape->dim[0]; k++) {
        dim[k] = shape->at[k] < 0 ? 0 : (size_t)shape->at[k];
        known *= dim[k] > 0 ? dim[k] : 1;
    }
    for (size_t k = 0; k < shape->dim[0]; k++) {
        dim[k] = dim[k] > 0 ? dim[k] : size_of(n->in[0]) / known;
    }
    tensor *y = add_tensor(e, n->out, (uint32_t)shape->dim[0], dim);
    assert_int_equal(size_of(y), size_of(n->in[0]));
    memcpy(y->at, n->in[0]->at, size_of(y) * sizeof *y->at);
}

/* Without an order of its axes a matrix is turned. */
static void put_transposed(eval *e, const node *n)
{
    static const size_t turned[RANK] = {1, 0};
    const tensor *x = n->in[0];
    const bool ordered = n->ints[0] + n->ints[1] > 0;
    const size_t *perm = ordered ? n->ints : turned;
    size_t dim[RANK];
    assert_true(ordered || x->rank == 2);
    for (uint32_t k = 0; k < x->rank; k++) {
        dim[k] = x->dim[perm[k]];
    }
    tensor *y = add_tensor(e, n->out, x->rank, dim);
    for (size_t i = 0; i < size_of(y); i++) {
        size_t at = 0;
        size_t rest = i;
        for (uint32_t k = x->rank; k-- > 0; rest /= dim[k]) {
            at += rest % dim[k] * product(x->dim, (uint32_t)perm[k] + 1, x->rank);
        }
        y->at[i] = x->at[at];
    }
}

/* Over the last axis. */
static void put_softmax(eval *e, const node *n)
{
    tensor *y = add_tensor(e, n->out, n->in[0]->rank, n->in[0]->dim);
    const size_t cols = y->dim[y->rank - 1];
    assert_int_equal(n->axis, y->rank - 1);
    for (size_t i = 0; i < size_of(y); i++) {
        double sum = 0;
        for (size_t c = 0; c < cols; c++) {
            sum += exp(n->in[0]->at[i / cols * cols + c]);
        }
        y->at[i] = exp(n->in[0]->at[i]) / sum;
    }
}

static void put_shape(eval *e, const node *n)
{
    tensor *y = add_tensor(e, n->out, 1, (const size_t[]){n->in[0]->rank});
    for (uint32_t k = 0; k < n->in[0]->rank; k++) {
        y->at[k] = (double)n->in[0]->dim[k];
    }
}

static void put_expanded(eval *e, const node *n)
{
    size_t dim[RANK];
    for (size_t k = 0; k < n->in[1]->dim[0]; k++) {
        dim[k] = (size_t)n->in[1]->at[k];
    }
    tensor *y = add_tensor(e, n->out, (uint32_t)n->in[1]->dim[0], dim);
    for (size_t i = 0; i < size_of(y); i++) {
        y->at[i] = repeated(n->in[0], i, y->rank, dim);
    }
}

static const struct row {
    const char *op;
    each_fn *each;
    void (*put)(eval *e, const node *n);
} rows_of_ops[] = {
    {"Identity", is_v, NULL},
    {"Cast", is_v, NULL},
    {"Relu", is_relu, NULL},
    {"LeakyRelu", is_leaky_relu, NULL},
    {"PRelu", is_prelu, NULL},
    {"Sigmoid", is_sigmoid, NULL},
    {"Tanh", is_tanh, NULL},
    {"Softplus", is_softplus, NULL},
    {"Exp", is_exp, NULL},
    {"Log", is_log, NULL},
    {"Sqrt", is_sqrt, NULL},
    {"Abs", is_abs, NULL},
    {"Erf", is_erf, NULL},
    {"Add", is_sum, NULL},
    {"Sub", is_rest, NULL},
    {"Mul", is_product, NULL},
    {"Div", is_ratio, NULL},
    {"Max", is_larger, NULL},
    {"Min", is_smaller, NULL},
    {"Greater", is_above, NULL},
    {"GreaterOrEqual", is_reached, NULL},
    {"Where", is_chosen, NULL},
    {"Gemm", NULL, put_product},
    {"MatMul", NULL, put_product},
    {"ReduceSum", NULL, put_reduced},
    {"ReduceMax", NULL, put_reduced},
    {"ReduceMean", NULL, put_reduced},
    {"Gather", NULL, put_gather},
    {"Slice", NULL, put_slice},
    {"Concat", NULL, put_concat},
    {"Reshape", NULL, put_reshaped},
    {"Transpose", NULL, put_transposed},
    {"Softmax", NULL, put_softmax},
    {"Shape", NULL, put_shape},
    {"Expand", NULL, put_expanded},
};

/* ---- the model ---- */

static tn_bytes bytes_field(tn_bytes message, uint32_t number)
{
    tn_proto_field f;
    while (tn_proto_next(&message, &f)) {
        if (f.tag == TN_PROTO_TAG(number, TN_WIRE_BYTES)) {
            return f.bytes;
        }
    }
    fail_msg("no field %u", number);
    return message;
}

static void read_attribute(tn_bytes a, node *n)
{
    const tn_bytes name = bytes_field(a, 1);
    uint32_t k = 0;
    tn_proto_field f;
    while (tn_proto_next(&a, &f)) {
        if (f.tag == TN_PROTO_TAG(2, TN_WIRE_FIXED32)) {
            const uint32_t bits = (uint32_t)f.value;
            float x = 0;
            memcpy(&x, &bits, sizeof x);
            n->alpha = (double)x;
        } else if (f.tag == TN_PROTO_TAG(3, TN_WIRE_VARINT) && same(name, "axis")) {
            n->axis = f.value;
        } else if (f.tag == TN_PROTO_TAG(3, TN_WIRE_VARINT) && same(name, "keepdims")) {
            n->keepdims = f.value != 0;
        } else if (f.tag == TN_PROTO_TAG(8, TN_WIRE_VARINT)) {
            assert_true(k < RANK);
            n->ints[k++] = f.value;
        }
    }
}

static void run_node(eval *e, tn_bytes message)
{
    node n = {.op = bytes_field(message, 4), .out = bytes_field(message, 2), .keepdims = true};
    tn_proto_field f;
    while (tn_proto_next(&message, &f)) {
        if (f.tag == TN_PROTO_TAG(1, TN_WIRE_BYTES)) {
            assert_true(n.n_in < IN_MAX);
            n.in[n.n_in++] = find(e, f.bytes);
        } else if (f.tag == TN_PROTO_TAG(5, TN_WIRE_BYTES)) {
            read_attribute(f.bytes, &n);
        }
    }
    for (size_t i = 0; i < sizeof rows_of_ops / sizeof *rows_of_ops; i++) {
        const struct row *row = &rows_of_ops[i];
        if (same(n.op, row->op)) {
            if (row->each != NULL) {
                put_each(e, &n, row->each);
            } else {
                row->put(e, &n);
            }
            return;
        }
    }
    fail_msg("operator '%.*s' is not known here", (int)n.op.size, n.op.data);
}

static void read_tensor(eval *e, tn_bytes message)
{
    size_t dim[RANK];
    uint32_t rank = 0;
    bool whole = false;
    const tn_bytes name = bytes_field(message, 8);
    const tn_bytes raw = bytes_field(message, 9);
    tn_proto_field f;
    while (tn_proto_next(&message, &f)) {
        if (f.tag == TN_PROTO_TAG(1, TN_WIRE_VARINT)) {
            assert_true(rank < RANK);
            dim[rank++] = f.value;
        }
        whole = whole || (f.tag == TN_PROTO_TAG(2, TN_WIRE_VARINT) && f.value == INT64);
    }
    tensor *t = add_tensor(e, name, rank, dim);
    assert_int_equal(raw.size, size_of(t) * (whole ? sizeof(int64_t) : sizeof(float)));
    for (size_t i = 0; i < size_of(t); i++) {
        int64_t k = 0;
        float x = 0;
        memcpy(&k, raw.data + (whole ? i * sizeof k : 0), whole ? sizeof k : 0);
        memcpy(&x, raw.data + (whole ? 0 : i * sizeof x), whole ? 0 : sizeof x);
        t->at[i] = whole ? (double)k : (double)x;
    }
}

static void read_input(eval *e, tn_bytes message, const tn_graph *g, uint32_t rows)
{
    const tn_bytes name = bytes_field(message, 1);
    char text[512];
    assert_true(name.size < sizeof text);
    memcpy(text, name.data, name.size);
    text[name.size] = '\0';
    const tn_node *x = tn_graph_find(g, text);
    assert_non_null(x);
    tensor *t = add_tensor(e, name, 2, (const size_t[]){rows, x->shape.cols});
    for (size_t i = 0; i < size_of(t); i++) {
        t->at[i] = (double)tn_val_row(x, i / x->shape.cols)[i % x->shape.cols];
    }
}

const double *tn_onnx_eval(const tn_text *model, const char *output, const tn_graph *g,
                           uint32_t rows, tn_arena *arena)
{
    eval *e = TN_NEW(arena, eval);
    e->arena = arena;
    const tn_bytes graph = bytes_field((tn_bytes){model->data, model->size, false}, 7);
    for (uint32_t pass = 0; pass < 2; pass++) { /* nodes stand in front of what they read */
        tn_bytes left = graph;
        tn_proto_field f;
        while (tn_proto_next(&left, &f)) {
            if (pass == 0 && f.tag == TN_PROTO_TAG(5, TN_WIRE_BYTES)) {
                read_tensor(e, f.bytes);
            } else if (pass == 0 && f.tag == TN_PROTO_TAG(11, TN_WIRE_BYTES)) {
                read_input(e, f.bytes, g, rows);
            } else if (pass == 1 && f.tag == TN_PROTO_TAG(1, TN_WIRE_BYTES)) {
                run_node(e, f.bytes);
            }
        }
        assert_false(left.failed);
    }
    const tensor *y = find(e, (tn_bytes){output, strlen(output), false});
    assert_int_equal(size_of(y), rows);
    return y->at;
}
