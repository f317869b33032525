/* key_filter.h - how often keys without a row were seen: a counting Bloom filter.
 *
 *     lines of 64 bytes     [ .. .. .. ][ .. .. .. ][ .. .. .. ]     a partition's part of it
 *                                 a key counts in `hashes` counters of one line
 *
 * A key's count is the least of its counters, so keys that share counters with others count too
 * much, never too little. All counters of a key lie in one cache line, which costs counters
 * (Putze, Sanders, Singler 2007: blocked Bloom filters) and saves cache misses. Counters have 2, 4
 * or 8 bits, as many as the largest count that is asked for needs, and stay at their largest value.
 * What a filter holds depends on the sum of what was added, never on the order.
 *
 * A filter that holds more keys than it was made for counts too much ever more often. Ageing it
 * halves all counters, which forgets keys that were seen once: an aged filter may count too little.
 *
 * The memory of a filter is its user's: tn_key_filter_bytes of zeros for each partition, on a cache
 * line. No function waits or fails.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TN_KEY_FILTER_COUNT_MAX = 255, TN_KEY_FILTER_LINE = 64 };

typedef struct tn_key_filter {
    uint32_t lines;  /* per partition; 0: there is no filter */
    uint32_t hashes; /* counters of a key */
    uint32_t bits;   /* per counter: 2, 4 or 8 */
    double full;     /* share of counters above 0 when it holds a tenth more keys than it should */
} tn_key_filter;

/* For so many keys in each partition, of which a share of at most `error` would count too much, and
 * for counts up to `most`, at most TN_KEY_FILTER_COUNT_MAX. */
tn_key_filter tn_key_filter_plan(uint64_t keys, double error, uint32_t most);

static inline size_t tn_key_filter_bytes(const tn_key_filter *f)
{
    return (size_t)f->lines * TN_KEY_FILTER_LINE;
}

/* The line of a key, which both functions below read and add alone writes. */
uint32_t tn_key_filter_line(const tn_key_filter *f, uint64_t key);

uint32_t tn_key_filter_count(const tn_key_filter *f, const uint8_t *at, uint64_t key);

/* Returns how many counters were 0 before. */
uint32_t tn_key_filter_add(const tn_key_filter *f, uint8_t *at, uint64_t key, uint32_t n);

uint32_t tn_key_filter_raised(const tn_key_filter *f, const uint8_t *at); /* counters above 0 */

/* Whether one with so many counters above 0 holds a tenth more keys than it was made for. */
bool tn_key_filter_is_overfull(const tn_key_filter *f, uint32_t raised);
void tn_key_filter_age(const tn_key_filter *f, uint8_t *at); /* halves all counters */
