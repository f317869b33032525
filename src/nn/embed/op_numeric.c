/* op_numeric.c - the batch's numeric columns, out of the feed.
 *
 *   forward     y = numeric[r]
 */
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

typedef struct numeric_attr {
    uint32_t cols;
} numeric_attr;

static const tn_field attrs[] = {
    TN_FIELD_U32(numeric_attr, cols, "1", 1, 1e6, "columns", "numeric columns of the data"),
    TN_FIELD_END,
};

static tn_shape numeric_shape(const tn_node *y)
{
    return (tn_shape){tn_max_rows(y), ((const numeric_attr *)y->attr)->cols};
}

static void numeric_forward(tn_node *y, tn_range rows)
{
    const tn_real *from = tn_feed_of(y)->numeric;
    TN_ASSERT(from != NULL);
    for (size_t r = rows.from; r < rows.to; r++) {
        tn_vec_copy(y->shape.cols, tn_val_row(y, r), from + r * y->shape.cols, false);
    }
}

static double numeric_flops(const tn_node *y)
{
    (void)y;
    return 0;
}

static tn_node *numeric_example(tn_graph *g)
{
    return tn_numeric(g, NULL, 3);
}

const tn_op tn_op_numeric = {
    .name = "numeric",
    .formula = "y = the numeric columns of the batch",
    .n_in = 0,
    .attrs = attrs,
    .attr_size = sizeof(numeric_attr),
    .shape = numeric_shape,
    .forward = numeric_forward,
    .flops = numeric_flops,
    .example = numeric_example,
};

tn_node *tn_numeric(tn_graph *g, const char *name, uint32_t cols)
{
    TN_ASSERT(cols > 0);
    return tn_apply(g, &tn_op_numeric, name, NULL, 0, &(numeric_attr){.cols = cols});
}
