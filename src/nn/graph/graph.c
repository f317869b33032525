/* graph.c - building a graph: nodes, leaves and what operators may ask. See graph.h. */
#include "nn/graph/graph.h"

#include "base/core/alloc.h"
#include "nn/graph/embed.h"
#include "nn/graph/graphcore.h"
#include "nn/graph/params.h"

#include <stdio.h>
#include <string.h>

enum {
    CHUNK_BYTES = 1 << 16,
    NAME_MAX_BYTES = 256,
    /* room for its words, and for a name of a node that has none */
    FAULT_BYTES = 4 * NAME_MAX_BYTES,
    SWEEP_ROWS = 64,
    SWEEP_ROWS_MIN = 4,
    SWEEP_POSITIONS = 1024, /* about as many positions in one tile, so that it stays in cache */
    NODE_BYTES =
        sizeof(tn_node) + sizeof(tn_node_place) + 128, /* attributes and aligning included */
};

static tn_graph *graph_in(tn_arena *arena, const tn_graph_opts *opts)
{
    TN_ASSERT(opts->max_rows > 0 && !(opts->train && opts->frozen));
    tn_graph *g = TN_NEW(arena, tn_graph);
    g->arena = arena;
    g->opts = *opts;
    g->rows = opts->max_rows;
    g->sweep_rows = SWEEP_ROWS;
    return g;
}

tn_graph *tn_graph_new(const tn_graph_opts *opts)
{
    return graph_in(tn_arena_new(CHUNK_BYTES), opts);
}

tn_status tn_graph_open(tn_graph **out, const tn_graph_opts *opts, tn_error *err)
{
    tn_arena *arena = NULL;
    *out = NULL;
    TN_TRY(tn_arena_open(&arena, sizeof(tn_graph) + FAULT_BYTES, "a graph", err));
    *out = graph_in(arena, opts);
    return TN_OK;
}

tn_status tn_graph_reserve(tn_graph *g, uint32_t nodes, uint32_t n_in, size_t bytes, tn_error *err)
{
    return tn_arena_reserve(g->arena, nodes * (size_t)NODE_BYTES + n_in * sizeof(tn_node *) + bytes,
                            "a graph", err);
}

void tn_graph_free(tn_graph *g)
{
    if (g != NULL) {
        tn_params_free(g->own);
        tn_free(g->block);
        tn_free(g->states);
        tn_free(g->parts.own);
        tn_arena_free(g->arena); /* and with it, g */
    }
}

tn_node *tn_graph_find(const tn_graph *g, const char *name)
{
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        if (strcmp(g->node[i]->name, name) == 0) {
            return g->node[i];
        }
    }
    return NULL;
}

tn_node *tn_graph_node(const tn_graph *g, uint32_t i)
{
    return i < g->n_nodes ? g->node[i] : NULL;
}

const char *tn_graph_copy_text(tn_graph *g, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = tn_arena_alloc(g->arena, size, 1, 1);
    memcpy(copy, text, size);
    return copy;
}

/* Returns "mul.3": the operator's name and a number that no other node has. */
static const char *free_name(tn_graph *g, const char *stem)
{
    char name[NAME_MAX_BYTES];
    do {
        (void)snprintf(name, sizeof name, "%s.%u", stem, ++g->n_free_names);
    } while (tn_graph_find(g, name) != NULL);
    return tn_graph_copy_text(g, name);
}

/* Keeps the first fault. */
static void add_fault(tn_graph *g, const char *what, const char *name)
{
    if (g->fault == NULL) {
        char text[2 * NAME_MAX_BYTES];
        (void)snprintf(text, sizeof text, "%s '%s'", what, name);
        g->fault = tn_graph_copy_text(g, text);
    }
}

const char *tn_graph_fault(const tn_graph *g)
{
    return g->fault;
}

void tn_graph_chapter(tn_graph *g)
{
    g->chapter = g->n_nodes;
}

/* Appends a node. */
static tn_node *node_new(tn_graph *g, const char *name, const tn_op *op)
{
    TN_ASSERT(!g->finished);
    const char *stem = op != NULL ? op->name : "leaf";
    if (g->n_nodes == TN_NODES_MAX) {
        add_fault(g, "a graph of more than 4096 nodes, at", name != NULL ? name : stem);
        g->n_nodes--; /* the last one gives way */
    }
    if (name != NULL && tn_graph_find(g, name) != NULL) {
        add_fault(g, "two nodes are called", name);
        name = NULL;
    }
    tn_node *n = TN_NEW(g->arena, tn_node);
    n->place = TN_NEW(g->arena, tn_node_place);
    n->place->index = g->n_nodes;
    n->place->alive = true;
    n->op = op;
    n->graph = g;
    if (name == NULL) {
        n->name = free_name(g, stem);
    } else {
        n->name = tn_graph_copy_text(g, name);
    }
    g->node[g->n_nodes++] = n;
    return n;
}

