/* embedlist.h - what the operators over rows of the batch's small table share: op_embed.c,
 * op_embed_squares.c, op_embed_fm.c and op_ffm.c. Vectors are short (8 to 64), so their loops call
 * no function per vector, and the compiler sees the common lengths.
 */
#ifndef TN_NN_EMBEDLIST_H
#define TN_NN_EMBEDLIST_H

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

/* What a slot of the schema is to one embed node: list->use[slot]; one more behind the last. */
typedef struct tn_slot_use {
    uint32_t i;   /* in its list; or TN_NO_SLOT */
    uint32_t col; /* first column */
    const tn_segment *segment;
} tn_slot_use;

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

static inline const tn_slot_use *tn_use_of(const tn_embed_list *e, uint32_t slot)
{
    return &e->use[slot < e->n_uses ? slot : e->n_uses];
}

/* x_j of an entry of a bag. */
static inline tn_real tn_weight_of(const tn_bag *bag, uint32_t entry)
{
    return bag->weight == NULL ? 1 : (tn_real)bag->weight[entry];
}

/* Whether a node is an embedding whose slots all have vectors of this width, pooled by sum; and,
 * for embed_sum, the list of one of width 1, all slots in one column. */
bool tn_embed_is_summed(const tn_node *embed, uint32_t dim);
tn_embed_list *tn_embed_one_column(tn_graph *g, const tn_node *embed);
/* Whether training can do ffm(embed) without a matrix. */
bool tn_embed_can_ffm(const tn_node *embed, uint32_t dim);

void tn_add_scaled(uint32_t dim, tn_real *dv, const tn_real *dout, tn_real by);

/* out = sum of x_j v_j over entries of one slot's bag, which are not none; times `scale`. */
void tn_pool_sum(const tn_sparse *sparse, const tn_embed_slot *slot, tn_range entries,
                 tn_real scale, tn_real *out);

/* A node on its way back, and what is looked up for every occurrence of a key. */
typedef struct tn_embed_walk {
    const tn_node *y;
    const tn_embed_list *e;
    const tn_sparse *sparse;
} tn_embed_walk;

/* What an occurrence of a key adds to its gradient; the key's vector begins at `at` in the batch's
 * rows. `dim` is a constant where all vectors have one width and a loop is compiled for it. */
typedef void tn_occurrence_fn(const tn_embed_walk *w, const tn_occurrence *o,
                              const tn_slot_use *use, size_t at, const uint32_t dim);

enum { TN_AHEAD = 8, TN_AHEAD_BACK = 16 }; /* vectors on their way to the near cache */

/* `add` for the occurrences of `keys` in slots of the list. One loop for all keys: most have one to
 * three occurrences, and a loop of their own would end where the processor does not expect it.
 * `ahead`: the node's gradients are fetched before they are needed. */
TN_ALWAYS_INLINE void tn_each_of_keys(const tn_embed_walk *w, tn_range keys, tn_occurrence_fn *add,
                                      const bool ahead, const uint32_t dim)
{
    const tn_embed_list e = *w->e;
    const tn_occurrence *item = w->sparse->occurrences.item;
    const uint32_t *first = w->sparse->occurrences.first;
    const uint32_t *at = w->sparse->at;
    const tn_real *dout = tn_grad_row(w->y, 0);
    const size_t stride = w->y->stride;
    TN_ASSERT(first != NULL && w->sparse->grads != NULL);
    const uint32_t last = first[keys.to];
    uint32_t k = keys.from;
    for (uint32_t j = first[keys.from]; j < last; j++) {
        if (ahead) {
            const tn_occurrence *o = &item[j + TN_AHEAD_BACK < last ? j + TN_AHEAD_BACK : last - 1];
            __builtin_prefetch(dout + o->row * stride + tn_use_of(&e, o->slot)->col);
        }
        k += j == first[k + 1]; /* without a branch */
        while (j >= first[k + 1]) {
            k++; /* keys that nobody holds: never in a batch, but harmless */
        }
        const tn_slot_use *use = tn_use_of(&e, item[j].slot);
        if (use->i != TN_NO_SLOT) {
            add(w, &item[j], use, (size_t)at[k] + use->segment->at, dim);
        }
    }
}

/* `add` for the entries of slot `i` of the list, row by row. */
TN_ALWAYS_INLINE void tn_each_of_slot(const tn_embed_walk *w, uint32_t i, tn_occurrence_fn *add)
{
    const uint32_t slot = w->e->slot[i].slot;
    const tn_bag *bag = &w->sparse->bag[slot];
    const tn_slot_use *use = &w->e->use[slot];
    for (uint32_t r = 0; r < w->y->shape.rows; r++) {
        for (uint32_t j = bag->offset[r]; j < bag->offset[r + 1]; j++) {
            add(w, &(tn_occurrence){r, slot, j}, use,
                (size_t)w->sparse->at[bag->index[j]] + use->segment->at, 0);
        }
    }
}

#endif
