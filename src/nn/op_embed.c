/* op_embed.c - rows of the batch's small table, pooled slot by slot; see embed.h.
 *
 *   forward     out = sum_j x_j v_j / D       tiles of examples
 *   backward    dv_j += (x_j / D) dout        tiles of keys, by their occurrences
 *
 * Slots, denominators and winners are looked up in tables of the node:
 *
 *     at[i]        first column of slot i of the list, and one past the last
 *     of_slot[s]   which entry of the list schema slot s is, or NONE
 *     scale        [rows x slots] 1 / D, where it is not 1 (state)
 *     winner       [rows x columns] entry that is the maximum (state; only with max)
 */
#include "nn/embed.h"
#include "nn/ops.h"
#include "nn/vec.h"

#include "base/arena.h"
#include "nn/embedloops.h"
#include "nn/graphcore.h"

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

/* Denominators behind winners. */
static size_t winner_bytes(const tn_node *y)
{
    const tn_embed_list *e = embed_of(y);
    return e->has_max ? (size_t)tn_max_rows(y) * e->at[e->n] * sizeof(uint32_t) : 0;
}

static size_t embed_state_bytes(const tn_node *y)
{
    const tn_embed_list *e = embed_of(y);
    return winner_bytes(y) + (size_t)tn_max_rows(y) * e->n * sizeof(tn_real);
}

static tn_real *scale_row(const tn_node *y, size_t row)
{
    return (tn_real *)(void *)((char *)y->state + winner_bytes(y)) + row * embed_of(y)->n;
}

static uint32_t *winner_row(const tn_node *y, size_t row)
{
    return (uint32_t *)y->state + row * embed_of(y)->at[embed_of(y)->n];
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
        scale_row(y, row)[i] = scale;
        tn_pool_sum(p, scale);
        break;
    }
    case TN_POOL_SUM:
        tn_pool_sum(p, 1);
        break;
    case TN_POOL_MAX:
        tn_pool_max(p, winner_row(y, row) + embed_of(y)->at[i]);
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
            scale_row(y, r + k)[i] = 1;
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

/* What backward looks at for every occurrence. */
typedef struct key_walk {
    const tn_node *y;
    const tn_embed_list *e;
    const tn_sparse *sparse;
} key_walk;

/* What occurrence `o` of a key, in entry i of the list, adds to its gradient dv. */
static void add_occurrence(const key_walk *w, const tn_occurrence *o, uint32_t i, tn_real *dv)
{
    const tn_embed_slot *slot = &w->e->slot[i];
    const tn_bag *bag = &w->sparse->bag[o->slot];
    const tn_real *dout = tn_grad_row(w->y, o->row) + w->e->at[i];
    uint32_t dim = slot->segment->dim;
    tn_real x = bag->weight == NULL ? 1 : (tn_real)bag->weight[o->entry];
    switch (slot->pool) {
    case TN_POOL_MEAN:
    case TN_POOL_SQRTN:
        tn_add_scaled(dim, dv, dout, x * scale_row(w->y, o->row)[i]);
        break;
    case TN_POOL_SUM:
        tn_add_scaled(dim, dv, dout, x);
        break;
    case TN_POOL_MAX:
        tn_add_won(dim, dv, dout, &(tn_won){winner_row(w->y, o->row) + w->e->at[i], o->entry, x});
        break;
    case TN_POOL_CONCAT: {
        uint32_t place = o->entry - bag->offset[o->row];
        if (place < slot->k) {
            tn_add_scaled(dim, dv, dout + (size_t)place * dim, x);
        }
        break;
    }
    }
}

static uint32_t list_index(const tn_embed_list *e, uint32_t slot)
{
    return slot < e->n_of_slot ? e->of_slot[slot] : TN_NO_SLOT;
}

enum { AHEAD = 16 }; /* occurrences whose gradients are on their way to the near cache */

static void prefetch(const key_walk *w, const tn_occurrence *o)
{
    uint32_t i = list_index(w->e, o->slot);
    if (i != TN_NO_SLOT) {
        __builtin_prefetch(tn_grad_row(w->y, o->row) + w->e->at[i]);
        if (keeps_scale(&w->e->slot[i])) {
            __builtin_prefetch(scale_row(w->y, o->row) + i);
        }
    }
}

