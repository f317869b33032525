/* op_embed.c - rows of the batch's small table, pooled slot by slot (embed.h): embed, embed_sum,
 * embed_fixed.
 *
 *   embed        y     = sum_j x_j v_j / D                    per slot, side by side
 *                dv_j += (x_j / D) dy
 *   embed_sum    y     = sum over slots of sum_j x_j w_j      wide parts
 *                dw_j += x_j dy
 *   embed_fixed  y as of embed; nothing on the way back       counts of rows
 *
 * Embed_sum is what sum_cols(embed) gives, without a matrix of weights and without one of
 * gradients: a column for all slots. Training graphs are rewritten to it (fuse.c).
 *
 * Forward goes over tiles of examples, backward over blocks of the batch's rows (base/keys/bag.h).
 * Most blocks are all rows of one slot; others are walked by example and slot, and what is of other
 * blocks passed over. Either adds to a row's gradient in the order of examples, slots and entries.
 *
 * Slots, denominators and winners are looked up in tables of the node:
 *
 *     at[i]        first column of slot i of the list, and one past the last
 *     use[s]       use of slot s of the schema by this node; one more, for slots after the last
 *     scale        [rows x slots] 1 / D, where it is not 1 (state)
 *     winner       [rows x columns] entry that is the maximum (state; only with max)
 */
#include "nn/embed/embedlist.h"

#include "base/core/arena.h"
#include "base/core/compiler.h"
#include "base/core/number.h"
#include "base/core/text.h"
#include "nn/graph/graphcore.h"

#include <math.h>
#include <string.h>

static const tn_embed_list *embed_of(const tn_node *y)
{
    return y->attr;
}

/* Returns the bytes of the state: denominators after winners. */
static size_t winner_bytes(const tn_node *y)
{
    const tn_embed_list *e = embed_of(y);
    return e->has_max ? (size_t)tn_max_rows(y) * e->at[e->n] * sizeof(uint32_t) : 0;
}

static tn_real *scale_row(const tn_node *y, size_t row)
{
    const tn_embed_list *e = embed_of(y);
    return (tn_real *)(void *)((char *)y->state + winner_bytes(y)) + row * e->n;
}

static uint32_t *winner_row(const tn_node *y, size_t row)
{
    const tn_embed_list *e = embed_of(y);
    return (uint32_t *)y->state + row * e->at[e->n];
}

static tn_shape embed_shape(const tn_node *y)
{
    const tn_embed_list *e = embed_of(y);
    return (tn_shape){tn_max_rows(y), e->at[e->n]};
}

static size_t embed_state_bytes(const tn_node *y)
{
    const tn_embed_list *e = embed_of(y);
    return winner_bytes(y) + (size_t)tn_max_rows(y) * e->n * sizeof(tn_real);
}

/* 1 / D of entries from .. to of a bag; 0 when D is 0. */
static tn_real scale_of(tn_pool pool, const tn_bag *bag, tn_range entries)
{
    double d = 0;
    for (uint32_t i = entries.from; i < entries.to; i++) {
        double x = bag->weight == NULL ? 1 : (double)bag->weight[i];
        d += pool == TN_POOL_MEAN ? fabs(x) : x * x;
    }
    d = pool == TN_POOL_MEAN ? d : sqrt(d);
    return d > 0 ? (tn_real)(1 / d) : 0;
}

/* ---- pooling ---- */

static inline void put_scaled(tn_real *restrict y, const tn_real *restrict x, tn_real by,
                              uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        y[i] = x[i] * by;
    }
}

static inline void add_scaled(tn_real *restrict y, const tn_real *restrict x, tn_real by,
                              uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        y[i] += x[i] * by;
    }
}

static void put(uint32_t n, tn_real *restrict y, const tn_real *restrict x, tn_real by)
{
    TN_UNROLLED(put_scaled, n, y, x, by);
}

