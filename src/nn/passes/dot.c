/* dot.c - a graph as a drawing for graphviz; see plan.h. */
#include "nn/graph/graphcore.h"
#include "nn/passes/plan.h"

/* In quotes; names may hold anything. */
static void add_quoted(tn_text *out, const char *text)
{
    tn_text_addc(out, '"');
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            tn_text_addc(out, '\\');
        }
        tn_text_addc(out, *c);
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
    tn_text_addc(out, '"');
    for (const char *c = tn_text_str(&label); *c != '\0'; c++) {
        if (*c == '\n') {
            tn_text_adds(out, "\\n");
            continue;
        }
        if (*c == '"' || *c == '\\') {
            tn_text_addc(out, '\\');
        }
        tn_text_addc(out, *c);
    }
    tn_text_addc(out, '"');
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
