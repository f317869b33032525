/* shuffle_window.h - the rows that are held back to be permuted, and the blocks they lie in.
 *
 *     blocks    [r r r r] [r r r] [r r|r r]       the last one goes on in the next window
 *     order      5 0 6 2 8 1 3 7 4
 *
 * Rows are not moved: the window lists where they are, and permutes the list.
 */
#ifndef TN_IO_SHUFFLE_WINDOW_H
#define TN_IO_SHUFFLE_WINDOW_H

#include "io/read/blockparse.h"

/* A parsed block with what the later stages must know of where it comes from. */
typedef struct tn_work {
    tn_parsed parsed;
    tn_text packed;    /* the same for a binary cache, when one is made */
    uint64_t sequence; /* blocks leave in this order */
    uint64_t taken;    /* bytes off the disk */
    uint64_t passed;   /* damaged bytes */
    uint32_t file;
    bool last;            /* of its part */
    struct tn_work *next; /* in a list */
} tn_work;

typedef struct tn_pick {
    tn_work *work;
    uint32_t row;
    uint32_t index; /* in the window, before it was permuted */
} tn_pick;

typedef struct tn_shuffle_window {
    tn_pick *pick; /* n, in the order of the files */
    uint32_t n;
    uint32_t capacity;
    uint32_t *order; /* n: the order they leave in */
    uint32_t order_capacity;
} tn_shuffle_window;

void tn_shuffle_window_done(tn_shuffle_window *window);

/* Appends rows from .. to-1 of a block. */
tn_status tn_shuffle_window_add(tn_shuffle_window *window, tn_work *work, uint32_t from,
                                uint32_t to, tn_error *err) TN_MUST_USE;

/* Sets the order: as the rows are, or permuted by `stream` from its draw number `first` on. */
tn_status tn_shuffle_window_order(tn_shuffle_window *window, bool shuffle, uint64_t stream,
                                  uint64_t first, tn_error *err) TN_MUST_USE;

#endif
