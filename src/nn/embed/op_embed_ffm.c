/* op_embed_ffm.c - field-aware pairs straight from the rows that an example holds.
 *
 * What ffm(embed) gives, without a matrix of slots * slots * dim columns and without one of
 * gradients; training graphs are rewritten to it (fuse.c). A[i,j] = sum over values of slot i of
 * x v_j:
 *
 *   forward     y       = sum over i < j of <A[i,j], A[j,i]>       tiles of examples
 *   backward    dv_j   += x dy A[j,i]    for the values of i       tiles of j, see below
 *
 * A gradient is as wide as all slots together, and an example adds to one of every slot. So
 * backward is not cut by keys but by the block j that is written: one tile owns the blocks j .. j+7
 * of all rows of gradients and goes through the examples in order. It reads the vectors of slots j
 * .. j+7 alone, each number once.
 *
 *     grads   key 0   | 0  1 .. 7 | 8 .. 15 | 16 ..
 *             key 1   | 0  1 .. 7 | 8 .. 15 | 16 ..
 *                       tile 0      tile 1
 *
 * `place` (state) is where each slot's vector begins in the batch's rows, when the slot has one
 * value with x = 1; else NOWHERE, and its values are folded again where they are needed.
 */
#include "base/keys/record.h"
#include "nn/pooling/ffmloops.h"

#include "nn/op/ops.h"
#include "nn/pooling/embedloops.h"

#define NOWHERE UINT32_MAX
enum { AHEAD = 2, LINE_REALS = 64 / (int)sizeof(tn_real) };

static size_t ffm_state_bytes(const tn_node *y)
{
    return (size_t)tn_max_rows(y) * tn_embed_pairs_of(y)->list->n * sizeof(uint32_t);
}

static uint32_t *places_of(const tn_node *y, size_t row)
{
    return (uint32_t *)y->state + row * tn_embed_pairs_of(y)->list->n;
}

static tn_range entries_of(const tn_bag *bag, uint32_t row)
{
    return (tn_range){bag->offset[row], bag->offset[row + 1]};
}

/* What an operator's function looks at all the time. */
typedef struct view {
    const tn_embed_list *e;
    const tn_sparse *sparse;
    uint32_t n;   /* slots */
    uint32_t dim; /* k */
} view;

static view view_of(const tn_node *y)
{
    const tn_embed_pairs *a = tn_embed_pairs_of(y);
    return (view){a->list, tn_feed_of(y)->sparse, a->list->n, a->dim};
}

static size_t row_of(const view *v, uint32_t slot, uint32_t entry)
{
    const tn_embed_slot *s = &v->e->slot[slot];
    return (size_t)v->sparse->at[v->sparse->bag[s->slot].index[entry]] + s->segment->at;
}

/* Slot by slot, as bags lie. */
static void note_places(const tn_node *y, const view *v, tn_range rows)
{
    for (uint32_t i = 0; i < v->n; i++) {
        const tn_bag *bag = &v->sparse->bag[v->e->slot[i].slot];
        uint32_t *place = places_of(y, rows.from) + i;
        for (uint32_t r = rows.from; r < rows.to; r++, place += v->n) {
            tn_range entries = entries_of(bag, r);
            bool single = bag->weight == NULL && entries.to - entries.from == 1;
            *place = single ? (uint32_t)row_of(v, i, entries.from) : NOWHERE;
        }
    }
}

static bool is_plain(const uint32_t *place, uint32_t n)
{
    bool plain = true;
    for (uint32_t i = 0; i < n; i++) {
        plain &= place[i] != NOWHERE;
    }
    return plain;
}

/* Numbers [from, to) of a slot's vectors, values folded. */
static void fold(const view *v, uint32_t slot, uint32_t row, tn_range part, tn_real *out)
{
    const tn_bag *bag = &v->sparse->bag[v->e->slot[slot].slot];
    tn_range entries = entries_of(bag, row);
    tn_clear(out, part.to - part.from);
    for (uint32_t j = entries.from; j < entries.to; j++) {
        const tn_real *from = v->sparse->rows + row_of(v, slot, j) + part.from;
        tn_add_scaled(part.to - part.from, out, from, tn_weight_of(bag, j));
    }
}

/* Blocks of a tile, and the slots of that tile with all their blocks. */
typedef struct folded {
    tn_real own[TN_FIELDS_TILE][TN_FFM_WIDTH_MAX];
    tn_real other[TN_FFM_WIDTH_MAX];
} folded;

static tn_range tile_of(const view *v, uint32_t from)
{
    return (tn_range){from, from + TN_FIELDS_TILE < v->n ? from + TN_FIELDS_TILE : v->n};
}

static void fold_own(const view *v, uint32_t row, tn_range tile, folded *f)
{
    for (uint32_t g = tile.from; g < tile.to; g++) {
        fold(v, g, row, (tn_range){0, v->n * v->dim}, f->own[g - tile.from]);
    }
}

/* An example with other slots than those of one plain value: tile by tile. */
static tn_real folded_pairs(const view *v, uint32_t row)
{
    folded f;
    tn_real sum = 0;
    for (uint32_t from = 0; from < v->n; from += TN_FIELDS_TILE) {
        tn_range tile = tile_of(v, from);
        fold_own(v, row, tile, &f);
        for (uint32_t i = 0; i < tile.to; i++) {
            fold(v, i, row, (tn_range){tile.from * v->dim, tile.to * v->dim}, f.other);
            for (uint32_t g = i < tile.from ? tile.from : i + 1; g < tile.to; g++) {
                const tn_real *a = f.other + (size_t)(g - tile.from) * v->dim;
                const tn_real *b = f.own[g - tile.from] + (size_t)i * v->dim;
                for (uint32_t c = 0; c < v->dim; c++) {
                    sum += a[c] * b[c];
                }
            }
        }
    }
    return sum;
}

