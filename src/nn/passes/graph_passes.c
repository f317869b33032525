/* graph_passes.c - what a graph needs, what has a gradient, what lies inside what, and where. */
#include "nn/passes/finish.h"
#include "nn/passes/passes.h"

#include "base/core/alloc.h"
#include "config/diag.h"
#include "nn/gemm/gemm.h"
#include "nn/graph/params.h"

/* bytes that passes take from the arena for a node of a graph at rest */
enum { PASSES_BYTES = 192 };

static tn_status unknown_node(tn_graph *g, const char *name, tn_error *err)
{
    const char **names = TN_NEW_ARRAY(g->arena, const char *, g->n_nodes);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        names[i] = g->node[i]->name;
    }
    const char *near = tn_nearest(name, names, g->n_nodes);
    if (near != NULL) {
        return tn_fail(err, TN_E_CONFIG, "no node '%s' in the graph (did you mean '%s'?)", name,
                       near);
    }
    return tn_fail(err, TN_E_CONFIG, "no node '%s' in the graph", name);
}

/* Files of nodes have a row for each of the batch. */
static tn_status check_rows(const tn_node *n, const char *how, tn_error *err)
{
    return n->positions.max_len == 0
               ? TN_OK
               : tn_fail(err, TN_E_CONFIG,
                         "node '%s' has a value for each position of a sequence, not for each row: "
                         "it cannot be %s",
                         n->name, how);
}

/* Fed nodes become leaves. */
static tn_status cut_feeds(tn_graph *g, const tn_wanted *wanted, tn_error *err)
{
    TN_ASSERT(wanted->n_feed == 0 || !g->opts.train);
    for (uint32_t i = 0; i < wanted->n_feed; i++) {
        tn_node *n = tn_graph_find(g, wanted->feed[i]);
        if (n == NULL || n->is_param) {
            return unknown_node(g, wanted->feed[i], err);
        }
        TN_TRY(check_rows(n, "fed", err));
        n->op = NULL;
        n->n_in = 0;
    }
    return TN_OK;
}

/* Values that nobody reads would change nothing. */
static tn_status check_feeds(const tn_graph *g, const tn_wanted *wanted, tn_error *err)
{
    for (uint32_t i = 0; i < wanted->n_feed && !g->opts.no_passes; i++) {
        if (!tn_graph_find(g, wanted->feed[i])->place->alive) {
            return tn_fail(err, TN_E_CONFIG, "node '%s' cannot be fed: the output does not need it",
                           wanted->feed[i]);
        }
    }
    return TN_OK;
}

static tn_status pass_drop(tn_graph *g, const tn_wanted *wanted, tn_error *err)
{
    g->logit = wanted->logit;
    g->loss = wanted->loss;
    TN_ASSERT(g->logit != NULL || g->loss != NULL || wanted->n_fetch > 0);
    TN_ASSERT(!g->opts.train || g->loss != NULL);
    if (g->logit != NULL) {
        g->logit->place->kept = true;
    }
    if (g->loss != NULL) {
        TN_ASSERT(g->loss->shape.cols == 1);
        g->loss->place->kept = true;
    }
    for (uint32_t i = 0; i < wanted->n_fetch; i++) {
        tn_node *n = tn_graph_find(g, wanted->fetch[i]);
        if (n == NULL) {
            return unknown_node(g, wanted->fetch[i], err);
        }
        TN_TRY(check_rows(n, "fetched", err));
        n->place->kept = true;
    }
    TN_TRY(cut_feeds(g, wanted, err));
    if (!g->opts.no_passes) {
        tn_pass_alive(g);
    }
    return check_feeds(g, wanted, err);
}

static void pass_rest(tn_graph *g)
{
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node *n = g->node[i];
        for (uint32_t k = 0; k < n->n_in; k++) {
            tn_node *x = n->in[k];
            while (x->op != NULL && x->op->layout.trains_only) {
                x = x->in[0];
            }
            n->in[k] = x;
        }
    }
    tn_pass_alive(g);
}

/* Something upstream is trained. */
static bool upstream(const tn_node *n)
{
    if (n->is_param) {
        return tn_param_learns(tn_params_get(n->place->params, n->place->slice));
    }
    if (n->op == NULL) {
        return n->place->wants_grad;
    }
    bool any = n->op->sparse.backward_rows != NULL || n->op->sparse.backward_blocks != NULL;
    for (uint32_t k = 0; (any || n->op->backward != NULL) && k < n->n_in; k++) {
        any |= n->in[k]->place->wants_grad;
    }
    return any;
}

static void pass_gradients(tn_graph *g)
{
    bool train = g->opts.train;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node_place *p = g->node[i]->place;
        p->wants_grad = train && p->alive && upstream(g->node[i]);
        p->runs_backward = false;
        p->reached = train && g->node[i] == g->loss;
    }
    for (uint32_t i = g->n_nodes; train && i-- > 0;) {
        tn_node *n = g->node[i];
        tn_node_place *p = n->place;
        p->wants_grad = p->wants_grad && p->reached;
        for (uint32_t k = 0; p->wants_grad && k < n->n_in; k++) {
            n->in[k]->place->reached = true;
            p->runs_backward |= n->in[k]->place->wants_grad;
        }
    }
}

static void place_inside(tn_node *n, tn_node *home, uint32_t col)
{
    n->place->home = home;
    n->place->home_col = col;
}

/* An operand that already lives elsewhere, or feeds the join twice, is copied. */
static void place_operands(tn_node *join)
{
    uint32_t col = 0;
    for (uint32_t k = 0; k < join->n_in; k++) {
        tn_node *x = join->in[k];
        if (!x->is_param && x->place->home == NULL && x != join) {
            place_inside(x, join, col);
        }
        col += x->shape.cols;
    }
}

