/* op_cross.c - cross layers (Wang 2017 and 2021): cross, cross_merge.
 *
 *   cross         s    = x w  of each row
 *                 y    = x0 s + b + x
 *     backward    t    = dy x0  of each row
 *                 dx  += dy + t w,  dx0 += s dy
 *                 dw  += sum_r t x,  db += sum_r dy
 *
 * cross_merge is the end of a layer of the second kind, whose h comes from x by matmul and bias, or
 * by two of them for low rank:
 *
 *   cross_merge   y    = x0 * h + x
 *     backward    dx0 += dy * h,  dh += dy * x0,  dx += dy
 */
#include "base/keys/init.h"
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

enum { X0, X, W, B };

/* State: s and t of each row. */
typedef struct row_dots {
    tn_real s, t;
} row_dots;

static size_t cross_state_bytes(const tn_node *y)
{
    return (size_t)tn_max_rows(y) * sizeof(row_dots);
}

static row_dots *dots_of(const tn_node *y, size_t r)
{
    return (row_dots *)y->state + r;
}

static void cross_forward(tn_node *y, tn_range rows)
{
    uint32_t n = y->shape.cols;
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_real *x = tn_val_row(y->in[X], r);
        tn_real s = tn_vec_dot(n, x, y->in[W]->val);
        dots_of(y, r)->s = s;
        tn_vec_add(n, tn_val_row(y, r), x, y->in[B]->val);
        tn_vec_scale(n, tn_val_row(y, r), tn_val_row(y->in[X0], r), s, true);
    }
}

static void cross_backward(tn_node *y, tn_range rows)
{
    const tn_node *x0 = y->in[X0];
    const tn_node *x = y->in[X];
    uint32_t n = y->shape.cols;
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_real *dy = tn_grad_row(y, r);
        row_dots *dots = dots_of(y, r);
        dots->t = tn_vec_dot(n, dy, tn_val_row(x0, r));
        if (x->grad != NULL) {
            tn_vec_copy(n, tn_grad_row(x, r), dy, tn_adds(y, x));
            tn_vec_scale(n, tn_grad_row(x, r), y->in[W]->val, dots->t, true);
        }
        if (x0->grad != NULL) {
            tn_vec_scale(n, tn_grad_row(x0, r), dy, dots->s, tn_adds(y, x0));
        }
    }
}

static void cross_backward_params(tn_node *y, tn_range cols)
{
    const tn_node *w = y->in[W];
    const tn_node *b = y->in[B];
    size_t n = cols.to - cols.from;
    for (size_t r = 0; r < y->shape.rows; r++) {
        if (w->grad != NULL) {
            tn_vec_scale(n, w->grad + cols.from, tn_val_row(y->in[X], r) + cols.from,
                         dots_of(y, r)->t, r > 0 || tn_adds(y, w));
        }
        if (b->grad != NULL) {
            tn_vec_copy(n, b->grad + cols.from, tn_grad_row(y, r) + cols.from,
                        r > 0 || tn_adds(y, b));
        }
    }
}

static tn_node *cross_example(tn_graph *g)
{
    tn_init init = {.kind = TN_INIT_CONSTANT};
    tn_shape s = {1, 5};
    tn_node *x0 = tn_input(g, NULL, 5, true);
    tn_node *first[] = {tn_param(g, NULL, NULL, s, init), tn_param(g, NULL, NULL, s, init)};
    tn_node *second[] = {tn_param(g, NULL, NULL, s, init), tn_param(g, NULL, NULL, s, init)};
    tn_node *x1 = tn_apply(g, &tn_op_cross, NULL, TN_IN(x0, x0, first[0], first[1]), NULL);
    return tn_apply(g, &tn_op_cross, NULL, TN_IN(x0, x1, second[0], second[1]), NULL);
}

static const char *const cross_params[] = {"w", "b", NULL};

const tn_op tn_op_cross = {
    TN_OP_MEMBERS(cross, cross),
    .shape = tn_same_shape,
    .example = {.build = cross_example},
    .formula = "y = x0 (x w) + b + x",
    .n_in = 2,
    .params = cross_params,
    .state_bytes = cross_state_bytes,
    .cols[TN_BACKWARD_PARAMS] = cross_backward_params,
    .flops_each = 5,
};

enum { MERGE_X0, MERGE_H, MERGE_X };

static void merge_forward(tn_node *y, tn_range rows)
{
    uint32_t n = y->shape.cols;
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_vec_copy(n, tn_val_row(y, r), tn_val_row(y->in[MERGE_X], r), false);
        tn_vec_mul(n, tn_val_row(y, r), tn_val_row(y->in[MERGE_X0], r),
                   tn_val_row(y->in[MERGE_H], r), true);
    }
}

static void merge_backward(tn_node *y, tn_range rows)
{
    const tn_node *x0 = y->in[MERGE_X0];
    const tn_node *h = y->in[MERGE_H];
    const tn_node *x = y->in[MERGE_X];
    uint32_t n = y->shape.cols;
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_real *dy = tn_grad_row(y, r);
        if (x0->grad != NULL) {
            tn_vec_mul(n, tn_grad_row(x0, r), dy, tn_val_row(h, r), tn_adds(y, x0));
        }
        if (h->grad != NULL) {
            tn_vec_mul(n, tn_grad_row(h, r), dy, tn_val_row(x0, r), tn_adds(y, h));
        }
        if (x->grad != NULL) {
            tn_vec_copy(n, tn_grad_row(x, r), dy, tn_adds(y, x));
        }
    }
}

static tn_node *merge_example(tn_graph *g)
{
    tn_node *x0 = tn_input(g, NULL, 5, true);
    tn_node *h = tn_input(g, NULL, 5, true);
    return tn_apply(g, &tn_op_cross_merge, NULL,
                    TN_IN(x0, h, tn_apply(g, &tn_op_cross_merge, NULL, TN_IN(x0, h, x0), NULL)),
                    NULL);
}

const tn_op tn_op_cross_merge = {
    TN_OP_MEMBERS(cross_merge, merge),
    .shape = tn_same_shape,
    .example = {.build = merge_example},
    .formula = "y = x0 * h + x",
    .n_in = 3,
    .flops_each = 2,
};