uint32_t tn_params_max(const tn_op *op)
{
    uint32_t n = 0;
    while (op->params != NULL && op->params[n] != NULL) {
        n++;
    }
    return n;
}

bool tn_takes(const tn_op *op, uint32_t n)
{
    if (op->n_in == TN_ANY) {
        return n > 0;
    }
    uint32_t most = op->n_in + tn_params_max(op);
    return n <= most && n + op->n_optional >= most;
}

/* Sets the rows of a node to positions, or to those of the batch. */
static void set_positions(tn_node *n, tn_positions positions)
{
    tn_graph *g = n->graph;
    n->positions = positions;
    if (positions.max_len > 0) {
        const uint32_t rows = SWEEP_POSITIONS / (positions.max_len + positions.extra);
        const uint32_t tile = rows / SWEEP_ROWS_MIN * SWEEP_ROWS_MIN;
        const uint32_t least = tile < SWEEP_ROWS_MIN ? (uint32_t)SWEEP_ROWS_MIN : tile;
        g->sweep_rows = least < g->sweep_rows ? least : g->sweep_rows;
    }
}

/* Returns whether all operands have the rows of the first one. */
static bool has_rows_in_common(const tn_node *n)
{
    bool same = true;
    for (uint32_t k = 1; k < n->n_in; k++) {
        same = same && (n->in[k]->is_param || tn_same_rows(n->in[0], n->in[k]));
    }
    return same;
}

tn_node *tn_try_apply(tn_graph *g, const tn_op *op, const char *name, tn_node *const *in,
                      uint32_t n, const void *attr)
{
    TN_ASSERT(tn_takes(op, n) && (attr != NULL || op->attr_size == 0));
    tn_node *node = node_new(g, name, op);
    node->n_in = n;
    node->in = TN_NEW_ARRAY(g->arena, tn_node *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        TN_ASSERT(in[i] != NULL && in[i]->graph == g);
        TN_ASSERT(op->n_in == TN_ANY || in[i]->is_param == (i >= op->n_in));
        node->in[i] = in[i];
    }
    if (op->attr_size > 0) {
        node->attr = tn_arena_alloc(g->arena, 1, op->attr_size, _Alignof(max_align_t));
        memcpy(node->attr, attr, op->attr_size);
    }
    if (op->positions != NULL) {
        set_positions(node, op->positions(node));
    } else if (n > 0) {
        set_positions(node, in[0]->positions);
    }
    const bool fits = op->positions != NULL || has_rows_in_common(node);
    node->shape = fits ? op->shape(node) : TN_MISFIT;
    if (node->shape.cols == 0) {
        g->n_nodes--;
        return NULL;
    }
    return node;
}

tn_node *tn_apply(tn_graph *g, const tn_op *op, const char *name, tn_node *const *in, uint32_t n,
                  const void *attr)
{
    tn_node *node = tn_try_apply(g, op, name, in, n, attr);
    TN_ASSERT(node != NULL);
    return node;
}

tn_node *tn_input(tn_graph *g, const char *name, uint32_t cols, bool wants_grad)
{
    TN_ASSERT(cols > 0);
    tn_node *n = node_new(g, name, NULL);
    n->shape = (tn_shape){g->opts.max_rows, cols};
    n->place->wants_grad = wants_grad;
    return n;
}

tn_node *tn_input_positions(tn_graph *g, const char *name, uint32_t cols, tn_positions positions,
                            bool wants_grad)
{
    tn_node *n = tn_input(g, name, cols, wants_grad);
    set_positions(n, positions);
    n->shape.rows = tn_max_rows(n);
    return n;
}

/* Returns whether `name` is a parameter of this shape that may be had here, or still free. */
static bool is_fit(const tn_graph *g, const tn_params *params, const char *name, tn_shape shape,
                   bool shared)
{
    const tn_node *n = tn_graph_find(g, name);
    const tn_param_slice *s = tn_params_find(params, name);
    bool ours = n == NULL || (n->is_param && n->place->params == params &&
                              /* made in no earlier chapter */
                              (shared ? n->place->shared : n->place->index >= g->chapter));
    return ours && (s == NULL || (s->rows == shape.rows && s->cols == shape.cols));
}

