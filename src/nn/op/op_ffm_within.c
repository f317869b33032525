/* op_ffm_within.c - pairs of values of one field, in a field-aware factorization machine.
 *
 * A row of x holds the sums of values as for op_ffm.c, q the sums of their squares
 * (op_embed_squares.c). Values of field i meet by the vectors that they hold for i itself:
 *
 *   forward     y        = 1/2 sum_i (|A[i,i]|^2 - sum_c q[i,i]_c)
 *   backward    dA[i,i] += dy A[i,i],  dq[i,i] -= dy / 2
 */
#include "nn/op/ops.h"
#include "nn/pooling/ffmloops.h"
#include "nn/vec/vec.h"

static const tn_ffm_attr *attr_of(const tn_node *y)
{
    return y->attr;
}

static tn_shape within_shape(const tn_node *y)
{
    const tn_node *x = y->in[0];
    bool fits = tn_ffm_fits(attr_of(y), x) && y->in[1]->shape.cols == x->shape.cols;
    return fits ? (tn_shape){x->shape.rows, 1} : TN_MISFIT;
}

/* Where A[i,i] begins. */
static size_t own_block(const tn_ffm_attr *a, uint32_t i)
{
    return ((size_t)i * a->fields + i) * a->dim;
}

static void within_forward(tn_node *y, tn_range rows)
{
    const tn_ffm_attr *a = attr_of(y);
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_real sum = 0;
        for (uint32_t i = 0; i < a->fields; i++) {
            const tn_real *own = tn_val_row(y->in[0], r) + own_block(a, i);
            sum += tn_vec_dot(a->dim, own, own) -
                   tn_vec_sum(a->dim, tn_val_row(y->in[1], r) + own_block(a, i));
        }
        *tn_val_row(y, r) = sum / 2;
    }
}

static void clear_unless_added(const tn_node *y, const tn_node *operand, size_t row)
{
    if (operand->grad != NULL && !tn_adds(y, operand)) {
        tn_clear(tn_grad_row(operand, row), operand->shape.cols);
    }
}

static void within_backward(tn_node *y, tn_range rows)
{
    const tn_ffm_attr *a = attr_of(y);
    const tn_node *x = y->in[0];
    const tn_node *q = y->in[1];
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_real dy = *tn_grad_row(y, r);
        clear_unless_added(y, x, r);
        clear_unless_added(y, q, r);
        for (uint32_t i = 0; i < a->fields; i++) {
            size_t at = own_block(a, i);
            if (x->grad != NULL) {
                tn_vec_scale(a->dim, tn_grad_row(x, r) + at, tn_val_row(x, r) + at, dy, true);
            }
            if (q->grad != NULL) {
                tn_vec_shift(a->dim, tn_grad_row(q, r) + at, -dy / 2);
            }
        }
    }
}

static double within_flops(const tn_node *y)
{
    const tn_ffm_attr *a = attr_of(y);
    return 3.0 * y->shape.rows * a->fields * a->dim;
}

static tn_node *within_example(tn_graph *g)
{
    enum { FIELDS = 3, DIM = 2, COLS = FIELDS * FIELDS * DIM };
    tn_node *x = tn_input(g, NULL, COLS, true);
    return tn_ffm_within(g, NULL, (tn_node *[]){x, tn_input(g, NULL, COLS, true)}, FIELDS, DIM);
}

const tn_op tn_op_ffm_within = {
    .name = "ffm_within",
    .formula = "y = sum of <x_i v_i, x_j v_j> over the pairs of values of one field",
    .n_in = 2,
    .attrs = tn_ffm_attrs,
    .attr_size = sizeof(tn_ffm_attr),
    .shape = within_shape,
    .forward = within_forward,
    .backward = within_backward,
    .flops = within_flops,
    .example = within_example,
};

tn_node *tn_ffm_within(tn_graph *g, const char *name, tn_node *const x_squares[2], uint32_t fields,
                       uint32_t dim)
{
    return tn_apply(g, &tn_op_ffm_within, name, x_squares, 2,
                    &(tn_ffm_attr){.fields = fields, .dim = dim});
}