void tn_add_scaled(uint32_t dim, tn_real *dv, const tn_real *dout, tn_real by)
{
    TN_UNROLLED(add_scaled, dim, dv, dout, by);
}

static const tn_real *vector_of(const tn_sparse *sparse, const tn_embed_slot *slot, uint32_t entry)
{
    return sparse->rows + sparse->bag[slot->slot].index[entry] + slot->segment->at;
}

/* The first vector is assigned. Multiplying by 1 changes no bit. */
void tn_pool_sum(const tn_sparse *sparse, const tn_embed_slot *slot, tn_range entries,
                 tn_real scale, tn_real *out)
{
    const tn_bag *bag = &sparse->bag[slot->slot];
    uint32_t dim = slot->segment->dim;
    put(dim, out, vector_of(sparse, slot, entries.from), tn_weight_of(bag, entries.from) * scale);
    for (uint32_t j = entries.from + 1; j < entries.to; j++) {
        tn_add_scaled(dim, out, vector_of(sparse, slot, j), tn_weight_of(bag, j) * scale);
    }
}

static void pool_max(const tn_sparse *sparse, const tn_embed_slot *slot, tn_range entries,
                     tn_real *out, uint32_t *winner)
{
    for (uint32_t j = entries.from; j < entries.to; j++) {
        const tn_real *v = vector_of(sparse, slot, j);
        tn_real x = tn_weight_of(&sparse->bag[slot->slot], j);
        for (uint32_t c = 0; c < slot->segment->dim; c++) {
            tn_real y = x * v[c];
            if (j == entries.from || y > out[c]) {
                out[c] = y;
                winner[c] = j;
            }
        }
    }
}

static void pool_concat(const tn_sparse *sparse, const tn_embed_slot *slot, tn_range entries,
                        tn_real *out)
{
    uint32_t dim = slot->segment->dim;
    uint32_t n = entries.to - entries.from;
    n = n < slot->k ? n : slot->k;
    for (uint32_t j = entries.from; j < entries.from + n; j++, out += dim) {
        put(dim, out, vector_of(sparse, slot, j), tn_weight_of(&sparse->bag[slot->slot], j));
    }
    tn_clear(out, (size_t)(slot->k - n) * dim);
}

/* Slot i of one example, in general. */
static void pool_slot(const tn_node *y, const tn_sparse *sparse, uint32_t i, size_t row,
                      tn_range entries)
{
    const tn_embed_list *e = embed_of(y);
    const tn_embed_slot *slot = &e->slot[i];
    const tn_bag *bag = &sparse->bag[slot->slot];
    tn_real *out = tn_val_row(y, row) + e->at[i];
    if (entries.from == entries.to) {
        tn_clear(out, e->at[i + 1] - e->at[i]);
        return;
    }
    switch (slot->pool) {
    case TN_POOL_MEAN:
    case TN_POOL_SQRTN: {
        tn_real scale = scale_of(slot->pool, bag, entries);
        scale_row(y, row)[i] = scale;
        tn_pool_sum(sparse, slot, entries, scale, out);
        break;
    }
    case TN_POOL_SUM:
        tn_pool_sum(sparse, slot, entries, 1, out);
        break;
    case TN_POOL_MAX:
        pool_max(sparse, slot, entries, out, winner_row(y, row) + e->at[i]);
        break;
    case TN_POOL_CONCAT:
        pool_concat(sparse, slot, entries, out);
        break;
    }
}

static bool keeps_scale(const tn_embed_slot *slot)
{
    return slot->pool == TN_POOL_MEAN || slot->pool == TN_POOL_SQRTN;
}

