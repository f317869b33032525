/* op_matmul.c - product with a weight matrix.
 *
 *   forward     y   = x W
 *   backward    dx += dy W^T        tiles of rows
 *               dW += x^T dy        tiles of columns, all rows in one call
 */
#include "nn/denseparts.h"
#include "nn/gemm.h"

/* Tiles of 128 to 1024 rows: below, packing dominates. Four or more of them in a batch of 1024,
 * so that a few threads share it evenly. */
enum { TILE_ROWS = 256, TILE_COLS = 128, TILE_UNIT = 16 };

tn_shape tn_product_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    tn_shape w = y->in[1]->shape;
    TN_ASSERT(x.cols == w.rows);
    return (tn_shape){x.rows, w.cols};
}

/* Columns are cut into even tiles of whole kernel widths. */
uint32_t tn_product_tile(const tn_node *y, bool cols)
{
    if (!cols) {
        return TILE_ROWS;
    }
    uint32_t n = tn_tile_count(y->shape.cols, TILE_COLS);
    uint32_t size = tn_tile_count(y->shape.cols, n);
    return tn_tile_count(size, TILE_UNIT) * TILE_UNIT;
}

double tn_product_flops(const tn_node *y)
{
    tn_shape w = y->in[1]->shape;
    return 2.0 * y->shape.rows * w.rows * w.cols;
}

void tn_product_forward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    const tn_node *w = y->in[1];
    tn_dims d = {rows.to - rows.from, w->shape.cols, w->shape.rows};
    tn_gemm(d, (tn_mat){tn_row(x, rows.from), x->stride}, (tn_mat){w->val, w->stride},
            (tn_product){tn_row(y, rows.from), y->stride, false});
}

void tn_product_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    const tn_node *w = y->in[1];
    if (x->grad != NULL) {
        tn_dims d = {rows.to - rows.from, w->shape.rows, w->shape.cols};
        tn_gemm_bt(d, (tn_mat){tn_grad_row(y, rows.from), y->stride}, (tn_mat){w->val, w->stride},
                   (tn_product){tn_grad_row(x, rows.from), x->stride, tn_adds(x)});
    }
}

void tn_product_backward_params(tn_node *y, tn_range cols)
{
    const tn_node *x = y->in[0];
    const tn_node *w = y->in[1];
    if (w->grad != NULL) {
        tn_dims d = {w->shape.rows, cols.to - cols.from, y->shape.rows};
        tn_gemm_at(d, (tn_mat){x->val, x->stride}, (tn_mat){y->grad + cols.from, y->stride},
                   (tn_product){w->grad + cols.from, w->stride, tn_adds(w)});
    }
}

static tn_node *matmul_example(tn_graph *g)
{
    tn_node *w = tn_param(g, NULL, NULL, (tn_shape){5, 3}, (tn_init){.kind = TN_INIT_CONSTANT});
    return tn_matmul(g, NULL, tn_input(g, NULL, 5, true), w);
}

static const char *const params[] = {"W", NULL};

const tn_op tn_op_matmul = {
    .name = "matmul",
    .formula = "y = x W",
    .n_in = 1,
    .params = params,
    .shape = tn_product_shape,
    .forward = tn_product_forward,
    .backward = tn_product_backward,
    .backward_params = tn_product_backward_params,
    .tile = tn_product_tile,
    .flops = tn_product_flops,
    .example = matmul_example,
};

tn_node *tn_matmul(tn_graph *g, const char *name, tn_node *x, tn_node *w)
{
    return tn_apply(g, &tn_op_matmul, name, (tn_node *[]){x, w}, 2, NULL);
}
