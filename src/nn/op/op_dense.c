/* op_dense.c - a dense layer: product, bias and activation in one pass over a tile.
 *
 *   forward     y   = act(x W + b)                      tiles of rows
 *   backward    dz  = dy act'(y), in place of dy        tiles of rows
 *               dx += dz W^T                            the same rows
 *               db += column sums of dz                 tiles of columns, all rows
 *               dW += x^T dz                            the same columns
 */
#include "nn/op/activations.h"
#include "nn/op/dense_tiles.h"
#include "nn/op/ops.h"
#include "nn/vec/vec.h"

static const tn_act *const activations[] = {
    NULL, &tn_act_relu, &tn_act_leaky_relu, &tn_act_sigmoid, &tn_act_tanh,
};
enum { N_ACTIVATIONS = sizeof activations / sizeof activations[0] };

static const char *const activation_words[] = {
    "none", "relu", "leaky_relu", "sigmoid", "tanh", NULL,
};

static const tn_field attrs[] = {
    TN_FIELD_CHOICE(tn_dense_attr, activation, "none", activation_words,
                    "what follows the product"),
    TN_FIELD_F64(tn_dense_attr, slope, "0", -1e6, 1e6, "", "of leaky_relu below 0"),
    TN_FIELD_END,
};

static const tn_dense_attr *attr_of(const tn_node *y)
{
    return y->attr;
}

static const tn_act *act_of(const tn_node *y)
{
    return activations[attr_of(y)->activation];
}

bool tn_dense_activation(const tn_node *n, tn_dense_attr *out)
{
    for (uint32_t i = 1; i < N_ACTIVATIONS; i++) {
        if (n->op->act == activations[i]) {
            double slope = n->attr == NULL ? 0 : ((const tn_act_attr *)n->attr)->slope;
            *out = (tn_dense_attr){.activation = i, .slope = slope};
            return true;
        }
    }
    return false;
}

static tn_shape dense_shape(const tn_node *y)
{
    tn_shape s = tn_product_shape(y);
    if (!(y->n_in < 3 || (y->in[2]->shape.rows == 1 && y->in[2]->shape.cols == s.cols))) {
        return TN_MISFIT;
    }
    if (attr_of(y)->activation >= N_ACTIVATIONS) {
        return TN_MISFIT;
    }
    return s;
}

/* Rows of a tile that are finished before the next ones begin, so that they are still in cache for
 * bias and activation; and rows of the batch that are masked and then multiplied. */
enum { ROWS_AT_ONCE = 24, BATCH_AT_ONCE = 128 };

static tn_act_area area_of(const tn_node *y, tn_range rows)
{
    tn_real *at = tn_val_row(y, rows.from);
    return (tn_act_area){.rows = rows.to - rows.from,
                         .cols = y->shape.cols,
                         .x = at,
                         .y = at,
                         .x_stride = y->stride,
                         .y_stride = y->stride,
                         .a = (tn_real)attr_of(y)->slope};
}

static void finish_rows(tn_node *y, tn_range rows)
{
    const tn_act *act = act_of(y);
    if (y->n_in == 3) {
        tn_vec_add_row(rows.to - rows.from, y->shape.cols, tn_val_row(y, rows.from), y->stride,
                       y->in[2]->val);
    }
    if (act != NULL) {
        tn_act_area area = area_of(y, rows);
        act->forward(&area);
    }
}

static void dense_forward(tn_node *y, tn_range rows)
{
    for (uint32_t from = rows.from; from < rows.to; from += ROWS_AT_ONCE) {
        uint32_t to = rows.to - from < ROWS_AT_ONCE ? rows.to : from + ROWS_AT_ONCE;
        tn_product_forward(y, (tn_range){from, to});
        finish_rows(y, (tn_range){from, to});
    }
}

/* dz in place of dy. */
static void mask_rows(const tn_node *y, tn_range rows)
{
    tn_act_area area = area_of(y, rows);
    area.x = NULL;
    area.d = tn_grad_row(y, rows.from);
    area.d_stride = y->stride;
    act_of(y)->slope(&area);
}

/* A dense layer right behind another is the only one to write that one's gradient. It masks it
 * along with that, while the rows are in cache. */
static bool is_masked_by_writer(const tn_node *y)
{
    return y->grad_alone && act_of(y) != NULL && y->first_writer->op == &tn_op_dense;
}

static void dense_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    bool masks = act_of(y) != NULL && !is_masked_by_writer(y);
    bool masks_x = x->op == &tn_op_dense && is_masked_by_writer(x);
    for (uint32_t from = rows.from; from < rows.to; from += ROWS_AT_ONCE) {
        uint32_t to = rows.to - from < ROWS_AT_ONCE ? rows.to : from + ROWS_AT_ONCE;
        if (masks) {
            mask_rows(y, (tn_range){from, to});
        }
        tn_product_backward(y, (tn_range){from, to});
        if (masks_x) {
            mask_rows(x, (tn_range){from, to});
        }
    }
}

static void add_column_sums(const tn_node *y, tn_range cols, tn_range rows)
{
    const tn_node *b = y->in[2];
    tn_real *db = b->grad + cols.from;
    if (rows.from == 0 && !tn_adds(y, b)) {
        tn_clear(db, cols.to - cols.from);
    }
    tn_vec_sum_rows(rows.to - rows.from, cols.to - cols.from, tn_grad_row(y, rows.from) + cols.from,
                    y->stride, db);
}

static void dense_backward_params(tn_node *y, tn_range cols)
{
    bool sums = y->n_in == 3 && y->in[2]->grad != NULL;
    for (uint32_t from = 0; from < y->shape.rows; from += BATCH_AT_ONCE) {
        uint32_t to = y->shape.rows - from < BATCH_AT_ONCE ? y->shape.rows : from + BATCH_AT_ONCE;
        if (sums) {
            add_column_sums(y, cols, (tn_range){from, to});
        }
        tn_product_weights(y, cols, (tn_range){from, to});
    }
}

static tn_node *dense_example(tn_graph *g)
{
    tn_init init = {.kind = TN_INIT_CONSTANT};
    tn_node *wb[] = {tn_param(g, NULL, NULL, (tn_shape){5, 7}, init),
                     tn_param(g, NULL, NULL, (tn_shape){1, 7}, init)};
    return tn_dense(g, NULL, tn_input(g, NULL, 5, true), wb, &(tn_dense_attr){.activation = 4});
}

static const char *const params[] = {"W", "b", NULL};

const tn_op tn_op_dense = {
    .name = "dense",
    .formula = "y = act(x W + b)",
    .n_in = 1,
    .params = params,
    .n_optional = 1,
    .attrs = attrs,
    .attr_size = sizeof(tn_dense_attr),
    .shape = dense_shape,
    .state_bytes = tn_product_state_bytes,
    .pack = tn_product_pack,
    .forward = dense_forward,
    .prepare = tn_product_transpose,
    .backward = dense_backward,
    .backward_params = dense_backward_params,
    .tile = tn_product_tile,
    .flops = tn_product_flops,
    .example = dense_example,
};

tn_node *tn_dense(tn_graph *g, const char *name, tn_node *x, tn_node *const wb[2],
                  const tn_dense_attr *attr)
{
    static const tn_dense_attr none = {0};
    uint32_t n = wb[1] == NULL ? 2 : 3;
    return tn_apply(g, &tn_op_dense, name, (tn_node *[]){x, wb[0], wb[1]}, n,
                    attr == NULL ? &none : attr);
}
