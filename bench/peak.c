/* peak.c - see peak.h: chains of fused multiply-adds that depend on nothing but themselves. */
#include "peak.h"

#include "base/clock.h"

#include <stdint.h>

enum { ROUNDS = 100000, CHAINS = 12 };

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx512f"), noinline)) static double chains_avx512(void)
{
    __m512 a[CHAINS];
    __m512 m = _mm512_set1_ps(0.999F);
    __m512 c = _mm512_set1_ps(0.001F);
    for (int i = 0; i < CHAINS; i++) {
        a[i] = _mm512_set1_ps((float)i);
    }
    for (int r = 0; r < ROUNDS; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) {
            a[i] = _mm512_fmadd_ps(a[i], m, c);
        }
    }
    volatile float sink = 0;
    for (int i = 0; i < CHAINS; i++) {
        sink += a[i][0];
    }
    (void)sink;
    return 2.0 * 16 * CHAINS * ROUNDS;
}

__attribute__((target("avx2,fma"), noinline)) static double chains_avx2(void)
{
    __m256 a[CHAINS];
    __m256 m = _mm256_set1_ps(0.999F);
    __m256 c = _mm256_set1_ps(0.001F);
    for (int i = 0; i < CHAINS; i++) {
        a[i] = _mm256_set1_ps((float)i);
    }
    for (int r = 0; r < ROUNDS; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) {
            a[i] = _mm256_fmadd_ps(a[i], m, c);
        }
    }
    volatile float sink = 0;
    for (int i = 0; i < CHAINS; i++) {
        sink += a[i][0];
    }
    (void)sink;
    return 2.0 * 8 * CHAINS * ROUNDS;
}
#endif

static double chains_plain(void)
{
    float a[CHAINS] = {0};
    for (int r = 0; r < ROUNDS; r++) {
        for (int i = 0; i < CHAINS; i++) {
            a[i] = a[i] * 0.999F + 0.001F;
        }
    }
    volatile float sink = 0;
    for (int i = 0; i < CHAINS; i++) {
        sink += a[i];
    }
    (void)sink;
    return 2.0 * CHAINS * ROUNDS;
}

typedef struct kernel {
    const char *name;
    double (*run)(void);
} kernel;

static kernel widest(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        return (kernel){"avx512", chains_avx512};
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return (kernel){"avx2", chains_avx2};
    }
#endif
    return (kernel){"plain", chains_plain};
}

const char *tn_peak_kind(void)
{
    return widest().name;
}

double tn_peak_gflops(int times)
{
    kernel k = widest();
    double best = 0;
    for (int i = 0; i < times; i++) {
        double start = tn_clock_s();
        double flops = 0;
        while (tn_clock_s() - start < 0.02) {
            flops += k.run();
        }
        double rate = flops / (tn_clock_s() - start) * 1e-9;
        best = rate > best ? rate : best;
    }
    return best;
}
