/* kernel_avx2.c - blocks of 6 x 16: 12 of the 16 registers hold sums. */
#include "nn/gemm/kernels.h"

#if TN_KERNELS_AVX2
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define TARGET __attribute__((target("avx2,fma")))
#define VEC __m256
enum { LANES = 8, ROWS = 6 };
#define VECTORS 2
#define LOAD(p) _mm256_loadu_ps(p)
#define STORE(p, x) _mm256_storeu_ps(p, x)
#define SPREAD(p) _mm256_broadcast_ss(p)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define ADD(a, b) _mm256_add_ps(a, b)
#define ZERO() _mm256_setzero_ps()
#define LOW(x) _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x), 16))
#include "nn/gemm/kernelbody.h"

/* 8 x 8: pairs, then quarters, then halves of rows change places. */
TARGET void tn_transpose_8x8(const float *from, size_t from_stride, float *to, size_t to_stride)
{
    __m256 row[8];
    __m256 pair[8];
    for (size_t i = 0; i < 8; i++) {
        row[i] = _mm256_loadu_ps(from + i * from_stride);
    }
    for (size_t i = 0; i < 8; i += 2) {
        pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
        pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
    }
    for (size_t i = 0; i < 8; i += 4) {
        row[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
        row[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee);
        row[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
        row[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee);
    }
    for (size_t i = 0; i < 4; i++) {
        _mm256_storeu_ps(to + i * to_stride, _mm256_permute2f128_ps(row[i], row[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * to_stride,
                         _mm256_permute2f128_ps(row[i], row[i + 4], 0x31));
    }
}

const tn_kernels tn_kernels_avx2 = {"avx2",    LANES,      VECTORS,         run_blocks,
                                    run_words, copy_panel, tn_transpose_8x8};
#endif
