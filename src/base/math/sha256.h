/* sha256.h - SHA-256 (FIPS 180-4), for the config hash, model ids and structure hashes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct tn_sha256 {
    uint32_t state[8];
    uint64_t size;
    uint8_t block[64];
} tn_sha256;

void tn_sha256_init(tn_sha256 *h);
void tn_sha256_add(tn_sha256 *h, const void *data, size_t size);
void tn_sha256_end(tn_sha256 *h, uint8_t digest[32]);
uint64_t tn_sha256_end64(tn_sha256 *h); /* its first 8 bytes; as 16 hex digits in their order */

/* Write 64 lower-case digits and a NUL to `out`: of a digest, and of the hash of `data`. */
void tn_sha256_hex(const uint8_t digest[32], char out[65]);
void tn_sha256_hex_of(const void *data, size_t size, char out[65]);
