/* kernel_bf16.c - products in bfloat16: as kernel_avx512.c, where each float of a and b is a pair
 * of bfloat16 (gemm.h) and a step of p takes two terms. And the rounding, 32 floats at a time: it
 * is as exact as by hand but for floats below 2^-126, which the products would take for 0 anyway.
 */
#include "nn/gemm/gemm.h"
#include "nn/gemm/kernels.h"

#if TN_KERNELS_AVX512
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512bf16")))
#define VEC __m512
enum { LANES = 16, ROWS = 12, ROWS_OF_3 = 8, ROWS_OF_4 = 6 };
#define VECTORS 4
#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, x) _mm512_storeu_ps(p, x)
#define SPREAD(p) _mm512_set1_ps(*(p))
#define FMA(a, b, c) _mm512_dpbf16_ps(c, (__m512bh)(a), (__m512bh)(b))
#define ADD(a, b) _mm512_add_ps(a, b)
#define ZERO() _mm512_setzero_ps()
#include "nn/gemm/kernelbody.h"

const tn_kernels tn_kernels_bf16 = {"avx512_bf16", LANES,      VECTORS,         run_blocks,
                                    NULL,          copy_panel, tn_transpose_8x8};

/* Returns the first of 16 that there are. */
static __mmask16 first(size_t n)
{
    return (__mmask16)(n >= LANES ? 0xffff : (1U << n) - 1);
}

TARGET void tn_bf16_rows(size_t m, size_t k, tn_mat from, tn_product to)
{
    for (size_t i = 0; i < m; i++) {
        const float *x = from.at + i * from.stride;
        for (size_t p = 0; p < k; p += (size_t)2 * LANES) {
            size_t behind = k - p > LANES ? k - p - LANES : 0;
            __m512 low = _mm512_maskz_loadu_ps(first(k - p), x + p);
            __m512 high = _mm512_maskz_loadu_ps(first(behind), x + p + LANES);
            _mm512_mask_storeu_ps(to.at + i * to.stride + p / 2, first(tn_bf16_words(k - p)),
                                  (__m512)_mm512_cvtne2ps_pbh(high, low));
        }
    }
}

TARGET void tn_bf16_pairs(size_t k, size_t n, tn_mat from, tn_product to)
{
    /* 0 16 1 17 ..: the halves of a word side by side */
    const __m512i turn = _mm512_add_epi32(
        _mm512_set1_epi32(16 << 16),
        _mm512_mullo_epi32(_mm512_set1_epi32(0x10001),
                           _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)));
    for (size_t p = 0; p < k; p += 2) {
        const float *x = from.at + p * from.stride;
        for (size_t j = 0; j < n; j += LANES) {
            __mmask16 some = first(n - j);
            __m512 low = _mm512_maskz_loadu_ps(some, x + j);
            __m512 high = p + 1 < k ? _mm512_maskz_loadu_ps(some, x + from.stride + j) : ZERO();
            __m512i halves = (__m512i)_mm512_cvtne2ps_pbh(high, low);
            _mm512_mask_storeu_ps(to.at + p / 2 * to.stride + j, some,
                                  (__m512)_mm512_permutexvar_epi16(turn, halves));
        }
    }
}
#else
#include "base/core/error.h"

void tn_bf16_rows(size_t m, size_t k, tn_mat from, tn_product to)
{
    (void)m, (void)k, (void)from, (void)to;
    TN_ASSERT(false);
}

void tn_bf16_pairs(size_t k, size_t n, tn_mat from, tn_product to)
{
    (void)k, (void)n, (void)from, (void)to;
    TN_ASSERT(false);
}
#endif
