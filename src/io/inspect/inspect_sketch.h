/* inspect_sketch.h - what a stream held, in memory that does not grow with it.
 *
 *     distinct   how many different keys: exact up to 65,536, then HyperLogLog (2^14 registers,
 *                standard error 0.8 %)
 *     top        the most frequent keys: Misra-Gries with 2048 counters, which undercounts by at
 *                most `missed`
 *     numbers    least, largest, mean, deviation; quantiles of a uniform sample of 262,144
 *
 * All depend on the order of the stream at most, never on threads. Owned by the caller; one thread
 * at a time.
 */
#ifndef TN_IO_INSPECT_SKETCH_H
#define TN_IO_INSPECT_SKETCH_H

#include "base/core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_distinct tn_distinct;
tn_status tn_distinct_new(tn_distinct **out, tn_error *err) TN_MUST_USE;
void tn_distinct_free(tn_distinct *d);              /* NULL is fine */
void tn_distinct_add(tn_distinct *d, uint64_t key); /* key: well mixed, as table keys are */
uint64_t tn_distinct_count(const tn_distinct *d, bool *exact);

enum { TN_TOP_TEXT_MAX = 44 };

typedef struct tn_top_item {
    uint64_t key;
    uint64_t count; /* 0: a free place */
    uint32_t size;  /* of the text; longer ones are cut */
    char text[TN_TOP_TEXT_MAX];
} tn_top_item;

typedef struct tn_top tn_top;
tn_status tn_top_new(tn_top **out, tn_error *err) TN_MUST_USE;
void tn_top_free(tn_top *t); /* NULL is fine */
void tn_top_add(tn_top *t, uint64_t key, const char *text, size_t size);

/* The n most frequent, ties by key; returns how many there are. *missed: no count is further off.
 */
uint32_t tn_top_list(const tn_top *t, tn_top_item *out, uint32_t n, uint64_t *missed);

typedef struct tn_numbers {
    uint64_t n;
    double least, largest;
    double mean, squares; /* Welford: squares = sum of (x - mean)^2 */
    double *sample;
    bool sorted;
} tn_numbers;

tn_status tn_numbers_init(tn_numbers *x, tn_error *err) TN_MUST_USE;
void tn_numbers_done(tn_numbers *x);
void tn_numbers_add(tn_numbers *x, double value);
double tn_numbers_deviation(const tn_numbers *x);        /* of the sample; 0 for fewer than two */
double tn_numbers_quantile(tn_numbers *x, double share); /* NAN without numbers */

#endif
