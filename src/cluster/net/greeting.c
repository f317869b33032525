/* greeting.c - events of one DEALER: how its handshake ended. */
#include "cluster/net/greeting.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    EVENT_BYTES = 6, /* u16 what, u32 value, in the order of this machine */
    NAME_BYTES = 64,
    EVENTS = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
             ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH
};

struct tn_greeter {
    tn_zmq z;
    void *dealer, *events; /* a PAIR socket, on which libzmq reports events */
    tn_greeting last;
};

static bool watch(tn_greeter *g, void *context)
{
    const int none = 0;
    char name[NAME_BYTES];
    (void)snprintf(name, sizeof name, "inproc://greeting-%p-%" PRIu64, g->dealer, tn_clock_ns());
    g->events = g->z.zmq_socket(context, ZMQ_PAIR);
    /* no limit: libzmq would wait for room, on the thread of all connections */
    return g->events != NULL &&
           g->z.zmq_setsockopt(g->events, ZMQ_RCVHWM, &none, sizeof none) == 0 &&
           g->z.zmq_setsockopt(g->events, ZMQ_LINGER, &none, sizeof none) == 0 &&
           g->z.zmq_socket_monitor(g->dealer, name, EVENTS) == 0 &&
           g->z.zmq_connect(g->events, name) == 0;
}

tn_status tn_greeter_open(tn_greeter **out, const tn_zmq *z, void *context, void *dealer,
                          tn_error *err)
{
    *out = NULL;
    tn_greeter *g = tn_try_alloc(1, sizeof *g, "the watch over a greeting", err);
    if (g == NULL) {
        return TN_E_MEMORY;
    }
    g->z = *z;
    g->dealer = dealer;
    if (!watch(g, context)) {
        tn_status status =
            tn_fail(err, TN_E_PEER, "cannot watch a greeting: %s", g->z.zmq_strerror(errno));
        tn_greeter_close(g);
        return status;
    }
    *out = g;
    return TN_OK;
}

void tn_greeter_close(tn_greeter *g)
{
    if (g == NULL) {
        return;
    }
    /* stop the monitor first: without a listener it would wait for one */
    (void)g->z.zmq_socket_monitor(g->dealer, NULL, 0);
    if (g->events != NULL) {
        (void)g->z.zmq_close(g->events);
    }
    tn_free(g);
}

tn_greeting tn_greeter_poll(tn_greeter *g)
{
    uint8_t event[EVENT_BYTES];
    int n;
    while ((n = g->z.zmq_recv(g->events, event, sizeof event, ZMQ_DONTWAIT)) >= 0 ||
           errno == EINTR) {
        int more = 0;
        size_t size = sizeof more;
        uint16_t what = 0;
        if (n != EVENT_BYTES || g->z.zmq_getsockopt(g->events, ZMQ_RCVMORE, &more, &size) != 0 ||
            more == 0) {
            continue; /* the last part of an event is an address */
        }
        memcpy(&what, event, sizeof what);
        g->last = what == ZMQ_EVENT_HANDSHAKE_SUCCEEDED     ? TN_GREETING_DONE
                  : what == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH ? TN_GREETING_REFUSED
                                                            : TN_GREETING_BROKEN;
    }
    return g->last;
}

const char *tn_greeting_text(tn_greeting how)
{
    static const char *const texts[] = {
        [TN_GREETING_NONE] = NULL,
        [TN_GREETING_DONE] = NULL,
        [TN_GREETING_REFUSED] =
            "it refused the key of this peer (cluster.security.key): its public half is not in "
            "the folder cluster.security.allow there",
        [TN_GREETING_BROKEN] = "it hung up on this peer: is its key another one than that in "
                               "cluster.security.allow here?",
    };
    return texts[how];
}
