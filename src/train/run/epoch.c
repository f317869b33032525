/* epoch.c - opens the data of an epoch, checks that they are those of before, counts them, and has
 * the other ranks train, stand still and tell where they stand. */
#include "train/run/epoch.h"

#include "base/core/clock.h"
#include "base/trace/trace.h"
#include "io/read/bad_record_limit.h"
#include "io/read/blocks.h"
#include "io/rows/batch.h"
#include "models/model.h"
#include "nn/graph/op.h"
#include "ps/optim/optim.h"
#include "train/config/run.h"
#include "train/eval/evaluate.h"
#include "train/peers/leader.h"
#include "train/peers/part_dealer.h"
#include "train/peers/peers.h"
#include "train/report/report.h"
#include "train/run/epoch_reader.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static tn_status new_metrics(tn_metrics **out, const tn_epoch *e, tn_error *err)
{
    tn_metrics_opts metrics = tn_metrics_opts_of(e->run);
    metrics.exact_auc = false;
    metrics.grouped = false;
    return tn_metrics_new(out, &metrics, err);
}

tn_status tn_epoch_init(tn_epoch *e, tn_worker *w, tn_error *err)
{
    e->w = w;
    TN_TRY(new_metrics(&e->metrics, e, err));
    e->whole = e->metrics;
    w->metrics[0] = e->metrics;
    return TN_OK;
}

tn_status tn_epoch_form(tn_epoch *e, const tn_run_text *text, tn_checkpoints *c, tn_error *err)
{
    if (e->w->plan->owners.n_peers == 1) {
        return TN_OK;
    }
    e->is_async = e->run->cluster.staleness > 0;
    e->whole = NULL;
    TN_TRY(new_metrics(&e->whole, e, err));
    TN_TRY(tn_leader_open(&e->lead, e->w, text, e->watch, c, err));
    e->beats = (tn_heartbeat_stats){.group = tn_peers_group(tn_leader_peers(e->lead)),
                                    .begin = tn_clock_s()};
    return tn_leader_form(e->lead, e->watch->stop, err);
}

void tn_epoch_done(tn_epoch *e, tn_status status, const char *why)
{
    TN_ASSERT(e->data == NULL && e->steps == NULL);
    if (status != TN_OK && e->lead == NULL) {
        tn_peers_decline(e->run, status, why);
    }
    tn_watch_told_elsewhere(e->watch, tn_leader_close(e->lead, status, why));
    if (e->whole != e->metrics) {
        tn_metrics_free(e->whole);
    }
    tn_metrics_free(e->metrics);
    tn_arena_free(e->parts);
    tn_met_done(&e->met);
    tn_part_dealer_close(e->dealer);
    tn_arena_free(e->map);
}

/* ---- the files ---- */

/* Files that hold other bytes than before are an end, or, where data.changed allows it, a line. */
static tn_status check_sources(tn_epoch *e, const tn_sources *was, const tn_sources *now,
                               const char *since, tn_error *err)
{
    tn_text how = {0};
    tn_status status = TN_OK;
    if (tn_sources_differ(was, now, &how)) {
        char line[1200];
        (void)snprintf(line, sizeof line, "the training data have changed %s: %s", since,
                       tn_text_str(&how));
        status = e->run->data.changed == TN_CHANGED_ACCEPT
                     ? tn_report_event(e->report, e->state, "warn", line, err)
                     : tn_fail(err, TN_E_DATA,
                               "%s\nhint: data.changed=accept learns from them as they are, "
                               "--fresh begins anew",
                               line);
    }
    tn_text_done(&how);
    return status;
}

/* The files as they are when an epoch begins, into `arena`. */
static tn_status look_at_sources(tn_epoch *e, tn_arena *arena, const tn_sources **out,
                                 tn_error *err)
{
    const tn_model_plan *plan = e->w->plan;
    const tn_sources *was = e->state->data != NULL ? e->state->data->sources : NULL;
    const char *since = "since the epoch before";
    TN_TRY(tn_sources_now(out, &e->w->train, plan->schema, arena, err));
    if (e->is_new_data) {
        return TN_OK;
    }
    if (e->state->data == NULL) {
        since = "since the checkpoint";
        TN_TRY(tn_sources_read(&was, &e->state->past->sources, "sources.jsonl", arena, err));
    }
    return check_sources(e, was, *out, since, err);
}

