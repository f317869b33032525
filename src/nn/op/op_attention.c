/* op_attention.c - attention among the positions of a row, in several heads: sequence_attention.
 *
 *   forward     p_ij = softmax over j of q_i k_j / sqrt(d),  y_i = sum_j p_ij v_j
 *   backward    dv_j += p_ij dy_i
 *               ds_ij = p_ij (dy_i v_j - dy_i y_i) / sqrt(d)
 *               dq_i += ds_ij k_j,  dk_j += ds_ij q_i
 *
 * d: columns of a head, which lie side by side. The state holds a number for each position and head
 * (attention.h), so that it grows with the positions and not with their square.
 */
#include "nn/op/attention.h"

#include "base/core/compiler.h"
#include "config/field.h"
#include "nn/op/sequence.h"
#include "nn/vec/vecmath.h"

#include <math.h>

static inline tn_real *vector(const tn_vectors *v, size_t i)
{
    return v->at + i * v->stride;
}

static inline tn_real attention_dot(size_t n, const tn_real *restrict a, const tn_real *restrict b)
{
    tn_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t c = 0; c < n; c++) {
        sum += a[c] * b[c];
    }
    return sum;
}

static inline void attention_add(size_t n, tn_real *restrict y, const tn_real *restrict x,
                                 tn_real by)
{
#pragma omp simd
    for (size_t c = 0; c < n; c++) {
        y[c] += x[c] * by;
    }
}

TN_HOT static void forward_head(const tn_attention *a)
{
    for (size_t i = 0; i < a->n; i++) {
        const tn_real *q = vector(&a->q, i);
        tn_real *y = vector(&a->y, i);
        tn_real most = -(tn_real)INFINITY;
        tn_real sum = 0;
        for (size_t j = 0; j < a->n; j++) {
            a->p[j] = a->scale * attention_dot(a->dim, q, vector(&a->k, j));
            most = a->p[j] > most ? a->p[j] : most;
        }
        for (size_t j = 0; j < a->n; j++) {
            a->p[j] = tn_exp_of(a->p[j] - most);
            sum += a->p[j];
        }
        tn_clear(y, a->dim);
        for (size_t j = 0; j < a->n; j++) {
            attention_add(a->dim, y, vector(&a->v, j), a->p[j] / sum);
        }
        a->norm[i * a->norm_stride] = most + tn_log_of(sum);
    }
}

TN_HOT static void backward_head(const tn_attention *a, const tn_attention_grads *d)
{
    for (size_t i = 0; i < a->n; i++) {
        const tn_real *q = vector(&a->q, i);
        const tn_real *dy = vector(&d->y, i);
        const tn_real mean = attention_dot(a->dim, dy, vector(&a->y, i));
        for (size_t j = 0; j < a->n; j++) {
            const tn_real *k = vector(&a->k, j);
            const tn_real p =
                tn_exp_of(a->scale * attention_dot(a->dim, q, k) - a->norm[i * a->norm_stride]);
            const tn_real ds = a->scale * p * (attention_dot(a->dim, dy, vector(&a->v, j)) - mean);
            if (d->v.at != NULL) {
                attention_add(a->dim, vector(&d->v, j), dy, p);
            }
            if (d->q.at != NULL) {
                attention_add(a->dim, vector(&d->q, i), k, ds);
            }
            if (d->k.at != NULL) {
                attention_add(a->dim, vector(&d->k, j), q, ds);
            }
        }
    }
}

void tn_attention_forward(const tn_attention *a)
{
    forward_head(a);
}

void tn_attention_backward(const tn_attention *a, const tn_attention_grads *d)
{
    backward_head(a, d);
}

/* ---- sequence_attention ---- */

enum { Q, K, V, OPERANDS };

static const tn_field attention_attrs[] = {
    TN_FIELD_U32(tn_sequence_attention_attr, heads, "1", 1, TN_HEADS_MAX, "heads",
                 "parts of the columns that attend by themselves"),
    TN_FIELD_END,
};

static uint32_t heads_of(const tn_node *y)
{
    return ((const tn_sequence_attention_attr *)y->attr)->heads;
}

