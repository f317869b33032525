/* rowbits.h - numbers of a row that are no floats: shortened doubles, and words in a float's place.
 *
 *     double   | high 32 | low 16 | 16 bits left out |
 */
#ifndef TN_PS_ROWBITS_H
#define TN_PS_ROWBITS_H

#include <stdint.h>
#include <string.h>

static inline double tn_row_count(uint32_t high, uint16_t low)
{
    uint64_t bits = (uint64_t)high << 32 | (uint64_t)low << 16;
    double count;
    memcpy(&count, &bits, sizeof count);
    return count;
}

static inline void tn_row_set_count(double count, uint32_t *high, uint16_t *low)
{
    const uint64_t half = UINT64_C(1) << 15; /* of the last bit that is kept */
    uint64_t bits;
    memcpy(&bits, &count, sizeof bits);
    bits += half;
    *high = (uint32_t)(bits >> 32);
    *low = (uint16_t)(bits >> 16);
}

/* A word of state that counts updates, kept where a float would be. */
static inline uint32_t tn_row_word(const float *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static inline void tn_row_set_word(float *at, uint32_t word)
{
    memcpy(at, &word, sizeof word);
}

#endif
