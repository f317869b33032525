/* machine_peak.c - measures peak arithmetic by chains of fused multiply-adds, each of which depends
 * on itself alone, and peak memory traffic. */
#include "base/machine/machine_peak.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/thread/threads.h"

#include <string.h>

enum { ROUNDS = 100000, CHAINS = 12, MOVED_BYTES = 1 << 25, PEAK_THREADS_MAX = 1024 };

#if defined(__x86_64__)
#include <immintrin.h>

/* Multiply-adds of `lanes` floats in as many chains as hide their latency; returns how many FLOP.
 */
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

/* One thread of tn_peaks_measure. */
typedef struct puller {
    double seconds;
    char *memory; /* 2 * MOVED_BYTES; NULL: multiply and add instead */
    double rate;  /* FLOPs or bytes per second */
} puller;

static tn_status pull(void *arg, tn_error *err)
{
    (void)err;
    puller *p = arg;
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
    return TN_OK;
}

/* Of all pullers at once; the calling thread is the first of them. */
static tn_status pull_together(puller *p, uint32_t n, double *sum, tn_error *err)
{
    tn_thread *thread[PEAK_THREADS_MAX];
    uint32_t started = 1;
    tn_status status = TN_OK;
    while (status == TN_OK && started < n) {
        status = tn_thread_start(&thread[started], "tn-peak", pull, &p[started], err);
        started += status == TN_OK;
    }
    tn_status pulled = pull(&p[0], err);
    TN_ASSERT(pulled == TN_OK);
    *sum = p[0].rate;
    for (uint32_t i = 1; i < started; i++) {
        pulled = tn_thread_join(thread[i], NULL);
        TN_ASSERT(pulled == TN_OK);
        *sum += p[i].rate;
    }
    return status;
}

static tn_status measure(puller *p, uint32_t n, tn_peaks *out, tn_error *err)
{
    double flops = 0;
    double bytes = 0;
    TN_TRY(pull_together(p, n, &flops, err));
    for (uint32_t i = 0; i < n; i++) {
        p[i].memory = tn_try_alloc(2, MOVED_BYTES, "measuring memory", err);
        if (p[i].memory == NULL) {
            return TN_E_MEMORY;
        }
        memset(p[i].memory, 1, 2 * (size_t)MOVED_BYTES);
    }
    TN_TRY(pull_together(p, n, &bytes, err));
    *out = (tn_peaks){.gflops = flops * 1e-9, .bytes = bytes};
    return TN_OK;
}

tn_status tn_peaks_measure(uint32_t threads, double seconds, tn_peaks *out, tn_error *err)
{
    TN_ASSERT(threads >= 1 && threads <= PEAK_THREADS_MAX);
    puller *p = NULL;
    TN_TRY(TN_ALLOC(p, threads, "measuring this machine", err));
    for (uint32_t i = 0; i < threads; i++) {
        p[i].seconds = seconds / 2;
    }
    tn_status status = measure(p, threads, out, err);
    for (uint32_t i = 0; i < threads; i++) {
        tn_free(p[i].memory);
    }
    tn_free(p);
    return status;
}
