/* inspect_sketch.h - what a stream held, in memory that grows with it up to a limit.
 *
 *     distinct   how many different keys: exact up to 65,536, then HyperLogLog (2^14 registers,
 *                standard error 0.8 %)
 *     top        the most frequent keys: Misra-Gries with 2048 counters, which undercounts by at
 *                most `missed`
 *
 * Both depend on the order of the stream at most, never on threads. Zeros are an empty one, and
 * what one holds is freed by its `done`. A short stream takes a few kB; at most it is 1 MB for a
 * count, 400 kB for a list. One thread at a time.
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
void tn_distinct_done(tn_distinct *d);

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
void tn_top_done(tn_top *t);
