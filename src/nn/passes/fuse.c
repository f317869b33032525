/* fuse.c - batch norms into final weights; matmul, bias and activation into one dense; in training,
 * sums of single weights and pairs of vectors into the embedding they come from. */
#include "nn/passes/passes.h"

#include "base/core/alloc.h"
#include "nn/embed/embedlist.h"
#include "nn/graph/params.h"

#include <stdio.h>

uint32_t tn_node_users(const tn_graph *g, const tn_node *of)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->node[i];
        for (uint32_t k = 0; n->place->alive && k < n->n_in; k++) {
            count += n->in[k] == of;
        }
    }
    return count;
}

/* Whoever a kept node needs, directly or not. */
void tn_pass_alive(tn_graph *g)
{
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        g->node[i]->place->alive = g->node[i]->place->kept;
    }
    for (uint32_t i = g->n_nodes; i-- > 0;) {
        const tn_node *n = g->node[i];
        for (uint32_t k = 0; n->place->alive && k < n->n_in; k++) {
            n->in[k]->place->alive = true;
        }
    }
}

/* Only `by` reads it, and it is not wanted by name. */
static bool only_for(const tn_graph *g, const tn_node *n, const tn_op *op)
{
    return n->op == op && !n->place->kept && tn_node_users(g, n) == 1;
}

static tn_node *product_before(const tn_graph *g, const tn_node *norm)
{
    tn_node *x = norm->in[0];
    if (only_for(g, x, &tn_op_bias)) {
        x = x->in[0];
    }
    return only_for(g, x, &tn_op_matmul) ? x : NULL;
}

/* "<norm>.W"; or, where the layer's own weights have that name, "<norm>.folded1.W". */
static tn_node *folded_param(tn_graph *g, const tn_node *norm, const char *suffix, tn_shape shape)
{
    char name[512];
    (void)snprintf(name, sizeof name, "%s.%s", norm->name, suffix);
    for (uint32_t i = 1; tn_graph_find(g, name) != NULL; i++) {
        (void)snprintf(name, sizeof name, "%s.folded%u.%s", norm->name, i, suffix);
    }
    return tn_param(g, NULL, name, shape, (tn_init){.kind = TN_INIT_CONSTANT});
}

/* W' = W diag(scale), b' = b * scale + shift. */
static void fold_values(tn_node *norm, const tn_node *w, const tn_node *b, tn_node *const folded[2])
{
    uint32_t cols = w->shape.cols;
    tn_real *scale = tn_alloc(2 * (size_t)cols, sizeof *scale, "folding a norm");
    tn_real *shift = scale + cols;
    norm->op->norm.affine(norm, scale, shift);
    for (uint32_t c = 0; c < cols; c++) {
        for (size_t r = 0; r < w->shape.rows; r++) {
            folded[0]->val[r * cols + c] = w->val[r * cols + c] * scale[c];
        }
        folded[1]->val[c] = (b == NULL ? 0 : b->val[c] * scale[c]) + shift[c];
    }
    tn_free(scale);
}

static void lend(tn_node *param)
{
    tn_params *p = param->place->params;
    param->val = tn_params_weights(p) + tn_params_get(p, param->place->slice)->at;
}

typedef struct folding {
    tn_node *norm;
    tn_node *product;
    tn_node *bias; /* parameter; NULL: none */
    tn_node *folded[2];
} folding;

/* norm(x W + b) becomes x W' + b' under the norm's name. */
static void fold_one(const folding *f)
{
    tn_node *norm = f->norm;
    for (uint32_t k = 1; k < norm->n_in; k++) {
        lend(norm->in[k]);
    }
    lend(f->product->in[1]);
    lend(f->folded[0]);
    lend(f->folded[1]);
    if (f->bias != NULL) {
        lend(f->bias);
    }
    fold_values(norm, f->product->in[1], f->bias, f->folded);
    f->product->in[1] = f->folded[0];
    norm->op = &tn_op_bias;
    norm->attr = NULL;
    norm->in[0] = f->product;
    norm->in[1] = f->folded[1];
    norm->n_in = 2;
}

