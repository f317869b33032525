/* score_exchange.c - ranks hand scored rows to rank 0, which merges them in the order of the data.
 */
#include "cluster/train/score_exchange.h"

#include "base/core/arena.h"
#include "io/schema/schema.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <string.h>

/* ---- a rank that sends ---- */

enum { HELD_BYTES = 32 << 20 }; /* rows that wait until rank 0 asks */

static size_t held(const tn_score_sender *h)
{
    TN_ASSERT(h->handed <= h->rows.size);
    return h->rows.size - h->handed;
}

/* Rows that rank 0 has make room once they are most of it, so that each byte moves about once. */
static void forget_handed(tn_score_sender *h)
{
    if (h->handed > 0 && h->handed >= held(h)) {
        const size_t rest = held(h);
        memmove(h->rows.data, h->rows.data + h->handed, rest);
        h->rows.size = rest;
        h->handed = 0;
    }
}

static tn_status hand_over(tn_score_sender *h, const tn_order_note *order, tn_error *err)
{
    if (order->more.n != 1) {
        return tn_fail(err, TN_E_PEER, "rank 0 does not say how many rows it wants");
    }
    const char *at = tn_text_str(&h->rows) + h->handed;
    const size_t size = tn_scored_fitting(at, held(h), (size_t)order->more.at[0]);
    TN_ASSERT(size <= held(h));
    const tn_done_note note = {
        .what = order->what, .number = order->number, .text = "", .metrics = {at, size}};
    TN_TRY(h->line.done(h->line.arg, &note, err));
    h->told = size == 0;
    h->handed += size;
    forget_handed(h);
    return TN_OK;
}

/* One order, if there is one or `wait`; there is something to answer with. */
static tn_status serve(tn_score_sender *h, bool wait, tn_error *err)
{
    tn_order_note order;
    if (h->given_up) {
        return TN_END;
    }
    tn_status status = h->line.order(h->line.arg, wait, &order, err);
    if (status != TN_OK) {
        return status == TN_END ? TN_OK : status;
    }
    if (order.what != TN_ORDER_ROWS) {
        h->given_up = true;
        h->instead = order;
        return TN_END;
    }
    return hand_over(h, &order, err);
}

tn_status tn_score_sender_sink(void *sender, const tn_scores *scores, tn_error *err)
{
    tn_score_sender *h = sender;
    TN_TRY(tn_scored_add(h->form, scores, &h->rows, err));
    if (held(h) > 0) {
        TN_TRY(serve(h, false, err));
    }
    while (held(h) > h->hold) {
        TN_TRY(serve(h, true, err));
    }
    return TN_OK;
}

tn_status tn_score_sender_end(tn_score_sender *h, tn_error *err)
{
    while (!h->told) {
        TN_TRY(serve(h, true, err));
    }
    return TN_OK;
}

static tn_status score(tn_score_sender *h, const tn_score_sender_pass *pass, tn_read_counts *counts,
                       tn_error *err)
{
    const tn_eval_request request = {.paths = pass->paths,
                                     .rows_max = pass->rows_max,
                                     .held = pass->held,
                                     .want_ids = true,
                                     .only_scores = true,
                                     .sink = tn_score_sender_sink,
                                     .sink_arg = h};
    tn_evaluation scored;
    TN_TRY(tn_evaluate(pass->w, &request, &scored, err));
    *counts = scored.counts;
    tn_evaluation_done(&scored);
    return tn_score_sender_end(h, err);
}

tn_status tn_score_sender_run(const tn_score_sender_pass *pass, tn_read_counts *counts,
                              tn_order_note *instead, tn_error *err)
{
    const tn_model_plan *plan = pass->w->plan;
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_scored_form form = tn_scored_form_of(plan->run, plan->schema, pass->ids, arena);
    tn_score_sender h = {.form = &form, .line = pass->line, .hold = HELD_BYTES};
    tn_status status = pass->fetch != NULL ? tn_scored_form_fetch(&form, pass->w->eval_graph,
                                                                  pass->fetch, arena, err)
                                           : TN_OK;
    if (status == TN_OK) {
        status = score(&h, pass, counts, err);
    }
    if (status == TN_END) {
        *instead = h.instead;
    }
    tn_text_done(&h.rows);
    tn_arena_free(arena);
    return status;
}

/* ---- rank 0 merges ---- */

/* A row's position in the data. */
typedef struct place {
    uint32_t source;
    uint64_t at;
} place;

static const place nowhere = {UINT32_MAX, UINT64_MAX}; /* after all rows */

/* The piece that is there of another rank. */
typedef struct stream {
    tn_scored_rows rows;
    uint32_t next; /* row */
    place last;    /* the row before */
    bool over;
} stream;

struct tn_score_merge {
    tn_score_merge_opts opts;
    stream *other;
    tn_slot *slot; /* a view's */
    tn_text piece;
};

