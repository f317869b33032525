/* row.h - one row of the table as it lies in memory.
 *
 *     0    8     12     14       16    20     24    26     28
 *     key  seen  group  present  show  click  show  click  data: per segment w, then each state
 *                                '- high 32 -''- 16 more bits of a double -'
 *
 * 28 bytes, so that eight weights and one sum of squares make a cache line. Counts are doubles cut
 * to 37 bits of mantissa: whole numbers are exact up to 1.3e11. `seen` is the day of the last touch
 * in 24 bits and, above them, the stamp of the time between two cuts in which that was
 * (ps/changes.h).
 */
#ifndef TN_PS_ROW_H
#define TN_PS_ROW_H

#include <stdint.h>
#include <string.h>

typedef struct tn_row {
    uint32_t key_low, key_high;
    uint32_t seen;
    uint16_t group, present;
    uint32_t show_high, click_high;
    uint16_t show_low, click_low;
    float data[];
} tn_row;

_Static_assert(sizeof(tn_row) == 28, "the header of a row");

static inline uint64_t tn_row_key(const tn_row *row)
{
    return (uint64_t)row->key_high << 32 | row->key_low;
}

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

enum { TN_ROW_DAY_BITS = 24, TN_ROW_DAY_MAX = (1 << TN_ROW_DAY_BITS) - 1, TN_ROW_STAMP_MAX = 255 };

static inline uint32_t tn_row_day(const tn_row *row)
{
    return row->seen & TN_ROW_DAY_MAX;
}

static inline uint32_t tn_row_stamp(const tn_row *row)
{
    return row->seen >> TN_ROW_DAY_BITS;
}

static inline void tn_row_set_stamp(tn_row *row, uint32_t stamp)
{
    row->seen = stamp << TN_ROW_DAY_BITS | tn_row_day(row);
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
