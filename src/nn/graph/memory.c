/* memory.c - where each matrix of a graph lies, planned once, taken in one block.
 *
 * When training, every value and gradient has a place of its own. Forward only, a matrix is free
 * again after its last reader:
 *
 *     node      0 1 2 3 4 5
 *     a         |-----|              one slot of the block
 *     b           |---|              another
 *     c               |---|          a's slot again, if its rows are as wide
 *
 * Why as wide: a tile of rows goes through many nodes while other tiles have not begun
 * (executor.c), so row r may only be overwritten by row r. Rows begin on cache lines where they are
 * at least one long.
 */
#include "nn/graph/graphcore.h"

#include "base/core/alloc.h"

enum { LINE = 16 }; /* reals; 64 bytes of floats */

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static bool is_value(const tn_node *n)
{
    return n->place->alive && !n->is_param;
}

static tn_node_place *root_place(const tn_node *n)
{
    return tn_node_root(n)->place;
}

/* Life of every group, and what its members ask for. */
static void find_lives(tn_graph *g)
{
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        g->node[i]->place->born = UINT32_MAX;
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->node[i];
        if (!is_value(n)) {
            continue;
        }
        tn_node_place *root = root_place(n);
        root->born = i < root->born ? i : root->born;
        root->dies = i > root->dies ? i : root->dies;
        root->group_kept |= n->place->kept || n->op == NULL;
        root->group_grad |= n->place->wants_grad;
        for (uint32_t k = 0; k < n->n_in; k++) {
            if (is_value(n->in[k])) {
                root_place(n->in[k])->dies = i;
            }
        }
    }
}

/* One piece of the block and the last node that needs its present content. */
typedef struct piece {
    size_t at;
    uint32_t stride;
    uint32_t busy_until;
} piece;

typedef struct planner {
    piece *piece;
    uint32_t n;
    size_t size;
} planner;

/* A free piece whose rows lie as those of `n` do, else a new one at the end. */
static size_t take_piece(planner *p, const tn_node *n, size_t size, bool share)
{
    const tn_node_place *life = n->place;
    piece *best = NULL;
    for (uint32_t i = 0; share && i < p->n && best == NULL; i++) {
        piece *q = &p->piece[i];
        best = q->busy_until < life->born && q->stride == n->stride ? q : NULL;
    }
    if (best == NULL) {
        best = &p->piece[p->n++];
        *best = (piece){.at = p->size, .stride = n->stride};
        p->size += size;
    }
    best->busy_until = share ? life->dies : UINT32_MAX;
    return best->at;
}

static size_t matrix_size(const tn_graph *g, tn_node *n)
{
    n->stride = n->shape.cols < LINE ? n->shape.cols : (uint32_t)round_up(n->shape.cols, LINE);
    return round_up((size_t)g->opts.max_rows * n->stride, LINE);
}

static void plan_block(tn_graph *g)
{
    planner p = {.piece = TN_NEW_ARRAY(g->arena, piece, 2 * (size_t)g->n_nodes)};
    /* A group is planned when its first member is computed, which may be before its root. */
    for (uint32_t born = 0; born < g->n_nodes; born++) {
        if (!is_value(g->node[born])) {
            continue;
        }
        for (uint32_t i = 0; i < g->n_nodes; i++) {
            tn_node *n = g->node[i];
            tn_node_place *place = n->place;
            if (!is_value(n) || place->home != NULL || place->born != born) {
                continue;
            }
            size_t size = matrix_size(g, n);
            bool share = !g->opts.train && !g->opts.no_passes && !place->group_kept;
            place->val_at = take_piece(&p, n, size, share);
            if (place->group_grad) {
                place->grad_at = take_piece(&p, n, size, false);
            }
        }
    }
    g->block_size = p.size;
}

static tn_status take_states(tn_graph *g, tn_error *err)
{
    size_t total = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->node[i];
        if (n->place->alive && n->op != NULL && n->op->state_bytes != NULL) {
            total += round_up(n->op->state_bytes(n), TN_CACHE_LINE);
        }
    }
    if (total == 0) {
        return TN_OK;
    }
    g->states = tn_try_alloc(total, 1, "scratch of a graph", err);
    if (g->states == NULL) {
        return TN_E_MEMORY;
    }
    size_t at = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node *n = g->node[i];
        if (n->place->alive && n->op != NULL && n->op->state_bytes != NULL) {
            n->state = g->states + at;
            at += round_up(n->op->state_bytes(n), TN_CACHE_LINE);
        }
    }
    return TN_OK;
}

static void lend_parameter(const tn_graph *g, tn_node *n)
{
    tn_params *params = n->place->params;
    const tn_param_slice *s = tn_params_get(params, n->place->slice);
    n->val = tn_params_weights(params) + s->at;
    if (g->opts.train && (s->train || s->state)) {
        n->grad = tn_params_grads(params) + s->at;
    }
}

static void set_pointers(const tn_graph *g, tn_node *n)
{
    uint32_t col = 0;
    const tn_node *root = n;
    for (; root->place->home != NULL; root = root->place->home) {
        col += root->place->home_col;
    }
    n->stride = root->stride;
    n->val = g->block + root->place->val_at + col;
    if (n->place->wants_grad || (n == root && root->place->group_grad)) {
        n->grad = g->block + root->place->grad_at + col;
    }
}

tn_status tn_pass_memory(tn_graph *g, tn_error *err)
{
    find_lives(g);
    plan_block(g);
    TN_TRY(TN_ALLOC(g->block, g->block_size + LINE, "values of a graph", err));
    TN_TRY(take_states(g, err));
    TN_TRY(tn_parts_init(g, err));
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node *n = g->node[i];
        if (n->is_param) {
            TN_TRY(tn_params_seal(n->place->params, err));
            lend_parameter(g, n);
        } else if (n->place->alive) {
            set_pointers(g, n);
        }
    }
    return TN_OK;
}
