/* sequence.h - what operators over the positions of a sequence share (nn/graph/op.h: tn_positions).
 *
 * They are passed rows of the batch (by_row) and walk the positions of each themselves.
 */
#pragma once

#include "nn/op/ops.h"

/* Returns the positions of row r of the batch in n. */
static inline tn_range tn_positions_of(const tn_node *n, size_t r)
{
    return tn_rows_of(n, (tn_range){(uint32_t)r, (uint32_t)r + 1});
}

static inline bool tn_has_positions(const tn_node *n)
{
    return n->positions.max_len > 0;
}

/* Rows of a node: those of the first operand; those of the batch. */
static inline tn_positions tn_positions_of_first(const tn_node *y)
{
    return y->in[0]->positions;
}

static inline tn_positions tn_positions_none(const tn_node *y)
{
    (void)y;
    return (tn_positions){0};
}

/* A leaf of `cols` columns over the positions of slot 1, for examples; `extra` as in tn_positions.
 * */
static inline tn_node *tn_sequence_leaf(tn_graph *g, uint32_t cols, uint32_t extra)
{
    return tn_input_positions(g, NULL, cols,
                              (tn_positions){.slot = 1, .max_len = 3, .extra = extra}, true);
}
