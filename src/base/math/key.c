/* key.c - XXH64, after its public specification. */
#include "base/math/key.h"

#include "base/core/bytes.h"

#include <string.h>

#define PRIME1 UINT64_C(0x9e3779b185ebca87)
#define PRIME2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define PRIME3 UINT64_C(0x165667b19e3779f9)
#define PRIME4 UINT64_C(0x85ebca77c2b2ae63)
#define PRIME5 UINT64_C(0x27d4eb2f165667c5)

enum { STRIPE = 32, LANES = 4 };

static inline uint64_t rotate(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static inline uint64_t round_of(uint64_t lane, uint64_t input)
{
    return rotate(lane + input * PRIME2, 31) * PRIME1;
}

static inline uint64_t merge(uint64_t h, uint64_t lane)
{
    return (h ^ round_of(0, lane)) * PRIME1 + PRIME4;
}

/* Eats whole stripes from the front of `in`, four lanes side by side. */
static uint64_t eat_stripes(tn_bytes *in, uint64_t seed)
{
    uint64_t lane[LANES] = {seed + PRIME1 + PRIME2, seed + PRIME2, seed, seed - PRIME1};
    while (in->size >= STRIPE) {
        for (int i = 0; i < LANES; i++) {
            lane[i] = round_of(lane[i], tn_get_u64(in));
        }
    }
    uint64_t h =
        rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
    for (int i = 0; i < LANES; i++) {
        h = merge(h, lane[i]);
    }
    return h;
}

/* Eats the last 0 to 31 bytes. */
static uint64_t eat_tail(tn_bytes *in, uint64_t h)
{
    while (in->size >= sizeof(uint64_t)) {
        h = rotate(h ^ round_of(0, tn_get_u64(in)), 27) * PRIME1 + PRIME4;
    }
    if (in->size >= sizeof(uint32_t)) {
        h = rotate(h ^ (tn_get_u32(in) * PRIME1), 23) * PRIME2 + PRIME3;
    }
    while (in->size > 0) {
        h = rotate(h ^ (tn_get_u8(in) * PRIME5), 11) * PRIME1;
    }
    return h;
}

uint64_t tn_xxh64(const void *data, size_t size, uint64_t seed)
{
    tn_bytes in = {data, size, false};
    uint64_t h = size >= STRIPE ? eat_stripes(&in, seed) : seed + PRIME5;
    h = eat_tail(&in, h + size);
    h = (h ^ (h >> 33)) * PRIME2;
    h = (h ^ (h >> 29)) * PRIME3;
    return h ^ (h >> 32);
}

uint64_t tn_salt(const char *group)
{
    return tn_xxh64(group, strlen(group), 0);
}
