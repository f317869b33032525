/* number_sample.c - a uniform sample of numbers, and the bounds between parts of equal share. */
#include "io/schema/number_sample.h"

#include "base/core/alloc.h"
#include "base/math/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_NUMBERS = 256, WHOLE_SAMPLES = 128 };

uint32_t tn_numbers_max(uint32_t n)
{
    const uint32_t all = WHOLE_SAMPLES * TN_NUMBERS_MAX;
    return n < WHOLE_SAMPLES ? (uint32_t)TN_NUMBERS_MAX : all / (n + 1);
}

static uint32_t sample_max(const tn_numbers *x)
{
    return x->sample_max > 0 ? x->sample_max : (uint32_t)TN_NUMBERS_MAX;
}

static void widen_sample(tn_numbers *x)
{
    const uint32_t n = x->room;
    const uint32_t twice = n > 0 ? 2 * n : FIRST_NUMBERS;
    x->room = twice < sample_max(x) ? twice : sample_max(x);
    double *sample = tn_alloc(x->room, sizeof *sample, "a sample of numbers");
    float *weight = NULL;
    if (n > 0) {
        memcpy(sample, x->sample, n * sizeof *sample);
    }
    if (x->weight != NULL) {
        weight = tn_alloc(x->room, sizeof *weight, "a sample of numbers");
        memcpy(weight, x->weight, n * sizeof *weight);
    }
    tn_free(x->sample);
    tn_free(x->weight);
    x->sample = sample;
    x->weight = weight;
}

/* From here on they differ. */
static void add_weights(tn_numbers *x)
{
    x->weight = tn_alloc(x->room, sizeof *x->weight, "a sample of numbers");
    for (uint32_t i = 0; i < x->room; i++) {
        x->weight[i] = 1;
    }
}

/* The i-th number replaces a random one with odds sample_max / i, so that all stay equally likely
 * (Vitter 1985, algorithm R). One without weight leaves no trace in the sample. */
void tn_numbers_add(tn_numbers *x, double value, float weight)
{
    x->least = x->n == 0 || value < x->least ? value : x->least;
    x->largest = x->n == 0 || value > x->largest ? value : x->largest;
    x->n++;
    double off = value - x->mean;
    x->mean += off / (double)x->n;
    x->squares += off * (value - x->mean);
    TN_ASSERT(!x->sorted);
    if (weight == 0) {
        return;
    }
    const uint64_t i = x->weighed++;
    uint64_t at = i;
    if (i >= sample_max(x)) {
        at = tn_below(tn_draw(tn_stream2(0, TN_RNG_SAMPLING, 1), i), i + 1);
    } else if (i == x->room) {
        widen_sample(x);
    }
    if (weight != 1 && x->weight == NULL) {
        add_weights(x);
    }
    if (at < sample_max(x)) {
        x->sample[at] = value;
    }
    if (at < sample_max(x) && x->weight != NULL) {
        x->weight[at] = weight;
    }
}

void tn_numbers_done(tn_numbers *x)
{
    tn_free(x->sample);
    tn_free(x->weight);
    *x = (tn_numbers){.n = 0};
}

double tn_numbers_deviation(const tn_numbers *x)
{
    return x->n < 2 ? 0 : sqrt(x->squares / (double)(x->n - 1));
}

/* A number of the sample, for sorting it with its weight. */
typedef struct weighted {
    double value;
    float weight;
} weighted;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static int by_value_and_weight(const void *a, const void *b)
{
    const weighted *x = a;
    const weighted *y = b;
    return x->value != y->value ? by_value(&x->value, &y->value)
                                : (x->weight > y->weight) - (x->weight < y->weight);
}

static void sort_weighted(tn_numbers *x, size_t n)
{
    weighted *item = tn_alloc(n + 1, sizeof *item, "a sample of numbers");
    for (size_t i = 0; i < n; i++) {
        item[i] = (weighted){x->sample[i], x->weight[i]};
    }
    qsort(item, n, sizeof *item, by_value_and_weight);
    for (size_t i = 0; i < n; i++) {
        x->sample[i] = item[i].value;
        x->weight[i] = item[i].weight;
    }
    tn_free(item);
}

/* Sorts the sample; how many numbers it holds. */
static size_t sort_sample(tn_numbers *x)
{
    const size_t n = x->weighed < sample_max(x) ? x->weighed : sample_max(x);
    if (!x->sorted && x->weight != NULL) {
        sort_weighted(x, n);
    } else if (!x->sorted && n > 0) {
        qsort(x->sample, n, sizeof *x->sample, by_value);
    }
    x->sorted = n > 0;
    return n;
}

double tn_numbers_quantile(tn_numbers *x, double share)
{
    const size_t n = sort_sample(x);
    if (n == 0) {
        return (double)NAN;
    }
    double at = fmin(share * (double)n, (double)(n - 1));
    return x->sample[(size_t)at];
}

static double weight_at(const tn_numbers *x, size_t i)
{
    return x->weight != NULL ? (double)x->weight[i] : 1;
}

uint32_t tn_numbers_bounds(tn_numbers *x, uint32_t parts, double *bound)
{
    const size_t n = sort_sample(x);
    uint32_t n_bounds = 0;
    size_t begin = 0;  /* begin of the bucket that is filled */
    size_t end = 0;    /* end of the value */
    double left = 0;   /* weight from `begin` on */
    double filled = 0; /* weight of the bucket up to `end` */
    for (size_t i = 0; i < n; i++) {
        left += weight_at(x, i);
    }
    for (size_t at = 0; at < n && n_bounds + 1 < parts; at = end) {
        const double share = left / (parts - n_bounds);
        const double before = filled;
        double own = 0;
        while (end < n && x->sample[end] == x->sample[at]) {
            own += weight_at(x, end++);
        }
        filled += own;
        if (at > begin && own >= share) {
            bound[n_bounds++] = x->sample[at]; /* the value has a bucket of its own */
            begin = at;
            left -= before;
            filled = own;
        }
        if (n_bounds + 1 < parts && end < n && filled >= share) {
            bound[n_bounds++] = x->sample[end];
            begin = end;
            left -= filled;
            filled = 0;
        }
    }
    return n_bounds;
}
