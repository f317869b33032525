/* link.c - a peer's connections: opening, closing, posting, and the net thread that sends and
 * receives. */
#include "cluster/net/link.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/failpoint.h"
#include "base/core/log.h"
#include "base/thread/threads.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* First in, first out. Zeros: empty. */
typedef struct message_list {
    tn_out_message *first, *last;
} message_list;

/* Another rank. All fields are the net thread's, except for the last three, which any thread may
 * use. */
typedef struct destination {
    tn_retransmit retransmit;
    message_list requests;        /* requests that have no number yet */
    message_list plain;           /* messages without a number: sent once */
    bool blocked;                 /* the connection accepts nothing at the moment */
    uint64_t logged_ns;           /* when a fault of it was logged last */
    tn_handshake_watch watch;     /* watch of the dealer, from when there is one; over ipc zeros */
    uint64_t over_ns;             /* since when its connection is over; 0: it is not */
    _Atomic uint32_t open;        /* requests without an answer */
    _Atomic uint64_t incarnation; /* incarnation that answers must have; 0: any */
    void *_Atomic dealer;         /* NULL: its address is not known yet; else the net thread's */
} destination;

struct tn_link {
    tn_zmq z;
    tn_link_opts opts;
    tn_sockets *sockets;
    void *router;
    tn_flood_guard *flood; /* over the router's connections; NULL: over ipc */
    int wake;              /* eventfd */
    tn_thread *thread;
    atomic_bool stop;
    _Atomic uint64_t session;

    pthread_mutex_t lock;
    message_list outbox;      /* guarded by lock, as are these */
    tn_link_counts published; /* a copy of counts, for other threads */

    destination *dest; /* size; the net thread's, as is what follows */
    tn_link_counts counts;
    uint64_t next_tick;
    zmq_pollitem_t *item; /* BEFORE + size */
};

typedef enum sent_state { SENT, SENT_LATER, SENT_NEVER } sent_state;

enum { ROUTER = -1 }; /* or the rank of a dealer */

enum { BEFORE = 2 }; /* items of the poll before those of the dealers */

enum { COPIED_MAX = 64 << 10 }; /* bytes; longer messages are sent from where they lie */

/* ---- sending ---- */

static void list_add(message_list *l, tn_out_message *p)
{
    p->next = NULL;
    if (l->first == NULL) {
        l->first = p;
    } else {
        l->last->next = p;
    }
    l->last = p;
}

static tn_out_message *list_take(message_list *l)
{
    tn_out_message *p = l->first;
    TN_ASSERT(p != NULL);
    l->first = p->next;
    p->next = NULL;
    return p;
}

static void list_drop(message_list *l)
{
    while (l->first != NULL) {
        tn_out_message_drop(list_take(l));
    }
}

/* Completes the header, once per message. */
static void seal(tn_link *l, tn_out_message *p)
{
    if (p->sealed) {
        return;
    }
    p->frame.job = l->opts.job;
    p->frame.session = atomic_load(&l->session);
    p->frame.incarnation = l->opts.incarnation;
    p->frame.rank = l->opts.rank;
    tn_frame_seal(p->bytes, &p->frame);
    p->sealed = true;
}

/* Frees bytes: ZeroMQ calls it, on its own thread, when it does not need them any more. */
static void let_go(void *bytes, void *hint)
{
    (void)bytes;
    tn_out_message_drop(hint);
}

static bool wrap(const tn_link *l, tn_out_message *p, zmq_msg_t *m)
{
    const size_t size = TN_FRAME_HEAD + p->frame.bytes;
    if (size > COPIED_MAX) {
        tn_out_message_hold(p);
        if (l->z.zmq_msg_init_data(m, p->bytes, size, let_go, p) == 0) {
            return true;
        }
        tn_out_message_drop(p);
        return false;
    }
    if (l->z.zmq_msg_init_size(m, size) != 0) {
        return false;
    }
    memcpy(l->z.zmq_msg_data(m), p->bytes, size);
    return true;
}

static int retry(int n)
{
    return n < 0 && errno == EINTR;
}

