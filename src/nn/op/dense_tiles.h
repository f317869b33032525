/* dense_tiles.h - what matmul and dense share: tiles of a product and of its gradients. */
#ifndef TN_NN_DENSE_TILES_H
#define TN_NN_DENSE_TILES_H

#include "nn/op/ops.h"

tn_shape tn_product_shape(const tn_node *y);
uint32_t tn_product_tile(const tn_node *y, bool cols);
double tn_product_flops(const tn_node *y);
size_t tn_product_state_bytes(const tn_node *y);
void tn_product_pack(tn_node *y, tn_range cols);      /* what forward needs of W */
void tn_product_forward(tn_node *y, tn_range rows);   /* y = x W */
void tn_product_transpose(tn_node *y, tn_range cols); /* what backward needs of W */
/* dW += x^T dy: columns `cols` of it, by `rows` of the batch, which come in ascending order. */
void tn_product_weights(tn_node *y, tn_range cols, tn_range rows);
void tn_product_backward(tn_node *y, tn_range rows); /* dx += dy W^T */

/* Whether n is an activation that a dense layer can do itself, and as which. */
bool tn_dense_activation(const tn_node *n, tn_dense_attr *out);

#endif
