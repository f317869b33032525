/* machine_peak.c - measures peak arithmetic by chains of fused multiply-adds, each of which depends
 * on itself alone, and peak memory traffic. */
#include "base/machine/machine_peak.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/thread/team.h"

#include <string.h>

enum { ROUNDS = 100000, CHAINS = 12, MOVED_BYTES = 1 << 25 };

#if defined(__x86_64__)
#include <immintrin.h>

/* Defines a function that does multiply-adds of `lanes` floats in as many chains as hide their
 * latency and returns how many FLOP it did. */
#define FMA_CHAINS(name, isa, vector, mm, lanes)                                                   \
    __attribute__((target(isa), noinline)) static double name(void)                                \
    {                                                                                              \
        vector a[CHAINS];                                                                          \
        vector m = mm##_set1_ps(0.999F);                                                           \
        vector c = mm##_set1_ps(0.001F);                                                           \
        for (int i = 0; i < CHAINS; i++) {                                                         \
            a[i] = mm##_set1_ps((float)i);                                                         \
        }                                                                                          \
        for (int r = 0; r < ROUNDS; r++) {                                                         \
            _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++)                              \
            {                                                                                      \
                a[i] = mm##_fmadd_ps(a[i], m, c);                                                  \
            }                                                                                      \
        }                                                                                          \
        volatile float sink = 0;                                                                   \
        for (int i = 0; i < CHAINS; i++) {                                                         \
            sink += a[i][0];                                                                       \
        }                                                                                          \
        (void)sink;                                                                                \
        return 2.0 * (lanes)*CHAINS * ROUNDS;                                                      \
    }

FMA_CHAINS(chains_avx512, "avx512f", __m512, _mm512, 16)
FMA_CHAINS(chains_avx2, "avx2,fma", __m256, _mm256, 8)
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

/* One thread of tn_peaks_measure. */
typedef struct puller {
    double seconds;
    char *memory; /* 2 * MOVED_BYTES; NULL: multiply and add instead */
    double rate;  /* FLOPs or bytes per second */
} puller;

static void pull(void *pullers, uint32_t i)
{
    puller *p = (puller *)pullers + i;
    kernel k = widest();
    double work = 0;
    double start = tn_clock_s();
    double now = start;
    while (now - start < p->seconds) {
        if (p->memory != NULL) {
            memcpy(p->memory, p->memory + MOVED_BYTES, MOVED_BYTES);
            work += 2.0 * MOVED_BYTES;
        } else {
            work += k.run();
        }
        now = tn_clock_s();
    }
    p->rate = work / (now - start);
}

double tn_peak_gflops(int times)
{
    double best = 0;
    for (int i = 0; i < times; i++) {
        puller p = {.seconds = 0.02};
        pull(&p, 0);
        best = p.rate > best ? p.rate : best;
    }
    return best * 1e-9;
}

/* Returns the rate of all pullers: a tile takes long enough for every thread to begin its own. */
static double pull_together(tn_team *team, puller *p, uint32_t n)
{
    double sum = 0;
    tn_team_run(team, n, pull, p);
    for (uint32_t i = 0; i < n; i++) {
        sum += p[i].rate;
    }
    return sum;
}

static tn_status measure(tn_team *team, puller *p, uint32_t n, tn_peaks *out, tn_error *err)
{
    double flops = pull_together(team, p, n);
    for (uint32_t i = 0; i < n; i++) {
        TN_TRY(TN_ALLOC(p[i].memory, 2 * (size_t)MOVED_BYTES, "measuring memory", err));
        memset(p[i].memory, 1, 2 * (size_t)MOVED_BYTES);
    }
    *out = (tn_peaks){.gflops = flops * 1e-9, .bytes = pull_together(team, p, n)};
    return TN_OK;
}

tn_status tn_peaks_measure(uint32_t threads, double seconds, tn_peaks *out, tn_error *err)
{
    tn_team *team = NULL;
    puller *p = NULL;
    TN_TRY(TN_ALLOC(p, threads, "measuring this machine", err));
    for (uint32_t i = 0; i < threads; i++) {
        p[i].seconds = seconds / 2;
    }
    tn_status status = tn_team_open(&team, threads, err);
    if (status == TN_OK) {
        status = measure(team, p, threads, out, err);
    }
    tn_team_close(team);
    for (uint32_t i = 0; i < threads; i++) {
        tn_free(p[i].memory);
    }
    tn_free(p);
    return status;
}
