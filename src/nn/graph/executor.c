/* executor.c - one batch through a graph: the loss, and the team over the tiles of a step.
 *
 * A row pass touches its own rows only. So nodes that follow each other with nothing but row passes
 * are one sweep: a thread takes a tile of rows through all of them, while it is in cache, and does
 * not wait in between.
 *
 *     rows    0 ..  63    embed -> dense -> dense -> add -> loss       one thread
 *            64 .. 127    embed -> dense -> dense -> add -> loss       another
 *
 * Values of a sequence's positions (tn_positions) are swept with the rows that hold them.
 *
 * A node with a column pass (a batch norm needs all rows) ends the sweep before it. Nets whose
 * weights do not stay in cache beside a tile are swept in parts. Gradients of parameters come last,
 * the tiles of all of them in one run, the largest first.
 *
 * The gradients of the batch's rows follow those of the nodes that embed them, beside those of
 * parameters:
 *
 *     block   rows of slot 7    every embedding node, example after example
 *
 * Tiles are cut by operator and shape. The number of threads is nowhere in here.
 */
#include "nn/graph/graphcore.h"

#include "base/core/alloc.h"
#include "base/thread/team.h"
#include "base/trace/trace.h"
#include "nn/graph/embed.h"
#include "nn/vec/vec.h"

#include <stdatomic.h>
#include <string.h>

enum { TILE_FLOATS = 32768, TILE_ROWS_MIN = 64, TILE_ROWS_MAX = 1024, TILE_COLS = 64 };
enum {
    SWEEP_WEIGHTS = 1 << 17, /* floats of parameters in one sweep */
    UNIT = 32,               /* columns are cut at whole panels of the products */
};

static uint32_t tile_size(const tn_node *n, bool cols)
{
    if (n->op->tile != NULL) {
        return n->op->tile(n, cols);
    }
    if (cols) {
        return TILE_COLS;
    }
    uint32_t width = n->shape.cols;
    for (uint32_t i = 0; i < n->n_in; i++) {
        width = !n->in[i]->is_param && n->in[i]->shape.cols > width ? n->in[i]->shape.cols : width;
    }
    uint32_t rows = TILE_FLOATS / width / UNIT * UNIT;
    rows = rows < TILE_ROWS_MIN ? TILE_ROWS_MIN : rows;
    return rows > TILE_ROWS_MAX ? TILE_ROWS_MAX : rows;
}

/* ---- rows ---- */

/* Nodes to be done on one tile of rows after the other. */
typedef struct sweep {
    tn_graph *g;
    tn_node *const *node;
    uint32_t n;
    bool backward;
    size_t weights;
} sweep;

static tn_rows_fn *rows_pass(const tn_node *n, bool backward)
{
    return backward ? n->op->backward : n->op->forward;
}

/* Runs a pass in pieces that the operator likes. */
static void do_node(tn_node *n, tn_range rows, tn_rows_fn *pass)
{
    uint32_t size = tile_size(n, false);
    rows = n->op->by_row ? rows : tn_rows_of(n, rows);
    for (uint32_t from = rows.from; from < rows.to; from += size) {
        pass(n, (tn_range){from, rows.to - from < size ? rows.to : from + size});
    }
}

/* Begins a span of the node in `lane`; does nothing where none is recorded. */
static void begin_node(tn_lane *lane, const tn_node *n, bool backward)
{
    tn_span_part(lane, backward ? TN_PHASE_BACKWARD : TN_PHASE_FORWARD, n->place->label);
}

static void end_node(tn_lane *lane, const tn_node *n)
{
    tn_span_end(n->place->label != NULL ? lane : NULL);
}

static void do_sweep(void *job, uint32_t tile)
{
    const sweep *s = job;
    tn_range rows = tn_tile(s->g->rows, s->g->sweep_rows, tile);
    tn_lane *lane = tn_team_lane(s->g->opts.team);
    for (uint32_t i = 0; i < s->n; i++) {
        begin_node(lane, s->node[i], s->backward);
        do_node(s->node[i], rows, rows_pass(s->node[i], s->backward));
        end_node(lane, s->node[i]);
    }
}

