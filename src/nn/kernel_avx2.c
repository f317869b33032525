/* kernel_avx2.c - blocks of 6 x 16: 12 of the 16 registers hold sums. */
#include "nn/kernels.h"

#if defined(__x86_64__) && !defined(TN_NO_CLONES) && !defined(TN_REAL_DOUBLE)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
#define VEC __m256
enum { LANES = 8, ROWS = 6 };
#define LOAD(p) _mm256_loadu_ps(p)
#define STORE(p, x) _mm256_storeu_ps(p, x)
#define SPREAD(p) _mm256_broadcast_ss(p)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define ADD(a, b) _mm256_add_ps(a, b)
#define ZERO() _mm256_setzero_ps()
#include "nn/kernelbody.h"

const tn_kernels tn_kernels_avx2 = {"avx2", ROWS, LANES, run_blocks};
#endif
