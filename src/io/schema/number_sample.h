/* number_sample.h - moments of a stream of numbers, and quantiles of a uniform sample of it.
 *
 *     tn_numbers x = {.sample_max = tn_numbers_max(n_columns)};
 *     tn_numbers_add(&x, 3.5, 1);                         number after number
 *     n = tn_numbers_bounds(&x, 10, bound);               for `transform: {buckets: [..]}`
 *     tn_numbers_done(&x);
 *
 * The sample depends on the order of the stream, never on threads. Zeros are an empty one. A short
 * stream takes a few kB, a long one at most 2 MB, with weights 3 MB. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TN_NUMBERS_MAX = 262144 };

typedef struct tn_numbers {
    uint64_t n;
    double least, largest;
    double mean, squares; /* Welford: squares = sum of (x - mean)^2 */
    bool sorted;
    uint32_t sample_max; /* 0: TN_NUMBERS_MAX */
    uint64_t weighed;    /* numbers whose weight is not 0: the sample is of these */
    uint32_t room;
    double *sample; /* room */
    float *weight;  /* room; NULL: all are 1 */
} tn_numbers;

/* Returns how many numbers each of `n` samples may hold, so that all together take 256 MB. */
uint32_t tn_numbers_max(uint32_t n);

void tn_numbers_add(tn_numbers *x, double value, float weight);
void tn_numbers_done(tn_numbers *x);
double tn_numbers_deviation(const tn_numbers *x); /* sample deviation; 0 for fewer than two */
double tn_numbers_quantile(tn_numbers *x, double share); /* by count; NAN without numbers */

/* Ascending bounds between at most `parts` buckets (bucket k: bound[k - 1] <= v < bound[k]) of
 * about equal share of the weight; a value that alone has more than such a share has a bucket of
 * its own, and the others divide what is left. `bound` has room for parts - 1; returns how many
 * there are. */
uint32_t tn_numbers_bounds(tn_numbers *x, uint32_t parts, double *bound);
