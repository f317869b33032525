/* attention.h - scaled dot-product attention (Vaswani 2017) among a few vectors, whatever they are:
 * the positions of a row (op_attention.c), or slots side by side in one (op_slot_attention.c).
 *
 *     q, k, v    n vectors of `dim` each, `stride` floats from one to the next
 *     s_ij = scale q_i k_j,  p_ij = exp(s_ij) / sum_j exp(s_ij),  y_i = sum_j p_ij v_j
 *
 * Backward computes p again from `norm`, which forward leaves: what is kept is a number for each i,
 * not n for each.
 */
#pragma once

#include "nn/vec/real.h"

#include <stddef.h>

typedef struct tn_vectors {
    tn_real *at;
    size_t stride;
} tn_vectors;

/* One head. */
typedef struct tn_attention {
    size_t n, dim;
    tn_real scale;
    tn_vectors q, k, v;
    tn_vectors y;  /* forward writes it */
    tn_real *norm; /* n, `norm_stride` apart: the largest s_ij plus ln of the sum */
    size_t norm_stride;
    tn_real *p; /* room for n */
} tn_attention;

/* Gradients of the same; a NULL is not wanted. Backward adds. */
typedef struct tn_attention_grads {
    tn_vectors q, k, v;
    tn_vectors y; /* given */
} tn_attention_grads;

void tn_attention_forward(const tn_attention *a);
void tn_attention_backward(const tn_attention *a, const tn_attention_grads *d);
