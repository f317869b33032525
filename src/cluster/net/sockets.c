/* sockets.c - sockets of ZeroMQ with their options, keys and addresses; events of a DEALER, which
 * say how its handshake ended. */
#include "cluster/net/sockets.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/core/clock.h"
#include "base/thread/threads.h"
#include "cluster/launch/ipcdir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct tn_sockets {
    tn_zmq z;
    tn_sockets_opts opts;
    void *context;
    tn_zap *zap;
    uint32_t n_open; /* sockets that were not hung up */
    tn_lock *own;    /* lock of the ipc address; NULL: none */
};

enum { ROUTER = 1, DEALER = 2, BOTH = ROUTER | DEALER };

/* Options of type int. MAXMSGSIZE, the routing id, the domain and the keys follow by hand. */
static const struct {
    int option;
    int value;
    int on;
} options[] = {
    {ZMQ_LINGER, 0, BOTH},             /* -1 would hang at the end; answers say what arrived */
    {ZMQ_ROUTER_MANDATORY, 1, ROUTER}, /* else what cannot be sent is dropped in silence */
    {ZMQ_ROUTER_HANDOVER, 1, ROUTER},  /* a peer that returns is not kept out by its old self */
    {ZMQ_IMMEDIATE, 1, BOTH},          /* nothing is queued before there is a connection */
    {ZMQ_SNDHWM, 256, BOTH},           /* messages; our own caps are lower */
    {ZMQ_RCVHWM, 256, BOTH},           /* the same */
    /* Drop half-open connections, of a ROUTER, too, by the last. libzmq aborts when a heartbeat of
     * the ROUTER's own comes to a connection that another one has replaced and that has ended. */
    {ZMQ_HEARTBEAT_IVL, 2000, DEALER},     /* ms */
    {ZMQ_HEARTBEAT_TIMEOUT, 6000, DEALER}, /* ms */
    {ZMQ_HEARTBEAT_TTL, 6000, DEALER},     /* ms */
    {ZMQ_HANDSHAKE_IVL, 5000, BOTH},       /* ms; a slow handshake is none */
    {ZMQ_CONNECT_TIMEOUT, 2000, BOTH},     /* ms */
    {ZMQ_RECONNECT_IVL_MAX, 2000, BOTH},   /* ms; from 100 on, doubled */
    {ZMQ_SNDTIMEO, 0, BOTH},               /* never wait inside a call: poll, with a deadline */
    {ZMQ_RCVTIMEO, 0, BOTH},               /* the same */
    {ZMQ_BACKLOG, 1024, BOTH},             /* all peers of a large group may come at once */
};

static tn_status failed(const tn_sockets *s, const char *what, tn_error *err)
{
    return tn_fail(err, TN_E_PEER, "cannot %s: %s", what, s->z.zmq_strerror(errno));
}

void tn_routing_id(uint32_t rank, uint64_t incarnation, uint8_t out[TN_ROUTING_ID])
{
    out[0] = 'T'; /* 0 is for ids that libzmq makes up */
    tn_store_u32(out + 1, rank);
    tn_store_u64(out + 5, incarnation);
}

bool tn_routing_id_read(const void *id, size_t size, uint32_t *rank, uint64_t *incarnation)
{
    const uint8_t *at = id;
    if (size != TN_ROUTING_ID || at[0] != 'T') {
        return false;
    }
    *rank = tn_load_u32(at + 1);
    *incarnation = tn_load_u64(at + 5);
    return true;
}

static tn_status open_context(tn_sockets *s, tn_error *err)
{
    bool keys = s->opts.security->kind == TN_SECURITY_CURVE;
    int sockets = (int)(4 * s->opts.size + 64);
    int threads = keys ? 2 : 1; /* one encrypts 185 MB/s */
    /* libzmq aborts when its threads cannot be started, these and one that closes sockets */
    TN_TRY(tn_threads_need((uint32_t)threads + 1, "ZeroMQ", err));
    s->context = s->z.zmq_ctx_new();
    if (s->context == NULL || s->z.zmq_ctx_set(s->context, ZMQ_IO_THREADS, threads) != 0 ||
        s->z.zmq_ctx_set(s->context, ZMQ_MAX_SOCKETS, sockets) != 0) {
        return failed(s, "start ZeroMQ", err);
    }
    return TN_OK;
}

