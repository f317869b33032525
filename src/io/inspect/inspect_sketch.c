/* inspect_sketch.c - HyperLogLog, Misra-Gries, and a uniform sample of numbers. */
#include "io/inspect/inspect_sketch.h"

#include "base/core/alloc.h"
#include "base/math/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTER_BITS = 14, FIRST_PLACES = 64, FIRST_NUMBERS = 256 };

static uint64_t *place_of_key(const tn_distinct *d, uint64_t key)
{
    uint32_t at = (uint32_t)key & (d->places - 1);
    while (d->set[at] != 0 && d->set[at] != key) {
        at = (at + 1) & (d->places - 1);
    }
    return &d->set[at];
}

static void widen_set(tn_distinct *d)
{
    const tn_distinct old = *d;
    d->places = old.places > 0 ? 2 * old.places : FIRST_PLACES;
    d->set = tn_alloc(d->places, sizeof *d->set, "a count of different keys");
    for (uint32_t i = 0; i < old.places; i++) {
        if (old.set[i] != 0) {
            *place_of_key(d, old.set[i]) = old.set[i];
        }
    }
    tn_free(old.set);
}

static void add_to_set(tn_distinct *d, uint64_t key)
{
    if (key == 0) {
        d->n += d->zero ? 0 : 1;
        d->zero = true;
        return;
    }
    if (2 * d->n >= d->places && d->places < TN_DISTINCT_PLACES) {
        widen_set(d);
    }
    uint64_t *place = place_of_key(d, key);
    d->n += *place == 0;
    *place = key;
}

static void add_to_registers(tn_distinct *d, uint64_t key)
{
    uint32_t i = (uint32_t)(key >> (64 - REGISTER_BITS));
    uint64_t rest = key << REGISTER_BITS | UINT64_C(1) << (REGISTER_BITS - 1);
    uint8_t rank = (uint8_t)(__builtin_clzll(rest) + 1);
    if (rank > d->rank[i]) {
        d->rank[i] = rank;
    }
}

/* Registers do not mind order or repetition, so those of the set come when it is full. */
static void leave_set(tn_distinct *d)
{
    d->rank = tn_alloc(TN_DISTINCT_REGISTERS, 1, "a count of different keys");
    for (uint32_t i = 0; i < d->places; i++) {
        if (d->set[i] != 0) {
            add_to_registers(d, d->set[i]);
        }
    }
    if (d->zero) {
        add_to_registers(d, 0);
    }
    tn_free(d->set);
    d->set = NULL;
    d->places = 0;
}

void tn_distinct_add(tn_distinct *d, uint64_t key)
{
    if (d->rank != NULL) {
        add_to_registers(d, key);
        return;
    }
    add_to_set(d, key);
    if (d->n > TN_DISTINCT_EXACT_MAX) {
        leave_set(d);
    }
}

void tn_distinct_done(tn_distinct *d)
{
    if (d != NULL) {
        tn_free(d->set);
        tn_free(d->rank);
        *d = (tn_distinct){.n = 0};
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
    uint32_t at = (uint32_t)key & (t->places - 1);
    while (t->item[at].count != 0 && t->item[at].key != key) {
        at = (at + 1) & (t->places - 1);
    }
    return &t->item[at];
}

static void widen_top(tn_top *t)
{
    const tn_top old = *t;
    t->places = old.places > 0 ? 2 * old.places : FIRST_PLACES;
    t->item = tn_alloc(t->places, sizeof *t->item, "a list of frequent keys");
    for (uint32_t i = 0; i < old.places; i++) {
        if (old.item[i].count != 0) {
            *place_of(t, old.item[i].key) = old.item[i];
        }
    }
    tn_free(old.item);
}

void tn_top_done(tn_top *t)
{
    if (t != NULL) {
        tn_free(t->item);
        tn_free(t->kept);
        *t = (tn_top){.n = 0};
    }
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
    tn_free(t->kept);
    t->kept = tn_alloc((size_t)t->n + 1, sizeof *t->kept, "a list of frequent keys");
    for (uint32_t i = 0; i < t->places; i++) {
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
    memset(t->item, 0, t->places * sizeof *t->item);
    for (uint32_t i = 0; i < n && t->kept[i].count > less; i++) {
        tn_top_item *item = place_of(t, t->kept[i].key);
        *item = t->kept[i];
        item->count -= less;
        t->n++;
    }
}

void tn_top_add(tn_top *t, uint64_t key, const char *text, size_t size)
{
    if (2 * t->n >= t->places && t->places < TN_TOP_PLACES) {
        widen_top(t);
    }
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
    if (x != NULL) {
        tn_free(x->sample);
        tn_free(x->weight);
        *x = (tn_numbers){.n = 0};
    }
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