static void flush(sweep *s)
{
    if (s->n > 0) {
        tn_team_run(s->g->opts.team, tn_tile_count(s->g->rows, s->g->sweep_rows), do_sweep, s);
    }
    s->node += s->n;
    s->n = 0;
    s->weights = 0;
}

static size_t weights_of(const tn_node *n)
{
    size_t total = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        total += n->in[k]->is_param ? (size_t)n->in[k]->shape.rows * n->in[k]->shape.cols : 0;
    }
    return total;
}

/* ---- columns ---- */

static tn_range even_tile(const tn_node *n, uint32_t tile)
{
    uint64_t units = tn_tile_count(n->shape.cols, UNIT);
    uint32_t n_tiles = tn_tile_count(n->shape.cols, tile_size(n, true));
    uint32_t from = (uint32_t)(units * tile / n_tiles) * UNIT;
    uint32_t to = (uint32_t)(units * (tile + 1) / n_tiles) * UNIT;
    return (tn_range){from, to < n->shape.cols ? to : n->shape.cols};
}

/* ---- rows of the batch's table ---- */

static bool embeds(const tn_node *n)
{
    return n->place->alive && n->op != NULL && n->grad != NULL;
}

static uint32_t n_blocks_of(const tn_graph *g)
{
    const tn_sparse *s = g->feed.sparse;
    return s != NULL && s->grads != NULL ? s->n_blocks : 0;
}

/* Returns 1, or several where some node wants several blocks at once. */
static uint32_t blocks_together(const tn_graph *g)
{
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        if (embeds(g->node[i]) && g->node[i]->op->sparse.backward_blocks != NULL) {
            return TN_BLOCKS_TOGETHER;
        }
    }
    return 1;
}

/* Runs all embedding nodes on a block or some, while their gradients are in cache. */
static void do_blocks(tn_graph *g, tn_range blocks)
{
    const tn_row_block *block = &g->feed.sparse->block[blocks.from];
    const uint32_t n_blocks = blocks.to - blocks.from;
    tn_lane *lane = tn_team_lane(g->opts.team);
    tn_span_begin(lane, TN_PHASE_ROW_GRADS);
    for (uint32_t k = 0; k < n_blocks; k++) {
        tn_clear(g->feed.sparse->grads + block[k].from, block[k].to - block[k].from);
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node *n = g->node[i];
        for (uint32_t k = 0; k < n_blocks && embeds(n) && n->op->sparse.backward_rows != NULL;
             k++) {
            n->op->sparse.backward_rows(n, &block[k]);
        }
        if (embeds(n) && n->op->sparse.backward_blocks != NULL) {
            n->op->sparse.backward_blocks(n, block, n_blocks);
        }
    }
    for (uint32_t k = 0; k < n_blocks; k++) {
        if (!tn_vec_finite(block[k].to - block[k].from, g->feed.sparse->grads + block[k].from)) {
            atomic_store(&g->wild_rows, true);
        }
    }
    tn_span_end(lane);
}

/* The tiles of several nodes, node after node, then blocks of rows. */
typedef struct columns {
    tn_graph *g;
    tn_node **node;
    uint32_t n;
    uint32_t n_tiles;
    tn_cols_pass pass;
    uint32_t n_blocks;
    uint32_t together; /* blocks of one tile */
} columns;

/* Even tiles of whole vectors: 400 by 128 is 96 96 96 112, not 128 128 128 16, for which a second
 * thread would wait. */
static uint32_t tiles_of(const tn_node *n)
{
    TN_ASSERT(tile_size(n, true) >= UNIT);
    return tn_tile_count(n->shape.cols, tile_size(n, true));
}

static void do_columns(void *job, uint32_t tile)
{
    const columns *c = job;
    uint32_t i = 0;
    if (tile >= c->n_tiles) {
        do_blocks(c->g, tn_tile(c->n_blocks, c->together, tile - c->n_tiles));
        return;
    }
    while (tile >= tiles_of(c->node[i])) {
        tile -= tiles_of(c->node[i++]);
    }
    tn_lane *lane = tn_team_lane(c->g->opts.team);
    begin_node(lane, c->node[i], c->pass != TN_FORWARD_PART && c->pass != TN_FORWARD_COLS);
    c->node[i]->op->cols[c->pass](c->node[i], even_tile(c->node[i], tile));
    end_node(lane, c->node[i]);
}

