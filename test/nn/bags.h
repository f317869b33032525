/* bags.h - batches for tests of what goes into and out of rows.
 */
#pragma once

#include "nn/graph/embed.h"
#include "nn/graph/graph.h"

enum { TN_BAGS_ROWS = 150, TN_BAGS_SLOTS = 5, TN_BAGS_KEYS = 7 /* per slot */ };

/* Slots 0, 1, 2 .. of `segment`, with these pools in turns. */
void tn_bags_slots(const tn_segment *segment, const tn_pool *pools, uint32_t n_pools,
                   tn_embed_slot out[TN_BAGS_SLOTS]);

typedef tn_node *tn_bags_build(tn_graph *g, const tn_segment *segment);

/* How rows are cut into blocks for backward. */
typedef enum tn_bags_cut {
    TN_BAGS_BY_SLOT,  /* all rows of a slot; `shared`: of all slots, which is the same block */
    TN_BAGS_IN_ONE,   /* all rows of all slots */
    TN_BAGS_IN_THREE, /* the rows of a slot in three, none of them whole */
    TN_BAGS_CUTS
} tn_bags_cut;

/* A step of a graph whose loss is a sum over y's columns, each by a factor of its own. Rows have
 * 1 + dim floats; behind those of a slot is a gap. Every example has one value in every slot; or
 * (`mixed`) slot 1 none to two, slot 2 one with a weight, slot 3 none to three with weights. */
typedef struct tn_bags_run {
    tn_bags_build *build;
    uint32_t dim;
    bool mixed;
    bool shared; /* all slots take the rows of slot 0 */
    tn_bags_cut cut;
    bool no_passes;
    tn_team *team;
} tn_bags_run;

/* y and the gradients of all rows; free it with tn_free. *op is what y's node does in the end.
 * Fails when a gap between blocks was written to. */
tn_real *tn_bags_step(const tn_bags_run *run, size_t *n, const tn_op **op);

/* The same, by plain loops, of a graph that is one embedding of all slots, pooled by sum: a row's
 * gradient is added up by example, then by slot, then by place in the slot. */
tn_real *tn_bags_by_hand(const tn_bags_run *run, size_t *n);
