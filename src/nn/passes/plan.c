/* plan.c - what a graph costs, as a table of nodes; and its drawing. */
#include "nn/passes/plan.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "nn/gemm/gemm.h"
#include "nn/graph/graphcore.h"
#include "nn/op/ops.h"

#include <string.h>

enum { SIDE = 256, ROUNDS = 4 };

static double product_rate(const tn_products *by, tn_real *m)
{
    size_t n = (size_t)SIDE * SIDE;
    double best = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double start = tn_clock_s();
        tn_gemm(by, (tn_dims){SIDE, SIDE, SIDE}, (tn_mat){m, SIDE, false},
                (tn_mat){m + n, SIDE, false}, (tn_product){m + 2 * n, SIDE, false});
        double rate = 2.0 * SIDE * SIDE * SIDE / (tn_clock_s() - start + 1e-9);
        best = rate > best ? rate : best;
    }
    return best;
}

tn_status tn_measure_products(const tn_graph *g, double *out, tn_error *err)
{
    tn_real *m = NULL;
    TN_TRY(TN_ALLOC(m, (size_t)3 * SIDE * SIDE, "measuring this machine", err));
    *out = product_rate(&g->products, m);
    tn_free(m);
    return TN_OK;
}

/* Own parameters: those that no earlier node has. */
static uint64_t params_of(const tn_graph *g, const tn_node *n)
{
    uint64_t total = 0;
    for (uint32_t k = 0; k < n->n_in; k++) {
        const tn_node *p = n->in[k];
        bool counted = !p->is_param || p->is_state;
        for (uint32_t i = 0; !counted && g->node[i] != n; i++) {
            const tn_node *earlier = g->node[i];
            for (uint32_t j = 0; earlier->place->alive && j < earlier->n_in; j++) {
                counted |= earlier->in[j] == p;
            }
        }
        total += counted ? 0 : (uint64_t)p->shape.rows * p->shape.cols;
    }
    return total;
}

/* Read and written by the node itself; a node that lies inside another's matrix costs nothing. */
static double bytes_of(const tn_node *n)
{
    if (n->op->layout.joins || n->op->layout.part != NULL) {
        return 0;
    }
    double cols = n->shape.cols;
    for (uint32_t k = 0; k < n->n_in; k++) {
        cols += n->in[k]->is_param ? 0 : n->in[k]->shape.cols;
    }
    return cols * n->shape.rows * sizeof(tn_real);
}

static bool runs(const tn_node *n)
{
    return n->place->alive && n->op != NULL;
}

/* Gives every value the most rows that it can have, and `rows` of each back what it had. */
static void swap_rows(const tn_graph *g, uint32_t *rows)
{
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const uint32_t before = g->node[i]->shape.rows;
        g->node[i]->shape.rows = rows[i];
        rows[i] = before;
    }
}

tn_cost tn_graph_cost(const tn_graph *g)
{
    TN_ASSERT(g->finished);
    uint32_t rows[TN_NODES_MAX];
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        rows[i] = g->node[i]->is_param ? g->node[i]->shape.rows : tn_max_rows(g->node[i]);
    }
    swap_rows(g, rows);
    double backward = g->opts.train ? 2 : 0;
    tn_cost c = {.memory = (double)g->block_size * sizeof(tn_real)};
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->node[i];
        if (!runs(n)) {
            continue;
        }
        double times = 1 + (n->place->wants_grad ? backward : 0);
        c.params += params_of(g, n);
        c.bytes += bytes_of(n) * times;
        if (n->op == &tn_op_matmul || n->op == &tn_op_dense || n->op == &tn_op_sequence_dense) {
            c.product_flops += tn_op_flops(n) * times;
        } else {
            c.other_flops += tn_op_flops(n) * times;
        }
    }
    swap_rows(g, rows);
    return c;
}

