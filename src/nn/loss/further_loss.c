/* further_loss.c - the loss of another score, and how much it counts. */
#include "nn/loss/further_loss.h"

#include "nn/graph/graph.h"
#include "nn/graph/peer_column_stats.h"

enum { SUM, OUTPUT, OTHER };

/* The state of a node, which its passes over columns write. */
typedef struct further_state {
    tn_real weight; /* c */
    tn_real shift;  /* S / W; 0: c is a constant */
} further_state;

static size_t further_state_bytes(const tn_node *y)
{
    (void)y;
    return sizeof(further_state);
}

static tn_shape further_shape(const tn_node *y)
{
    bool fits = true;
    for (uint32_t i = SUM; i <= OTHER; i++) {
        fits = fits && y->in[i]->shape.cols == 1;
    }
    return fits ? y->in[SUM]->shape : TN_MISFIT;
}

static double weight_of_row(const tn_node *y, size_t r)
{
    const tn_real *weight = tn_feed_of(y)->weight;
    return weight != NULL ? (double)weight[r] : 1;
}

/* Sums over this batch: weights, and the two losses by them; or dy k, in a. */
static tn_part sums_of(const tn_node *y, bool backward)
{
    tn_part sum = {0};
    for (size_t r = 0; r < y->shape.rows; r++) {
        const double w = weight_of_row(y, r);
        const double k = (double)*tn_val_row(y->in[OTHER], r);
        const double l = (double)*tn_val_row(y->in[OUTPUT], r);
        if (w > 0) {
            sum.count += w;
            sum.a += backward ? (double)*tn_grad_row(y, r) * k : w * l;
            sum.b += w * k;
        }
    }
    return sum;
}

/* Returns the sums over the joint batch, if its parts are there, else those of this one. */
static tn_part joint_sums(const tn_node *y, bool backward)
{
    const tn_parts *parts = tn_parts_of(y);
    tn_part sum = {0};
    for (uint32_t p = 0; parts->all != NULL && p < parts->n; p++) {
        const tn_part part = tn_part_get(y, p, 0);
        sum.count += part.count;
        sum.a += part.a;
        sum.b += part.b;
    }
    return parts->all != NULL ? sum : sums_of(y, backward);
}

static void put_part(const tn_node *y, bool backward)
{
    const tn_part sum = sums_of(y, backward);
    tn_part_put(y, 0, sum.count, sum.a, sum.b);
}

static void forward_part(tn_node *y, tn_range cols)
{
    (void)cols;
    put_part(y, false);
}

static void forward_cols(tn_node *y, tn_range cols)
{
    (void)cols;
    const tn_part sum = joint_sums(y, false);
    const double asked = ((const tn_further_loss_attr *)y->attr)->weight;
    const double excess = sum.b > sum.a ? (sum.b - sum.a) / sum.count : 0;
    further_state *s = y->state;
    *s = (further_state){.weight = (tn_real)(asked >= 0 ? asked : excess)};
}

static void further_forward(tn_node *y, tn_range rows)
{
    const further_state *s = y->state;
    for (size_t r = rows.from; r < rows.to; r++) {
        const tn_real k = *tn_val_row(y->in[OTHER], r);
        *tn_val_row(y, r) = *tn_val_row(y->in[SUM], r) + (s->weight > 0 ? s->weight * k : 0);
    }
}

static void backward_part(tn_node *y, tn_range cols)
{
    (void)cols;
    put_part(y, true);
}

static void backward_cols(tn_node *y, tn_range cols)
{
    (void)cols;
    further_state *s = y->state;
    const bool moves = ((const tn_further_loss_attr *)y->attr)->weight < 0 && s->weight > 0;
    const tn_part sum = joint_sums(y, true);
    s->shift = moves && sum.count > 0 ? (tn_real)(sum.a / sum.count) : 0;
}

static void further_backward(tn_node *y, tn_range rows)
{
    const further_state *s = y->state;
    for (uint32_t i = SUM; i <= OTHER; i++) {
        const tn_node *x = y->in[i];
        const bool adds = tn_adds(y, x);
        for (size_t r = rows.from; r < rows.to && x->grad != NULL; r++) {
            const tn_real dy = *tn_grad_row(y, r);
            const tn_real shift = (tn_real)weight_of_row(y, r) * s->shift;
            const tn_real d = i == SUM ? dy : i == OUTPUT ? -shift : s->weight * dy + shift;
            tn_real *dx = tn_grad_row(x, r);
            *dx = (adds ? *dx : 0) + d;
        }
    }
}

const tn_op tn_op_further_loss = {
    .name = "further_loss",
    .formula = "y = sum + c k, c a number, or how much larger the mean of k is than that of l",
    .n_in = 3,
    .attr_size = sizeof(tn_further_loss_attr),
    .shape = further_shape,
    .state_bytes = further_state_bytes,
    .forward = further_forward,
    .backward = further_backward,
    .cols[TN_FORWARD_PART] = forward_part,
    .cols[TN_FORWARD_COLS] = forward_cols,
    .cols[TN_BACKWARD_PART] = backward_part,
    .cols[TN_BACKWARD_COLS] = backward_cols,
    .is_loss = true,
};
