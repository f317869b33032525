/* group_orders.c - orders of rank 0 and the DONE of the others; messages about the parts of an
 * epoch. */
#include "cluster/group/group_state.h"

#include "base/core/clock.h"
#include "cluster/group/group.h"

#include <string.h>

/* ---- orders ---- */

/* Returns whether the others have acknowledged all requests. */
static bool all_have_it(const tn_group *g)
{
    for (uint32_t r = 1; r < g->size; r++) {
        if (tn_link_open_requests(g->link, r) > 0) {
            return false;
        }
    }
    return true;
}

/* Posts an order or a note to a rank, unless the group has ended. */
static void post(tn_group *g, uint32_t to, tn_frame_type type, const void *note)
{
    (void)pthread_mutex_lock(&g->lock);
    if (g->ended == TN_OK) {
        tn_group_post(g, to, type, note);
    }
    (void)pthread_mutex_unlock(&g->lock);
}

/* Waits are woken by every message; this is for wakeups that were missed. */
static const uint64_t look_ns = 200000000;

tn_status tn_group_order(tn_group *g, const tn_order_note *order, tn_error *err)
{
    TN_ASSERT(g->rank == 0 && order->what < TN_ORDERS);
    (void)pthread_mutex_lock(&g->lock);
    for (uint32_t r = 1; r < g->size && g->ended == TN_OK; r++) {
        tn_group_post(g, r, TN_FRAME_ORDER, order);
    }
    while (g->ended == TN_OK && !all_have_it(g)) {
        (void)tn_group_wait(g, tn_clock_ns() + look_ns);
    }
    tn_status status = tn_group_fault(g, err);
    (void)pthread_mutex_unlock(&g->lock);
    return status;
}

/* Returns the DONE of a rank for an order; NULL: not yet. */
static const tn_group_deed *done_of(const tn_group *g, uint32_t rank, const tn_order_note *order)
{
    const tn_group_deed *d = &g->done[(size_t)rank * TN_ORDERS + order->what];
    return d->arena != NULL && d->note.number == order->number ? d : NULL;
}

static bool have_done(const tn_group *g, tn_range ranks, const tn_order_note *order)
{
    bool all = true;
    for (uint32_t r = ranks.from; r < ranks.to; r++) {
        all = all && done_of(g, r, order) != NULL;
    }
    return all;
}

/* Hands over the DONE of a rank, or its failure; locked. */
static tn_status take_done(tn_group *g, uint32_t rank, const tn_order_note *order,
                           tn_done_take *take, void *arg, tn_error *err)
{
    const tn_done_note *note = &g->done[(size_t)rank * TN_ORDERS + order->what].note;
    if (note->status != TN_OK) {
        tn_status status =
            tn_fail(&g->deed, (tn_status)note->status, "rank %u: %s", rank, note->text);
        g->deed_rank = rank;
        if (err != NULL) {
            *err = g->deed;
        }
        return status;
    }
    return take != NULL ? take(arg, rank, note, err) : TN_OK;
}

static void forget_done(tn_group *g, uint32_t rank, const tn_order_note *order)
{
    tn_group_deed *d = &g->done[(size_t)rank * TN_ORDERS + order->what];
    TN_ASSERT(d->arena != NULL);
    tn_arena_free(d->arena); /* the next order of that kind and number is another one */
    d->arena = NULL;
}

static tn_status await(tn_group *g, tn_range ranks, const tn_order_note *order, tn_done_take *take,
                       void *arg, tn_error *err)
{
    TN_ASSERT(g->rank == 0 && ranks.from > 0 && ranks.to <= g->size && order->what < TN_ORDERS);
    (void)pthread_mutex_lock(&g->lock);
    while (g->ended == TN_OK && !have_done(g, ranks, order)) {
        (void)tn_group_wait(g, tn_clock_ns() + look_ns);
    }
    tn_status status = tn_group_fault(g, err);
    for (uint32_t r = ranks.from; r < ranks.to && status == TN_OK; r++) {
        status = take_done(g, r, order, take, arg, err);
    }
    for (uint32_t r = ranks.from; r < ranks.to && g->ended == TN_OK; r++) {
        forget_done(g, r, order);
    }
    (void)pthread_mutex_unlock(&g->lock);
    return status;
}

tn_status tn_group_await(tn_group *g, const tn_order_note *order, tn_done_take *take, void *arg,
                         tn_error *err)
{
    return await(g, (tn_range){1, g->size}, order, take, arg, err);
}

