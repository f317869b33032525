/* vec.h - loops over vectors, compiled for several instruction sets.
 *
 * Outputs may not overlap inputs. `add` false assigns the output, true adds to it. A sum's order of
 * additions is fixed by n and by the instruction set, so a machine repeats its own bits, not
 * another's; everything else is the same, entry by entry, at any n.
 */
#ifndef TN_NN_VEC_H
#define TN_NN_VEC_H

#include "nn/vec/real.h"

#include <stdbool.h>
#include <stddef.h>

void tn_vec_copy(size_t n, tn_real *y, const tn_real *x, bool add);                  /* x     */
void tn_vec_add(size_t n, tn_real *y, const tn_real *a, const tn_real *b);           /* a + b */
void tn_vec_mul(size_t n, tn_real *y, const tn_real *a, const tn_real *b, bool add); /* a * b */
void tn_vec_scale(size_t n, tn_real *y, const tn_real *x, tn_real by, bool add);     /* x * by */
void tn_vec_shift(size_t n, tn_real *y, tn_real plus);                               /* y += plus */
tn_real tn_vec_sum(size_t n, const tn_real *x);
tn_real tn_vec_dot(size_t n, const tn_real *a, const tn_real *b);

/* Matrices of `rows` rows, `stride` apart: the same row added to each; each added to `total`. */
void tn_vec_add_row(size_t rows, size_t n, tn_real *y, size_t stride, const tn_real *row);
void tn_vec_sum_rows(size_t rows, size_t n, const tn_real *x, size_t stride, tn_real *total);

/* Column sums of one row after the other, in double. */
void tn_vec_tally(size_t n, double *total, const tn_real *x); /* sum += x */
void tn_vec_tally_square(size_t n, double *total, const tn_real *x,
                         const double *mean); /* (x - mean)^2 */

#endif
