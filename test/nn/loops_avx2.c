/* loops_avx2.c - the loops over pairs of vectors, with AVX2. */

#if defined(__x86_64__) && defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#elif defined(__x86_64__)
#pragma GCC target("avx2")
#endif

#define TN_LOOPSET(name) tn_loops_avx2_##name
#include "nn/loopsetbody.h"

const tn_loopset tn_loops_avx2 = TN_LOOPSET_OF("avx2");

#if defined(__x86_64__) && defined(__clang__)
#pragma clang attribute pop
#endif
