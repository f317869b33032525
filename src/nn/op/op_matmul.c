/* op_matmul.c - product with a weight matrix.
 *
 *   forward     y   = x W
 *   backward    dW += x^T dy        tiles of columns, all rows
 *               dx += dy W^T        tiles of rows
 *
 * W^T is written out once per step, before backward: products read it row by row.
 */
#include "nn/gemm/gemm.h"
#include "nn/graph/graphcore.h"
#include "nn/op/dense_tiles.h"
#include "nn/op/matmul_bf16.h"

/* Batches are powers of two more often than not, and so are teams. A tile of columns reads all of x
 * once, so it is not narrower than it takes for a few threads to share the first layer of a small
 * net. */
enum { TILE_ROWS = 64, TILE_COLS = 96, TILE_COLS_SMALL = 32, SMALL = 128 };

tn_shape tn_product_shape(const tn_node *y)
{
    tn_shape x = y->in[0]->shape;
    tn_shape w = y->in[1]->shape;
    if (x.cols != w.rows) {
        return TN_MISFIT;
    }
    return (tn_shape){x.rows, w.cols};
}

uint32_t tn_product_tile(const tn_node *y, bool cols)
{
    if (!cols) {
        return TILE_ROWS;
    }
    return y->shape.cols <= SMALL ? TILE_COLS_SMALL : TILE_COLS;
}

/* The transposed weights, [m, n] with whole cache lines per row. */
static size_t transposed_stride(const tn_node *y)
{
    return ((size_t)y->in[1]->shape.rows + 15) / 16 * 16;
}

size_t tn_product_state_bytes(const tn_node *y)
{
    if (tn_halves_wanted(y)) {
        return tn_halves_state_bytes(y);
    }
    return y->graph->opts.train ? y->shape.cols * transposed_stride(y) * sizeof(tn_real) : 0;
}

double tn_product_flops(const tn_node *y)
{
    tn_shape w = y->in[1]->shape;
    return 2.0 * y->shape.rows * w.rows * w.cols;
}

void tn_product_pack(tn_node *y, tn_range cols)
{
    if (tn_halves_wanted(y)) {
        tn_halves_pack(y, cols);
    }
}

void tn_product_forward(tn_node *y, tn_range rows)
{
    if (tn_halves_wanted(y)) {
        tn_halves_forward(y, rows);
        return;
    }
    const tn_node *x = y->in[0];
    const tn_node *w = y->in[1];
    tn_dims d = {rows.to - rows.from, w->shape.cols, w->shape.rows};
    tn_gemm(&y->graph->products, d, (tn_mat){tn_val_row(x, rows.from), x->stride, false},
            (tn_mat){w->val, w->stride, false},
            (tn_product){tn_val_row(y, rows.from), y->stride, false});
}

void tn_product_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    const tn_node *w = y->in[1];
    if (x->grad != NULL && tn_halves_wanted(y)) {
        tn_halves_backward(y, rows);
    } else if (x->grad != NULL) {
        tn_dims d = {rows.to - rows.from, w->shape.rows, w->shape.cols};
        tn_gemm(&y->graph->products, d, (tn_mat){tn_grad_row(y, rows.from), y->stride, false},
                (tn_mat){y->state, transposed_stride(y), true},
                (tn_product){tn_grad_row(x, rows.from), x->stride, tn_adds(y, x)});
    }
}

void tn_product_transpose(tn_node *y, tn_range cols)
{
    const tn_node *w = y->in[1];
    if (y->in[0]->grad != NULL && tn_halves_wanted(y)) {
        tn_halves_prepare(y, cols);
    } else if (y->in[0]->grad != NULL) {
        size_t stride = transposed_stride(y);
        tn_transpose(w->shape.rows, cols.to - cols.from,
                     (tn_mat){w->val + cols.from, w->stride, false},
                     (tn_product){(tn_real *)y->state + cols.from * stride, stride, false});
    }
}

void tn_product_weights(tn_node *y, tn_range cols, tn_range rows)
{
    const tn_node *x = y->in[0];
    const tn_node *w = y->in[1];
    if (w->grad != NULL && tn_halves_wanted(y)) {
        tn_halves_weights(y, cols, rows);
    } else if (w->grad != NULL) {
        tn_dims d = {w->shape.rows, cols.to - cols.from, rows.to - rows.from};
        tn_gemm_at(&y->graph->products, d, (tn_mat){tn_val_row(x, rows.from), x->stride, false},
                   (tn_mat){tn_grad_row(y, rows.from) + cols.from, y->stride, false},
                   (tn_product){w->grad + cols.from, w->stride, rows.from > 0 || tn_adds(y, w)});
    }
}

static void matmul_backward_params(tn_node *y, tn_range cols)
{
    tn_product_weights(y, cols, (tn_range){0, y->shape.rows});
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
    .pack = tn_product_pack,
    .forward = tn_product_forward,
    .state_bytes = tn_product_state_bytes,
    .prepare = tn_product_transpose,
    .backward = tn_product_backward,
    .backward_params = matmul_backward_params,
    .tile = tn_product_tile,
    .flops = tn_product_flops,
    .example = matmul_example,
};

tn_node *tn_matmul(tn_graph *g, const char *name, tn_node *x, tn_node *w)
{
    return tn_apply(g, &tn_op_matmul, name, (tn_node *[]){x, w}, 2, NULL);
}