void tn_sockets_close(tn_sockets *s)
{
    if (s == NULL) {
        return;
    }
    TN_ASSERT(s->n_open == 0); /* zmq_ctx_term() would wait for them */
    tn_zap_close(s->zap);
    while (s->context != NULL && s->z.zmq_ctx_term(s->context) != 0 && errno == EINTR) {
    }
    tn_lock_release(s->own); /* the file of the socket is gone now */
    tn_free(s);
}

tn_status tn_sockets_open(tn_sockets **out, const tn_zmq *z, const tn_sockets_opts *opts,
                          tn_error *err)
{
    *out = NULL;
    tn_sockets *s = NULL;
    TN_TRY(TN_ALLOC(s, 1, "sockets", err));
    s->z = *z;
    s->opts = *opts;
    if (s->opts.max_msg_bytes == 0) {
        s->opts.max_msg_bytes = TN_MESSAGE_BYTES_MAX;
    }
    tn_status status = open_context(s, err);
    if (status == TN_OK) {
        status = tn_zap_open(&s->zap, z, s->context, opts->security, err);
    }
    if (status != TN_OK) {
        tn_sockets_close(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

void *tn_sockets_context(const tn_sockets *s)
{
    return s->context;
}

const tn_zap *tn_sockets_zap(const tn_sockets *s)
{
    return s->zap;
}

/* A closed socket still sends for so long; the rest is dropped. */
static const int last_ms = 200;

void tn_sockets_hang_up(tn_sockets *s, void *socket)
{
    if (socket != NULL) {
        TN_ASSERT(s->n_open > 0);
        (void)s->z.zmq_setsockopt(socket, ZMQ_LINGER, &last_ms, sizeof last_ms);
        int closed = s->z.zmq_close(socket);
        TN_ASSERT(closed == 0);
        s->n_open--;
    }
}

static tn_status set(const tn_sockets *s, void *socket, int option, const void *value, size_t size,
                     tn_error *err)
{
    return s->z.zmq_setsockopt(socket, option, value, size) == 0
               ? TN_OK
               : tn_fail(err, TN_E_PEER, "ZeroMQ refuses option %d: %s", option,
                         s->z.zmq_strerror(errno));
}

static tn_status set_options(const tn_sockets *s, void *socket, int role, bool v6, tn_error *err)
{
    const int64_t bytes_max = (int64_t)s->opts.max_msg_bytes;
    const int on = v6 ? 1 : 0;
    uint8_t id[TN_ROUTING_ID];
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if ((options[i].on & role) != 0) {
            TN_TRY(set(s, socket, options[i].option, &options[i].value, sizeof(int), err));
        }
    }
    tn_routing_id(s->opts.rank, s->opts.incarnation, id);
    TN_TRY(set(s, socket, ZMQ_ROUTING_ID, id, sizeof id, err));
    TN_TRY(set(s, socket, ZMQ_MAXMSGSIZE, &bytes_max, sizeof bytes_max, err));
    TN_TRY(set(s, socket, ZMQ_IPV6, &on, sizeof on, err));
    /* A DEALER does not use the ZAP handler (zap.h, tn_zap_is_dialled): libzmq keeps one pipe to
     * the handler for all connections of a DEALER, and 4.3.4 aborts the process when a reply for a
     * broken connection arrives during the handshake of the next one. */
    return role == DEALER
               ? TN_OK
               : set(s, socket, ZMQ_ZAP_DOMAIN, TN_ZAP_DOMAIN, sizeof TN_ZAP_DOMAIN - 1, err);
}

/* Sets the keys of CURVE; `rank`: whose key the other end of a DEALER must have. */
static tn_status set_keys(const tn_sockets *s, void *socket, int role, uint32_t rank, tn_error *err)
{
    const tn_security *security = s->opts.security;
    const int yes = 1;
    if (role == ROUTER) {
        TN_TRY(set(s, socket, ZMQ_CURVE_SERVER, &yes, sizeof yes, err));
    } else {
        uint8_t theirs[TN_CURVE_BYTES];
        TN_TRY(tn_allow_key_of(security->allow, rank, theirs, err));
        TN_TRY(set(s, socket, ZMQ_CURVE_SERVERKEY, theirs, sizeof theirs, err));
        TN_TRY(set(s, socket, ZMQ_CURVE_PUBLICKEY, security->pair.open, TN_CURVE_BYTES, err));
    }
    return set(s, socket, ZMQ_CURVE_SECRETKEY, security->pair.secret, TN_CURVE_BYTES, err);
}

/* Makes a socket for that address with its options; *out is NULL when it has none. */
static tn_status make(tn_sockets *s, int role, uint32_t rank, const tn_endpoint *e, void **out,
                      tn_error *err)
{
    *out = NULL;
    if (s->opts.security->kind == TN_SECURITY_HOST && !tn_endpoint_is_inside(e)) {
        char text[TN_ENDPOINT_SIZE];
        tn_endpoint_write(e, text);
        return tn_fail(err, TN_E_CONFIG,
                       "'%s' is open to other machines, and cluster.security says nothing\n"
                       "hint: cluster.security: {key: PEER.key, allow: FOLDER} with keys from "
                       "tnet-keygen, or {trusted_net: [10.1.0.0/16]} where nobody else can be",
                       text);
    }
    void *socket = s->z.zmq_socket(s->context, role == ROUTER ? ZMQ_ROUTER : ZMQ_DEALER);
    if (socket == NULL) {
        return failed(s, "make a socket", err);
    }
    s->n_open++;
    tn_status status = set_options(s, socket, role, strchr(e->host, ':') != NULL, err);
    if (status == TN_OK && s->opts.security->kind == TN_SECURITY_CURVE && !e->is_ipc) {
        status = set_keys(s, socket, role, rank, err);
    }
    if (status != TN_OK) {
        tn_sockets_hang_up(s, socket);
        return status;
    }
    *out = socket;
    return TN_OK;
}

static tn_status bind_to(const tn_sockets *s, void *socket, const char *text,
                         char bound[TN_ENDPOINT_SIZE], tn_error *err)
{
    char at[TN_ENDPOINT_SIZE];
    size_t size = sizeof at;
    if (s->z.zmq_bind(socket, text) != 0) {
        return tn_fail(
            err, TN_E_PEER, "cannot listen at '%s': %s%s", text, s->z.zmq_strerror(errno),
            errno == EADDRINUSE ? "\nhint: choose another port, by TNET_PORT or in the list "
                                  "of peers"
                                : "");
    }
    if (s->z.zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, at, &size) != 0) {
        return failed(s, "ask for the port", err);
    }
    memcpy(bound, at, sizeof at);
    return TN_OK;
}

tn_status tn_sockets_listen(tn_sockets *s, const tn_endpoint *own, void **router,
                            char bound[TN_ENDPOINT_SIZE], tn_error *err)
{
    char text[TN_ENDPOINT_SIZE];
    *router = NULL;
    TN_ASSERT(s->own == NULL);
    TN_TRY(tn_ipc_take(own, &s->own, err));
    TN_TRY(make(s, ROUTER, s->opts.rank, own, router, err));
    tn_endpoint_write(own, text);
    tn_status status = bind_to(s, *router, text, bound, err);
    if (status != TN_OK) {
        tn_sockets_hang_up(s, *router);
        *router = NULL;
    }
    return status;
}

/* ---- events ---- */

enum {
    EVENT_BYTES = 6, /* u16 what, u32 value, in the order of this machine */
    NAME_BYTES = 64,
    DIALLING = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_CONNECT_DELAYED | ZMQ_EVENT_CONNECT_RETRIED,
    HANDSHAKE_EVENTS = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                       ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_DISCONNECTED | DIALLING
};

bool tn_socket_events_open(tn_socket_events *e, const tn_zmq *z, void *context, void *of,
                           int wanted)
{
    const int none = 0;
    char name[NAME_BYTES];
    TN_ASSERT((wanted & ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL) == 0);
    /* a unique name: that of a closed socket is free some time later */
    (void)snprintf(name, sizeof name, "inproc://events-%p-%" PRIu64, of, tn_clock_ns());
    *e = (tn_socket_events){.z = *z, .of = of, .pair = z->zmq_socket(context, ZMQ_PAIR)};
    /* no limit: libzmq would wait for room, on the thread of all connections */
    return e->pair != NULL && z->zmq_setsockopt(e->pair, ZMQ_RCVHWM, &none, sizeof none) == 0 &&
           z->zmq_setsockopt(e->pair, ZMQ_LINGER, &none, sizeof none) == 0 &&
           z->zmq_socket_monitor(of, name, wanted) == 0 && z->zmq_connect(e->pair, name) == 0;
}

void tn_socket_events_close(tn_socket_events *e)
{
    if (e->of != NULL) {
        /* stop the monitor first: without a listener it would wait for one */
        (void)e->z.zmq_socket_monitor(e->of, NULL, 0);
    }
    if (e->pair != NULL) {
        (void)e->z.zmq_close(e->pair);
    }
    *e = (tn_socket_events){0};
}

/* Receives an event: a part with its number and a value, and a last one with the address. */
bool tn_socket_events_next(tn_socket_events *e, uint16_t *what, uint32_t *value)
{
    uint8_t event[EVENT_BYTES];
    int n;
    while ((n = e->z.zmq_recv(e->pair, event, sizeof event, ZMQ_DONTWAIT)) >= 0 || errno == EINTR) {
        int more = 0;
        size_t size = sizeof more;
        if (n == EVENT_BYTES && e->z.zmq_getsockopt(e->pair, ZMQ_RCVMORE, &more, &size) == 0 &&
            more != 0) {
            memcpy(what, event, sizeof *what);
            memcpy(value, event + sizeof *what, sizeof *value);
            return true;
        }
    }
    return false;
}

tn_status tn_sockets_dial(tn_sockets *s, uint32_t rank, const tn_endpoint *to,
                          tn_handshake_watch *watch, void **dealer, tn_error *err)
{
    TN_ASSERT(rank < TN_RANK_ANY);
    char text[TN_ENDPOINT_SIZE];
    TN_TRY(make(s, DEALER, rank, to, dealer, err));
    tn_endpoint_write(to, text);
    tn_status status = TN_OK;
    /* before the socket connects: else it might be refused before anybody listens */
    if (watch != NULL &&
        !tn_socket_events_open(&watch->events, &s->z, s->context, *dealer, HANDSHAKE_EVENTS)) {
        status = failed(s, "watch a greeting", err);
    }
    if (status == TN_OK && s->z.zmq_connect(*dealer, text) != 0) {
        status =
            tn_fail(err, TN_E_PEER, "cannot connect to '%s': %s", text, s->z.zmq_strerror(errno));
    }
    if (status != TN_OK) {
        if (watch != NULL) {
            tn_socket_events_close(&watch->events);
        }
        tn_sockets_hang_up(s, *dealer);
        *dealer = NULL;
    }
    return status;
}

tn_handshake tn_handshake_watch_poll(tn_handshake_watch *g)
{
    uint16_t what;
    uint32_t reason;
    while (g->events.pair != NULL && tn_socket_events_next(&g->events, &what, &reason)) {
        if (what == ZMQ_EVENT_DISCONNECTED || (what & DIALLING) != 0) {
            g->is_over = what == ZMQ_EVENT_DISCONNECTED && g->last != TN_HANDSHAKE_REFUSED;
        } else {
            g->last = what == ZMQ_EVENT_HANDSHAKE_SUCCEEDED     ? TN_HANDSHAKE_DONE
                      : what == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH ? TN_HANDSHAKE_REFUSED
                                                                : TN_HANDSHAKE_BROKEN;
        }
    }
    return g->last;
}

void tn_sockets_dial_again(const tn_sockets *s, void *dealer, tn_handshake_watch *watch)
{
    char at[TN_ENDPOINT_SIZE];
    size_t size = sizeof at;
    if (s->z.zmq_getsockopt(dealer, ZMQ_LAST_ENDPOINT, at, &size) == 0) {
        (void)s->z.zmq_disconnect(dealer, at); /* else libzmq takes it for connected */
        watch->is_over = s->z.zmq_connect(dealer, at) != 0;
    }
}

const char *tn_handshake_text(tn_handshake how)
{
    static const char *const texts[] = {
        [TN_HANDSHAKE_NONE] = NULL,
        [TN_HANDSHAKE_DONE] = NULL,
        [TN_HANDSHAKE_REFUSED] =
            "it refused the key of this peer (cluster.security.key): its public half is not in "
            "the folder cluster.security.allow there",
        [TN_HANDSHAKE_BROKEN] = "it hung up on this peer: is its key another one than that in "
                                "cluster.security.allow here?",
    };
    TN_ASSERT((size_t)how < sizeof texts / sizeof *texts);
    return texts[how];
}
