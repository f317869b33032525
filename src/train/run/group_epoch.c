/* group_epoch.c - has the other ranks train, stand still and tell where they stand. */
#include "train/run/group_epoch.h"

#include "base/core/clock.h"
#include "base/trace/trace.h"
#include "io/read/bad_record_limit.h"
#include "io/read/blocks.h"
#include "models/model.h"
#include "train/config/run.h"
#include "train/eval/evaluate.h"
#include "train/peers/leader.h"
#include "train/peers/part_dealer.h"
#include "train/peers/peers.h"
#include "train/report/report.h"
#include "train/run/epoch.h"
#include "train/run/epoch_reader.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <stdio.h>
#include <string.h>

tn_status tn_group_epoch_open(tn_group_epoch *g, const tn_run_text *text, tn_checkpoints *c,
                              const tn_metrics_opts *metrics, tn_error *err)
{
    tn_worker *w = g->epoch->w;
    g->whole = g->epoch->metrics;
    if (w->plan->owners.n_peers == 1) {
        return TN_OK;
    }
    g->is_async = w->plan->run->cluster.staleness > 0;
    g->whole = NULL;
    TN_TRY(tn_metrics_new(&g->whole, metrics, err));
    TN_TRY(tn_leader_open(&g->lead, w, text, g->watch, c, err));
    g->beats = (tn_heartbeat_stats){.group = tn_peers_group(tn_leader_peers(g->lead)),
                                    .begin = tn_clock_s()};
    return tn_leader_form(g->lead, g->watch->stop, err);
}

void tn_group_epoch_close(tn_group_epoch *g, const tn_run *run, tn_status status, const char *why)
{
    if (status != TN_OK && g->lead == NULL) {
        tn_peers_decline(run, status, why);
    }
    tn_watch_told_elsewhere(g->watch, tn_leader_close(g->lead, status, why));
    if (g->whole != g->epoch->metrics) {
        tn_metrics_free(g->whole);
    }
}

/* ---- where all stand ---- */

/* In an epoch that others have begun all ranks deal themselves what was left. */
static tn_status follow_others(const tn_epoch *e, const tn_progress *progress, tn_error *err)
{
    for (uint32_t r = 1; r < e->w->plan->owners.n_peers; r++) {
        TN_TRY(tn_part_dealer_follow(e->dealer, r, &progress[r], tn_clock_ns(), err));
    }
    return TN_OK;
}

tn_status tn_group_epoch_sum(tn_group_epoch *g, tn_error *err)
{
    tn_epoch *e = g->epoch;
    if (g->lead == NULL || !tn_epoch_is_current(e)) {
        return TN_OK; /* between two epochs: what the end of one summed up stays */
    }
    tn_leader_totals totals;
    if (g->is_async) {
        tn_epoch_count_dealt(e);
    }
    TN_TRY(tn_leader_sum(g->lead, &e->state->progress, e->metrics, g->whole, &totals, err));
    g->bad_of_others = totals.bad;
    if (e->dealer == NULL && !tn_epoch_list_parts(e, totals.progress)) {
        return TN_OK; /* at the beginning of one */
    }
    tn_epoch_set_records(e, totals.records);
    /* On request the dealer has heard what the others hold. */
    return e->dealer == NULL || g->is_async ? TN_OK : follow_others(e, totals.progress, err);
}

uint64_t tn_group_epoch_records(const tn_group_epoch *g)
{
    tn_peer_progress_sums others = {0};
    if (g->lead != NULL) {
        tn_peer_progress_sums_of(tn_leader_peer_progress(g->lead), &others);
    }
    return others.epoch == g->epoch->state->progress.epoch ? others.records : 0;
}

/* One process's reader has judged its own bad records. What a rank tells of its records ends with
 * its last batch, so those behind it are added. */
static tn_status judge_bad(const tn_group_epoch *g, tn_error *err)
{
    const tn_epoch *e = g->epoch;
    if (g->lead == NULL || !e->is_whole) {
        return TN_OK;
    }
    const uint64_t bad = e->met.counts.bad + g->bad_of_others;
    const uint64_t told = tn_epoch_records(e);
    const uint64_t learned = tn_metrics_rows(g->whole);
    const uint64_t records = told > learned + bad ? told : learned + bad;
    tn_bad_record_limit limit;
    TN_TRY(tn_bad_record_limit_read(e->w->plan->run->data.bad_records_max, &limit, err));
    return tn_bad_record_limit_end(&limit, records, bad, err);
}

tn_status tn_group_epoch_judge(const tn_group_epoch *g, tn_error *err)
{
    const tn_epoch *e = g->epoch;
    TN_TRY(judge_bad(g, err));
    if (!e->is_whole || e->met.counts.records > 0 || tn_epoch_records(e) > 0) {
        return TN_OK;
    }
    const tn_strs *paths = &e->w->plan->run->data.train;
    return tn_fail(err, TN_E_DATA, "data.train holds no records: '%s'%s", paths->item[0],
                   paths->n > 1 ? " and others" : "");
}

tn_status tn_group_epoch_check_parts(const tn_group_epoch *g, tn_error *err)
{
    const tn_epoch *e = g->epoch;
    const uint32_t n_ranks = e->w->plan->owners.n_peers;
    const uint32_t n_parts = e->state->data->n_parts;
    if (n_parts >= n_ranks) {
        return TN_OK;
    }
    char line[160];
    (void)snprintf(
        line, sizeof line,
        "data.train has %u part%s for %u processes, so %u will have no rows: more files, "
        "or a smaller data.part_bytes",
        n_parts, n_parts == 1 ? "" : "s", n_ranks, n_ranks - n_parts);
    return tn_report_event(e->report, e->state, "warn", line, err);
}

