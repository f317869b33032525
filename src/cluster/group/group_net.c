/* group_net.c - messages that a group receives, and the heartbeats and hellos that it sends; on
 * tn-net. */
#include "cluster/group/group_state.h"

#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/core/stop.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const uint64_t beat_ns = 1000000000;

enum { NOTE_ARENA = 1 << 12, NEWS_BYTES = 256 };

/* ---- sending ---- */

/* Writes a message of that type, with its note unless that is NULL. Returns NULL when there is no
 * memory. */
static tn_out_message *write_message(tn_group *g, tn_frame_type type, const void *note)
{
    tn_text text = {0};
    tn_out_message *p = NULL;
    if (note != NULL) {
        tn_note_write(type, note, &text);
    }
    if (tn_text_check(&text, "a note", NULL) == TN_OK &&
        tn_out_message_take(&p, g->pool, text.size, NULL) == TN_OK) {
        memcpy(tn_out_message_payload(p), tn_text_str(&text), text.size);
        p->frame.type = type;
    }
    tn_text_done(&text);
    return p;
}

void tn_group_post(tn_group *g, uint32_t to, tn_frame_type type, const void *note)
{
    tn_out_message *p = write_message(g, type, note);
    if (p != NULL) {
        p->frame.step = g->step;
        tn_link_post(g->link, to, p);
    }
}

void tn_group_answer(tn_group *g, const tn_frame *request, tn_frame_type type, uint32_t code,
                     const void *note)
{
    tn_out_message *p = write_message(g, type, note);
    if (p != NULL) {
        p->frame.code = code;
        tn_link_answer(g->link, request, p);
    }
}

/* Locked. */
static void beat(tn_group *g, uint32_t waits_for, const tn_note_parts *held, uint64_t now)
{
    TN_ASSERT(g->is_whole);
    tn_link_counts counts;
    tn_link_counts_of(g->link, &counts);
    if (g->rank == 0 && tn_stop_is(NULL)) { /* it may be waiting for ranks that wait for a server */
        g->beat.asks = TN_ASKS_STOP;
    }
    g->beat.waits_for = waits_for;
    g->beat.held = *held;
    g->beat.bytes_out = counts.bytes_out;
    g->beat.bytes_in = counts.bytes_in;
    tn_failure_detector_received(g->detector, g->rank, &g->beat, g->step, now);
    for (uint32_t r = 0; r < g->size; r++) {
        if (r != g->rank && (r == 0 || g->rank == 0)) {
            tn_group_post(g, r, TN_FRAME_BEAT, &g->beat);
        }
    }
    g->beat.held = (tn_note_parts){{NULL, 0}, {NULL, 0}, {NULL, 0}};
    if (g->beat.asks == TN_ASKS_SAVE) { /* the other asks are repeated in every heartbeat */
        g->beat.asks = TN_ASKS_NOTHING;
    }
}

/* ---- receiving ---- */

typedef union any_note {
    tn_hello_note hello;
    tn_welcome_note welcome;
    tn_beat_note beat;
    tn_order_note order;
    tn_done_note done;
    tn_report_note report;
    tn_ask_note ask;
    tn_part_note part;
    tn_refused_note refused;
} any_note;

/* Receives a request, locked. Where the message is kept *arena is taken over and set to NULL. */
static tn_dedup_verdict receive_request(tn_group *g, const tn_frame *f, const any_note *note,
                                        tn_arena **arena)
{
    tn_dedup *dedup = &g->dedup[f->rank];
    tn_dedup_verdict verdict = tn_dedup_check(dedup, f->incarnation, f->sequence);
    if (verdict == TN_DEDUP_APPLY) {
        if (f->type == TN_FRAME_ORDER && f->rank == 0) {
            tn_group_take_order(g, &note->order, *arena);
            *arena = NULL;
        } else if (f->type == TN_FRAME_DONE && g->rank == 0 &&
                   note->done.what != TN_ORDER_RETURN) { /* the dealer of parts takes those */
            tn_group_take_done(g, f->rank, &note->done, *arena);
            *arena = NULL;
        } else if (f->type == TN_FRAME_REPORT && g->take_report != NULL) {
            g->take_report(g->reports, f->rank, &note->report);
        }
        tn_dedup_mark(dedup, f->sequence);
    }
    /* A rank that rank 0 has stopped waiting for knows no incarnation of rank 0 yet. */
    if (verdict == TN_DEDUP_STALE && f->type == TN_FRAME_ORDER && f->rank == 0 && !g->is_whole &&
        note->order.what == TN_ORDER_STOP) {
        tn_group_take_order(g, &note->order, *arena);
        *arena = NULL;
        verdict = TN_DEDUP_REPEATED;
    }
    if (f->type != TN_FRAME_ASK && (verdict == TN_DEDUP_APPLY || verdict == TN_DEDUP_REPEATED)) {
        tn_group_answer(g, f, TN_FRAME_NOTED, 0, NULL);
    }
    return verdict;
}

