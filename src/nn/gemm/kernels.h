/* kernels.h - the inner loops of matrix products, one set per vector width.
 *
 * A block of C of `rows` x `vectors` lives in registers while p runs over the whole depth:
 *
 *            b   | panel: depth x (vectors * lanes), row by row
 *            +---+
 *     a  | r |   |      c[i][j] (+)= sum_p a[i][p] b[p][j]      one fused multiply-add per term,
 *        | o |   |                                              p ascending
 *        | w |   |
 *
 * So an entry of C is the same chain of operations in every block shape and with every vector
 * width: its bits depend on its own row and column alone.
 */
#pragma once

#include "nn/vec/real.h"

#include <stdbool.h>
#include <stddef.h>

/* Sets that are compiled. ThreadSanitizer's build takes the plain road, like everything that picks
 * code by processor; where instructions are counted there is one set, or counts would depend on
 * the machine. */
#if !defined(__x86_64__) || defined(TN_REAL_DOUBLE)
#define TN_KERNELS_AVX512 0
#define TN_KERNELS_AVX2 0
#elif !defined(TN_NO_CLONES)
#define TN_KERNELS_AVX512 1
#define TN_KERNELS_AVX2 1
#elif defined(TN_COUNTED)
#define TN_KERNELS_AVX512 0
#define TN_KERNELS_AVX2 1
#else
#define TN_KERNELS_AVX512 0
#define TN_KERNELS_AVX2 0
#endif

/* Every x86-64 has it, and it is nobody's choice but that of products without any library. */
#if defined(__x86_64__) && !defined(TN_REAL_DOUBLE)
#define TN_KERNELS_SSE2 1
#else
#define TN_KERNELS_SSE2 0
#endif

typedef struct tn_gemm_block {
    size_t depth;
    const tn_real *a;
    size_t a_stride; /* from row to row of the block; from p to p when `across` */
    bool across;     /* a is stored by p: a[p * a_stride + i]; else a[i * a_stride + p] */
    const tn_real *b;
    size_t b_stride;
    tn_real *c;
    size_t c_stride;
    bool add;
} tn_gemm_block;

enum {
    TN_WIDE_VECTORS = 8,
    TN_DEPTH_ACROSS = 128, /* depth of a block that is `across`; the next one follows directly */
};

typedef struct tn_kernels {
    const char *name;
    size_t lanes; /* floats in a vector */
    size_t panel; /* vectors in the widest panel: 2 or 4 */
    /* Any number of rows; columns: 1 .. panel * lanes, of which b holds whole vectors. A single row
     * that is not `across` may have exactly TN_WIDE_VECTORS * lanes. */
    void (*run)(const tn_gemm_block *block, size_t rows, size_t cols);
    /* One row by words (gemm.h): `vectors` of columns, at most TN_WIDE_VECTORS, b_stride from word
     * to word; NULL: none. */
    void (*words)(const tn_gemm_block *block, size_t vectors);
    /* Copies b of a block row after row, with 0 for columns that are missing to whole vectors. */
    void (*copy)(const tn_gemm_block *block, size_t cols, tn_real *to);
    /* to[j][i] = from[i][j], 8 x 8; NULL: none */
    void (*transpose)(const tn_real *from, size_t from_stride, tn_real *to, size_t to_stride);
} tn_kernels;

/* NULL: this processor has no fused multiply-add that we know, or the build is in double. */
const tn_kernels *tn_kernels_find(void);

extern const tn_kernels tn_kernels_avx512;
extern const tn_kernels tn_kernels_avx2;
extern const tn_kernels tn_kernels_sse2;
extern const tn_kernels tn_kernels_bf16; /* the same on pairs: gemm.h */
void tn_transpose_8x8(const float *from, size_t from_stride, float *to, size_t to_stride);
