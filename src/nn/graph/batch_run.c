/* batch_run.c - one batch through a graph: what comes in, the loss, what goes wrong. */
#include "nn/graph/graphcore.h"

#include <math.h>
#include <string.h>

static double weight_of(const tn_graph_feed *feed)
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

void tn_forward(tn_graph *g, const tn_graph_feed *feed)
{
    TN_ASSERT(g->finished && feed->rows <= g->opts.max_rows);
    g->feed = *feed;
    g->rows = feed->rows;
    g->weight = weight_of(feed);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        tn_node *n = g->node[i];
        if (n->place->alive && n->is_param) {
            propose_old_state(n);
        } else {
            n->shape.rows = n->is_param ? n->shape.rows : feed->rows;
        }
    }
    if (feed->rows > 0 || feed->peers != NULL) {
        tn_sweep_forward(g);
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

/* Without rows nobody assigns anything. */
static void clear_parameters(tn_graph *g)
{
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->node[i];
        if (n->is_param && !n->is_state && n->grad != NULL) {
            tn_clear(n->grad, (size_t)n->shape.rows * n->shape.cols);
        }
    }
}

void tn_backward(tn_graph *g)
{
    TN_ASSERT(g->opts.train && g->loss != NULL && g->loss->grad != NULL);
    if (g->rows == 0) {
        clear_parameters(g);
        if (g->feed.peers != NULL) {
            tn_sweep_backward(g);
        }
    } else {
        tn_sweep_clear(g);
        seed_loss(g);
        tn_sweep_backward(g);
    }
    tn_lane *lane = tn_team_lane(g->opts.team);
    tn_span_begin(lane, TN_PHASE_ROW_GRADS);
    tn_sweep_keys(g);
    tn_span_end(lane);
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
