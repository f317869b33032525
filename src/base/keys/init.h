/* init.h - rules for first values: of dense weights and of rows of the sparse table.
 *
 * A value is a pure function of (rule, stream, index): independent of the order of arrival, of
 * threads and of peers. Computed in double, rounded once to float.
 */
#pragma once

#include <stdint.h>

typedef enum tn_init_kind {
    TN_INIT_CONSTANT,       /* a */
    TN_INIT_UNIFORM,        /* a .. b */
    TN_INIT_NORMAL,         /* mean a, standard deviation b */
    TN_INIT_TRUNCATED,      /* the same, cut at two deviations */
    TN_INIT_GLOROT_UNIFORM, /* +- sqrt(6 / (in + out)) */
    TN_INIT_XAVIER_NORMAL,  /* variance 2 / (in + out) */
    TN_INIT_HE_UNIFORM,     /* +- sqrt(6 / in) */
    TN_INIT_HE_NORMAL,      /* variance 2 / in */
} tn_init_kind;

typedef struct tn_init {
    tn_init_kind kind;
    double a, b;
} tn_init;

/* Returns the index-th value. `stream`: see base/math/rng.h; in, out: the fans, read by the last
 * four. */
float tn_init_value(const tn_init *init, uint64_t stream, uint64_t index, uint32_t in,
                    uint32_t out);

/* Sets w[r] := the first dim values of stream[r], of n rows; both fans are dim. */
void tn_init_rows(const tn_init *init, uint32_t n, const uint64_t *stream, uint32_t dim,
                  float *const *w);
