/* kernel_sse2.c - blocks of 6 x 8 for processors that have no fused multiply-add: a product and an
 * addition per term, so its bits are others than those of the wider sets. */
#include "nn/gemm/kernels.h"

#if TN_KERNELS_SSE2
#include <emmintrin.h>
#include <stdint.h>
#include <string.h>

#define TARGET
#define VEC __m128
enum { LANES = 4, ROWS = 6 };
#define VECTORS 2
#define LOAD(p) _mm_loadu_ps(p)
#define STORE(p, x) _mm_storeu_ps(p, x)
#define SPREAD(p) _mm_set1_ps(*(p))
#define FMA(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)
#define ADD(a, b) _mm_add_ps(a, b)
#define ZERO() _mm_setzero_ps()
#define LOW(x) _mm_castsi128_ps(_mm_slli_epi32(_mm_castps_si128(x), 16))
#include "nn/gemm/kernelbody.h"

const tn_kernels tn_kernels_sse2 = {"sse2",    LANES,      VECTORS, run_blocks,
                                    run_words, copy_panel, NULL};
#endif
