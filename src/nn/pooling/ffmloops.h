/* ffmloops.h - the loops over pairs of field-aware vectors.
 *
 * Field f of an example is n blocks of `dim` numbers; block g is what f holds for field g:
 *
 *     field[0]   | 0,0 | 0,1 | 0,2 |
 *     field[1]   | 1,0 | 1,1 | 1,2 |      pairs: <0,1  1,0> + <0,2  2,0> + <1,2  2,1>
 *     field[2]   | 2,0 | 2,1 | 2,2 |
 *
 * What comes out has the same bits with every instruction set: the order of additions is written
 * down, lane by lane.
 */
#ifndef TN_NN_FFMLOOPS_H
#define TN_NN_FFMLOOPS_H

#include "base/thread/range.h"
#include "config/values.h"
#include "nn/graph/graph.h"

enum {
    TN_FFM_FIELDS_MAX = 1024, /* n * n * dim is at most TN_COLS_MAX */
    TN_FFM_WIDTH_MAX = 1024,  /* n * dim that embed_ffm does */
};

typedef struct tn_ffm_attr {
    uint32_t fields;
    uint32_t dim;
} tn_ffm_attr;
extern const tn_field tn_ffm_attrs[];

/* Whether x [B, fields * fields * dim] is an example's fields side by side. */
bool tn_ffm_fits(const tn_ffm_attr *attr, const tn_node *x);

typedef struct tn_ffm_row {
    uint32_t n;
    uint32_t dim;
    const tn_real *const *field; /* n pointers to n * dim numbers */
} tn_ffm_row;

/* Sum over f < g of <field[f][g], field[g][f]>. */
tn_real tn_ffm_pairs(const tn_ffm_row *x);

/* dfield[f][g] += dy field[g][f] for all f and the g of `to`, but for f = g. Only field[g] of these
 * g are read. `to` begins at a multiple of TN_FIELDS_TILE. */
void tn_ffm_pairs_back(const tn_ffm_row *x, tn_range to, tn_real dy, tn_real *const *dfield);

/* Whether training can do ffm(embed) without a matrix. */
bool tn_embed_can_ffm(const tn_node *embed, uint32_t dim);

#endif
