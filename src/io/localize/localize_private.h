/* localize_private.h - the memory of a localizer; for io/localize*.c only. */
#ifndef TN_IO_LOCALIZE_PRIVATE_H
#define TN_IO_LOCALIZE_PRIVATE_H

#include "io/localize/localize.h"

#include <stddef.h>

enum { TN_KEY_TABLE_MIN = 64 };

/* Shows of a key in the lower half of a count, clicks in the upper one. */
#define TN_SHOWN UINT64_C(1)
#define TN_CLICKED (UINT64_C(1) << 32)

/* A cursor takes the place of a count: the key's position in the lower half, where its next
 * occurrence is listed in the upper one. */
enum { TN_CURSOR_NEXT = 32 };

struct tn_localizer {
    tn_localizer_opts opts;
    uint32_t *slot_of;    /* n_slots: slots in the order of their groups, used ones only */
    uint32_t *group_from; /* n_groups + 1: .. of group g */
    uint32_t *width;      /* n_groups: floats in a row */
    tn_bag *bag;          /* n_slots */
    uint32_t **index_at;  /* n_slots: the bag's index, to write */
    bool apart;           /* see tn_local */

    void *block; /* holds every array below; wide enough for keys_max and rows_max */
    uint32_t keys_max;
    uint32_t rows_max;
    uint32_t *table;      /* numbers, from 1; 0: free */
    uint64_t *seen;       /* keys_max + 1, by number: keys .. */
    uint64_t *count;      /* .. and how often they are there, later their cursors */
    uint16_t *seen_group; /* likewise */
    uint32_t *number_at;  /* position -> number */
    uint64_t *counts;     /* rows_max: what one of its keys adds to `count` */
    uint32_t *no_offset;  /* rows_max + 1 zeros, for slots that nobody takes */

    uint64_t *key; /* from here on, what `local` shows to the outside */
    uint16_t *group;
    uint32_t *at;
    uint32_t *show;
    uint32_t *click;
    uint32_t *index;
    uint32_t *occurrence_first;
    tn_occurrence *occurrence;
    uint32_t *first; /* n_partitions + 1 */
    uint32_t n;
    tn_local local;
};

/* Places for that many keys: a power of two, at most a quarter full: fewer
 * collisions are fewer wrong guesses of the processor. */
static inline size_t tn_key_table_size(uint32_t keys)
{
    size_t power = TN_KEY_TABLE_MIN;
    while (power / 4 < keys) {
        power *= 2;
    }
    return power;
}

/* Room for the batch; what is there is kept when it is enough. */
tn_status tn_localizer_make_room(tn_localizer *l, const tn_batch *batch, tn_error *err) TN_MUST_USE;

#endif
