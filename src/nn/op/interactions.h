/* interactions.h - operators on pairs of slots' vectors; a part of ops.h.
 *
 *     x    | v_1 | v_2 | .. | v_f |      one vector of length `dim` per slot: fm and its like
 *     x    | A_11 A_12 .. A_1f | A_21 .. |   f vectors per slot, one for each slot: ffm
 */
#ifndef TN_NN_INTERACTIONS_H
#define TN_NN_INTERACTIONS_H

#include "nn/graph/graph.h"

/* Interactions of vectors of length `dim`, x [B,f*dim]. */
tn_node *tn_fm(tn_graph *g, const char *name, tn_node *x, uint32_t dim); /* -> [B,1] */
/* The same over values: x an embedding of slots pooled by sum, and its squares, as wide as it. */
tn_node *tn_fm_values(tn_graph *g, const char *name, tn_node *const x_squares[2], uint32_t dim);
tn_node *tn_embed_squares(tn_graph *g, const char *name, tn_node *x);
tn_node *tn_embed_norm(tn_graph *g, const char *name, tn_node *x); /* 1 / sum x_j^2 -> [B,1] */
/* Of f fields with a vector for each field: x [B,f*f*dim]; of the values within a field. -> [B,1]
 */
tn_node *tn_ffm(tn_graph *g, const char *name, tn_node *x, uint32_t fields, uint32_t dim);
tn_node *tn_ffm_within(tn_graph *g, const char *name, tn_node *const x_squares[2], uint32_t fields,
                       uint32_t dim);
tn_node *tn_inner(tn_graph *g, const char *name, tn_node *x, uint32_t dim); /* [B,f*(f-1)/2] */
tn_node *tn_bi_interaction(tn_graph *g, const char *name, tn_node *x, uint32_t dim); /* [B,dim] */

#endif
