/* onnxeval.h - computes an ONNX model with the operators that TNet writes, as the standard defines
 * them, in double. Broadcasts, shapes and defaults are the standard's, not those of src. */
#pragma once

#include "base/core/arena.h"
#include "base/core/text.h"
#include "nn/graph/graph.h"

/* `output` of the model as rows numbers, in `arena`; its inputs are the values of g's nodes of
 * their names. Fails the test where the model cannot be computed. */
const double *tn_onnx_eval(const tn_text *model, const char *output, const tn_graph *g,
                           uint32_t rows, tn_arena *arena);
