/* norms.h - what the operators that normalise columns share.
 *
 *     x^ = (x - mean) * rstd          per column, from a batch or from running values
 */
#ifndef TN_NN_NORMS_H
#define TN_NN_NORMS_H

#include "nn/op/ops.h"

/* Columns are worked on in pieces, so that sums in double fit the stack. */
enum { TN_NORM_PIECE = 64 };

static inline tn_range tn_norm_piece(tn_range cols, uint32_t from)
{
    return (tn_range){from, cols.to - from < TN_NORM_PIECE ? cols.to : from + TN_NORM_PIECE};
}

/* Mean and population variance of columns `cols` (at most a piece) over all rows, two passes. */
void tn_moments(const tn_node *x, tn_range cols, double *mean, double *var);

/* Column vectors that a norm keeps between its passes, in self->state. */
typedef struct tn_norm_state {
    tn_real *mean;
    tn_real *rstd;
    tn_real *mean_u;  /* of what flows back */
    tn_real *mean_ux; /* of that times x^ */
} tn_norm_state;
size_t tn_norm_state_bytes(const tn_node *self);
tn_norm_state tn_norm_state_of(const tn_node *self);

typedef struct tn_norm_rule {
    double epsilon, decay;
    bool unbiased;
} tn_norm_rule;
/* mean and rstd of columns `cols`: of the batch when training, which then also moves the running
 * values; else from the running values. */
void tn_norm_batch(tn_node *self, tn_range cols, tn_node *const running[2],
                   const tn_norm_rule *rule);

/* The row passes: y = gamma x^ + beta; dx (+)= gamma rstd (dy - mean_u - x^ mean_ux), u = dy. */
void tn_norm_forward(tn_node *self, tn_range rows);
void tn_norm_backward(tn_node *self, tn_range rows);
/* dgamma += sum dy x^, dbeta += sum dy; and, when the batch's own statistics were used, mean_u,
 * mean_ux. */
void tn_norm_backward_sums(tn_node *self, tn_range cols, bool of_batch);
/* Among peers: mean_u and mean_ux of the joint batch, out of the parts of all. */
void tn_norm_joint_means(const tn_node *self, tn_range cols);

/* A cumulative count, mean and sum of squared deviations of one column, kept as pairs of reals in
 * a state of shape [6, n]: high and low part of each. */
typedef struct tn_wide {
    double n, mean, m2;
} tn_wide;
tn_wide tn_wide_get(const tn_real *sums, uint32_t cols, uint32_t col);
void tn_wide_put(tn_real *sums, uint32_t cols, uint32_t col, tn_wide value);
tn_wide tn_wide_merge(tn_wide a, tn_wide b); /* Chan 1979 */

/* Among peers: a part pass that brings count, mean and sum of squared deviations of this batch's
 * columns, and what all parts of one column make, merged in rank order. */
void tn_moments_part(tn_node *self, tn_range cols);
tn_wide tn_moments_joint(const tn_node *self, uint32_t col);

#endif
