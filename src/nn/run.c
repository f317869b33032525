/* run.c - one batch through a graph: forward up the list, backward down.
 *
 * Every node is cut into tiles by its operator and shape, and the team does them in any order. The
 * number of threads is nowhere in here.
 */
#include "nn/graphcore.h"

#include <math.h>
#include <string.h>

/* Part of what a model's numbers are: another size gives other rounding. */
enum { TILE_FLOATS = 32768, TILE_ROWS_MIN = 64, TILE_ROWS_MAX = 1024, TILE_COLS = 64 };
enum { TILE_KEYS = 512 };

uint32_t tn_tile_size(const tn_node *n, bool cols)
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
    uint32_t rows = TILE_FLOATS / width / 16 * 16;
    rows = rows < TILE_ROWS_MIN ? TILE_ROWS_MIN : rows;
    return rows > TILE_ROWS_MAX ? TILE_ROWS_MAX : rows;
}

typedef struct tiling {
    tn_node *node;
    void (*work)(tn_node *self, tn_range range);
    uint32_t n;
    uint32_t size;
} tiling;

static void do_tile(void *job, uint32_t tile)
{
    const tiling *t = job;
    t->work(t->node, tn_tile(t->n, t->size, tile));
}

static void run_rows(tn_node *n, tn_rows_fn *work)
{
    if (work != NULL) {
        tiling t = {n, work, n->shape.rows, tn_tile_size(n, false)};
        tn_team_run(n->graph->opts.team, tn_tile_count(t.n, t.size), do_tile, &t);
    }
}

/* Columns are cut into even tiles of whole vectors: 400 by 128 is 96 96 96 112, not 128 128 128 16,
 * for which a second thread would wait. */
enum { UNIT = 16 };

static void do_even_tile(void *job, uint32_t tile)
{
    const tiling *t = job;
    uint64_t units = tn_tile_count(t->n, UNIT);
    uint32_t n_tiles = tn_tile_count(t->n, t->size);
    uint32_t from = (uint32_t)(units * tile / n_tiles) * UNIT;
    uint32_t to = (uint32_t)(units * (tile + 1) / n_tiles) * UNIT;
    t->work(t->node, (tn_range){from, to < t->n ? to : t->n});
}

static void run_cols(tn_node *n, tn_cols_fn *work)
{
    if (work != NULL) {
        tiling t = {n, work, n->shape.cols, tn_tile_size(n, true)};
        TN_ASSERT(t.size >= UNIT);
        tn_team_run(n->graph->opts.team, tn_tile_count(t.n, t.size), do_even_tile, &t);
    }
}

static double weight_of(const tn_feed *feed)
{
    if (feed->weight == NULL) {
        return feed->rows;
    }
    double sum = 0;
    for (uint32_t i = 0; i < feed->rows; i++) {
        sum += (double)feed->weight[i];
    }
    return sum;
}

/* Running values that nobody moves in this step keep what they have. */
static void propose_old_state(const tn_node *n)
{
    if (n->is_state && n->grad != NULL) {
        memcpy(n->grad, n->val, (size_t)n->shape.rows * n->shape.cols * sizeof *n->grad);
    }
}

void tn_forward(tn_graph *g, const tn_feed *feed)
{
    TN_ASSERT(g->finished && feed->rows <= g->opts.max_rows);
    g->feed = *feed;
    g->rows = feed->rows;
    g->weight = weight_of(feed);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node *n = g->node[i];
        if (!n->place->alive) {
            continue;
        }
        if (n->is_param) {
            propose_old_state(n);
            continue;
        }
        n->shape.rows = feed->rows;
        if (n->op != NULL && feed->rows > 0) {
            run_cols(n, n->op->forward_cols);
            run_rows(n, n->op->forward);
        }
    }
}

static double divisor(const tn_graph *g)
{
    switch (g->opts.reduction) {
    case TN_REDUCE_MEAN:
        return g->weight;
    case TN_REDUCE_ROWS:
        return g->rows;
    case TN_REDUCE_SUM:
        break;
    }
    return 1;
}

double tn_graph_weight(const tn_graph *g)
{
    return g->weight;
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

static void clear_rows(tn_node *n, tn_range rows)
{
    for (uint32_t r = rows.from; r < rows.to; r++) {
        memset(tn_grad_row(n, r), 0, n->shape.cols * sizeof *n->grad);
    }
}

static void clear_gradients(tn_graph *g)
{
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node *n = g->node[i];
        if (n->place->alive && n->place->clear) {
            clear_rows(n, (tn_range){0, n->shape.rows});
        }
        n->grad_fresh = false;
    }
}

/* Tells the operands whose first writer `n` is to be assigned; or, afterwards, to be added to. */
static void mark_fresh(tn_node *n, bool fresh)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        n->in[i]->grad_fresh = fresh && n->in[i]->place->first_writer == n;
    }
}

static void backward_node(tn_node *n)
{
    mark_fresh(n, true);
    run_cols(n, n->op->backward_cols);
    run_rows(n, n->op->backward);
    run_cols(n, n->op->backward_params);
    mark_fresh(n, false);
}

typedef struct key_job {
    tn_graph *g;
    const tn_sparse *sparse;
} key_job;

/* All embedding nodes on one tile of keys, while its gradients are in cache. */
static void do_keys(void *job, uint32_t tile)
{
    const key_job *k = job;
    const tn_sparse *s = k->sparse;
    tn_range keys = tn_tile(s->n, TILE_KEYS, tile);
    memset(s->grads + s->at[keys.from], 0, (s->at[keys.to] - s->at[keys.from]) * sizeof *s->grads);
    for (uint32_t i = 0; i < k->g->n_nodes; i++) {
        tn_node *n = k->g->node[i];
        if (n->place->alive && n->op != NULL && n->op->backward_keys != NULL && n->grad != NULL) {
            n->op->backward_keys(n, keys);
        }
    }
}

/* Without rows nobody assigns anything. */
static void clear_parameters(tn_graph *g)
{
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node *n = g->node[i];
        if (n->is_param && !n->is_state && n->grad != NULL) {
            clear_rows(n, (tn_range){0, n->shape.rows});
        }
    }
}

void tn_backward(tn_graph *g)
{
    TN_ASSERT(g->opts.train && g->loss != NULL && g->loss->grad != NULL);
    clear_gradients(g);
    seed_loss(g);
    if (g->rows == 0) {
        clear_parameters(g);
    }
    for (uint32_t i = g->n_nodes; g->rows > 0 && i-- > 0;) {
        tn_node *n = g->node[i];
        if (n->place->runs_backward) {
            backward_node(n);
        }
    }
    const tn_sparse *s = g->feed.sparse;
    if (s != NULL && s->grads != NULL && s->n > 0) {
        key_job job = {g, s};
        tn_team_run(g->opts.team, tn_tile_count(s->n, TILE_KEYS), do_keys, &job);
    }
}

static bool all_finite(const tn_node *n, const tn_real *from)
{
    for (size_t r = 0; r < n->shape.rows; r++) {
        for (size_t c = 0; c < n->shape.cols; c++) {
            if (!isfinite(from[r * n->stride + c])) {
                return false;
            }
        }
    }
    return true;
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
