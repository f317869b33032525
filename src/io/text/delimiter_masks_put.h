/* delimiter_masks_put.h - from the bits of a mask to their places, for sets without an instruction
 * for it. */
#ifndef TN_IO_DELIMITER_MASKS_PUT_H
#define TN_IO_DELIMITER_MASKS_PUT_H

#include <stdint.h>

/* Always 16 places, as a branch per place would be guessed wrong; few looks hold more. */
static inline uint16_t *tn_marks_put(uint16_t *to, uint64_t mask, uint32_t base)
{
    enum { AT_ONCE = 16 };
    const uint64_t none = UINT64_C(1)
                          << 63; /* what is written behind the last bit does not count */
    uint32_t n = (uint32_t)__builtin_popcountll(mask);
    for (uint32_t done = 0;; done += AT_ONCE) {
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            to[done + i] = (uint16_t)(base + (uint32_t)__builtin_ctzll(mask | none));
            mask &= mask - 1;
        }
        if (done + AT_ONCE >= n) {
            return to + n;
        }
    }
}

#endif
