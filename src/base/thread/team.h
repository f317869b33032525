/* team.h - a few threads that share one piece of work, tile by tile.
 *
 * The work is cut by its size alone, never by the number of threads, and a tile
 * is done by one thread from start to end. So a tile's sums come out the same
 * whoever does it, and a run gives the same bits on 1, 2 or 64 threads.
 *
 *     tn_team_run(team, tn_tile_count(rows, 64), scale_tile, &job);
 *
 * Every thread begins with the same share of the tiles in each run, so tiles that are for the
 * same rows in two runs mostly meet the same cache; a thread that is done early helps the others.
 * Tiles of one run may not touch each other's output. run() returns when all are done, and
 * everything they wrote can then be read without a lock. A team belongs to one worker: only that
 * thread calls run().
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { TN_TEAM_THREADS_MAX = 1024 };

typedef struct tn_lane tn_lane;   /* base/trace/trace.h */
typedef struct tn_trace tn_trace; /* likewise */

typedef struct tn_team tn_team;
typedef void tn_tile_fn(void *job, uint32_t tile);
typedef bool tn_aside_fn(void *arg);

/* `threads` counts the caller of run(). On failure *out is NULL. */
tn_status tn_team_open(tn_team **out, uint32_t threads, tn_error *err) TN_MUST_USE;
void tn_team_close(tn_team *team); /* NULL is fine */

/* Keeps each thread to a processor of its own of those that the caller may use: the caller, who is
 * the one of run(), to the first of them until it closes the team, helpers to the next ones. What
 * tn_thread_start starts is kept to none; what others start within the caller is kept to its one.
 * TN_E_IO: there are fewer, or the system refuses. */
tn_status tn_team_pin(tn_team *team, tn_error *err) TN_MUST_USE;

/* From the next run on helpers have lanes in `trace`: the phase that the caller is in, while they
 * work on tiles of it, and waiting. Once, between two runs; `trace` must outlive the team. */
void tn_team_trace(tn_team *team, tn_trace *trace);

/* Returns the calling thread's lane; NULL when the team records nothing, or is NULL. */
tn_lane *tn_team_lane(const tn_team *team);

/* Calls work(job, 0) .. work(job, n_tiles - 1), each once, in any order.
 * A NULL team is the calling thread alone. */
void tn_team_run(tn_team *team, uint32_t n_tiles, tn_tile_fn *work, void *job);

/* Does the same for tiles of uneven size, the largest first: free threads begin them in ascending
 * order, so that at the end no thread waits for more than one small tile. */
void tn_team_run_in_order(tn_team *team, uint32_t n_tiles, tn_tile_fn *work, void *job);

/* Sets other work for helpers that find no tile: `aside` does a piece of it and returns whether
 * there was one. It may run in several helpers at once, beside a run too, and must not wait for
 * anything. NULL: none (the beginning). Returns when nobody is inside the one before. A NULL team
 * is fine. */
void tn_team_set_aside(tn_team *team, tn_aside_fn *aside, void *arg);

/* Hands over one piece of work that the next runs do not wait for: a helper that finds no tile does
 * it, or else the caller in settle, which returns when it is done; its results can be read then.
 * One at a time: settle before the next one. It must not call run. The team is not NULL. */
void tn_team_post(tn_team *team, tn_aside_fn *work, void *arg);
void tn_team_settle(tn_team *team); /* fine where nothing was posted */
