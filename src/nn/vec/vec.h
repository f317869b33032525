/* vec.h - loops over vectors, compiled for several instruction sets.
 *
 * Outputs may not overlap inputs. `add` false assigns the output, true adds to it. A sum's order of
 * additions is fixed by n and by the instruction set, so a machine repeats its own bits, not
 * another's; everything else is the same, entry by entry, at any n.
 */
#pragma once

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
bool tn_vec_finite(size_t n, const tn_real *x); /* all of them are */
