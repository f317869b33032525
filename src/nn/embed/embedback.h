/* embedback.h - how gradients find their way from an embedding input into the rows of a batch.
 *
 *     keys    a tile of keys, by the list of their occurrences (base/keys/bag.h)
 *     slots   a tile of slots, by their bags, where no key stands in two slots: `apart`, and no
 *             list is there
 *
 * Either adds to a key's gradient in the order of rows and entries, so both give the same bits.
 */
#ifndef TN_NN_EMBEDBACK_H
#define TN_NN_EMBEDBACK_H

#include "nn/graph/graph.h"
#include "nn/op/ops.h"
#include "nn/pooling/embedloops.h"

/* Of nodes whose attr is a tn_embed_list. The first does nothing where slots are apart, the last
 * returns how many slots there are to do, 0 where they are not. */
void tn_embed_back_keys(tn_node *y, tn_range keys);
void tn_embed_back_slots(tn_node *y, tn_range slots);
uint32_t tn_embed_slots(const tn_node *y);

/* The state of op_embed.c: denominators behind winners. */
static inline size_t tn_winner_bytes(const tn_node *y)
{
    const tn_embed_list *e = y->attr;
    return e->has_max ? (size_t)tn_max_rows(y) * e->at[e->n] * sizeof(uint32_t) : 0;
}

static inline tn_real *tn_scale_row(const tn_node *y, size_t row)
{
    const tn_embed_list *e = y->attr;
    return (tn_real *)(void *)((char *)y->state + tn_winner_bytes(y)) + row * e->n;
}

static inline uint32_t *tn_winner_row(const tn_node *y, size_t row)
{
    const tn_embed_list *e = y->attr;
    return (uint32_t *)y->state + row * e->at[e->n];
}

#endif
