/* passes.h - the passes that graph_passes.c runs from other files, and what they share. */
#pragma once

#include "nn/graph/graphcore.h"

uint32_t tn_node_users(const tn_graph *g, const tn_node *of); /* how often it is an operand */
void tn_pass_alive(tn_graph *g);    /* drops again, after nodes have become useless */
bool tn_pass_simplify(tn_graph *g); /* whether there is something to drop */
tn_status tn_pass_fold(tn_graph *g, tn_error *err) TN_MUST_USE;
void tn_pass_fuse(tn_graph *g);
