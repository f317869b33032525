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
#include "cluster/net/sockets.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum {
    FILES_MAX = 1 << 20, /* descriptors above are not watched */
    WATCHED = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
              ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL
};

static const uint64_t minute_ns = 60000000000;

typedef struct connection {
    bool open, received; /* received: a message of it was delivered since the last poll */
    bool has_sent;       /* a message was delivered before the last poll */
    ino_t inode;
    uint64_t from; /* bytes that had come at that poll */
} connection;

struct tn_flood_guard {
    tn_socket_events events; /* events of the router */
    uint64_t most;
    connection *of; /* by descriptor */
    uint32_t n_files, n_open;
    uint64_t undecided;         /* accepted and not yet let in or refused; those that ended, too */
    uint64_t silent;            /* connections that ended without a message */
    const char *why;            /* reason why the last one was not let in */
    const char *next;           /* reason for the next one that ends */
    uint64_t logged, logged_ns; /* how many were logged last, and when */
};

static const char foreign[] =
    "did not speak as a peer does, or has another key for this peer than this peer has";

tn_status tn_flood_guard_open(tn_flood_guard **out, const tn_zmq *z, void *context, void *router,
                              uint64_t most, tn_error *err)
{
    *out = NULL;
    tn_flood_guard *f = NULL;
    TN_TRY(TN_ALLOC(f, 1, "the watch over connections", err));
    f->most = most;
    f->why = f->next = foreign;
    if (!tn_socket_events_open(&f->events, z, context, router, WATCHED)) {
        tn_status status =
            tn_fail(err, TN_E_PEER, "cannot watch connections: %s", z->zmq_strerror(errno));
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
    tn_socket_events_close(&f->events);
    tn_free(f->of);
    tn_free(f);
}

/* ---- events of libzmq ---- */

/* Makes room. Returns false when there is none for it. */
static bool make_room(tn_flood_guard *f, uint32_t fd)
{
    if (fd < f->n_files) {
        return true;
    }
    const uint32_t n = 2 * fd + 64;
    if (fd >= FILES_MAX || TN_GROW(f->of, f->n_files, n, "connections", NULL) != TN_OK) {
        return false;
    }
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
    const bool silent = fd >= f->n_files || !(f->of[fd].has_sent || f->of[fd].received);
    f->silent += silent;
    f->why = silent ? f->next : f->why;
    f->next = foreign;
    forget(f, fd);
}

/* Finds the inode of a socket. libzmq may have closed it since, and another thread opened a file of
 * that number. */
static bool find_inode_of_socket(uint32_t fd, ino_t *inode)
{
    struct stat st;
    const bool found = fstat((int)fd, &st) == 0;
    *inode = found ? st.st_ino : 0;
    return found;
}

/* Notes how a handshake ended. One that broke the protocol causes no event: sockets.h. */
static void decide(tn_flood_guard *f, uint16_t what)
{
    if (what == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL) {
        f->next = "closed, or was silent";
    } else {
        f->undecided -= f->undecided > 0;
        f->next = what == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH ? f->why : f->next;
    }
}

static void begin(tn_flood_guard *f, uint32_t fd)
{
    ino_t inode = 0;
    f->undecided++;
    forget(f, fd);
    if (make_room(f, fd) && find_inode_of_socket(fd, &inode)) {
        f->of[fd] = (connection){.open = true, .inode = inode};
        f->n_open++;
    }
}

static void receive_events(tn_flood_guard *f)
{
    uint16_t what;
    uint32_t value;
    while (tn_socket_events_next(&f->events, &what, &value)) {
        if (what == ZMQ_EVENT_ACCEPTED) {
            begin(f, value);
        } else if (what == ZMQ_EVENT_DISCONNECTED) {
            end(f, value);
        } else {
            decide(f, what);
        }
    }
}

/* ---- looking ---- */

void tn_flood_guard_received(tn_flood_guard *f, const zmq_msg_t *message)
{
    const char *fd = f->events.z.zmq_msg_gets(message, "__fd");
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
    ino_t inode = 0;
    if (!find_inode_of_socket(fd, &inode) || inode != f->of[fd].inode ||
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
    receive_events(f);
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
