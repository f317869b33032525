/* link.h - the messages of a peer: one thread owns its sockets and all messages under way.
 *
 *     worker, shard ──post──> outbox ──> tn-net: sockets, retransmit ──> network
 *                                          │
 *     events, on tn-net  <─────────────────┘     requests to answer, replies to requests
 *
 * A request (frames.def) gets the next number of its destination, is kept until its reply comes,
 * and is retransmitted when that takes too long; its reply is delivered once. The receiver must
 * apply a request once (dedup.h): a duplicate is delivered again, so that it gets its reply again.
 * Other messages are sent once. A message that is damaged, of another job or session, or of a rank
 * other than the connection's is dropped, counted and logged.
 *
 * Events are called on tn-net and must not wait. Everything else: any thread, never waits.
 */
#pragma once

#include "cluster/net/flood_guard.h"
#include "cluster/net/out_message.h"
#include "cluster/net/sockets.h"

typedef struct tn_link tn_link;

/* A message that was received. Its receiver closes it, at any time, on any thread. */
typedef struct tn_in_message {
    tn_frame frame; /* payload: lent by the message */
    uint32_t from;  /* rank */
    zmq_msg_t message;
    __typeof__(&(zmq_msg_close)) close;
    struct tn_in_message *next; /* for its owner's lists */
} tn_in_message;
void tn_in_message_close(tn_in_message *incoming); /* NULL is fine */

typedef struct tn_link_events {
    void *arg;
    void (*request)(void *arg, tn_in_message *incoming); /* or a message without id */
    void (*answer)(void *arg, tn_in_message *incoming);
    void (*tick)(void *arg, uint64_t now_ns); /* ten times a second */
} tn_link_events;

typedef struct tn_link_opts {
    uint32_t rank, size;
    uint64_t job, incarnation;
    uint64_t
        retransmit_ns; /* until a request is sent again; 0: TN_RETRANSMIT_TIMEOUT_NS, a timer */
    const tn_security *security; /* must outlive the link */
    tn_link_events events;
} tn_link_opts;

/* Listens at `own` (cluster/net/sockets.h), whose address is in `bound` then, and starts the
 * thread. */
tn_status tn_link_open(tn_link **out, const tn_zmq *z, const tn_link_opts *opts,
                       const tn_endpoint *own, char bound[TN_ENDPOINT_SIZE],
                       tn_error *err) TN_MUST_USE;
/* Ends the thread; answers that were posted are still sent, what else was not sent is dropped.
 * Messages may be closed later. NULL is fine. */
void tn_link_close(tn_link *l);

/* Connects to a rank; messages may be posted before. TN_E_CONFIG: no key, or an open address. */
tn_status tn_link_dial(tn_link *l, uint32_t rank, const tn_endpoint *at, tn_error *err) TN_MUST_USE;

/* Answers of a rank count only if they are of this start of it: one that was started again has
 * none of what the one before acknowledged. 0 (the beginning): of any. */
void tn_link_expect(tn_link *l, uint32_t rank, uint64_t incarnation);

/* Sets the session of every message from now on; those of others are dropped. 0: there is none
 * yet. */
void tn_link_set_session(tn_link *l, uint64_t session);

/* Takes the message and the caller's reference. An answer goes to the rank and incarnation of its
 * request, whose sequence and step it repeats; the payload of `request` is not looked at. */
void tn_link_post(tn_link *l, uint32_t to, tn_out_message *outgoing);
void tn_link_answer(tn_link *l, const tn_frame *request, tn_out_message *outgoing);

typedef struct tn_link_counts {
    uint64_t bytes_out, bytes_in; /* over the network, repeats included */
    uint64_t repeated;            /* requests that were sent again */
    uint64_t dropped[TN_DROPS];
    uint64_t zap[TN_ZAP_VERDICTS];    /* connections of others, by verdict */
    uint64_t floods;                  /* connections that were cut: cluster/net/flood_guard.h */
    tn_flood_guard_failures failures; /* and those that were never let in */
    tn_handshake handshake;           /* handshakes of this peer by rank 0, over TCP with keys */
} tn_link_counts;
void tn_link_counts_of(tn_link *l, tn_link_counts *out);

/* Bytes of memory that a link has for each rank of the group. */
size_t tn_link_rank_bytes(void);

/* Requests to a rank that are not answered yet. */
uint32_t tn_link_open_requests(tn_link *l, uint32_t rank);
