/* allgather.h - numbers of all ranks at every rank: an allgather of doubles, by SHARE.
 *
 *     rank 0   x0 ──┐        x0 x1 x2
 *     rank 1   x1 ──┼──>     x0 x1 x2        every rank sends to every other: one way, no root
 *     rank 2   x2 ──┘        x0 x1 x2
 *
 * Every rank makes the same exchanges in the same order, each numbered by step and `code` (from 1
 * within a step; 0 is the norm of cluster/sync/sync_server.h). A rank may be one exchange ahead of
 * another, never two: it cannot finish the second before the other has begun it. So at most two
 * messages of a rank are kept, each until its exchange comes.
 *
 * Every rank adds the numbers up by itself in rank order, so all get the same bits.
 * tn_allgather_put is for tn-net, the rest for the worker.
 */
#pragma once

#include "base/core/arena.h"
#include "cluster/net/link.h"

typedef struct tn_allgather tn_allgather;

/* Makes it in the arena, which must outlive it. */
tn_allgather *tn_allgather_new(tn_arena *arena, uint32_t rank, uint32_t n_ranks);
void tn_allgather_free(tn_allgather *g); /* closes the messages that it has; NULL is fine */

/* Keeps a SHARE. False: two of that rank wait already; the message stays the caller's. */
bool tn_allgather_put(tn_allgather *g, tn_in_message *incoming);

/* Begins an exchange; own[n] is copied. TN_E_DIVERGED: one of them is not finite. */
tn_status tn_allgather_begin(tn_allgather *g, uint64_t step, uint32_t code, const double *own,
                             uint32_t n, tn_error *err) TN_MUST_USE;

/* Takes the messages of it that have come. TN_E_PEER: one does not fit. */
tn_status tn_allgather_poll(tn_allgather *g, tn_error *err) TN_MUST_USE;

/* Ranks whose numbers are there, the own one among them. */
const uint32_t *tn_allgather_count(const tn_allgather *g);

/* Returns 1 + the first rank whose numbers are missing; 0: none. */
uint32_t tn_allgather_waits_for(const tn_allgather *g);

/* Returns n numbers of each rank, in rank order; lent until the next begin. Once all are there. */
const double *tn_allgather_all(const tn_allgather *g);
