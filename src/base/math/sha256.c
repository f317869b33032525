/* sha256.c - SHA-256 as in FIPS 180-4, section 6.2, names as there. */
#include "base/math/sha256.h"

#include "base/core/error.h"

#include <string.h>

enum { BLOCK = 64, ROUNDS = 64, LENGTH_AT = 56, WORDS = 8 };

static const uint32_t k[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static inline uint32_t rotr(uint32_t x, int n)
{
    return (x >> n) | (x << (32 - n));
}

static inline uint32_t load_be(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline void store_be(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (24 - 8 * i));
    }
}

static void schedule(uint32_t w[ROUNDS], const uint8_t *block)
{
    for (int t = 0; t < 16; t++) {
        w[t] = load_be(block + 4 * (ptrdiff_t)t);
    }
    for (int t = 16; t < ROUNDS; t++) {
        uint32_t s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
        uint32_t s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
}

static void compress(uint32_t state[WORDS], const uint8_t *block)
{
    uint32_t w[ROUNDS];
    uint32_t v[WORDS]; /* a .. h */
    schedule(w, block);
    memcpy(v, state, sizeof v);
    for (int t = 0; t < ROUNDS; t++) {
        uint32_t sum1 = rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + sum1 + choice + k[t] + w[t];
        uint32_t sum0 = rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, (WORDS - 1) * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + sum0 + majority;
    }
    for (int i = 0; i < WORDS; i++) {
        state[i] += v[i];
    }
}

void tn_sha256_init(tn_sha256 *h)
{
    *h = (tn_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                               0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void tn_sha256_add(tn_sha256 *h, const void *data, size_t size)
{
    TN_ASSERT(size == 0 || data != NULL);
    const uint8_t *at = data;
    while (size > 0) {
        size_t used = h->size % BLOCK;
        size_t part = size < BLOCK - used ? size : BLOCK - used;
        if (part == BLOCK) {
            compress(h->state, at);
        } else {
            memcpy(h->block + used, at, part);
            if (used + part == BLOCK) {
                compress(h->state, h->block);
            }
        }
        h->size += part;
        at += part;
        size -= part;
    }
}

void tn_sha256_end(tn_sha256 *h, uint8_t digest[32])
{
    static const uint8_t padding[BLOCK] = {0x80};
    uint64_t bits = h->size * 8;
    uint8_t length[8];
    store_be(length, (uint32_t)(bits >> 32));
    store_be(length + 4, (uint32_t)bits);
    size_t used = h->size % BLOCK;
    tn_sha256_add(h, padding, used < LENGTH_AT ? LENGTH_AT - used : BLOCK + LENGTH_AT - used);
    tn_sha256_add(h, length, sizeof length);
    TN_ASSERT(h->size % BLOCK == 0);
    for (int i = 0; i < WORDS; i++) {
        store_be(digest + 4 * (ptrdiff_t)i, h->state[i]);
    }
}

uint64_t tn_sha256_end64(tn_sha256 *h)
{
    uint8_t digest[32];
    tn_sha256_end(h, digest);
    return (uint64_t)h->state[0] << 32 | h->state[1];
}

void tn_sha256_hex(const uint8_t digest[32], char out[65])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < 32; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[64] = 0;
}

void tn_sha256_hex_of(const void *data, size_t size, char out[65])
{
    uint8_t digest[32];
    tn_sha256 h;
    tn_sha256_init(&h);
    tn_sha256_add(&h, data, size);
    tn_sha256_end(&h, digest);
    tn_sha256_hex(digest, out);
}
