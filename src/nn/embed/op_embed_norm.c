/* op_embed_norm.c - what makes examples with many or large values count no more than others.
 *
 *   forward     y = 1 / sum_j x_j^2        over the values of all slots of an embedding input
 *
 * 0 for an example without values. The operand tells which slots; nothing of it is read, nothing
 * flows back. In a graph that is rewritten (fuse.c) the list of slots is the node's own.
 */
#include "nn/op/ops.h"
#include "nn/pooling/embedloops.h"

static const tn_embed_list *list_of(const tn_node *y)
{
    return y->n_in == 0 ? y->attr : y->in[0]->attr;
}

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
    return tn_embed_norm(g, NULL, tn_embed(g, NULL, slots, 2));
}

const tn_op tn_op_embed_norm = {
    .name = "embed_norm",
    .formula = "y = 1 / sum_j x_j^2 over all slots",
    .n_in = 1,
    .shape = norm_shape,
    .forward = norm_forward,
    .example = norm_example,
};

tn_node *tn_embed_norm(tn_graph *g, const char *name, tn_node *x)
{
    return tn_apply(g, &tn_op_embed_norm, name, &x, 1, NULL);
}
