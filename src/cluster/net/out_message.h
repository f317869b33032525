/* out_message.h - a message to be sent: header and payload in one piece, kept until it is no longer
 * needed.
 *
 *     tn_out_message_take(&m, pool, payload_bytes, err)      one reference, the caller's
 *     write the payload at tn_out_message_payload(m); fill m->frame
 *     tn_link_post or tn_link_answer (cluster/net/link.h)    passes that reference on
 *
 * A request is kept until it is acknowledged and may lie with the transport more than once, which
 * sends large messages from where they lie; each holds a reference. Buffers come in powers of two
 * and go back to the pool with the last reference, so a steady run allocates nothing. Any thread.
 */
#pragma once

#include "base/core/error.h"
#include "cluster/net/retransmit.h"
#include "cluster/wire/frame.h"

#include <stdatomic.h>

typedef struct tn_out_messages tn_out_messages;

typedef struct tn_out_message {
    tn_frame frame; /* all but job, session, incarnation, rank and, of requests, sequence: link */
    uint32_t to;    /* rank; set by the link, as are these */
    uint64_t to_incarnation; /* for an answer, that of its request; else 0 */
    bool sealed;
    tn_retransmit_request request;
    struct tn_out_message *next; /* in whatever list it is */
    tn_out_messages *pool;
    _Atomic uint32_t references;
    uint32_t bin;
    char bytes[]; /* header and payload */
} tn_out_message;

tn_status tn_out_messages_new(tn_out_messages **out, tn_error *err) TN_MUST_USE;
/* Frees the pool, to which every message must have come back. NULL is fine. */
void tn_out_messages_free(tn_out_messages *pool);

/* Takes a message. frame.bytes is `payload`; the rest of the frame is 0. TN_E_MEMORY; TN_E_LIMIT:
 * over 1 GiB. */
tn_status tn_out_message_take(tn_out_message **out, tn_out_messages *pool, uint64_t payload,
                              tn_error *err) TN_MUST_USE;

static inline char *tn_out_message_payload(tn_out_message *p)
{
    return p->bytes + TN_FRAME_HEAD;
}

void tn_out_message_hold(tn_out_message *p);
void tn_out_message_drop(tn_out_message *p); /* NULL is fine */
