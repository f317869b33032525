/* op_slot_attention.c - slots attend to each other, by several heads (AutoInt, Song 2019).
 *
 * Rows of q, k and v hold f vectors of length dim, each of them cut into heads, which attention.h
 * has. The state holds a number for each slot and head.
 */
#include "nn/op/attention.h"

#include "base/keys/record.h"
#include "config/field.h"
#include "nn/op/ops.h"

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

static size_t attention_state_bytes(const tn_node *y)
{
    const tn_attention_attr *a = attr_of(y);
    return (size_t)tn_max_rows(y) * (y->shape.cols / a->dim) * a->heads * sizeof(tn_real);
}

/* One head of the slots in a row of a matrix. */
static tn_vectors vectors_of(const tn_node *y, tn_real *row, uint32_t head)
{
    const tn_attention_attr *a = attr_of(y);
    return (tn_vectors){row != NULL ? row + (size_t)head * (a->dim / a->heads) : NULL, a->dim};
}

static tn_attention head_of(const tn_node *y, size_t row, uint32_t head, tn_real *p)
{
    const tn_attention_attr *a = attr_of(y);
    const size_t slots = y->shape.cols / a->dim;
    tn_real *norm = y->state;
    return (tn_attention){.n = slots,
                          .dim = a->dim / a->heads,
                          .scale = (tn_real)a->scale,
                          .q = vectors_of(y, tn_val_row(y->in[0], row), head),
                          .k = vectors_of(y, tn_val_row(y->in[1], row), head),
                          .v = vectors_of(y, tn_val_row(y->in[2], row), head),
                          .y = vectors_of(y, tn_val_row(y, row), head),
                          .norm = norm + (row * a->heads + head) * slots,
                          .norm_stride = 1,
                          .p = p};
}

static void attention_forward(tn_node *y, tn_range rows)
{
    tn_real p[TN_ATTENTION_SLOTS_MAX];
    for (size_t r = rows.from; r < rows.to; r++) {
        for (uint32_t h = 0; h < attr_of(y)->heads; h++) {
            const tn_attention head = head_of(y, r, h, p);
            tn_attention_forward(&head);
        }
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
        tn_real *const grad[] = {grad_of(y, 0, r), grad_of(y, 1, r), grad_of(y, 2, r)};
        for (uint32_t h = 0; h < attr_of(y)->heads; h++) {
            const tn_attention head = head_of(y, r, h, NULL);
            const tn_attention_grads d = {.q = vectors_of(y, grad[0], h),
                                          .k = vectors_of(y, grad[1], h),
                                          .v = vectors_of(y, grad[2], h),
                                          .y = vectors_of(y, tn_grad_row(y, r), h)};
            tn_attention_backward(&head, &d);
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
    .state_bytes = attention_state_bytes,
    .flops = attention_flops,
    .example = {.cols = 12, .attr = &(const tn_attention_attr){.dim = 4, .heads = 2, .scale = 0.5}},
};