static double work_of_tile(const tn_node *n)
{
    return tn_op_flops(n) / tiles_of(n);
}

/* Nodes with large tiles first, so that the small ones fill what is left of a thread's time. */
static void largest_first(tn_node **node, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        tn_node *moved = node[i];
        double work = work_of_tile(moved);
        uint32_t to = i;
        for (; to > 0 && work_of_tile(node[to - 1]) < work; to--) {
            node[to] = node[to - 1];
        }
        node[to] = moved;
    }
}

static void run_columns(columns *c)
{
    largest_first(c->node, c->n);
    const uint32_t block_tiles = c->n_blocks > 0 ? tn_tile_count(c->n_blocks, c->together) : 0;
    tn_team_run_in_order(c->g->opts.team, c->n_tiles + block_tiles, do_columns, c);
    c->node += c->n;
    c->n = 0;
    c->n_tiles = 0;
}

static void run_columns_of(tn_node *n, tn_cols_pass pass)
{
    if (n->op->cols[pass] != NULL) {
        run_columns(&(columns){n->graph, &n, 1, tiles_of(n), pass, 0, 1});
    }
}

/* ---- the parts that peers exchange of statistics over columns ---- */

const tn_parts *tn_parts_of(const tn_node *self)
{
    return &self->graph->parts;
}

void tn_part_put(const tn_node *self, uint32_t col, double count, double a, double b)
{
    const uint32_t cols = self->shape.cols;
    double *own = self->graph->parts.own;
    if (col == 0) {
        own[0] = count;
    }
    own[1 + col] = a;
    own[1 + (size_t)cols + col] = b;
}

tn_part tn_part_get(const tn_node *self, uint32_t peer, uint32_t col)
{
    const tn_parts *p = &self->graph->parts;
    const uint32_t cols = self->shape.cols;
    TN_ASSERT(peer < p->n && col < cols);
    const double *part = p->all + peer * TN_PART_SIZE(cols);
    return (tn_part){part[0], part[1 + col], part[1 + (size_t)cols + col]};
}

tn_status tn_parts_init(tn_graph *g, tn_error *err)
{
    size_t most = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->node[i];
        const bool has = n->place->alive && n->op != NULL && n->op->cols[TN_FORWARD_PART] != NULL;
        const size_t size = has ? TN_PART_SIZE(n->shape.cols) : 0;
        most = size > most ? size : most;
    }
    if (most == 0 || !g->opts.train) {
        return TN_OK;
    }
    g->parts.own = tn_try_alloc(most, sizeof *g->parts.own, "statistics of a graph", err);
    return g->parts.own != NULL ? TN_OK : TN_E_MEMORY;
}

/* Exchanges parts. After a failure the step goes on with its own: it is void, as the caller
 * knows. */
static void exchange_parts(const tn_node *self)
{
    tn_graph *g = self->graph;
    const tn_feed_peers *peers = g->feed.peers;
    const double *all =
        peers->exchange(peers->arg, g->parts.own, (uint32_t)TN_PART_SIZE(self->shape.cols));
    g->parts.all = all != NULL ? all : g->parts.own;
    g->parts.n = all != NULL ? peers->n : 1;
}

/* Statistics over the columns: of this batch, or of the joint one. */
static void run_statistics_of(tn_node *n, bool backward)
{
    tn_cols_pass part = backward ? TN_BACKWARD_PART : TN_FORWARD_PART;
    bool joint = n->graph->feed.peers != NULL && n->op->cols[part] != NULL;
    if (joint) {
        run_columns_of(n, part);
        exchange_parts(n);
    }
    run_columns_of(n, backward ? TN_BACKWARD_COLS : TN_FORWARD_COLS);
    if (joint) {
        n->graph->parts.all = NULL;
        n->graph->parts.n = 0;
    }
}

/* Returns whether another node writes to a parameter of this one, which two may not do at once. */
static bool shares_parameter(const tn_node *n)
{
    for (uint32_t k = 0; k < n->n_in; k++) {
        if (n->in[k]->is_param && n->in[k]->place->writers > 1) {
            return true;
        }
    }
    return false;
}

