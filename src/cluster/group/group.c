/* group.c - a group is opened, ends and is closed. */
#include "cluster/group/group.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/stop.h"
#include "base/file/file.h"
#include "base/machine/limits.h"
#include "base/thread/threads.h"
#include "cluster/group/group_state.h"
#include "cluster/launch/rendezvous_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    PER_PEER = 5, /* descriptors: a connection out takes two, its events two, one in takes one */
    FILES = 128,  /* files of data, checkpoints and logs, and what ZeroMQ has for itself */
};

/* time in which hellos are refused, after a group that will not form */
static const uint64_t refuse_ns = 3000000000;
/* the same since this rank was started, for ranks that are late */
static const uint64_t late_ns = 10000000000;
static const uint64_t look_ns = 100000000;    /* between checks of who was answered */
static const uint64_t linger_ns = 2000000000; /* for the last messages */

/* ---- the end ---- */

void tn_group_end(tn_group *g, uint64_t status, uint32_t teller, const char *fmt, ...)
{
    TN_ASSERT(teller < g->size);
    if (g->ended != TN_OK) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(g->why.text, sizeof g->why.text, fmt, args);
    va_end(args);
    const bool known = status > TN_END && status <= TN_E_STOPPED;
    g->ended = g->why.code = known ? (tn_status)status : TN_E_PEER;
    g->teller = teller;
    if (g->rank != 0) { /* this also ends its waits for servers */
        tn_stop_by_group(true);
    }
    tn_make_printable(g->why.text, "\n\t");
    const uint64_t who = 1 + (uint64_t)teller;
    const tn_order_note stop = {
        .what = TN_ORDER_STOP, .number = g->ended, .text = g->why.text, .more = {&who, 1}};
    for (uint32_t r = 1; g->rank == 0 && r < g->size; r++) {
        if (g->dialled[r] != NULL) {
            tn_group_post(g, r, TN_FRAME_ORDER, &stop);
        }
    }
    (void)pthread_cond_broadcast(&g->changed);
}

void tn_group_end_here(tn_group *g, tn_status status, const char *words)
{
    if (g->ended == TN_OK) {
        const size_t size = strlen(words) + 1;
        g->opts.hello.status = (uint64_t)status;
        g->opts.hello.text = memcpy(TN_NEW_ARRAY(g->arena, char, size), words, size);
        g->next_hello = 0; /* now, if this rank still sends hellos */
    }
    tn_group_end(g, status, g->rank, "rank %u: %s", g->rank, words);
}

tn_status tn_group_fault(const tn_group *g, tn_error *err)
{
    return g->ended == TN_OK ? TN_OK : tn_fail(err, g->ended, "%s", g->why.text);
}

tn_status tn_group_check(tn_group *g, tn_error *err)
{
    (void)pthread_mutex_lock(&g->lock);
    tn_status status = tn_group_fault(g, err);
    (void)pthread_mutex_unlock(&g->lock);
    return status;
}

void tn_group_report_end(tn_group *g)
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
    (void)pthread_mutex_lock(&g->lock);
    const bool first = g->ended == TN_OK;
    if (first && g->deed.code != TN_OK && strstr(why, g->deed.text) != NULL) {
        tn_group_end(g, status, g->deed_rank, "%s",
                     why); /* it was an order that failed elsewhere */
    } else {
        const tn_done_note note = {.what = TN_ORDER_STOP, .status = (uint64_t)status, .text = why};
        if (first && g->rank != 0 && g->is_whole) {
            tn_group_post(g, 0, TN_FRAME_DONE, &note);
        }
        tn_group_end_here(g, status, why);
    }
    (void)pthread_mutex_unlock(&g->lock);
    tn_group_report_end(g);
}

bool tn_group_is_reported_elsewhere(tn_group *g, tn_status status)
{
    TN_ASSERT(status != TN_OK);
    (void)pthread_mutex_lock(&g->lock);
    bool elsewhere = g->ended == status && g->teller != g->rank;
    (void)pthread_mutex_unlock(&g->lock);
    return elsewhere;
}

/* ---- opening ---- */

