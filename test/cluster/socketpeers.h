/* socketpeers.h - peers with real sockets in one process, for tests of admission and of links. */
#pragma once

#include "cluster/net/sockets.h"

enum { PEERS_SLICE_MS = 10, PEERS_DEADLINE_MS = 60000 };

/* One process: its sockets, and whom it lets in. */
typedef struct peer {
    tn_security security;
    tn_sockets *sockets;
    void *router, *dealer;
    char at[TN_ENDPOINT_SIZE];
} peer;

/* What came to a ROUTER or, without an id, to a DEALER. */
typedef struct received {
    uint8_t id[32];
    size_t id_size;
    char text[64];
    uint32_t whose;
    bool admitted;
} received;

/* Opens the sockets of a rank in a group of 4; its incarnation is 0xabcdef + rank. */
void peers_open(peer *p, uint32_t rank, const tn_security_opts *opts);
/* p->router at that address, p->at says where; then p->dealer to `to`. */
void peers_listen(peer *p, const tn_endpoint *e);
void peers_dial(peer *p, const peer *to, uint32_t rank);
void peers_dial_watched(peer *p, const peer *to, uint32_t rank, tn_handshake_watch *watch);
void peers_close(peer *p);

/* PEERS_DEADLINE_MS from now, of tn_clock_s. */
double peers_deadline(void);

/* Sends once the connection stands: IMMEDIATE makes sending before that fail. */
bool peers_send(void *socket, const char *text, double until_s);

/* False: nothing came in time. */
bool peers_receive(void *socket, bool has_id, received *out, double until_s);

/* Sends text and fails the test unless it arrives, from a connection of that rank. */
void peers_deliver(peer *from, peer *to, const char *text, uint32_t whose);
