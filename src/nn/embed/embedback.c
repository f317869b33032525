/* embedback.c - see embedback.h. */
#include "nn/embed/embedback.h"

/* What backward looks at for every occurrence. */
typedef struct key_walk {
    const tn_node *y;
    const tn_embed_list *e;
    const tn_sparse *sparse;
} key_walk;

static key_walk walk_of(const tn_node *y)
{
    return (key_walk){y, y->attr, tn_feed_of(y)->sparse};
}

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
        tn_add_scaled(dim, dv, dout, x * tn_scale_row(w->y, o->row)[i]);
        break;
    case TN_POOL_SUM:
        tn_add_scaled(dim, dv, dout, x);
        break;
    case TN_POOL_MAX:
        tn_add_won(dim, dv, dout,
                   &(tn_won){tn_winner_row(w->y, o->row) + w->e->at[i], o->entry, x});
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

enum { AHEAD = 16 }; /* occurrences whose gradients are on their way to the near cache */

static void prefetch(const key_walk *w, const tn_occurrence *o)
{
    const tn_slot_use *use = tn_use_of(w->e->use, w->e->n_uses, o->slot);
    if (use->i != TN_NO_SLOT) {
        __builtin_prefetch(tn_grad_row(w->y, o->row) + use->col);
        if (use->scaled) {
            __builtin_prefetch(tn_scale_row(w->y, o->row) + use->i);
        }
    }
}

/* Slots without weights that are summed or averaged, nearly all there are, take the short way. */
static void add_one(const key_walk *w, const tn_occurrence *o, const tn_slot_use *use, tn_real *dv)
{
    if (use->simple && w->sparse->bag[o->slot].weight == NULL) {
        tn_real by = use->scaled ? tn_scale_row(w->y, o->row)[use->i] : 1;
        tn_add_scaled(use->segment->dim, dv, tn_grad_row(w->y, o->row) + use->col, by);
    } else {
        add_occurrence(w, o, use->i, dv);
    }
}

static bool is_plain(const key_walk *w, uint32_t i)
{
    const tn_embed_slot *slot = &w->e->slot[i];
    return slot->pool == TN_POOL_SUM && w->sparse->bag[slot->slot].weight == NULL;
}

/* Whether all slots are plain sums of vectors of one width, as they nearly always are. */
static bool all_plain(const key_walk *w)
{
    bool plain = true;
    for (uint32_t i = 0; i < w->e->n; i++) {
        plain &= is_plain(w, i) && w->e->slot[i].segment->dim == w->e->slot[0].segment->dim;
    }
    return plain;
}

void tn_embed_back_keys(tn_node *y, tn_range keys)
{
    const key_walk w = walk_of(y);
    if (w.sparse->apart) {
        return;
    }
    TN_ASSERT(w.sparse->occurrences.first != NULL && w.sparse->grads != NULL);
    if (all_plain(&w)) {
        tn_add_plain(&(tn_plain_sum){.sparse = w.sparse,
                                     .use = w.e->use,
                                     .n_uses = w.e->n_uses,
                                     .dim = w.e->slot[0].segment->dim,
                                     .dout = tn_grad_row(y, 0),
                                     .stride = y->stride},
                     keys);
        return;
    }
    const tn_occurrence *item = w.sparse->occurrences.item;
    const uint32_t *first = w.sparse->occurrences.first;
    const uint32_t *at = w.sparse->at;
    const uint32_t last = first[keys.to];
    uint32_t k = keys.from;
    for (uint32_t j = first[keys.from]; j < last; j++) {
        k += j == first[k + 1]; /* without a branch */
        while (j >= first[k + 1]) {
            k++; /* keys that nobody holds: never in a batch, but harmless */
        }
        const tn_slot_use *use = tn_use_of(w.e->use, w.e->n_uses, item[j].slot);
        if (j + AHEAD < last) {
            prefetch(&w, &item[j + AHEAD]);
        }
        if (use->i != TN_NO_SLOT) {
            add_one(&w, &item[j], use, w.sparse->grads + at[k] + use->segment->at);
        }
    }
}

/* One slot by its bag, whose weights or pooling are not the plain ones. */
static void back_slot(const key_walk *w, const tn_embed_slot *slot)
{
    const tn_bag *bag = &w->sparse->bag[slot->slot];
    const tn_slot_use *use = &w->e->use[slot->slot];
    tn_real *grads = w->sparse->grads + slot->segment->at;
    for (uint32_t r = 0; r < w->y->shape.rows; r++) {
        for (uint32_t j = bag->offset[r]; j < bag->offset[r + 1]; j++) {
            const tn_occurrence o = {r, slot->slot, j};
            add_one(w, &o, use, grads + w->sparse->at[bag->index[j]]);
        }
    }
}

void tn_embed_back_slots(tn_node *y, tn_range slots)
{
    const key_walk w = walk_of(y);
    TN_ASSERT(slots.from == slots.to || w.sparse->apart);
    for (uint32_t i = slots.from; i < slots.to; i++) {
        const tn_embed_slot *slot = &w.e->slot[i];
        if (is_plain(&w, i)) {
            tn_add_plain_slot(&(tn_plain_slot){.sparse = w.sparse,
                                               .slot = slot,
                                               .n_rows = y->shape.rows,
                                               .dout = tn_grad_row(y, 0) + w.e->at[i],
                                               .stride = y->stride});
        } else {
            back_slot(&w, slot);
        }
    }
}

uint32_t tn_embed_slots(const tn_node *y)
{
    const tn_embed_list *e = y->attr;
    return tn_feed_of(y)->sparse->apart ? e->n : 0;
}
