/* endpoint.h - the address of a peer: written, read, judged.
 *
 *     gpu7:4770   tcp://10.1.0.7:4770   [fd00::7]:4770      over TCP
 *     ipc:///run/user/1000/tnet/0.sock                      a socket file of this host
 *
 * Names stay names: ZeroMQ looks them up when it connects, again and again while a name is not
 * known yet. Pure functions, any thread.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TN_ENDPOINT_SIZE = 300,  /* longest text and its NUL */
    TN_ENDPOINT_HOST = 256,  /* longest host name and its NUL */
    TN_ENDPOINT_PATH = 108,  /* longest path that a socket file can have, and its NUL */
    TN_ENDPOINT_PORT = 4770, /* port of an address without one */
};

typedef struct tn_endpoint {
    bool is_ipc;
    char host[TN_ENDPOINT_HOST]; /* TCP; IPv6 without its brackets; "*": every interface */
    uint32_t port;               /* TCP; 0: the system chooses when it is bound */
    char path[TN_ENDPOINT_PATH]; /* ipc */
} tn_endpoint;

/* Reads an address; `port` is taken where none is written. TN_E_CONFIG: neither host:port nor
 * ipc://path. */
tn_status tn_endpoint_read(const char *text, uint32_t port, tn_endpoint *out,
                           tn_error *err) TN_MUST_USE;

/* Writes it for ZeroMQ: "tcp://[fd00::7]:4770". */
void tn_endpoint_write(const tn_endpoint *e, char out[TN_ENDPOINT_SIZE]);

/* Returns whether nobody outside this host can reach it: ipc, 127.0.0.0/8, ::1, localhost. */
bool tn_endpoint_is_inside(const tn_endpoint *e);
