/* host.c - instruction set, matrix library and peak memory of this machine. */
#include "train/step/host.h"

#include "nn/gemm/gemm.h"
#include "train/config/run.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

const char *tn_host_cpu(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi2");
    bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return v4 ? "x86-64-v4" : v3 ? "x86-64-v3" : "x86-64";
#else
    return "generic";
#endif
}

void tn_host_blas(const tn_compute_opts *opts, char out[TN_HOST_BLAS_SIZE])
{
    char name[TN_PRODUCTS_NAME] = "nothing";
    tn_products p;
    tn_error err = {0};
    if (tn_products_find(&p, (tn_products_choice)opts->gemm, &err) == TN_OK) {
        tn_products_describe(&p, name);
    }
    (void)snprintf(out, TN_HOST_BLAS_SIZE, "%s%s", name, opts->bf16 ? ", bf16" : "");
}

uint64_t tn_host_peak_rss(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}
