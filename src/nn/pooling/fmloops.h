/* fmloops.h - the loops of the factorization-machine operators: a row of f vectors of length dim.
 */
#ifndef TN_NN_FMLOOPS_H
#define TN_NN_FMLOOPS_H

#include "nn/graph/graph.h"

typedef struct tn_fm_attr {
    uint32_t dim;
} tn_fm_attr;
extern const tn_field tn_fm_attrs[];

uint32_t tn_fm_dim(const tn_node *y);
double tn_fm_flops(const tn_node *y);

/* out[c] = 1/2 ((sum_f v_fc)^2 - sum_f v_fc^2); `sum` takes sum_f v_f. */
void tn_fm_pairs(const tn_real *row, uint32_t cols, uint32_t dim, tn_real *sum, tn_real *out);
/* The sum over all pairs from sum_f v_f and sum_f v_f^2, which is used up. */
tn_real tn_fm_pairs_of(uint32_t dim, const tn_real *sum, tn_real *squares);
/* dv_f (+)= d * (sum - v_f), elementwise. */
void tn_fm_pairs_back(const tn_node *y, size_t row, const tn_real *d);

/* Whether training can do fm(embed) without a matrix; and makes node y, which is that, do it. */
bool tn_embed_can_fm(const tn_node *embed, uint32_t dim);
void tn_become_embed_fm(tn_node *y, const tn_node *embed, uint32_t dim);

#endif