/* Copies rows unchanged as long as they take one vector; returns how many. */
TN_ALWAYS_INLINE uint32_t copy_ones(const tn_node *y, const tn_sparse *sparse, uint32_t i,
                                    tn_range rows, const uint32_t dim)
{
    const tn_embed_slot *slot = &embed_of(y)->slot[i];
    const tn_bag *bag = &sparse->bag[slot->slot];
    const bool ones = bag->ones;
    const uint32_t *offset = bag->offset;
    const uint32_t *index = bag->index;
    const tn_real *table = sparse->rows + slot->segment->at;
    const uint32_t last = (ones ? rows.to : offset[rows.to]) - 1;
    const size_t stride = y->stride;
    tn_real *out = tn_val_row(y, rows.from) + embed_of(y)->at[i];
    uint32_t r = rows.from;
    for (; r < rows.to && (ones || offset[r + 1] - offset[r] == 1); r++, out += stride) {
        const uint32_t entry = ones ? r : offset[r];
        __builtin_prefetch(table + index[entry + TN_AHEAD < last ? entry + TN_AHEAD : last]);
        memcpy(out, table + index[entry], dim * sizeof *out);
    }
    return r - rows.from;
}

static uint32_t pool_ones(const tn_node *y, const tn_sparse *sparse, uint32_t i, tn_range rows)
{
    return TN_UNROLLED(copy_ones, embed_of(y)->slot[i].segment->dim, y, sparse, i, rows);
}

/* Slot i of a tile of examples: runs of examples with one plain value are copied at once. */
static void pool_tile(const tn_node *y, uint32_t i, tn_range rows)
{
    const tn_sparse *sparse = tn_feed_of(y)->sparse;
    const tn_embed_slot *slot = &embed_of(y)->slot[i];
    bool plain = sparse->bag[slot->slot].weight == NULL && slot->pool != TN_POOL_MAX &&
                 embed_of(y)->at[i + 1] - embed_of(y)->at[i] == slot->segment->dim;
    for (uint32_t r = rows.from; r < rows.to; r++) {
        uint32_t copied = plain ? pool_ones(y, sparse, i, (tn_range){r, rows.to}) : 0;
        for (uint32_t k = 0; keeps_scale(slot) && k < copied; k++) {
            scale_row(y, r + k)[i] = 1;
        }
        r += copied;
        if (r < rows.to) {
            const uint32_t *offset = sparse->bag[slot->slot].offset;
            pool_slot(y, sparse, i, r, (tn_range){offset[r], offset[r + 1]});
        }
    }
}

/* Slot i of a tile, where all examples have the entries of the first. */
static void pool_shared(const tn_node *y, uint32_t i, tn_range rows)
{
    const tn_embed_list *e = embed_of(y);
    const tn_sparse *sparse = tn_feed_of(y)->sparse;
    const uint32_t *offset = sparse->bag[e->slot[i].slot].offset;
    pool_slot(y, sparse, i, rows.from, (tn_range){offset[rows.from], offset[rows.from + 1]});
    const tn_real *from = tn_val_row(y, rows.from) + e->at[i];
    for (size_t r = rows.from + (size_t)1; r < rows.to; r++) {
        put(e->at[i + 1] - e->at[i], tn_val_row(y, r) + e->at[i], from, 1);
    }
}

static void embed_forward(tn_node *y, tn_range rows)
{
    const tn_shared *shared = tn_feed_of(y)->shared;
    TN_ASSERT(tn_feed_of(y)->sparse != NULL);
    for (uint32_t i = 0; i < embed_of(y)->n; i++) {
        bool same = shared != NULL && shared->slot[embed_of(y)->slot[i].slot];
        (same ? pool_shared : pool_tile)(y, i, rows);
    }
}

/* ---- backward ---- */

