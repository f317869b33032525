/* linkloop.c - the net thread: who is sent what when, and who hears what came. */
#include "cluster/net/linkstate.h"

#include "base/core/clock.h"

#include <errno.h>
#include <sys/eventfd.h>

enum { AT_ONCE = 64 }; /* messages of one socket before the next one's turn */

static const uint64_t tick_ns = 100000000;
static const uint64_t ns_of_ms = 1000000;

static tn_parcel *parcel_of(tn_resend_request *x)
{
    return (tn_parcel *)(void *)((char *)x - offsetof(tn_parcel, request));
}

static void release(tn_resend_request *x)
{
    tn_parcel_drop(parcel_of(x));
}

/* Requests get their numbers in the order they were posted. */
static void number_requests(tn_link *l, tn_link_dest *d)
{
    while (d->requests.first != NULL && !tn_resend_is_full(&d->resend)) {
        tn_parcel *p = tn_parcel_list_take(&d->requests);
        p->frame.sequence = tn_resend_next(&d->resend);
        tn_link_seal(l, p);
        p->request = (tn_resend_request){
            .bytes = p->bytes, .size = TN_FRAME_HEAD + p->frame.bytes, .release = release};
        tn_resend_put(&d->resend, &p->request);
    }
}

/* Sends what is due until the connection takes no more. */
static void flush(tn_link *l, tn_link_dest *d, uint64_t now)
{
    number_requests(l, d);
    d->blocked = d->dealer == NULL;
    while (!d->blocked && d->plain.first != NULL) {
        tn_link_seal(l, d->plain.first);
        d->blocked = tn_link_send(l, d->dealer, d->plain.first) == TN_SENT_LATER;
        if (!d->blocked) {
            tn_parcel_drop(tn_parcel_list_take(&d->plain));
        }
    }
    while (!d->blocked) {
        tn_resend_request *x = tn_resend_due(&d->resend, now);
        if (x == NULL) {
            break;
        }
        const uint64_t before = x->sent_ns;
        d->blocked = tn_link_send(l, d->dealer, parcel_of(x)) == TN_SENT_LATER;
        if (!d->blocked) {
            l->counts.repeated += before != 0;
            tn_resend_sent(&d->resend, now);
        }
    }
}

static void sort_outbox(tn_link *l, tn_parcel_list *outbox)
{
    while (outbox->first != NULL) {
        tn_parcel *p = tn_parcel_list_take(outbox);
        tn_link_dest *d = &l->dest[p->to];
        if (p->to_incarnation != 0) {
            tn_link_send_answer(l, p);
        } else {
            tn_parcel_list_add(tn_frame_is_request(p->frame.type) ? &d->requests : &d->plain, p);
        }
    }
}

static void take_outbox(tn_link *l)
{
    tn_parcel_list outbox = {0};
    eventfd_t wakes;
    (void)eventfd_read(l->wake, &wakes); /* nothing to read: woken by something else */
    (void)pthread_mutex_lock(&l->lock);
    outbox = l->outbox;
    l->outbox = (tn_parcel_list){0};
    for (uint32_t r = 0; l->news && r < l->opts.size; r++) {
        l->dest[r].dealer = l->dialled[r];
    }
    l->news = false;
    l->told = l->counts;
    (void)pthread_mutex_unlock(&l->lock);
    sort_outbox(l, &outbox);
}

/* Milliseconds until something is due. */
static long time_to(const tn_link *l, uint64_t now)
{
    uint64_t due = l->next_tick;
    for (uint32_t r = 0; r < l->opts.size; r++) {
        const tn_link_dest *d = &l->dest[r];
        uint64_t deadline = d->blocked ? TN_RESEND_NEVER : tn_resend_deadline(&d->resend);
        due = deadline < due ? deadline : due;
    }
    return due <= now ? 0 : (long)((due - now) / ns_of_ms + 1);
}

/* Items of the poll: wake, router, then every dealer. */
static uint32_t list_items(const tn_link *l, zmq_pollitem_t *item, uint32_t *rank)
{
    uint32_t n = 0;
    item[n++] = (zmq_pollitem_t){.fd = l->wake, .events = ZMQ_POLLIN};
    item[n++] = (zmq_pollitem_t){.socket = l->router, .events = ZMQ_POLLIN};
    for (uint32_t r = 0; r < l->opts.size; r++) {
        const tn_link_dest *d = &l->dest[r];
        if (d->dealer != NULL) {
            short events = d->blocked ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN;
            rank[n] = r;
            item[n++] = (zmq_pollitem_t){.socket = d->dealer, .events = events};
        }
    }
    return n;
}

static void give(tn_link *l, tn_letter *letter, bool answer)
{
    if (letter == NULL) {
        return;
    }
    const tn_link_events *e = &l->opts.events;
    (answer ? e->answer : e->request)(e->arg, letter);
}

static void hear_requests(tn_link *l)
{
    tn_letter *letter = NULL;
    for (uint32_t i = 0; i < AT_ONCE && tn_link_receive(l, TN_LINK_ROUTER, &letter); i++) {
        give(l, letter, false);
    }
}

/* An answer that comes again has nobody who waits for it. */
static void hear_answers(tn_link *l, uint32_t rank)
{
    tn_link_dest *d = &l->dest[rank];
    tn_letter *letter = NULL;
    for (uint32_t i = 0; i < AT_ONCE && tn_link_receive(l, rank, &letter); i++) {
        if (letter != NULL && letter->frame.sequence != 0) {
            if (!tn_resend_acknowledge(&d->resend, letter->frame.sequence)) {
                tn_letter_close(letter);
                continue;
            }
            (void)atomic_fetch_sub(&d->open, 1);
        }
        give(l, letter, true);
    }
}

static void tick(tn_link *l, uint64_t now)
{
    if (now >= l->next_tick) {
        l->next_tick = now + tick_ns;
        if (l->flood != NULL) {
            l->counts.floods += tn_flood_look(l->flood);
            l->counts.failures = tn_flood_failed(l->flood);
        }
        l->opts.events.tick(l->opts.events.arg, now);
    }
}

tn_status tn_link_loop(void *arg, tn_error *err)
{
    (void)err;
    tn_link *l = arg;
    while (!atomic_load(&l->stop)) {
        take_outbox(l);
        uint64_t now = tn_clock_ns();
        for (uint32_t r = 0; r < l->opts.size; r++) {
            flush(l, &l->dest[r], now);
        }
        uint32_t n = list_items(l, l->item, l->item_rank);
        int ready = l->z.zmq_poll(l->item, (int)n, time_to(l, now));
        TN_ASSERT(ready >= 0 || errno == EINTR);
        if (ready > 0 && (l->item[1].revents & ZMQ_POLLIN) != 0) {
            hear_requests(l);
        }
        for (uint32_t i = 2; ready > 0 && i < n; i++) {
            if ((l->item[i].revents & ZMQ_POLLIN) != 0) {
                hear_answers(l, l->item_rank[i]);
            }
        }
        tick(l, tn_clock_ns());
    }
    /* Who asked for the last thing shall have its answer, or would take this peer for lost. */
    take_outbox(l);
    for (uint32_t r = 0; r < l->opts.size; r++) {
        flush(l, &l->dest[r], tn_clock_ns());
    }
    return TN_OK;
}
