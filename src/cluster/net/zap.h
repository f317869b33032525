/* zap.h - the ZAP handler of a ZeroMQ context (RFC 27): a thread that decides which connections
 * are let in.
 *
 *     z.zmq_ctx_new() ── tn_zap_open() ── data sockets ── .. ── tn_zap_close() ── z.zmq_ctx_term()
 *
 *     ipc         NULL      a process of the same user
 *     TCP         NULL      an address of the trusted networks; loopback when nothing is set
 *     TCP         CURVE     a key of the allow list; then the rank is known, too
 *     all else              nobody
 *
 * libzmq asks at inproc://zeromq.zap.01 before it hands a single byte of a new connection on to the
 * ROUTER that was dialled. What comes back to a DEALER is judged message by message. Without a
 * handler libzmq lets everybody in, so it is opened before the first data socket and closed after
 * the last one. Refused connections are counted, and logged once a minute and reason.
 *
 * A request is the frames version, id, domain, address, routing id, mechanism, credentials. libzmq
 * writes them, and puts into them what the other side sent: every byte is checked. The judgements
 * are pure functions, for any thread.
 */
#pragma once

#include "base/core/bytes.h"
#include "cluster/security/security.h"
#include "cluster/security/zmqcalls.h"

#define TN_ZAP_DOMAIN "tnet"

enum { TN_ZAP_FRAMES = 8 }; /* more than any request has */

typedef enum tn_zap_verdict {
    TN_ZAP_ADMITTED,
    TN_ZAP_MALFORMED, /* not a request as RFC 27 has it */
    TN_ZAP_FOREIGN,   /* a request of another domain */
    TN_ZAP_MECHANISM, /* PLAIN, or keys where none are used, or none where they are */
    TN_ZAP_USER,      /* ipc from another user */
    TN_ZAP_ADDRESS,   /* not of a trusted network */
    TN_ZAP_KEY,       /* not on the allow list */
    TN_ZAP_VERDICTS,
} tn_zap_verdict;

/* Returns the text for people: "the key is not on the list". */
const char *tn_zap_verdict_text(tn_zap_verdict v);

/* Judges a request. *rank is written when admitted: that of the key, or TN_RANK_ANY without one. */
tn_zap_verdict tn_zap_judge(const tn_security *s, const tn_bytes *frame, uint32_t n,
                            uint32_t *rank);

/* Judges the other end of a dialled connection by its address, as libzmq writes it. Over TCP with
 * keys it is let in: CURVE has checked that it holds the key of the rank that was dialled. */
tn_zap_verdict tn_zap_judge_dialled(const tn_security *s, const char *address);

typedef struct tn_zap tn_zap;

/* Begins to answer requests, and returns then. `context` and `security` must outlive it. TN_E_PEER:
 * the context has a handler already. */
tn_status tn_zap_open(tn_zap **out, const tn_zmq *z, void *context, const tn_security *security,
                      tn_error *err) TN_MUST_USE;

/* Shuts the context down: what is left to do with it is zmq_ctx_term. NULL is fine. */
void tn_zap_close(tn_zap *zap);

/* Requests so far by verdict; any thread. */
void tn_zap_counts(const tn_zap *zap, uint64_t out[TN_ZAP_VERDICTS]);

/* Finds the rank whose connection a message came by, or TN_RANK_ANY for any member. Returns false
 * when the handler has not judged it. */
bool tn_zap_sender(const tn_zmq *z, const zmq_msg_t *message, uint32_t *rank);

/* Returns whether a message that came by a connection that this process dialled may be trusted: as
 * tn_zap_judge_dialled says of its sender. */
bool tn_zap_is_dialled(const tn_zmq *z, const tn_security *s, const zmq_msg_t *message);
