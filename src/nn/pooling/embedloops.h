/* embedloops.h - the inner loops of pooling and of its gradient. */
#ifndef TN_NN_EMBEDLOOPS_H
#define TN_NN_EMBEDLOOPS_H

#include "base/thread/range.h"
#include "nn/graph/embed.h"
#include "nn/graph/op.h"

#include <stdbool.h>
#include <stddef.h>

#define TN_NO_SLOT UINT32_MAX

/* What a slot of the schema is to one embed node. */
typedef struct tn_slot_use {
    uint32_t i;   /* in its list; or TN_NO_SLOT */
    uint32_t col; /* first column */
    const tn_segment *segment;
    bool simple; /* dv = x / D dout, whatever the place of the entry */
    bool scaled; /* D is not 1 */
} tn_slot_use;

static inline const tn_slot_use *tn_use_of(const tn_slot_use *use, uint32_t n_uses, uint32_t slot)
{
    return &use[slot < n_uses ? slot : n_uses];
}

/* x_j of an entry of a bag. */
static inline tn_real tn_weight_of(const tn_bag *bag, uint32_t entry)
{
    return bag->weight == NULL ? 1 : (tn_real)bag->weight[entry];
}

/* What an embed node keeps; see op_embed.c. */
typedef struct tn_embed_list {
    uint32_t n;
    const tn_embed_slot *slot;
    const uint32_t *at;
    uint32_t n_uses;
    const tn_slot_use *use; /* n_uses + 1; the last is no slot */
    bool has_max;
} tn_embed_list;

/* What fm or ffm of an embedding keeps when it reads the rows themselves. */
typedef struct tn_embed_pairs {
    const tn_embed_list *list;
    uint32_t dim; /* floats of a vector; of ffm: for one other slot */
} tn_embed_pairs;

static inline const tn_embed_pairs *tn_embed_pairs_of(const tn_node *y)
{
    return y->attr;
}

/* For operators of such pairs: their blocks of gradients. */
static inline uint32_t tn_embed_pairs_slots(const tn_node *y)
{
    return tn_embed_pairs_of(y)->list->n;
}

/* Whether a node is an embedding whose slots all have vectors of this width, pooled by sum; and,
 * for embed_sum, the list of one of width 1, all slots in one column. */
bool tn_embed_is_summed(const tn_node *embed, uint32_t dim);
tn_embed_list *tn_embed_one_column(tn_graph *g, const tn_node *embed);

/* One slot of one example: entries of its bag to its columns of the output. */
typedef struct tn_pooling {
    const tn_embed_slot *slot;
    const tn_sparse *sparse;
    const tn_bag *bag;
    tn_range entries; /* not empty */
    tn_real *out;
    uint32_t cols;
} tn_pooling;

/* Copies the vectors of the first rows of `rows` that have exactly one entry each, x = 1, D = 1;
 * p->out is that of the first, the next ones are `stride` apart. Returns how many. */
uint32_t tn_pool_ones(const tn_pooling *p, tn_range rows, size_t stride);
void tn_pool_sum(const tn_pooling *p, tn_real scale);
void tn_pool_max(const tn_pooling *p, uint32_t *winner); /* winner[c]: entry of the bag */
void tn_pool_concat(const tn_pooling *p);

typedef struct tn_won {
    const uint32_t *winner;
    uint32_t entry;
    tn_real x;
} tn_won;

/* Backward of a node whose slots are all summed without weights and have one width. */
typedef struct tn_plain_sum {
    const tn_sparse *sparse;
    const tn_slot_use *use; /* by slot of the schema; n_uses + 1 */
    uint32_t n_uses;
    uint32_t dim;
    const tn_real *dout; /* of the first example */
    size_t stride;
} tn_plain_sum;

void tn_add_plain(const tn_plain_sum *p, tn_range keys);

/* The same of one slot, all of whose keys stand in it alone. */
typedef struct tn_plain_slot {
    const tn_sparse *sparse;
    const tn_embed_slot *slot;
    uint32_t n_rows;     /* examples */
    const tn_real *dout; /* of the first one, the slot's columns */
    size_t stride;
} tn_plain_slot;

void tn_add_plain_slot(const tn_plain_slot *p);
void tn_add_scaled(uint32_t dim, tn_real *dv, const tn_real *dout, tn_real by);
void tn_add_won(uint32_t dim, tn_real *dv, const tn_real *dout, const tn_won *won);

#endif