static void fetch(const tn_real *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += LINE_REALS) {
        __builtin_prefetch(from + i);
    }
}

static void ffm_forward(tn_node *y, tn_range rows)
{
    const view v = view_of(y);
    const tn_real *field[TN_FFM_FIELDS_MAX];
    note_places(y, &v, rows);
    for (uint32_t r = rows.from; r < rows.to; r++) {
        const uint32_t *place = places_of(y, r);
        const uint32_t *soon = places_of(y, r + AHEAD < rows.to ? r + AHEAD : r);
        if (!is_plain(place, v.n)) {
            *tn_val_row(y, r) = folded_pairs(&v, r);
            continue;
        }
        for (uint32_t i = 0; i < v.n; i++) {
            field[i] = v.sparse->rows + place[i];
            if (soon[i] != NOWHERE) {
                fetch(v.sparse->rows + soon[i], v.n * v.dim);
            }
        }
        *tn_val_row(y, r) = tn_ffm_pairs(&(tn_ffm_row){v.n, v.dim, field});
    }
}

/* dv_j += x dy A[j,i] of one example, j in `tile`, by way of folded values. */
static void back_folded(const view *v, uint32_t row, tn_range tile, tn_real dy)
{
    folded f;
    fold_own(v, row, tile, &f);
    for (uint32_t i = 0; i < v->n; i++) {
        const tn_bag *bag = &v->sparse->bag[v->e->slot[i].slot];
        tn_range entries = entries_of(bag, row);
        for (uint32_t j = entries.from; j < entries.to; j++) {
            tn_real *dv = v->sparse->grads + row_of(v, i, j);
            tn_real by = dy * tn_weight_of(bag, j);
            for (uint32_t g = tile.from; g < tile.to; g++) {
                if (g != i) {
                    tn_add_scaled(v->dim, dv + (size_t)g * v->dim,
                                  f.own[g - tile.from] + (size_t)i * v->dim, by);
                }
            }
        }
    }
}

static void ffm_backward_fields(tn_node *y, tn_range fields)
{
    const view v = view_of(y);
    const tn_real *field[TN_FFM_FIELDS_MAX];
    tn_real *dfield[TN_FFM_FIELDS_MAX];
    uint32_t first = fields.from * v.dim;
    for (uint32_t r = 0; r < y->shape.rows; r++) {
        const uint32_t *place = places_of(y, r);
        const uint32_t *soon = places_of(y, r + AHEAD < y->shape.rows ? r + AHEAD : r);
        tn_real dy = *tn_grad_row(y, r);
        if (!is_plain(place, v.n)) {
            back_folded(&v, r, fields, dy);
            continue;
        }
        for (uint32_t i = 0; i < v.n; i++) {
            field[i] = v.sparse->rows + place[i];
            dfield[i] = v.sparse->grads + place[i];
            if (soon[i] != NOWHERE) {
                fetch(v.sparse->grads + soon[i] + first, (fields.to - fields.from) * v.dim);
            }
        }
        for (uint32_t g = fields.from; g < fields.to; g++) {
            if (soon[g] != NOWHERE) {
                fetch(v.sparse->rows + soon[g], v.n * v.dim);
            }
        }
        tn_ffm_pairs_back(&(tn_ffm_row){v.n, v.dim, field}, fields, dy, dfield);
    }
}

static double ffm_flops(const tn_node *y)
{
    const tn_embed_pairs *a = tn_embed_pairs_of(y);
    return (double)y->shape.rows * a->list->n * (a->list->n - 1) * a->dim;
}

static tn_node *ffm_example(tn_graph *g)
{
    static const tn_segment deep = {.name = "deep", .at = 0, .dim = 4};
    static const tn_embed_slot slots[] = {
        {.name = "a", .slot = 0, .segment = &deep, .pool = TN_POOL_SUM},
        {.name = "c", .slot = 2, .segment = &deep, .pool = TN_POOL_SUM},
    };
    const tn_embed_pairs a = {.list = tn_embed(g, NULL, slots, 2)->attr, .dim = 2};
    return tn_apply(g, &tn_op_embed_ffm, NULL, NULL, 0, &a);
}

const tn_op tn_op_embed_ffm = {
    .name = "embed_ffm",
    .formula = "y = sum of <A[i,j], A[j,i]> over all pairs of slots",
    .n_in = 0,
    .attr_size = sizeof(tn_embed_pairs),
    .shape = tn_column_shape,
    .state_bytes = ffm_state_bytes,
    .forward = ffm_forward,
    .backward_fields = ffm_backward_fields,
    .fields = tn_embed_pairs_slots,
    .flops = ffm_flops,
    .example = {.build = ffm_example},
};

bool tn_embed_can_ffm(const tn_node *embed, uint32_t dim)
{
    uint32_t n = embed->op == &tn_op_embed ? tn_embed_count(embed) : 0;
    return n > 0 && n <= TN_FFM_FIELDS_MAX && n * dim <= TN_FFM_WIDTH_MAX &&
           tn_embed_is_summed(embed, n * dim);
}
