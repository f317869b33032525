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
 * threads. Nobody waits for a piece that is not made yet, unless making is TN_INORDER_AHEAD pieces
 * ahead of joining: then for joins that are under way.
 *
 * What a make leaves to its join lies in a hand: memory that is zero at first and then as an
 * earlier piece left it, so buffers in it stay. There are as many hands as pieces are under way:
 * one for a thread alone, at most TN_INORDER_AHEAD. They belong to run(), which gives each to
 * `drop` before it is freed.
 *
 * The first fault in the order of the pieces is the one that is told, whoever sees one first; no
 * piece behind it is joined.
 */
#ifndef TN_BASE_ORDERED_WORK_H
#define TN_BASE_ORDERED_WORK_H

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

#endif
