/* op_embed_sum.c - one number per example from an embedding input of single weights: wide parts.
 *
 *   forward     y     = sum over slots of sum_j x_j w_j
 *   backward    dw_j += x_j dy         tiles of keys, by their occurrences
 *
 * What sum_cols(embed) gives, without a matrix of weights and without one of gradients: a column
 * for all slots. Training graphs are rewritten to it (fuse.c).
 */
#include "base/core/arena.h"
#include "nn/embed/embedback.h"
#include "nn/graph/graphcore.h"
#include "nn/op/ops.h"

enum { ROWS_AT_ONCE = 64 };

static const tn_embed_list *list_of(const tn_node *y)
{
    return y->attr;
}

static tn_shape sum_shape(const tn_node *y)
{
    return (tn_shape){tn_max_rows(y), 1};
}

/* One slot of up to ROWS_AT_ONCE examples. */
static void add_slot(const tn_sparse *sparse, const tn_embed_slot *slot, tn_range rows,
                     tn_real *sum)
{
    const tn_bag *bag = &sparse->bag[slot->slot];
    const tn_real *w = sparse->rows + slot->segment->at;
    if (bag->ones && bag->weight == NULL) {
        for (uint32_t r = rows.from; r < rows.to; r++) {
            sum[r - rows.from] += w[sparse->at[bag->index[r]]];
        }
        return;
    }
    for (uint32_t r = rows.from; r < rows.to; r++) {
        for (uint32_t j = bag->offset[r]; j < bag->offset[r + 1]; j++) {
            tn_real x = bag->weight == NULL ? 1 : (tn_real)bag->weight[j];
            sum[r - rows.from] += x * w[sparse->at[bag->index[j]]];
        }
    }
}

static void sum_forward(tn_node *y, tn_range rows)
{
    const tn_embed_list *e = list_of(y);
    const tn_sparse *sparse = tn_feed_of(y)->sparse;
    TN_ASSERT(sparse != NULL);
    for (uint32_t from = rows.from; from < rows.to; from += ROWS_AT_ONCE) {
        uint32_t to = rows.to - from < ROWS_AT_ONCE ? rows.to : from + ROWS_AT_ONCE;
        tn_real sum[ROWS_AT_ONCE] = {0};
        for (uint32_t i = 0; i < e->n; i++) {
            add_slot(sparse, &e->slot[i], (tn_range){from, to}, sum);
        }
        for (uint32_t r = from; r < to; r++) {
            *tn_val_row(y, r) = sum[r - from];
        }
    }
}

static double sum_flops(const tn_node *y)
{
    return 2.0 * y->shape.rows * list_of(y)->n;
}

static tn_node *sum_example(tn_graph *g)
{
    static const tn_segment wide = {.name = "wide", .at = 2, .dim = 1};
    static const tn_embed_slot slots[] = {
        {.name = "a", .slot = 0, .segment = &wide, .pool = TN_POOL_SUM},
        {.name = "b", .slot = 1, .segment = &wide, .pool = TN_POOL_SUM},
        {.name = "d", .slot = 3, .segment = &wide, .pool = TN_POOL_SUM},
    };
    return tn_embed_sum(g, NULL, tn_embed(g, NULL, slots, 3));
}

const tn_op tn_op_embed_sum = {
    .name = "embed_sum",
    .formula = "y = sum_j x_j w_j over all slots",
    .n_in = 0,
    .attr_size = sizeof(tn_embed_list),
    .shape = sum_shape,
    .forward = sum_forward,
    .backward_keys = tn_embed_back_keys, /* all slots have the same column */
    .backward_fields = tn_embed_back_slots,
    .fields = tn_embed_slots,
    .flops = sum_flops,
    .example = sum_example,
};

bool tn_embed_can_sum(const tn_node *embed)
{
    bool can = embed->op == &tn_op_embed;
    for (uint32_t i = 0; can && i < tn_embed_count(embed); i++) {
        const tn_embed_slot *slot = tn_embed_get(embed, i);
        can = slot->pool == TN_POOL_SUM && slot->segment->dim == 1;
    }
    return can;
}

tn_embed_list *tn_embed_one_column(tn_graph *g, const tn_node *embed)
{
    TN_ASSERT(tn_embed_can_sum(embed));
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

tn_node *tn_embed_sum(tn_graph *g, const char *name, const tn_node *embed)
{
    return tn_apply(g, &tn_op_embed_sum, name, NULL, 0, tn_embed_one_column(g, embed));
}