/* Makes the message first: once its routing id is sent, the message must follow. */
static sent_state transmit(tn_link *l, void *socket, const uint8_t *id, tn_out_message *p)
{
    TN_ASSERT(p->sealed);
    zmq_msg_t m;
    if (!wrap(l, p, &m)) {
        return SENT_LATER; /* no memory just now */
    }
    int n = 0;
    while (id != NULL &&
           retry(n = l->z.zmq_send(socket, id, TN_ROUTING_ID, ZMQ_SNDMORE | ZMQ_DONTWAIT))) {
    }
    if (n >= 0) {
        while (retry(n = l->z.zmq_msg_send(&m, socket, ZMQ_DONTWAIT))) {
        }
    }
    if (n < 0) {
        int why = errno;
        (void)l->z.zmq_msg_close(&m);
        TN_ASSERT(why == EAGAIN || why == EHOSTUNREACH);
        return why == EAGAIN ? SENT_LATER : SENT_NEVER;
    }
    l->counts.bytes_out += TN_FRAME_HEAD + p->frame.bytes;
    return SENT;
}

/* Simulates a faulty network: "error" loses a message, "short" duplicates it. */
static sent_state transmit_or_fail(tn_link *l, void *socket, const uint8_t *id, tn_out_message *p)
{
    const int fault = tn_failpoint(id == NULL ? "link.request" : "link.answer");
    if (fault != 0 && fault != TN_FAIL_SHORT) {
        return SENT;
    }
    sent_state sent = transmit(l, socket, id, p);
    return fault == 0 || sent != SENT ? sent : transmit(l, socket, id, p);
}

/* Seals and sends a reply, and drops it: a peer that misses it retransmits its request. */
static void send_answer(tn_link *l, tn_out_message *p)
{
    uint8_t id[TN_ROUTING_ID];
    tn_routing_id(p->to, p->to_incarnation, id);
    seal(l, p);
    (void)transmit_or_fail(l, l->router, id, p);
    tn_out_message_drop(p);
}

static const uint64_t minute_ns = 60000000000;

/* ---- receiving ---- */

void tn_in_message_close(tn_in_message *incoming)
{
    if (incoming != NULL) {
        (void)incoming->close(&incoming->message);
        tn_free(incoming);
    }
}

/* Parts of a message: the first two, and the last one after them. */
enum { PARTS = 3 };

typedef struct multipart {
    zmq_msg_t part[PARTS];
    uint32_t n; /* how many there were */
} multipart;

/* Receives a message. Returns false when there is none. The parts are to be closed in either
 * case. */
static bool take(const tn_link *l, void *socket, multipart *m)
{
    bool more = true;
    for (uint32_t i = 0; i < PARTS; i++) {
        (void)l->z.zmq_msg_init(&m->part[i]);
    }
    for (m->n = 0; more; m->n++) {
        zmq_msg_t *part = &m->part[m->n < PARTS ? m->n : PARTS - 1];
        int got = 0;
        while (retry(got = l->z.zmq_msg_recv(part, socket, ZMQ_DONTWAIT))) {
        }
        if (got < 0) {
            return false;
        }
        more = l->z.zmq_msg_more(part) != 0;
    }
    return true;
}

/* Returns true once a minute. */
static bool may_log(destination *d)
{
    const uint64_t now = tn_clock_ns();
    const bool may = d->logged_ns == 0 || now - d->logged_ns > minute_ns;
    d->logged_ns = may ? now : d->logged_ns;
    return may;
}

static void count_fault(tn_link *l, tn_drop fault, uint32_t rank)
{
    TN_ASSERT(fault > TN_DROP_NONE && fault < TN_DROPS);
    l->counts.dropped[fault]++;
    if (rank < l->opts.size && may_log(&l->dest[rank])) {
        tn_log(TN_LOG_WARN, "dropped a message from rank %u: a message %s", rank,
               tn_drop_text(fault));
    }
}