tn_status tn_group_have_done(tn_group *g, uint32_t rank, const tn_order_note *order,
                             tn_done_take *take, void *arg, tn_error *err)
{
    post(g, rank, TN_FRAME_ORDER, order);
    return await(g, (tn_range){rank, rank + 1}, order, take, arg, err);
}

void tn_group_take_order(tn_group *g, const tn_order_note *note, tn_arena *arena)
{
    TN_ASSERT(g->rank != 0 && arena != NULL);
    g->dismissed = g->dismissed || note->what == TN_ORDER_STOP || note->what == TN_ORDER_BYE;
    if (note->what == TN_ORDER_STOP) {
        const bool named = note->more.n == 1 && note->more.at[0] - 1 < g->size;
        tn_group_end(g, note->number, named ? (uint32_t)(note->more.at[0] - 1) : 0, "%s",
                     note->text);
        tn_arena_free(arena);
        return;
    }
    tn_group_order_in *o = TN_NEW(arena, tn_group_order_in);
    *o = (tn_group_order_in){.arena = arena, .note = *note};
    if (g->first == NULL) {
        g->first = o;
    } else {
        g->last->next = o;
    }
    g->last = o;
    (void)pthread_cond_broadcast(&g->changed);
}

/* Copies bytes that the message lends. */
static void keep_bytes(tn_note_bytes *bytes, tn_arena *arena)
{
    if (bytes->n > 0) {
        char *copy = TN_NEW_ARRAY(arena, char, bytes->n);
        bytes->at = memcpy(copy, bytes->at, bytes->n);
    }
}

void tn_group_take_done(tn_group *g, uint32_t rank, const tn_done_note *note, tn_arena *arena)
{
    TN_ASSERT(g->rank == 0 && rank < g->size && note->what < TN_ORDERS);
    if (note->what == TN_ORDER_STOP) {
        tn_group_end(g, note->status, rank, "rank %u: %s", rank, note->text);
        tn_arena_free(arena);
        return;
    }
    tn_group_deed *d = &g->done[(size_t)rank * TN_ORDERS + note->what];
    tn_arena_free(d->arena);
    *d = (tn_group_deed){arena, *note};
    keep_bytes(&d->note.metrics, arena);
    keep_bytes(&d->note.figures, arena);
    (void)pthread_cond_broadcast(&g->changed);
}

tn_status tn_group_next_order(tn_group *g, uint64_t deadline_ns, tn_order_note *out, tn_error *err)
{
    TN_ASSERT(g->rank != 0);
    (void)pthread_mutex_lock(&g->lock);
    bool late = false;
    while (g->ended == TN_OK && g->first == NULL && !late) {
        late = !tn_group_wait(g, deadline_ns);
    }
    tn_status status = TN_END;
    if (g->ended != TN_OK) {
        status = tn_group_fault(g, err);
    } else if (g->first != NULL) {
        if (g->current != NULL) {
            tn_arena_free(g->current->arena);
        }
        g->current = g->first;
        g->first = g->first->next;
        g->current->next = NULL;
        *out = g->current->note;
        status = TN_OK;
    }
    (void)pthread_mutex_unlock(&g->lock);
    return status;
}

bool tn_group_has_order(tn_group *g)
{
    (void)pthread_mutex_lock(&g->lock);
    bool has = g->ended != TN_OK || g->first != NULL;
    (void)pthread_mutex_unlock(&g->lock);
    return has;
}

tn_status tn_group_done(tn_group *g, const tn_done_note *note, tn_error *err)
{
    TN_ASSERT(g->rank != 0 && note->what < TN_ORDERS);
    (void)pthread_mutex_lock(&g->lock);
    tn_status status = tn_group_fault(g, err);
    if (status == TN_OK) {
        tn_group_post(g, 0, TN_FRAME_DONE, note);
    }
    (void)pthread_mutex_unlock(&g->lock);
    return status;
}

/* ---- life ---- */

void tn_group_report(tn_group *g, const tn_report_note *note)
{
    TN_ASSERT(g->rank != 0);
    post(g, 0, TN_FRAME_REPORT, note);
}

void tn_group_set_reports(tn_group *g, tn_report_take *take, void *arg)
{
    TN_ASSERT(g->rank == 0);
    (void)pthread_mutex_lock(&g->lock);
    g->take_report = take;
    g->reports = arg;
    (void)pthread_mutex_unlock(&g->lock);
}

void tn_group_set_beat(tn_group *g, const tn_beat_note *beat, uint64_t step)
{
    TN_ASSERT(beat->state < TN_PEER_STATES && beat->asks < TN_PEER_ASKS);
    (void)pthread_mutex_lock(&g->lock);
    const uint64_t asks = beat->asks != TN_ASKS_NOTHING ? beat->asks : g->beat.asks;
    if (asks == TN_ASKS_ROOM && g->beat.asks != asks) {
        g->next_beat = 0; /* soon: it grows */
    }
    g->beat = *beat;
    g->beat.asks = asks; /* until it is sent */
    g->step = step;
    (void)pthread_mutex_unlock(&g->lock);
}

