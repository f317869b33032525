/* finish.h - makes a graph that was written ready to run: runs the passes over it and takes all
 * memory. */
#pragma once

#include "nn/graph/graph.h"

/* Names of the outputs to keep and, for training, of the loss. Other nodes may go, unless they
 * are in `fetch`. */
typedef struct tn_wanted {
    tn_node *logit;
    tn_node *loss; /* NULL: none */
    const char *const *fetch;
    uint32_t n_fetch;
    const char *const *feed; /* nodes whose val is set from outside, as that of tn_input */
    uint32_t n_feed;
} tn_wanted;

/* TN_E_CONFIG: unknown fetch or feed, a feed that no wanted output needs, or opts.products cannot
 * be had; TN_E_MEMORY. Once for a graph. */
tn_status tn_graph_finish(tn_graph *g, const tn_wanted *wanted, tn_error *err) TN_MUST_USE;
