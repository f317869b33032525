/* op_tasks.c - operators of models with several tasks: mix, both.
 *
 *   mix    y = sum_i g_i e_i            experts e_1 .. e_n of one width, a gate of n columns
 *          de_i += g_i dy               dg_i += <dy, e_i>
 *
 *   both   y = logit(sigmoid(a) sigmoid(b)), the score of two clicks of which both must come:
 *            = -ln(e^-a + e^-b + e^-(a+b))
 *          da += dy (e^-a + e^-(a+b)) / s,   db += dy (e^-b + e^-(a+b)) / s,   s the sum above
 *
 * The formula of both follows from p / (1 - p) with 1 / p = (1 + e^-a)(1 + e^-b). It forms neither
 * p nor 1 - p, which would lose their digits near 0 and near 1. The largest of the three powers is
 * taken out of the sum, so that none of them overflows and the logarithm is one of 1 .. 3.
 */
#include "nn/op/ops.h"
#include "nn/vec/vec.h"
#include "nn/vec/vecmath.h"

static tn_shape mix_shape(const tn_node *y)
{
    const tn_shape gate = y->in[0]->shape;
    bool fits = y->n_in >= 2 && gate.cols == y->n_in - 1;
    for (uint32_t i = 2; i < y->n_in; i++) {
        fits = fits && y->in[i]->shape.cols == y->in[1]->shape.cols;
    }
    return fits ? (tn_shape){gate.rows, y->in[1]->shape.cols} : TN_MISFIT;
}

static void mix_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_real *gate = tn_val_row(y->in[0], r);
        for (uint32_t i = 1; i < y->n_in; i++) {
            tn_vec_scale(y->shape.cols, tn_val_row(y, r), tn_val_row(y->in[i], r), gate[i - 1],
                         i > 1);
        }
    }
}

static void mix_backward(tn_node *y, tn_range rows)
{
    const tn_node *gate = y->in[0];
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_real *dy = tn_grad_row(y, r);
        tn_real *dg = gate->grad != NULL ? tn_grad_row_to_add(y, gate, r) : NULL;
        for (uint32_t i = 1; i < y->n_in; i++) {
            const tn_node *e = y->in[i];
            if (e->grad != NULL) {
                tn_vec_scale(y->shape.cols, tn_grad_row(e, r), dy, tn_val_row(gate, r)[i - 1],
                             tn_adds(y, e));
            }
            if (dg != NULL) {
                dg[i - 1] += tn_vec_dot(y->shape.cols, dy, tn_val_row(e, r));
            }
        }
    }
}

static double mix_flops(const tn_node *y)
{
    return 2.0 * (y->n_in - 1) * y->shape.rows * y->shape.cols;
}

static tn_node *mix_example(tn_graph *g)
{
    tn_node *e = tn_input(g, NULL, 5, true);
    return tn_apply(g, &tn_op_mix, NULL,
                    TN_IN(tn_input(g, NULL, 3, true), tn_input(g, NULL, 5, true), e,
                          tn_input(g, NULL, 5, true)),
                    NULL);
}

const tn_op tn_op_mix = {
    TN_OP_MEMBERS(mix, mix),
    .formula = "y = g1 e1 + g2 e2 + .., g the columns of the first operand",
    .n_in = TN_ANY,
    .shape = mix_shape,
    .flops = mix_flops,
    .example = {.build = mix_example},
};

/* The score, and its derivatives. */
typedef struct both {
    tn_real y, da, db;
} both;

static inline both both_of(tn_real a, tn_real b)
{
    const tn_real most = -a > -b ? -a : -b;
    const tn_real c = -a - b;
    const tn_real top = c > most ? c : most;
    const tn_real ea = tn_exp_of(-a - top);
    const tn_real eb = tn_exp_of(-b - top);
    const tn_real ec = tn_exp_of(c - top);
    const tn_real sum = ea + eb + ec;
    return (both){-top - tn_log_of(sum), (ea + ec) / sum, (eb + ec) / sum};
}

static tn_shape both_shape(const tn_node *y)
{
    const bool fits = y->in[0]->shape.cols == y->in[1]->shape.cols;
    return fits ? y->in[0]->shape : TN_MISFIT;
}

static void both_forward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_real *a = tn_val_row(y->in[0], r);
        const tn_real *b = tn_val_row(y->in[1], r);
        for (uint32_t c = 0; c < y->shape.cols; c++) {
            tn_val_row(y, r)[c] = both_of(a[c], b[c]).y;
        }
    }
}

static void add_slope(const tn_node *y, size_t r, uint32_t k)
{
    const tn_node *x = y->in[k];
    const bool adds = tn_adds(y, x);
    tn_real *dx = tn_grad_row(x, r);
    for (uint32_t c = 0; c < y->shape.cols; c++) {
        const both all = both_of(tn_val_row(y->in[0], r)[c], tn_val_row(y->in[1], r)[c]);
        const tn_real d = tn_grad_row(y, r)[c] * (k == 0 ? all.da : all.db);
        dx[c] = (adds ? dx[c] : 0) + d;
    }
}

static void both_backward(tn_node *y, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        for (uint32_t k = 0; k < 2; k++) {
            if (y->in[k]->grad != NULL) {
                add_slope(y, r, k);
            }
        }
    }
}

const tn_op tn_op_both = {
    TN_OP_MEMBERS(both, both),
    .formula = "y = logit(sigmoid(a) sigmoid(b)) = -ln(e^-a + e^-b + e^-(a+b))",
    .n_in = 2,
    .shape = both_shape,
    .flops_each = 40,
    .example = {.cols = 5},
};
