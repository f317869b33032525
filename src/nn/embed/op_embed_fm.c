/* op_embed_fm.c - a factorization machine straight from the rows that an example holds.
 *
 * What fm(embed) gives, bit for bit, without a matrix of slots * dim columns and without one of
 * gradients; training graphs are rewritten to it (fuse.c). v_i = sum over values of slot i of x_j
 * v_j, s = v_1 + .. + v_f:
 *
 *   forward     y      = 1/2 sum_c (s_c^2 - sum_i v_ic^2)       tiles of examples
 *   backward    dv_j  += x_j dy (s - v_i)                       tiles of keys, or slot by slot
 *
 * Nearly all slots have one value with x = 1: v_i is the row itself. Of other slots v_i is kept:
 *
 *     state     s [rows x dim]  |  sum_i v_i^2 [rows x dim]  |  v_i [rows x slots x dim]
 */
#include "base/keys/record.h"
#include "nn/pooling/embedloops.h"
#include "nn/pooling/fmrows.h"
#include "nn/vec/vec.h"

#include "nn/op/ops.h"

static size_t fm_state_bytes(const tn_node *y)
{
    const tn_embed_pairs *a = tn_embed_pairs_of(y);
    return (size_t)tn_max_rows(y) * a->dim * (2 + a->list->n) * sizeof(tn_real);
}

static tn_fm_rows rows_of(const tn_node *y)
{
    const tn_embed_pairs *a = tn_embed_pairs_of(y);
    tn_real *sum = y->state;
    return (tn_fm_rows){
        .sparse = tn_feed_of(y)->sparse,
        .use = a->list->use,
        .n_uses = a->list->n_uses,
        .dim = a->dim,
        .sum = sum,
        .squares = sum + (size_t)tn_max_rows(y) * a->dim,
        .dy = y->grad,
        .stride = y->stride,
    };
}

/* v_i of an example, if it had to be kept. */
static tn_real *folded_of(const tn_node *y, size_t row, uint32_t i)
{
    const tn_embed_pairs *a = tn_embed_pairs_of(y);
    size_t before = 2 * (size_t)tn_max_rows(y) * a->dim;
    return (tn_real *)y->state + before + (row * a->list->n + i) * a->dim;
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

static void fold_slot(const tn_node *y, uint32_t i, tn_range rows, const tn_fm_rows *p)
{
    tn_pooling pooling = {.slot = &tn_embed_pairs_of(y)->list->slot[i],
                          .sparse = p->sparse,
                          .bag = bag_of(y, i),
                          .cols = p->dim};
    for (uint32_t r = rows.from; r < rows.to; r++) {
        pooling.entries = (tn_range){pooling.bag->offset[r], pooling.bag->offset[r + 1]};
        pooling.out = folded_of(y, r, i);
        if (pooling.entries.from == pooling.entries.to) {
            tn_clear(pooling.out, p->dim);
        } else {
            tn_pool_sum(&pooling, 1);
        }
        tn_fm_add(p, r, pooling.out);
    }
}

/* The sum over all pairs from s and sum_i v_i^2, which is used up. */
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
    const tn_fm_rows p = rows_of(y);
    TN_ASSERT(p.sparse != NULL);
    size_t from = (size_t)rows.from * p.dim;
    size_t n = (size_t)(rows.to - rows.from) * p.dim;
    tn_clear(p.sum + from, n);
    tn_clear(p.squares + from, n);
    for (uint32_t i = 0; i < a->list->n; i++) {
        if (is_plain(bag_of(y, i))) {
            tn_fm_add_slot(&p, &a->list->slot[i], rows);
        } else {
            fold_slot(y, i, rows, &p);
        }
    }
    for (uint32_t r = rows.from; r < rows.to; r++) {
        size_t at = (size_t)r * p.dim;
        *tn_val_row(y, r) = sum_of_pairs(p.dim, p.sum + at, p.squares + at);
    }
}

/* What one entry of a bag adds to the gradient at `at`, in general. */
static void add_entry(const tn_node *y, const tn_fm_rows *p, const tn_occurrence *o, size_t at)
{
    const tn_bag *bag = &p->sparse->bag[o->slot];
    const tn_slot_use *use = tn_use_of(p->use, p->n_uses, o->slot);
    const tn_real *v = is_plain(bag) ? p->sparse->rows + at : folded_of(y, o->row, use->i);
    const tn_real *s = p->sum + (size_t)o->row * p->dim;
    tn_real dy = p->dy[o->row * p->stride];
    tn_real x = tn_weight_of(bag, o->entry);
    for (uint32_t c = 0; c < p->dim; c++) {
        p->sparse->grads[at + c] += dy * (s[c] - v[c]) * x;
    }
}

static void back_entries(const tn_node *y, const tn_fm_rows *p, const tn_embed_slot *slot)
{
    const tn_bag *bag = &p->sparse->bag[slot->slot];
    for (uint32_t r = 0; r < y->shape.rows; r++) {
        for (uint32_t j = bag->offset[r]; j < bag->offset[r + 1]; j++) {
            size_t at = (size_t)p->sparse->at[bag->index[j]] + slot->segment->at;
            add_entry(y, p, &(tn_occurrence){r, slot->slot, j}, at);
        }
    }
}

static void fm_backward_fields(tn_node *y, tn_range slots)
{
    const tn_fm_rows p = rows_of(y);
    for (uint32_t i = slots.from; i < slots.to; i++) {
        const tn_embed_slot *slot = &tn_embed_pairs_of(y)->list->slot[i];
        if (is_plain(bag_of(y, i))) {
            tn_fm_back_slot(&p, slot, y->shape.rows);
        } else {
            back_entries(y, &p, slot);
        }
    }
}

static bool all_plain(const tn_node *y)
{
    bool plain = true;
    for (uint32_t i = 0; i < tn_embed_pairs_of(y)->list->n; i++) {
        plain &= is_plain(bag_of(y, i));
    }
    return plain;
}

static void fm_backward_keys(tn_node *y, tn_range keys)
{
    const tn_fm_rows p = rows_of(y);
    if (all_plain(y)) {
        tn_fm_back_keys(&p, keys);
        return;
    }
    const tn_occurrences *all = &p.sparse->occurrences;
    for (uint32_t k = keys.from; k < keys.to; k++) {
        for (uint32_t j = all->first[k]; j < all->first[k + 1]; j++) {
            const tn_slot_use *use = tn_use_of(p.use, p.n_uses, all->item[j].slot);
            if (use->i != TN_NO_SLOT) {
                add_entry(y, &p, &all->item[j], (size_t)p.sparse->at[k] + use->segment->at);
            }
        }
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
    .backward_keys = fm_backward_keys,
    .backward_fields = fm_backward_fields,
    .fields = tn_embed_pairs_slots,
    .flops = fm_flops,
    .example = {.build = fm_example},
};
