/* group.c - a group is opened, formed, ended and closed; see group.h. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "ps/groupstate.h"
#include "ps/meeting.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static const uint64_t look_ns = 100000000;    /* at a stop signal, while forming */
static const uint64_t tell_ns = 10000000000;  /* between two lines about who is missing */
static const uint64_t linger_ns = 2000000000; /* for what was posted last .. */
static const uint64_t refuse_ns = 1000000000; /* .. and for who still says hello */

/* ---- opening ---- */

static tn_status make_lists(tn_group *g, tn_error *err)
{
    const char *what = "a group of peers";
    g->once = tn_try_alloc(g->size, sizeof *g->once, what, err);
    g->dialled = tn_try_alloc(g->size, sizeof *g->dialled, what, err);
    g->done = tn_try_alloc((size_t)g->size * TN_ORDERS, sizeof *g->done, what, err);
    if (g->once == NULL || g->dialled == NULL || g->done == NULL) {
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
    (void)pthread_mutex_unlock(&g->lock);
    return status;
}

tn_status tn_group_open(tn_group **out, const tn_group_opts *opts, tn_error *err)
{
    TN_ASSERT(opts->roster->size > 1);
    *out = NULL;
    tn_group *g = tn_try_alloc(1, sizeof *g, "a group of peers", err);
    if (g == NULL) {
        return TN_E_MEMORY;
    }
    g->opts = *opts;
    g->rank = opts->roster->rank;
    g->size = opts->roster->size;
    g->incarnation = tn_random_id();
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

/* ---- forming ---- */

bool tn_group_wait(tn_group *g, uint64_t deadline_ns)
{
    const uint64_t ns_per_s = 1000000000;
    const struct timespec until = {(time_t)(deadline_ns / ns_per_s),
                                   (long)(deadline_ns % ns_per_s)};
    return pthread_cond_timedwait(&g->changed, &g->lock, &until) == 0;
}

static void name_missing(const tn_group *g, tn_text *out)
{
    if (g->forming != NULL) {
        tn_forming_missing(g->forming, out);
    } else {
        const char *at = g->dialled[0];
        tn_text_addf(out, "rank 0 %s%s", at != NULL ? "at " : "in ",
                     at != NULL ? at : g->opts.roster->meet);
    }
}

static tn_status missing(const tn_group *g, double waited_s, tn_error *err)
{
    tn_text who = {0};
    name_missing(g, &who);
    tn_status status = tn_fail(err, TN_E_PEER, "waited %.0f s (cluster.start_timeout) for %s",
                               waited_s, tn_text_str(&who));
    tn_text_done(&who);
    return status;
}

static void tell_missing(const tn_group *g)
{
    tn_text who = {0};
    name_missing(g, &who);
    tn_log(TN_LOG_INFO, "waiting for %s", tn_text_str(&who));
    tn_text_done(&who);
}

tn_status tn_group_form(tn_group *g, const atomic_bool *stop, tn_error *err)
{
    const uint64_t patience_ns = (uint64_t)(g->opts.start_timeout_s * 1e9);
    uint64_t last = tn_clock_ns();
    uint64_t waited_ns = 0;
    uint64_t told_ns = 0;
    tn_status status = TN_OK;
    (void)pthread_mutex_lock(&g->lock);
    while (status == TN_OK && !g->is_whole) {
        const uint64_t now = tn_clock_ns();
        /* A process that was stopped itself has not waited. */
        waited_ns += now - last < TN_PULSE_GAP_NS ? now - last : TN_PULSE_GAP_NS;
        last = now;
        if (g->ended != TN_OK) {
            status = tn_fail(err, g->ended, "%s", g->why.text);
        } else if (stop != NULL && atomic_load(stop)) {
            status = tn_fail(err, TN_E_STOPPED, "stopped by a signal while waiting for the peers");
        } else if (waited_ns > patience_ns) {
            status = missing(g, (double)waited_ns * 1e-9, err);
        } else {
            if (waited_ns - told_ns >= tell_ns) {
                tell_missing(g);
                told_ns = waited_ns;
            }
            (void)tn_group_wait(g, now + look_ns);
        }
    }
    if (status != TN_OK) {
        tn_group_end(g, status, err != NULL ? err->text : "the group was not formed");
    }
    (void)pthread_mutex_unlock(&g->lock);
    return status;
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

/* ---- ending ---- */

void tn_group_end(tn_group *g, tn_status status, const char *why)
{
    if (g->ended != TN_OK) {
        return;
    }
    g->ended = tn_fail(&g->why, status, "%s", why);
    const tn_order_note stop = {
        .what = TN_ORDER_STOP, .number = (uint64_t)status, .text = g->why.text};
    for (uint32_t r = 1; g->rank == 0 && r < g->size; r++) {
        if (g->dialled[r] != NULL) {
            tn_group_post(g, r, TN_FRAME_ORDER, &stop, NULL);
        }
    }
    (void)pthread_cond_broadcast(&g->changed);
}

void tn_group_tell_values(tn_group *g)
{
    tn_error why = {0};
    tn_status ended = tn_group_check(g, &why);
    (void)pthread_mutex_lock(&g->values_lock);
    if (ended != TN_OK && g->values.ended != NULL) {
        g->values.ended(g->values.arg, ended, why.text);
    }
    (void)pthread_mutex_unlock(&g->values_lock);
}

void tn_group_fail(tn_group *g, tn_status status, const char *why)
{
    tn_text named = {0};
    tn_text_addf(&named, "rank %u: %s", g->rank, why);
    (void)pthread_mutex_lock(&g->lock);
    if (g->ended == TN_OK) {
        const tn_done_note note = {.what = TN_ORDER_STOP, .status = (uint64_t)status, .text = why};
        if (g->rank != 0 && g->dialled[0] != NULL) {
            tn_group_post(g, 0, TN_FRAME_DONE, &note, NULL);
        }
        tn_group_end(g, status, tn_text_str(&named));
    }
    (void)pthread_mutex_unlock(&g->lock);
    tn_group_tell_values(g);
    tn_text_done(&named);
}

tn_status tn_group_check(tn_group *g, tn_error *err)
{
    (void)pthread_mutex_lock(&g->lock);
    tn_status status = g->ended == TN_OK ? TN_OK : tn_fail(err, g->ended, "%s", g->why.text);
    (void)pthread_mutex_unlock(&g->lock);
    return status;
}

/* Who comes to a group that will not form is told so. */
static void turn_away(tn_group *g)
{
    const uint64_t until = tn_clock_ns() + tn_timer_ns(refuse_ns);
    (void)pthread_mutex_lock(&g->lock);
    while (g->rank == 0 && !g->is_whole && g->ended != TN_OK && tn_clock_ns() < until) {
        (void)tn_group_wait(g, until);
    }
    (void)pthread_mutex_unlock(&g->lock);
}

/* Until the others have what was posted to them; those that are gone do not count for long. */
static void linger(tn_group *g)
{
    const uint64_t until = tn_clock_ns() + tn_timer_ns(linger_ns);
    bool open = true;
    (void)pthread_mutex_lock(&g->lock);
    while (open && tn_clock_ns() < until) {
        open = false;
        for (uint32_t r = 0; r < g->size; r++) {
            open = open || (g->dialled[r] != NULL && tn_link_open_requests(g->link, r) > 0);
        }
        if (open) {
            (void)tn_group_wait(g, until);
        }
    }
    (void)pthread_mutex_unlock(&g->lock);
}

/* An answer that waits in ZeroMQ is dropped when its sender hangs up: whoever rank 0 has dismissed
 * stays until rank 0, which has all answers then, says that it goes. */
static void part(tn_group *g)
{
    const uint64_t until = tn_clock_ns() + tn_timer_ns(linger_ns);
    (void)pthread_mutex_lock(&g->lock);
    g->beat.state = TN_PEER_ENDING;
    for (uint32_t r = 1; g->rank == 0 && r < g->size; r++) {
        if (g->is_whole && g->dialled[r] != NULL) {
            tn_group_post(g, r, TN_FRAME_BEAT, &g->beat, NULL);
        }
    }
    while (g->rank != 0 && g->is_whole && g->dismissed && !g->is_last && tn_clock_ns() < until) {
        (void)tn_group_wait(g, until);
    }
    (void)pthread_mutex_unlock(&g->lock);
}

static void free_orders(tn_group_order_in *o)
{
    while (o != NULL) {
        tn_group_order_in *next = o->next;
        tn_arena_free(o->arena);
        o = next;
    }
}

void tn_group_close(tn_group *g)
{
    if (g == NULL) {
        return;
    }
    if (g->open) {
        turn_away(g);
        linger(g);
        part(g);
    }
    tn_link_close(g->link);
    for (size_t i = 0; g->done != NULL && i < (size_t)g->size * TN_ORDERS; i++) {
        tn_arena_free(g->done[i].arena);
    }
    free_orders(g->first);
    free_orders(g->current);
    tn_forming_free(g->forming);
    tn_pulse_free(g->pulse);
    tn_parcels_free(g->parcels);
    tn_arena_free(g->arena);
    tn_free(g->once);
    tn_free(g->dialled);
    tn_free(g->done);
    (void)pthread_mutex_destroy(&g->values_lock);
    (void)pthread_mutex_destroy(&g->parts_lock);
    (void)pthread_mutex_destroy(&g->lock);
    (void)pthread_cond_destroy(&g->changed);
    tn_free(g);
}