/* Adds the share of an occurrence of a row to its gradient. */
static void add_occurrence(const tn_embed_walk *w, const tn_occurrence *o, const tn_slot_use *use,
                           size_t at, const uint32_t unused)
{
    (void)unused;
    const tn_embed_slot *slot = &w->e->slot[use->i];
    const tn_bag *bag = &w->sparse->bag[o->slot];
    const tn_real *dout = tn_grad_row(w->y, o->row) + use->col;
    tn_real *dv = w->sparse->grads + at;
    uint32_t dim = slot->segment->dim;
    tn_real x = tn_weight_of(bag, o->j);
    switch (slot->pool) {
    case TN_POOL_MEAN:
    case TN_POOL_SQRTN:
        tn_add_scaled(dim, dv, dout, x * scale_row(w->y, o->row)[use->i]);
        break;
    case TN_POOL_SUM:
        tn_add_scaled(dim, dv, dout, x);
        break;
    case TN_POOL_MAX:
        for (uint32_t c = 0; c < dim; c++) {
            if (winner_row(w->y, o->row)[use->col + c] == o->j) {
                dv[c] += x * dout[c];
            }
        }
        break;
    case TN_POOL_CONCAT: {
        uint32_t place = o->j - bag->offset[o->row];
        if (place < slot->k) {
            tn_add_scaled(dim, dv, dout + (size_t)place * dim, x);
        }
        break;
    }
    }
}

/* Returns whether all slots of a block are plain sums of vectors of one width, as they nearly
 * always are. */
static bool all_plain(const tn_embed_walk *w, const tn_row_block *b, uint32_t dim)
{
    bool plain = true;
    for (uint32_t i = 0; i < b->n_slots; i++) {
        const tn_slot_use *use = tn_use_of(w->e, b->slot[i]);
        plain &= use->i == TN_NO_SLOT ||
                 (w->e->slot[use->i].pool == TN_POOL_SUM && use->segment->dim == dim &&
                  w->sparse->bag[b->slot[i]].weight == NULL);
    }
    return plain;
}

TN_ALWAYS_INLINE void add_vector(const uint32_t n, tn_real *restrict y, const tn_real *restrict x)
{
#pragma omp simd
    for (uint32_t i = 0; i < n; i++) {
        y[i] += x[i];
    }
}

TN_ALWAYS_INLINE void add_plain(const tn_embed_walk *w, const tn_occurrence *o,
                                const tn_slot_use *use, size_t at, const uint32_t dim)
{
    add_vector(dim, w->sparse->grads + at, tn_grad_row(w->y, o->row) + use->col);
}

/* All rows of one slot whose examples take one row each. */
TN_ALWAYS_INLINE void add_ones(const tn_embed_walk *w, const tn_slot_use *use,
                               const uint32_t *index, const uint32_t dim)
{
    const tn_real *dout = tn_grad_row(w->y, 0) + use->col;
    const size_t stride = w->y->stride;
    tn_real *grads = w->sparse->grads + use->segment->at;
    const uint32_t n = w->y->shape.rows;
    for (uint32_t r = 0; r < n; r++, dout += stride) {
        if (dim > 1) {
            __builtin_prefetch(r + TN_AHEAD < n ? dout + TN_AHEAD * stride : dout);
        }
        add_vector(dim, grads + index[r], dout);
    }
}

TN_ALWAYS_INLINE void add_block(const tn_embed_walk *w, const tn_row_block *b, const uint32_t dim)
{
    const tn_bag *bag = &w->sparse->bag[b->slot[0]];
    const tn_slot_use *use = tn_use_of(w->e, b->slot[0]);
    if (!b->whole || b->n_slots > 1 || !bag->ones) {
        tn_each_of_block(w, b, add_plain, dim);
    } else if (use->i != TN_NO_SLOT) {
        add_ones(w, use, bag->index, dim);
    }
}

TN_HOT static void add_plain_block(const tn_embed_walk *w, const tn_row_block *b, uint32_t dim)
{
    TN_UNROLLED(add_block, dim, w, b);
}

/* Returns the width of the vectors that a block's first slot in the list has; 0: none is in it. */
static uint32_t dim_of(const tn_embed_list *e, const tn_row_block *b)
{
    uint32_t dim = 0;
    for (uint32_t i = 0; i < b->n_slots && dim == 0; i++) {
        const tn_slot_use *use = tn_use_of(e, b->slot[i]);
        dim = use->i != TN_NO_SLOT ? use->segment->dim : 0;
    }
    return dim;
}

