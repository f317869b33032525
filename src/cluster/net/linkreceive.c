/* linkreceive.c - a message of ZeroMQ as a letter, if it is one. */
#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/log.h"
#include "cluster/net/linkstate.h"

#include <errno.h>
#include <unistd.h>

static const uint64_t minute_ns = 60000000000;

void tn_letter_close(tn_letter *letter)
{
    if (letter != NULL) {
        (void)letter->close(&letter->message);
        tn_free(letter);
    }
}

static bool take(const tn_link *l, void *socket, zmq_msg_t *m)
{
    int n;
    (void)l->z.zmq_msg_init(m);
    do {
        n = l->z.zmq_msg_recv(m, socket, ZMQ_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        (void)l->z.zmq_msg_close(m);
    }
    return n >= 0;
}

/* Whatever follows a message in the same run of parts. */
static void throw_rest(const tn_link *l, void *socket, const zmq_msg_t *last)
{
    bool more = l->z.zmq_msg_more(last) != 0;
    while (more) {
        zmq_msg_t m;
        if (!take(l, socket, &m)) {
            return;
        }
        more = l->z.zmq_msg_more(&m) != 0;
        (void)l->z.zmq_msg_close(&m);
    }
}

static void count_fault(tn_link *l, tn_drop fault, uint32_t rank)
{
    l->counts.dropped[fault]++;
    if (rank >= l->opts.size) {
        return;
    }
    tn_link_dest *d = &l->dest[rank];
    uint64_t now = tn_clock_ns();
    if (d->logged_ns == 0 || now - d->logged_ns > minute_ns) {
        d->logged_ns = now;
        tn_log(TN_LOG_WARN, "dropped a message from rank %u: a message %s", rank,
               tn_drop_text(fault));
    }
}

static tn_frame_limits limits_of(const tn_link *l)
{
    return (tn_frame_limits){.job = l->opts.job,
                             .session = atomic_load(&l->session),
                             .bytes_max = l->opts.bytes_max,
                             .peers = l->opts.size,
                             .count_max = {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
}

/* Whether the connection that a message came by is one of the rank that the message names. */
static bool is_of(const tn_link *l, const zmq_msg_t *m, const tn_frame *frame, bool is_router)
{
    const tn_zap_rules rules = {.security = l->opts.security, .uid = geteuid()};
    uint32_t key = TN_RANK_ANY;
    if (!is_router) {
        return tn_zap_is_dialled(&l->z, &rules, m);
    }
    return tn_zap_sender(&l->z, m, &key) && (key == TN_RANK_ANY || key == frame->rank);
}

/* Takes the message over; NULL when it is not one from `sender`. */
static tn_letter *open_letter(tn_link *l, zmq_msg_t *m, const tn_frame *sender, bool is_router)
{
    const tn_frame_limits limits = limits_of(l);
    tn_frame frame;
    const size_t size = l->z.zmq_msg_size(m);
    tn_drop fault = tn_frame_read(&frame, l->z.zmq_msg_data(m), size, &limits);
    l->counts.messages_in++;
    l->counts.bytes_in += size;
    if (fault == TN_DROP_NONE &&
        (frame.rank != sender->rank || frame.rank == l->opts.rank ||
         (sender->incarnation != 0 && frame.incarnation != sender->incarnation) ||
         !is_of(l, m, &frame, is_router))) {
        fault = TN_DROP_RANK;
    }
    tn_letter *letter =
        fault == TN_DROP_NONE ? tn_try_alloc(1, sizeof *letter, "a message", NULL) : NULL;
    if (letter == NULL) {
        count_fault(l, fault == TN_DROP_NONE ? TN_DROP_MEMORY : fault, sender->rank);
        return NULL;
    }
    letter->from = frame.rank;
    letter->close = l->z.zmq_msg_close;
    (void)l->z.zmq_msg_init(&letter->message);
    (void)l->z.zmq_msg_move(&letter->message, m);
    frame.payload = (const char *)l->z.zmq_msg_data(&letter->message) + TN_FRAME_HEAD;
    letter->frame = frame;
    return letter;
}

/* The routing id in front of what comes to the router. */
static bool take_id(tn_link *l, void *socket, tn_frame *sender, bool *known)
{
    zmq_msg_t id;
    if (!take(l, socket, &id)) {
        return false;
    }
    *known = l->z.zmq_msg_more(&id) != 0 &&
             tn_routing_id_read(l->z.zmq_msg_data(&id), l->z.zmq_msg_size(&id), &sender->rank,
                                &sender->incarnation);
    if (!*known) {
        if (l->flood != NULL) {
            tn_flood_heard(l->flood, &id);
        }
        throw_rest(l, socket, &id);
        count_fault(l, TN_DROP_RANK, UINT32_MAX);
    }
    (void)l->z.zmq_msg_close(&id);
    return true;
}

bool tn_link_receive(tn_link *l, int64_t socket, tn_letter **out)
{
    bool is_router = socket == TN_LINK_ROUTER;
    void *from = is_router ? l->router : l->dest[socket].dealer;
    tn_frame sender = {0};
    if (!is_router) {
        sender.rank = (uint32_t)socket;
        sender.incarnation = atomic_load(&l->dest[socket].incarnation);
    }
    bool known = true;
    zmq_msg_t m;
    *out = NULL;
    if (is_router && !take_id(l, from, &sender, &known)) {
        return false;
    }
    if (!known) {
        return true;
    }
    if (!take(l, from, &m)) {
        return is_router;
    }
    throw_rest(l, from, &m);
    if (is_router && l->flood != NULL) {
        tn_flood_heard(l->flood, &m);
    }
    *out = open_letter(l, &m, &sender, is_router);
    (void)l->z.zmq_msg_close(&m);
    return true;
}
