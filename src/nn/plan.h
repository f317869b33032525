/* plan.h - a finished graph as text: what every node costs, and as a drawing.
 *
 *     node                 op          cols   params      kFLOP/row     KB/row  in
 *     in.deep              embed        312        -            0.6        1.2
 *     deep.1               dense        400   125200          249.6        1.6  in.deep
 *     ..
 */
#ifndef TN_NN_PLAN_H
#define TN_NN_PLAN_H

#include "base/text.h"
#include "nn/graph.h"

/* Rates of this machine with the graph's products, one thread, measured in some 20 ms. */
typedef struct tn_rates {
    double products; /* multiply-adds times two per second, in matrix products */
    double bytes;    /* per second, read or written by an elementwise loop over some MB */
} tn_rates;
tn_status tn_measure_rates(const tn_graph *g, tn_rates *out, tn_error *err) TN_MUST_USE;

/* Of a batch of max_rows. FLOPs and bytes: forward; with backward for a graph that trains. */
typedef struct tn_cost {
    uint64_t params; /* trained and frozen, without running values */
    double product_flops;
    double other_flops;
    double bytes;  /* touched outside of products */
    double memory; /* that the graph holds */
    double seconds;
} tn_cost;
tn_cost tn_graph_cost(const tn_graph *g, const tn_rates *rates, uint32_t threads);

/* One line per node, then the sums and the expected time of a step. */
void tn_graph_print(const tn_graph *g, const tn_rates *rates, uint32_t threads, tn_text *out);

/* For graphviz: inputs, operators, parameters as notes on their operator. */
void tn_graph_dot(const tn_graph *g, tn_text *out);

/* `--list-ops`: name, formula, parameters and constants of every operator. */
void tn_ops_print(tn_text *out);

#endif
