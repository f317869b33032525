/* op_embed_fm.c - a factorization machine straight from the rows that an example holds.
 *
 * What fm(embed) gives, bit for bit, without a matrix of slots * dim columns and without one of
 * gradients; training graphs are rewritten to it (fuse.c). v_i = sum over values of slot i of x_j
 * v_j, s = v_1 + .. + v_f:
 *
 *   forward     y      = 1/2 sum_c (s_c^2 - sum_i v_ic^2)       tiles of examples
 *   backward    dv_j  += x_j dy (s - v_i)                       blocks of the batch's rows
 *
 * Nearly all slots have one value with x = 1: v_i is the row itself. Of other slots v_i is kept:
 *
 *     state     s [rows x dim]  |  sum_i v_i^2 [rows x dim]  |  v_i [rows x slots x dim]
 */
#include "nn/embed/embedlist.h"

#include "base/core/compiler.h"
#include "nn/vec/vec.h"

/* Sums over slots that are kept of every example, s = sum_i v_i and q = sum_i v_i^2; a value's
 * gradient is dy (s - v_i), which needs nothing else of the example. */
typedef struct fm_rows {
    tn_embed_walk walk;
    uint32_t dim;
    tn_real *folded;   /* v_i of all slots of every example, if they had to be kept */
    tn_real *sum;      /* s: dim of every example */
    tn_real *squares;  /* q; backward does not look at it */
    const tn_real *dy; /* one of every example, `stride` apart; for backward */
    size_t stride;
} fm_rows;

TN_ALWAYS_INLINE void add_vector(const uint32_t dim, tn_real *restrict s, tn_real *restrict q,
                                 const tn_real *restrict v)
{
#pragma omp simd
    for (uint32_t c = 0; c < dim; c++) {
        s[c] += v[c];
        q[c] += v[c] * v[c];
    }
}

TN_ALWAYS_INLINE void back_vector(const uint32_t dim, tn_real *restrict dv,
                                  const tn_real *restrict v, const tn_real *restrict s, tn_real dy)
{
#pragma omp simd
    for (uint32_t c = 0; c < dim; c++) {
        dv[c] += dy * (s[c] - v[c]);
    }
}

TN_ALWAYS_INLINE void add_slot(const fm_rows *p, const tn_embed_slot *slot, tn_range rows,
                               const uint32_t dim)
{
    const uint32_t *index = p->walk.sparse->bag[slot->slot].index;
    const tn_real *table = p->walk.sparse->rows + slot->segment->at;
    tn_real *sum = p->sum;
    tn_real *squares = p->squares;
    for (uint32_t r = rows.from; r < rows.to; r++) {
        __builtin_prefetch(table + index[r + TN_AHEAD < rows.to ? r + TN_AHEAD : r]);
        add_vector(dim, sum + (size_t)r * dim, squares + (size_t)r * dim, table + index[r]);
    }
}

TN_HOT static void fm_add_slot(const fm_rows *p, const tn_embed_slot *slot, tn_range rows)
{
    TN_UNROLLED(add_slot, p->dim, p, slot, rows);
}

TN_HOT static void fm_add_one(const fm_rows *p, uint32_t row, const tn_real *v)
{
    size_t at = (size_t)row * p->dim;
    add_vector(p->dim, p->sum + at, p->squares + at, v);
}

TN_ALWAYS_INLINE void back_slot(const fm_rows *p, const tn_embed_slot *slot, uint32_t n_rows,
                                const uint32_t dim)
{
    const uint32_t *index = p->walk.sparse->bag[slot->slot].index;
    const tn_real *table = p->walk.sparse->rows + slot->segment->at;
    tn_real *grads = p->walk.sparse->grads + slot->segment->at;
    const tn_real *sum = p->sum;
    const tn_real *dy = p->dy;
    for (uint32_t r = 0; r < n_rows; r++) {
        back_vector(dim, grads + index[r], table + index[r], sum + (size_t)r * dim,
                    dy[r * p->stride]);
    }
}

TN_HOT static void fm_back_slot(const fm_rows *p, const tn_embed_slot *slot, uint32_t n_rows)
{
    TN_UNROLLED(back_slot, p->dim, p, slot, n_rows);
}

TN_ALWAYS_INLINE void back_plain(const tn_embed_walk *w, const tn_occurrence *o,
                                 const tn_slot_use *use, size_t at, const uint32_t dim)
{
    const fm_rows *p = (const fm_rows *)w; /* its first member */
    (void)use;
    back_vector(dim, w->sparse->grads + at, w->sparse->rows + at, p->sum + (size_t)o->row * dim,
                p->dy[o->row * p->stride]);
}

TN_HOT static void fm_back_plain(const fm_rows *p, const tn_row_block *block)
{
    TN_UNROLLED(tn_each_of_block, p->dim, &p->walk, block, back_plain);
}

static size_t fm_state_bytes(const tn_node *y)
{
    const tn_embed_pairs *a = tn_embed_pairs_of(y);
    return (size_t)tn_max_rows(y) * a->dim * (2 + a->list->n) * sizeof(tn_real);
}

static fm_rows rows_of(const tn_node *y)
{
    const tn_embed_pairs *a = tn_embed_pairs_of(y);
    tn_real *sum = y->state;
    return (fm_rows){
        .walk = {y, a->list, tn_feed_of(y)->sparse},
        .folded = sum + 2 * (size_t)tn_max_rows(y) * a->dim,
        .dim = a->dim,
        .sum = sum,
        .squares = sum + (size_t)tn_max_rows(y) * a->dim,
        .dy = y->grad,
        .stride = y->stride,
    };
}

