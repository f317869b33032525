/* op_embed_squares.c - sums of squares over an embedding input: embed_squares, embed_norm. The
 * operand says which slots and segments; its matrix is not read.
 *
 *   embed_squares   y    = sum_j (x_j v_j)^2    in the columns where the input has sum_j x_j v_j
 *                   dv_j += 2 x_j^2 v_j dy      blocks of the batch's rows
 *   embed_norm      y    = 1 / sum_j x_j^2      over the values of all slots; nothing flows back
 *
 * With squares, pairs of values within a slot can be distinguished from squares of values:
 * fm_values in op_fm.c. The norm makes examples with many or large values count no more than
 * others; it is 0 for an example without values. In a graph that is rewritten (fuse.c) its list of
 * slots is the node's own.
 */
#include "nn/embed/embedlist.h"

/* A norm that was rewritten has the list itself. */
static const tn_embed_list *list_of(const tn_node *y)
{
    return y->n_in == 0 ? y->attr : y->in[0]->attr;
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

/* One slot of one example. */
static void add_squares(const tn_sparse *sparse, const tn_embed_slot *slot, uint32_t row,
                        tn_real *out)
{
    const tn_bag *bag = &sparse->bag[slot->slot];
    for (uint32_t j = bag->offset[row]; j < bag->offset[row + 1]; j++) {
        const tn_real *v = sparse->rows + bag->index[j] + slot->segment->at;
        tn_real x = tn_weight_of(bag, j);
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

/* No gradient flows through the operand's values; but its first writer must clear its gradient. */
static void squares_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    for (size_t r = rows.from; r < rows.to && x->grad != NULL && !tn_adds(y, x); r++) {
        tn_clear(tn_grad_row(x, r), x->shape.cols);
    }
}

/* Adds the share of one occurrence of a row to its gradient. */
static void add_occurrence(const tn_embed_walk *w, const tn_occurrence *o, const tn_slot_use *use,
                           size_t at, const uint32_t unused)
{
    (void)unused;
    const tn_sparse *sparse = w->sparse;
    const tn_real *dy = tn_grad_row(w->y, o->row) + use->col;
    tn_real x = tn_weight_of(&sparse->bag[o->slot], o->j);
    for (uint32_t c = 0; c < use->segment->dim; c++) {
        sparse->grads[at + c] += 2 * x * x * sparse->rows[at + c] * dy[c];
    }
}

static void squares_backward_rows(tn_node *y, const tn_row_block *block)
{
    tn_each_of_block(&(tn_embed_walk){y, list_of(y), tn_feed_of(y)->sparse}, block, add_occurrence,
                     0);
}

static tn_node *squares_example(tn_graph *g)
{
    static const tn_segment deep = {.name = "deep", .at = 1, .dim = 3};
    static const tn_embed_slot slots[] = {
        {.name = "a", .slot = 0, .segment = &deep, .pool = TN_POOL_SUM},
        {.name = "d", .slot = 3, .segment = &deep, .pool = TN_POOL_SUM},
    };
    return tn_apply(g, &tn_op_embed_squares, NULL, TN_IN(tn_embed(g, NULL, slots, 2)), NULL);
}

const tn_op tn_op_embed_squares = {
    TN_OP_MEMBERS(embed_squares, squares),
    .shape = squares_shape,
    .example = {.build = squares_example},
    .formula = "y = sum_j (x_j v_j)^2 per slot, side by side",
    .n_in = 1,
    .sparse.backward_rows = squares_backward_rows,
    .flops_each = 3,
};

static tn_shape norm_shape(const tn_node *y)
{
    return y->in[0]->op == &tn_op_embed ? (tn_shape){tn_max_rows(y), 1} : TN_MISFIT;
}

static double square_sum(const tn_bag *bag, uint32_t row)
{
    if (bag->weight == NULL) {
        return bag->offset[row + 1] - bag->offset[row];
    }
    double sum = 0;
    for (uint32_t j = bag->offset[row]; j < bag->offset[row + 1]; j++) {
        sum += (double)bag->weight[j] * (double)bag->weight[j];
    }
    return sum;
}

static void norm_forward(tn_node *y, tn_range rows)
{
    const tn_embed_list *e = list_of(y);
    const tn_sparse *sparse = tn_feed_of(y)->sparse;
    TN_ASSERT(sparse != NULL);
    for (uint32_t r = rows.from; r < rows.to; r++) {
        double sum = 0;
        for (uint32_t i = 0; i < e->n; i++) {
            sum += square_sum(&sparse->bag[e->slot[i].slot], r);
        }
        *tn_val_row(y, r) = sum > 0 ? (tn_real)(1 / sum) : 0;
    }
}

static tn_node *norm_example(tn_graph *g)
{
    static const tn_segment deep = {.name = "deep", .at = 1, .dim = 3};
    static const tn_embed_slot slots[] = {
        {.name = "a", .slot = 0, .segment = &deep, .pool = TN_POOL_SUM},
        {.name = "d", .slot = 3, .segment = &deep, .pool = TN_POOL_MEAN},
    };
    return tn_apply(g, &tn_op_embed_norm, NULL, TN_IN(tn_embed(g, NULL, slots, 2)), NULL);
}

const tn_op tn_op_embed_norm = {
    .name = "embed_norm",
    .formula = "y = 1 / sum_j x_j^2 over all slots",
    .n_in = 1,
    .shape = norm_shape,
    .forward = norm_forward,
    .example = {.build = norm_example},
};
