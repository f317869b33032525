/* simplify.c - what need not be computed: constants of constants, a value twice, `scale` by 1.
 *
 *     f(1, 2)             becomes a constant, where all its columns are one finite number
 *     a = f(x), b = f(x)  b's readers read a; never where f has parameters, draws numbers (dropout)
 *                         or looks at the whole batch
 *     1 x + 0             its readers read x
 *
 * No bit of a value or of a trained weight changes. So this comes when fusing is over, whose
 * choices are those of the graph as it was written; and where gradients flow, two values are never
 * made one, nor a scale dropped beside other readers of x: their parts would be added in another
 * order. A node that is wanted by name stays.
 */
#include "nn/passes/passes.h"

#include "base/core/alloc.h"
#include "config/field.h"
#include "nn/op/ops.h"

#include <math.h>
#include <string.h>

/* ---- constants ---- */

static bool is_constant(const tn_node *n)
{
    return n->op == &tn_op_constant;
}

/* A function of its operands alone, row by row. */
static bool is_plain(const tn_node *n)
{
    const tn_op *op = n->op;
    return op != NULL && op->forward != NULL && op->cols[TN_FORWARD_COLS] == NULL &&
           op->params == NULL && op->state_bytes == NULL && !op->layout.trains_only && !op->is_loss;
}

static bool has_constants(const tn_node *n)
{
    bool all = n->n_in > 0 && is_plain(n);
    for (uint32_t k = 0; all && k < n->n_in; k++) {
        all = is_constant(n->in[k]);
    }
    return all;
}

/* Takes one row of n and of its operands from `room`. */
static void compute_row(tn_node *n, tn_real *room)
{
    for (uint32_t k = 0; k <= n->n_in; k++) {
        tn_node *x = k < n->n_in ? n->in[k] : n;
        x->val = room;
        x->stride = x->shape.cols;
        room += x->shape.cols;
        if (x != n) {
            x->op->forward(x, (tn_range){0, 1});
        }
    }
    n->op->forward(n, (tn_range){0, 1});
}

/* Returns whether all columns of the row are one number, which a constant can be. */
static bool is_uniform(const tn_node *n)
{
    const tn_real first = n->val[0];
    /* false where `first` is not a number */
    bool one = fabs((double)first) <= tn_op_constant.attrs[0].max;
    for (uint32_t c = 1; one && c < n->shape.cols; c++) {
        one = n->val[c] >= first && n->val[c] <= first;
    }
    return one;
}

/* Without memory for a row nothing is folded. */
static void fold_constants(tn_graph *g, tn_node *n)
{
    size_t floats = n->shape.cols;
    for (uint32_t k = 0; k < n->n_in; k++) {
        floats += n->in[k]->shape.cols;
    }
    tn_error err = {0};
    tn_real *room =
        floats <= TN_COLS_MAX ? tn_try_alloc(floats, sizeof *room, "a constant", &err) : NULL;
    if (room == NULL) {
        return;
    }
    compute_row(n, room);
    if (is_uniform(n)) {
        tn_constant_attr *attr = TN_NEW(g->arena, tn_constant_attr);
        *attr = (tn_constant_attr){.value = (double)n->val[0], .cols = n->shape.cols};
        n->op = &tn_op_constant;
        n->attr = attr;
    }
    for (uint32_t k = 0; k < n->n_in; k++) {
        n->in[k]->val = NULL;
    }
    n->val = NULL;
    n->n_in = is_constant(n) ? 0 : n->n_in;
    tn_free(room);
}

/* ---- the same value twice ---- */

static size_t size_of(tn_field_kind kind)
{
    return kind == TN_KIND_BOOL  ? sizeof(bool)
           : kind == TN_KIND_F64 ? sizeof(double)
                                 : sizeof(uint32_t);
}

static bool same_attr(const tn_node *a, const tn_node *b)
{
    bool same = a->op->attr_size == 0 || a->op->attrs != NULL;
    for (const tn_field *f = a->op->attrs; same && f != NULL && f->kind != TN_KIND_END; f++) {
        same = memcmp((const char *)a->attr + f->offset, (const char *)b->attr + f->offset,
                      size_of(f->kind)) == 0;
    }
    return same;
}

static bool same_value(const tn_node *a, const tn_node *b)
{
    return a->op == b->op && a->n_in == b->n_in &&
           memcmp(a->in, b->in, a->n_in * sizeof(tn_node *)) == 0 && same_attr(a, b);
}

/* Returns an older node of the same value; NULL: none. */
static tn_node *find_twin(const tn_graph *g, const tn_node *n)
{
    if (n->place->kept || n->place->wants_grad || !is_plain(n) ||
        (n->n_in == 0 && !is_constant(n))) {
        return NULL;
    }
    for (uint32_t i = 0; g->node[i] != n; i++) {
        tn_node *older = g->node[i];
        if (older->place->alive && older->op != NULL && same_value(older, n)) {
            return older;
        }
    }
    return NULL;
}

/* ---- all of it ---- */

static bool is_identity(const tn_graph *g, const tn_node *n)
{
    const tn_scale_attr *a = n->op == &tn_op_scale ? n->attr : NULL;
    return a != NULL && !n->place->kept && !(a->by < 1 || a->by > 1) &&
           !(a->plus < 0 || a->plus > 0) &&
           (!n->place->wants_grad || tn_node_users(g, n->in[0]) == 1);
}

bool tn_pass_simplify(tn_graph *g)
{
    tn_node **instead = TN_NEW_ARRAY(g->arena, tn_node *, g->n_nodes);
    bool changed = false;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node *n = g->node[i];
        for (uint32_t k = 0; k < n->n_in; k++) {
            tn_node *other = instead[n->in[k]->place->index];
            n->in[k] = other != NULL ? other : n->in[k];
        }
        if (n->place->alive && has_constants(n)) {
            fold_constants(g, n);
            changed |= is_constant(n);
        }
        if (n->place->alive && n->op != NULL) {
            instead[i] = is_identity(g, n) ? n->in[0] : find_twin(g, n);
            n->place->alive = instead[i] == NULL;
            changed |= instead[i] != NULL;
        }
    }
    return changed;
}
