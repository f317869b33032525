/* layer_square.c - each number times itself: the layer of the recipe's test. */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

const tn_layer tn_layer_square = {TN_LAYER_OF(square, square, "each number times itself")};
