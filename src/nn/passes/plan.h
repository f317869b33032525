/* plan.h - a finished graph as text: what every node costs, and as a drawing.
 *
 *     node                 op          cols   params      kFLOP/row     KB/row  in
 *     in.deep              embed        312        -            0.6        1.2
 *     deep.1               dense        400   125200          249.6        1.6  in.deep
 */
#pragma once

#include "base/core/text.h"
#include "nn/graph/graph.h"

/* Multiply-adds times two per second of one thread, in matrix products as this graph makes them;
 * measured in a few ms. */
tn_status tn_measure_products(const tn_graph *g, double *out, tn_error *err) TN_MUST_USE;

/* Costs of a batch of max_rows, however short the latest one was. FLOPs and bytes: forward; with
 * backward for a graph that trains. */
typedef struct tn_cost {
    uint64_t params; /* trained and frozen, without running values */
    double product_flops;
    double other_flops;
    double bytes;  /* touched outside of products */
    double memory; /* bytes that the graph holds */
} tn_cost;
tn_cost tn_graph_cost(const tn_graph *g);

/* One line per node, then the sums. `products`: as tn_measure_products. */
void tn_graph_print(const tn_graph *g, double products, tn_text *out);

/* For graphviz: inputs, operators, parameters as notes on their operator. */
void tn_graph_dot(const tn_graph *g, tn_text *out);
