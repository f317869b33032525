/* day_loop.c - begins and ends the days of a run, and evaluates around them. */
#include "train/run/day_loop.h"

#include "base/core/arena.h"
#include "base/core/log.h"
#include "base/core/text.h"
#include "train/checkpoint/run_state.h"
#include "train/config/days.h"
#include "train/config/run.h"
#include "train/eval/calibrate.h"
#include "train/eval/evaluate.h"
#include "train/peers/leader.h"
#include "train/report/metrics_jsonl.h"
#include "train/report/report.h"
#include "train/run/day_plan.h"
#include "train/run/epoch.h"
#include "train/run/publisher.h"
#include "train/run/saver.h"
#include "train/step/worker.h"

#include <math.h>
#include <stdio.h>

/* ---- evaluations ---- */

/* Scores the head of a day's files: *out and a record. TN_E_STOPPED: by a signal. */
static tn_status evaluate(tn_day_loop *l, uint32_t day, const tn_valid_rows *rows,
                          tn_evaluation *out, tn_error *err)
{
    char data[TN_DAY_NAME];
    const bool collects = out == l->next && l->calibrate != NULL;
    TN_ASSERT(rows->paths.n > 0 && rows->day == day);
    const tn_eval_request request = {.paths = &rows->paths,
                                     .rows_max = rows->rows_max,
                                     .day = day,
                                     .stop = l->stop,
                                     .sink = collects ? tn_calibrate_sink : NULL,
                                     .sink_arg = l->calibrate};
    tn_day_name(day, data);
    if (collects) {
        tn_calibrate_clear(l->calibrate);
        tn_calibrate_name(l->calibrate, data);
    }
    tn_evaluation_done(out);
    TN_TRY(tn_epoch_evaluate(l->epoch, &request, out, err));
    const tn_report_eval eval = {
        .data = data, .result = out, .state = l->state, .step = l->epoch->w->steps};
    return tn_report_eval_done(l->report, &eval, err);
}

/* What the model says of a day that it has not learned. */
static tn_status judge(tn_day_loop *l, uint32_t day, const tn_valid_rows *rows, tn_error *err)
{
    const bool learned = l->state->samples > 0 || l->state->begun;
    const bool is_known = l->judged == day && l->judged_step == l->epoch->w->steps;
    if (!l->run->data.next || !learned || is_known) {
        return TN_OK;
    }
    l->judged = day;
    l->judged_step = l->epoch->w->steps;
    return evaluate(l, day, rows, l->next, err);
}

/* A day of data.days, whether it is there or not. */
static tn_valid_rows rows_of(const tn_day_loop *l, uint32_t day, tn_arena *arena)
{
    const tn_data_opts *data = &l->run->data;
    return (tn_valid_rows){.paths = tn_days_paths(&data->pattern, day, arena),
                           .rows_max = data->valid_rows,
                           .day = day};
}

tn_status tn_day_loop_judge(tn_day_loop *l, tn_error *err)
{
    tn_valid_rows rows;
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_status status = tn_valid_rows_find(&l->run->data, &l->state->days, arena, &rows, err);
    if (status == TN_OK) {
        status = judge(l, rows.day, &rows, err);
    }
    tn_arena_free(arena);
    return status;
}

/* What is still known of the day before one that is learned, if it is there. */
static tn_status judge_before(tn_day_loop *l, uint32_t day, tn_error *err)
{
    tn_error why;
    if (day == 0 || !tn_days_has(&l->state->days, day - 1)) {
        return TN_OK;
    }
    const tn_status there = tn_days_look(&l->run->data, day - 1, &why);
    if (there != TN_OK) {
        return there == TN_E_STOPPED ? tn_fail(err, there, "%s", why.text) : TN_OK;
    }
    tn_evaluation before = {0};
    tn_arena *arena = tn_arena_new(1 << 12);
    const tn_valid_rows rows = rows_of(l, day - 1, arena);
    const tn_status status = evaluate(l, day - 1, &rows, &before, err);
    tn_evaluation_done(&before);
    tn_arena_free(arena);
    return status;
}

