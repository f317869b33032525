/* inspect_sketch.h - what a stream held, in memory that grows with it up to a limit.
 *
 *     distinct   how many different keys: exact up to 65,536, then HyperLogLog (2^14 registers,
 *                standard error 0.8 %)
 *     top        the most frequent keys: Misra-Gries with 2048 counters, which undercounts by at
 *                most `missed`
 *     numbers    least, largest, mean, deviation; quantiles of a uniform sample of 262,144, or of
 *                as many as the caller says
 *
 * All depend on the order of the stream at most, never on threads. Zeros are an empty one, and what
 * one holds is freed by its `done`. A short stream takes a few kB; at most it is 1 MB for a count,
 * 400 kB for a list, 2 MB for numbers (3 MB with weights). One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TN_DISTINCT_EXACT_MAX = 65536,
    TN_DISTINCT_PLACES = 2 * TN_DISTINCT_EXACT_MAX,
    TN_DISTINCT_REGISTERS = 1 << 14,
    TN_TOP_MAX = 2048,
    TN_TOP_PLACES = 2 * TN_TOP_MAX,
    TN_TOP_TEXT_MAX = 44,
    TN_NUMBERS_MAX = 262144,
};

typedef struct tn_distinct {
    uint32_t n; /* in the set; TN_DISTINCT_EXACT_MAX + 1: it is full and says nothing any more */
    bool zero;  /* key 0, which marks free places */
    uint32_t places;
    uint64_t *set; /* places; NULL once it was full */
    uint8_t *rank; /* TN_DISTINCT_REGISTERS, from then on */
} tn_distinct;

void tn_distinct_add(tn_distinct *d, uint64_t key); /* key: well mixed, as table keys are */
uint64_t tn_distinct_count(const tn_distinct *d, bool *exact);
void tn_distinct_done(tn_distinct *d); /* NULL is fine */

typedef struct tn_top_item {
    uint64_t key;
    uint64_t count; /* 0: a free place */
    uint32_t size;  /* bytes of the text; longer ones are cut */
    char text[TN_TOP_TEXT_MAX];
} tn_top_item;

typedef struct tn_top {
    uint32_t n;
    uint64_t missed;   /* no count is further off */
    uint32_t places;   /* up to TN_TOP_PLACES */
    tn_top_item *item; /* places; open addressing */
    tn_top_item *kept; /* n, the most frequent first; as of the last tn_top_sort */
} tn_top;

void tn_top_add(tn_top *t, uint64_t key, const char *text, size_t size);

/* Fills `kept`, ties by key; returns how many there are. */
uint32_t tn_top_sort(tn_top *t);
void tn_top_done(tn_top *t); /* NULL is fine */

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

void tn_numbers_add(tn_numbers *x, double value, float weight);
void tn_numbers_done(tn_numbers *x);              /* NULL is fine */
double tn_numbers_deviation(const tn_numbers *x); /* sample deviation; 0 for fewer than two */
double tn_numbers_quantile(tn_numbers *x, double share); /* by count; NAN without numbers */

/* Ascending bounds between at most `parts` buckets (bucket k: bound[k - 1] <= v < bound[k]) of
 * about equal share of the weight; a value that alone has more than such a share has a bucket of
 * its own, and the others divide what is left. `bound` has room for parts - 1; returns how many
 * there are. */
uint32_t tn_numbers_bounds(tn_numbers *x, uint32_t parts, double *bound);