static folding *find_foldings(tn_graph *g, uint32_t *count)
{
    folding *list = TN_NEW_ARRAY(g->arena, folding, g->n_nodes);
    uint32_t n_nodes = g->n_nodes; /* new parameters are added after these */
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_nodes; i++) {
        tn_node *norm = g->node[i];
        if (!norm->place->alive || norm->op == NULL || norm->op->norm.affine == NULL) {
            continue;
        }
        tn_node *product = product_before(g, norm);
        if (product != NULL) {
            folding *f = &list[n++];
            f->norm = norm;
            f->product = product;
            f->bias = norm->in[0] == product ? NULL : norm->in[0]->in[1];
            f->folded[0] = folded_param(g, norm, "W", product->in[1]->shape);
            f->folded[1] = folded_param(g, norm, "b", (tn_shape){1, norm->shape.cols});
        }
    }
    *count = n;
    return list;
}

tn_status tn_pass_fold(tn_graph *g, tn_error *err)
{
    uint32_t n = 0;
    folding *list = find_foldings(g, &n);
    if (n > 0) {
        TN_TRY(tn_params_seal(g->own, err));
    }
    for (uint32_t i = 0; i < n; i++) {
        fold_one(&list[i]);
    }
    tn_pass_alive(g); /* without the old bias and the norm's parameters */
    return TN_OK;
}

static void become_dense(tn_graph *g, tn_node *n, tn_node *const *in, uint32_t n_in,
                         const tn_dense_attr *attr)
{
    n->op = &tn_op_dense;
    n->in = TN_NEW_ARRAY(g->arena, tn_node *, 3);
    for (uint32_t k = 0; k < n_in; k++) {
        n->in[k] = in[k];
    }
    n->n_in = n_in;
    tn_dense_attr *copy = TN_NEW(g->arena, tn_dense_attr);
    *copy = *attr;
    n->attr = copy;
}

static void read_rows(tn_node *n, const tn_op *op, void *attr)
{
    n->op = op;
    n->attr = attr;
    n->n_in = 0;
}

static void *pairs_of(const tn_graph *g, const tn_node *embed, uint32_t dim)
{
    tn_embed_pairs *pairs = TN_NEW(g->arena, tn_embed_pairs);
    *pairs = (tn_embed_pairs){.list = embed->attr, .dim = dim};
    return pairs;
}

/* In training sums of single weights, pairs of vectors and norms read the rows themselves instead
 * of the matrix of an embedding without other readers. Graphs that score keep the two nodes:
 * exports name the embedding as their input. */
static bool fuse_embedding(tn_graph *g, tn_node *n)
{
    tn_node *x = n->in[0];
    if (g->opts.train && n->op == &tn_op_embed_norm) {
        read_rows(n, n->op, x->attr);
        x->place->alive = tn_node_users(g, x) > 0 || x->place->kept;
        return true;
    }
    if (!g->opts.train || !only_for(g, x, &tn_op_embed)) {
        return false;
    }
    if (n->op == &tn_op_sum_cols && tn_embed_is_summed(x, 1)) {
        read_rows(n, &tn_op_embed_sum, tn_embed_one_column(g, x));
    } else if (n->op == &tn_op_ffm && tn_embed_can_ffm(x, ((const tn_ffm_attr *)n->attr)->dim)) {
        read_rows(n, &tn_op_embed_ffm, pairs_of(g, x, ((const tn_ffm_attr *)n->attr)->dim));
    } else if (n->op == &tn_op_fm && tn_embed_is_summed(x, ((const tn_pairs_attr *)n->attr)->dim)) {
        read_rows(n, &tn_op_embed_fm, pairs_of(g, x, ((const tn_pairs_attr *)n->attr)->dim));
    } else {
        return false;
    }
    x->place->alive = false;
    return true;
}

/* Returns the dense layer that `n` can be made of; false: none. */
static bool fuse_one(tn_graph *g, tn_node *n)
{
    tn_dense_attr attr = {0};
    tn_node *x = n->in[0];
    if (n->op == &tn_op_bias && only_for(g, x, &tn_op_matmul)) {
        tn_node *in[] = {x->in[0], x->in[1], n->in[1]};
        become_dense(g, n, in, 3, &attr);
    } else if (tn_dense_activation(n, &attr) && only_for(g, x, &tn_op_matmul)) {
        become_dense(g, n, x->in, 2, &attr);
    } else if (tn_dense_activation(n, &attr) && only_for(g, x, &tn_op_dense) &&
               ((const tn_dense_attr *)x->attr)->activation == 0) {
        become_dense(g, n, x->in, x->n_in, &attr);
    } else {
        return false;
    }
    x->place->alive = false;
    return true;
}

void tn_pass_fuse(tn_graph *g)
{
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node *n = g->node[i];
        if (n->place->alive && n->op != NULL && n->n_in > 0 && !fuse_embedding(g, n)) {
            (void)fuse_one(g, n);
        }
    }
}
