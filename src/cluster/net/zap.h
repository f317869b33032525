/* zap.h - the door of a ZeroMQ context: a thread that answers who may come in.
 *
 *     z.zmq_ctx_new() ── tn_zap_open() ── data sockets ── .. ── tn_zap_close() ── z.zmq_ctx_term()
 *
 * libzmq asks at inproc://zeromq.zap.01 before it hands a single byte of a new connection on to
 * the ROUTER that was dialled. What comes back to a DEALER is looked at message by message.
 * Without anybody there it lets everybody in, so the door is open before the first data socket is
 * made and until the last one is closed. The rules are zaprules.h. Who is refused is counted, and
 * told in the log once a minute and reason.
 */
#ifndef TN_CLUSTER_ZAP_H
#define TN_CLUSTER_ZAP_H

#include "cluster/security/zaprules.h"
#include "cluster/security/zmqcalls.h"

typedef struct tn_zap tn_zap;

/* `context` and what `rules` names must outlive it. Returns when requests are being answered.
 * TN_E_PEER: the context has a handler already. */
tn_status tn_zap_open(tn_zap **out, const tn_zmq *z, void *context, const tn_zap_rules *rules,
                      tn_error *err) TN_MUST_USE;
void tn_zap_close(tn_zap *zap); /* NULL is fine */

/* Requests so far by verdict; any thread. */
void tn_zap_counts(const tn_zap *zap, uint64_t out[TN_ZAP_VERDICTS]);

/* Whose connection a message came by: a rank, TN_RANK_ANY where any member may be meant. False: it
 * did not pass the door. */
bool tn_zap_sender(const tn_zmq *z, const zmq_msg_t *message, uint32_t *rank);

/* Whether a message that came by a connection that this process dialled is from somebody who would
 * be let in. There CURVE has seen to it that the other end has the key of the rank that was meant;
 * without keys the address decides, over ipc the user. */
bool tn_zap_is_dialled(const tn_zmq *z, const tn_zap_rules *rules, const zmq_msg_t *message);

#endif