static tn_real *folded_of(const fm_rows *p, size_t row, uint32_t i)
{
    return p->folded + (row * p->walk.e->n + i) * p->dim;
}

static const tn_bag *bag_of(const tn_node *y, uint32_t i)
{
    return &tn_feed_of(y)->sparse->bag[tn_embed_pairs_of(y)->list->slot[i].slot];
}

/* One value with x = 1 in every example. */
static bool is_plain(const tn_bag *bag)
{
    return bag->ones && bag->weight == NULL;
}

static void fold_slot(const tn_node *y, uint32_t i, tn_range rows, const fm_rows *p)
{
    const tn_bag *bag = bag_of(y, i);
    for (uint32_t r = rows.from; r < rows.to; r++) {
        const tn_range entries = {bag->offset[r], bag->offset[r + 1]};
        tn_real *out = folded_of(p, r, i);
        if (entries.from == entries.to) {
            tn_clear(out, p->dim);
        } else {
            tn_pool_sum(p->walk.sparse, &p->walk.e->slot[i], entries, 1, out);
        }
        fm_add_one(p, r, out);
    }
}

/* Returns the sum over all pairs from s and sum_i v_i^2, which is used up. */
static tn_real sum_of_pairs(uint32_t dim, const tn_real *sum, tn_real *squares)
{
    for (uint32_t c = 0; c < dim; c++) {
        squares[c] = (sum[c] * sum[c] - squares[c]) / 2;
    }
    return tn_vec_sum(dim, squares);
}

static void fm_forward(tn_node *y, tn_range rows)
{
    const tn_embed_pairs *a = tn_embed_pairs_of(y);
    const fm_rows p = rows_of(y);
    TN_ASSERT(p.walk.sparse != NULL);
    size_t from = (size_t)rows.from * p.dim;
    size_t n = (size_t)(rows.to - rows.from) * p.dim;
    tn_clear(p.sum + from, n);
    tn_clear(p.squares + from, n);
    for (uint32_t i = 0; i < a->list->n; i++) {
        if (is_plain(bag_of(y, i))) {
            fm_add_slot(&p, &a->list->slot[i], rows);
        } else {
            fold_slot(y, i, rows, &p);
        }
    }
    for (uint32_t r = rows.from; r < rows.to; r++) {
        size_t at = (size_t)r * p.dim;
        *tn_val_row(y, r) = sum_of_pairs(p.dim, p.sum + at, p.squares + at);
    }
}

/* Adds the part of one entry of a bag to its gradient, in general. */
static void add_entry(const tn_embed_walk *w, const tn_occurrence *o, const tn_slot_use *use,
                      size_t at, const uint32_t unused)
{
    (void)unused;
    const fm_rows *p = (const fm_rows *)w;
    const tn_bag *bag = &p->walk.sparse->bag[o->slot];
    const tn_real *v = is_plain(bag) ? p->walk.sparse->rows + at : folded_of(p, o->row, use->i);
    const tn_real *s = p->sum + (size_t)o->row * p->dim;
    tn_real dy = p->dy[o->row * p->stride];
    tn_real x = tn_weight_of(bag, o->j);
    for (uint32_t c = 0; c < p->dim; c++) {
        p->walk.sparse->grads[at + c] += dy * (s[c] - v[c]) * x;
    }
}

static void fm_backward_rows(tn_node *y, const tn_row_block *block)
{
    const fm_rows p = rows_of(y);
    const uint32_t i = tn_use_of(p.walk.e, block->slot[0])->i;
    bool plain = true;
    for (uint32_t k = 0; k < block->n_slots; k++) {
        plain &= is_plain(&p.walk.sparse->bag[block->slot[k]]);
    }
    if (!plain) {
        tn_each_of_block(&p.walk, block, add_entry, 0);
    } else if (!block->whole || block->n_slots > 1) {
        fm_back_plain(&p, block);
    } else if (i != TN_NO_SLOT) {
        fm_back_slot(&p, &p.walk.e->slot[i], y->shape.rows);
    }
}

static double fm_flops(const tn_node *y)
{
    const tn_embed_pairs *a = tn_embed_pairs_of(y);
    return 3.0 * y->shape.rows * a->list->n * a->dim;
}

static tn_node *fm_example(tn_graph *g)
{
    static const tn_segment deep = {.name = "deep", .at = 1, .dim = 3};
    static const tn_embed_slot slots[] = {
        {.name = "a", .slot = 0, .segment = &deep, .pool = TN_POOL_SUM},
        {.name = "b", .slot = 1, .segment = &deep, .pool = TN_POOL_SUM},
        {.name = "d", .slot = 3, .segment = &deep, .pool = TN_POOL_SUM},
    };
    const tn_embed_pairs a = {.list = tn_embed(g, NULL, slots, 3)->attr, .dim = deep.dim};
    return tn_apply(g, &tn_op_embed_fm, NULL, NULL, 0, &a);
}

const tn_op tn_op_embed_fm = {
    .name = "embed_fm",
    .formula = "y = sum of <vi, vj> over all pairs of slots",
    .n_in = 0,
    .attr_size = sizeof(tn_embed_pairs),
    .shape = tn_column_shape,
    .state_bytes = fm_state_bytes,
    .forward = fm_forward,
    .sparse.backward_rows = fm_backward_rows,
    .flops = fm_flops,
    .example = {.build = fm_example},
};
