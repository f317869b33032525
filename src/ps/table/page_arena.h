/* page_arena.h - the table's memory: big pieces from the system, cut up and never given back
 * singly.
 *
 *     extent 1 MB | extent 2 MB | .. | extent 64 MB | extent 64 MB      huge pages from 4 MB on
 *     '- cut ----------------------------------------'    '- untouched: costs no memory yet
 *
 * Fresh memory is zero. One counter knows every byte of the table, also of those that its owner
 * takes elsewhere and only charges here, so that whoever sets a limit can keep it. All functions
 * may run on several threads at once, but for init, done and clear.
 */
#ifndef TN_PS_PAGE_ARENA_H
#define TN_PS_PAGE_ARENA_H

#include "base/core/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_table_extent tn_table_extent;

typedef struct tn_extents {
    pthread_mutex_t lock; /* guards the next four */
    tn_table_extent *newest;
    char *at;
    size_t left;
    size_t next_size;
    bool huge_pages;
    uint64_t limit; /* what `used` is meant to stay below; 0: none. Set before there are threads. */
    _Atomic uint64_t used;
} tn_extents;

void tn_extents_init(tn_extents *e, bool huge_pages);
void tn_extents_done(tn_extents *e);
void tn_extents_clear(tn_extents *e); /* everything taken is gone */

/* Zeroed memory on a cache line. TN_E_MEMORY. */
tn_status tn_extents_take(tn_extents *e, size_t bytes, void **out, tn_error *err) TN_MUST_USE;

size_t tn_extents_next(tn_extents *e); /* bytes of the next piece */

/* Counts memory that comes from elsewhere. */
void tn_extents_charge(tn_extents *e, uint64_t bytes);
void tn_extents_refund(tn_extents *e, uint64_t bytes);

#endif
