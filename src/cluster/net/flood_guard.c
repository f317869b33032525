/* flood_guard.c - events of a ROUTER and the bytes of its connections; those over the limit are
 * cut.
 *
 * A descriptor is libzmq's: it may be closed at any moment and given to something else. So it is
 * shut down only while it is still the socket that was accepted, by its inode. Between that look
 * and the call another connection of this process may take its place, once in a blue moon, and is
 * then re-established by its other end.
 */
#include "cluster/net/flood_guard.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/core/number.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum {
    EVENT_BYTES = 6,     /* u16 what, u32 value, in the order of this machine */
    FILES_MAX = 1 << 20, /* descriptors above are not watched */
    NAME_BYTES = 64,
    WATCHED = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
              ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
              ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL
};

static const uint64_t minute_ns = 60000000000;

typedef struct connection {
    bool open, received; /* received: a message of it was delivered since the last poll .. */
    bool has_sent;       /* .. or before it */
    ino_t inode;
    uint64_t from; /* bytes that had come at that poll */
} connection;

struct tn_flood_guard {
    tn_zmq z;
    void *router, *events; /* a PAIR socket, on which libzmq reports events */
    uint64_t most;
    connection *of; /* by descriptor */
    uint32_t n_files, n_open;
    uint64_t undecided;         /* accepted and not yet let in or refused; those that ended, too */
    uint64_t silent;            /* that ended without a message */
    const char *why;            /* why the last one was not let in */
    uint64_t logged, logged_ns; /* how many were logged last, and when */
};

static const char foreign[] = "did not speak as a peer does";

static tn_status refused(const tn_flood_guard *f, tn_error *err)
{
    return tn_fail(err, TN_E_PEER, "cannot watch connections: %s", f->z.zmq_strerror(errno));
}

static tn_status watch(tn_flood_guard *f, void *context, tn_error *err)
{
    const int none = 0;
    char name[NAME_BYTES];
    /* a unique name: that of a closed socket is free some time later */
    (void)snprintf(name, sizeof name, "inproc://flood-%p-%" PRIu64, f->router, tn_clock_ns());
    f->events = f->z.zmq_socket(context, ZMQ_PAIR);
    /* no limit: libzmq would wait for room, on the thread of all connections */
    if (f->events == NULL || f->z.zmq_setsockopt(f->events, ZMQ_RCVHWM, &none, sizeof none) != 0 ||
        f->z.zmq_setsockopt(f->events, ZMQ_LINGER, &none, sizeof none) != 0 ||
        f->z.zmq_socket_monitor(f->router, name, WATCHED) != 0) {
        return refused(f, err);
    }
    return f->z.zmq_connect(f->events, name) == 0 ? TN_OK : refused(f, err);
}

tn_status tn_flood_guard_open(tn_flood_guard **out, const tn_zmq *z, void *context, void *router,
                              uint64_t most, tn_error *err)
{
    *out = NULL;
    tn_flood_guard *f = tn_try_alloc(1, sizeof *f, "the watch over connections", err);
    if (f == NULL) {
        return TN_E_MEMORY;
    }
    f->z = *z;
    f->router = router;
    f->most = most;
    f->why = foreign;
    tn_status status = watch(f, context, err);
    if (status != TN_OK) {
        tn_flood_guard_close(f);
        return status;
    }
    *out = f;
    return TN_OK;
}

/* Rate-limits the log: a thousand failures a second must not fill it. The total is logged at the
 * end. */
static void log_failures(tn_flood_guard *f, bool is_last)
{
    const uint64_t n = tn_flood_guard_failed(f).n;
    const uint64_t now = tn_clock_ns();
    if (n == f->logged || (f->logged > 0 && !is_last && now - f->logged_ns < minute_ns)) {
        return;
    }
    f->logged = n;
    f->logged_ns = now;
    tn_log(TN_LOG_WARN,
           "connections that broke off before they were let in: %" PRIu64
           " so far; the last one %s",
           n, f->why);
}

void tn_flood_guard_close(tn_flood_guard *f)
{
    if (f == NULL) {
        return;
    }
    log_failures(f, true);
    /* stop the monitor first: without a listener it would wait for one */
    (void)f->z.zmq_socket_monitor(f->router, NULL, 0);
    if (f->events != NULL) {
        (void)f->z.zmq_close(f->events);
    }
    tn_free(f->of);
    tn_free(f);
}

/* ---- events of libzmq ---- */

/* False: there is no room for it. */
static bool make_room(tn_flood_guard *f, uint32_t fd)
{
    if (fd < f->n_files) {
        return true;
    }
    const uint32_t n = 2 * fd + 64;
    connection *of = fd < FILES_MAX ? tn_try_alloc(n, sizeof *of, "connections", NULL) : NULL;
    if (of == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < f->n_files; i++) {
        of[i] = f->of[i];
    }
    tn_free(f->of);
    f->of = of;
    f->n_files = n;
    return true;
}

