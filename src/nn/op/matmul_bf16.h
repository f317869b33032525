/* matmul_bf16.h - the products of a layer in bfloat16: what op_matmul.c does, with both factors
 * rounded.
 *
 * Weights are rounded once per step, as they stand for y and transposed for dx; activations and
 * their gradients tile by tile. Sums are floats, as are the weights that the optimizer sees. All
 * tiles are cut by shape, so bits do not depend on threads.
 */
#ifndef TN_NN_MATMUL_BF16_H
#define TN_NN_MATMUL_BF16_H

#include "nn/graph/op.h"

/* Whether y = x W multiplies so: opts.bf16, and W is no single column. */
bool tn_halves_wanted(const tn_node *y);
size_t tn_halves_state_bytes(const tn_node *y);
void tn_halves_pack(tn_node *y, tn_range cols);    /* before any forward */
void tn_halves_prepare(tn_node *y, tn_range cols); /* before any backward */
void tn_halves_forward(tn_node *y, tn_range rows);
void tn_halves_backward(tn_node *y, tn_range rows); /* dx += dy W^T */
/* dW += x^T dy, as tn_product_weights. */
void tn_halves_weights(tn_node *y, tn_range cols, tn_range rows);

#endif
