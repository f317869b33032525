/* gemm.h - matrix products through OpenBLAS, one BLAS thread per call.
 *
 * Parallelism is ours: tiles of a product are separate calls, made by the threads of a team. Which
 * kernel OpenBLAS takes, and so how a sum is rounded, depends on the shape of the call alone.
 */
#ifndef TN_NN_GEMM_H
#define TN_NN_GEMM_H

#include "base/error.h"
#include "nn/real.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tn_mat {
    const tn_real *at;
    size_t stride;
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

void tn_gemm(tn_dims d, tn_mat a, tn_mat b, tn_product c);    /* a [m,k]    b [k,n] */
void tn_gemm_bt(tn_dims d, tn_mat a, tn_mat b, tn_product c); /* a [m,k]    b [n,k], transposed */
void tn_gemm_at(tn_dims d, tn_mat a, tn_mat b, tn_product c); /* a [k,m], transposed    b [k,n] */

/* Whether this OpenBLAS can be called by several threads at once and multiplies correctly, alone
 * and from the calling thread. TN_E_USAGE with the reason. Sets it to one thread per call. */
tn_status tn_gemm_check(tn_error *err) TN_MUST_USE;

#endif
