/* sockets.h - the sockets of a peer, with every option that matters set; docs/cluster.md has why.
 *
 *     tn_sockets *s;
 *     TN_TRY(tn_sockets_open(&s, &z, &opts, err));                 a context and its ZAP handler
 *     TN_TRY(tn_sockets_listen(s, &own, &router, bound, err));     bound: "tcp://10.1.0.7:41234"
 *     TN_TRY(tn_sockets_dial(s, 3, &address_of_3, NULL, &dealer, err));
 *     ..
 *     tn_sockets_hang_up(s, dealer);  tn_sockets_hang_up(s, router);
 *     tn_sockets_close(s);
 *
 * No call on these sockets waits: both timeouts are 0, zmq_poll() has the deadline. All functions
 * belong to one thread, and a context does not survive a fork.
 *
 * An address that other machines can reach needs keys or a list of trusted networks. Over TCP all
 * peers of a group with keys speak CURVE; ipc never does: there the user is checked.
 */
#pragma once

#include "cluster/launch/endpoint.h"
#include "cluster/net/zap.h"

enum {
    TN_ROUTING_ID = 13,              /* bytes: 'T', u32 rank, u64 incarnation, little-endian */
    TN_MESSAGE_BYTES_MAX = 64 << 20, /* bound of one message, unless said otherwise */
};

typedef struct tn_sockets_opts {
    uint32_t rank, size;
    uint64_t incarnation;
    uint64_t max_msg_bytes;      /* longer ones end their connection; 0: TN_MESSAGE_BYTES_MAX */
    const tn_security *security; /* must outlive the sockets */
} tn_sockets_opts;

typedef struct tn_sockets tn_sockets;

/* Opens a context. TN_E_PEER: no context, no thread. */
tn_status tn_sockets_open(tn_sockets **out, const tn_zmq *z, const tn_sockets_opts *opts,
                          tn_error *err) TN_MUST_USE;
/* Closes the context. Every socket must have been hung up. NULL is fine. */
void tn_sockets_close(tn_sockets *s);

/* Opens a ROUTER at `own`, a number or ipc (cluster/launch/interfaces.h makes numbers of names),
 * whose folder is made. Port 0 is a free one that the system chooses: `bound` says which.
 * TN_E_CONFIG: an open address without security; TN_E_PEER: taken, or not this machine's. */
tn_status tn_sockets_listen(tn_sockets *s, const tn_endpoint *own, void **router,
                            char bound[TN_ENDPOINT_SIZE], tn_error *err) TN_MUST_USE;

/* ---- events of a socket: its connections and handshakes, as libzmq reports them ----
 *
 * Zeros to begin with. One call at a time. */

typedef struct tn_socket_events {
    tn_zmq z;
    void *of, *pair; /* pair: libzmq reports on it */
} tn_socket_events;

/* Opens a watch. `wanted`: some of ZMQ_EVENT_*, but not HANDSHAKE_FAILED_PROTOCOL: while libzmq
 * reports with it that a message cannot be decrypted, it loses the errno that says so. The
 * connection then stays, deaf, and a later heartbeat aborts the process (Assertion failed:
 * !_io_error). Returns false when libzmq refuses; errno says why. */
bool tn_socket_events_open(tn_socket_events *e, const tn_zmq *z, void *context, void *of,
                           int wanted) TN_MUST_USE;
/* Closes a watch, before the socket is closed; after a failure to open, too, and of zeros. */
void tn_socket_events_close(tn_socket_events *e);

/* Receives the next event, with a descriptor or a reason. Returns false when there is none. */
bool tn_socket_events_next(tn_socket_events *e, uint16_t *what, uint32_t *value);

/* ---- the connection of a socket that has dialled ----
 *
 * Over CURVE a peer with a wrong key gets no message at all: only libzmq knows why, and reports it
 * as events of the socket. After a protocol error, such as a byte that the network has changed, it
 * does not connect again. Zeros: nothing is watched. One call at a time. */

typedef enum tn_handshake {
    TN_HANDSHAKE_NONE,    /* nobody has answered yet */
    TN_HANDSHAKE_DONE,    /* let in */
    TN_HANDSHAKE_REFUSED, /* the key of this peer is not on the list there */
    TN_HANDSHAKE_BROKEN,  /* the other end hung up: its key is not the expected one */
} tn_handshake;

typedef struct tn_handshake_watch {
    tn_socket_events events; /* to be closed before the socket is */
    tn_handshake last;
    bool is_over; /* the connection has ended, and libzmq does not connect again */
} tn_handshake_watch;

/* Returns how the last handshake ended. A connection that is over may be for a moment only. */
tn_handshake tn_handshake_watch_poll(tn_handshake_watch *g);

/* Returns the sentence for people; NULL: nothing is wrong. */
const char *tn_handshake_text(tn_handshake how);

/* ---- connecting ---- */

/* Opens a DEALER that connects to `rank` now or later, again and again. `watch`, unless NULL,
 * becomes a watch over its connection from before it connects. TN_E_CONFIG: as above, or no key of
 * that rank. On failure *dealer is NULL and *watch zeros. */
tn_status tn_sockets_dial(tn_sockets *s, uint32_t rank, const tn_endpoint *to,
                          tn_handshake_watch *watch, void **dealer, tn_error *err) TN_MUST_USE;

/* Connects a DEALER again whose connection is over. */
void tn_sockets_dial_again(const tn_sockets *s, void *dealer, tn_handshake_watch *watch);

/* Closes a socket; messages that do not leave within 200 ms are dropped. NULL is fine. */
void tn_sockets_hang_up(tn_sockets *s, void *socket);

void *tn_sockets_context(const tn_sockets *s);     /* for inproc sockets; lent */
const tn_zap *tn_sockets_zap(const tn_sockets *s); /* for its counters; lent */

/* Write and read the routing id of a peer. Return false for an id that is not that of a peer. */
void tn_routing_id(uint32_t rank, uint64_t incarnation, uint8_t out[TN_ROUTING_ID]);
bool tn_routing_id_read(const void *id, size_t size, uint32_t *rank, uint64_t *incarnation);
