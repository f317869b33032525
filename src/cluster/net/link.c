/* link.c - a peer's connections: opening, closing, and what other threads ask of them. */
#include "cluster/net/linkstate.h"

#include "base/core/alloc.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void wake(tn_link *l)
{
    int rung = eventfd_write(l->wake, 1);
    TN_ASSERT(rung == 0 || errno == EAGAIN); /* full: it is awake */
}

static void post(tn_link *l, tn_parcel *p)
{
    p->next = NULL;
    (void)pthread_mutex_lock(&l->lock);
    tn_parcel_list_add(&l->outbox, p);
    (void)pthread_mutex_unlock(&l->lock);
    wake(l);
}

void tn_link_post(tn_link *l, uint32_t to, tn_parcel *parcel)
{
    TN_ASSERT(to < l->opts.size && to != l->opts.rank);
    parcel->to = to;
    if (tn_frame_is_request(parcel->frame.type)) {
        (void)atomic_fetch_add(&l->dest[to].open, 1);
    }
    post(l, parcel);
}

void tn_link_answer(tn_link *l, const tn_frame *request, tn_parcel *parcel)
{
    parcel->to = request->rank;
    parcel->to_incarnation = request->incarnation;
    parcel->frame.sequence = request->sequence;
    parcel->frame.step = request->step;
    post(l, parcel);
}

uint32_t tn_link_open_requests(tn_link *l, uint32_t rank)
{
    TN_ASSERT(rank < l->opts.size);
    return atomic_load(&l->dest[rank].open);
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
    *out = l->told;
    out->greeting = l->greeter != NULL ? tn_greeter_look(l->greeter) : TN_GREETING_NONE;
    (void)pthread_mutex_unlock(&l->lock);
    tn_zap_counts(tn_sockets_door(l->sockets), out->door);
}

tn_status tn_link_dial(tn_link *l, uint32_t rank, const tn_endpoint *at, tn_error *err)
{
    TN_ASSERT(rank < l->opts.size && rank != l->opts.rank);
    void *dealer = NULL;
    (void)pthread_mutex_lock(&l->lock); /* sockets are made by one thread at a time */
    TN_ASSERT(l->dialled[rank] == NULL);
    tn_status status = tn_sockets_dial(l->sockets, rank, at, &dealer, err);
    if (status == TN_OK && rank == 0 && !at->is_ipc &&
        l->opts.security->kind == TN_SECURITY_CURVE) {
        status = tn_greeter_open(&l->greeter, &l->z, tn_sockets_context(l->sockets), dealer, err);
    }
    l->dialled[rank] = dealer; /* from here on the net thread's */
    l->news = true;
    (void)pthread_mutex_unlock(&l->lock);
    wake(l);
    return status;
}

static tn_status make(tn_link *l, const tn_endpoint *own, char bound[TN_ENDPOINT_SIZE],
                      tn_error *err)
{
    const tn_link_opts *o = &l->opts;
    const char *what = "the connections to the peers";
    l->dest = tn_try_alloc(o->size, sizeof *l->dest, what, err);
    l->dialled = tn_try_alloc(o->size, sizeof(void *), what, err);
    l->item = tn_try_alloc((size_t)o->size + 2, sizeof *l->item, what, err);
    l->item_rank = tn_try_alloc((size_t)o->size + 2, sizeof *l->item_rank, what, err);
    if (l->dest == NULL || l->dialled == NULL || l->item == NULL || l->item_rank == NULL) {
        return TN_E_MEMORY;
    }
    for (uint32_t r = 0; r < o->size; r++) {
        uint64_t seed = o->incarnation ^ (uint64_t)r << 32;
        tn_resend_init(&l->dest[r].resend, seed,
                       o->resend_ns != 0 ? o->resend_ns : TN_RESEND_TIMEOUT_NS, 0);
    }
    l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->wake < 0) {
        return tn_fail(err, TN_E_IO, "cannot make an eventfd: %s", strerrordesc_np(errno));
    }
    const tn_sockets_opts sockets = {.rank = o->rank,
                                     .size = o->size,
                                     .incarnation = o->incarnation,
                                     .max_msg_bytes = o->bytes_max,
                                     .security = o->security};
    TN_TRY(tn_sockets_open(&l->sockets, &l->z, &sockets, err));
    TN_TRY(tn_sockets_listen(l->sockets, own, &l->router, bound, err));
    if (!own->is_ipc) {
        TN_TRY(tn_flood_open(&l->flood, &l->z, tn_sockets_context(l->sockets), l->router,
                             l->opts.bytes_max + TN_FRAME_HEAD, err));
    }
    return tn_thread_start(&l->thread, "tn-net", tn_link_loop, l, err);
}

tn_status tn_link_open(tn_link **out, const tn_zmq *z, const tn_link_opts *opts,
                       const tn_endpoint *own, char bound[TN_ENDPOINT_SIZE], tn_error *err)
{
    TN_ASSERT(opts->rank < opts->size && opts->incarnation != 0);
    *out = NULL;
    tn_link *l = tn_try_alloc(1, sizeof *l, "the connections to the peers", err);
    if (l == NULL) {
        return TN_E_MEMORY;
    }
    l->z = *z;
    l->opts = *opts;
    if (l->opts.bytes_max == 0) {
        l->opts.bytes_max = TN_MESSAGE_BYTES_MAX;
    }
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

static void drop_all(tn_link_dest *d)
{
    tn_parcel_list_drop(&d->requests);
    tn_parcel_list_drop(&d->plain);
    tn_resend_clear(&d->resend);
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
    tn_greeter_close(l->greeter);
    for (uint32_t r = 0; l->dialled != NULL && r < l->opts.size; r++) {
        tn_sockets_hang_up(l->sockets, l->dialled[r]);
    }
    tn_flood_close(l->flood);
    if (l->router != NULL) {
        tn_sockets_hang_up(l->sockets, l->router);
    }
    tn_sockets_close(l->sockets); /* waits until no message is in use */
    for (uint32_t r = 0; l->dest != NULL && r < l->opts.size; r++) {
        drop_all(&l->dest[r]);
    }
    tn_parcel_list_drop(&l->outbox);
    if (l->wake >= 0) {
        (void)close(l->wake);
    }
    tn_free(l->dest);
    tn_free(l->dialled);
    tn_free(l->item);
    tn_free(l->item_rank);
    (void)pthread_mutex_destroy(&l->lock);
    tn_free(l);
}
