/* peer_column_stats.c - the parts that peers exchange of statistics over columns. */
#include "nn/graph/peer_column_stats.h"

#include "base/core/alloc.h"
#include "nn/graph/graphcore.h"

const tn_parts *tn_parts_of(const tn_node *self)
{
    return &self->graph->parts;
}

void tn_part_put(const tn_node *self, uint32_t col, double count, double a, double b)
{
    const uint32_t cols = self->shape.cols;
    double *own = self->graph->parts.own;
    if (col == 0) {
        own[0] = count;
    }
    own[1 + col] = a;
    own[1 + (size_t)cols + col] = b;
}

tn_part tn_part_get(const tn_node *self, uint32_t peer, uint32_t col)
{
    const tn_parts *p = &self->graph->parts;
    const uint32_t cols = self->shape.cols;
    TN_ASSERT(peer < p->n && col < cols);
    const double *part = p->all + peer * TN_PART_SIZE(cols);
    return (tn_part){part[0], part[1 + col], part[1 + (size_t)cols + col]};
}

tn_status tn_parts_init(tn_graph *g, tn_error *err)
{
    size_t most = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->node[i];
        const bool has = n->place->alive && n->op != NULL && n->op->forward_part != NULL;
        const size_t size = has ? TN_PART_SIZE(n->shape.cols) : 0;
        most = size > most ? size : most;
    }
    if (most == 0 || !g->opts.train) {
        return TN_OK;
    }
    g->parts.own = tn_try_alloc(most, sizeof *g->parts.own, "statistics of a graph", err);
    return g->parts.own != NULL ? TN_OK : TN_E_MEMORY;
}

/* After a failure the step goes on with what this peer has: it is void, as the caller knows. */
void tn_parts_exchange(const tn_node *self)
{
    tn_graph *g = self->graph;
    const tn_feed_peers *peers = g->feed.peers;
    const double *all =
        peers->exchange(peers->arg, g->parts.own, (uint32_t)TN_PART_SIZE(self->shape.cols));
    g->parts.all = all != NULL ? all : g->parts.own;
    g->parts.n = all != NULL ? peers->n : 1;
}

void tn_parts_forget(tn_graph *g)
{
    g->parts.all = NULL;
    g->parts.n = 0;
}