static tn_status make_lists(tn_group *g, tn_error *err)
{
    const size_t n_done = (size_t)g->size * TN_ORDERS;
    const size_t bytes = n_done * sizeof *g->done +
                         g->size * (sizeof *g->dedup + sizeof *g->dialled + sizeof *g->told) +
                         _Alignof(max_align_t);
    TN_TRY(tn_arena_reserve(g->arena, bytes, "a group of peers", err));
    g->done = TN_NEW_ARRAY(g->arena, tn_group_deed, n_done);
    g->dedup = TN_NEW_ARRAY(g->arena, tn_dedup, g->size);
    g->dialled = TN_NEW_ARRAY(g->arena, const char *, g->size);
    g->told = TN_NEW_ARRAY(g->arena, bool, g->size);
    tn_dedup_begin(&g->dedup[g->rank], g->incarnation);
    TN_TRY(tn_failure_detector_new(&g->detector, g->size, TN_FAILURE_GAP_NS, err));
    return tn_out_messages_new(&g->pool, err);
}

static tn_status open_link(tn_group *g, tn_error *err)
{
    const tn_group_opts *o = &g->opts;
    tn_endpoint own;
    TN_TRY(tn_membership_place(o->membership, &own, err));
    const tn_link_opts link = {
        .rank = g->rank,
        .size = g->size,
        .job = o->membership->job,
        .incarnation = g->incarnation,
        .security = o->security,
        .events = {g, tn_group_receive_request, tn_group_receive_answer, tn_group_tick}};
    return tn_link_open(&g->link, o->zmq, &link, &own, g->bound, err);
}

static void describe_self(tn_group *g)
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
    tn_failure_detector_name(g->detector, g->rank, hello->host, hello->pid);
}

tn_status tn_group_dial(tn_group *g, uint32_t rank, const char *address, tn_error *err)
{
    TN_ASSERT(rank < g->size && rank != g->rank && g->dialled[rank] == NULL);
    tn_endpoint at;
    TN_TRY(tn_endpoint_read(address, TN_ENDPOINT_PORT, &at, err));
    TN_TRY(tn_link_dial(g->link, rank, &at, err));
    const size_t size = strlen(address) + 1;
    g->dialled[rank] = memcpy(TN_NEW_ARRAY(g->arena, char, size), address, size);
    return TN_OK;
}

/* Begins: rank 0 lets others in, the others begin to say hello. */
static tn_status begin(tn_group *g, tn_error *err)
{
    const tn_membership *r = g->opts.membership;
    if (g->rank == 0) {
        TN_TRY(
            tn_rendezvous_new(&g->rendezvous, g->opts.owners, g->incarnation, &g->opts.hello, err));
        g->session = tn_random_id();
        tn_link_set_session(g->link, g->session);
        return r->meet != NULL ? tn_rendezvous_file_write(r->meet, r->job, g->bound, err) : TN_OK;
    }
    tn_failure_detector_name(g->detector, 0, r->host[0] != NULL ? r->host[0] : "?", 0);
    return r->address[0] != NULL ? tn_group_dial(g, 0, r->address[0], err) : TN_OK;
}

static tn_status make(tn_group *g, tn_error *err)
{
    TN_TRY(make_lists(g, err));
    TN_TRY(open_link(g, err));
    (void)pthread_mutex_lock(&g->lock);
    describe_self(g);
    tn_status status = begin(g, err);
    g->open = status == TN_OK;
    if (g->open && g->opts.hello.status != 0) { /* its first hello must say so */
        tn_group_end_here(g, (tn_status)g->opts.hello.status, g->opts.hello.text);
    }
    (void)pthread_mutex_unlock(&g->lock);
    return status;
}

tn_status tn_group_make_room(uint32_t size, tn_error *err)
{
    TN_ASSERT(size > 0);
    char what[32];
    (void)snprintf(what, sizeof what, "a group of %u peers", size);
    return tn_descriptors_need(PER_PEER * (uint64_t)(size - 1) + FILES, what, err);
}

