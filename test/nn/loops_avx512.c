/* loops_avx512.c - the loops over pairs of vectors, with AVX512F. */

#if defined(__x86_64__) && defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f"))), apply_to = function)
#elif defined(__x86_64__)
#pragma GCC target("avx512f")
#endif

#define TN_LOOPSET(name) tn_loops_avx512_##name
#include "nn/loopsetbody.h"

const tn_loopset tn_loops_avx512 = TN_LOOPSET_OF("avx512");

#if defined(__x86_64__) && defined(__clang__)
#pragma clang attribute pop
#endif
