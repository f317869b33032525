/* linksend.c - a parcel as a message of ZeroMQ. */
#include "base/core/alloc.h"
#include "base/core/failpoint.h"
#include "cluster/net/linkstate.h"

#include <errno.h>
#include <string.h>

enum { COPIED_MAX = 64 << 10 }; /* bytes; longer messages are sent from where they lie */

void tn_parcel_list_add(tn_parcel_list *l, tn_parcel *p)
{
    p->next = NULL;
    if (l->first == NULL) {
        l->first = p;
    } else {
        l->last->next = p;
    }
    l->last = p;
}

tn_parcel *tn_parcel_list_take(tn_parcel_list *l)
{
    tn_parcel *p = l->first;
    TN_ASSERT(p != NULL);
    l->first = p->next;
    p->next = NULL;
    return p;
}

void tn_parcel_list_drop(tn_parcel_list *l)
{
    while (l->first != NULL) {
        tn_parcel_drop(tn_parcel_list_take(l));
    }
}

void tn_link_seal(tn_link *l, tn_parcel *p)
{
    if (p->sealed) {
        return;
    }
    p->frame.job = l->opts.job;
    p->frame.session = atomic_load(&l->session);
    p->frame.incarnation = l->opts.incarnation;
    p->frame.rank = l->opts.rank;
    tn_frame_seal(p->bytes, &p->frame);
    p->sealed = true;
}

/* ZeroMQ is done with the bytes. On a thread of its own. */
static void let_go(void *bytes, void *hint)
{
    (void)bytes;
    tn_parcel_drop(hint);
}

static bool wrap(const tn_link *l, tn_parcel *p, zmq_msg_t *m)
{
    const size_t size = TN_FRAME_HEAD + p->frame.bytes;
    if (size > COPIED_MAX) {
        tn_parcel_hold(p);
        if (l->z.zmq_msg_init_data(m, p->bytes, size, let_go, p) == 0) {
            return true;
        }
        tn_parcel_drop(p);
        return false;
    }
    if (l->z.zmq_msg_init_size(m, size) != 0) {
        return false;
    }
    memcpy(l->z.zmq_msg_data(m), p->bytes, size);
    return true;
}

static int retry(int n)
{
    return n < 0 && errno == EINTR;
}

/* The message is made first: once its id is out, it must follow. */
static tn_sent transmit(tn_link *l, void *socket, const uint8_t *id, tn_parcel *p)
{
    zmq_msg_t m;
    if (!wrap(l, p, &m)) {
        return TN_SENT_LATER; /* no memory just now */
    }
    int n = 0;
    while (id != NULL &&
           retry(n = l->z.zmq_send(socket, id, TN_ROUTING_ID, ZMQ_SNDMORE | ZMQ_DONTWAIT))) {
    }
    if (n >= 0) {
        while (retry(n = l->z.zmq_msg_send(&m, socket, ZMQ_DONTWAIT))) {
        }
    }
    if (n < 0) {
        int why = errno;
        (void)l->z.zmq_msg_close(&m);
        TN_ASSERT(why == EAGAIN || why == EHOSTUNREACH);
        return why == EAGAIN ? TN_SENT_LATER : TN_SENT_NEVER;
    }
    l->counts.messages_out++;
    l->counts.bytes_out += TN_FRAME_HEAD + p->frame.bytes;
    return TN_SENT;
}

/* As the net may do: "error" loses a message, "short" brings it twice. */
static tn_sent transmit_or_fail(tn_link *l, void *socket, const uint8_t *id, tn_parcel *p)
{
    const int fault = tn_failpoint(id == NULL ? "link.request" : "link.answer");
    if (fault != 0 && fault != TN_FAIL_SHORT) {
        return TN_SENT;
    }
    tn_sent sent = transmit(l, socket, id, p);
    return fault == 0 || sent != TN_SENT ? sent : transmit(l, socket, id, p);
}

tn_sent tn_link_send(tn_link *l, void *dealer, tn_parcel *p)
{
    return transmit_or_fail(l, dealer, NULL, p);
}

void tn_link_send_answer(tn_link *l, tn_parcel *p)
{
    uint8_t id[TN_ROUTING_ID];
    tn_routing_id(p->to, p->to_incarnation, id);
    tn_link_seal(l, p);
    if (transmit_or_fail(l, l->router, id, p) != TN_SENT) {
        l->counts.undeliverable++;
    }
    tn_parcel_drop(p);
}