tn_status tn_group_epoch_evaluate(tn_group_epoch *g, const tn_eval_request *request,
                                  tn_evaluation *out, tn_error *err)
{
    tn_lane *lane = g->epoch->w->lane;
    const char *data = request->paths == &g->epoch->w->plan->run->data.test ? "test" : "valid";
    tn_span_begin(lane, TN_PHASE_EVALUATE);
    tn_lane_fold(lane, TN_PHASE_EVALUATE);
    tn_status status = g->lead != NULL ? tn_leader_evaluate(g->lead, data, request, out, err)
                                       : tn_evaluate(g->epoch->w, request, out, err);
    tn_lane_fold(lane, TN_PHASES);
    tn_span_end(lane);
    return status;
}

/* ---- steps ---- */

void tn_group_epoch_deal(tn_group_epoch *g, bool deals)
{
    if (g->lead != NULL && (g->is_async || !deals)) {
        tn_leader_deal(g->lead, deals ? g->epoch->dealer : NULL);
    }
}

/* Of this rank, or of all ranks. TN_END: when alone, there are none. */
static tn_status first_rows(tn_group_epoch *g, tn_prior *out, tn_error *err)
{
    tn_reader *reader = tn_step_prefetch_reader(g->epoch->data);
    if (g->lead == NULL) {
        return tn_reader_prior(reader, out, err);
    }
    const uint32_t epoch = g->epoch->state->progress.epoch;
    TN_TRY(tn_leader_prior(g->lead, epoch, err));
    tn_status status = g->is_async ? tn_epoch_reader_prior(g->epoch->w, epoch, out, err)
                                   : tn_reader_prior(reader, out, err);
    return status == TN_OK || status == TN_END ? tn_leader_add_priors(g->lead, epoch, out, err)
                                               : status;
}

/* Whether nothing was learned yet, and the weights came from nowhere else. */
static bool is_fresh(const tn_group_epoch *g)
{
    const tn_run_state *state = g->epoch->state;
    return g->epoch->w->steps == 0 && state->samples == 0 && !state->begun;
}

tn_status tn_group_epoch_prior(tn_group_epoch *g, tn_error *err)
{
    tn_worker *w = g->epoch->w;
    const tn_model_common *model = w->plan->run->model.shared;
    if (!is_fresh(g) || strcmp(model->bias_init, "prior") != 0 || w->output_bias == NULL) {
        return TN_OK;
    }
    tn_prior prior = {0};
    tn_span_begin(w->lane, TN_PHASE_WAIT_DATA);
    tn_status status = first_rows(g, &prior, err);
    tn_span_end(w->lane);
    TN_TRY(status);
    if (prior.weight > 0) { /* else no rank has rows, as it will find */
        tn_worker_set_prior(w, prior.clicks / prior.weight);
    }
    return TN_OK;
}

tn_status tn_group_epoch_start(tn_group_epoch *g, bool at_first, tn_error *err)
{
    if (g->lead == NULL) {
        return TN_OK;
    }
    const tn_run_state *state = g->epoch->state;
    const tn_leader_begin how = {.epoch = state->progress.epoch,
                                 .is_fresh = at_first && is_fresh(g),
                                 .lr_scale = state->patience.lr_scale,
                                 .end = g->epoch->schedule_end};
    return tn_leader_start(g->lead, &how, err);
}

void tn_group_epoch_beat(tn_group_epoch *g, const tn_step_turn *turn)
{
    if (g->lead == NULL) {
        return;
    }
    const tn_epoch *e = g->epoch;
    tn_heartbeat_stats_step(&g->beats, e->w, turn, e->state->progress.records);
    if (g->is_async && turn->step == NULL) {
        tn_heartbeat_stats_state(&g->beats, TN_PEER_WAITING);
    }
}

bool tn_group_epoch_hear(tn_group_epoch *g)
{
    if (g->lead == NULL) {
        return false;
    }
    tn_group *group = g->beats.group;
    g->is_stopped = tn_group_is_asked(group, TN_ASKS_STOP) || g->is_stopped;
    g->is_full = tn_group_is_asked(group, TN_ASKS_ROOM) || g->is_full;
    if (g->watch->save != NULL && tn_group_is_asked(group, TN_ASKS_SAVE)) {
        atomic_store(g->watch->save, true);
    }
    return tn_leader_gives_back(g->lead, false);
}

tn_status tn_group_epoch_give_back(tn_group_epoch *g, bool *given, tn_error *err)
{
    *given = g->is_async && tn_leader_gives_back(g->lead, true);
    return *given ? tn_epoch_give_back(g->epoch, err) : TN_OK;
}

tn_status tn_group_epoch_gather(tn_group_epoch *g, tn_error *err)
{
    if (!g->is_async) {
        return TN_OK; /* alone, or the step itself was the meeting */
    }
    TN_TRY(tn_group_epoch_sum(g, err)); /* the others stand still when they are told to */
    return tn_peers_refresh(tn_leader_peers(g->lead), err);
}

tn_status tn_group_epoch_end(tn_group_epoch *g, tn_error *err)
{
    if (!g->is_async) {
        return TN_OK;
    }
    TN_TRY(tn_leader_finish(g->lead, err));
    return tn_peers_refresh(tn_leader_peers(g->lead), err);
}
