/* gemm.h - matrix products, each call on one thread, made by our own kernels or by OpenBLAS.
 *
 *     tn_products p;
 *     TN_TRY(tn_products_find(&p, TN_PRODUCTS_AUTO, err));     loaded, and tried on a small product
 *     tn_gemm(&p, (tn_dims){m, n, k}, a, b, c);
 *
 * Parallelism is ours: tiles of a product are separate calls, made by the threads of a team. With
 * our own kernels (kernels.h: AVX-512, AVX2) every entry of a product is one chain of fused
 * multiply-adds over k, so its bits depend on no tile and on no vector width. OpenBLAS picks its
 * kernel, and so its rounding, by the shape of the call: hence tiles of fixed size.
 *
 * `auto` is our own kernels where the processor has AVX-512 or AVX2 with fused multiply-add, and
 * OpenBLAS elsewhere. The processor alone decides, never a clock, so a machine repeats its bits.
 * OpenBLAS is loaded when it is chosen. The failpoint "nn.no_kernels" is an old processor.
 *
 * A tn_products is a constant that may be copied. Any number of threads use it at once.
 */
#pragma once

#include "base/core/error.h"
#include "nn/vec/real.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct tn_mat {
    const tn_real *at;
    size_t stride;
    bool padded; /* rows may be read up to whole lines of the cache: ends of rows need no copy */
} tn_mat;

/* Target of a product, which is assigned, or added to the values there. */
typedef struct tn_product {
    tn_real *at;
    size_t stride;
    bool add;
} tn_product;

typedef struct tn_dims {
    size_t m, n, k; /* the product is [m x n], the sums have k terms */
} tn_dims;

/* In the order of the words of compute.gemm. */
typedef enum tn_products_choice {
    TN_PRODUCTS_AUTO,
    TN_PRODUCTS_OWN,
    TN_PRODUCTS_OPENBLAS,
    TN_PRODUCTS_ALONE, /* our own on any processor, and no word: what a host program links may not
                          load libraries that end it where memory runs out, as OpenBLAS does */
} tn_products_choice;

typedef struct tn_factors {
    tn_dims d;
    tn_mat a, b;
    tn_product c;
    bool transposed; /* a is [k,m] */
} tn_factors;

typedef struct tn_products tn_products;
struct tn_products {
    const char *name;
    void (*multiply)(const tn_products *by, const tn_factors *f);
    const struct tn_kernels *kernels; /* our own kernels; else NULL */
    void (*library)(void);            /* the product of OpenBLAS */
    const char *core; /* the processor that OpenBLAS takes this one for; of others NULL */
};

/* TN_E_CONFIG: not on this processor, not installed, or its products are wrong; with the reason. */
tn_status tn_products_find(tn_products *out, tn_products_choice choice, tn_error *err) TN_MUST_USE;

/* "avx512", "openblas (SkylakeX)": for `--plan`, logs and checkpoints. */
enum { TN_PRODUCTS_NAME = 128 };
void tn_products_describe(const tn_products *p, char out[TN_PRODUCTS_NAME]);

/* By our own kernels. */
tn_products tn_products_own(const struct tn_kernels *kernels);

/* a [m,k]    b [k,n] */
void tn_gemm(const tn_products *by, tn_dims d, tn_mat a, tn_mat b, tn_product c);
/* a [k,m], transposed    b [k,n] */
void tn_gemm_at(const tn_products *by, tn_dims d, tn_mat a, tn_mat b, tn_product c);

/* to [n,m] = from [m,n], transposed. */
void tn_transpose(size_t m, size_t n, tn_mat from, tn_product to);

/* Weights of 16 bits, for products of one row: they wait for nothing but weights. W [k, n] is
 * rounded, and lies once more with two of a column in a word, rows padded to whole lines:
 *
 *     [k, n]  ->  [k/2, n]     word (p, j): W[2p][j] in the lower half, W[2p+1][j] in the upper
 *
 * The lower half is a bfloat16. The upper weight is the whole word as a float, so that no operation
 * takes it out: its upper half is the one with which that float comes nearest. Both are off by 2^-8
 * of their size at most (an upper weight below 2^-60 may become as large as that). With the rounded
 * W, tn_gemm gives the same bits. */
size_t tn_words_size(size_t k, size_t n); /* size of the words, in floats */
/* w, rows `n` apart, is rounded in place. */
void tn_words_round(size_t k, size_t n, tn_real *w, tn_real *words);
/* c[n] = a[k] W. False: there are no kernels of our own, and nothing is done. */
bool tn_gemm_words(const tn_products *by, size_t k, size_t n, const tn_real *a,
                   const tn_real *words, tn_real *c);

/* Matrices rounded to bfloat16, for products with sums in float.
 *
 * A bfloat16 is the upper half of a float, rounded to the nearest, ties to even. A product adds two
 * terms per step, so the two of a pair are in one word of 32 bits, the first in the lower half:
 *
 *     rows    [m, k]  ->  [m, k/2]     word (i, p) = x[i][2p], x[i][2p+1]     left factor
 *     pairs   [k, n]  ->  [k/2, n]     word (p, j) = x[2p][j], x[2p+1][j]     right factor
 *
 * Words travel as floats that nobody computes with. An odd last column or row is paired with 0. A
 * product of such matrices is `multiply` of tn_bf16_products with k / 2, rounded up, terms; not
 * tn_gemm, which computes products of one term or one column in floats.
 */
/* TN_E_CONFIG: this processor does not have AVX512_BF16. */
tn_status tn_bf16_products(tn_products *out, tn_error *err) TN_MUST_USE;

static inline size_t tn_bf16_words(size_t n)
{
    return (n + 1) / 2;
}

/* Only where tn_bf16_products succeeds. `to` has the shape above; only its `at` and `stride` count.
 * A float below 2^-126 becomes 0, as the products take it. */
void tn_bf16_rows(size_t m, size_t k, tn_mat from, tn_product to);
void tn_bf16_pairs(size_t k, size_t n, tn_mat from, tn_product to);
/* from [n, k]: the pairs of its transposed, [k/2, n]. */
void tn_bf16_pairs_transposed(size_t n, size_t k, tn_mat from, tn_product to);
