/* productsplit.h - y = x W where the rows of a batch have columns of x in common (tn_shared):
 *
 *     x W  =  x_s W_s  +  x_o W_o       s: shared columns, one row of them;  o: each row's own
 *
 * The first term is computed once, every row begins with it. Rows of W lie in the order of the
 * columns, so those of each kind are copied side by side; they stay until others are shared. Only
 * graphs of opts.shares have the room.
 */
#pragma once

#include "nn/gemm/gemm.h"
#include "nn/graph/op.h"

typedef struct tn_product_split {
    size_t n_shared, n_own; /* columns of x; none yet: 0, 0 */
    bool wanted;            /* for the rows of this forward */
    bool alike;             /* the shared columns are those that `shared` and `own` were made for */
    uint32_t *col;          /* own columns, ascending, then shared ones */
    bool *is_shared;        /* flags of the columns of x, then the same of last time */
    tn_real *w;             /* weights, as words where they are in bfloat16: */
    tn_product own, shared; /* weights of each kind, in `w` */
    tn_real *base;          /* x_s W_s */
    tn_real *x;             /* columns of one kind of a tile */
} tn_product_split;

/* Returns the bytes of the node's state that follow its own. */
size_t tn_split_bytes(const tn_node *y);

/* Asked of every tile, in order; `before`: bytes of the node's own state. NULL: nothing to win. */
tn_product_split *tn_split_find(const tn_node *y, tn_range rows, size_t before);

/* Before the first tile: weights of both kinds, in words if `halves`. */
void tn_split_weights(const tn_node *y, tn_product_split *s, bool halves);
/* x of the shared columns, one row; and of the others. */
tn_mat tn_split_shared(const tn_node *y, const tn_product_split *s);
tn_mat tn_split_own(const tn_node *y, const tn_product_split *s, tn_range rows);
/* y = x_s W_s in every row. */
void tn_split_begin(const tn_node *y, const tn_product_split *s, tn_range rows);