static void print_node(const tn_graph *g, const tn_node *n, tn_text *out)
{
    double rows = g->opts.max_rows;
    uint64_t params = params_of(g, n);
    tn_text_addf(out, "%-28s %-15s %7u %10llu %12.1f %9.1f ", n->name, n->op->name, n->shape.cols,
                 (unsigned long long)params, tn_op_flops(n) / rows / 1e3,
                 n->place->home != NULL ? 0.0 : (double)(n->stride * sizeof(tn_real)) / 1024.0);
    for (uint32_t k = 0; k < tn_operands(n) && k < n->n_in; k++) {
        tn_text_addf(out, " %s", n->in[k]->name);
    }
    if (n->place->home != NULL) {
        tn_text_addf(out, " (inside %s)", n->place->home->name);
    }
    tn_text_addc(out, '\n');
}

void tn_graph_print(const tn_graph *g, double products, tn_text *out)
{
    char kernels[TN_PRODUCTS_NAME];
    tn_products_describe(&g->products, kernels);
    tn_cost c = tn_graph_cost(g);
    tn_text_addf(out, "%-28s %-15s %7s %10s %12s %9s  %s\n", "node", "op", "cols", "params",
                 "kFLOP/row", "KB/row", "in");
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        if (runs(g->node[i])) {
            print_node(g, g->node[i], out);
        }
    }
    double rows = g->opts.max_rows;
    tn_text_addf(out,
                 "total: %llu dense parameters; %.1f kFLOP per row %s; %.1f MB for %u rows\n"
                 "products: %s%s, %.1f GFLOP/s per thread\n",
                 (unsigned long long)c.params, (c.product_flops + c.other_flops) / rows / 1e3,
                 g->opts.train ? "forward and backward" : "forward", c.memory / 1048576,
                 g->opts.max_rows, kernels, g->opts.bf16 ? " (most in bf16)" : "", products * 1e-9);
}

/* In quotes; names may hold anything. */
static void add_quoted(tn_text *out, const char *text)
{
    tn_text_addc(out, '"');
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\' || *c == '\n') {
            tn_text_addc(out, '\\');
        }
        tn_text_addc(out, (char)(*c == '\n' ? 'n' : *c));
    }
    tn_text_addc(out, '"');
}

static void add_label(tn_text *out, const tn_node *n)
{
    tn_text label = {0};
    tn_text_addf(&label, "%s\n%s [B x %u]", n->name, n->op == NULL ? "input" : n->op->name,
                 n->shape.cols);
    for (uint32_t k = 0; k < n->n_in; k++) {
        const tn_node *p = n->in[k];
        if (p->is_param) {
            tn_text_addf(&label, "\n%s [%u x %u]", p->name, p->shape.rows, p->shape.cols);
        }
    }
    add_quoted(out, tn_text_str(&label));
    tn_text_done(&label);
}

static bool is_drawn(const tn_node *n)
{
    return n->place->alive && !n->is_param;
}

static const char *style_of(const tn_graph *g, const tn_node *n)
{
    if (n->op == NULL || n->n_in == 0) {
        return "shape=box, style=filled, fillcolor=lightblue";
    }
    if (n == g->loss || n == g->logit) {
        return "shape=box, style=filled, fillcolor=lightyellow";
    }
    return n->place->home != NULL ? "shape=box, style=dashed" : "shape=box";
}

void tn_graph_dot(const tn_graph *g, tn_text *out)
{
    tn_text_adds(out, "digraph tnet {\n    rankdir=BT;\n");
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->node[i];
        if (!is_drawn(n)) {
            continue;
        }
        tn_text_adds(out, "    ");
        add_quoted(out, n->name);
        tn_text_adds(out, " [label=");
        add_label(out, n);
        tn_text_addf(out, ", %s];\n", style_of(g, n));
        for (uint32_t k = 0; k < n->n_in; k++) {
            if (is_drawn(n->in[k])) {
                tn_text_adds(out, "    ");
                add_quoted(out, n->in[k]->name);
                tn_text_adds(out, " -> ");
                add_quoted(out, n->name);
                tn_text_adds(out, ";\n");
            }
        }
    }
    tn_text_adds(out, "}\n");
}
