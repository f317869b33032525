/* nets.h - a network with a bit of everything, and a batch for it, for tests of graphs. */
#pragma once

#include "nn/op/ops.h"

typedef struct tn_test_net {
    tn_graph *g;
    tn_params *params;
    tn_node *deep, *numeric, *e, *hidden, *logit, *loss;
} tn_test_net;

/* Wide part, deep part with batch norm and dropout, cross v1, fm, numeric columns; deterministic
 * weights. `params` NULL: new ones. Not finished. */
tn_test_net tn_test_net_build(tn_params *params, const tn_graph_opts *opts);
void tn_test_net_finish(tn_test_net *n); /* logit and loss; new weights are initialised */

/* One of its inputs, in.deep, in.wide or in.numeric, for graphs made otherwise; NULL: none. */
tn_node *tn_test_net_input(tn_graph *g, const char *name);

typedef struct tn_test_batch tn_test_batch;
tn_test_batch *tn_test_batch_new(uint32_t rows, uint64_t seed);
void tn_test_batch_free(tn_test_batch *b);
tn_graph_feed tn_test_feed(tn_test_batch *b, bool training);
size_t tn_test_grads_size(const tn_test_batch *b); /* of feed.sparse->grads, in reals */
