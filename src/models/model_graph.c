/* model_graph.c - `type: graph`: the user's own list of inputs and layers. */
#include "models/model.h"

typedef struct graph_opts {
    const tn_tree *inputs;
    const tn_tree *layers;
    const char *output;
} graph_opts;

static const tn_field graph_fields[] = {
    TN_FIELD_TREE(graph_opts, inputs, NULL,
                  "{name: {embed: all | [slots], dim: n} | {numeric: all}}"),
    TN_FIELD_TREE(graph_opts, layers, NULL,
                  "[{name: .., <layer>: <inputs>, ..}], see tnet-train --list-layers"),
    TN_FIELD_STR(graph_opts, output, NULL, "name of the layer that is the logit"),
    TN_FIELD_END,
};

static void graph_write(const tn_model_args *args, tn_list_writer *w)
{
    static const char *const keys[] = {"inputs", "layers", "output"};
    for (uint32_t i = 0; i < 3; i++) {
        const tn_tree *part = tn_tree_get(args->tree, keys[i]);
        if (part != NULL) {
            tn_tree_put(w->arena, w->list, keys[i], tn_tree_copy(w->arena, part));
        }
    }
    if (!tn_tree_is_null(args->common->slots)) {
        tn_diag_error(w->diag, &args->common->slots->at,
                      "'slots' belongs to the built-in models; here the inputs name their slots");
    }
}

const tn_model tn_model_graph = {
    .choice = {.name = "graph",
               .help = "a list of layers, written in the configuration",
               .fields = graph_fields,
               .size = sizeof(graph_opts),
               .impl = &tn_model_graph},
    .write = graph_write,
};