/* Behind a day: what is still known of the one before it, and what the model says of the one after
 * it, as far as these are there. */
static tn_status judge_neighbours(tn_day_loop *l, uint32_t day, tn_error *err)
{
    tn_error why;
    TN_ASSERT(tn_days_has(&l->state->days, day));
    if (!l->run->data.next) {
        return TN_OK;
    }
    TN_TRY(judge_before(l, day, err));
    const tn_status status = tn_day_loop_judge(l, &why);
    return status == TN_OK || status == TN_E_DATA ? TN_OK : tn_fail(err, status, "%s", why.text);
}

/* ---- a day ---- */

tn_status tn_day_loop_close(tn_run_state *state, tn_error *err)
{
    tn_manifest_days *days = &state->days;
    if (!days->within) {
        return TN_OK;
    }
    TN_ASSERT(days->used);
    TN_TRY(tn_days_add(days, days->day, err));
    days->within = false;
    return TN_OK;
}

/* A signal has ended an evaluation: the next command makes it, since the day has no record yet. */
static tn_status stop_or(tn_day_loop *l, tn_status status, tn_error *err)
{
    return status == TN_E_STOPPED ? tn_saver_stop(l->saver, err) : status;
}

/* Weights of checkpoint.from, which are of a day, and the first day of the run. */
static void warn_of_begun(const tn_day_loop *l, uint32_t day)
{
    const tn_manifest_days *days = &l->state->days;
    const uint32_t was = l->epoch->w->day;
    char name[TN_DAY_NAME];
    char of[TN_DAY_TEXT];
    if (days->used || was < tn_day_of(day)) {
        return;
    }
    tn_day_name(day, name);
    tn_day_text(was, of);
    tn_log(TN_LOG_WARN, "the run begins with weights of %s: rows of %s may be in them already", of,
           name);
}

static tn_status begin_day(tn_day_loop *l, uint32_t day, tn_error *err)
{
    tn_manifest_days *days = &l->state->days;
    TN_ASSERT(!days->within || days->day == day);
    warn_of_begun(l, day);
    if (days->within) {
        tn_worker_set_day(l->epoch->w, day);
        return TN_OK;
    }
    TN_ASSERT(l->again || !tn_days_has(days, day));
    days->used = true;
    tn_arena *arena = tn_arena_new(1 << 12);
    const tn_valid_rows rows = rows_of(l, day, arena);
    const tn_status status = stop_or(l, judge(l, day, &rows, err), err);
    tn_arena_free(arena);
    TN_TRY(status); /* with counts as of the day before */
    tn_worker_set_day(l->epoch->w, day);
    days->within = true;
    days->day = day;
    days->epoch = l->state->progress.epoch;
    days->before = l->state->best_ordinal;
    days->samples = l->state->samples;
    tn_epoch_begin_data(l->epoch);
    return TN_OK;
}

static tn_status tell_day(tn_day_loop *l, const tn_metrics *train, tn_error *err)
{
    char text[TN_DAY_TEXT];
    TN_ASSERT(tn_days_has(&l->state->days, l->state->days.day));
    tn_day_text(l->state->days.day, text);
    const tn_report_day done = {.day = text,
                                .state = l->state,
                                .train = train,
                                .saved = l->saver->is_unsaved ? NULL : &l->saver->saved,
                                .epochs = l->run->train.epochs};
    return tn_report_day_done(l->report, &done, err);
}

/* A checkpoint of this step is of the end of its last day, which has no record yet. */
static bool lacks_record(const tn_run *run, const tn_manifest_days *days, uint64_t step)
{
    char day[TN_DAY_TEXT];
    tn_text path = {0};
    tn_day_text(days->day, day);
    tn_run_dir(&run->run, &path);
    tn_text_adds(&path, "/metrics.jsonl");
    const bool owed = run->log.jsonl && !days->within && tn_days_has(days, days->day) &&
                      !tn_journal_has_day(tn_text_str(&path), day, step);
    tn_text_done(&path);
    return owed;
}