/* Occurrences from .. to of one key, all in entry i of the list. Slots without weights that are
 * summed or averaged, nearly all there are, take the short way. */
static void add_run(const key_walk *w, tn_range items, uint32_t i, tn_real *dv)
{
    const tn_occurrence *item = w->sparse->occurrences.item;
    const tn_embed_slot *slot = &w->e->slot[i];
    if (w->sparse->bag[slot->slot].weight == NULL &&
        (slot->pool == TN_POOL_SUM || keeps_scale(slot))) {
        tn_run run = {.item = item,
                      .items = items,
                      .dout = w->y->grad + w->e->at[i],
                      .stride = w->y->stride,
                      .scale = keeps_scale(slot) ? scale_row(w->y, 0) + i : NULL,
                      .scale_stride = w->e->n};
        tn_add_run(slot->segment->dim, dv, &run);
        return;
    }
    for (uint32_t j = items.from; j < items.to; j++) {
        add_occurrence(w, &item[j], i, dv);
    }
}

static void embed_backward_keys(tn_node *y, tn_range keys)
{
    key_walk w = {y, embed_of(y), tn_feed_of(y)->sparse};
    const tn_occurrences *all = &w.sparse->occurrences;
    TN_ASSERT(all->first != NULL && w.sparse->grads != NULL);
    const uint32_t last = all->first[keys.to];
    for (uint32_t k = keys.from; k < keys.to; k++) {
        tn_real *grads = w.sparse->grads + w.sparse->at[k];
        for (uint32_t j = all->first[k]; j < all->first[k + 1];) {
            uint32_t slot = all->item[j].slot;
            uint32_t i = list_index(w.e, slot);
            uint32_t from = j;
            for (; j < all->first[k + 1] && all->item[j].slot == slot; j++) {
                if (j + AHEAD < last) {
                    prefetch(&w, &all->item[j + AHEAD]);
                }
            }
            if (i != TN_NO_SLOT) {
                add_run(&w, (tn_range){from, j}, i, grads + w.e->slot[i].segment->at);
            }
        }
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
    .backward_keys = embed_backward_keys,
    .tile = embed_tile,
    .example = embed_example,
};

static uint32_t columns_of(const tn_embed_slot *slot)
{
    TN_ASSERT(slot->pool != TN_POOL_CONCAT || slot->k > 0);
    return slot->pool == TN_POOL_CONCAT ? slot->k * slot->segment->dim : slot->segment->dim;
}

tn_node *tn_embed(tn_graph *g, const char *name, const tn_embed_slot *slots, uint32_t n)
{
    TN_ASSERT(n > 0);
    tn_embed_list e = {.n = n};
    uint32_t *at = TN_NEW_ARRAY(g->arena, uint32_t, n + 1);
    tn_embed_slot *copy = TN_NEW_ARRAY(g->arena, tn_embed_slot, n);
    for (uint32_t i = 0; i < n; i++) {
        copy[i] = slots[i];
        size_t size = strlen(slots[i].name) + 1;
        char *text = tn_arena_alloc(g->arena, size, 1, 1);
        memcpy(text, slots[i].name, size);
        copy[i].name = text;
        at[i + 1] = at[i] + columns_of(&slots[i]);
        e.has_max |= slots[i].pool == TN_POOL_MAX;
        e.n_of_slot = slots[i].slot >= e.n_of_slot ? slots[i].slot + 1 : e.n_of_slot;
    }
    uint32_t *of_slot = TN_NEW_ARRAY(g->arena, uint32_t, e.n_of_slot);
    memset(of_slot, 0xff, e.n_of_slot * sizeof *of_slot);
    for (uint32_t i = 0; i < n; i++) {
        TN_ASSERT(of_slot[slots[i].slot] == TN_NO_SLOT);
        of_slot[slots[i].slot] = i;
    }
    e.slot = copy;
    e.at = at;
    e.of_slot = of_slot;
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
