/* modelkit.h - a model from a few words, for the tests of this room. */
#pragma once

#include "base/core/arena.h"
#include "config/diag.h"
#include "models/layerlist.h"
#include "models/model.h"
#include "nn/graph/graph.h"
#include "nn/graph/params.h"

typedef struct kit {
    tn_arena *arena;
    tn_diag diag;
    tn_features features;
    const tn_tree *list;
    const tn_model_inputs *inputs;
    const tn_layout *layout;
    tn_params *params;
    tn_graph *graph;
    tn_list_graph made;
    tn_graph_opts opts; /* of graphs; max_rows 0: 8 rows, to train */
} kit;

/* The last of several slots is the sequence `clicks`, whose target is s0.
 *
 * `slots` slots s0, s1, .. of width `dim`, each a group of its own; `numeric` columns n0, n1, .. */
void kit_init(kit *k, uint32_t slots, uint32_t dim, uint32_t numeric);
void kit_done(kit *k);

/* The section `model:` in flow style, as {type: lr}. False: faults are in k->diag. */
bool kit_list(kit *k, const char *model);

/* The same with a list of layers; then the graph. */
bool kit_build(kit *k);