/* Runs `pass` of every node of g->order, all tiles in one run as far as that is possible. Gradients
 * of rows wait for the same as those of parameters, so they are tiles of the same run. */
static void run_all_columns(tn_graph *g, uint32_t n_order, tn_cols_pass pass)
{
    columns c = {.g = g, .node = g->columns, .pass = pass};
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_order; i++) {
        tn_node *node = g->order[i];
        const bool empty = pass == TN_BACKWARD_PARAMS && node->shape.rows == 0;
        if (node->op->cols[pass] == NULL || empty) {
            continue;
        }
        bool alone = pass == TN_BACKWARD_PARAMS && shares_parameter(node);
        if (alone && c.n > 0) {
            run_columns(&c);
        }
        g->columns[n++] = node;
        c.n++;
        c.n_tiles += tiles_of(node);
        if (alone) {
            run_columns(&c);
        }
    }
    c.n_blocks = pass == TN_BACKWARD_PARAMS ? n_blocks_of(g) : 0;
    c.together = blocks_together(g);
    if (c.n + c.n_blocks > 0) {
        run_columns(&c);
    }
}

/* ---- a step ---- */

/* Runs node after node of g->order: column passes at once, row passes as late as they may be. */
static void sweep_order(tn_graph *g, uint32_t n_order, bool backward)
{
    sweep s = {.g = g, .node = g->sweep, .backward = backward};
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_order; i++) {
        tn_node *node = g->order[i];
        tn_cols_pass cols = backward ? TN_BACKWARD_COLS : TN_FORWARD_COLS;
        bool heavy = s.weights > 0 && s.weights + weights_of(node) > SWEEP_WEIGHTS;
        if (heavy || node->op->cols[cols] != NULL) {
            flush(&s);
            run_statistics_of(node, backward);
        }
        if (rows_pass(node, backward) != NULL) {
            g->sweep[n++] = node;
            s.n++;
            s.weights += weights_of(node);
        }
    }
    flush(&s);
}

static void sweep_forward(tn_graph *g)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *node = g->node[i];
        if (node->place->alive && node->op != NULL &&
            (g->rows > 0 || node->op->cols[TN_FORWARD_PART] != NULL)) {
            g->order[n++] = g->node[i];
        }
    }
    if (g->opts.bf16 && !(g->opts.shares && g->packed)) { /* only these products pack */
        run_all_columns(g, n, TN_PACK);
        g->packed = true;
    }
    sweep_order(g, n, false);
}

static void sweep_backward(tn_graph *g)
{
    uint32_t n = 0;
    for (uint32_t i = g->n_nodes; i-- > 0;) {
        const tn_node *node = g->node[i];
        if (node->place->runs_backward &&
            (g->rows > 0 || node->op->cols[TN_BACKWARD_PART] != NULL)) {
            g->order[n++] = g->node[i];
        }
    }
    run_all_columns(g, n, TN_PREPARE);
    sweep_order(g, n, true);
    run_all_columns(g, n, TN_BACKWARD_PARAMS);
}

static void clear_tile(void *job, uint32_t tile)
{
    const tn_graph *g = job;
    tn_range rows = tn_tile(g->rows, g->sweep_rows, tile);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->node[i];
        if (n->is_param || !n->place->clear) {
            continue;
        }
        const tn_range own = tn_rows_of(n, rows);
        for (size_t r = own.from; r < own.to; r++) {
            tn_clear(tn_grad_row(n, r), n->shape.cols);
        }
    }
}

/* Returns whether nothing assigns the gradient: without rows, or positions, no operator does. */
static bool is_unwritten(const tn_graph *g, const tn_node *n)
{
    const tn_node *first = n->first_writer;
    return n->place->clear || g->rows == 0 || (first != NULL && first->shape.rows == 0);
}

/* Gradients that nothing assigns. */
static void sweep_clear(tn_graph *g)
{
    bool any = false;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->node[i];
        if (is_unwritten(g, n) && n->is_param && !n->is_state && n->grad != NULL) {
            tn_clear(n->grad, (size_t)n->shape.rows * n->shape.cols);
        }
        any |= n->place->clear && !n->is_param;
    }
    if (any) {
        tn_team_run(g->opts.team, tn_tile_count(g->rows, g->sweep_rows), clear_tile, g);
    }
}