tn_status tn_group_open(tn_group **out, const tn_group_opts *opts, tn_error *err)
{
    TN_ASSERT(opts->membership->size > 1);
    *out = NULL;
    TN_TRY(tn_group_make_room(opts->membership->size, err));
    tn_group *g = NULL;
    TN_TRY(TN_ALLOC(g, 1, "a group of peers", err));
    g->opts = *opts;
    g->rank = opts->membership->rank;
    g->size = opts->membership->size;
    g->incarnation = tn_random_id();
    g->opened_ns = tn_clock_ns();
    g->arena = tn_arena_new(1 << 12);
    tn_cond_init(&g->changed);
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

/* ---- values ---- */

void tn_group_set_values(tn_group *g, const tn_group_values *values)
{
    (void)pthread_mutex_lock(&g->values_lock);
    g->values = values != NULL ? *values : (tn_group_values){0};
    (void)pthread_mutex_unlock(&g->values_lock);
    tn_group_report_end(g); /* if it ended before */
}

tn_link *tn_group_link(tn_group *g)
{
    return g->link;
}

tn_out_messages *tn_group_out_messages(tn_group *g)
{
    return g->pool;
}

tn_dedup *tn_group_dedup(tn_group *g)
{
    return g->dedup;
}

/* ---- closing ---- */

bool tn_group_wait(tn_group *g, uint64_t deadline_ns)
{
    return tn_cond_wait_until(&g->changed, &g->lock, deadline_ns);
}

/* Limits a time to that which the user would wait for all to start. */
static uint64_t at_most_timeout(const tn_group *g, uint64_t ns)
{
    const double timeout_ns = g->opts.start_timeout_s * 1e9;
    return timeout_ns > 0 && timeout_ns < (double)ns ? (uint64_t)timeout_ns : ns;
}

/* Returns until when to wait for ranks that were not reached yet: a rank that starts late arrives
 * in the first seconds, and one that cannot connect to rank 0 tries again every 2 s. */
static uint64_t patience_of(const tn_group *g)
{
    const uint64_t least = tn_clock_ns() + at_most_timeout(g, tn_silence_ns(refuse_ns));
    const uint64_t late = g->opened_ns + at_most_timeout(g, tn_silence_ns(late_ns));
    return late > least && g->ended != TN_E_STOPPED ? late : least;
}

static bool all_are_told(const tn_group *g)
{
    bool all = true;
    for (uint32_t r = 1; r < g->size; r++) {
        all = all && g->told[r];
    }
    /* A rank that has not received its reply sends its hello once more. */
    return all && tn_clock_ns() - g->last_hello > 2 * tn_timer_ns(TN_GROUP_HELLO_NS);
}

/* Waits when a group does not form: rank 0 answers every hello with the reason, and a rank that
 * gives up sends its reason to rank 0. */
static void turn_away(tn_group *g)
{
    (void)pthread_mutex_lock(&g->lock);
    const uint64_t until = patience_of(g);
    while (!g->is_whole && g->gone == 0 && g->ended != TN_OK && tn_clock_ns() < until &&
           !(g->rank == 0 ? all_are_told(g) : g->is_refused)) {
        const uint64_t soon = tn_clock_ns() + look_ns;
        (void)tn_group_wait(g, soon < until ? soon : until);
    }
    (void)pthread_mutex_unlock(&g->lock);
}

/* Waits until the others have acknowledged what was posted to them, or the time is over. */
static void linger(tn_group *g)
{
    const uint64_t until = tn_clock_ns() + tn_silence_ns(linger_ns);
    bool open = true;
    (void)pthread_mutex_lock(&g->lock);
    while (open && tn_clock_ns() < until) {
        open = false;
        for (uint32_t r = 0; r < g->size; r++) {
            const bool there = g->dialled[r] != NULL && r + 1 != g->gone;
            open = open || (there && tn_link_open_requests(g->link, r) > 0);
        }
        if (open) {
            (void)tn_group_wait(g, until);
        }
    }
    (void)pthread_mutex_unlock(&g->lock);
}

/* Leaves the group. ZeroMQ drops replies that wait when their sender closes its socket. So a rank
 * that rank 0 has dismissed stays until rank 0, which has all replies then, announces that it
 * leaves. */
static void part(tn_group *g)
{
    const uint64_t until = tn_clock_ns() + tn_silence_ns(linger_ns);
    (void)pthread_mutex_lock(&g->lock);
    g->beat.state = TN_PEER_ENDING;
    for (uint32_t r = 1; g->rank == 0 && r < g->size; r++) {
        if (g->is_whole && g->dialled[r] != NULL) {
            tn_group_post(g, r, TN_FRAME_BEAT, &g->beat);
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
    if (g->rank != 0) {
        tn_stop_by_group(false);
    }
    for (size_t i = 0; g->done != NULL && i < (size_t)g->size * TN_ORDERS; i++) {
        tn_arena_free(g->done[i].arena);
    }
    free_orders(g->first);
    free_orders(g->current);
    tn_rendezvous_free(g->rendezvous);
    tn_failure_detector_free(g->detector);
    tn_out_messages_free(g->pool);
    tn_arena_free(g->arena);
    (void)pthread_mutex_destroy(&g->values_lock);
    (void)pthread_mutex_destroy(&g->parts_lock);
    (void)pthread_mutex_destroy(&g->lock);
    (void)pthread_cond_destroy(&g->changed);
    tn_free(g);
}