bool tn_group_is_asked(tn_group *g, tn_peer_ask what)
{
    TN_ASSERT(what < TN_PEER_ASKS);
    (void)pthread_mutex_lock(&g->lock);
    bool asked = g->asked[what];
    g->asked[what] = false;
    (void)pthread_mutex_unlock(&g->lock);
    return asked;
}

void tn_group_table(tn_group *g, tn_text *out)
{
    (void)pthread_mutex_lock(&g->lock);
    tn_failure_detector_table(g->detector, tn_clock_ns(), out);
    (void)pthread_mutex_unlock(&g->lock);
}

/* ---- parts of an epoch ---- */

void tn_group_set_parts(tn_group *g, const tn_group_parts *parts)
{
    (void)pthread_mutex_lock(&g->parts_lock);
    g->parts = parts != NULL ? *parts : (tn_group_parts){0};
    (void)pthread_mutex_unlock(&g->parts_lock);
}

void tn_group_deal(tn_group *g, const tn_frame *ask, const tn_part_note *note)
{
    TN_ASSERT(g->rank == 0);
    (void)pthread_mutex_lock(&g->lock);
    tn_group_answer(g, ask, TN_FRAME_PART, 0, note);
    (void)pthread_mutex_unlock(&g->lock);
}

/* Answers WAIT: between two epochs nobody deals parts. */
static void make_wait(tn_group *g, const tn_frame *frame, const tn_ask_note *note)
{
    const tn_part_note wait = {
        .answer = TN_PART_WAIT, .epoch = note->epoch, .id = note->id, .number = note->number};
    tn_group_deal(g, frame, &wait);
}

void tn_group_receive_parts(tn_group *g, const tn_frame *frame, const void *note)
{
    (void)pthread_mutex_lock(&g->parts_lock);
    const tn_group_parts *p = &g->parts;
    const bool is_root = g->rank == 0;
    if (is_root && frame->type == TN_FRAME_ASK && p->ask == NULL) {
        make_wait(g, frame, note);
    } else if (is_root && frame->type == TN_FRAME_ASK) {
        p->ask(p->arg, frame, note);
    } else if (is_root && frame->type == TN_FRAME_BEAT && p->claim != NULL) {
        p->claim(p->arg, frame->rank, &((const tn_beat_note *)note)->held);
    } else if (is_root && frame->type == TN_FRAME_DONE && p->returned != NULL &&
               ((const tn_done_note *)note)->what == TN_ORDER_RETURN) {
        p->returned(p->arg, frame->rank, note);
    } else if (frame->type == TN_FRAME_PART && frame->rank == 0 && p->answer != NULL) {
        p->answer(p->arg, note);
    }
    (void)pthread_mutex_unlock(&g->parts_lock);
}

void tn_group_tick_parts(tn_group *g, uint64_t now_ns, tn_arena *arena, tn_note_parts *held)
{
    (void)pthread_mutex_lock(&g->parts_lock);
    if (g->parts.tick != NULL) {
        g->parts.tick(g->parts.arg, now_ns);
    }
    if (g->parts.held != NULL) {
        g->parts.held(g->parts.arg, arena, held);
    }
    (void)pthread_mutex_unlock(&g->parts_lock);
}

void tn_group_ask(tn_group *g, const tn_ask_note *note)
{
    TN_ASSERT(g->rank != 0);
    post(g, 0, TN_FRAME_ASK, note);
}

void tn_group_order_one(tn_group *g, uint32_t rank, const tn_order_note *order)
{
    TN_ASSERT(g->rank == 0 && rank != 0 && order->what < TN_ORDERS);
    post(g, rank, TN_FRAME_ORDER, order);
}

void tn_group_lose(tn_group *g, uint32_t rank, const char *what)
{
    TN_ASSERT(g->rank == 0 && rank != 0);
    tn_text text = {0};
    (void)pthread_mutex_lock(&g->lock);
    tn_failure_lost_text(g->detector, rank, tn_clock_ns(), &text);
    tn_group_end(g, TN_E_PEER, 0, "%s, %s, and is taken for lost%s", tn_text_str(&text), what,
                 TN_GROUP_ADVICE);
    (void)pthread_mutex_unlock(&g->lock);
    tn_group_report_end(g);
    tn_text_done(&text);
}
