/* embedlist.h - what the operators over rows of the batch's small table share: op_embed.c,
 * op_embed_squares.c, op_embed_fm.c and op_ffm.c. Vectors are short (8 to 64), so their loops call
 * no function per vector, and the compiler sees the common lengths.
 */
#pragma once

#include "base/keys/record.h"
#include "nn/graph/embed.h"
#include "nn/op/ops.h"

#define TN_NO_SLOT UINT32_MAX

/* Calls f with the length of a vector as its last argument: common lengths as constants, so that
 * its loops unroll. */
#define TN_UNROLLED(f, dim, ...)                                                                   \
    ((dim) == 1    ? f(__VA_ARGS__, 1)                                                             \
     : (dim) == 4  ? f(__VA_ARGS__, 4)                                                             \
     : (dim) == 8  ? f(__VA_ARGS__, 8)                                                             \
     : (dim) == 16 ? f(__VA_ARGS__, 16)                                                            \
                   : f(__VA_ARGS__, dim))
#define TN_ALWAYS_INLINE __attribute__((always_inline)) static inline

/* Use of a slot of the schema by one embed node: list->use[slot]; one more after the last. */
typedef struct tn_slot_use {
    uint32_t i;   /* in its list; or TN_NO_SLOT */
    uint32_t col; /* first column */
    const tn_segment *segment;
} tn_slot_use;

/* State of fm or ffm of an embedding that reads the rows themselves. */
typedef struct tn_embed_pairs {
    const tn_embed_list *list;
    uint32_t dim; /* floats of a vector; of ffm: for one other slot */
} tn_embed_pairs;

static inline const tn_embed_pairs *tn_embed_pairs_of(const tn_node *y)
{
    return y->attr;
}

static inline const tn_slot_use *tn_use_of(const tn_embed_list *e, uint32_t slot)
{
    return &e->use[slot < e->n_uses ? slot : e->n_uses];
}

/* x_j of an entry of a bag. */
static inline tn_real tn_weight_of(const tn_bag *bag, uint32_t entry)
{
    return bag->weight == NULL ? 1 : (tn_real)bag->weight[entry];
}

/* Returns whether a node is an embedding whose slots all have vectors of this width, pooled by sum;
 * and, for embed_sum, the list of one of width 1, all slots in one column. */
bool tn_embed_is_summed(const tn_node *embed, uint32_t dim);
tn_embed_list *tn_embed_one_column(tn_graph *g, const tn_node *embed);
/* Returns whether training can do ffm(embed) without a matrix. */
bool tn_embed_can_ffm(const tn_node *embed, uint32_t dim);

void tn_add_scaled(uint32_t dim, tn_real *dv, const tn_real *dout, tn_real by);

/* out = sum of x_j v_j over entries of one slot's bag, which are not none; times `scale`. */
void tn_pool_sum(const tn_sparse *sparse, const tn_embed_slot *slot, tn_range entries,
                 tn_real scale, tn_real *out);

/* A node on its way back, and what is looked up for every occurrence of a row. */
typedef struct tn_embed_walk {
    const tn_node *y;
    const tn_embed_list *e;
    const tn_sparse *sparse;
} tn_embed_walk;

/* One place where a row is taken. */
typedef struct tn_occurrence {
    uint32_t row;  /* example in the batch */
    uint32_t slot; /* index in the schema */
    uint32_t j;    /* in the slot's bag: index[j] is the row, weight[j] its x_j */
} tn_occurrence;

/* Adds an occurrence's part to the gradient of its vector, which begins at `at` in the batch's
 * rows. `dim` is a constant where all vectors have one width and a loop is compiled for it. */
typedef void tn_occurrence_fn(const tn_embed_walk *w, const tn_occurrence *o,
                              const tn_slot_use *use, size_t at, const uint32_t dim);

enum { TN_AHEAD = 8, TN_AT_ONCE = 64 };

TN_ALWAYS_INLINE void tn_each_of(const tn_embed_walk *w, const tn_occurrence *some, uint32_t n,
                                 tn_occurrence_fn *add, const uint32_t dim)
{
    for (uint32_t k = 0; k < n; k++) {
        const tn_slot_use *use = tn_use_of(w->e, some[k].slot);
        const uint32_t row = w->sparse->bag[some[k].slot].index[some[k].j];
        add(w, &some[k], use, (size_t)row + use->segment->at, dim);
    }
}

/* `add` for the occurrences of a block's rows in slots of the list, by example, then by slot. Those
 * of other rows are passed over without a branch: whose turn it is, is a coin toss. */
TN_ALWAYS_INLINE void tn_each_of_block(const tn_embed_walk *w, const tn_row_block *b,
                                       tn_occurrence_fn *add, const uint32_t dim)
{
    tn_occurrence some[TN_AT_ONCE];
    uint32_t n = 0;
    for (uint32_t r = 0; r < w->y->shape.rows; r++) {
        for (uint32_t i = 0; i < b->n_slots; i++) {
            const uint32_t slot = b->slot[i];
            const tn_bag *bag = &w->sparse->bag[slot];
            const uint32_t end = tn_use_of(w->e, slot)->i != TN_NO_SLOT ? bag->offset[r + 1] : 0;
            for (uint32_t j = bag->offset[r]; j < end; j++) {
                some[n] = (tn_occurrence){r, slot, j};
                n += bag->index[j] - b->from < b->to - b->from;
                if (n == TN_AT_ONCE) {
                    tn_each_of(w, some, n, add, dim);
                    n = 0;
                }
            }
        }
    }
    tn_each_of(w, some, n, add, dim);
}
