/* greeting.h - whether the handshake of a connection that this peer made succeeded.
 *
 * Over CURVE a peer with a wrong key gets no message at all: only libzmq knows why, and reports it
 * as events of the socket. One call on a greeter at a time.
 */
#ifndef TN_CLUSTER_GREETING_H
#define TN_CLUSTER_GREETING_H

#include "cluster/security/zmqcalls.h"

typedef enum tn_greeting {
    TN_GREETING_NONE,    /* nobody has answered yet */
    TN_GREETING_DONE,    /* let in */
    TN_GREETING_REFUSED, /* the key of this peer is not on the list there */
    TN_GREETING_BROKEN,  /* the other end hung up: it has not the key that is expected of it */
} tn_greeting;

typedef struct tn_greeter tn_greeter;

/* Of a socket that has dialled; both must outlive it. TN_E_PEER: libzmq refuses. */
tn_status tn_greeter_open(tn_greeter **out, const tn_zmq *z, void *context, void *dealer,
                          tn_error *err) TN_MUST_USE;
/* Before the socket is closed. NULL is fine. */
void tn_greeter_close(tn_greeter *g);

/* How the last greeting ended. */
tn_greeting tn_greeter_poll(tn_greeter *g);

/* The sentence for people; NULL: nothing is wrong. */
const char *tn_greeting_text(tn_greeting how);

#endif
