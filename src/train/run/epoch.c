/* epoch.c - opens the data of an epoch, checks that they are those of before, and counts them. */
#include "train/run/epoch.h"

#include "base/core/clock.h"
#include "base/trace/trace.h"
#include "io/read/blocks.h"
#include "io/rows/batch.h"
#include "models/model.h"
#include "nn/graph/op.h"
#include "ps/optim/optim.h"
#include "train/checkpoint/run_state.h"
#include "train/config/run.h"
#include "train/config/run_tasks.h"
#include "train/eval/evaluate.h"
#include "train/report/report.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- a process alone ---- */

static tn_status open_data(tn_epoch *e, tn_error *err)
{
    tn_run_state *s = e->state;
    return tn_epoch_reader_open(&e->data, e->w, &s->progress, &s->stand, &e->dealer, err);
}

static void close_data(tn_epoch *e)
{
    (void)e;
}

static tn_status own_prior(tn_epoch *e, tn_prior *out, tn_error *err)
{
    TN_ASSERT(e->is_alone && e->data != NULL);
    return tn_reader_prior(tn_step_prefetch_reader(e->data), out, err);
}

static tn_status start_alone(tn_epoch *e, bool at_first, tn_error *err)
{
    (void)e;
    (void)at_first;
    (void)err;
    return TN_OK;
}

static void count_turn(tn_epoch *e, const tn_step_turn *turn)
{
    (void)turn;
    TN_ASSERT(e->is_alone);
    e->state->samples = e->samples_before + e->state->progress.records;
    e->state->steps = e->w->steps;
}

static bool hear_nobody(tn_epoch *e)
{
    (void)e;
    return false;
}

static tn_status keep_parts(tn_epoch *e, bool *given, tn_error *err)
{
    (void)e;
    (void)err;
    *given = false;
    return TN_OK;
}

static tn_status do_nothing(tn_epoch *e, tn_error *err)
{
    (void)e;
    (void)err;
    return TN_OK;
}

static const tn_epoch_ops alone = {.open_data = open_data,
                                   .close_data = close_data,
                                   .prior = own_prior,
                                   .start = start_alone,
                                   .note = count_turn,
                                   .hear = hear_nobody,
                                   .give_back = keep_parts,
                                   .gather = do_nothing,
                                   .finish = do_nothing,
                                   .sum = do_nothing,
                                   .judge = do_nothing};

/* ---- opening and closing ---- */

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
    e->is_alone = w->plan->owners.n_peers == 1;
    e->is_async = !e->is_alone && e->run->cluster.staleness > 0;
    e->ranks = tn_ranks_alone;
    e->ops = &alone;
    TN_TRY(new_metrics(&e->metrics, e, err));
    e->whole = e->metrics;
    w->metrics[0] = e->metrics;
    return TN_OK;
}

tn_status tn_epoch_form(tn_epoch *e, const tn_run_text *text, tn_checkpoints *c, tn_error *err)
{
    const tn_ranks_opts opts = {.worker = e->w, .text = text, .watch = e->watch, .checkpoints = c};
    TN_ASSERT(e->ranks.self == NULL);
    if (!e->is_alone) {
        e->whole = NULL;
        TN_TRY(new_metrics(&e->whole, e, err));
    }
    TN_TRY(tn_ranks_open(&e->ranks, &opts, err));
    e->ops = e->ranks.ops->epoch != NULL ? e->ranks.ops->epoch : &alone;
    TN_ASSERT(e->is_alone == (e->ops == &alone));
    return e->ranks.ops->form(e->ranks.self, e->watch->stop, err);
}

void tn_epoch_done(tn_epoch *e, tn_status status, const char *why)
{
    TN_ASSERT(e->data == NULL && e->steps == NULL);
    if (status != TN_OK && e->ranks.self == NULL) {
        tn_group_built()->decline(e->run, status, why);
    }
    if (e->ranks.self != NULL) {
        tn_watch_told_elsewhere(e->watch, e->ranks.ops->close(e->ranks.self, status, why));
    }
    if (e->whole != e->metrics) {
        tn_metrics_free(e->whole);
    }
    tn_metrics_free(e->metrics);
    tn_arena_free(e->parts);
    tn_met_done(&e->met);
    tn_epoch_dealer_close(&e->dealer);
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
    const tn_epoch_dealer *d = &e->dealer;
    return e->reassigned + (d->ops != NULL ? d->ops->reassigned(d->self) : 0);
}

