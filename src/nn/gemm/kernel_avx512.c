/* kernel_avx512.c - blocks of 6 x 64, 8 x 48 and 12 x 32: 24 of the 32 registers hold sums. */
#include "nn/gemm/kernels.h"

#if TN_KERNELS_AVX512
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define TARGET __attribute__((target("avx512f")))
#define VEC __m512
enum { LANES = 16, ROWS = 12, ROWS_OF_3 = 8, ROWS_OF_4 = 6 };
#define VECTORS 4
#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, x) _mm512_storeu_ps(p, x)
#define SPREAD(p) _mm512_set1_ps(*(p))
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define ADD(a, b) _mm512_add_ps(a, b)
#define ZERO() _mm512_setzero_ps()
#define LOW(x) _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(x), 16))
#include "nn/gemm/kernelbody.h"

const tn_kernels tn_kernels_avx512 = {"avx512",  LANES,      VECTORS,         run_blocks,
                                      run_words, copy_panel, tn_transpose_8x8};
#endif
