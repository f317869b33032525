/* inspect_sketch.c - HyperLogLog, Misra-Gries, and a uniform sample of numbers. */
#include "io/inspect/inspect_sketch.h"

#include "base/core/alloc.h"
#include "base/math/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXACT_MAX = 65536,
    SET_PLACES = 2 * EXACT_MAX,
    REGISTER_BITS = 14,
    REGISTERS = 1 << REGISTER_BITS,
    TOP_MAX = 2048,
    TOP_PLACES = 2 * TOP_MAX,
    SAMPLE_MAX = 262144,
};

struct tn_distinct {
    uint32_t n; /* in the set; EXACT_MAX + 1: it is full and says nothing any more */
    bool zero;  /* key 0, which marks free places */
    uint64_t set[SET_PLACES];
    uint8_t rank[REGISTERS];
};

tn_status tn_distinct_new(tn_distinct **out, tn_error *err)
{
    *out = tn_try_alloc(1, sizeof **out, "a count of different keys", err);
    return *out != NULL ? TN_OK : TN_E_MEMORY;
}

void tn_distinct_free(tn_distinct *d)
{
    tn_free(d);
}

static void add_to_set(tn_distinct *d, uint64_t key)
{
    if (key == 0) {
        d->n += d->zero ? 0 : 1;
        d->zero = true;
        return;
    }
    uint32_t at = (uint32_t)key & (SET_PLACES - 1);
    while (d->set[at] != 0 && d->set[at] != key) {
        at = (at + 1) & (SET_PLACES - 1);
    }
    if (d->set[at] == 0) {
        d->set[at] = key;
        d->n++;
    }
}

void tn_distinct_add(tn_distinct *d, uint64_t key)
{
    if (d->n <= EXACT_MAX) {
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
    *exact = d->n <= EXACT_MAX;
    if (*exact) {
        return d->n;
    }
    double sum = 0;
    for (uint32_t i = 0; i < REGISTERS; i++) {
        sum += ldexp(1, -d->rank[i]);
    }
    double m = REGISTERS;
    double alpha = 0.7213 / (1 + 1.079 / m);
    return (uint64_t)(alpha * m * m / sum + 0.5);
}

struct tn_top {
    uint32_t n;
    uint64_t missed;
    tn_top_item item[TOP_PLACES]; /* open addressing */
    tn_top_item kept[TOP_MAX];    /* while the table is made anew */
};

tn_status tn_top_new(tn_top **out, tn_error *err)
{
    *out = tn_try_alloc(1, sizeof **out, "a list of frequent keys", err);
    return *out != NULL ? TN_OK : TN_E_MEMORY;
}

void tn_top_free(tn_top *t)
{
    tn_free(t);
}

static tn_top_item *place_of(tn_top *t, uint64_t key)
{
    uint32_t at = (uint32_t)key & (TOP_PLACES - 1);
    while (t->item[at].count != 0 && t->item[at].key != key) {
        at = (at + 1) & (TOP_PLACES - 1);
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

static uint32_t gather(const tn_top *t, tn_top_item *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < TOP_PLACES; i++) {
        if (t->item[i].count != 0) {
            out[n++] = t->item[i];
        }
    }
    qsort(out, n, sizeof *out, by_count);
    return n;
}

/* Takes the median count off everybody, so that at most half of the counters stay. */
static void make_room(tn_top *t)
{
    uint32_t n = gather(t, t->kept);
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
    if (t->n == TOP_MAX) {
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

uint32_t tn_top_list(const tn_top *t, tn_top_item *out, uint32_t n, uint64_t *missed)
{
    *missed = t->missed;
    tn_top_item *all = tn_alloc(TOP_MAX, sizeof *all, "a list of frequent keys");
    uint32_t found = gather(t, all);
    found = found < n ? found : n;
    memcpy(out, all, found * sizeof *out);
    tn_free(all);
    return found;
}

tn_status tn_numbers_init(tn_numbers *x, tn_error *err)
{
    *x = (tn_numbers){0};
    x->sample = tn_try_alloc(SAMPLE_MAX, sizeof *x->sample, "a sample of numbers", err);
    return x->sample != NULL ? TN_OK : TN_E_MEMORY;
}

void tn_numbers_done(tn_numbers *x)
{
    tn_free(x->sample);
    *x = (tn_numbers){0};
}

/* The i-th number replaces a random one with odds SAMPLE_MAX / i, so that all stay equally likely
 * (Vitter 1985, algorithm R). */
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
    if (i >= SAMPLE_MAX) {
        at = tn_below(tn_draw(tn_stream2(0, TN_RNG_SAMPLING, 1), i), i + 1);
    }
    if (at < SAMPLE_MAX) {
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

double tn_numbers_quantile(tn_numbers *x, double share)
{
    if (x->n == 0) {
        return (double)NAN;
    }
    size_t n = x->n < SAMPLE_MAX ? x->n : SAMPLE_MAX;
    if (!x->sorted) {
        qsort(x->sample, n, sizeof *x->sample, by_value);
        x->sorted = true;
    }
    double at = fmin(share * (double)n, (double)(n - 1));
    return x->sample[(size_t)at];
}
