/* http_server.h - sockets, connections and limits of the server, by libmicrohttpd.
 *
 *     one listening socket    (TCP or Unix)
 *       |    |    |
 *     worker worker worker    each an epoll loop in a thread of its own: it takes a connection,
 *                             reads a request, scores it and writes the answer; no hand-over
 *
 * The thread that runs the server looks after time alone: a request that is not whole after read_s
 * is answered with 408, whatever dribbles in, and after the signal to stop the server drains.
 * TLS is left to a proxy.
 */
#pragma once

#include "base/core/error.h"
#include "extra/http/service.h"

#include <stdatomic.h>

typedef struct tn_http_opts {
    const char *host;        /* an address or a name; NULL: all addresses */
    uint32_t port;           /* 0: any that is free */
    const char *unix_socket; /* a path in place of both; NULL: none */
    uint32_t workers;
    uint64_t body_max, header_max; /* bytes */
    uint32_t connections_max, queue_max;
    double keep_alive_s, read_s, drain_s;
} tn_http_opts;

/* Binds the socket, starts the workers and returns when `stop` was set and the last request is
 * answered: until a second went by without any, at most drain_s. Says in the log which address it
 * has. TN_E_IO: the address is taken or not ours. */
tn_status tn_http_serve(tn_service *service, const tn_http_opts *opts, const atomic_bool *stop,
                        tn_error *err) TN_MUST_USE;
