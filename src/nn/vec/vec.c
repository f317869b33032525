/* vec.c - loops over vectors, in several versions each. The loops are static and the functions
 * around them plain: compiler.h says why. */
#include "nn/vec/vec.h"

#include "base/core/compiler.h"

#include <string.h>

TN_HOT static void vec_add_to(size_t n, tn_real *restrict y, const tn_real *restrict x)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += x[i];
    }
}

void tn_vec_copy(size_t n, tn_real *y, const tn_real *x, bool add)
{
    if (add) {
        vec_add_to(n, y, x);
    } else {
        memcpy(y, x, n * sizeof *y);
    }
}

TN_HOT static void vec_sum_of(size_t n, tn_real *restrict y, const tn_real *restrict a,
                              const tn_real *restrict b)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = a[i] + b[i];
    }
}

void tn_vec_add(size_t n, tn_real *y, const tn_real *a, const tn_real *b)
{
    vec_sum_of(n, y, a, b);
}

TN_HOT static void vec_mul(size_t n, tn_real *restrict y, const tn_real *restrict a,
                           const tn_real *restrict b)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = a[i] * b[i];
    }
}

TN_HOT static void vec_add_mul(size_t n, tn_real *restrict y, const tn_real *restrict a,
                               const tn_real *restrict b)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += a[i] * b[i];
    }
}

void tn_vec_mul(size_t n, tn_real *y, const tn_real *a, const tn_real *b, bool add)
{
    (add ? vec_add_mul : vec_mul)(n, y, a, b);
}

TN_HOT static void vec_scale(size_t n, tn_real *restrict y, const tn_real *restrict x, tn_real by)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] * by;
    }
}

TN_HOT static void vec_add_scaled(size_t n, tn_real *restrict y, const tn_real *restrict x,
                                  tn_real by)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += x[i] * by;
    }
}

void tn_vec_scale(size_t n, tn_real *y, const tn_real *x, tn_real by, bool add)
{
    (add ? vec_add_scaled : vec_scale)(n, y, x, by);
}

TN_HOT static void vec_shift(size_t n, tn_real *y, tn_real plus)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += plus;
    }
}

void tn_vec_shift(size_t n, tn_real *y, tn_real plus)
{
    vec_shift(n, y, plus);
}

/* Without the pragma a sum must be taken one number at a time. */
TN_HOT static tn_real vec_sum(size_t n, const tn_real *x)
{
    tn_real total = 0;
#pragma omp simd reduction(+ : total)
    for (size_t i = 0; i < n; i++) {
        total += x[i];
    }
    return total;
}

tn_real tn_vec_sum(size_t n, const tn_real *x)
{
    return vec_sum(n, x);
}

TN_HOT static tn_real vec_dot(size_t n, const tn_real *a, const tn_real *b)
{
    tn_real total = 0;
#pragma omp simd reduction(+ : total)
    for (size_t i = 0; i < n; i++) {
        total += a[i] * b[i];
    }
    return total;
}

tn_real tn_vec_dot(size_t n, const tn_real *a, const tn_real *b)
{
    return vec_dot(n, a, b);
}

/* x - x is 0 where x is finite, else NaN. */
TN_HOT static tn_real vec_differences(size_t n, const tn_real *x)
{
    tn_real total = 0;
#pragma omp simd reduction(+ : total)
    for (size_t i = 0; i < n; i++) {
        total += x[i] - x[i];
    }
    return total;
}

bool tn_vec_finite(size_t n, const tn_real *x)
{
    return vec_differences(n, x) == 0;
}
