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

/* The positions of one row of the batch as a matrix of n columns, and what goes with them: loops
 * over it see a whole history, since its vectors are too short to call a function for each. */
typedef struct tn_history_area {
    size_t len, n;
    const tn_real *h; /* values, or gradients, of the positions */
    size_t h_stride;
    const tn_real *dy; /* gradients of the operator's positions */
    size_t dy_stride;
    tn_real *dh; /* gradients that are written */
    size_t dh_stride;
    bool add; /* to dh; else it is assigned */
} tn_history_area;

/* Asks for the values and gradients of a position that is some positions ahead: what a sweep
 * touches first is far away, and the next row is in another place than a processor expects. */
static inline void tn_history_ahead(const tn_history_area *a, size_t p)
{
    enum { AHEAD = 8, LINE = 16 };
    const size_t next = p + AHEAD;
    for (size_t c = 0; c < a->n && next < a->len; c += LINE) {
        __builtin_prefetch(a->h + next * a->h_stride + c);
        if (a->dh != NULL) {
            __builtin_prefetch(a->dh + next * a->dh_stride + c, 1);
        }
    }
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