tn_score_merge *tn_score_merge_new(const tn_score_merge_opts *opts, tn_arena *arena)
{
    TN_ASSERT(opts->take != NULL && (opts->others == 0 || opts->more != NULL));
    tn_score_merge *m = TN_NEW(arena, tn_score_merge);
    m->opts = *opts;
    m->other = TN_NEW_ARRAY(arena, stream, (size_t)opts->others + 1);
    m->slot = TN_NEW_ARRAY(arena, tn_slot, (size_t)opts->form.schema->n_slots + 1);
    for (uint32_t i = 0; i < opts->others; i++) {
        m->other[i].rows.form = &m->opts.form;
    }
    return m;
}

void tn_score_merge_done(tn_score_merge *m)
{
    for (uint32_t i = 0; m != NULL && i < m->opts.others; i++) {
        tn_scored_rows_done(&m->other[i].rows);
    }
    if (m != NULL) {
        tn_text_done(&m->piece);
    }
}

static place place_of(const tn_batch *b, uint32_t row)
{
    return (place){b->source[row], b->source_at[row]};
}

static bool before(place a, place b)
{
    return a.source != b.source ? a.source < b.source : a.at < b.at;
}

/* Finds the first row from `from` on that is not before `end`. */
static uint32_t run_end(const tn_batch *b, uint32_t from, place end)
{
    TN_ASSERT(from <= b->rows);
    uint32_t row = from;
    while (row < b->rows && before(place_of(b, row), end)) {
        row++;
    }
    return row;
}

/* A piece in another order than its rows were read in is none of ours. */
static tn_status check_order(stream *s, uint32_t other, tn_error *err)
{
    const tn_batch *b = &s->rows.batch;
    for (uint32_t row = 0; row < b->rows; row++) {
        if (before(place_of(b, row), s->last)) {
            return tn_fail(err, TN_E_PEER, "rank %u sends scored rows out of order", other + 1);
        }
        s->last = place_of(b, row);
    }
    return TN_OK;
}

/* Sees to it that a rank's next row is there, or that it has none. */
static tn_status refill(tn_score_merge *m, uint32_t other, tn_error *err)
{
    TN_ASSERT(other < m->opts.others);
    stream *s = &m->other[other];
    if (s->over || s->next < s->rows.batch.rows) {
        return TN_OK;
    }
    tn_text_clear(&m->piece);
    TN_TRY(m->opts.more(m->opts.arg, other, &m->piece, err));
    TN_TRY(tn_text_check(&m->piece, "scored rows", err));
    TN_TRY(tn_scored_read(&s->rows, tn_text_str(&m->piece), m->piece.size, err));
    s->next = 0;
    s->over = m->piece.size == 0;
    return check_order(s, other, err);
}

static place next_of(const stream *s)
{
    return s->over ? nowhere : place_of(&s->rows.batch, s->next);
}

/* Finds the other rank that has the first row of theirs, and the first position of the rest. */
static tn_status first_of_others(tn_score_merge *m, uint32_t *first, place *second, tn_error *err)
{
    place least = nowhere;
    *first = 0;
    *second = nowhere;
    for (uint32_t i = 0; i < m->opts.others; i++) {
        TN_TRY(refill(m, i, err));
        const place at = next_of(&m->other[i]);
        if (before(at, least)) {
            *second = least;
            least = at;
            *first = i;
        } else if (before(at, *second)) {
            *second = at;
        }
    }
    return TN_OK;
}

static tn_status take(tn_score_merge *m, const tn_scores *of, uint32_t from, uint32_t end,
                      tn_error *err)
{
    TN_ASSERT(from < end && end <= of->batch->rows);
    tn_scored_view view;
    tn_scored_view_of(&m->opts.form, of, from, end - from, m->slot, &view);
    return m->opts.take(m->opts.arg, &view.scores, err);
}

/* Takes rows of others before `end`; *next is the position of the first one that is not. */
static tn_status take_others(tn_score_merge *m, place end, place *next, tn_error *err)
{
    for (;;) {
        uint32_t first = 0;
        place second;
        TN_TRY(first_of_others(m, &first, &second, err));
        *next = m->opts.others > 0 ? next_of(&m->other[first]) : nowhere;
        if (!before(*next, end)) {
            return TN_OK;
        }
        stream *s = &m->other[first];
        const tn_scores *scores = &s->rows.scores;
        uint32_t to = run_end(scores->batch, s->next, before(second, end) ? second : end);
        to = to > s->next ? to : s->next + 1; /* two ranks at one place: not ours to judge */
        const uint32_t from = s->next;
        s->next = to;
        TN_TRY(take(m, scores, from, to, err));
    }
}

tn_status tn_score_merge_own(void *merge, const tn_scores *scores, tn_error *err)
{
    tn_score_merge *m = merge;
    const tn_batch *b = scores->batch;
    TN_ASSERT(b->source != NULL);
    uint32_t row = 0;
    while (row < b->rows) {
        place next;
        TN_TRY(take_others(m, place_of(b, row), &next, err));
        uint32_t to = run_end(b, row, next);
        to = to > row ? to : row + 1;
        TN_TRY(take(m, scores, row, to, err));
        row = to;
    }
    return TN_OK;
}

tn_status tn_score_merge_end(tn_score_merge *m, tn_error *err)
{
    place next;
    return take_others(m, nowhere, &next, err);
}