typedef struct param_kind {
    bool train;
    bool shared;
    tn_init init;
} param_kind;

/* Returns the node of a slice, the same one whenever it is asked for again. */
static tn_node *param_node(tn_graph *g, tn_params *params, const char *name, tn_shape shape,
                           const param_kind *as)
{
    char made[NAME_MAX_BYTES];
    if (params == NULL) {
        g->own = g->own != NULL ? g->own : tn_params_new();
        params = g->own;
    }
    if (name == NULL) {
        (void)snprintf(made, sizeof made, "param.%u", tn_params_count(params) + 1);
        name = made;
    }
    if (!is_fit(g, params, name, shape, as->shared)) {
        add_fault(g, "two parameters, or a node and one, are called", name);
    }
    uint32_t slice = 0;
    tn_node *n = NULL;
    if (g->fault == NULL) {
        slice = tn_params_add(params, name, shape.rows, shape.cols, as->train, as->init);
        n = tn_graph_find(g, name);
    }
    if (n != NULL) {
        return n;
    }
    n = node_new(g, g->fault == NULL ? name : NULL, NULL);
    n->is_param = true;
    n->is_state = !as->train;
    n->shape = shape;
    n->stride = shape.cols;
    n->place->params = params;
    n->place->slice = slice;
    n->place->shared = as->shared;
    return n;
}

tn_node *tn_param(tn_graph *g, tn_params *params, const char *name, tn_shape shape, tn_init init)
{
    return param_node(g, params, name, shape, &(param_kind){.train = true, .init = init});
}

tn_node *tn_shared_param(tn_graph *g, tn_params *params, const char *name, tn_shape shape,
                         tn_init init)
{
    return param_node(g, params, name, shape,
                      &(param_kind){.train = true, .shared = true, .init = init});
}

tn_node *tn_running(tn_graph *g, tn_params *params, const char *name, tn_shape shape, double value)
{
    tn_init init = {.kind = TN_INIT_CONSTANT, .a = value};
    return param_node(g, params, name, shape, &(param_kind){.train = false, .init = init});
}

void tn_param_freeze(tn_node *param)
{
    TN_ASSERT(param->is_param);
    tn_params_freeze(param->place->params, param->place->slice);
}

const tn_graph_feed *tn_feed_of(const tn_node *self)
{
    return &self->graph->feed;
}

const tn_real *tn_label_of(const tn_node *loss)
{
    const tn_graph_feed *feed = &loss->graph->feed;
    return feed->task != NULL ? feed->task[loss->place->task].label : feed->label;
}

void tn_node_set_task(tn_node *loss, uint32_t task)
{
    TN_ASSERT(loss->op->is_loss);
    loss->place->task = task;
}

const tn_embed_list *tn_embed_list_of(const tn_node *embed)
{
    return embed->op != NULL && embed->op->sparse.embeds ? embed->attr : NULL;
}

uint32_t tn_max_rows(const tn_node *self)
{
    const tn_positions *p = &self->positions;
    const uint32_t rows = self->graph->opts.max_rows;
    TN_ASSERT(p->max_len + p->extra <= UINT32_MAX / rows);
    return p->max_len > 0 ? rows * (p->max_len + p->extra) : rows;
}

tn_range tn_rows_of(const tn_node *n, tn_range rows)
{
    const tn_positions *p = &n->positions;
    const tn_graph *g = n->graph;
    if (p->max_len == 0 || rows.from == rows.to) {
        return p->max_len == 0 ? rows : (tn_range){0, 0};
    }
    TN_ASSERT(g->feed.sparse != NULL && rows.to <= g->feed.rows);
    const uint32_t *offset = g->feed.sparse->bag[p->slot].offset;
    return (tn_range){offset[rows.from] + rows.from * p->extra,
                      offset[rows.to] + rows.to * p->extra};
}

const tn_step_info *tn_info(const tn_node *self)
{
    return &self->graph->feed.info;
}

bool tn_moves(const tn_node *self)
{
    const tn_graph *g = self->graph;
    return g->opts.train && g->feed.info.training &&
           (g->feed.joint_weight > 0 ? g->feed.joint_weight : g->weight) > 0;
}

const tn_node *tn_node_root(const tn_node *n)
{
    while (n->place->home != NULL) {
        n = n->place->home;
    }
    return n;
}

uint32_t tn_operands(const tn_node *n)
{
    return n->op == NULL || n->op->n_in == TN_ANY ? n->n_in : n->op->n_in;
}
