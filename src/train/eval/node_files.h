/* node_files.h - values of nodes of the evaluation graph in files, row by row in the order of the
 * data: tnet-eval --fetch writes them, --feed sets nodes by them.
 *
 *     --fetch deep.2,wide          fetch.npz: an array [rows x cols] of each, and `id`
 *     --feed deep.2=fetch.npz      in place of values that are computed
 *
 * The kinds of files are rows of fetch_kinds.def and feed_kinds.def, at most one of each. Nodes
 * must be among tn_worker_opts.fetch and .feed. One thread uses a file at a time.
 */
#pragma once

#include "base/core/error.h"
#include "config/values.h"

typedef struct tn_arena tn_arena;   /* base/core/arena.h */
typedef struct tn_graph tn_graph;   /* nn/graph/graph.h */
typedef struct tn_node tn_node;     /* nn/graph/op.h */
typedef struct tn_scores tn_scores; /* train/eval/evaluate.h */

typedef struct tn_fetch tn_fetch;
typedef struct tn_fetch_kind {
    tn_status (*open)(tn_fetch **out, const char *path, const tn_strs *nodes, tn_error *err);
    tn_status (*sink)(void *fetch, const tn_scores *scores, tn_error *err); /* with want_ids */
    tn_status (*commit)(tn_fetch *f, tn_error *err);                        /* frees f */
    void (*abandon)(tn_fetch *f);                                           /* NULL is fine */
} tn_fetch_kind;

typedef struct tn_feed tn_feed;
typedef struct tn_feed_kind {
    /* `given`: "NODE=FILE.npz" each. `nodes`: their names, in the arena. TN_E_USAGE: none of that
     * form, or a node twice. */
    tn_status (*names)(const tn_strs *given, tn_arena *arena, tn_strs *nodes, tn_error *err);
    /* Opens all files. TN_E_DATA: a file is damaged, lacks the node, or has another width. */
    tn_status (*open)(tn_feed **out, const tn_strs *given, const tn_strs *nodes,
                      const tn_graph *graph, tn_error *err);
    /* Sets the nodes for the next `rows` rows. TN_E_DATA: a file has fewer. */
    tn_status (*next)(tn_feed *f, uint32_t rows, tn_error *err);
    /* TN_E_DATA: a file has more rows than were asked for. */
    tn_status (*end)(const tn_feed *f, tn_error *err);
    void (*close)(tn_feed *f); /* NULL is fine */
} tn_feed_kind;

/* NULL: this build has none. */
const tn_fetch_kind *tn_fetch_built(void);
const tn_feed_kind *tn_feed_built(void);

/* A node whose values can be fetched; NULL, and TN_E_CONFIG in *err: there is none of that name. */
const tn_node *tn_fetch_node(const tn_graph *graph, const char *name, tn_error *err);
