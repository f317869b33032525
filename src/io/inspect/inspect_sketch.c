/* inspect_sketch.c - HyperLogLog, Misra-Gries, and a uniform sample of numbers. */
#include "io/inspect/inspect_sketch.h"

#include "base/core/error.h"
#include "base/math/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTER_BITS = 14 };

static void add_to_set(tn_distinct *d, uint64_t key)
{
    if (key == 0) {
        d->n += d->zero ? 0 : 1;
        d->zero = true;
        return;
    }
    uint32_t at = (uint32_t)key & (TN_DISTINCT_PLACES - 1);
    while (d->set[at] != 0 && d->set[at] != key) {
        at = (at + 1) & (TN_DISTINCT_PLACES - 1);
    }
    if (d->set[at] == 0) {
        d->set[at] = key;
        d->n++;
    }
}

void tn_distinct_add(tn_distinct *d, uint64_t key)
{
    if (d->n <= TN_DISTINCT_EXACT_MAX) {
        add_to_set(d, key);
    }
    uint32_t i = (uint32_t)(key >> (64 - REGISTER_BITS));
    uint64_t rest = key << REGISTER_BITS | UINT64_C(1) << (REGISTER_BITS - 1);
    uint8_t rank = (uint8_t)(__builtin_clzll(rest) + 1);
    if (rank > d->rank[i]) {
        d->rank[i] = rank;
    }
}

/* Flajolet et al. 2007; below 65,536 the set answers, so no correction for small counts. */
uint64_t tn_distinct_count(const tn_distinct *d, bool *exact)
{
    *exact = d->n <= TN_DISTINCT_EXACT_MAX;
    if (*exact) {
        return d->n;
    }
    double sum = 0;
    for (uint32_t i = 0; i < TN_DISTINCT_REGISTERS; i++) {
        sum += ldexp(1, -d->rank[i]);
    }
    double m = TN_DISTINCT_REGISTERS;
    double alpha = 0.7213 / (1 + 1.079 / m);
    return (uint64_t)(alpha * m * m / sum + 0.5);
}

static tn_top_item *place_of(tn_top *t, uint64_t key)
{
    uint32_t at = (uint32_t)key & (TN_TOP_PLACES - 1);
    while (t->item[at].count != 0 && t->item[at].key != key) {
        at = (at + 1) & (TN_TOP_PLACES - 1);
    }
    return &t->item[at];
}

static int by_count(const void *a, const void *b)
{
    const tn_top_item *x = a;
    const tn_top_item *y = b;
    if (x->count != y->count) {
        return x->count < y->count ? 1 : -1;
    }
    return (x->key > y->key) - (x->key < y->key);
}

uint32_t tn_top_sort(tn_top *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < TN_TOP_PLACES; i++) {
        if (t->item[i].count != 0) {
            t->kept[n++] = t->item[i];
        }
    }
    qsort(t->kept, n, sizeof *t->kept, by_count);
    return n;
}

/* Takes the median count off everybody, so that at most half of the counters stay. */
static void make_room(tn_top *t)
{
    uint32_t n = tn_top_sort(t);
    uint64_t less = t->kept[n / 2].count;
    t->missed += less;
    t->n = 0;
    memset(t->item, 0, sizeof t->item);
    for (uint32_t i = 0; i < n && t->kept[i].count > less; i++) {
        tn_top_item *item = place_of(t, t->kept[i].key);
        *item = t->kept[i];
        item->count -= less;
        t->n++;
    }
}

void tn_top_add(tn_top *t, uint64_t key, const char *text, size_t size)
{
    tn_top_item *item = place_of(t, key);
    if (item->count != 0) {
        item->count++;
        return;
    }
    if (t->n == TN_TOP_MAX) {
        make_room(t);
        item = place_of(t, key);
    }
    *item = (tn_top_item){.key = key, .count = 1};
    item->size = (uint32_t)(size < TN_TOP_TEXT_MAX ? size : TN_TOP_TEXT_MAX);
    if (size > 0) {
        memcpy(item->text, text, item->size);
    }
    t->n++;
}

/* The i-th number replaces a random one with odds TN_NUMBERS_MAX / i, so that all stay equally
 * likely (Vitter 1985, algorithm R). */
void tn_numbers_add(tn_numbers *x, double value)
{
    x->least = x->n == 0 || value < x->least ? value : x->least;
    x->largest = x->n == 0 || value > x->largest ? value : x->largest;
    uint64_t i = x->n++;
    double off = value - x->mean;
    x->mean += off / (double)x->n;
    x->squares += off * (value - x->mean);
    TN_ASSERT(!x->sorted);
    uint64_t at = i;
    if (i >= TN_NUMBERS_MAX) {
        at = tn_below(tn_draw(tn_stream2(0, TN_RNG_SAMPLING, 1), i), i + 1);
    }
    if (at < TN_NUMBERS_MAX) {
        x->sample[at] = value;
    }
}

double tn_numbers_deviation(const tn_numbers *x)
{
    return x->n < 2 ? 0 : sqrt(x->squares / (double)(x->n - 1));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts the sample; how many numbers it holds. */
static size_t sort_sample(tn_numbers *x)
{
    const size_t n = x->n < TN_NUMBERS_MAX ? x->n : TN_NUMBERS_MAX;
    if (!x->sorted) {
        qsort(x->sample, n, sizeof *x->sample, by_value);
        x->sorted = true;
    }
    return n;
}

double tn_numbers_quantile(tn_numbers *x, double share)
{
    if (x->n == 0) {
        return (double)NAN;
    }
    const size_t n = sort_sample(x);
    double at = fmin(share * (double)n, (double)(n - 1));
    return x->sample[(size_t)at];
}

uint32_t tn_numbers_bounds(tn_numbers *x, uint32_t parts, double *bound)
{
    const size_t n = sort_sample(x);
    uint32_t n_bounds = 0;
    size_t begin = 0; /* of the bucket that is filled */
    size_t end = 0;   /* of the value */
    for (size_t at = 0; at < n && n_bounds + 1 < parts; at = end) {
        const double share = (double)(n - begin) / (parts - n_bounds);
        while (end < n && x->sample[end] == x->sample[at]) {
            end++;
        }
        if (at > begin && (double)(end - at) >= share) {
            bound[n_bounds++] = x->sample[at]; /* the value has a bucket of its own */
            begin = at;
        }
        if (n_bounds + 1 < parts && end < n && (double)(end - begin) >= share) {
            bound[n_bounds++] = x->sample[end];
            begin = end;
        }
    }
    return n_bounds;
}
