/* gemm_backends.h - makers of matrix products: our own kernels, OpenBLAS or oneDNN.
 *
 *     tn_products p;
 *     TN_TRY(tn_products_find(&p, TN_PRODUCTS_AUTO, err));     loaded, and tried on a small product
 *     tn_gemm(&p, (tn_dims){m, n, k}, a, b, c);                see gemm.h
 *
 * `auto` is our own kernels where the processor has AVX-512 or AVX2 with fused multiply-add, and
 * OpenBLAS elsewhere. The processor alone decides, never a clock, so a machine repeats its bits.
 * The libraries are loaded when they are chosen. The failpoint "nn.no_kernels" is an old processor.
 *
 * A tn_products is a constant that may be copied. Any number of threads use it at once; a product
 * is computed by the thread that asks for it.
 */
#ifndef TN_NN_GEMM_BACKENDS_H
#define TN_NN_GEMM_BACKENDS_H

#include "nn/gemm/gemm.h"
#include "nn/gemm/kernels.h"

/* In the order of the words of compute.gemm. */
typedef enum tn_products_choice {
    TN_PRODUCTS_AUTO,
    TN_PRODUCTS_OWN,
    TN_PRODUCTS_OPENBLAS,
    TN_PRODUCTS_ONEDNN,
    TN_PRODUCTS_ALONE, /* our own on any processor, and no word: what a host program links may not
                          load libraries that end it where memory runs out, as OpenBLAS does */
} tn_products_choice;

typedef struct tn_factors {
    tn_dims d;
    tn_mat a, b;
    tn_product c;
    bool transposed; /* a is [k,m] */
} tn_factors;

struct tn_products {
    const char *name;
    void (*multiply)(const tn_products *by, const tn_factors *f);
    const tn_kernels *kernels; /* of our own; else NULL */
    void (*library[2])(void);  /* of a library: its product; oneDNN's threads of a call */
    const char *core;          /* the processor that OpenBLAS takes this one for; of others NULL */
};

/* TN_E_CONFIG: not on this processor, not in this build, not installed, or its products are wrong;
 * with the reason. */
tn_status tn_products_find(tn_products *out, tn_products_choice choice, tn_error *err) TN_MUST_USE;

/* "avx512", "openblas (SkylakeX)", "onednn (libdnnl.so.2)": for `--plan`, logs and checkpoints. */
enum { TN_PRODUCTS_NAME = 128 };
void tn_products_describe(const tn_products *p, char out[TN_PRODUCTS_NAME]);

/* By our own kernels. */
tn_products tn_products_own(const tn_kernels *kernels);

#endif
