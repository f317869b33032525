/* inputnode.h - the nodes of one entry of `inputs:`, called "in.<name>". */
#ifndef TN_MODELS_INPUTNODE_H
#define TN_MODELS_INPUTNODE_H

#include "base/core/arena.h"
#include "models/layerlist.h"

/* The node that carries the input's value. */
tn_node *tn_input_node(const tn_net *net, const tn_list_source *source, const tn_model_input *input,
                       tn_arena *arena);

#endif
