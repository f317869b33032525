/* groupparts.c - the parts of an epoch on their way between rank 0 and the others; see group.h. */
#include "base/core/clock.h"
#include "cluster/group/groupcalls.h"

enum { NOTE_ARENA = 1 << 10 };

void tn_group_set_parts(tn_group *g, const tn_group_parts *parts)
{
    (void)pthread_mutex_lock(&g->parts_lock);
    g->parts = parts != NULL ? *parts : (tn_group_parts){0};
    (void)pthread_mutex_unlock(&g->parts_lock);
}

/* ---- hearing, on tn-net ---- */

/* Without a dealer: between two epochs. */
static void make_wait(tn_group *g, const tn_frame *frame, const tn_ask_note *note)
{
    const tn_part_note wait = {
        .answer = TN_PART_WAIT, .epoch = note->epoch, .id = note->id, .number = note->number};
    tn_group_deal(g, frame, &wait);
}

void tn_group_hear_parts(tn_group *g, const tn_frame *frame, const void *note)
{
    if (g->rank != 0) {
        return;
    }
    (void)pthread_mutex_lock(&g->parts_lock);
    const tn_group_parts *p = &g->parts;
    if (frame->type == TN_FRAME_ASK && p->ask == NULL) {
        make_wait(g, frame, note);
    } else if (frame->type == TN_FRAME_ASK) {
        p->ask(p->arg, frame, note);
    } else if (frame->type == TN_FRAME_BEAT && p->claim != NULL) {
        p->claim(p->arg, frame->rank, &((const tn_beat_note *)note)->held);
    } else if (frame->type == TN_FRAME_DONE && p->returned != NULL &&
               ((const tn_done_note *)note)->what == TN_ORDER_RETURN) {
        p->returned(p->arg, frame->rank, note);
    }
    (void)pthread_mutex_unlock(&g->parts_lock);
}

void tn_group_hear_part(tn_group *g, const tn_frame *frame)
{
    tn_part_note note;
    tn_arena *arena = tn_arena_new(NOTE_ARENA);
    if (frame->rank == 0 &&
        tn_note_read(&note, frame->type, frame->payload, frame->bytes, arena) == TN_DROP_NONE) {
        (void)pthread_mutex_lock(&g->parts_lock);
        if (g->parts.answer != NULL) {
            g->parts.answer(g->parts.arg, &note);
        }
        (void)pthread_mutex_unlock(&g->parts_lock);
    }
    tn_arena_free(arena);
}

void tn_group_tick_parts(tn_group *g, uint64_t now_ns)
{
    (void)pthread_mutex_lock(&g->parts_lock);
    if (g->parts.tick != NULL) {
        g->parts.tick(g->parts.arg, now_ns);
    }
    (void)pthread_mutex_unlock(&g->parts_lock);
}

void tn_group_held(tn_group *g, tn_arena *arena, tn_note_parts *out)
{
    *out = (tn_note_parts){{NULL, 0}, {NULL, 0}, {NULL, 0}};
    (void)pthread_mutex_lock(&g->parts_lock);
    if (g->parts.held != NULL) {
        g->parts.held(g->parts.arg, arena, out);
    }
    (void)pthread_mutex_unlock(&g->parts_lock);
}

/* ---- saying ---- */

void tn_group_ask(tn_group *g, const tn_ask_note *note)
{
    TN_ASSERT(g->rank != 0);
    (void)pthread_mutex_lock(&g->lock);
    if (g->ended == TN_OK) {
        tn_group_post(g, 0, TN_FRAME_ASK, note, NULL);
    }
    (void)pthread_mutex_unlock(&g->lock);
}

void tn_group_deal(tn_group *g, const tn_frame *ask, const tn_part_note *note)
{
    (void)pthread_mutex_lock(&g->lock);
    tn_group_post(g, ask->rank, TN_FRAME_PART, note, ask);
    (void)pthread_mutex_unlock(&g->lock);
}

void tn_group_order_one(tn_group *g, uint32_t rank, const tn_order_note *order)
{
    TN_ASSERT(g->rank == 0 && rank != 0);
    (void)pthread_mutex_lock(&g->lock);
    if (g->ended == TN_OK) {
        tn_group_post(g, rank, TN_FRAME_ORDER, order, NULL);
    }
    (void)pthread_mutex_unlock(&g->lock);
}

void tn_group_lose(tn_group *g, uint32_t rank, const char *what)
{
    tn_text text = {0};
    (void)pthread_mutex_lock(&g->lock);
    tn_pulse_lost_text(g->pulse, rank, tn_clock_ns(), &text);
    tn_text_addf(&text, ", %s, and is taken for lost%s", what, tn_group_advice());
    tn_group_end(g, TN_E_PEER, 0, tn_text_str(&text));
    (void)pthread_mutex_unlock(&g->lock);
    tn_group_tell_values(g);
    tn_text_done(&text);
}
