/* kernel_avx512.c - blocks of 12 x 32: 24 of the 32 registers hold sums. */
#include "nn/gemm/kernels.h"

#if TN_KERNELS_AVX512
#include <immintrin.h>
#include <stdint.h>

#define TARGET __attribute__((target("avx512f")))
#define VEC __m512
enum { LANES = 16, ROWS = 12 };
#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, x) _mm512_storeu_ps(p, x)
#define SPREAD(p) _mm512_set1_ps(*(p))
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define ADD(a, b) _mm512_add_ps(a, b)
#define ZERO() _mm512_setzero_ps()
#include "nn/gemm/kernelbody.h"

const tn_kernels tn_kernels_avx512 = {"avx512", ROWS, LANES, run_blocks, tn_transpose_8x8};
#endif
