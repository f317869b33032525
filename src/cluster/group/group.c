/* group.c - a group is opened; see group.h. */
#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/file/file.h"
#include "base/machine/limits.h"
#include "cluster/group/groupcalls.h"
#include "cluster/launch/rendezvous_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    PER_PEER = 3, /* descriptors: a connection out takes two, one in takes one */
    FILES = 128,  /* of data, checkpoints and logs, and what ZeroMQ has for itself */
};

/* ---- opening ---- */

static tn_status make_lists(tn_group *g, tn_error *err)
{
    const char *what = "a group of peers";
    g->once = tn_try_alloc(g->size, sizeof *g->once, what, err);
    g->dialled = tn_try_alloc(g->size, sizeof *g->dialled, what, err);
    g->done = tn_try_alloc((size_t)g->size * TN_ORDERS, sizeof *g->done, what, err);
    g->told = tn_try_alloc(g->size, sizeof *g->told, what, err);
    if (g->once == NULL || g->dialled == NULL || g->done == NULL || g->told == NULL) {
        return TN_E_MEMORY;
    }
    tn_once_begin(&g->once[g->rank], g->incarnation);
    const tn_pulse_opts pulse = {.size = g->size,
                                 .suspect_ns = tn_timer_ns(TN_PULSE_SUSPECT_NS),
                                 .lost_ns = tn_timer_ns(TN_PULSE_LOST_NS),
                                 .stall_ns = tn_timer_ns(TN_PULSE_STALL_NS)};
    TN_TRY(tn_pulse_new(&g->pulse, &pulse, err));
    return tn_parcels_new(&g->parcels, err);
}

static tn_status open_link(tn_group *g, tn_error *err)
{
    const tn_group_opts *o = &g->opts;
    tn_endpoint own;
    TN_TRY(tn_roster_place(o->roster, &own, err));
    const tn_link_opts link = {
        .rank = g->rank,
        .size = g->size,
        .job = o->roster->job,
        .incarnation = g->incarnation,
        .resend_ns = tn_timer_ns(TN_RESEND_TIMEOUT_NS),
        .security = o->security,
        .parcels = g->parcels,
        .events = {g, tn_group_hear_request, tn_group_hear_answer, tn_group_tick}};
    return tn_link_open(&g->link, o->zmq, &link, &own, g->bound, err);
}

static void say_who(tn_group *g)
{
    tn_hello_note *hello = &g->opts.hello;
    if (gethostname(g->host, sizeof g->host - 1) != 0) {
        g->host[0] = '\0';
    }
    hello->host = g->host;
    hello->address = g->bound;
    hello->pid = (uint64_t)getpid();
    hello->peers = g->size;
    hello->started = (int64_t)(tn_wall_s() * 1e3);
    tn_pulse_name(g->pulse, g->rank, hello->host, hello->pid);
}

/* Rank 0 lets others in, the others begin to say hello. */
static tn_status begin(tn_group *g, tn_error *err)
{
    const tn_roster *r = g->opts.roster;
    if (g->rank == 0) {
        TN_TRY(tn_forming_new(&g->forming, g->opts.owners, g->incarnation, &g->opts.hello, err));
        g->session = tn_random_id();
        tn_link_set_session(g->link, g->session);
        return r->meet != NULL ? tn_meeting_tell(r->meet, r->job, g->bound, err) : TN_OK;
    }
    tn_pulse_name(g->pulse, 0, r->host[0] != NULL ? r->host[0] : "?", 0);
    return r->address[0] != NULL ? tn_group_dial(g, 0, r->address[0], err) : TN_OK;
}

static tn_status make(tn_group *g, tn_error *err)
{
    TN_TRY(make_lists(g, err));
    TN_TRY(open_link(g, err));
    (void)pthread_mutex_lock(&g->lock);
    say_who(g);
    tn_status status = begin(g, err);
    g->open = status == TN_OK;
    if (g->open && g->opts.hello.status != 0) { /* before its first hello, which may not wish in */
        tn_group_end_here(g, (tn_status)g->opts.hello.status, g->opts.hello.text);
    }
    (void)pthread_mutex_unlock(&g->lock);
    return status;
}

tn_status tn_group_make_room(uint32_t size, tn_error *err)
{
    char what[32];
    (void)snprintf(what, sizeof what, "a group of %u peers", size);
    return tn_descriptors_need(PER_PEER * (uint64_t)(size - 1) + FILES, what, err);
}

tn_status tn_group_open(tn_group **out, const tn_group_opts *opts, tn_error *err)
{
    TN_ASSERT(opts->roster->size > 1);
    *out = NULL;
    TN_TRY(tn_group_make_room(opts->roster->size, err));
    tn_group *g = tn_try_alloc(1, sizeof *g, "a group of peers", err);
    if (g == NULL) {
        return TN_E_MEMORY;
    }
    g->opts = *opts;
    g->rank = opts->roster->rank;
    g->size = opts->roster->size;
    g->incarnation = tn_random_id();
    g->opened_ns = tn_clock_ns();
    g->arena = tn_arena_new(1 << 12);
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&g->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    (void)pthread_mutex_init(&g->lock, NULL);
    (void)pthread_mutex_init(&g->values_lock, NULL);
    (void)pthread_mutex_init(&g->parts_lock, NULL);
    tn_status status = make(g, err);
    if (status != TN_OK) {
        tn_group_close(g);
        return status;
    }
    *out = g;
    return TN_OK;
}

tn_status tn_group_dial(tn_group *g, uint32_t rank, const char *address, tn_error *err)
{
    tn_endpoint at;
    if (g->dialled[rank] != NULL && strcmp(g->dialled[rank], address) == 0) {
        return TN_OK;
    }
    if (g->dialled[rank] != NULL) {
        return tn_fail(err, TN_E_PEER, "rank %u was at %s and now is at %s", rank, g->dialled[rank],
                       address);
    }
    TN_TRY(tn_endpoint_read(address, TN_ENDPOINT_PORT, &at, err));
    TN_TRY(tn_link_dial(g->link, rank, &at, err));
    const size_t size = strlen(address) + 1;
    g->dialled[rank] = memcpy(TN_NEW_ARRAY(g->arena, char, size), address, size);
    return TN_OK;
}

bool tn_group_wait(tn_group *g, uint64_t deadline_ns)
{
    const uint64_t ns_per_s = 1000000000;
    const struct timespec until = {(time_t)(deadline_ns / ns_per_s),
                                   (long)(deadline_ns % ns_per_s)};
    return pthread_cond_timedwait(&g->changed, &g->lock, &until) == 0;
}

/* ---- values ---- */

void tn_group_set_values(tn_group *g, const tn_group_values *values)
{
    (void)pthread_mutex_lock(&g->values_lock);
    g->values = values != NULL ? *values : (tn_group_values){0};
    (void)pthread_mutex_unlock(&g->values_lock);
    tn_group_tell_values(g); /* if it ended before */
}

tn_link *tn_group_link(tn_group *g)
{
    return g->link;
}

tn_parcels *tn_group_parcels(tn_group *g)
{
    return g->parcels;
}

tn_once *tn_group_once(tn_group *g)
{
    return g->once;
}
