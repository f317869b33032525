/* kernels.c - which kernel set this processor runs. */
#include "nn/gemm/kernels.h"

const tn_kernels *tn_kernels_find(void)
{
#if TN_KERNELS_AVX512
    if (__builtin_cpu_supports("avx512f")) {
        return &tn_kernels_avx512;
    }
#endif
#if TN_KERNELS_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return &tn_kernels_avx2;
    }
#endif
    return NULL;
}
