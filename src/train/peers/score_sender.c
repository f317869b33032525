/* score_sender.c - see score_sender.h. */
#include "train/peers/score_sender.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"

#include <string.h>

struct tn_handover {
    tn_scored_form form;
    tn_handover_line line;
    size_t hold;
    tn_text rows;
    size_t handed; /* bytes of `rows` that rank 0 has */
    bool over;     /* no more come */
    bool told;     /* rank 0 knows */
    bool given_up; /* by rank 0, which ordered .. */
    tn_order_note instead;
};

tn_status tn_handover_new(tn_handover **out, const tn_scored_form *form,
                          const tn_handover_line *line, size_t hold, tn_error *err)
{
    tn_handover *h = tn_try_alloc(1, sizeof *h, "scored rows for rank 0", err);
    if (h == NULL) {
        return TN_E_MEMORY;
    }
    h->form = *form;
    h->line = *line;
    h->hold = hold > 0 ? hold : TN_HANDOVER_BYTES;
    *out = h;
    return TN_OK;
}

void tn_handover_free(tn_handover *h)
{
    if (h != NULL) {
        tn_text_done(&h->rows);
        tn_free(h);
    }
}

const tn_order_note *tn_handover_instead(const tn_handover *h)
{
    return &h->instead;
}

static size_t held(const tn_handover *h)
{
    return h->rows.size - h->handed;
}

/* Rows that rank 0 has make room once they are most of it, so that each byte moves about once. */
static void forget_handed(tn_handover *h)
{
    if (h->handed > 0 && h->handed >= held(h)) {
        const size_t rest = held(h);
        memmove(h->rows.data, h->rows.data + h->handed, rest);
        h->rows.size = rest;
        h->handed = 0;
    }
}

static tn_status hand_over(tn_handover *h, const tn_order_note *order, tn_error *err)
{
    if (order->more.n != 1) {
        return tn_fail(err, TN_E_PEER, "rank 0 does not say how many rows it wants");
    }
    const char *at = tn_text_str(&h->rows) + h->handed;
    const size_t size = tn_scored_fitting(at, held(h), (size_t)order->more.at[0]);
    const tn_done_note note = {
        .what = order->what, .number = order->number, .text = "", .metrics = {at, size}};
    TN_TRY(h->line.done(h->line.arg, &note, err));
    h->told = size == 0;
    h->handed += size;
    forget_handed(h);
    return TN_OK;
}

/* One order, if there is one or `wait`; there is something to answer with. */
static tn_status serve(tn_handover *h, bool wait, tn_error *err)
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

tn_status tn_handover_sink(void *handover, const tn_scores *scores, tn_error *err)
{
    tn_handover *h = handover;
    TN_ASSERT(!h->over);
    TN_TRY(tn_scored_add(&h->form, scores, &h->rows, err));
    if (held(h) > 0) {
        TN_TRY(serve(h, false, err));
    }
    while (held(h) > h->hold) {
        TN_TRY(serve(h, true, err));
    }
    return TN_OK;
}

tn_status tn_handover_end(tn_handover *h, tn_error *err)
{
    h->over = true;
    while (!h->told) {
        TN_TRY(serve(h, true, err));
    }
    return TN_OK;
}

static tn_status score(tn_handover *h, const tn_handover_pass *pass, tn_read_counts *counts,
                       tn_error *err)
{
    const tn_eval_request request = {.paths = pass->paths,
                                     .want_ids = true,
                                     .only_scores = true,
                                     .sink = tn_handover_sink,
                                     .sink_arg = h};
    tn_evaluation scored;
    TN_TRY(tn_evaluate(pass->w, &request, &scored, err));
    *counts = scored.counts;
    tn_evaluation_done(&scored);
    return tn_handover_end(h, err);
}

tn_status tn_handover_run(const tn_handover_pass *pass, tn_read_counts *counts,
                          tn_order_note *instead, tn_error *err)
{
    const tn_blueprint *plan = pass->w->plan;
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_scored_form form = tn_scored_form_of(plan->run, plan->schema, pass->ids, arena);
    tn_handover *h = NULL;
    tn_status status = pass->fetch != NULL ? tn_scored_form_fetch(&form, pass->w->eval_graph,
                                                                  pass->fetch, arena, err)
                                           : TN_OK;
    if (status == TN_OK) {
        status = tn_handover_new(&h, &form, &pass->line, 0, err);
    }
    if (status == TN_OK) {
        status = score(h, pass, counts, err);
    }
    if (status == TN_END) {
        *instead = *tn_handover_instead(h);
    }
    tn_handover_free(h);
    tn_arena_free(arena);
    return status;
}