/* ---- the reader ---- */

uint64_t tn_epoch_reassigned(const tn_epoch *e)
{
    return e->reassigned + (e->dealer != NULL ? tn_part_dealer_reassigned(e->dealer) : 0);
}

static void close_dealer(tn_epoch *e)
{
    e->reassigned = tn_epoch_reassigned(e);
    tn_part_dealer_close(e->dealer);
    e->dealer = NULL;
    e->returned = 0;
}

/* A reader of the files that were looked at; they become the files of this epoch. */
static tn_status open_reader(tn_epoch *e, tn_error *err)
{
    tn_run_state *s = e->state;
    const tn_sources *sources = NULL;
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_status status = look_at_sources(e, arena, &sources, err);
    if (status == TN_OK && tn_schedule_ends_with_run(e->run)) {
        status = tn_run_end(e->w->plan, s->progress.epoch, s->epoch_step, &e->schedule_end, err);
    }
    if (status == TN_OK) {
        status = tn_epoch_reader_open(&e->data, e->w, &s->progress, &s->stand, &e->dealer, err);
    }
    if (status != TN_OK) {
        tn_arena_free(arena);
        return status;
    }
    tn_arena_free(e->map);
    e->map = arena;
    s->data = tn_epoch_parts_of(tn_step_prefetch_reader(e->data), sources, arena);
    e->number = s->progress.epoch;
    e->is_begun = true;
    e->is_new_data = false;
    tn_met_done(&e->met);
    return TN_OK;
}

void tn_epoch_begin_data(tn_epoch *e)
{
    e->is_new_data = true;
    e->state->data = NULL; /* a checkpoint before the first step has no files of this day */
    e->records_before = 0;
}

/* Has the others ask for their parts of the epoch that was opened; or, before the next, no more. */
static void deal(tn_epoch *e, bool deals)
{
    if (e->lead != NULL && (e->is_async || !deals)) {
        tn_leader_deal(e->lead, deals ? e->dealer : NULL);
    }
}

tn_status tn_epoch_open(tn_epoch *e, tn_report *report, tn_error *err)
{
    const bool within = e->state->stand.within;
    const tn_progress *at = &e->state->progress;
    e->report = report;
    e->samples_before = e->state->samples;
    deal(e, false);
    close_dealer(e); /* of the epoch before */
    tn_status status = open_reader(e, err);
    e->is_whole = e->dealer == NULL ? at->part == 0 && at->position == 0 : !within;
    if (e->is_whole) {
        tn_metrics_clear(e->metrics);
    }
    TN_TRY(status);
    deal(e, true);
    return within && e->is_whole
               ? tn_report_event(report, e->state, "warn",
                                 "the place in the epoch is lost with the data: it begins anew",
                                 err)
               : TN_OK;
}

static void close_steps(tn_epoch *e)
{
    tn_step_loop_free(e->steps);
    e->steps = NULL;
}

void tn_epoch_close(tn_epoch *e)
{
    close_steps(e);
    if (e->data != NULL) {
        tn_met_add_reader(&e->met, tn_step_prefetch_reader(e->data), TN_ALL_PARTS);
    }
    tn_step_prefetch_close(e->data);
    e->data = NULL;
}

