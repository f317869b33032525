/* sync_server.h - the owner's side at staleness 0: requests are decoded and kept, and answered when
 * the step of all ranks allows it.
 *
 *     tn-net   tn_sync_server_take: check, decode into buffers of the rank ──> inbox, wakeup
 *     worker   tn_sync_server_run:  inbox ──> cluster/sync/sync_step.h ──> replies: by the link, or
 *                                                                 by a call to the own rank
 *
 * Nothing is applied on the net thread: a step cannot end before the own rank has pushed, and then
 * its worker waits, so the worker and its team do the work. The worker passes requests of its own
 * rank to tn_sync_server_take, and gets their replies by a call.
 *
 * A request counts once (cluster/wire/dedup.h). A duplicate whose reply was lost gets one again: a
 * pull the same rows, a push the weights of today. While the worker rests the net thread replies,
 * since a rank that still waits for a reply cannot meet the others. Requests that are damaged or
 * not due are refused with the reason.
 */
#pragma once

#include "cluster/exchange/owner_messages.h"
#include "cluster/sync/sync_step.h"

typedef struct tn_sync_server tn_sync_server;

/* Sends a SHARE to every other owner; of code 0: this owner's part of the norm, squared. */
typedef tn_status tn_sync_share(void *arg, uint32_t code, const double *values, uint32_t n,
                                tn_error *err);

/* Makes a server. The exchange must outlive it. `share` gets the argument of `reply`. On failure
 * *out is NULL. */
tn_status tn_sync_server_new(tn_sync_server **out, const tn_exchange *x, const tn_reply_path *reply,
                             tn_sync_share *share, tn_error *err) TN_MUST_USE;
void tn_sync_server_free(tn_sync_server *s); /* NULL is fine */

/* Takes a PULL, PUSH or SHARE (of a norm) of a rank; the payload is not needed afterwards. Requests
 * of one rank come from one thread. */
void tn_sync_server_take(tn_sync_server *s, const tn_frame *frame);

/* Does what has become possible. TN_E_DIVERGED: the norm of a gradient is not finite, nothing was
 * changed, and all ranks are refused. TN_E_PEER: a rank broke the order of a step. */
tn_status tn_sync_server_run(tn_sync_server *s, tn_team *team, tn_error *err) TN_MUST_USE;

/* Rests between two steps, when all its own answers have come: until wake the worker does not call
 * run, and nothing writes the weights. */
tn_status tn_sync_server_rest(tn_sync_server *s, tn_team *team, tn_error *err) TN_MUST_USE;
void tn_sync_server_wake(tn_sync_server *s);

/* Bytes of memory for each rank of the group, buffers of its messages apart. */
size_t tn_sync_server_rank_bytes(void);

/* Returns 1 + the first rank whose request this owner waits for; 0: none. By the thread of
 * tn_sync_server_run. */
uint32_t tn_sync_server_waits_for(const tn_sync_server *s);
