/* vec.c - see vec.h. The loops are static and the functions around them plain:
 * compiler.h says why. */
#include "nn/vec.h"

#include "base/compiler.h"

#include <string.h>

TN_HOT static void add_to(size_t n, tn_real *restrict y, const tn_real *restrict x)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += x[i];
    }
}

void tn_vec_copy(size_t n, tn_real *y, const tn_real *x, bool add)
{
    if (add) {
        add_to(n, y, x);
    } else {
        memcpy(y, x, n * sizeof *y);
    }
}

TN_HOT static void sum_of(size_t n, tn_real *restrict y, const tn_real *restrict a,
                          const tn_real *restrict b)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = a[i] + b[i];
    }
}

void tn_vec_add(size_t n, tn_real *y, const tn_real *a, const tn_real *b)
{
    sum_of(n, y, a, b);
}

TN_HOT static void mul(size_t n, tn_real *restrict y, const tn_real *restrict a,
                       const tn_real *restrict b)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = a[i] * b[i];
    }
}

TN_HOT static void add_mul(size_t n, tn_real *restrict y, const tn_real *restrict a,
                           const tn_real *restrict b)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += a[i] * b[i];
    }
}

void tn_vec_mul(size_t n, tn_real *y, const tn_real *a, const tn_real *b, bool add)
{
    (add ? add_mul : mul)(n, y, a, b);
}

TN_HOT static void scale(size_t n, tn_real *restrict y, const tn_real *restrict x, tn_real by)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] * by;
    }
}

TN_HOT static void add_scaled(size_t n, tn_real *restrict y, const tn_real *restrict x, tn_real by)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += x[i] * by;
    }
}

void tn_vec_scale(size_t n, tn_real *y, const tn_real *x, tn_real by, bool add)
{
    (add ? add_scaled : scale)(n, y, x, by);
}

TN_HOT static void affine(size_t n, tn_real *restrict y, const tn_real *restrict x,
                          const tn_real *restrict by, const tn_real *restrict plus)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] * by[i] + plus[i];
    }
}

void tn_vec_affine(size_t n, tn_real *y, const tn_real *x, const tn_real *by, const tn_real *plus)
{
    affine(n, y, x, by, plus);
}

TN_HOT static void shift(size_t n, tn_real *y, tn_real plus)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += plus;
    }
}

void tn_vec_shift(size_t n, tn_real *y, tn_real plus)
{
    shift(n, y, plus);
}

/* Without the pragma a sum must be taken one number at a time. */
TN_HOT static tn_real sum(size_t n, const tn_real *x)
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
    return sum(n, x);
}

TN_HOT static tn_real dot(size_t n, const tn_real *a, const tn_real *b)
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
    return dot(n, a, b);
}

TN_HOT static void tally(size_t n, double *restrict total, const tn_real *restrict x)
{
    for (size_t i = 0; i < n; i++) {
        total[i] += (double)x[i];
    }
}

void tn_vec_tally(size_t n, double *total, const tn_real *x)
{
    tally(n, total, x);
}

TN_HOT static void tally_mul(size_t n, double *restrict total, const tn_real *restrict a,
                             const tn_real *restrict b)
{
    for (size_t i = 0; i < n; i++) {
        total[i] += (double)a[i] * (double)b[i];
    }
}

void tn_vec_tally_mul(size_t n, double *total, const tn_real *a, const tn_real *b)
{
    tally_mul(n, total, a, b);
}

TN_HOT static void tally_square(size_t n, double *restrict total, const tn_real *restrict x,
                                const double *restrict mean)
{
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - mean[i];
        total[i] += d * d;
    }
}

void tn_vec_tally_square(size_t n, double *total, const tn_real *x, const double *mean)
{
    tally_square(n, total, x, mean);
}