static tn_shape attention_shape(const tn_node *y)
{
    const tn_positions p = y->in[Q]->positions;
    const bool fits = p.max_len > 0 && p.max_len <= TN_SEQUENCE_LEN_MAX &&
                      tn_same_rows(y->in[Q], y->in[K]) && tn_same_rows(y->in[Q], y->in[V]) &&
                      y->in[Q]->shape.cols % heads_of(y) == 0;
    return fits ? tn_same_shape(y) : TN_MISFIT;
}

static size_t attention_state_bytes(const tn_node *y)
{
    return (size_t)tn_max_rows(y) * heads_of(y) * sizeof(tn_real);
}

static tn_vectors vectors_of(const tn_node *x, tn_real *matrix, size_t row, size_t col)
{
    return (tn_vectors){matrix != NULL ? matrix + row * x->stride + col : NULL, x->stride};
}

/* One head of the positions `own`. */
static tn_attention head_of(const tn_node *y, tn_range own, uint32_t head, tn_real *p)
{
    const uint32_t dim = y->shape.cols / heads_of(y);
    const size_t col = (size_t)head * dim;
    tn_real *norm = y->state;
    return (tn_attention){.n = own.to - own.from,
                          .dim = dim,
                          .scale = (tn_real)(1 / sqrt((double)dim)),
                          .q = vectors_of(y->in[Q], y->in[Q]->val, own.from, col),
                          .k = vectors_of(y->in[K], y->in[K]->val, own.from, col),
                          .v = vectors_of(y->in[V], y->in[V]->val, own.from, col),
                          .y = vectors_of(y, y->val, own.from, col),
                          .norm = norm + (size_t)own.from * heads_of(y) + head,
                          .norm_stride = heads_of(y),
                          .p = p};
}

static void attention_forward(tn_node *y, tn_range rows)
{
    tn_real p[TN_SEQUENCE_LEN_MAX + 1];
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_range own = tn_positions_of(y, r);
        for (uint32_t h = 0; h < heads_of(y); h++) {
            const tn_attention head = head_of(y, own, h, p);
            tn_attention_forward(&head);
        }
    }
}

/* Clears what y is the first to write of its operands' gradients. */
static void begin_gradients(const tn_node *y, tn_range own)
{
    for (uint32_t k = 0; k < OPERANDS; k++) {
        const tn_node *x = y->in[k];
        for (size_t p = own.from; p < own.to && x->grad != NULL; p++) {
            (void)tn_grad_row_to_add(y, x, p);
        }
    }
}

static void attention_backward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_range own = tn_positions_of(y, r);
        begin_gradients(y, own);
        for (uint32_t h = 0; h < heads_of(y); h++) {
            const size_t col = (size_t)h * (y->shape.cols / heads_of(y));
            const tn_attention head = head_of(y, own, h, NULL);
            const tn_attention_grads d = {.q = vectors_of(y->in[Q], y->in[Q]->grad, own.from, col),
                                          .k = vectors_of(y->in[K], y->in[K]->grad, own.from, col),
                                          .v = vectors_of(y->in[V], y->in[V]->grad, own.from, col),
                                          .y = vectors_of(y, y->grad, own.from, col)};
            tn_attention_backward(&head, &d);
        }
    }
}

/* As many positions in each row as there can be. */
static double attention_flops(const tn_node *y)
{
    return 4.0 * y->shape.rows * y->shape.cols * (y->positions.max_len + y->positions.extra);
}

static tn_node *attention_example(tn_graph *g)
{
    tn_node *in[OPERANDS];
    for (uint32_t k = 0; k < OPERANDS; k++) {
        in[k] = tn_sequence_leaf(g, 6, 0);
    }
    return tn_apply(g, &tn_op_sequence_attention, NULL, in, OPERANDS,
                    &(tn_sequence_attention_attr){.heads = 2});
}

const tn_op tn_op_sequence_attention = {
    TN_OP_MEMBERS(sequence_attention, attention),
    TN_OP_ATTRS(attention_attrs, tn_sequence_attention_attr),
    .formula = "y_i = sum_j softmax_j(q_i k_j / sqrt(d)) v_j within the row, by head",
    .n_in = OPERANDS,
    .positions = tn_positions_of_first,
    .by_row = true,
    .shape = attention_shape,
    .state_bytes = attention_state_bytes,
    .flops = attention_flops,
    .example = {.build = attention_example},
};
