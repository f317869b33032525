/* flood_guard.h - cuts connections that send without end and never finish a message.
 *
 *     bytes that came, as the kernel counts them   ───┬───────────────┬────>
 *                                                     │   <= most     │
 *                               the last message was delivered        now: cut when it is more
 *
 * libzmq delivers a message with its last part, limits the size of each part and does not count
 * parts: one message that never ends fills the memory, and the receiver does not see it. So the
 * owner of a ROUTER learns from libzmq which connections it accepts, asks the kernel now and then
 * how many bytes each has received, and shuts down a connection that has sent more than a message
 * may have since its last message. Memory then grows by `most` and what arrives between two polls.
 *
 * Only over TCP: over ipc the kernel does not count, and the other side is the same user, who could
 * end this process as well. One thread.
 */
#pragma once

#include "cluster/security/zmqcalls.h"

#include <stdint.h>

typedef struct tn_flood_guard tn_flood_guard;

/* Connections that ended before they were let in or refused: ZAP (cluster/net/zap.h) never saw
 * them. */
typedef struct tn_flood_guard_failures {
    uint64_t n;
    const char *why; /* fault of the last one; static */
} tn_flood_guard_failures;

/* Connections that were accepted before are not watched. Context and router must outlive it.
 * TN_E_PEER: libzmq refuses. */
tn_status tn_flood_guard_open(tn_flood_guard **out, const tn_zmq *z, void *context, void *router,
                              uint64_t most, tn_error *err) TN_MUST_USE;
/* Closes the guard, before the router is closed. NULL is fine. */
void tn_flood_guard_close(tn_flood_guard *f);

/* Notes that the router delivered a message, or a part of one. */
void tn_flood_guard_received(tn_flood_guard *f, const zmq_msg_t *message);

/* Cuts connections that are over the limit; how many. To be called ten times a second. */
uint32_t tn_flood_guard_poll(tn_flood_guard *f);

/* Returns the failures as of the last look; the log has them once a minute at most, and at the
 * end. */
tn_flood_guard_failures tn_flood_guard_failed(const tn_flood_guard *f);

/* Connections that are watched, as of the last look. */
uint32_t tn_flood_guard_watched(const tn_flood_guard *f);
