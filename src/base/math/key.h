/* key.h - from a sign to a table key and back; from bytes to a sign.
 *
 * A raw value becomes a 64-bit sign: an integer as it is, bytes by XXH64 with
 * seed 0. The table key mixes the share group into the sign by a bijection, so
 * equal signs of two groups are different keys and the sign can be recovered:
 *
 *     salt = tn_xxh64(group name)      key = tn_mix(sign ^ salt)
 *                                      sign = tn_unmix(key) ^ salt
 *
 * Vectors: test/base/test_key.c. Pure functions, any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The finalizer of SplitMix64 (Steele 2014, Stafford's variant 13): a bijection. */
static inline uint64_t tn_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t tn_unmix(uint64_t z)
{
    z = (z ^ (z >> 31) ^ (z >> 62)) * UINT64_C(0x319642b2d24d8ec3);
    z = (z ^ (z >> 27) ^ (z >> 54)) * UINT64_C(0x96de1b173f119089);
    return z ^ (z >> 30) ^ (z >> 60);
}

/* Returns the XXH64 of the public xxHash specification. */
uint64_t tn_xxh64(const void *data, size_t size, uint64_t seed);

/* The salt of a row that belongs to no group: the sign of the empty text. */
#define TN_NO_GROUP UINT64_C(0xef46db3751d8e999)

/* Returns the XXH64, seed 0, of a share group's name. */
uint64_t tn_salt(const char *group);

static inline uint64_t tn_key_of(uint64_t sign, uint64_t salt)
{
    return tn_mix(sign ^ salt);
}

static inline uint64_t tn_sign_of(uint64_t key, uint64_t salt)
{
    return tn_unmix(key) ^ salt;
}
