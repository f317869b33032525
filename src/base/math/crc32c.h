/* crc32c.h - CRC-32C (Castagnoli): reflected polynomial 0x82f63b78, start and final xor ~0.
 *
 * Uses the CPU's instruction where there is one (chosen at run time), slicing-by-8 tables
 * elsewhere.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the crc of `size` bytes after others whose crc was `crc` (0 at the start). */
uint32_t tn_crc32c(uint32_t crc, const void *data, size_t size);

/* The portable version, for the test that both agree. */
uint32_t tn_crc32c_portable(uint32_t crc, const void *data, size_t size);

/* Returns TFRecord's masked form. */
static inline uint32_t tn_crc_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}
