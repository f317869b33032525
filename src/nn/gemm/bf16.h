/* bf16.h - matrices rounded to bfloat16, for products with sums in float.
 *
 * A bfloat16 is the upper half of a float, rounded to the nearest, ties to even. A product adds two
 * terms per step, so the two of a pair stand in one word of 32 bits, the first in the lower half:
 *
 *     rows    [m, k]  ->  [m, k/2]     word (i, p) = x[i][2p], x[i][2p+1]     left factor
 *     pairs   [k, n]  ->  [k/2, n]     word (p, j) = x[2p][j], x[2p+1][j]     right factor
 *
 * Words travel as floats that nobody computes with. An odd last column or row is paired with 0. A
 * product of such matrices is `multiply` of tn_bf16_products with k / 2, rounded up, terms; not
 * tn_gemm, which computes products of one term or one column in floats.
 */
#ifndef TN_NN_BF16_H
#define TN_NN_BF16_H

#include "nn/gemm/gemm_backends.h"

/* TN_E_CONFIG: this processor does not have AVX512_BF16. */
tn_status tn_bf16_products(tn_products *out, tn_error *err) TN_MUST_USE;

static inline size_t tn_bf16_words(size_t n)
{
    return (n + 1) / 2;
}

/* `to` has the shape above; only its `at` and `stride` count. */
void tn_bf16_rows(size_t m, size_t k, tn_mat from, tn_product to);
void tn_bf16_pairs(size_t k, size_t n, tn_mat from, tn_product to);
/* from [n, k]: the pairs of its transposed, [k/2, n]. */
void tn_bf16_pairs_transposed(size_t n, size_t k, tn_mat from, tn_product to);

#endif
