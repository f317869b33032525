/* embed.h - where sparse features enter a graph.
 *
 * One node per model input: it gathers one segment of the rows an example holds
 * (base/keys/record.h) and pools them slot by slot, straight into the matrix the first
 * layer multiplies: putting slots side by side is a layout, not a copy.
 *
 *   sum, mean, sqrtn   out = sum_j x_j v_j / D       D = 1, sum |x_j|, sqrt(sum x_j^2)
 *   max                out = max_j x_j v_j           elementwise, ties to the first
 *   concat(k)          the first k x_j v_j side by side, then zeros
 *   D = 0 or an empty slot gives zeros. dv_j = (x_j / D) dout.
 *
 * Two examples may hold the same key. So backward runs over blocks of rows, not of examples
 * (base/keys/bag.h): each row of grads has one writer and one order of additions.
 */
#pragma once

#include "base/keys/bag.h"
#include "nn/vec/real.h"

#include <stddef.h>

typedef struct tn_segment tn_segment; /* base/keys/record.h */
typedef struct tn_text tn_text;       /* base/core/text.h */

typedef struct tn_graph tn_graph;
typedef struct tn_node tn_node;

/* The batch's own small table. Lent by the step for one forward and backward. */
typedef struct tn_sparse {
    uint32_t floats;     /* size of the table, gaps between blocks included */
    const tn_real *rows; /* floats */
    tn_real *grads;      /* floats; NULL when only scoring. Assigned by backward, not added to;
                          * gaps are left as they are */
    const tn_bag *bag;   /* one per slot of the schema */
    const tn_row_block *block; /* n_blocks; for backward */
    uint32_t n_blocks;
} tn_sparse;

typedef enum tn_pool {
    TN_POOL_SUM,
    TN_POOL_MEAN,
    TN_POOL_SQRTN,
    TN_POOL_MAX,
    TN_POOL_CONCAT
} tn_pool;

extern const char *const tn_pool_words[]; /* "sum" .. "concat"; ends with NULL */

/* Reads a pool as configurations and model.json have it, "mean" or "concat(3)", and sets *k of
 * concat alone, 1 .. 4096. False: it is none. */
bool tn_pool_read(const char *text, tn_pool *pool, uint32_t *k);
void tn_pool_put(tn_text *out, tn_pool pool, uint32_t k);

/* One slot's part of an embedding input: `dim` columns (k * dim for concat). */
typedef struct tn_embed_slot {
    const char *name;
    /* segment of the slot's record; read at run time, must outlive the graph */
    const tn_segment *segment;
    uint32_t slot; /* index in the schema */
    tn_pool pool;
    uint32_t k;  /* concat */
    bool single; /* at most one value an example */
} tn_embed_slot;

/* -> [B, sum of the slots' columns]. The list is copied, names included. */
tn_node *tn_embed(tn_graph *g, const char *name, const tn_embed_slot *slots, uint32_t n);

/* The same of segments that are not trained: no gradient reaches their rows. */
tn_node *tn_embed_fixed(tn_graph *g, const char *name, const tn_embed_slot *slots, uint32_t n);

/* A row for each position of the slots' lists, which have one length in each example and at most
 * `max_len` values: x_j v_j of the slots side by side, [P, sum of their dims]. Pools are not
 * looked at. */
tn_node *tn_embed_sequence(tn_graph *g, const char *name, const tn_embed_slot *slots, uint32_t n,
                           uint32_t max_len);

/* Returns the bytes of the graph's arena that it takes beside the node (tn_graph_reserve). */
size_t tn_embed_bytes(const tn_embed_slot *slots, uint32_t n);

/* The slots of an embed node. */
typedef struct tn_embed_list {
    uint32_t n;
    const tn_embed_slot *slot;
    const uint32_t *at; /* n + 1: the first column of each */
    uint32_t n_uses;    /* the rest is for operators: nn/embed/embedlist.h */
    const struct tn_slot_use *use;
    bool has_max;
    uint32_t max_len; /* most positions of a row; 0: it is no embed_sequence */
} tn_embed_list;
const tn_embed_list *tn_embed_list_of(const tn_node *embed); /* NULL: it is neither of these */
