/* bags.h - batches whose slots have keys of their own, for tests of what goes into and out of rows.
 */
#ifndef TN_TEST_BAGS_H
#define TN_TEST_BAGS_H

#include "nn/graph/embed.h"
#include "nn/graph/graph.h"

enum { TN_BAGS_ROWS = 150, TN_BAGS_SLOTS = 5, TN_BAGS_KEYS = 7 /* per slot */ };

/* Slots 0, 1, 2 .. of `segment`, with these pools in turns. */
void tn_bags_slots(const tn_segment *segment, const tn_pool *pools, uint32_t n_pools,
                   tn_embed_slot out[TN_BAGS_SLOTS]);

typedef tn_node *tn_bags_build(tn_graph *g, const tn_segment *segment);

/* A step of a graph whose loss is a sum over y's columns, each by a factor of its own. Rows have
 * 1 + dim floats. Every example has one value in every slot; or (`mixed`) slot 1 none to two, slot
 * 2 one with a weight, slot 3 none to three with weights. */
typedef struct tn_bags_run {
    tn_bags_build *build;
    uint32_t dim;
    bool mixed;
    bool apart; /* without the list of occurrences */
    bool no_passes;
    tn_team *team;
} tn_bags_run;

/* y and the gradients of all rows; free it with tn_free. *op is what y's node does in the end. */
tn_real *tn_bags_step(const tn_bags_run *run, size_t *n, const tn_op **op);

#endif
