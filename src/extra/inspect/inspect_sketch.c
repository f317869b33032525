/* inspect_sketch.c - HyperLogLog and Misra-Gries. */
#include "extra/inspect/inspect_sketch.h"

#include "base/core/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTER_BITS = 14, FIRST_PLACES = 64 };

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
    tn_free(d->set);
    tn_free(d->rank);
    *d = (tn_distinct){.n = 0};
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
    tn_free(t->item);
    tn_free(t->kept);
    *t = (tn_top){.n = 0};
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
