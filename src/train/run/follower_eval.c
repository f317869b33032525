/* follower_eval.c - what a rank other than 0 scores of a data set; see follower_state.h. */
#include "train/run/follower_state.h"

#include "base/core/clock.h"
#include "metrics/metrics_pack.h"
#include "train/peers/score_sender.h"

#include <string.h>

static const tn_note_parts no_parts;

tn_status tn_follower_say_scores(tn_follower *f, const tn_order_note *order,
                                 const tn_metrics *metrics, const tn_read_counts *counts,
                                 const tn_note_parts *parts, tn_error *err)
{
    tn_text packed = {0};
    if (metrics != NULL) {
        tn_metrics_pack(metrics, &packed);
    }
    tn_status status = tn_text_check(&packed, "metrics", err);
    if (status == TN_OK) {
        tn_done_note note = {.what = order->what,
                             .number = order->number,
                             .text = "",
                             .parts = *parts,
                             .records = counts->records,
                             .bad = counts->bad,
                             .metrics = {packed.data, packed.size}};
        status = tn_follower_tell(f, &note, err);
    }
    tn_text_done(&packed);
    return status;
}

/* ---- rows ---- */

static tn_status look_for_order(void *arg, bool wait, tn_order_note *out, tn_error *err)
{
    tn_follower *f = arg;
    if (!wait && !tn_group_has_order(f->group)) {
        return TN_END;
    }
    tn_beats_state(&f->beats, TN_PEER_EVALUATING);
    TN_TRY(tn_follower_note_share(f, err));
    TN_TRY(tn_group_next_order(f->group, tn_clock_ns() + TN_FOLLOWER_LOOK_NS, out, err));
    if (out->what != TN_ORDER_RETURN) {
        return TN_OK;
    }
    TN_TRY(tn_follower_give_back(f, out, err)); /* it came late, and changes nothing here */
    return TN_END;
}

static tn_status say_rows(void *arg, const tn_done_note *note, tn_error *err)
{
    const tn_follower *f = arg;
    return tn_group_done(f->group, note, err);
}

/* Rank 0 waits for rows, so a failure is the group's. */
static tn_status hand_over(tn_follower *f, const tn_order_note *order, const tn_strs *paths,
                           tn_error *err)
{
    const tn_order_note said = *order; /* of which the next one leaves no text */
    const bool nodes = (order->more.at[0] & TN_EVALUATES_WITH_NODES) != 0;
    if (nodes && f->fetch == NULL) {
        return tn_fail(err, TN_E_USAGE, "rank 0 fetches nodes that this rank was not told of");
    }
    const tn_handover_pass pass = {.w = f->w,
                                   .paths = paths,
                                   .ids = (order->more.at[0] & TN_EVALUATES_WITH_IDS) != 0,
                                   .fetch = nodes ? f->fetch : NULL,
                                   .line = {look_for_order, say_rows, f}};
    tn_read_counts counts = {0};
    TN_TRY(tn_peers_begin(f->peers, err));
    TN_TRY(tn_peers_refresh(f->peers, err));
    tn_status status = tn_handover_run(&pass, &counts, &f->instead, err);
    if (status != TN_OK) {
        f->has_instead = status == TN_END;
        return status == TN_END ? TN_OK : status;
    }
    return tn_follower_say_scores(f, &said, NULL, &counts, &no_parts, err);
}

/* ---- integers ---- */

static tn_status add_up(tn_follower *f, const tn_order_note *order, const tn_strs *paths,
                        tn_error *err)
{
    const tn_eval_request request = {.paths = paths};
    tn_evaluation found;
    tn_error why = {0};
    tn_status status = tn_peers_begin(f->peers, &why);
    if (status == TN_OK) {
        status = tn_peers_refresh(f->peers, &why);
    }
    if (status == TN_OK) {
        status = tn_evaluate(f->w, &request, &found, &why);
    }
    if (status != TN_OK) {
        return tn_follower_say_done(f, order, status, &why, err);
    }
    status = tn_follower_say_scores(f, order, found.metrics, &found.counts, &no_parts, err);
    tn_evaluation_done(&found);
    return status;
}

tn_status tn_follower_evaluate(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    const tn_data_opts *data = &f->plan->run->data;
    const tn_strs *own = strcmp(order->text, "test") == 0 ? &data->test : &data->valid;
    const tn_strs *paths = f->paths != NULL ? f->paths : own;
    const bool rows = order->more.n == 1 && (order->more.at[0] & TN_EVALUATES_ROWS) != 0;
    f->trains = false;
    tn_beats_state(&f->beats, TN_PEER_EVALUATING);
    return rows ? hand_over(f, order, paths, err) : add_up(f, order, paths, err);
}
