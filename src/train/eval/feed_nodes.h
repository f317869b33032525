/* feed_nodes.h - values of nodes of the evaluation graph from files, row by row in the order of the
 * data, instead of computed ones.
 *
 *     --feed deep.2=fetch.npz --feed wide=other.npz
 *
 * Arrays are as tn_fetch (predict.h) writes them, [rows x cols] of float32, and called like the
 * nodes, which are among tn_worker_opts.feed. One thread uses a feed at a time.
 */
#pragma once

#include "base/core/error.h"
#include "config/values.h"

#include <stdint.h>

typedef struct tn_arena tn_arena; /* base/core/arena.h */
typedef struct tn_graph tn_graph; /* nn/graph/graph.h */

typedef struct tn_feed tn_feed;

/* `given`: "NODE=FILE.npz" each. `nodes`: their names, in the arena. TN_E_USAGE: none of that form,
 * or a node twice. */
tn_status tn_feed_names(const tn_strs *given, tn_arena *arena, tn_strs *nodes,
                        tn_error *err) TN_MUST_USE;
/* Opens all files. TN_E_DATA: a file is damaged, lacks the node, or has another width. */
tn_status tn_feed_open(tn_feed **out, const tn_strs *given, const tn_strs *nodes,
                       const tn_graph *graph, tn_error *err) TN_MUST_USE;
/* Sets the nodes for the next `rows` rows. TN_E_DATA: a file has fewer. */
tn_status tn_feed_next(tn_feed *f, uint32_t rows, tn_error *err) TN_MUST_USE;
/* TN_E_DATA: a file has more rows than were asked for. */
tn_status tn_feed_end(const tn_feed *f, tn_error *err) TN_MUST_USE;
void tn_feed_close(tn_feed *f); /* NULL is fine */
