/* near.h - numbers of docs/numerics.md against what came out: 1e-6 max(1, |value|). */
#pragma once

#include "nn/op/ops.h"

/* Fails unless rows x cols numbers of n's matrix (or its gradient) are those of `want`, row by row.
 */
void tn_assert_near(const char *what, const tn_node *n, const tn_real *matrix, const double *want);
void tn_assert_value(double got, double want);

/* Copies rows x cols numbers into a leaf or a parameter. */
void tn_put(tn_node *n, const double *from);

/* A graph of one operator with given operands: `n` is its output, its gradient is `dy`. */
typedef struct tn_trial {
    tn_graph *g;
    tn_node *y;
    tn_node *factor;
    tn_graph_feed feed;
} tn_trial;
tn_graph *tn_trial_graph(uint32_t rows, bool train);
/* Finishes the graph with loss = sum(y * factor); leaves can be filled afterwards. */
tn_trial tn_trial_open(tn_graph *g, tn_node *y, uint32_t rows, bool training);
/* Forward, and backward when dy is not NULL. */
void tn_trial_run(tn_trial *t, const double *dy);
