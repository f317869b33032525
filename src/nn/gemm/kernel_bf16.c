/* kernel_bf16.c - products in bfloat16: as kernel_avx512.c, where each float of a and b is a pair
 * of bfloat16 (gemm.h) and a step of p takes two terms. */
#include "nn/gemm/kernels.h"

#if TN_KERNELS_AVX512
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define TARGET __attribute__((target("avx512f,avx512bf16")))
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

const tn_kernels tn_kernels_bf16 = {"avx512_bf16", LANES,      VECTORS,
                                    run_blocks,    copy_panel, tn_transpose_8x8};
#endif