/* Receives a heartbeat. Returns false when it is of another incarnation. */
static bool receive_beat(tn_group *g, const tn_frame *f, const tn_beat_note *note)
{
    if (f->incarnation != g->dedup[f->rank].incarnation) {
        return false;
    }
    tn_failure_detector_received(g->detector, f->rank, note, f->step, tn_clock_ns());
    if (f->rank == 0 && note->state == TN_PEER_ENDING) {
        g->is_last = true;
        (void)pthread_cond_broadcast(&g->changed);
    }
    if (note->asks == TN_ASKS_STOP && g->rank != 0) {
        tn_stop_by_group(true);
    }
    if (note->asks != TN_ASKS_NOTHING && g->rank == 0) {
        TN_ASSERT(note->asks < TN_PEER_ASKS);
        g->asked[note->asks] = true;
        (void)pthread_cond_broadcast(&g->changed);
    }
    return true;
}

static void receive(tn_group *g, const tn_frame *f)
{
    any_note note;
    tn_arena *arena = tn_arena_new(NOTE_ARENA);
    const bool damaged = tn_note_read(&note, f->type, f->payload, f->bytes, arena) != TN_DROP_NONE;
    if (damaged && f->type == TN_FRAME_REFUSED) { /* its code still says why */
        note.refused = (tn_refused_note){.text = ""};
    } else if (damaged) {
        tn_log(TN_LOG_WARN, "dropped a damaged %s of rank %u", tn_frame_type_name(f->type),
               f->rank);
        tn_arena_free(arena);
        return;
    }
    tn_dedup_verdict verdict = TN_DEDUP_STALE;
    (void)pthread_mutex_lock(&g->lock);
    if (f->type == TN_FRAME_HELLO && g->rendezvous != NULL) {
        tn_group_receive_hello(g, f, &note.hello);
    } else if (f->type == TN_FRAME_WELCOME) {
        tn_group_receive_welcome(g, f, &note.welcome);
    } else if (f->type == TN_FRAME_REFUSED) {
        tn_group_receive_refused(g, f, &note.refused);
    } else if (f->type == TN_FRAME_PART ||
               (f->type == TN_FRAME_BEAT && receive_beat(g, f, &note.beat))) {
        verdict = TN_DEDUP_APPLY;
    } else if (tn_frame_is_request(f->type)) {
        verdict = receive_request(g, f, &note, &arena);
    }
    bool ended = g->ended != TN_OK;
    (void)pthread_mutex_unlock(&g->lock);
    if (verdict == TN_DEDUP_APPLY || (verdict == TN_DEDUP_REPEATED && f->type == TN_FRAME_ASK)) {
        tn_group_receive_parts(g, f, &note); /* a duplicate ASK is answered again */
    }
    tn_arena_free(arena);
    if (ended) {
        tn_group_report_end(g);
    }
}

static void note_life(tn_group *g, const tn_frame *f)
{
    (void)pthread_mutex_lock(&g->lock);
    if (g->open && g->is_whole && f->incarnation == g->dedup[f->rank].incarnation) {
        tn_failure_detector_received(g->detector, f->rank, NULL, 0, tn_clock_ns());
        if (f->type == TN_FRAME_PUSH) {
            tn_failure_detector_pushed(g->detector, f->rank, f->step);
        }
    }
    (void)pthread_mutex_unlock(&g->lock);
}

/* Passes a message to the values. False: they do not take it. */
static bool hand_on(tn_group *g, tn_in_message *incoming, bool answer)
{
    (void)pthread_mutex_lock(&g->values_lock);
    void (*take)(void *, tn_in_message *) = answer ? g->values.answer : g->values.request;
    if (take != NULL) {
        take(g->values.arg, incoming);
    }
    (void)pthread_mutex_unlock(&g->values_lock);
    return take != NULL;
}

static bool is_ours(tn_frame_type type)
{
    return type == TN_FRAME_HELLO || type == TN_FRAME_WELCOME || type == TN_FRAME_BEAT ||
           type == TN_FRAME_ORDER || type == TN_FRAME_DONE || type == TN_FRAME_REPORT ||
           type == TN_FRAME_ASK;
}

static bool is_for_values(tn_frame_type type)
{
    return type == TN_FRAME_PULL || type == TN_FRAME_PUSH || type == TN_FRAME_SHARE ||
           type == TN_FRAME_PEEK;
}

