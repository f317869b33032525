/* layer_cube.c - the third power of each number: the layer of the recipe's test. */
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

const tn_layer tn_layer_cube = {TN_LAYER_OF(cube, cube, "the third power of each number")};
