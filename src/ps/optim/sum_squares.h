/* sum_squares.h - sums of squares whose bits do not depend on the instruction set.
 *
 * Eight lanes in double, element i in lane i % 8, added in one fixed tree. Vector units of 2, 4 or
 * 8 doubles and scalar code all compute this same sum.
 */
#ifndef TN_PS_SUM_SQUARES_H
#define TN_PS_SUM_SQUARES_H

#include <stddef.h>

static inline double tn_square_sum(size_t n, const float *x)
{
    double lane[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (size_t k = 0; k < 8; k++) {
            lane[k] += (double)x[i + k] * (double)x[i + k];
        }
    }
    for (size_t k = 0; i + k < n; k++) {
        lane[k] += (double)x[i + k] * (double)x[i + k];
    }
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

#endif
