/* ordered_work.h - pieces of work that a team does side by side, and whose results it puts together
 * in the order of the pieces.
 *
 *     one thread    make 0  join 0  make 2           make 3  ..
 *     another       make 1           join 1  join 2  make 4  ..
 *
 *     tn_inorder how = {.job = me, .n = 1024, .hand_bytes = sizeof(hand),
 *                       .make = pack, .join = put, .drop = drop};
 *     TN_TRY(tn_inorder_run(&how, team, err));
 *
 * `make` runs on any thread, several at once, on pieces in about ascending order. `join` runs on
 * any thread, one at a time and ascending, so that what joins write is the same on 1, 2 or 64
 * threads. No thread waits for a piece that is not made yet. When making is TN_INORDER_AHEAD pieces
 * ahead of joining, makers wait for the joins that are under way.
 *
 * `make` passes its result to `join` in a hand: memory that is zero at first and is reused for
 * later pieces, so that they find the buffers of earlier ones. There is a hand per piece under way:
 * one for a thread alone, at most TN_INORDER_AHEAD. run() owns the hands and calls `drop` before it
 * frees them.
 *
 * run() reports the first fault in the order of the pieces, not in time, and joins no piece after
 * it.
 */
#pragma once

#include "base/core/error.h"
#include "base/thread/team.h"

#include <stddef.h>
#include <stdint.h>

enum { TN_INORDER_AHEAD = 16 };

typedef tn_status tn_inorder_fn(void *job, uint32_t piece, void *hand, tn_error *err);

typedef struct tn_inorder {
    void *job;
    uint32_t n; /* pieces */
    size_t hand_bytes;
    tn_inorder_fn *make, *join;
    void (*drop)(void *hand); /* frees what it holds; NULL: nothing */
} tn_inorder;

/* A NULL team is the calling thread alone. TN_E_MEMORY when there is no room for a hand, else what
 * make or join said. */
tn_status tn_inorder_run(const tn_inorder *how, tn_team *team, tn_error *err) TN_MUST_USE;
