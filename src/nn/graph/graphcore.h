/* graphcore.h - the inside of a graph, for the files that build it, run it and print it.
 *
 * Matrices that lie inside another one form a group: the operands of a concat, the slices of a
 * node. `home` leads to the matrix they live in, and to the group's root, which owns the memory:
 *
 *     concat c  | a . . . | b . . | d . . . . |      a, b, d: home c, at 0, 4, 7
 *     slice s         | . . . . |                    of c: home c, at 2
 */
#pragma once

#include "base/core/arena.h"
#include "nn/gemm/gemm.h"
#include "nn/graph/graph.h"
#include "nn/graph/peer_column_stats.h"

#include <stdatomic.h>

enum { TN_NODES_MAX = 4096 };

typedef struct tn_node_place {
    uint32_t index;     /* in the graph's list */
    bool alive;         /* a wanted output needs it */
    bool kept;          /* wanted by name or as an output: not fused away, memory not reused */
    bool wants_grad;    /* leaf: asked for. Others: something upstream is trained and the loss is
                           downstream */
    bool runs_backward; /* self->grad is filled and some operand wants it */
    bool reached;       /* the loss is downstream */
    bool touched;       /* root: the gradient's first writer is settled */
    bool clear;         /* root: its gradient is set to 0 before backward */
    tn_params *params;  /* parameter: where it comes from */
    uint32_t slice;
    bool shared;   /* parameter: of whoever asks for it by tn_shared_param */
    tn_node *home; /* NULL: a root */
    uint32_t home_col;
    uint32_t writers; /* root: nodes that add to it */
    uint32_t born;    /* root: first and last node that touch the group's values */
    uint32_t dies;
    bool group_kept; /* root: a node of the group is kept, or set from outside */
    bool group_grad; /* root: a node of the group wants a gradient */
    size_t val_at;   /* root: offset in the graph's block, in floats */
    size_t grad_at;
    uint32_t task;     /* the task whose labels a loss reads, if the feed has several */
    const char *label; /* label of its spans in a trace; NULL: not recorded */
} tn_node_place;

struct tn_graph {
    tn_arena *arena;
    tn_graph_opts opts;
    bool finished;
    tn_products products;
    tn_products halves; /* with opts.bf16: of pairs of bfloat16 */
    bool packed;        /* weights for them, once */
    uint32_t n_nodes;
    uint32_t n_free_names; /* number of nodes made without a name */
    uint32_t sweep_rows;   /* rows of the batch in one tile of a sweep */
    uint32_t chapter;      /* first node of it; see tn_graph_chapter */
    const char *fault;     /* the first; NULL: none */
    tn_node *node[TN_NODES_MAX];
    /* nodes in the order of one step; see executor.c, as for the next two */
    tn_node *order[TN_NODES_MAX];
    tn_node *sweep[TN_NODES_MAX];
    tn_node *columns[TN_NODES_MAX];
    tn_params *own; /* parameters of examples, and weights that were folded; NULL: none */
    tn_node *logit;
    tn_node *loss;
    tn_real *block; /* all values and gradients */
    size_t block_size;
    char *states;       /* all scratch */
    tn_graph_feed feed; /* feed of the running batch */
    tn_parts parts;
    uint32_t rows;
    double weight;          /* sum of w_i */
    _Atomic bool wild_rows; /* the latest backward: some gradient of a row is not finite */
};

const char *tn_graph_copy_text(tn_graph *g, const char *text);
const tn_node *tn_node_root(const tn_node *n);
uint32_t tn_operands(const tn_node *n); /* without parameters */
