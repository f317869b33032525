/* executor_keys.c - the gradients of keys, from those of the nodes that embed them.
 *
 *     keys    0 ..  511    every embedding node's occurrences of them, in the order of rows
 */
#include "nn/graph/graphcore.h"

enum { TILE_KEYS = 512 };

/* All embedding nodes on one tile of keys, while its gradients are in cache. */
static void do_keys(void *job, uint32_t tile)
{
    const tn_graph *g = job;
    const tn_sparse *s = g->feed.sparse;
    tn_range keys = tn_tile(s->n, TILE_KEYS, tile);
    tn_clear(s->grads + s->at[keys.from], s->at[keys.to] - s->at[keys.from]);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node *n = g->node[i];
        if (n->place->alive && n->op != NULL && n->op->backward_keys != NULL && n->grad != NULL) {
            n->op->backward_keys(n, keys);
        }
    }
}

/* Blocks of all keys' gradients, for nodes that go through the examples themselves. */
static void do_fields(void *job, uint32_t tile)
{
    tn_node *n = job;
    n->op->backward_fields(n, tn_tile(n->op->fields(n), TN_FIELDS_TILE, tile));
}

void tn_sweep_keys(tn_graph *g)
{
    const tn_sparse *s = g->feed.sparse;
    if (s == NULL || s->grads == NULL || s->n == 0) {
        return;
    }
    tn_team_run(g->opts.team, tn_tile_count(s->n, TILE_KEYS), do_keys, g);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node *n = g->node[i];
        if (n->place->alive && n->op != NULL && n->op->backward_fields != NULL && n->grad != NULL) {
            tn_team_run(g->opts.team, tn_tile_count(n->op->fields(n), TN_FIELDS_TILE), do_fields,
                        n);
        }
    }
}