/* Nodes whose attr is a tn_embed_list. */
static void embed_back_rows(tn_node *y, const tn_row_block *block)
{
    const tn_embed_walk w = {y, y->attr, tn_feed_of(y)->sparse};
    const uint32_t dim = dim_of(w.e, block);
    if (dim > 0 && all_plain(&w, block, dim)) {
        add_plain_block(&w, block, dim);
    } else if (dim > 0) {
        tn_each_of_block(&w, block, add_occurrence, 0);
    }
}

/* Rows that fit the nearest cache while slot after slot is written. */
static uint32_t embed_tile(const tn_node *y, bool cols)
{
    (void)y;
    (void)cols;
    return 32;
}

static tn_node *embed_example(tn_graph *g)
{
    static const tn_segment deep = {.name = "deep", .at = 1, .dim = 3};
    static const tn_embed_slot slots[] = {
        {.name = "a", .slot = 0, .segment = &deep, .pool = TN_POOL_SUM},
        {.name = "b", .slot = 1, .segment = &deep, .pool = TN_POOL_MEAN},
        {.name = "c", .slot = 2, .segment = &deep, .pool = TN_POOL_SQRTN},
        {.name = "d", .slot = 3, .segment = &deep, .pool = TN_POOL_MAX},
        {.name = "e", .slot = 4, .segment = &deep, .pool = TN_POOL_CONCAT, .k = 2},
    };
    return tn_embed(g, NULL, slots, 5);
}

const tn_op tn_op_embed = {
    .name = "embed",
    .formula = "y = sum_j x_j v_j / D per slot, side by side",
    .n_in = 0,
    .attr_size = sizeof(tn_embed_list),
    .shape = embed_shape,
    .state_bytes = embed_state_bytes,
    .forward = embed_forward,
    .sparse.backward_rows = embed_back_rows,
    .sparse.embeds = true,
    .tile = embed_tile,
    .example = {.build = embed_example},
};

static tn_node *fixed_example(tn_graph *g)
{
    static const tn_segment counts = {.name = "cvm", .at = 1, .dim = 2};
    static const tn_embed_slot slots[] = {
        {.name = "a", .slot = 0, .segment = &counts, .pool = TN_POOL_MEAN},
        {.name = "b", .slot = 1, .segment = &counts, .pool = TN_POOL_SUM},
    };
    return tn_embed_fixed(g, NULL, slots, 2);
}

const tn_op tn_op_embed_fixed = {
    .name = "embed_fixed",
    .formula = "y as of embed, v_j not trained",
    .n_in = 0,
    .attr_size = sizeof(tn_embed_list),
    .shape = embed_shape,
    .state_bytes = embed_state_bytes,
    .forward = embed_forward,
    .sparse.embeds = true,
    .tile = embed_tile,
    .example = {.build = fixed_example},
};

static uint32_t columns_of(const tn_embed_slot *slot)
{
    TN_ASSERT(slot->pool != TN_POOL_CONCAT || slot->k > 0);
    return slot->pool == TN_POOL_CONCAT ? slot->k * slot->segment->dim : slot->segment->dim;
}

static const tn_slot_use *uses_of(tn_graph *g, const tn_embed_list *e)
{
    tn_slot_use *use = TN_NEW_ARRAY(g->arena, tn_slot_use, e->n_uses + 1);
    for (uint32_t s = 0; s <= e->n_uses; s++) {
        use[s].i = TN_NO_SLOT;
    }
    for (uint32_t i = 0; i < e->n; i++) {
        const tn_embed_slot *slot = &e->slot[i];
        TN_ASSERT(use[slot->slot].i == TN_NO_SLOT);
        use[slot->slot] = (tn_slot_use){.i = i, .col = e->at[i], .segment = slot->segment};
    }
    return use;
}

