/* peer_column_stats.h - statistics over columns of a joint batch, of which each peer has some rows.
 *
 *     part pass    every peer's columns  ──> own: count, a per column, b per column
 *     exchange     all: the parts of every peer, in rank order
 *     column pass  what the joint batch has, from all parts in that order: the same bits everywhere
 *
 * For operators with forward_part or backward_part (op.h). A peer without rows takes part with a
 * count of 0. Alone nothing of this runs, and tn_parts_of says so.
 */
#pragma once

#include "nn/graph/op.h"

#include <stdbool.h>

/* The peers that have the other parts of a joint batch. Each calls exchange as often as the others,
 * with as many numbers, in the order that the graph has: own[n] go to all, and what returns is
 * n of every peer, in rank order, lent until the next call. NULL: it failed, and the step is void.
 * Called by the thread that runs the graph, between two runs of its team. */
typedef struct tn_feed_peers {
    const double *(*exchange)(void *arg, const double *own, uint32_t n);
    void *arg;
    uint32_t n;
} tn_feed_peers;

/* Doubles of one peer's part of n columns. */
#define TN_PART_SIZE(n) (1 + 2 * (size_t)(n))

typedef struct tn_parts {
    double *own;       /* a part pass writes it, the count by whoever has column 0 */
    const double *all; /* TN_PART_SIZE of each peer; NULL: only this process's rows count */
    uint32_t n;        /* peers */
} tn_parts;

/* Returns the parts of the node whose passes run. */
const tn_parts *tn_parts_of(const tn_node *self);

/* Writes the part of column `col`, its count with column 0. */
void tn_part_put(const tn_node *self, uint32_t col, double count, double a, double b);

/* One peer's part of column `col`. */
typedef struct tn_part {
    double count, a, b;
} tn_part;
tn_part tn_part_get(const tn_node *self, uint32_t peer, uint32_t col);

/* For graph_passes.c: room before the first step. */
tn_status tn_parts_init(tn_graph *g, tn_error *err) TN_MUST_USE;
