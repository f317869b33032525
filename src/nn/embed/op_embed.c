/* op_embed.c - rows of the batch's small table, pooled slot by slot; see embed.h.
 *
 *   forward     out = sum_j x_j v_j / D       tiles of examples
 *   backward    dv_j += (x_j / D) dout        tiles of keys, by their occurrences
 *
 * Slots, denominators and winners are looked up in tables of the node:
 *
 *     at[i]        first column of slot i of the list, and one past the last
 *     use[s]       what slot s of the schema is to this node; one more, for slots behind the last
 *     scale        [rows x slots] 1 / D, where it is not 1 (state)
 *     winner       [rows x columns] entry that is the maximum (state; only with max)
 */
#include "nn/graph/embed.h"
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

#include "base/core/arena.h"
#include "nn/embed/embedback.h"
#include "nn/graph/graphcore.h"

#include <math.h>
#include <string.h>

static const tn_embed_list *embed_of(const tn_node *y)
{
    return y->attr;
}

static tn_shape embed_shape(const tn_node *y)
{
    const tn_embed_list *e = embed_of(y);
    return (tn_shape){tn_max_rows(y), e->at[e->n]};
}

static size_t embed_state_bytes(const tn_node *y)
{
    const tn_embed_list *e = embed_of(y);
    return tn_winner_bytes(y) + (size_t)tn_max_rows(y) * e->n * sizeof(tn_real);
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

/* One slot of one example, in general. */
static void pool_slot(const tn_node *y, const tn_pooling *p, uint32_t i, size_t row)
{
    const tn_embed_slot *slot = p->slot;
    if (p->entries.from == p->entries.to) {
        tn_clear(p->out, p->cols);
        return;
    }
    switch (slot->pool) {
    case TN_POOL_MEAN:
    case TN_POOL_SQRTN: {
        tn_real scale = scale_of(slot->pool, p->bag, p->entries);
        tn_scale_row(y, row)[i] = scale;
        tn_pool_sum(p, scale);
        break;
    }
    case TN_POOL_SUM:
        tn_pool_sum(p, 1);
        break;
    case TN_POOL_MAX:
        tn_pool_max(p, tn_winner_row(y, row) + embed_of(y)->at[i]);
        break;
    case TN_POOL_CONCAT:
        tn_pool_concat(p);
        break;
    }
}

static bool keeps_scale(const tn_embed_slot *slot)
{
    return slot->pool == TN_POOL_MEAN || slot->pool == TN_POOL_SQRTN;
}

/* Slot i of a tile of examples: runs of examples with one plain value are copied at once. */
static void pool_tile(const tn_node *y, uint32_t i, tn_range rows)
{
    const tn_embed_list *e = embed_of(y);
    tn_pooling p = {
        .slot = &e->slot[i], .sparse = tn_feed_of(y)->sparse, .cols = e->at[i + 1] - e->at[i]};
    p.bag = &p.sparse->bag[p.slot->slot];
    bool plain =
        p.bag->weight == NULL && p.slot->pool != TN_POOL_MAX && p.cols == p.slot->segment->dim;
    for (uint32_t r = rows.from; r < rows.to;) {
        p.out = tn_val_row(y, r) + e->at[i];
        uint32_t copied = plain ? tn_pool_ones(&p, (tn_range){r, rows.to}, y->stride) : 0;
        for (uint32_t k = 0; keeps_scale(p.slot) && k < copied; k++) {
            tn_scale_row(y, r + k)[i] = 1;
        }
        r += copied;
        if (r < rows.to) {
            p.entries = (tn_range){p.bag->offset[r], p.bag->offset[r + 1]};
            p.out = tn_val_row(y, r) + e->at[i];
            pool_slot(y, &p, i, r);
            r++;
        }
    }
}

static void embed_forward(tn_node *y, tn_range rows)
{
    TN_ASSERT(tn_feed_of(y)->sparse != NULL);
    for (uint32_t i = 0; i < embed_of(y)->n; i++) {
        pool_tile(y, i, rows);
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
    .backward_keys = tn_embed_back_keys,
    .backward_fields = tn_embed_back_slots,
    .fields = tn_embed_slots,
    .tile = embed_tile,
    .example = embed_example,
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
        use[slot->slot] = (tn_slot_use){.i = i,
                                        .col = e->at[i],
                                        .segment = slot->segment,
                                        .simple = slot->pool == TN_POOL_SUM || keeps_scale(slot),
                                        .scaled = keeps_scale(slot)};
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

tn_node *tn_embed(tn_graph *g, const char *name, const tn_embed_slot *slots, uint32_t n)
{
    TN_ASSERT(n > 0);
    tn_embed_list e = {.n = n};
    uint32_t *at = TN_NEW_ARRAY(g->arena, uint32_t, n + 1);
    tn_embed_slot *copy = TN_NEW_ARRAY(g->arena, tn_embed_slot, n);
    for (uint32_t i = 0; i < n; i++) {
        copy[i] = slots[i];
        copy[i].name = tn_graph_copy_text(g, slots[i].name);
        at[i + 1] = at[i] + columns_of(&slots[i]);
        e.has_max |= slots[i].pool == TN_POOL_MAX;
        e.n_uses = slots[i].slot >= e.n_uses ? slots[i].slot + 1 : e.n_uses;
    }
    e.slot = copy;
    e.at = at;
    e.use = uses_of(g, &e);
    return tn_apply(g, &tn_op_embed, name, NULL, 0, &e);
}

void tn_embed_columns(const tn_node *embed, uint32_t i, uint32_t *first, uint32_t *cols)
{
    TN_ASSERT(embed->op == &tn_op_embed && i < embed_of(embed)->n);
    *first = embed_of(embed)->at[i];
    *cols = embed_of(embed)->at[i + 1] - *first;
}

uint32_t tn_embed_count(const tn_node *embed)
{
    TN_ASSERT(embed->op == &tn_op_embed);
    return embed_of(embed)->n;
}

const tn_embed_slot *tn_embed_get(const tn_node *embed, uint32_t i)
{
    TN_ASSERT(i < tn_embed_count(embed));
    return &embed_of(embed)->slot[i];
}