static void forget(tn_flood_guard *f, uint32_t fd)
{
    if (fd < f->n_files && f->of[fd].open) {
        f->of[fd].open = f->of[fd].has_sent = false;
        TN_ASSERT(f->n_open > 0);
        f->n_open--;
    }
}

static void end(tn_flood_guard *f, uint32_t fd)
{
    f->silent += fd >= f->n_files || !(f->of[fd].has_sent || f->of[fd].received);
    forget(f, fd);
}

/* Notes how a handshake ended. ZMTP 1, and so a program that is no peer, causes no event. */
static void decide(tn_flood_guard *f, uint16_t what, uint32_t reason)
{
    if (what == ZMQ_EVENT_HANDSHAKE_SUCCEEDED || what == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) {
        f->undecided -= f->undecided > 0;
    } else if (what == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL) {
        f->why = "closed, or was silent";
    } else {
        f->why = reason == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC
                     ? "has another key for this peer than this peer has"
                     : foreign;
    }
}

static void begin(tn_flood_guard *f, uint32_t fd)
{
    struct stat st;
    f->undecided++;
    forget(f, fd);
    if (make_room(f, fd) && fstat((int)fd, &st) == 0) {
        f->of[fd] = (connection){.open = true, .inode = st.st_ino};
        f->n_open++;
    }
}

/* An event is a part with its number and a descriptor, and a last one with the address. */
static bool receive_event(tn_flood_guard *f)
{
    uint8_t event[EVENT_BYTES];
    uint16_t what = 0;
    uint32_t fd = 0;
    int more = 0;
    size_t size = sizeof more;
    int n = f->z.zmq_recv(f->events, event, sizeof event, ZMQ_DONTWAIT);
    if (n < 0) {
        return errno == EINTR;
    }
    if (f->z.zmq_getsockopt(f->events, ZMQ_RCVMORE, &more, &size) != 0 || more == 0 ||
        n != EVENT_BYTES) {
        return true;
    }
    memcpy(&what, event, sizeof what);
    memcpy(&fd, event + sizeof what, sizeof fd);
    if (what == ZMQ_EVENT_ACCEPTED) {
        begin(f, fd);
    } else if (what == ZMQ_EVENT_DISCONNECTED) {
        end(f, fd);
    } else {
        decide(f, what, fd); /* a reason is in its place */
    }
    return true;
}

/* ---- looking ---- */

void tn_flood_guard_received(tn_flood_guard *f, const zmq_msg_t *message)
{
    const char *fd = f->z.zmq_msg_gets(message, "__fd");
    uint64_t at = 0;
    if (fd != NULL && tn_read_u64(fd, strlen(fd), &at) == TN_NUM_OK && at < f->n_files) {
        f->of[at].received = true;
    }
}

static bool count_bytes(uint32_t fd, uint64_t *bytes)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt((int)fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received) {
        return false;
    }
    *bytes = info.tcpi_bytes_received;
    return true;
}

static bool cut(const tn_flood_guard *f, uint32_t fd, uint64_t bytes)
{
    struct stat st;
    if (fstat((int)fd, &st) != 0 || st.st_ino != f->of[fd].inode ||
        shutdown((int)fd, SHUT_RDWR) != 0) {
        return false;
    }
    tn_log(TN_LOG_WARN, "cut a connection that sent %" PRIu64 " MB and no whole message",
           bytes >> 20);
    return true;
}

uint32_t tn_flood_guard_poll(tn_flood_guard *f)
{
    uint32_t n_cut = 0;
    while (receive_event(f)) {
    }
    log_failures(f, false);
    for (uint32_t fd = 0, left = f->n_open; left > 0; fd++) {
        TN_ASSERT(fd < f->n_files);
        connection *c = &f->of[fd];
        uint64_t bytes = 0;
        if (!c->open) {
            continue;
        }
        left--;
        if (!count_bytes(fd, &bytes)) {
            forget(f, fd);
        } else if (c->received) {
            c->received = false;
            c->has_sent = true;
            c->from = bytes;
        } else if (bytes > c->from && bytes - c->from > f->most) {
            n_cut += cut(f, fd, bytes - c->from);
            forget(f, fd);
        }
    }
    return n_cut;
}

tn_flood_guard_failures tn_flood_guard_failed(const tn_flood_guard *f)
{
    const uint64_t n = f->silent < f->undecided ? f->silent : f->undecided;
    return (tn_flood_guard_failures){n, f->why};
}

uint32_t tn_flood_guard_watched(const tn_flood_guard *f)
{
    return f->n_open;
}
