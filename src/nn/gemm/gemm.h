/* gemm.h - matrix products, each call on one thread.
 *
 * Parallelism is ours: tiles of a product are separate calls, made by the threads of a team. With
 * our own kernels (kernels.h: AVX-512, AVX2) every entry of a product is one chain of fused
 * multiply-adds over k, so its bits depend on no tile and on no vector width. OpenBLAS and oneDNN
 * (gemm_backends.h) pick their kernel, and so their rounding, by the shape of the call: hence tiles
 * of fixed size.
 */
#ifndef TN_NN_GEMM_H
#define TN_NN_GEMM_H

#include "base/core/error.h"
#include "nn/vec/real.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tn_mat {
    const tn_real *at;
    size_t stride;
    bool padded; /* rows may be read up to whole lines of the cache: ends of rows need no copy */
} tn_mat;

/* Where the product goes: assigned, or added to what is there. */
typedef struct tn_product {
    tn_real *at;
    size_t stride;
    bool add;
} tn_product;

typedef struct tn_dims {
    size_t m, n, k; /* the product is [m x n], the sums have k terms */
} tn_dims;

typedef struct tn_products tn_products; /* who makes them: gemm_backends.h */

/* a [m,k]    b [k,n] */
void tn_gemm(const tn_products *by, tn_dims d, tn_mat a, tn_mat b, tn_product c);
/* a [k,m], transposed    b [k,n] */
void tn_gemm_at(const tn_products *by, tn_dims d, tn_mat a, tn_mat b, tn_product c);

/* to [n,m] = from [m,n], transposed. */
void tn_transpose(size_t m, size_t n, tn_mat from, tn_product to);

#endif
