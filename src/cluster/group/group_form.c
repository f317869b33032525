/* group_form.c - a group forms, or a rank gives up.
 *
 * Until the group is whole every rank is connected to rank 0 only, and rank 0 to nobody: the only
 * messages are hellos, repeated, and the replies to them. So a rank that gives up says so in its
 * hello until rank 0 has replied, and rank 0 replies to every hello of a group that is over with
 * the reason.
 */
#include "cluster/group/group_state.h"

#include "base/core/clock.h"
#include "base/core/log.h"
#include "cluster/group/rendezvous.h"
#include "cluster/launch/rendezvous_file.h"

#include <stdio.h>
#include <string.h>

static const uint64_t look_ns = 100000000; /* how often a stop signal is checked */

/* ---- rank 0 ---- */

/* Makes the group whole: all ranks are in, and their incarnations count from now on; locked. */
static void become_whole(tn_group *g, const uint64_t *incarnation)
{
    TN_ASSERT(!g->is_whole);
    const uint64_t now = tn_clock_ns();
    for (uint32_t r = 0; r < g->size; r++) {
        if (r != g->rank) {
            tn_dedup_begin(&g->dedup[r], incarnation[r]);
            tn_link_expect(g->link, r, incarnation[r]);
        }
        if (r != g->rank && (r == 0 || g->rank == 0)) {
            tn_failure_detector_watch(g->detector, r, now);
        }
    }
    g->is_whole = true;
    g->next_beat = now;
    g->next_table = now + g->opts.table.every_ns;
    (void)pthread_cond_broadcast(&g->changed);
}

static void welcome(tn_group *g, uint32_t rank)
{
    tn_welcome_note note;
    tn_rendezvous_welcome(g->rendezvous, &note);
    tn_group_post(g, rank, TN_FRAME_WELCOME, &note);
}

/* Refuses a hello. Where the group is over the reply says how it ended. */
static void refuse(tn_group *g, const tn_frame *hello, uint32_t why, const char *text)
{
    TN_ASSERT(g->rank == 0 && hello->rank < g->size);
    tn_refused_note note = {.text = text};
    if (g->ended != TN_OK) {
        note = (tn_refused_note){g->why.text, (uint64_t)g->ended, 1 + (uint64_t)g->teller};
        g->told[hello->rank] = true;
    }
    tn_group_answer(g, hello, TN_FRAME_REFUSED, why, &note);
}

/* Connects only now: until the group is whole a rank may be started again at another address. */
static void welcome_all(tn_group *g)
{
    tn_welcome_note all;
    tn_error err = {0};
    tn_rendezvous_welcome(g->rendezvous, &all);
    TN_ASSERT(all.address.n == g->size && all.incarnation.n == g->size); /* as `fits` asks */
    for (uint32_t r = 1; r < g->size; r++) {
        if (tn_group_dial(g, r, all.address.at[r], &err) != TN_OK) {
            tn_group_end_here(g, err.code, err.text);
            return;
        }
    }
    become_whole(g, all.incarnation.at);
    for (uint32_t r = 1; r < g->size; r++) {
        welcome(g, r);
    }
}

/* Receives that a rank gives up, which ends the group. */
static void receive_giving_up(tn_group *g, const tn_frame *f, const tn_hello_note *note)
{
    if (tn_rendezvous_gives_up(g->rendezvous, f->rank, f->incarnation)) {
        tn_group_end(g, note->status, f->rank, "rank %u: %s", f->rank, note->text);
    }
    const bool over = g->ended != TN_OK;
    refuse(g, f, over ? TN_REFUSAL_ENDING : TN_REFUSAL_RANK, tn_refusal_text(TN_REFUSAL_RANK));
}

/* Refuses a rank that does not fit. Since it never will, the group ends, unless it is a second
 * process with a rank that is in already. */
static void turn_down(tn_group *g, const tn_frame *f, uint32_t refusal, const char *why)
{
    const bool never = refusal == TN_REFUSAL_CONFIG || refusal == TN_REFUSAL_VERSION;
    if (never && !tn_rendezvous_is_in(g->rendezvous, f->rank)) {
        tn_group_end(g, refusal == TN_REFUSAL_CONFIG ? TN_E_CONFIG : TN_E_PEER, f->rank, "%s", why);
    } else {
        tn_log(TN_LOG_WARN, "%s", why);
    }
    refuse(g, f, refusal, why);
}

