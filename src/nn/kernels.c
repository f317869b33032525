/* kernels.c - which kernel set this processor runs. */
#include "nn/kernels.h"

/* ThreadSanitizer's build takes the plain road, like everything that picks code by processor. */
#if defined(__x86_64__) && !defined(TN_NO_CLONES) && !defined(TN_REAL_DOUBLE)
const tn_kernels *tn_kernels_find(void)
{
    if (__builtin_cpu_supports("avx512f")) {
        return &tn_kernels_avx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return &tn_kernels_avx2;
    }
    return NULL;
}
#else
const tn_kernels *tn_kernels_find(void)
{
    return NULL;
}
#endif
