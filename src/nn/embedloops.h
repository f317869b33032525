/* embedloops.h - the inner loops of pooling and of its gradient. */
#ifndef TN_NN_EMBEDLOOPS_H
#define TN_NN_EMBEDLOOPS_H

#include "base/range.h"
#include "nn/embed.h"

#include <stdbool.h>
#include <stddef.h>

#define TN_NO_SLOT UINT32_MAX

/* What an embed node keeps; see op_embed.c. */
typedef struct tn_embed_list {
    uint32_t n;
    const tn_embed_slot *slot;
    const uint32_t *at;
    uint32_t n_of_slot;
    const uint32_t *of_slot;
    bool has_max;
} tn_embed_list;

/* One slot of one example: entries of its bag to its columns of the output. */
typedef struct tn_pooling {
    const tn_embed_slot *slot;
    const tn_sparse *sparse;
    const tn_bag *bag;
    tn_range entries; /* not empty */
    tn_segment segment;
    tn_real *out;
    uint32_t cols;
} tn_pooling;

void tn_pool_sum(const tn_pooling *p, tn_real scale);
void tn_pool_max(const tn_pooling *p, uint32_t *winner); /* winner[c]: entry of the bag */
void tn_pool_concat(const tn_pooling *p);

typedef struct tn_won {
    const uint32_t *winner;
    uint32_t entry;
    tn_real x;
} tn_won;

void tn_add_scaled(uint32_t dim, tn_real *dv, const tn_real *dout, tn_real by);
void tn_add_won(uint32_t dim, tn_real *dv, const tn_real *dout, const tn_won *won);

#endif