tn_status tn_epoch_check_parts(const tn_epoch *e, tn_error *err)
{
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

/* ---- steps ---- */

/* Of this rank, or of all ranks. TN_END: when alone, there are none. */
static tn_status first_rows(tn_epoch *e, tn_prior *out, tn_error *err)
{
    tn_reader *reader = tn_step_prefetch_reader(e->data);
    if (e->lead == NULL) {
        return tn_reader_prior(reader, out, err);
    }
    const uint32_t epoch = e->state->progress.epoch;
    TN_TRY(tn_leader_prior(e->lead, epoch, err));
    tn_status status = e->is_async ? tn_epoch_reader_prior(e->w, epoch, out, err)
                                   : tn_reader_prior(reader, out, err);
    return status == TN_OK || status == TN_END ? tn_leader_add_priors(e->lead, epoch, out, err)
                                               : status;
}

/* Whether nothing was learned yet, and the weights came from nowhere else. */
static bool is_fresh(const tn_epoch *e)
{
    return e->w->steps == 0 && e->state->samples == 0 && !e->state->begun;
}

static tn_status set_prior(tn_epoch *e, tn_error *err)
{
    tn_worker *w = e->w;
    const tn_model_common *model = e->run->model.shared;
    if (!is_fresh(e) || strcmp(model->bias_init, "prior") != 0 || w->output_bias == NULL) {
        return TN_OK;
    }
    tn_prior prior = {0};
    tn_span_begin(w->lane, TN_PHASE_WAIT_DATA);
    tn_status status = first_rows(e, &prior, err);
    tn_span_end(w->lane);
    TN_TRY(status);
    if (prior.weight > 0) { /* else no rank has rows, as it will find */
        tn_worker_set_prior(w, prior.clicks / prior.weight);
    }
    return TN_OK;
}

/* `at_first`: from the beginning of what is left of the epoch; else after a meeting. */
static tn_status start(tn_epoch *e, bool at_first, tn_error *err)
{
    if (e->lead == NULL) {
        return TN_OK;
    }
    const tn_leader_begin how = {.epoch = e->state->progress.epoch,
                                 .is_fresh = at_first && is_fresh(e),
                                 .lr_scale = e->state->patience.lr_scale,
                                 .end = e->schedule_end};
    return tn_leader_start(e->lead, &how, err);
}

tn_status tn_epoch_begin_steps(tn_epoch *e, tn_error *err)
{
    TN_TRY(set_prior(e, err));
    TN_TRY(start(e, true, err));
    return tn_step_loop_new(&e->steps, e->w, e->data, err);
}

tn_status tn_epoch_go_on(tn_epoch *e, tn_error *err)
{
    return start(e, false, err);
}

static void set_records(tn_epoch *e, uint64_t records)
{
    e->state->samples = e->samples_before + records;
}

static void note_batch(tn_epoch *e, const tn_batch *batch)
{
    e->state->progress = batch->progress;
    e->state->progress.records += e->returned;
    if (e->dealer != NULL) {
        tn_part_dealer_note(e->dealer, &batch->progress, tn_clock_ns());
    }
}

void tn_epoch_note(tn_epoch *e, const tn_step_turn *turn)
{
    tn_run_state *s = e->state;
    const bool learned = turn->step != NULL || !e->is_async; /* else this rank had no data */
    if (turn->step != NULL) {
        note_batch(e, turn->step->batch);
    }
    if (e->lead == NULL) {
        set_records(e, s->progress.records);
    } else if (learned) {
        s->samples += turn->rows;
    }
    s->steps = learned ? e->w->steps : s->steps;
    if (e->lead != NULL) {
        tn_heartbeat_stats_step(&e->beats, e->w, turn, s->progress.records);
    }
    if (!learned) {
        tn_heartbeat_stats_state(&e->beats, TN_PEER_WAITING);
    }
}

bool tn_epoch_hear(tn_epoch *e)
{
    if (e->lead == NULL) {
        return false;
    }
    tn_group *group = e->beats.group;
    e->is_stopped = tn_group_is_asked(group, TN_ASKS_STOP) || e->is_stopped;
    e->is_full = tn_group_is_asked(group, TN_ASKS_ROOM) || e->is_full;
    if (e->watch->save != NULL && tn_group_is_asked(group, TN_ASKS_SAVE)) {
        atomic_store(e->watch->save, true);
    }
    return tn_leader_gives_back(e->lead, false);
}

tn_status tn_epoch_give_back(tn_epoch *e, bool *given, tn_error *err)
{
    *given = e->is_async && tn_leader_gives_back(e->lead, true);
    if (!*given) {
        return TN_OK;
    }
    tn_reader *reader = tn_step_prefetch_reader(e->data);
    close_steps(e);
    tn_reader_quit(reader); /* so that no part is over between these two */
    tn_met_add_reader(&e->met, reader, tn_part_dealer_ended(e->dealer));
    tn_step_prefetch_close(e->data);
    e->data = NULL;
    e->returned += tn_part_dealer_records(e->dealer);
    tn_part_dealer_give_back(e->dealer, tn_clock_ns());
    TN_TRY(tn_epoch_reader_open_dealt(&e->data, e->w, e->state->progress.epoch,
                                      e->state->data->cut_for, tn_part_dealer_dealer(e->dealer),
                                      err));
    return tn_step_loop_new(&e->steps, e->w, e->data, err);
}

tn_status tn_epoch_wait_for_all(tn_epoch *e, tn_error *err)
{
    if (!e->is_async) {
        return TN_OK;
    }
    TN_TRY(tn_leader_finish(e->lead, err));
    return tn_peers_refresh(tn_leader_peers(e->lead), err);
}

/* ---- where all stand ---- */

static uint64_t records_of(const tn_epoch *e)
{
    return e->state->samples - e->samples_before; /* consumed in it */
}

/* In an epoch that others have begun all ranks deal themselves what was left. */
static tn_status follow_others(const tn_epoch *e, const tn_progress *progress, tn_error *err)
{
    for (uint32_t r = 1; r < e->w->plan->owners.n_peers; r++) {
        TN_TRY(tn_part_dealer_follow(e->dealer, r, &progress[r], tn_clock_ns(), err));
    }
    return TN_OK;
}

/* Lists the parts as ranks that stand at progress[rank] read them; false before they have. */
static bool list_parts(tn_epoch *e, const tn_progress *progress)
{
    tn_run_state *s = e->state;
    tn_arena_free(e->parts);
    e->parts = tn_arena_new(1 << 14);
    s->part = tn_epoch_parts_manifest(s->data, progress, e->w->plan->owners.n_peers, e->parts,
                                      &s->n_parts);
    return s->part != NULL;
}

static tn_status sum(tn_epoch *e, tn_error *err)
{
    const bool is_current = e->state->data != NULL && e->state->progress.epoch == e->number;
    if (e->lead == NULL || !is_current) {
        return TN_OK; /* between two epochs: what the end of one summed up stays */
    }
    tn_leader_totals totals;
    if (e->is_async) {
        e->state->progress.records = e->returned + tn_part_dealer_records(e->dealer);
    }
    TN_TRY(tn_leader_sum(e->lead, &e->state->progress, e->metrics, e->whole, &totals, err));
    e->bad_of_others = totals.bad;
    if (e->dealer == NULL && !list_parts(e, totals.progress)) {
        return TN_OK; /* at the beginning of one */
    }
    set_records(e, totals.records);
    /* On request the dealer has heard what the others hold. */
    return e->dealer == NULL || e->is_async ? TN_OK : follow_others(e, totals.progress, err);
}

tn_status tn_epoch_locate(tn_epoch *e, tn_error *err)
{
    tn_run_state *s = e->state;
    TN_TRY(sum(e, err));
    if (e->dealer != NULL && s->progress.epoch == tn_part_dealer_epoch(e->dealer)) {
        tn_arena_free(e->parts);
        e->parts = tn_arena_new(1 << 12);
        s->part = tn_part_dealer_parts(e->dealer, e->parts, &s->n_parts, tn_clock_ns());
    }
    return TN_OK;
}

tn_status tn_epoch_gather(tn_epoch *e, tn_error *err)
{
    if (!e->is_async) {
        return TN_OK; /* alone, or the step itself was the meeting */
    }
    TN_TRY(sum(e, err)); /* the others stand still when they are told to */
    return tn_peers_refresh(tn_leader_peers(e->lead), err);
}

tn_status tn_epoch_evaluate(tn_epoch *e, const tn_eval_request *request, tn_evaluation *out,
                            tn_error *err)
{
    tn_lane *lane = e->w->lane;
    const char *data = request->paths == &e->run->data.test ? "test" : "valid";
    tn_span_begin(lane, TN_PHASE_EVALUATE);
    tn_lane_fold(lane, TN_PHASE_EVALUATE);
    tn_status status = e->lead != NULL ? tn_leader_evaluate(e->lead, data, request, out, err)
                                       : tn_evaluate(e->w, request, out, err);
    tn_lane_fold(lane, TN_PHASES);
    tn_span_end(lane);
    return status;
}

/* Of what is learned, not of what is read: with a large shuffle window all is read before the first
 * step. Until an epoch has told how many records there are, by what the bytes read held. */
double tn_epoch_share(const tn_epoch *e)
{
    tn_peer_progress_sums others = {0};
    double all = (double)e->records_before;
    if (e->records_before == 0) {
        tn_reader *reader = tn_step_prefetch_reader(e->data);
        tn_read_counts read;
        tn_reader_counts(reader, &read);
        const double bytes = (double)tn_reader_done_bytes(reader);
        const double total = (double)tn_reader_total_bytes(reader);
        all = bytes > 0 ? (double)read.records * total / bytes : 0;
    }
    if (e->lead != NULL) {
        tn_peer_progress_sums_of(tn_leader_peer_progress(e->lead), &others);
    }
    const tn_progress *own = &e->state->progress;
    const uint64_t learned = own->records + (others.epoch == own->epoch ? others.records : 0);
    return all > 0 ? fmin(1, (double)learned / all) : (double)NAN;
}

/* ---- its end ---- */

/* The files may have changed while they were read. */
static tn_status look_again(tn_epoch *e, tn_error *err)
{
    const tn_sources *was = e->state->data->sources;
    const tn_sources *now = tn_sources_again(was, e->map);
    char since[64];
    (void)snprintf(since, sizeof since, "while epoch %u was read", e->state->progress.epoch + 1);
    TN_TRY(check_sources(e, was, now, since, err));
    tn_epoch_parts *map = TN_NEW(e->map, tn_epoch_parts);
    *map = *e->state->data;
    map->sources = now;
    e->state->data = map;
    return TN_OK;
}

/* One process's reader has judged its own bad records. What a rank tells of its records ends with
 * its last batch, so those behind it are added. */
static tn_status judge_bad(const tn_epoch *e, tn_error *err)
{
    if (e->lead == NULL || !e->is_whole) {
        return TN_OK;
    }
    const uint64_t bad = e->met.counts.bad + e->bad_of_others;
    const uint64_t told = records_of(e);
    const uint64_t learned = tn_metrics_rows(e->whole);
    const uint64_t records = told > learned + bad ? told : learned + bad;
    tn_bad_record_limit limit;
    TN_TRY(tn_bad_record_limit_read(e->run->data.bad_records_max, &limit, err));
    return tn_bad_record_limit_end(&limit, records, bad, err);
}

static tn_status judge(const tn_epoch *e, tn_error *err)
{
    TN_TRY(judge_bad(e, err));
    if (!e->is_whole || e->met.counts.records > 0 || records_of(e) > 0) {
        return TN_OK;
    }
    const tn_strs *paths = &e->w->train;
    return tn_fail(err, TN_E_DATA, "data.train holds no records: '%s'%s", paths->item[0],
                   paths->n > 1 ? " and others" : "");
}

tn_status tn_epoch_finish(tn_epoch *e, tn_epoch_end *out, tn_error *err)
{
    tn_run_state *s = e->state;
    TN_TRY(look_again(e, err));
    TN_TRY(sum(e, err));
    TN_TRY(judge(e, err));
    *out = (tn_epoch_end){s->progress, s->epoch_step, e->samples_before};
    /* The rest of an epoch does not tell how many records one has. */
    e->records_before = e->is_whole ? records_of(e) : 0;
    e->samples_before = s->samples;
    s->part = NULL;
    s->n_parts = 0;
    s->epoch_step = e->w->steps;
    s->progress = (tn_progress){.epoch = s->progress.epoch + 1};
    return TN_OK;
}

void tn_epoch_return(tn_epoch *e, const tn_epoch_end *end)
{
    e->state->progress = end->progress;
    e->state->epoch_step = end->epoch_step;
    e->samples_before = end->samples_before;
}