static void close_dealer(tn_epoch *e)
{
    e->reassigned = tn_epoch_reassigned(e);
    tn_epoch_dealer_close(&e->dealer);
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
        status =
            tn_run_end(e->w->plan, s->progress.epoch, s->kept.epoch_step, &e->schedule_end, err);
    }
    if (status == TN_OK) {
        status = e->ops->open_data(e, err);
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

tn_status tn_epoch_open(tn_epoch *e, tn_report *report, tn_error *err)
{
    const bool within = e->state->stand.n_parts > 0;
    const tn_progress *at = &e->state->progress;
    TN_ASSERT(e->data == NULL && e->steps == NULL);
    e->report = report;
    e->samples_before = e->state->samples;
    e->ops->close_data(e);
    close_dealer(e); /* the dealer of the epoch before */
    tn_status status = open_reader(e, err);
    e->is_whole = e->dealer.ops == NULL ? at->part == 0 && at->position == 0 : !within;
    if (e->is_whole) {
        tn_metrics_clear(e->metrics);
    }
    TN_TRY(status);
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

bool tn_epoch_is_fresh(const tn_epoch *e)
{
    return e->w->steps == 0 && e->state->samples == 0 && !e->state->kept.begun;
}

/* Gives a share the mean among the clicks of the task that it is a share of. */
static void set_task_priors(tn_worker *w, const tn_prior *prior)
{
    const tn_tasks *tasks = tn_run_tasks_of(w->plan->run);
    double mean[TN_TASKS_MAX];
    for (uint32_t k = 0; k < tasks->n; k++) {
        const uint32_t of = tasks->task[k].of;
        const tn_prior_sum *own = &prior->task[k];
        const double rate = own->clicks / own->weight; /* 0 / 0: not known */
        const double clicks =
            of != TN_NO_TASK ? prior->task[of].clicks / prior->task[of].weight : 1;
        mean[k] = of != TN_NO_TASK ? rate / clicks : rate;
    }
    tn_worker_set_task_priors(w, mean);
}

static tn_status set_prior(tn_epoch *e, tn_error *err)
{
    tn_worker *w = e->w;
    const tn_model_common *model = e->run->model.shared;
    if (!tn_epoch_is_fresh(e) || strcmp(model->bias_init, "prior") != 0 || w->output_bias == NULL) {
        return TN_OK;
    }
    tn_prior prior = {0};
    tn_span_begin(w->lane, TN_PHASE_WAIT_DATA);
    tn_status status = e->ops->prior(e, &prior, err);
    tn_span_end(w->lane);
    TN_TRY(status);
    if (prior.weight > 0) { /* else no rank has rows, as it will find */
        tn_worker_set_prior(w, prior.clicks / prior.weight);
        set_task_priors(w, &prior);
    }
    return TN_OK;
}

tn_status tn_epoch_begin_steps(tn_epoch *e, tn_error *err)
{
    TN_TRY(set_prior(e, err));
    TN_ASSERT(e->steps == NULL && e->data != NULL);
    TN_TRY(e->ops->start(e, true, err));
    return tn_step_loop_new(&e->steps, e->w, e->data, err);
}

void tn_epoch_note(tn_epoch *e, const tn_step_turn *turn)
{
    if (turn->step != NULL) {
        const tn_batch *batch = turn->step->batch;
        e->state->progress = batch->progress;
        e->state->progress.records += e->returned;
        tn_met_add_labels(&e->met, tn_run_tasks_of(e->run), batch);
        if (e->dealer.ops != NULL) {
            e->dealer.ops->note(e->dealer.self, &batch->progress, tn_clock_ns());
        }
    }
    e->ops->note(e, turn);
}

/* ---- meetings ---- */

static uint64_t records_of(const tn_epoch *e)
{
    return e->state->samples - e->samples_before; /* consumed in it */
}

tn_status tn_epoch_locate(tn_epoch *e, tn_error *err)
{
    tn_run_state *s = e->state;
    TN_TRY(e->ops->sum(e, err));
    if (e->dealer.ops != NULL && s->progress.epoch == e->number) {
        tn_arena_free(e->parts);
        e->parts = tn_arena_new(1 << 12);
        s->part = e->dealer.ops->parts(e->dealer.self, e->parts, &s->n_parts, tn_clock_ns());
    }
    return TN_OK;
}

tn_status tn_epoch_evaluate(tn_epoch *e, const tn_eval_request *request, tn_evaluation *out,
                            tn_error *err)
{
    tn_lane *lane = e->w->lane;
    const char *data = request->paths == &e->run->data.test ? "test" : "valid";
    tn_span_begin(lane, TN_PHASE_EVALUATE);
    tn_lane_fold(lane, TN_PHASE_EVALUATE);
    tn_status status = e->ranks.ops->evaluate(e->ranks.self, e->w, data, request, out, err);
    tn_lane_fold(lane, TN_PHASES);
    tn_span_end(lane);
    return status;
}

/* Counts what is learned, not what is read: with a large shuffle window all is read before the
 * first step. Until an epoch has shown how many records there are, they are estimated by those in
 * the bytes that were read. */
double tn_epoch_share(const tn_epoch *e, const tn_ranks_sums *others)
{
    double all = (double)e->records_before;
    if (e->records_before == 0) {
        tn_reader *reader = tn_step_prefetch_reader(e->data);
        tn_read_counts read;
        tn_reader_counts(reader, &read);
        const double bytes = (double)tn_reader_done_bytes(reader);
        const double total = (double)tn_reader_total_bytes(reader);
        all = bytes > 0 ? (double)read.records * total / bytes : 0;
    }
    const tn_progress *own = &e->state->progress;
    const uint64_t learned = own->records + (others->epoch == own->epoch ? others->records : 0);
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

static tn_status judge(tn_epoch *e, tn_error *err)
{
    TN_TRY(e->ops->judge(e, err));
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
    TN_TRY(e->ops->sum(e, err));
    TN_TRY(judge(e, err));
    *out = (tn_epoch_end){s->progress, s->kept.epoch_step, e->samples_before};
    /* The rest of an epoch does not show how many records one has. */
    e->records_before = e->is_whole ? records_of(e) : 0;
    e->samples_before = s->samples;
    s->part = NULL;
    s->n_parts = 0;
    s->kept.epoch_step = e->w->steps;
    s->progress = (tn_progress){.epoch = s->progress.epoch + 1};
    return TN_OK;
}

void tn_epoch_return(tn_epoch *e, const tn_epoch_end *end)
{
    e->state->progress = end->progress;
    e->state->kept.epoch_step = end->epoch_step;
    e->samples_before = end->samples_before;
}
