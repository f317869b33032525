/* op_embed_squares.c - squares of the single values that an embedding input sums up.
 *
 *   forward     y    = sum_j (x_j v_j)^2      in the columns where the input has sum_j x_j v_j
 *   backward    dv_j += 2 x_j^2 v_j dy        tiles of keys, by their occurrences
 *
 * The operand tells which slots and segments; its values are not read. With y, pairs of values
 * within a slot can be told from squares: fm_values in op_fm.c.
 */
#include "nn/op/ops.h"
#include "nn/pooling/embedloops.h"

static const tn_embed_list *list_of(const tn_node *y)
{
    return y->in[0]->attr;
}

static tn_shape squares_shape(const tn_node *y)
{
    const tn_node *x = y->in[0];
    for (uint32_t i = 0; x->op == &tn_op_embed && i < list_of(y)->n; i++) {
        if (list_of(y)->slot[i].pool != TN_POOL_SUM) {
            return TN_MISFIT;
        }
    }
    return x->op == &tn_op_embed ? x->shape : TN_MISFIT;
}

static tn_real weight_of(const tn_bag *bag, uint32_t entry)
{
    return bag->weight == NULL ? 1 : (tn_real)bag->weight[entry];
}

/* One slot of one example. */
static void add_squares(const tn_sparse *sparse, const tn_embed_slot *slot, uint32_t row,
                        tn_real *out)
{
    const tn_bag *bag = &sparse->bag[slot->slot];
    for (uint32_t j = bag->offset[row]; j < bag->offset[row + 1]; j++) {
        const tn_real *v = sparse->rows + sparse->at[bag->index[j]] + slot->segment->at;
        tn_real x = weight_of(bag, j);
        for (uint32_t c = 0; c < slot->segment->dim; c++) {
            out[c] += (v[c] * x) * (v[c] * x);
        }
    }
}

static void squares_forward(tn_node *y, tn_range rows)
{
    const tn_embed_list *e = list_of(y);
    const tn_sparse *sparse = tn_feed_of(y)->sparse;
    TN_ASSERT(sparse != NULL);
    for (uint32_t r = rows.from; r < rows.to; r++) {
        tn_clear(tn_val_row(y, r), y->shape.cols);
        for (uint32_t i = 0; i < e->n; i++) {
            add_squares(sparse, &e->slot[i], r, tn_val_row(y, r) + e->at[i]);
        }
    }
}

/* Nothing flows through the operand's values; but whoever is first leaves its gradient clean. */
static void squares_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL && !tn_adds(y, x); r++) {
        tn_clear(tn_grad_row(x, r), x->shape.cols);
    }
}

/* What one occurrence of a key adds to its gradient. */
static void add_occurrence(const tn_node *y, const tn_occurrence *o, uint32_t key)
{
    const tn_embed_list *e = list_of(y);
    const tn_sparse *sparse = tn_feed_of(y)->sparse;
    const tn_slot_use *use = &e->use[o->slot < e->n_uses ? o->slot : e->n_uses];
    if (use->i == TN_NO_SLOT) {
        return;
    }
    size_t at = (size_t)sparse->at[key] + use->segment->at;
    const tn_real *dy = tn_grad_row(y, o->row) + use->col;
    tn_real x = weight_of(&sparse->bag[o->slot], o->entry);
    for (uint32_t c = 0; c < use->segment->dim; c++) {
        sparse->grads[at + c] += 2 * x * x * sparse->rows[at + c] * dy[c];
    }
}

static void squares_backward_keys(tn_node *y, tn_range keys)
{
    const tn_sparse *sparse = tn_feed_of(y)->sparse;
    const tn_occurrences *all = &sparse->occurrences;
    TN_ASSERT(sparse->apart || all->first != NULL);
    for (uint32_t k = keys.from; !sparse->apart && k < keys.to; k++) {
        for (uint32_t j = all->first[k]; j < all->first[k + 1]; j++) {
            add_occurrence(y, &all->item[j], k);
        }
    }
}

static uint32_t squares_fields(const tn_node *y)
{
    return tn_feed_of(y)->sparse->apart ? list_of(y)->n : 0;
}

static void squares_backward_fields(tn_node *y, tn_range slots)
{
    const tn_sparse *sparse = tn_feed_of(y)->sparse;
    for (uint32_t i = slots.from; i < slots.to; i++) {
        uint32_t s = list_of(y)->slot[i].slot;
        const tn_bag *bag = &sparse->bag[s];
        for (uint32_t r = 0; r < y->shape.rows; r++) {
            for (uint32_t j = bag->offset[r]; j < bag->offset[r + 1]; j++) {
                add_occurrence(y, &(tn_occurrence){r, s, j}, bag->index[j]);
            }
        }
    }
}

static double squares_flops(const tn_node *y)
{
    return 3.0 * y->shape.rows * y->shape.cols;
}

static tn_node *squares_example(tn_graph *g)
{
    static const tn_segment deep = {.name = "deep", .at = 1, .dim = 3};
    static const tn_embed_slot slots[] = {
        {.name = "a", .slot = 0, .segment = &deep, .pool = TN_POOL_SUM},
        {.name = "d", .slot = 3, .segment = &deep, .pool = TN_POOL_SUM},
    };
    return tn_embed_squares(g, NULL, tn_embed(g, NULL, slots, 2));
}

const tn_op tn_op_embed_squares = {
    .name = "embed_squares",
    .formula = "y = sum_j (x_j v_j)^2 per slot, side by side",
    .n_in = 1,
    .shape = squares_shape,
    .forward = squares_forward,
    .backward = squares_backward,
    .backward_keys = squares_backward_keys,
    .backward_fields = squares_backward_fields,
    .fields = squares_fields,
    .flops = squares_flops,
    .example = squares_example,
};

tn_node *tn_embed_squares(tn_graph *g, const char *name, tn_node *x)
{
    return tn_apply(g, &tn_op_embed_squares, name, &x, 1, NULL);
}
