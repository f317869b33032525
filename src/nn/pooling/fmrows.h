/* fmrows.h - the loops of a factorization machine over the rows of the batch's small table.
 *
 * Of every example the sums over slots are kept, s = sum_i v_i and q = sum_i v_i^2; a value's
 * gradient is dy (s - v_i), which needs nothing else of the example.
 */
#ifndef TN_NN_FMROWS_H
#define TN_NN_FMROWS_H

#include "nn/pooling/embedloops.h"

typedef struct tn_fm_rows {
    const tn_sparse *sparse;
    const tn_slot_use *use; /* by slot of the schema; n_uses + 1 */
    uint32_t n_uses;
    uint32_t dim;
    tn_real *sum;      /* s: dim of every example */
    tn_real *squares;  /* q; backward does not look at it */
    const tn_real *dy; /* one of every example, `stride` apart; for backward */
    size_t stride;
} tn_fm_rows;

/* s += v and q += v^2 for a slot where each of these examples has one value, x = 1. */
void tn_fm_add_slot(const tn_fm_rows *p, const tn_embed_slot *slot, tn_range rows);

/* The same for one vector. */
void tn_fm_add(const tn_fm_rows *p, uint32_t row, const tn_real *v);

/* dv_j += dy (s - v_j) for the first n_rows entries of such a slot, or for the occurrences of
 * `keys`, all slots of which are such. */
void tn_fm_back_slot(const tn_fm_rows *p, const tn_embed_slot *slot, uint32_t n_rows);
void tn_fm_back_keys(const tn_fm_rows *p, tn_range keys);

#endif
