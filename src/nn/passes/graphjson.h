/* graphjson.h - the nodes of a graph as JSON: model.json, and a hash that differs between graphs.
 *
 *     [{"name":"deep.1","op":"dense","in":["in.deep"],"cols":64,"attr":{"activation":"relu"},
 *       "params":{"W":"deep.1.W","b":"deep.1.b"}}]
 *
 * In execution order. Inputs (embeddings, numeric columns) are not nodes here: others refer to them
 * by name. Constants of an operator are written by its option table.
 */
#pragma once

#include "base/codec/json.h"
#include "nn/graph/graph.h"

/* Appends the list, from `[` to `]`, of what runs after tn_graph_finish. */
void tn_graph_json_nodes(const tn_graph *g, tn_text *out);

/* Lookup of the things that the nodes of a list refer to by name. */
typedef struct tn_json_lookup {
    tn_node *(*input)(void *arg, const char *name);              /* NULL: none */
    tn_node *(*param)(void *arg, tn_graph *g, const char *name); /* NULL: none */
    void *arg;
} tn_json_lookup;

/* Adds the nodes of such a list to a graph that does not train; the caller finishes it. Nodes are
 * then found by name. TN_E_CKPT with the node and the fault: the list is hostile. TN_E_MEMORY. */
tn_status tn_graph_from_json(tn_graph *g, const tn_json *nodes, const tn_json_lookup *lookup,
                             const char *what, tn_error *err) TN_MUST_USE;
