/* page_arena.h - the table's memory: big pieces from the system, never given back to it singly.
 *
 *     extent 1 MB | extent 2 MB | .. | extent 64 MB | extent 64 MB      huge pages from 4 MB on
 *     '- cut ----------------------------------------'    '- untouched: costs no memory yet
 *
 * What the table gives back is kept by its size and handed out again, before fresh memory. Memory
 * that is taken is zero. One counter holds all bytes of the table, also those that the table takes
 * from the heap and only charges here, so that a limit covers both. All functions may run on
 * several threads at once, except init, done and clear.
 */
#pragma once

#include "base/core/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_page_extent tn_page_extent;

enum {
    TN_PAGE_SIZES_MAX = 64
}; /* sizes of pieces that come back; more are lost until all is cleared */

/* Pieces of one size that nobody uses; the first bytes of each lead to the next. */
typedef struct tn_page_spare {
    size_t size;
    void *first;
} tn_page_spare;

typedef struct tn_page_arena {
    pthread_mutex_t lock; /* guards the next five */
    tn_page_spare spare[TN_PAGE_SIZES_MAX];
    tn_page_extent *newest;
    char *at;
    size_t left;
    size_t next_size;
    bool huge_pages;
    uint64_t limit; /* `used` should stay below it; 0: no limit. Set before there are threads. */
    _Atomic uint64_t used;
} tn_page_arena;

void tn_page_arena_init(tn_page_arena *e, bool huge_pages);
void tn_page_arena_done(tn_page_arena *e);
void tn_page_arena_clear(tn_page_arena *e); /* everything taken is gone */

/* Zeroed memory on a cache line. TN_E_MEMORY. */
tn_status tn_page_arena_take(tn_page_arena *e, size_t bytes, void **out, tn_error *err) TN_MUST_USE;

/* Takes back what was taken with so many bytes. */
void tn_page_arena_give(tn_page_arena *e, size_t bytes, void *piece);

size_t tn_page_arena_next(tn_page_arena *e); /* bytes of the next piece */

/* Counts memory that comes from elsewhere. */
void tn_page_arena_charge(tn_page_arena *e, uint64_t bytes);
void tn_page_arena_refund(tn_page_arena *e, uint64_t bytes);