/* Replies with the list of ranks that are missing. */
static void ask_to_wait(tn_group *g, const tn_frame *f)
{
    tn_text who = {0};
    tn_rendezvous_missing(g->rendezvous, &who);
    refuse(g, f, TN_REFUSAL_FORMING, tn_text_str(&who));
    tn_text_done(&who);
}

/* Receives a hello of a rank that wants to join. A rank that has not received its welcome repeats
 * it. */
static void receive_wish(tn_group *g, const tn_frame *f, const tn_hello_note *note)
{
    tn_text why = {0};
    uint32_t refusal = tn_rendezvous_hello(g->rendezvous, f->rank, f->incarnation, note, &why);
    if (refusal != 0) {
        turn_down(g, f, refusal, tn_text_str(&why));
    } else {
        tn_failure_detector_name(g->detector, f->rank, note->host, note->pid);
        if (g->is_whole) {
            welcome(g, f->rank);
        } else if (tn_rendezvous_is_whole(g->rendezvous)) {
            welcome_all(g);
        } else {
            ask_to_wait(g, f);
        }
    }
    tn_text_done(&why);
}

void tn_group_receive_hello(tn_group *g, const tn_frame *f, const tn_hello_note *note)
{
    TN_ASSERT(g->rank == 0 && g->rendezvous != NULL);
    g->last_hello = tn_clock_ns();
    if (note->status != 0) {
        receive_giving_up(g, f, note);
    } else if (g->ended != TN_OK) {
        refuse(g, f, TN_REFUSAL_ENDING, "");
    } else {
        receive_wish(g, f, note);
    }
}

/* ---- the others ---- */

static bool fits(const tn_group *g, const tn_welcome_note *note)
{
    const uint32_t *from = g->opts.owners->from;
    bool good = note->address.n == g->size && note->host.n == g->size &&
                note->incarnation.n == g->size && note->owned_from.n == g->size + (size_t)1 &&
                note->incarnation.at[g->rank] == g->incarnation;
    for (uint32_t p = 0; good && p <= g->size; p++) {
        good = note->owned_from.at[p] == from[p];
    }
    for (uint32_t p = 0; good && p < g->size; p++) {
        good = note->incarnation.at[p] != 0; /* nobody's */
    }
    return good;
}

void tn_group_receive_welcome(tn_group *g, const tn_frame *f, const tn_welcome_note *note)
{
    tn_error err = {0};
    if (g->is_whole || g->ended != TN_OK || f->rank != 0 || !fits(g, note)) {
        return;
    }
    g->session = f->session;
    tn_link_set_session(g->link, g->session);
    for (uint32_t r = 0; r < g->size && err.code == TN_OK; r++) {
        tn_failure_detector_name(g->detector, r, note->host.at[r], 0);
        if (r != g->rank && g->dialled[r] == NULL) { /* rank 0 is, by the name that led to it */
            tn_status status = tn_group_dial(g, r, note->address.at[r], &err);
            (void)status; /* err has it */
        }
    }
    if (err.code != TN_OK) {
        tn_group_end_here(g, err.code, err.text);
        return;
    }
    become_whole(g, note->incarnation.at);
}

void tn_group_receive_refused(tn_group *g, const tn_frame *f, const tn_refused_note *note)
{
    if (g->is_whole || f->rank != 0) {
        return;
    }
    if (f->code == TN_REFUSAL_FORMING) {
        (void)snprintf(g->missing, sizeof g->missing, "%s", note->text);
        tn_make_printable(g->missing, "\n\t");
        return;
    }
    const char *text = note->text[0] != '\0' ? note->text : tn_refusal_text(f->code);
    g->is_refused = true;
    if (f->code == TN_REFUSAL_ENDING) {
        const bool known = note->teller > 0 && note->teller <= g->size;
        tn_group_end(g, note->status, known ? (uint32_t)note->teller - 1 : 0, "%s", text);
    } else {
        tn_group_end(g, f->code == TN_REFUSAL_CONFIG ? TN_E_CONFIG : TN_E_PEER, g->rank, "%s",
                     text);
    }
    (void)pthread_cond_broadcast(&g->changed);
}

