/* productsplit.c - which columns are shared, and the weights of each kind.
 *
 * Columns are followed through nodes that only lay their operands side by side, back to the
 * embeddings and numbers of the batch. What comes out of any other operator is each row's own.
 */
#include "nn/op/productsplit.h"

#include "base/core/compiler.h"
#include "nn/graph/embed.h"
#include "nn/graph/graphcore.h"
#include "nn/op/ops.h"

#include <string.h>

enum {
    LINE = 16,      /* floats */
    TILE_ROWS = 64, /* rows of a matmul's tile, at most */
    SHARE_MIN = 8,  /* as little as one column of so many */
};

static size_t padded(size_t n)
{
    return (n + LINE - 1) / LINE * LINE;
}

/* Sets out[c] for column `first` + c of n: whether it is shared. */
static void find_shared(const tn_node *n, uint32_t first, uint32_t cols, bool *out)
{
    const tn_shared *shared = tn_feed_of(n)->shared;
    const tn_embed_list *e = tn_embed_list_of(n);
    memset(out, 0, cols);
    for (uint32_t i = 0, c = 0; e != NULL && c < cols; c++) {
        while (e->at[i + 1] <= first + c) {
            i++;
        }
        out[c] = shared->slot[e->slot[i].slot];
    }
    if (n->op == &tn_op_numeric) {
        memcpy(out, shared->numeric + ((const tn_numeric_attr *)n->attr)->first + first, cols);
    } else if (n->op != NULL && n->op->layout.part != NULL) {
        find_shared(n->in[0], n->op->layout.part(n) + first, cols, out);
    }
    for (uint32_t k = 0, at = 0; n->op != NULL && n->op->layout.joins && k < n->n_in; k++) {
        const tn_node *x = n->in[k];
        uint32_t from = at > first ? at : first;
        uint32_t end = at + x->shape.cols < first + cols ? at + x->shape.cols : first + cols;
        if (from < end) {
            find_shared(x, from - at, end - from, out + (from - first));
        }
        at += x->shape.cols;
    }
}

/* The parts after *s, in bytes. */
enum { BASE, X, W, COL, MARK, PARTS };

static size_t measure(const tn_node *y, size_t size[PARTS])
{
    tn_shape w = y->in[1]->shape;
    size_t all = padded(sizeof(tn_product_split));
    size[BASE] = padded(w.cols) * sizeof(tn_real);
    size[X] = TILE_ROWS * padded(w.rows) * sizeof(tn_real);
    size[W] = (w.rows + (size_t)2) * padded(w.cols) * sizeof(tn_real);
    size[COL] = padded(w.rows) * sizeof(uint32_t);
    size[MARK] = (size_t)2 * w.rows * sizeof(bool);
    for (uint32_t i = 0; i < PARTS; i++) {
        all += size[i];
    }
    return all;
}

size_t tn_split_bytes(const tn_node *y)
{
    size_t size[PARTS];
    const bool splits = y->graph->opts.shares && y->positions.max_len == 0;
    return splits && y->in[1]->shape.cols > 1 ? measure(y, size) : 0;
}

/* Places the parts that follow *s. */
static void lay_out(const tn_node *y, tn_product_split *s)
{
    size_t size[PARTS];
    char *at = (char *)s + padded(sizeof *s);
    (void)measure(y, size);
    s->base = (tn_real *)(void *)at;
    s->x = (tn_real *)(void *)(at += size[BASE]);
    s->w = (tn_real *)(void *)(at += size[X]);
    s->col = (uint32_t *)(void *)(at += size[W]);
    s->is_shared = (bool *)(at + size[COL]);
}

