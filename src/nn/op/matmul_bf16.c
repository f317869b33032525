/* matmul_bf16.c - see matmul_bf16.h. Rounded weights lie in the node's state:
 *
 *     [ (k+1)/2 rows of n words, for y | (n+1)/2 rows of k words, for dx ]    rows padded to lines
 */
#include "nn/op/matmul_bf16.h"

#include "nn/gemm/bf16.h"
#include "nn/graph/graphcore.h"

enum {
    LINE = 16,   /* words */
    ROWS = 24,   /* of activations that are rounded at once */
    WORDS = 256, /* and words of them; the kernels' depth */
    BATCH = 128, /* rows of the batch under dW at once */
    COLS = 128,  /* and columns */
};

bool tn_halves_wanted(const tn_node *y)
{
    return y->graph->opts.bf16 && y->in[1]->shape.cols > 1;
}

static size_t padded(size_t n)
{
    return (n + LINE - 1) / LINE * LINE;
}

static tn_product packed(const tn_node *y)
{
    return (tn_product){y->state, padded(y->in[1]->shape.cols), false};
}

static tn_product packed_transposed(const tn_node *y)
{
    tn_shape w = y->in[1]->shape;
    return (tn_product){(tn_real *)y->state + tn_bf16_words(w.rows) * padded(w.cols),
                        padded(w.rows), false};
}

size_t tn_halves_state_bytes(const tn_node *y)
{
    tn_shape w = y->in[1]->shape;
    size_t words = tn_bf16_words(w.rows) * padded(w.cols);
    words += y->graph->opts.train ? tn_bf16_words(w.cols) * padded(w.rows) : 0;
    return words * sizeof(tn_real);
}

void tn_halves_pack(tn_node *y, tn_range cols)
{
    const tn_node *w = y->in[1];
    tn_product to = packed(y);
    to.at += cols.from;
    tn_bf16_pairs(w->shape.rows, cols.to - cols.from,
                  (tn_mat){w->val + cols.from, w->stride, false}, to);
}

/* Columns come in whole vectors, so none is paired with another tile's. */
void tn_halves_prepare(tn_node *y, tn_range cols)
{
    const tn_node *w = y->in[1];
    tn_product to = packed_transposed(y);
    TN_ASSERT(cols.from % 2 == 0);
    to.at += cols.from / 2 * to.stride;
    tn_bf16_pairs_transposed(w->shape.rows, cols.to - cols.from,
                             (tn_mat){w->val + cols.from, w->stride, false}, to);
}

/* c (+)= a b, with b in words: a is rounded piece by piece. */
static void multiply(const tn_products *by, tn_dims d, tn_mat a, tn_product b, tn_product c)
{
    _Alignas(64) tn_real words[ROWS * WORDS];
    for (size_t i = 0; i < d.m; i += ROWS) {
        size_t rows = d.m - i < ROWS ? d.m - i : ROWS;
        for (size_t p = 0; p < d.k; p += (size_t)2 * WORDS) {
            size_t terms = d.k - p < (size_t)2 * WORDS ? d.k - p : (size_t)2 * WORDS;
            tn_bf16_rows(rows, terms, (tn_mat){a.at + i * a.stride + p, a.stride, false},
                         (tn_product){words, WORDS, false});
            by->multiply(by, &(tn_factors){.d = {rows, d.n, tn_bf16_words(terms)},
                                           .a = {words, WORDS, false},
                                           .b = {b.at + p / 2 * b.stride, b.stride, true},
                                           .c = {c.at + i * c.stride, c.stride, c.add || p > 0}});
        }
    }
}

void tn_halves_forward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    tn_shape w = y->in[1]->shape;
    multiply(&y->graph->halves, (tn_dims){rows.to - rows.from, w.cols, w.rows},
             (tn_mat){tn_val_row(x, rows.from), x->stride, false}, packed(y),
             (tn_product){tn_val_row(y, rows.from), y->stride, false});
}

void tn_halves_backward(tn_node *y, tn_range rows)
{
    const tn_node *x = y->in[0];
    tn_shape w = y->in[1]->shape;
    multiply(&y->graph->halves, (tn_dims){rows.to - rows.from, w.rows, w.cols},
             (tn_mat){tn_grad_row(y, rows.from), y->stride, false}, packed_transposed(y),
             (tn_product){tn_grad_row(x, rows.from), x->stride, tn_adds(y, x)});
}

/* One piece: `rows` of the batch, `cols` of dW; its rows COLS at a time. */
static void piece_of_weights(tn_node *y, tn_range cols, tn_range rows, bool add)
{
    _Alignas(64) tn_real left[BATCH / 2 * COLS];
    _Alignas(64) tn_real right[BATCH / 2 * COLS];
    const tn_node *x = y->in[0];
    const tn_node *w = y->in[1];
    const tn_products *by = &y->graph->halves;
    size_t n = cols.to - cols.from;
    size_t k = rows.to - rows.from;
    tn_bf16_pairs(k, n, (tn_mat){tn_grad_row(y, rows.from) + cols.from, y->stride, false},
                  (tn_product){right, COLS, false});
    for (size_t i = 0; i < w->shape.rows; i += COLS) {
        size_t m = w->shape.rows - i < COLS ? w->shape.rows - i : COLS;
        tn_bf16_pairs(k, m, (tn_mat){tn_val_row(x, rows.from) + i, x->stride, false},
                      (tn_product){left, COLS, false});
        by->multiply(by, &(tn_factors){.d = {m, n, tn_bf16_words(k)},
                                       .a = {left, COLS, false},
                                       .b = {right, COLS, true},
                                       .c = {w->grad + i * w->stride + cols.from, w->stride, add},
                                       .transposed = true});
    }
}

void tn_halves_weights(tn_node *y, tn_range cols, tn_range rows)
{
    bool adds = rows.from > 0 || tn_adds(y, y->in[1]);
    for (uint32_t r = rows.from; r < rows.to; r += BATCH) {
        tn_range part = {r, rows.to - r < BATCH ? rows.to : r + BATCH};
        for (uint32_t c = cols.from; c < cols.to; c += COLS) {
            piece_of_weights(y, (tn_range){c, cols.to - c < COLS ? cols.to : c + COLS}, part,
                             adds || r > rows.from);
        }
    }
}