void tn_group_send_hello(tn_group *g, uint64_t now_ns)
{
    TN_ASSERT(g->rank != 0 && !g->is_whole);
    char at[TN_ENDPOINT_SIZE];
    const tn_membership *r = g->opts.membership;
    g->next_hello = now_ns + tn_timer_ns(TN_GROUP_HELLO_NS);
    if (g->dialled[0] == NULL && r->meet != NULL &&
        tn_rendezvous_file_read(r->meet, r->job, at, NULL) == TN_OK) {
        tn_error err = {0};
        if (tn_group_dial(g, 0, at, &err) != TN_OK) {
            tn_group_end_here(g, err.code, err.text);
        }
    }
    if (g->dialled[0] != NULL) {
        tn_group_post(g, 0, TN_FRAME_HELLO, &g->opts.hello);
    }
}

/* ---- waiting ---- */

static void name_missing(const tn_group *g, tn_text *out)
{
    if (g->rendezvous != NULL) {
        tn_rendezvous_missing(g->rendezvous, out);
    } else if (g->missing[0] != '\0') {
        tn_text_adds(out, g->missing);
    } else {
        const char *at = g->dialled[0];
        tn_text_addf(out, "rank 0 %s%s", at != NULL ? "at " : "in ",
                     at != NULL ? at : g->opts.membership->meet);
    }
}

/* Appends the missing ranks, and connections that were refused or broke off, if libzmq reports
 * them. */
static void describe_wait(const tn_group *g, tn_text *out)
{
    name_missing(g, out);
    tn_link_counts counts;
    tn_link_counts_of(g->link, &counts);
    const char *handshake = tn_handshake_text(counts.handshake);
    if (handshake != NULL) {
        tn_text_addf(out, "; %s", handshake);
    }
    for (uint32_t v = TN_ZAP_ADMITTED + 1; v < TN_ZAP_VERDICTS; v++) {
        if (counts.zap[v] > 0) {
            tn_text_addf(out, "; connections refused: %llu (%s)", (unsigned long long)counts.zap[v],
                         tn_zap_verdict_text(v));
        }
    }
    if (counts.failures.n > 0) {
        tn_text_addf(out, "; connections that broke off: %llu, the last of which %s",
                     (unsigned long long)counts.failures.n, counts.failures.why);
    }
}

/* Logs who is missing, or fails for it when the patience is over. */
static tn_status report_missing(const tn_group *g, const tn_rendezvous_timer *wait,
                                tn_rendezvous_timer_verdict verdict, tn_error *err)
{
    tn_text who = {0};
    tn_status status = TN_OK;
    describe_wait(g, &who);
    if (verdict == TN_RENDEZVOUS_TIMER_OVER) {
        status = tn_fail(err, TN_E_PEER, "waited %.0f s (cluster.start_timeout) for %s",
                         (double)wait->waited_ns * 1e-9, tn_text_str(&who));
    } else {
        tn_log(TN_LOG_INFO, "waiting for %s", tn_text_str(&who));
    }
    tn_text_done(&who);
    return status;
}

tn_status tn_group_form(tn_group *g, const atomic_bool *stop, tn_error *err)
{
    tn_rendezvous_timer wait = {.patience_ns = (uint64_t)(g->opts.start_timeout_s * 1e9),
                                .looked_ns = tn_clock_ns()};
    tn_error why = {0};
    tn_status status = TN_OK;
    (void)pthread_mutex_lock(&g->lock);
    while (status == TN_OK && g->ended == TN_OK && !g->is_whole) {
        const uint64_t now = tn_clock_ns();
        const tn_rendezvous_timer_verdict verdict = tn_rendezvous_timer_poll(&wait, now);
        if (stop != NULL && atomic_load(stop)) {
            status = tn_fail(&why, TN_E_STOPPED, "stopped by a signal while waiting for the peers");
        } else if (verdict != TN_RENDEZVOUS_TIMER_ON) {
            status = report_missing(g, &wait, verdict, &why);
        }
        if (status == TN_OK) {
            (void)tn_group_wait(g, now + look_ns);
        }
    }
    if (status != TN_OK) {
        tn_group_end_here(g, status, why.text);
    }
    status = tn_group_fault(g, err);
    (void)pthread_mutex_unlock(&g->lock);
    return status;
}
