/* row.h - one row of the table as it lies in memory.
 *
 *     0   8     12    16     20    22     24
 *     id  seen  show  click  show  click  data: per segment w, then each state
 *               '- high 32 -''- 16 more bits of a double -'
 *
 *     id    | low 54 bits of the key | low 10 bits of the group |
 *     seen  | stamp 7 | waits 1 | high 2 bits of the group | day 22 |
 *
 * The partition says the upper 10 bits of the key. 24 bytes, so that eight weights and one sum of
 * squares make a cache line. Counts are doubles cut to 37 bits of
 * mantissa: whole numbers are exact up to 1.3e11. `seen` holds the day of the last touch and the
 * stamp of the time between two cuts in which that was. A row that waits has only the segments that
 * keys have at once (base/keys/record.h), perhaps none, and lies in a slab of its own.
 */
#pragma once

#include "base/keys/keyspace.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    TN_ROW_PARTITION_BITS = 10,
    TN_ROW_GROUP_LOW_BITS = 10,
    TN_ROW_GROUP_LOW = (1 << TN_ROW_GROUP_LOW_BITS) - 1,
    TN_ROW_DAY_BITS = 22,
    TN_ROW_DAY_MAX = (1 << TN_ROW_DAY_BITS) - 1,
    TN_ROW_GROUP_HIGH = 3 << TN_ROW_DAY_BITS,
    TN_ROW_WAITS = 1 << 24,
    TN_ROW_KEPT = TN_ROW_GROUP_HIGH | TN_ROW_WAITS, /* bits that a touch leaves alone */
    TN_ROW_STAMP_SHIFT = 25,
    TN_ROW_STAMP_MAX = 127,
};

_Static_assert(TN_PARTITIONS == 1 << TN_ROW_PARTITION_BITS,
               "bits of a key that its row leaves out");
_Static_assert(TN_GROUPS_MAX <= 4 << TN_ROW_GROUP_LOW_BITS, "bits of a group in a row");

typedef struct tn_row {
    uint32_t id_low, id_high;
    uint32_t seen;
    uint32_t show_high, click_high;
    uint16_t show_low, click_low;
    float data[];
} tn_row;

_Static_assert(sizeof(tn_row) == 24, "the header of a row");

static inline uint64_t tn_row_id_of(uint64_t key, uint32_t group)
{
    return key << TN_ROW_PARTITION_BITS | (group & TN_ROW_GROUP_LOW);
}

static inline uint64_t tn_row_id(const tn_row *row)
{
    return (uint64_t)row->id_high << 32 | row->id_low;
}

static inline uint64_t tn_row_key(const tn_row *row, uint32_t partition)
{
    return (uint64_t)partition << (64 - TN_ROW_PARTITION_BITS) |
           tn_row_id(row) >> TN_ROW_GROUP_LOW_BITS;
}

static inline uint16_t tn_row_group(const tn_row *row)
{
    uint32_t high = (row->seen & TN_ROW_GROUP_HIGH) >> TN_ROW_DAY_BITS;
    return (uint16_t)(high << TN_ROW_GROUP_LOW_BITS | (row->id_low & TN_ROW_GROUP_LOW));
}

/* Whether it is the row of a key of its own partition. */
static inline bool tn_row_is(const tn_row *row, uint64_t key, uint32_t group)
{
    uint32_t high = group >> TN_ROW_GROUP_LOW_BITS << TN_ROW_DAY_BITS;
    return tn_row_id(row) == tn_row_id_of(key, group) && (row->seen & TN_ROW_GROUP_HIGH) == high;
}

/* Sets the key of a row that is zero. */
static inline void tn_row_set_id(tn_row *row, uint64_t key, uint32_t group)
{
    uint64_t id = tn_row_id_of(key, group);
    row->id_low = (uint32_t)id;
    row->id_high = (uint32_t)(id >> 32);
    row->seen = group >> TN_ROW_GROUP_LOW_BITS << TN_ROW_DAY_BITS;
}

static inline uint32_t tn_row_day(const tn_row *row)
{
    return row->seen & TN_ROW_DAY_MAX;
}

static inline uint32_t tn_row_stamp(const tn_row *row)
{
    return row->seen >> TN_ROW_STAMP_SHIFT;
}

static inline void tn_row_set_stamp(tn_row *row, uint32_t stamp)
{
    row->seen = stamp << TN_ROW_STAMP_SHIFT | (row->seen & (TN_ROW_KEPT | TN_ROW_DAY_MAX));
}

/* Both, leaving the group alone, and whether it waits. */
static inline void tn_row_set_seen(tn_row *row, uint32_t stamp, uint32_t day)
{
    row->seen = stamp << TN_ROW_STAMP_SHIFT | (row->seen & TN_ROW_KEPT) | day;
}

static inline bool tn_row_waits(const tn_row *row)
{
    return (row->seen & TN_ROW_WAITS) != 0;
}

/* Shortened doubles:  | high 32 | low 16 | 16 bits left out | */
static inline double tn_row_count(uint32_t high, uint16_t low)
{
    uint64_t bits = (uint64_t)high << 32 | (uint64_t)low << 16;
    double count;
    memcpy(&count, &bits, sizeof count);
    return count;
}

static inline void tn_row_set_count(double count, uint32_t *high, uint16_t *low)
{
    const uint64_t half = UINT64_C(1) << 15; /* half of the last bit that is kept */
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