static void pass_place(tn_graph *g)
{
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node *n = g->node[i];
        if (!n->place->alive || n->op == NULL) {
            continue;
        }
        if (n->op->layout.joins) {
            place_operands(n);
        } else if (n->op->layout.part != NULL) {
            place_inside(n, n->in[0], n->op->layout.part(n));
        }
    }
}

/* Returns how many operands of n live in the group of `root`. */
static uint32_t operands_in(const tn_node *n, const tn_node *root)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        count += tn_node_root(n->in[k]) == root;
    }
    return count;
}

/* Backward's first touch of a gradient may assign it if it covers all of it at once: the whole
 * matrix of the group, by one operand. Else the matrix is cleared beforehand. */
static void first_touch(tn_node *n, tn_node *operand)
{
    tn_node *root = operand;
    while (root->place->home != NULL) {
        root = root->place->home;
    }
    root->place->writers++;
    if (!root->place->touched) {
        root->place->touched = true;
        if (operand == root && operands_in(n, root) == 1) {
            root->first_writer = n;
        } else {
            root->place->clear = true;
        }
    }
}

static void pass_first_writers(tn_graph *g)
{
    if (g->loss != NULL && g->loss->grad != NULL) {
        tn_node_place *p = tn_node_root(g->loss)->place;
        p->touched = true;
        p->clear = tn_node_root(g->loss) != g->loss;
    }
    for (uint32_t i = g->n_nodes; i-- > 0;) {
        tn_node *n = g->node[i];
        for (uint32_t k = 0; n->place->runs_backward && k < n->n_in; k++) {
            if (n->in[k]->place->wants_grad) {
                first_touch(n, n->in[k]);
            }
        }
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node *n = g->node[i];
        if (n->is_param && n->place->writers > 1) {
            n->first_writer = NULL; /* sums over columns come before what came first here */
            n->place->clear = true;
        }
        n->grad_alone = n->first_writer != NULL && n->place->writers == 1;
        if (n->grad != NULL && !n->is_state && n->place->home == NULL && !n->place->touched) {
            n->place->clear = true;
        }
    }
}

/* ---- memory: planned once, taken in one block ----
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
    const tn_node *of; /* the first that lived here: rows of the others lie as its rows do */
    uint32_t busy_until;
} piece;

typedef struct planner {
    piece *piece;
    uint32_t n;
    size_t size;
} planner;

/* Returns a free piece whose rows lie as those of `n` do, else a new one at the end. */
static size_t take_piece(planner *p, const tn_node *n, size_t size, bool share)
{
    const tn_node_place *life = n->place;
    piece *best = NULL;
    for (uint32_t i = 0; share && i < p->n && best == NULL; i++) {
        piece *q = &p->piece[i];
        const bool fits = q->of->stride == n->stride && tn_same_rows(q->of, n);
        best = q->busy_until < life->born && fits ? q : NULL;
    }
    if (best == NULL) {
        best = &p->piece[p->n++];
        *best = (piece){.at = p->size, .of = n};
        p->size += size;
    }
    best->busy_until = share ? life->dies : UINT32_MAX;
    return best->at;
}

static size_t matrix_size(tn_node *n)
{
    n->stride = n->shape.cols < LINE ? n->shape.cols : (uint32_t)round_up(n->shape.cols, LINE);
    return round_up((size_t)tn_max_rows(n) * n->stride, LINE);
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
            size_t size = matrix_size(n);
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
    for (int round = 0; round < 2; round++) { /* the first one measures, without memory */
        size_t at = 0;
        for (uint32_t i = 0; i < g->n_nodes; i++) {
            tn_node *n = g->node[i];
            if (n->place->alive && n->op != NULL && n->op->state_bytes != NULL) {
                n->state = g->states != NULL ? g->states + at : NULL;
                at += round_up(n->op->state_bytes(n), TN_CACHE_LINE);
            }
        }
        if (round == 0 && at > 0) {
            TN_TRY(TN_ALLOC(g->states, at, "scratch of a graph", err));
        }
    }
    return TN_OK;
}

static void lend_parameter(const tn_graph *g, tn_node *n)
{
    tn_params *params = n->place->params;
    const tn_param_slice *s = tn_params_get(params, n->place->slice);
    n->val = tn_params_weights(params) + s->at;
    if (g->opts.train && (tn_param_learns(s) || s->state)) {
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

static tn_status pass_memory(tn_graph *g, tn_error *err)
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

/* ---- all of them ---- */

static tn_status run_passes(tn_graph *g, const tn_wanted *wanted, tn_error *err)
{
    TN_TRY(pass_drop(g, wanted, err));
    if (g->opts.no_passes) {
        pass_gradients(g);
        return TN_OK;
    }
    if (!g->opts.train) {
        pass_rest(g);
    }
    if (g->opts.frozen) {
        TN_TRY(tn_pass_fold(g, err));
    }
    tn_pass_fuse(g);
    pass_gradients(g);
    if (tn_pass_simplify(g)) {
        tn_pass_alive(g);
        pass_gradients(g);
    }
    pass_place(g);
    return TN_OK;
}

tn_status tn_graph_finish(tn_graph *g, const tn_wanted *wanted, tn_error *err)
{
    TN_ASSERT(!g->finished && g->fault == NULL);
    TN_TRY(tn_products_find(&g->products, g->opts.products, err));
    if (g->opts.bf16) {
        TN_TRY(tn_bf16_products(&g->halves, err));
    }
    TN_TRY(tn_arena_reserve(g->arena, (g->n_nodes + 1) * (size_t)PASSES_BYTES, "a graph", err));
    TN_TRY(run_passes(g, wanted, err));
    TN_TRY(pass_memory(g, err));
    pass_first_writers(g);
    g->finished = true;
    return TN_OK;
}
