/* partition.h - one of the 1024 parts of the table: a lock and, per size of row, a shelf.
 *
 *     partition   lock | shelf of record 0: index, slab | shelf of record 1: index, slab | ..
 *
 * A row is known by (key, group). Everything here is guarded by the partition's lock. Who holds
 * several locks took them in ascending order.
 */
#ifndef TN_PS_PARTITION_H
#define TN_PS_PARTITION_H

#include "ps/table/index.h"

#include "base/core/alloc.h"

typedef struct tn_shelf {
    tn_index index;
    tn_slab slab;
    uint64_t *mark; /* a bit per row, for a sweep over the rows that a batch does not hold */
    uint32_t mark_words;
    bool marked; /* keep marks */
} tn_shelf;

typedef struct tn_partition {
    _Alignas(TN_CACHE_LINE) pthread_mutex_t lock;
    tn_shelf *shelf; /* one per record of the layout */
} tn_partition;

void tn_shelf_init(tn_shelf *s, uint32_t stride, bool marked);
void tn_shelf_clear(tn_shelf *s, tn_extents *e);

/* NULL: no such row. *number is written for a row. */
tn_row *tn_shelf_find(const tn_shelf *s, uint64_t key, uint16_t group, uint32_t *number);

/* A row for (key, group), which has none: its header is set, its data zero. */
tn_status tn_shelf_add(tn_shelf *s, tn_extents *e, uint64_t key, uint16_t group, tn_row **out,
                       tn_error *err) TN_MUST_USE;

/* The last row moves to where it was, so no other row's number changes. False: no such row. */
bool tn_shelf_remove(tn_shelf *s, uint64_t key, uint16_t group);

static inline void tn_shelf_mark(tn_shelf *s, uint32_t number)
{
    s->mark[number / 64] |= UINT64_C(1) << number % 64;
}

static inline bool tn_shelf_is_marked(const tn_shelf *s, uint32_t number)
{
    return (s->mark[number / 64] >> number % 64 & 1) != 0;
}

void tn_shelf_unmark(tn_shelf *s);

#endif