void tn_group_receive_request(void *arg, tn_in_message *incoming)
{
    tn_group *g = arg;
    const tn_frame_type type = incoming->frame.type;
    TN_ASSERT(incoming->from < g->size && incoming->from != g->rank);
    note_life(g, &incoming->frame);
    if (is_ours(type)) {
        receive(g, &incoming->frame);
    } else if (is_for_values(type) && hand_on(g, incoming, false)) {
        return;
    }
    tn_in_message_close(incoming);
}

void tn_group_receive_answer(void *arg, tn_in_message *incoming)
{
    tn_group *g = arg;
    const tn_frame_type type = incoming->frame.type;
    TN_ASSERT(incoming->from < g->size && incoming->from != g->rank);
    note_life(g, &incoming->frame);
    if (type == TN_FRAME_PART || (type == TN_FRAME_REFUSED && incoming->frame.sequence == 0)) {
        receive(g, &incoming->frame);
    } else if (type == TN_FRAME_NOTED) {
        (void)pthread_mutex_lock(&g->lock);
        (void)pthread_cond_broadcast(&g->changed);
        (void)pthread_mutex_unlock(&g->lock);
    } else if (hand_on(g, incoming, true)) {
        return;
    }
    tn_in_message_close(incoming);
}

/* ---- time ---- */

/* Looks for losses. Rank 0 reports a lost rank. If rank 0 is lost all others notice it, and rank 1
 * reports it. */
static void look_for_losses(tn_group *g, uint64_t now)
{
    tn_failure_event event;
    while (tn_failure_detector_poll(g->detector, now, &event)) {
        tn_text text = {0};
        tn_failure_event_text(g->detector, &event, &text);
        tn_log(event.kind == TN_FAILURE_BACK ? TN_LOG_INFO : TN_LOG_WARN, "%s", tn_text_str(&text));
        if (event.kind == TN_FAILURE_LOST) {
            tn_text_addf(&text, ", and is taken for lost%s", TN_GROUP_ADVICE);
            tn_group_end(g, TN_E_PEER, g->rank == 0 ? 0 : 1, "%s", tn_text_str(&text));
        }
        tn_text_done(&text);
    }
}

/* Receives news of the process that started all ranks: a rank has ended, as it has reported
 * already. */
static void receive_news(tn_group *g)
{
    char line[NEWS_BYTES];
    ssize_t size = g->opts.news > 0 ? recv(g->opts.news, line, sizeof line - 1, MSG_DONTWAIT) : 0;
    if (size <= 0) {
        return;
    }
    line[size] = '\0';
    char *sentence = NULL;
    const unsigned long rank = strtoul(line, &sentence, 10);
    if (rank >= g->size || rank == g->rank || *sentence != ' ') {
        return;
    }
    g->gone = 1 + (uint32_t)rank;
    tn_group_end(g, TN_E_PEER, (uint32_t)rank, "%s%s", sentence + 1, TN_GROUP_ADVICE);
}

void tn_group_tick(void *arg, uint64_t now_ns)
{
    tn_group *g = arg;
    tn_arena *arena = tn_arena_new(NOTE_ARENA);
    tn_note_parts held = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    bool is_table_due = false;
    (void)pthread_mutex_lock(&g->values_lock);
    const uint32_t waits_for = g->values.waits_for != NULL ? g->values.waits_for(g->values.arg) : 0;
    (void)pthread_mutex_unlock(&g->values_lock);
    tn_group_tick_parts(g, now_ns, arena, &held);
    (void)pthread_mutex_lock(&g->lock);
    if (g->open && g->rank != 0 && !g->is_whole && !g->is_refused && now_ns >= g->next_hello) {
        tn_group_send_hello(g, now_ns);
    }
    receive_news(g);
    if (g->is_whole && g->ended == TN_OK) {
        if (now_ns >= g->next_beat) {
            g->next_beat = now_ns + tn_timer_ns(beat_ns);
            beat(g, waits_for, &held, now_ns);
        }
        look_for_losses(g, now_ns);
        is_table_due = g->opts.table.show != NULL && now_ns >= g->next_table;
    }
    if (is_table_due) {
        g->next_table = now_ns + g->opts.table.every_ns;
    }
    bool ended = g->ended != TN_OK;
    (void)pthread_mutex_unlock(&g->lock);
    tn_arena_free(arena);
    if (is_table_due) { /* showing it may take its time */
        tn_text text = {0};
        tn_group_table(g, &text);
        g->opts.table.show(g->opts.table.arg, tn_text_str(&text));
        tn_text_done(&text);
    }
    if (ended) {
        tn_group_report_end(g);
    }
}