size_t tn_embed_bytes(const tn_embed_slot *slots, uint32_t n)
{
    uint32_t uses = 0;
    size_t bytes = 64; /* to align four arrays */
    for (uint32_t i = 0; i < n; i++) {
        uses = slots[i].slot >= uses ? slots[i].slot + 1 : uses;
        bytes += sizeof slots[i] + sizeof(uint32_t) + strlen(slots[i].name) + 1;
    }
    return bytes + sizeof(uint32_t) + (uses + (size_t)1) * sizeof(tn_slot_use);
}

static tn_node *embed_by(tn_graph *g, const tn_op *op, const char *name, const tn_embed_slot *slots,
                         tn_embed_list e)
{
    const uint32_t n = e.n;
    TN_ASSERT(n > 0);
    uint32_t *at = TN_NEW_ARRAY(g->arena, uint32_t, n + 1);
    tn_embed_slot *copy = TN_NEW_ARRAY(g->arena, tn_embed_slot, n);
    for (uint32_t i = 0; i < n; i++) {
        copy[i] = slots[i];
        copy[i].name = tn_graph_copy_text(g, slots[i].name);
        at[i + 1] = at[i] + (e.max_len > 0 ? slots[i].segment->dim : columns_of(&slots[i]));
        e.has_max |= e.max_len == 0 && slots[i].pool == TN_POOL_MAX;
        e.n_uses = slots[i].slot >= e.n_uses ? slots[i].slot + 1 : e.n_uses;
    }
    e.slot = copy;
    e.at = at;
    e.use = uses_of(g, &e);
    return tn_apply(g, op, name, NULL, 0, &e);
}

tn_node *tn_embed(tn_graph *g, const char *name, const tn_embed_slot *slots, uint32_t n)
{
    return embed_by(g, &tn_op_embed, name, slots, (tn_embed_list){.n = n});
}

tn_node *tn_embed_fixed(tn_graph *g, const char *name, const tn_embed_slot *slots, uint32_t n)
{
    return embed_by(g, &tn_op_embed_fixed, name, slots, (tn_embed_list){.n = n});
}

tn_node *tn_embed_sequence(tn_graph *g, const char *name, const tn_embed_slot *slots, uint32_t n,
                           uint32_t max_len)
{
    TN_ASSERT(max_len > 0 && max_len <= TN_SEQUENCE_LEN_MAX);
    return embed_by(g, &tn_op_embed_sequence, name, slots,
                    (tn_embed_list){.n = n, .max_len = max_len});
}

/* ---- one column for all slots ---- */

enum { ROWS_AT_ONCE = 64 };

/* One slot of up to ROWS_AT_ONCE examples. */
static void sum_slot(const tn_sparse *sparse, const tn_embed_slot *slot, tn_range rows,
                     tn_real *sum)
{
    const tn_bag *bag = &sparse->bag[slot->slot];
    const tn_real *w = sparse->rows + slot->segment->at;
    if (bag->ones && bag->weight == NULL) {
        for (uint32_t r = rows.from; r < rows.to; r++) {
            sum[r - rows.from] += w[bag->index[r]];
        }
        return;
    }
    for (uint32_t r = rows.from; r < rows.to; r++) {
        for (uint32_t j = bag->offset[r]; j < bag->offset[r + 1]; j++) {
            sum[r - rows.from] += tn_weight_of(bag, j) * w[bag->index[j]];
        }
    }
}

static void sum_forward(tn_node *y, tn_range rows)
{
    const tn_embed_list *e = embed_of(y);
    const tn_sparse *sparse = tn_feed_of(y)->sparse;
    TN_ASSERT(sparse != NULL);
    for (uint32_t from = rows.from; from < rows.to; from += ROWS_AT_ONCE) {
        uint32_t to = rows.to - from < ROWS_AT_ONCE ? rows.to : from + ROWS_AT_ONCE;
        tn_real sum[ROWS_AT_ONCE] = {0};
        for (uint32_t i = 0; i < e->n; i++) {
            sum_slot(sparse, &e->slot[i], (tn_range){from, to}, sum);
        }
        for (uint32_t r = from; r < to; r++) {
            *tn_val_row(y, r) = sum[r - from];
        }
    }
}