/* Finds the columns that are shared now, and returns whether they are those of last time. */
static bool look(const tn_node *y, tn_product_split *s)
{
    const uint32_t cols = y->in[0]->shape.cols;
    bool *before = s->is_shared + cols;
    find_shared(y->in[0], 0, cols, s->is_shared);
    if (s->n_own + s->n_shared == cols && memcmp(before, s->is_shared, cols) == 0) {
        return true;
    }
    memcpy(before, s->is_shared, cols);
    s->n_own = 0;
    s->n_shared = 0;
    for (int kind = 0; kind < 2; kind++) {
        for (uint32_t c = 0; c < cols; c++) {
            if (s->is_shared[c] == (kind == 1)) {
                s->col[s->n_own + s->n_shared] = c;
                *(kind == 0 ? &s->n_own : &s->n_shared) += 1;
            }
        }
    }
    return false;
}

tn_product_split *tn_split_find(const tn_node *y, tn_range rows, size_t before)
{
    if (tn_feed_of(y)->shared == NULL || tn_split_bytes(y) == 0) {
        return NULL;
    }
    TN_ASSERT(y->graph->opts.team == NULL && rows.to - rows.from <= TILE_ROWS);
    tn_product_split *s = (tn_product_split *)(void *)((char *)y->state + before);
    if (rows.from == 0) {
        lay_out(y, s);
        s->alike = look(y, s);
        s->wanted = s->n_shared * SHARE_MIN >= y->in[0]->shape.cols;
    }
    return s->wanted ? s : NULL;
}

/* Copies rows col[0 .. n) of W, one below the other; returns the place after them. */
static tn_real *copy_rows(const tn_node *w, const uint32_t *col, size_t n, bool halves,
                          tn_product *out, tn_real *to)
{
    const size_t stride = padded(w->shape.cols);
    *out = (tn_product){to, stride, false};
    for (size_t i = 0; i < n; i += halves ? 2 : 1, to += stride) {
        const tn_real *row = w->val + col[i] * (size_t)w->stride;
        const size_t pair = i + 1 < n ? 2 : 1;
        if (halves) {
            tn_bf16_pairs(
                pair, w->shape.cols,
                (tn_mat){row, pair == 2 ? (col[i + 1] - col[i]) * (size_t)w->stride : 0, false},
                (tn_product){to, stride, false});
        } else {
            memcpy(to, row, w->shape.cols * sizeof *to);
        }
    }
    return to;
}

void tn_split_weights(const tn_node *y, tn_product_split *s, bool halves)
{
    if (!s->alike) {
        tn_real *at = copy_rows(y->in[1], s->col, s->n_own, halves, &s->own, s->w);
        (void)copy_rows(y->in[1], s->col + s->n_own, s->n_shared, halves, &s->shared, at);
    }
}

TN_HOT static void take_cols(size_t n, const uint32_t *restrict col, const tn_real *restrict from,
                             tn_real *restrict to)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = from[col[i]];
    }
}

static tn_mat take(const tn_node *x, const tn_product_split *s, const uint32_t *col, size_t n,
                   tn_range rows)
{
    if (col[n - 1] - col[0] == n - 1) { /* side by side in x */
        return (tn_mat){tn_val_row(x, rows.from) + col[0], x->stride, false};
    }
    const size_t stride = padded(n);
    for (size_t r = rows.from; r < rows.to; r++) {
        take_cols(n, col, tn_val_row(x, r), s->x + (r - rows.from) * stride);
    }
    return (tn_mat){s->x, stride, false};
}

tn_mat tn_split_shared(const tn_node *y, const tn_product_split *s)
{
    return take(y->in[0], s, s->col + s->n_own, s->n_shared, (tn_range){0, 1});
}

tn_mat tn_split_own(const tn_node *y, const tn_product_split *s, tn_range rows)
{
    return take(y->in[0], s, s->col, s->n_own, rows);
}

void tn_split_begin(const tn_node *y, const tn_product_split *s, tn_range rows)
{
    for (size_t r = rows.from; r < rows.to; r++) {
        memcpy(tn_val_row(y, r), s->base, y->shape.cols * sizeof *s->base);
    }
}