bool tn_day_loop_owes(const tn_run *run)
{
    tn_manifest_days learned = {0};
    uint64_t step = 0;
    if (run->data.pattern.n == 0) {
        return false;
    }
    tn_checkpoint_days(run, &learned, &step);
    return learned.n > 0 && (lacks_record(run, &learned, step) || tn_publisher_is_owed(run));
}

/* The last day is in a checkpoint, and whatever ended the process came before its record. */
static tn_status make_up_for(tn_day_loop *l, tn_error *err)
{
    if (!l->saver->has_saved || !lacks_record(l->run, &l->state->days, l->state->steps)) {
        return TN_OK;
    }
    TN_TRY(stop_or(l, judge_neighbours(l, l->state->days.day, err), err));
    return tell_day(l, l->epoch->metrics, err);
}

/* One checkpoint, on the disk before the next day begins; it stays until that one has its own. */
static tn_status end_day(tn_day_loop *l, tn_error *err)
{
    tn_saver *s = l->saver;
    const uint32_t day = l->state->days.day;
    TN_TRY(tn_day_loop_close(l->state, err));
    l->again = l->again && day != l->run->data.day[0];
    l->n++;
    l->state->best_ordinal = 0; /* the one before may go */
    TN_TRY(tn_saver_save(s, false, err));
    TN_TRY(l->state->export.awaits ? tn_saver_stop(s, err) : TN_OK);
    s->saving_best = s->saving;
    TN_TRY(stop_or(l, judge_neighbours(l, day, err), err));
    TN_TRY(tn_saver_end(s, err));
    return tell_day(l, l->epoch->whole, err);
}

/* ---- all of them ---- */

/* While a day is waited for. */
static tn_status idle(void *arg, tn_error *err)
{
    const tn_day_loop *l = arg;
    if (l->stops(l->arg)) {
        return tn_saver_stop(l->saver, err);
    }
    return l->epoch->lead != NULL ? tn_group_check(l->epoch->beats.group, err) : TN_OK;
}

double tn_day_loop_share(const tn_day_loop *l, double epochs)
{
    const double before = (double)l->n * l->run->train.epochs;
    return (before + epochs) / fmax(l->ahead, 1);
}

tn_status tn_day_loop_run(tn_day_loop *l, tn_error *err)
{
    const tn_data_opts *data = &l->run->data;
    const tn_manifest_days *days = &l->state->days;
    tn_day_wait wait = {.idle = idle, .arg = l};
    TN_ASSERT(data->n_days > 0 && l->learn != NULL && l->stops != NULL);
    if (!days->used && l->state->stand.within) {
        return tn_fail(err, TN_E_CONFIG,
                       "the checkpoint stands within an epoch of data that are no days\nhint: go "
                       "on without data.days to its end, or begin anew with --fresh");
    }
    TN_TRY(make_up_for(l, err));
    l->again = data->again;
    for (uint32_t i = 0; i < data->n_days; i++) {
        l->ahead += l->again || !tn_days_has(days, data->day[i]);
    }
    uint32_t day = 0;
    tn_text said = {0};
    tn_status status = TN_OK;
    bool whole = true;
    while (whole && status == TN_OK) {
        wait.again = l->again;
        status = tn_day_plan_next(data, days, &wait, &day, &said, err);
        status = status == TN_OK ? begin_day(l, day, err) : status;
        if (status == TN_OK) {
            tn_evaluation_done(l->next); /* is of the model before */
            status = l->learn(l->arg, err);
            whole = status != TN_END;
            status = whole ? status : TN_OK;
            status = whole && status == TN_OK ? end_day(l, err) : status;
        }
    }
    if (status == TN_END) {
        status = tn_report_event(l->report, l->state, "info", tn_text_str(&said), err);
    }
    tn_text_done(&said);
    return status;
}