static double sum_flops(const tn_node *y)
{
    return 2.0 * y->shape.rows * embed_of(y)->n;
}

static tn_node *sum_example(tn_graph *g)
{
    static const tn_segment wide = {.name = "wide", .at = 2, .dim = 1};
    static const tn_embed_slot slots[] = {
        {.name = "a", .slot = 0, .segment = &wide, .pool = TN_POOL_SUM},
        {.name = "b", .slot = 1, .segment = &wide, .pool = TN_POOL_SUM},
        {.name = "d", .slot = 3, .segment = &wide, .pool = TN_POOL_SUM},
    };
    return tn_apply(g, &tn_op_embed_sum, NULL, NULL, 0,
                    tn_embed_one_column(g, tn_embed(g, NULL, slots, 3)));
}

const tn_op tn_op_embed_sum = {
    .name = "embed_sum",
    .formula = "y = sum_j x_j w_j over all slots",
    .n_in = 0,
    .attr_size = sizeof(tn_embed_list),
    .shape = tn_column_shape,
    .forward = sum_forward,
    .sparse.backward_rows = embed_back_rows, /* all slots have the same column */
    .flops = sum_flops,
    .example = {.build = sum_example},
};

bool tn_embed_is_summed(const tn_node *embed, uint32_t dim)
{
    const tn_embed_list *e = tn_embed_list_of(embed);
    bool summed = e != NULL;
    for (uint32_t i = 0; summed && i < e->n; i++) {
        summed = e->slot[i].pool == TN_POOL_SUM && e->slot[i].segment->dim == dim;
    }
    return summed;
}

tn_embed_list *tn_embed_one_column(tn_graph *g, const tn_node *embed)
{
    TN_ASSERT(tn_embed_is_summed(embed, 1));
    const tn_embed_list *from = embed->attr;
    tn_embed_list *e = TN_NEW(g->arena, tn_embed_list);
    tn_slot_use *use = TN_NEW_ARRAY(g->arena, tn_slot_use, from->n_uses + 1);
    for (uint32_t s = 0; s <= from->n_uses; s++) {
        use[s] = from->use[s];
        use[s].col = 0;
    }
    *e = *from;
    e->at = TN_NEW_ARRAY(g->arena, uint32_t, from->n + 1); /* zeros */
    e->use = use;
    return e;
}

/* ---- pools as text ---- */

const char *const tn_pool_words[] = {"sum", "mean", "sqrtn", "max", "concat", NULL};

bool tn_pool_read(const char *text, tn_pool *pool, uint32_t *k)
{
    enum { HEAD = sizeof "concat(" - 1, ITEMS_MAX = 4096 };
    const size_t size = strlen(text);
    uint64_t items = 0;
    for (uint32_t i = 0; i < TN_POOL_CONCAT; i++) {
        if (strcmp(text, tn_pool_words[i]) == 0) {
            *pool = (tn_pool)i;
            return true;
        }
    }
    if (size < HEAD + 2 || strncmp(text, "concat(", HEAD) != 0 || text[size - 1] != ')' ||
        tn_read_u64(text + HEAD, size - HEAD - 1, &items) != TN_NUM_OK || items == 0 ||
        items > ITEMS_MAX) {
        return false;
    }
    *pool = TN_POOL_CONCAT;
    *k = (uint32_t)items;
    return true;
}

void tn_pool_put(tn_text *out, tn_pool pool, uint32_t k)
{
    tn_text_adds(out, tn_pool_words[pool]);
    if (pool == TN_POOL_CONCAT) {
        tn_text_addf(out, "(%u)", k);
    }
}
