/* bf16.c - rounds matrices to bfloat16 and packs them in pairs. */
#include "nn/gemm/bf16.h"

#include "base/core/compiler.h"
#include "nn/vec/vecmath.h"

tn_status tn_bf16_products(tn_products *out, tn_error *err)
{
#if TN_KERNELS_AVX512
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16")) {
        *out = tn_products_own(&tn_kernels_bf16);
        return TN_OK;
    }
#endif
    (void)out;
    return tn_fail(err, TN_E_CONFIG,
                   "this processor has no products in bfloat16 (AVX512_BF16)\n"
                   "hint: leave it out; elsewhere it would be slower than float and less exact");
}

#ifdef TN_REAL_DOUBLE
typedef tn_real word; /* compiled, never run */
static inline uint32_t bits_of(tn_real x)
{
    return ((tn_float_bits){.f = (float)x}).u;
}
#else
typedef float word;
static inline uint32_t bits_of(float x)
{
    return ((tn_float_bits){.f = x}).u;
}
#endif

/* A NaN stays one: its upper half may not become an infinity. */
static inline uint32_t half_of(tn_real x)
{
    uint32_t u = bits_of(x);
    uint32_t rounded = (u + 0x7fffU + (u >> 16 & 1U)) >> 16;
    return (u & 0x7fffffffU) > 0x7f800000U ? (u >> 16 | 0x40U) : rounded;
}

static inline word word_of(tn_real first, tn_real second)
{
    return (word)((tn_float_bits){.u = half_of(first) | half_of(second) << 16}).f;
}

TN_HOT static void round_row(size_t words, const tn_real *from, tn_real *to)
{
    for (size_t p = 0; p < words; p++) {
        to[p] = word_of(from[2 * p], from[2 * p + 1]);
    }
}

void tn_bf16_rows(size_t m, size_t k, tn_mat from, tn_product to)
{
    for (size_t i = 0; i < m; i++) {
        const tn_real *x = from.at + i * from.stride;
        tn_real *y = to.at + i * to.stride;
        round_row(k / 2, x, y);
        if (k % 2 == 1) {
            y[k / 2] = word_of(x[k - 1], 0);
        }
    }
}

TN_HOT static void pair_rows(size_t n, const tn_real *first, const tn_real *second, tn_real *to)
{
    for (size_t j = 0; j < n; j++) {
        to[j] = word_of(first[j], second[j]);
    }
}

TN_HOT static void pair_with_zero(size_t n, const tn_real *first, tn_real *to)
{
    for (size_t j = 0; j < n; j++) {
        to[j] = word_of(first[j], 0);
    }
}

void tn_bf16_pairs(size_t k, size_t n, tn_mat from, tn_product to)
{
    for (size_t p = 0; p + 1 < k; p += 2) {
        const tn_real *x = from.at + p * from.stride;
        pair_rows(n, x, x + from.stride, to.at + p / 2 * to.stride);
    }
    if (k % 2 == 1) {
        pair_with_zero(n, from.at + (k - 1) * from.stride, to.at + k / 2 * to.stride);
    }
}

enum { SIDE = 64 }; /* of a block of words */

/* Blocks of words side by side are turned while they are in cache. */
void tn_bf16_pairs_transposed(size_t n, size_t k, tn_mat from, tn_product to)
{
    const size_t wide = (size_t)2 * SIDE;
    tn_real block[SIDE * SIDE] = {0};
    tn_product words = {block, SIDE, false};
    for (size_t j = 0; j < n; j += SIDE) {
        size_t rows = n - j < SIDE ? n - j : SIDE;
        for (size_t p = 0; p < k; p += wide) {
            size_t cols = k - p < wide ? k - p : wide;
            tn_mat part = {from.at + j * from.stride + p, from.stride, false};
            tn_bf16_rows(rows, cols, part, words);
            tn_transpose(rows, tn_bf16_words(cols), (tn_mat){block, SIDE, false},
                         (tn_product){to.at + p / 2 * to.stride + j, to.stride, false});
        }
    }
}
