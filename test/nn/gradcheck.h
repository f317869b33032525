/* gradcheck.h - compares a backward with what finite differences say.
 *
 * Two checks, because either alone is blind: differences of single entries do not notice `=` where
 * `+=` should be, and doubling does not notice a factor.
 */
#pragma once

#include "nn/op/ops.h"

enum { TN_CHECK_ROWS = 6, TN_CHECK_ROWS_MAX = 9, TN_CHECK_SLOTS = 5, TN_CHECK_NUMERIC = 3 };

/* A graph around one example, and a small batch for it. */
typedef struct tn_check {
    tn_graph *g;
    tn_node *y;      /* what the example made */
    tn_node *factor; /* loss = sum(y * factor): a plain sum would hide swapped columns */
    tn_node *loss;
    bool has_grads;
    struct tn_check_batch *batch;
    tn_graph_feed feed;
} tn_check;

/* `build` adds nodes and returns the last one. Leaves get random values away from 0. */
void tn_check_open(tn_check *c, tn_node *(*build)(tn_graph *g), const tn_graph_opts *opts,
                   uint64_t seed);
void tn_check_close(tn_check *c);

/* The largest error over every entry of every leaf that has a gradient, relative to max(1, |a|,
 * |b|). *n_entries: how many there were. */
double tn_check_differences(tn_check *c, uint64_t *n_entries);

/* Whether a second backward of y doubles the gradients of its operands. After differences. */
bool tn_check_doubles(tn_check *c);

/* Number of values outside of all matrices (paddings, unused rows) that forward and backward have
 * changed. */
uint64_t tn_check_strays(tn_check *c);

/* splitmix64 in [-1.1, 1.1), kept away from 0 where relu has its kink. */
tn_real tn_random_real(uint64_t *state);