/* ---- a batch ---- */

double tn_weight_sum(const tn_real *weight, uint32_t rows)
{
    if (weight == NULL) {
        return rows;
    }
    double sum = 0;
    for (uint32_t i = 0; i < rows; i++) {
        sum += (double)weight[i];
    }
    return sum;
}

void tn_forward(tn_graph *g, const tn_graph_feed *feed)
{
    TN_ASSERT(g->finished && feed->rows <= g->opts.max_rows);
    g->feed = *feed;
    g->rows = feed->rows;
    g->weight = tn_weight_sum(feed->weight, feed->rows);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node *n = g->node[i];
        if (!n->is_param) {
            n->shape.rows = tn_rows_of(n, (tn_range){0, feed->rows}).to;
            TN_ASSERT(n->shape.rows <= tn_max_rows(n));
        } else if (n->place->alive && n->is_state && n->grad != NULL) {
            /* running values that this step does not move keep what they have */
            memcpy(n->grad, n->val, (size_t)n->shape.rows * n->shape.cols * sizeof *n->grad);
        }
    }
    if (feed->rows > 0 || feed->peers != NULL) {
        sweep_forward(g);
    }
}

void tn_graph_trace(tn_graph *g, tn_trace *trace)
{
    TN_ASSERT(g->finished);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->node[i];
        n->place->label = n->place->alive && n->op != NULL ? tn_trace_name(trace, n->name) : NULL;
    }
}

static double divisor(const tn_graph *g)
{
    switch (g->opts.reduction) {
    case TN_REDUCE_MEAN:
        return g->feed.joint_weight > 0 ? g->feed.joint_weight : g->weight;
    case TN_REDUCE_ROWS:
        return g->feed.joint_rows > 0 ? (double)g->feed.joint_rows : g->rows;
    case TN_REDUCE_SUM:
        break;
    }
    return 1;
}

double tn_graph_loss(const tn_graph *g)
{
    TN_ASSERT(g->loss != NULL);
    const tn_real *w = g->feed.weight;
    double sum = 0;
    for (uint32_t r = 0; r < g->rows; r++) {
        double l = (double)*tn_val_row(g->loss, r);
        sum += w == NULL ? l : (double)w[r] * l;
    }
    return g->weight > 0 ? sum / divisor(g) : 0;
}

/* d loss / d l_i = w_i / W */
static void seed_loss(tn_graph *g)
{
    tn_node *loss = g->loss;
    double d = g->weight > 0 ? 1 / divisor(g) : 0;
    for (uint32_t r = 0; r < g->rows; r++) {
        double w = g->feed.weight == NULL ? 1 : (double)g->feed.weight[r];
        *tn_grad_row(loss, r) = (tn_real)(w * d);
    }
}

void tn_backward(tn_graph *g)
{
    TN_ASSERT(g->opts.train && g->loss != NULL && g->loss->grad != NULL);
    atomic_store(&g->wild_rows, false);
    sweep_clear(g);
    seed_loss(g);
    if (g->rows > 0 || g->feed.peers != NULL) {
        sweep_backward(g);
    }
}

static bool all_finite(const tn_node *n, const tn_real *from)
{
    for (size_t r = 0; r < n->shape.rows; r++) {
        if (!tn_vec_finite(n->shape.cols, from + r * n->stride)) {
            return false;
        }
    }
    return true;
}

bool tn_graph_rows_finite(const tn_graph *g)
{
    return !atomic_load(&g->wild_rows);
}

const char *tn_graph_not_finite(const tn_graph *g)
{
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->node[i];
        if (n->place->alive && n->val != NULL && !all_finite(n, n->val)) {
            return n->name;
        }
    }
    for (uint32_t i = g->n_nodes; g->opts.train && i-- > 0;) {
        const tn_node *n = g->node[i];
        if (n->place->alive && n->grad != NULL && !n->is_state && !all_finite(n, n->grad)) {
            return n->name;
        }
    }
    return NULL;
}