static tn_frame_limits limits_of(const tn_link *l)
{
    return (tn_frame_limits){.job = l->opts.job,
                             .session = atomic_load(&l->session),
                             .bytes_max = TN_MESSAGE_BYTES_MAX,
                             .peers = l->opts.size,
                             .count_max = {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
}

/* Returns whether the connection of a message belongs to the rank in its header. */
static bool is_of(const tn_link *l, const zmq_msg_t *m, const tn_frame *frame, bool is_router)
{
    uint32_t key = TN_RANK_ANY;
    if (!is_router) {
        return tn_zap_is_dialled(&l->z, l->opts.security, m);
    }
    return tn_zap_sender(&l->z, m, &key) && (key == TN_RANK_ANY || key == frame->rank);
}

/* Takes the message over. NULL: it is damaged, or not from `sender`. */
static tn_in_message *open_message(tn_link *l, zmq_msg_t *m, const tn_frame *sender, bool is_router)
{
    const tn_frame_limits limits = limits_of(l);
    tn_frame frame;
    const size_t size = l->z.zmq_msg_size(m);
    tn_drop fault = tn_frame_read(&frame, l->z.zmq_msg_data(m), size, &limits);
    l->counts.bytes_in += size;
    if (fault == TN_DROP_NONE &&
        (frame.rank != sender->rank || frame.rank == l->opts.rank || frame.incarnation == 0 ||
         (sender->incarnation != 0 && frame.incarnation != sender->incarnation) ||
         !is_of(l, m, &frame, is_router))) {
        fault = TN_DROP_RANK;
    }
    tn_in_message *incoming =
        fault == TN_DROP_NONE ? tn_try_alloc(1, sizeof *incoming, "a message", NULL) : NULL;
    if (incoming == NULL) {
        count_fault(l, fault == TN_DROP_NONE ? TN_DROP_MEMORY : fault, sender->rank);
        return NULL;
    }
    TN_ASSERT(frame.rank < l->opts.size && frame.rank != l->opts.rank);
    incoming->from = frame.rank;
    incoming->close = l->z.zmq_msg_close;
    (void)l->z.zmq_msg_init(&incoming->message);
    (void)l->z.zmq_msg_move(&incoming->message, m);
    frame.payload = (const char *)l->z.zmq_msg_data(&incoming->message) + TN_FRAME_HEAD;
    incoming->frame = frame;
    return incoming;
}

/* Receives the next message of a socket. Returns false when there is none. *out is NULL when it was
 * dropped. To the router a routing id comes in front of it. */
static bool receive(tn_link *l, int64_t socket, tn_in_message **out)
{
    const bool is_router = socket == ROUTER;
    const uint32_t body = is_router ? 1 : 0;
    tn_frame sender = {0};
    multipart m;
    bool got = take(l, is_router ? l->router : atomic_load(&l->dest[socket].dealer), &m);
    bool known = m.n > body;
    *out = NULL;
    if (is_router && got) {
        known = known &&
                tn_routing_id_read(l->z.zmq_msg_data(&m.part[0]), l->z.zmq_msg_size(&m.part[0]),
                                   &sender.rank, &sender.incarnation);
        if (l->flood != NULL) {
            tn_flood_guard_received(l->flood, &m.part[0]);
        }
    } else if (got) {
        sender.rank = (uint32_t)socket;
        sender.incarnation = atomic_load(&l->dest[socket].incarnation);
    }
    if (got && known) {
        *out = open_message(l, &m.part[body], &sender, is_router);
    } else if (got) {
        count_fault(l, TN_DROP_RANK, UINT32_MAX);
    }
    for (uint32_t i = 0; i < PARTS; i++) {
        (void)l->z.zmq_msg_close(&m.part[i]);
    }
    return got;
}

enum { AT_ONCE = 64 }; /* messages of one socket before the next one's turn */

/* ---- the net thread ---- */

static const uint64_t tick_ns = 100000000;
static const uint64_t ns_of_ms = 1000000;

static tn_out_message *message_of(tn_retransmit_request *x)
{
    return (tn_out_message *)(void *)((char *)x - offsetof(tn_out_message, request));
}

static void release(tn_retransmit_request *x)
{
    tn_out_message_drop(message_of(x));
}

/* Requests get their numbers in the order they were posted. */
static void number_requests(tn_link *l, destination *d)
{
    while (d->requests.first != NULL && !tn_retransmit_is_full(&d->retransmit)) {
        tn_out_message *p = list_take(&d->requests);
        p->frame.sequence = d->retransmit.next;
        seal(l, p);
        p->request = (tn_retransmit_request){.release = release};
        tn_retransmit_put(&d->retransmit, &p->request);
    }
}

/* Sends what is due until the connection takes no more. */
static void flush(tn_link *l, destination *d, uint64_t now)
{
    void *dealer = atomic_load(&d->dealer);
    number_requests(l, d);
    d->blocked = dealer == NULL;
    while (!d->blocked && d->plain.first != NULL) {
        seal(l, d->plain.first);
        d->blocked = transmit_or_fail(l, dealer, NULL, d->plain.first) == SENT_LATER;
        if (!d->blocked) {
            tn_out_message_drop(list_take(&d->plain));
        }
    }
    while (!d->blocked) {
        tn_retransmit_request *x = tn_retransmit_due(&d->retransmit, now);
        if (x == NULL) {
            break;
        }
        const uint64_t before = x->sent_ns;
        d->blocked = transmit_or_fail(l, dealer, NULL, message_of(x)) == SENT_LATER;
        if (!d->blocked) {
            l->counts.repeated += before != 0;
            tn_retransmit_sent(&d->retransmit, now);
        }
    }
}

static void sort_outbox(tn_link *l, message_list *outbox)
{
    while (outbox->first != NULL) {
        tn_out_message *p = list_take(outbox);
        TN_ASSERT(p->to < l->opts.size);
        destination *d = &l->dest[p->to];
        if (p->to_incarnation != 0) {
            send_answer(l, p);
        } else {
            list_add(tn_frame_is_request(p->frame.type) ? &d->requests : &d->plain, p);
        }
    }
}

static void wake(tn_link *l)
{
    int written = eventfd_write(l->wake, 1);
    TN_ASSERT(written == 0 || errno == EAGAIN); /* full: it is awake */
}

static void take_outbox(tn_link *l)
{
    message_list outbox = {0};
    eventfd_t wakes;
    (void)eventfd_read(l->wake, &wakes); /* nothing to read: woken by something else */
    (void)pthread_mutex_lock(&l->lock);
    outbox = l->outbox;
    l->outbox = (message_list){0};
    l->published = l->counts;
    (void)pthread_mutex_unlock(&l->lock);
    sort_outbox(l, &outbox);
}

/* Milliseconds until something is due. */
static long time_to(const tn_link *l, uint64_t now)
{
    uint64_t due = l->next_tick;
    for (uint32_t r = 0; r < l->opts.size; r++) {
        const destination *d = &l->dest[r];
        uint64_t deadline =
            d->blocked ? TN_RETRANSMIT_NEVER : tn_retransmit_deadline(&d->retransmit);
        due = deadline < due ? deadline : due;
    }
    return due <= now ? 0 : (long)((due - now) / ns_of_ms + 1);
}

/* Fills the items of the poll: wake, router, and a dealer for each rank; where there is none, the
 * item is ignored. */
static void list_items(tn_link *l)
{
    l->item[0] = (zmq_pollitem_t){.fd = l->wake, .events = ZMQ_POLLIN};
    l->item[1] = (zmq_pollitem_t){.socket = l->router, .events = ZMQ_POLLIN};
    for (uint32_t r = 0; r < l->opts.size; r++) {
        const short events = l->dest[r].blocked ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN;
        l->item[BEFORE + r] =
            (zmq_pollitem_t){.socket = atomic_load(&l->dest[r].dealer), .fd = -1, .events = events};
    }
}

/* Returns whether a reply is awaited; a duplicate is dropped, since nobody waits for it. */
static bool is_awaited(destination *d, const tn_frame *answer)
{
    if (answer->sequence == 0) {
        return true;
    }
    if (!tn_retransmit_acknowledge(&d->retransmit, answer->sequence)) {
        return false;
    }
    const uint32_t open = atomic_fetch_sub(&d->open, 1);
    TN_ASSERT(open > 0);
    return true;
}

static void deliver_all(tn_link *l, int64_t socket)
{
    const tn_link_events *e = &l->opts.events;
    tn_in_message *incoming = NULL;
    for (uint32_t i = 0; i < AT_ONCE && receive(l, socket, &incoming); i++) {
        if (incoming == NULL) {
            continue;
        }
        if (socket == ROUTER) {
            e->request(e->arg, incoming);
        } else if (is_awaited(&l->dest[socket], &incoming->frame)) {
            e->answer(e->arg, incoming);
        } else {
            tn_in_message_close(incoming);
        }
    }
}

/* Longer than libzmq takes until it connects again by itself. */
static const uint64_t dial_again_ns = 500000000;

/* Dials again where libzmq does not. What was under way is retransmitted. */
static void look_after(tn_link *l, uint32_t rank, uint64_t now)
{
    destination *d = &l->dest[rank];
    void *dealer = atomic_load(&d->dealer);
    if (dealer == NULL) {
        return;
    }
    const tn_handshake last = tn_handshake_watch_poll(&d->watch);
    if (rank == 0 && l->opts.security->kind == TN_SECURITY_CURVE) {
        l->counts.handshake = last;
    }
    d->over_ns = !d->watch.is_over ? 0 : d->over_ns != 0 ? d->over_ns : now;
    if (d->watch.is_over && now - d->over_ns >= dial_again_ns) {
        d->over_ns = now;
        tn_sockets_dial_again(l->sockets, dealer, &d->watch);
        if (may_log(d)) {
            tn_log(TN_LOG_WARN,
                   "what came from the address of rank %u was damaged, or is not a "
                   "peer's: connected again",
                   rank);
        }
    }
}

static void tick(tn_link *l, uint64_t now)
{
    if (now >= l->next_tick) {
        l->next_tick = now + tick_ns;
        for (uint32_t r = 0; r < l->opts.size; r++) {
            look_after(l, r, now);
        }
        if (l->flood != NULL) {
            l->counts.floods += tn_flood_guard_poll(l->flood);
            l->counts.failures = tn_flood_guard_failed(l->flood);
        }
        l->opts.events.tick(l->opts.events.arg, now);
    }
}

/* Runs the net thread; arg is the link. */
static tn_status run(void *arg, tn_error *err)
{
    (void)err;
    tn_link *l = arg;
    while (!atomic_load(&l->stop)) {
        take_outbox(l);
        uint64_t now = tn_clock_ns();
        for (uint32_t r = 0; r < l->opts.size; r++) {
            flush(l, &l->dest[r], now);
        }
        list_items(l);
        int ready = l->z.zmq_poll(l->item, (int)(BEFORE + l->opts.size), time_to(l, now));
        TN_ASSERT(ready >= 0 || errno == EINTR);
        if (ready > 0 && (l->item[1].revents & ZMQ_POLLIN) != 0) {
            deliver_all(l, ROUTER);
        }
        for (uint32_t r = 0; ready > 0 && r < l->opts.size; r++) {
            if ((l->item[BEFORE + r].revents & ZMQ_POLLIN) != 0) {
                deliver_all(l, r);
            }
        }
        tick(l, tn_clock_ns());
    }
    /* Send pending replies before closing, or peers that wait would report this one as lost. */
    take_outbox(l);
    for (uint32_t r = 0; r < l->opts.size; r++) {
        flush(l, &l->dest[r], tn_clock_ns());
    }
    return TN_OK;
}

/* ---- calls of other threads ---- */

static void post(tn_link *l, tn_out_message *p)
{
    (void)pthread_mutex_lock(&l->lock);
    list_add(&l->outbox, p);
    (void)pthread_mutex_unlock(&l->lock);
    wake(l);
}

void tn_link_post(tn_link *l, uint32_t to, tn_out_message *outgoing)
{
    TN_ASSERT(to < l->opts.size && to != l->opts.rank);
    outgoing->to = to;
    if (tn_frame_is_request(outgoing->frame.type)) {
        (void)atomic_fetch_add(&l->dest[to].open, 1);
    }
    post(l, outgoing);
}

void tn_link_answer(tn_link *l, const tn_frame *request, tn_out_message *outgoing)
{
    TN_ASSERT(request->rank < l->opts.size && request->rank != l->opts.rank);
    TN_ASSERT(request->incarnation != 0); /* as `open_message` lets in */
    outgoing->to = request->rank;
    outgoing->to_incarnation = request->incarnation;
    outgoing->frame.sequence = request->sequence;
    outgoing->frame.step = request->step;
    post(l, outgoing);
}

uint32_t tn_link_open_requests(tn_link *l, uint32_t rank)
{
    TN_ASSERT(rank < l->opts.size);
    return atomic_load(&l->dest[rank].open);
}

size_t tn_link_rank_bytes(void)
{
    return sizeof(destination) + sizeof(zmq_pollitem_t);
}

void tn_link_set_session(tn_link *l, uint64_t session)
{
    atomic_store(&l->session, session);
}

void tn_link_expect(tn_link *l, uint32_t rank, uint64_t incarnation)
{
    TN_ASSERT(rank < l->opts.size);
    atomic_store(&l->dest[rank].incarnation, incarnation);
}

void tn_link_counts_of(tn_link *l, tn_link_counts *out)
{
    (void)pthread_mutex_lock(&l->lock);
    *out = l->published;
    (void)pthread_mutex_unlock(&l->lock);
    tn_zap_counts(tn_sockets_zap(l->sockets), out->zap);
}

tn_status tn_link_dial(tn_link *l, uint32_t rank, const tn_endpoint *at, tn_error *err)
{
    TN_ASSERT(rank < l->opts.size && rank != l->opts.rank);
    void *dealer = NULL;
    (void)pthread_mutex_lock(&l->lock); /* sockets are made by one thread at a time */
    TN_ASSERT(atomic_load(&l->dest[rank].dealer) == NULL);
    destination *d = &l->dest[rank];
    tn_status status =
        tn_sockets_dial(l->sockets, rank, at, at->is_ipc ? NULL : &d->watch, &dealer, err);
    atomic_store(&d->dealer, dealer); /* with its watch the net thread's from here on */
    (void)pthread_mutex_unlock(&l->lock);
    wake(l);
    return status;
}

/* ---- opening and closing ---- */

static tn_status make(tn_link *l, const tn_endpoint *own, char bound[TN_ENDPOINT_SIZE],
                      tn_error *err)
{
    const tn_link_opts *o = &l->opts;
    TN_TRY(TN_ALLOC(l->dest, o->size, "the connections to the peers", err));
    TN_TRY(TN_ALLOC(l->item, BEFORE + (size_t)o->size, "the connections to the peers", err));
    for (uint32_t r = 0; r < o->size; r++) {
        uint64_t seed = o->incarnation ^ (uint64_t)r << 32;
        tn_retransmit_init(&l->dest[r].retransmit, seed,
                           o->retransmit_ns != 0 ? o->retransmit_ns
                                                 : tn_timer_ns(TN_RETRANSMIT_TIMEOUT_NS));
    }
    l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->wake < 0) {
        return tn_fail(err, TN_E_IO, "cannot make an eventfd: %s", strerrordesc_np(errno));
    }
    const tn_sockets_opts sockets = {
        .rank = o->rank, .size = o->size, .incarnation = o->incarnation, .security = o->security};
    TN_TRY(tn_sockets_open(&l->sockets, &l->z, &sockets, err));
    TN_TRY(tn_sockets_listen(l->sockets, own, &l->router, bound, err));
    if (!own->is_ipc) {
        TN_TRY(tn_flood_guard_open(&l->flood, &l->z, tn_sockets_context(l->sockets), l->router,
                                   TN_MESSAGE_BYTES_MAX + TN_FRAME_HEAD, err));
    }
    return tn_thread_start(&l->thread, "tn-net", run, l, err);
}

void tn_link_close(tn_link *l)
{
    if (l == NULL) {
        return;
    }
    if (l->thread != NULL) {
        atomic_store(&l->stop, true);
        wake(l);
        tn_status status = tn_thread_join(l->thread, NULL);
        TN_ASSERT(status == TN_OK);
    }
    for (uint32_t r = 0; l->dest != NULL && r < l->opts.size; r++) {
        tn_socket_events_close(&l->dest[r].watch.events);
        tn_sockets_hang_up(l->sockets, atomic_load(&l->dest[r].dealer));
    }
    tn_flood_guard_close(l->flood);
    tn_sockets_hang_up(l->sockets, l->router);
    tn_sockets_close(l->sockets); /* waits until no message is in use */
    for (uint32_t r = 0; l->dest != NULL && r < l->opts.size; r++) {
        list_drop(&l->dest[r].requests);
        list_drop(&l->dest[r].plain);
        tn_retransmit_clear(&l->dest[r].retransmit);
    }
    list_drop(&l->outbox);
    if (l->wake >= 0) {
        (void)close(l->wake);
    }
    tn_free(l->dest);
    tn_free(l->item);
    (void)pthread_mutex_destroy(&l->lock);
    tn_free(l);
}

tn_status tn_link_open(tn_link **out, const tn_zmq *z, const tn_link_opts *opts,
                       const tn_endpoint *own, char bound[TN_ENDPOINT_SIZE], tn_error *err)
{
    TN_ASSERT(opts->rank < opts->size && opts->incarnation != 0);
    *out = NULL;
    tn_link *l = NULL;
    TN_TRY(TN_ALLOC(l, 1, "the connections to the peers", err));
    l->z = *z;
    l->opts = *opts;
    l->wake = -1;
    (void)pthread_mutex_init(&l->lock, NULL);
    tn_status status = make(l, own, bound, err);
    if (status != TN_OK) {
        tn_link_close(l);
        return status;
    }
    *out = l;
    return TN_OK;
}
