/* op_slot_attention.c - slots attend to each other, by several heads (AutoInt, Song 2019).
 *
 * Rows of q, k and v hold f vectors of length dim, each of them cut into heads; of one head:
 *
 *   forward     s_ij  = scale <q_i, k_j>,  p_i = softmax over j of s_i
 *               y_i   = sum_j p_ij v_j
 *   backward    dv_j += sum_i p_ij dy_i
 *               ds_ij = p_ij (t_ij - sum_j p_ij t_ij),  t_ij = <dy_i, v_j>
 *               dq_i += scale sum_j ds_ij k_j,  dk_j += scale sum_i ds_ij q_i
 *
 * p is computed anew in backward: it is f x f for each head, more than q and k that it follows
 * from.
 */
#include "config/field.h"
#include "nn/op/ops.h"

#include "base/core/compiler.h"
#include "base/keys/record.h"
#include "nn/vec/vec.h"
#include "nn/vec/vecmath.h"

static const tn_field attrs[] = {
    TN_FIELD_U32(tn_attention_attr, dim, "8", 1, TN_DIM_MAX, "columns", "width of one vector"),
    TN_FIELD_U32(tn_attention_attr, heads, "1", 1, TN_DIM_MAX, "heads", "parts of each vector"),
    TN_FIELD_F64(tn_attention_attr, scale, "1", -1e6, 1e6, "", "factor of the products"),
    TN_FIELD_END,
};

static const tn_attention_attr *attr_of(const tn_node *y)
{
    return y->attr;
}

static tn_shape attention_shape(const tn_node *y)
{
    const tn_attention_attr *a = attr_of(y);
    const tn_shape x = tn_same_shape(y);
    const bool fits = x.cols > 0 && x.cols % a->dim == 0 && a->dim % a->heads == 0 &&
                      x.cols / a->dim <= TN_ATTENTION_SLOTS_MAX;
    return fits ? x : TN_MISFIT;
}

/* One head of a row: `f` vectors of `n` columns, `dim` apart. */
typedef struct head {
    const tn_real *q, *k, *v, *dy;
    size_t f, n, dim;
    tn_real scale;
} head;

static head head_of(const tn_node *y, size_t row, uint32_t i)
{
    const tn_attention_attr *a = attr_of(y);
    const size_t n = a->dim / a->heads;
    return (head){.q = tn_val_row(y->in[0], row) + i * n,
                  .k = tn_val_row(y->in[1], row) + i * n,
                  .v = tn_val_row(y->in[2], row) + i * n,
                  .f = y->shape.cols / a->dim,
                  .n = n,
                  .dim = a->dim,
                  .scale = (tn_real)a->scale};
}

/* s_j = <x, v_j> for all j. */
TN_HOT static void attention_dots(const head *h, const tn_real *restrict x,
                                  const tn_real *restrict v, tn_real *restrict s)
{
    for (size_t j = 0; j < h->f; j++) {
        tn_real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (size_t c = 0; c < h->n; c++) {
            sum += x[c] * v[j * h->dim + c];
        }
        s[j] = sum;
    }
}

/* Writes p_i, the shares of attention of vector i. */
static void put_shares(const head *h, size_t i, tn_real *p)
{
    attention_dots(h, h->q + i * h->dim, h->k, p);
    tn_real top = h->scale * p[0];
    for (size_t j = 0; j < h->f; j++) {
        p[j] *= h->scale;
        top = p[j] > top ? p[j] : top;
    }
    tn_real sum = 0;
    for (size_t j = 0; j < h->f; j++) {
        p[j] = tn_exp_of(p[j] - top);
        sum += p[j];
    }
    for (size_t j = 0; j < h->f; j++) {
        p[j] /= sum;
    }
}

/* x += sum of by_j v_j. */
TN_HOT static void add_weighted(const head *h, const tn_real *restrict by,
                                const tn_real *restrict v, tn_real *restrict x)
{
    for (size_t j = 0; j < h->f; j++) {
        for (size_t c = 0; c < h->n; c++) {
            x[c] += by[j] * v[j * h->dim + c];
        }
    }
}

/* v_j += by_j x for all j. */
TN_HOT static void add_to_all(const head *h, const tn_real *restrict by, const tn_real *restrict x,
                              tn_real *restrict v)
{
    for (size_t j = 0; j < h->f; j++) {
        for (size_t c = 0; c < h->n; c++) {
            v[j * h->dim + c] += by[j] * x[c];
        }
    }
}

static void attention_forward(tn_node *y, tn_range rows)
{
    tn_real p[TN_ATTENTION_SLOTS_MAX];
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_clear(tn_val_row(y, r), y->shape.cols);
        for (uint32_t m = 0; m < attr_of(y)->heads; m++) {
            const head h = head_of(y, r, m);
            for (size_t i = 0; i < h.f; i++) {
                put_shares(&h, i, p);
                add_weighted(&h, p, h.v, tn_val_row(y, r) + i * h.dim + m * h.n);
            }
        }
    }
}

/* Gradients of q, k, v of one head; NULL: not wanted. */
typedef struct head_grads {
    tn_real *dq, *dk, *dv;
} head_grads;

static void vector_backward(const head *h, size_t i, const head_grads *to)
{
    tn_real p[TN_ATTENTION_SLOTS_MAX];
    tn_real ds[TN_ATTENTION_SLOTS_MAX];
    const tn_real *dy = h->dy + i * h->dim;
    put_shares(h, i, p);
    if (to->dv != NULL) {
        add_to_all(h, p, dy, to->dv);
    }
    attention_dots(h, dy, h->v, ds);
    const tn_real mean = tn_vec_dot(h->f, p, ds);
    for (size_t j = 0; j < h->f; j++) {
        ds[j] = h->scale * p[j] * (ds[j] - mean);
    }
    if (to->dq != NULL) {
        add_weighted(h, ds, h->k, to->dq + i * h->dim);
    }
    if (to->dk != NULL) {
        add_to_all(h, ds, h->q + i * h->dim, to->dk);
    }
}

/* The row of an operand's gradient, cleared as its first writer; NULL: not wanted. */
static tn_real *grad_of(const tn_node *y, uint32_t operand, size_t row)
{
    const tn_node *x = y->in[operand];
    return x->grad == NULL ? NULL : tn_grad_row_to_add(y, x, row);
}

static void attention_backward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        const head_grads row = {grad_of(y, 0, r), grad_of(y, 1, r), grad_of(y, 2, r)};
        for (uint32_t m = 0; m < attr_of(y)->heads; m++) {
            head h = head_of(y, r, m);
            const size_t at = m * h.n;
            const head_grads to = {row.dq == NULL ? NULL : row.dq + at,
                                   row.dk == NULL ? NULL : row.dk + at,
                                   row.dv == NULL ? NULL : row.dv + at};
            h.dy = tn_grad_row(y, r) + at;
            for (size_t i = 0; i < h.f; i++) {
                vector_backward(&h, i, &to);
            }
        }
    }
}

static double attention_flops(const tn_node *y)
{
    const double f = (double)y->shape.cols / attr_of(y)->dim;
    return 4.0 * y->shape.rows * y->shape.cols * f;
}

const tn_op tn_op_slot_attention = {
    TN_OP_MEMBERS(slot_attention, attention),
    .shape = attention_shape,
    .formula = "y_i = sum of softmax over j of (scale <qi, kj>) vj, per head",
    .n_in = 3,
    TN_OP_ATTRS(attrs, tn_attention_attr),
    .flops = attention_flops,
    .example = {.cols = 12, .attr = &(const tn_attention_attr){.dim = 4, .heads = 2, .scale = 0.5}},
};
