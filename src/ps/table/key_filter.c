/* key_filter.c - sizes a counting Bloom filter, and counts keys in it. */
#include "ps/table/key_filter.h"

#include "base/core/error.h"
#include "base/math/key.h"

#include <math.h>
#include <string.h>

#define MORE 1.1 /* keys than it was made for, before it ages */

enum { HASHES_MAX = 16, LINE_BITS = 8 * TN_KEY_FILTER_LINE };

/* The share of keys whose counters others have all raised, of lines with `keys` keys on average:
 * the number of keys of a line is Poisson's, and a line is a Bloom filter of `counters` places. */
static double error_of(double keys, double counters, uint32_t hashes)
{
    const uint32_t most = (uint32_t)(keys + 10 * sqrt(keys) + 10);
    double chance = exp(-keys); /* the chance of a line with n keys */
    double error = 0;
    for (uint32_t n = 0; n <= most; n++) {
        error += chance * pow(1 - pow(1 - 1 / counters, (double)hashes * n), hashes);
        chance *= keys / (n + 1);
    }
    return error;
}

/* Keys for a line with so many counters, at most: the error grows with them. */
static double keys_of_line(double counters, double error, uint32_t hashes)
{
    const uint32_t halvings = 20;
    double from = 0;
    double to = counters;
    for (uint32_t i = 0; i < halvings; i++) {
        const double keys = (from + to) / 2;
        const bool fits = error_of(keys, counters, hashes) <= error;
        from = fits ? keys : from;
        to = fits ? to : keys;
    }
    return from;
}

tn_key_filter tn_key_filter_plan(uint64_t keys, double error, uint32_t most)
{
    TN_ASSERT(keys > 0 && error > 0 && error < 1);
    TN_ASSERT(most > 0 && most <= TN_KEY_FILTER_COUNT_MAX);
    tn_key_filter f = {.bits = most < 4 ? 2 : most < 16 ? 4 : 8};
    const double counters = (double)LINE_BITS / f.bits;
    double of_line = 0;
    for (uint32_t hashes = 1; hashes <= HASHES_MAX; hashes++) {
        const double n = keys_of_line(counters, error, hashes);
        f.hashes = n > of_line ? hashes : f.hashes;
        of_line = n > of_line ? n : of_line;
    }
    const double lines = ceil((double)keys / of_line);
    TN_ASSERT(of_line > 0 && lines < UINT32_MAX);
    f.lines = (uint32_t)lines;
    f.full = 1 - exp(-MORE * (double)keys / lines * (1 - pow(1 - 1 / counters, f.hashes)));
    return f;
}

/* Keys of a partition differ in their lower bits, which are spread evenly. */
static uint64_t hash_of(uint64_t key, uint64_t i)
{
    return tn_mix(key + (i + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

uint32_t tn_key_filter_line(const tn_key_filter *f, uint64_t key)
{
    return (uint32_t)((hash_of(key, 0) >> 32) * f->lines >> 32);
}

/* The places of a key's counters in its line, and how far each is shifted in its byte. */
typedef struct places {
    uint32_t byte[HASHES_MAX], shift[HASHES_MAX];
} places;

static void find_places(const tn_key_filter *f, uint64_t key, places *p)
{
    const uint32_t log2_bits = (uint32_t)__builtin_ctz(f->bits);
    const uint32_t log2_per_byte = 3 - log2_bits;
    const uint32_t last = LINE_BITS / f->bits - 1; /* counters of a line: a power of 2, up to 256 */
    uint64_t word = 0;
    TN_ASSERT(f->hashes <= HASHES_MAX && f->lines > 0 && last <= UINT8_MAX);
    for (uint32_t i = 0; i < f->hashes; i++) {
        word = i % 8 == 0 ? hash_of(key, 1 + i / 8) : word >> 8;
        const uint32_t place = (uint32_t)word & last;
        p->byte[i] = place >> log2_per_byte;
        p->shift[i] = (place & ((1U << log2_per_byte) - 1)) << log2_bits;
    }
}

uint32_t tn_key_filter_count(const tn_key_filter *f, const uint8_t *at, uint64_t key)
{
    const uint8_t *line = at + (size_t)tn_key_filter_line(f, key) * TN_KEY_FILTER_LINE;
    const uint32_t most = (1U << f->bits) - 1;
    uint32_t least = most;
    places p;
    find_places(f, key, &p);
    for (uint32_t i = 0; i < f->hashes; i++) {
        const uint32_t count = (uint32_t)line[p.byte[i]] >> p.shift[i] & most;
        least = count < least ? count : least;
    }
    return least;
}

uint32_t tn_key_filter_add(const tn_key_filter *f, uint8_t *at, uint64_t key, uint32_t n)
{
    uint8_t *line = at + (size_t)tn_key_filter_line(f, key) * TN_KEY_FILTER_LINE;
    const uint32_t most = (1U << f->bits) - 1;
    uint32_t raised = 0;
    places p;
    find_places(f, key, &p);
    for (uint32_t i = 0; i < f->hashes; i++) {
        const uint32_t byte = line[p.byte[i]];
        const uint32_t count = byte >> p.shift[i] & most;
        const uint32_t more = n < most - count ? count + n : most;
        line[p.byte[i]] = (uint8_t)((byte & ~(most << p.shift[i])) | more << p.shift[i]);
        raised += count == 0;
    }
    return raised;
}

uint32_t tn_key_filter_raised(const tn_key_filter *f, const uint8_t *at)
{
    const size_t bytes = tn_key_filter_bytes(f);
    const uint64_t lowest = UINT64_MAX / ((UINT64_C(1) << f->bits) - 1); /* bit of each counter */
    uint32_t raised = 0;
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) { /* a line holds whole words */
        uint64_t word = 0;
        memcpy(&word, at + i, sizeof word);
        for (uint32_t k = 1; k < f->bits; k *= 2) {
            word |= word >> k;
        }
        raised += (uint32_t)__builtin_popcountll(word & lowest);
    }
    return raised;
}

bool tn_key_filter_is_overfull(const tn_key_filter *f, uint32_t raised)
{
    const size_t counters = (size_t)f->lines * (LINE_BITS / f->bits);
    return raised > f->full * (double)counters;
}

void tn_key_filter_age(const tn_key_filter *f, uint8_t *at)
{
    const size_t bytes = tn_key_filter_bytes(f);
    const uint32_t low = f->bits == 2 ? 0x55 : f->bits == 4 ? 0x77 : 0x7f; /* bits that stay */
    for (size_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)((uint32_t)at[i] >> 1 & low);
    }
}
