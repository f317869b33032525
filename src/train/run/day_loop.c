/* day_loop.c - begins and ends the days of a run, and evaluates around them. */
#include "train/run/day_loop.h"

#include "base/core/arena.h"
#include "base/core/log.h"
#include "base/core/text.h"
#include "train/config/days.h"
#include "train/eval/calibrate.h"
#include "train/eval/evaluate.h"
#include "train/report/metrics_jsonl.h"
#include "train/run/day_plan.h"
#include "train/run/module.h"
#include "train/run/publisher.h"
#include "train/run/saver.h"

#include <math.h>
#include <stdio.h>

struct tn_day_loop {
    bool is_begun;        /* DATA has come once */
    bool again;           /* data.again, until that day is learned */
    uint32_t judged;      /* the last later day that was scored; 0: none */
    uint64_t judged_step; /* step of the model that scored it */
    uint32_t n, ahead;    /* days: learned by this process; to learn when it began */
};

/* ---- evaluations ---- */

/* Scores the head of a day's files: *out and a record. TN_E_STOPPED: by a signal. */
static tn_status evaluate(tn_run_now *now, uint32_t day, const tn_valid_rows *rows,
                          tn_evaluation *out, tn_error *err)
{
    char data[TN_DAY_NAME];
    const bool collects = out == &now->out->valid && now->calibrate != NULL;
    TN_ASSERT(rows->paths.n > 0 && rows->day == day);
    const tn_eval_request request = {.paths = &rows->paths,
                                     .rows_max = rows->rows_max,
                                     .day = day,
                                     .stop = now->watch->stop,
                                     .sink = collects ? tn_calibrate_sink : NULL,
                                     .sink_arg = now->calibrate};
    tn_day_name(day, data);
    if (collects) {
        tn_calibrate_clear(now->calibrate);
        tn_calibrate_name(now->calibrate, data);
    }
    tn_evaluation_done(out);
    TN_TRY(tn_epoch_evaluate(now->epoch, &request, out, err));
    const tn_report_eval eval = {
        .data = data, .result = out, .state = now->state, .step = now->worker->steps};
    return tn_report_eval_done(now->report, &eval, err);
}

/* Scores a day that the model has not learned. */
static tn_status judge(tn_day_loop *l, tn_run_now *now, uint32_t day, const tn_valid_rows *rows,
                       tn_error *err)
{
    const bool learned = now->state->samples > 0 || now->state->kept.begun;
    const bool is_known = l->judged == day && l->judged_step == now->worker->steps;
    if (!now->run->data.next || !learned || is_known) {
        return TN_OK;
    }
    l->judged = day;
    l->judged_step = now->worker->steps;
    return evaluate(now, day, rows, &now->out->valid, err);
}

/* A day of data.days, whether it is there or not. */
static tn_valid_rows rows_of(const tn_run_now *now, uint32_t day, tn_arena *arena)
{
    const tn_data_opts *data = &now->run->data;
    return (tn_valid_rows){.paths = tn_days_paths(&data->pattern, day, arena),
                           .rows_max = data->valid_rows,
                           .day = day};
}

/* Scores the day after the last learned one, unless the model at hand has done so. TN_E_DATA: it is
 * not there; TN_E_STOPPED: by a signal. */
static tn_status judge_next(tn_day_loop *l, tn_run_now *now, tn_error *err)
{
    tn_valid_rows rows;
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_status status =
        tn_valid_rows_find(&now->run->data, &now->state->kept.days, arena, &rows, err);
    if (status == TN_OK) {
        status = judge(l, now, rows.day, &rows, err);
    }
    tn_arena_free(arena);
    return status;
}

/* Scores the day before one that is learned, if it is there: what is still known of it. */
static tn_status judge_before(tn_run_now *now, uint32_t day, tn_error *err)
{
    tn_error why;
    if (day == 0 || !tn_days_has(&now->state->kept.days, day - 1)) {
        return TN_OK;
    }
    const tn_status there = tn_days_look(&now->run->data, day - 1, &why);
    if (there != TN_OK) {
        return there == TN_E_STOPPED ? tn_fail(err, there, "%s", why.text) : TN_OK;
    }
    tn_evaluation before = {0};
    tn_arena *arena = tn_arena_new(1 << 12);
    const tn_valid_rows rows = rows_of(now, day - 1, arena);
    const tn_status status = evaluate(now, day - 1, &rows, &before, err);
    tn_evaluation_done(&before);
    tn_arena_free(arena);
    return status;
}

/* After a day, scores the one before it, which it may have forgotten, and the one after it, as far
 * as these are there. */
static tn_status judge_neighbours(tn_day_loop *l, tn_run_now *now, uint32_t day, tn_error *err)
{
    tn_error why;
    TN_ASSERT(tn_days_has(&now->state->kept.days, day));
    if (!now->run->data.next) {
        return TN_OK;
    }
    TN_TRY(judge_before(now, day, err));
    const tn_status status = judge_next(l, now, &why);
    return status == TN_OK || status == TN_E_DATA ? TN_OK : tn_fail(err, status, "%s", why.text);
}

/* ---- a day ---- */

/* Weights of checkpoint.from, which are of a day, and the first day of the run. */
static void warn_of_begun(const tn_run_now *now, uint32_t day)
{
    const tn_learned_days *days = &now->state->kept.days;
    const uint32_t was = now->worker->day;
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

static tn_status begin_day(tn_day_loop *l, tn_run_now *now, uint32_t day, tn_error *err)
{
    tn_run_state *state = now->state;
    tn_learned_days *days = &state->kept.days;
    TN_ASSERT(!days->within || days->day == day);
    warn_of_begun(now, day);
    if (days->within) {
        tn_worker_set_day(now->worker, day);
        return TN_OK;
    }
    TN_ASSERT(l->again || !tn_days_has(days, day));
    days->used = true;
    tn_arena *arena = tn_arena_new(1 << 12);
    const tn_valid_rows rows = rows_of(now, day, arena);
    const tn_status status = judge(l, now, day, &rows, err);
    tn_arena_free(arena);
    TN_TRY(status); /* with counts as of the day before */
    tn_worker_set_day(now->worker, day);
    days->within = true;
    days->day = day;
    days->epoch = state->progress.epoch;
    days->before = state->best_ordinal;
    days->samples = state->samples;
    tn_epoch_begin_data(now->epoch);
    return TN_OK;
}

static tn_status say_day(const tn_run_now *now, const tn_metrics *train, tn_error *err)
{
    char text[TN_DAY_TEXT];
    TN_ASSERT(tn_days_has(&now->state->kept.days, now->state->kept.days.day));
    tn_day_text(now->state->kept.days.day, text);
    const tn_report_day done = {.day = text,
                                .state = now->state,
                                .train = train,
                                .saved = now->saver->is_unsaved ? NULL : &now->saver->saved,
                                .epochs = now->run->train.epochs};
    return tn_report_day_done(now->report, &done, err);
}

/* A checkpoint of this step is of the end of its last day, which has no record yet. */
static bool lacks_record(const tn_run *run, const tn_learned_days *days, uint64_t step)
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
    tn_learned_days learned = {0};
    uint64_t step = 0;
    if (run->data.pattern.n == 0) {
        return false;
    }
    tn_checkpoint_days(run, &learned, &step);
    return learned.n > 0 && (lacks_record(run, &learned, step) || tn_publisher_is_owed(run));
}

/* The last day is in a checkpoint, and whatever ended the process came before its record. */
static tn_status make_up_for(tn_day_loop *l, tn_run_now *now, tn_error *err)
{
    const tn_run_state *state = now->state;
    if (!tn_saver_has_saved(now->saver) ||
        !lacks_record(now->run, &state->kept.days, state->steps)) {
        return TN_OK;
    }
    TN_TRY(judge_neighbours(l, now, state->kept.days.day, err));
    return say_day(now, now->epoch->metrics, err);
}

/* ---- the moments ---- */

static tn_status open_days(void *self, tn_run_now *now, tn_error *err)
{
    (void)err;
    now->days = tn_run_has_days(now) ? self : NULL;
    return TN_OK;
}

/* While a day is waited for. */
static tn_status look_up(void *arg, tn_error *err)
{
    const tn_run_now *now = arg;
    (void)now->epoch->ops->hear(now->epoch);
    if (tn_run_is_asked(now)) {
        return TN_E_STOPPED;
    }
    return now->epoch->ranks.ops->check(now->epoch->ranks.self, err);
}

double tn_day_loop_share(const tn_day_loop *l, const tn_run *run, double epochs)
{
    const double before = (double)l->n * run->train.epochs;
    return (before + epochs) / fmax(l->ahead, 1);
}

static tn_status begin_days(tn_day_loop *l, tn_run_now *now, tn_error *err)
{
    const tn_data_opts *data = &now->run->data;
    const tn_learned_days *days = &now->state->kept.days;
    TN_ASSERT(data->n_days > 0);
    if (!days->used && now->state->stand.n_parts > 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "the checkpoint stands within an epoch of data that are no days\nhint: go "
                       "on without data.days to its end, or begin anew with --fresh");
    }
    TN_TRY(make_up_for(l, now, err));
    l->again = data->again;
    for (uint32_t i = 0; i < data->n_days; i++) {
        l->ahead += l->again || !tn_days_has(days, data->day[i]);
    }
    l->is_begun = true;
    return TN_OK;
}

/* Chooses the next day, and waits for it. TN_END: there is none, which is said. */
static tn_status choose_day(tn_day_loop *l, tn_run_now *now, uint32_t *day, tn_error *err)
{
    tn_text said = {0};
    const tn_day_wait wait = {.idle = look_up, .arg = now, .again = l->again};
    tn_status status =
        tn_day_plan_next(&now->run->data, &now->state->kept.days, &wait, day, &said, err);
    if (status == TN_END) {
        const tn_status told = tn_run_say(now, "info", tn_text_str(&said), err);
        status = told == TN_OK ? TN_END : told;
    }
    tn_text_done(&said);
    return status;
}

static tn_status next_day(void *self, tn_run_now *now, tn_error *err)
{
    tn_day_loop *l = self;
    uint32_t day = 0;
    if (now->days == NULL) {
        return TN_OK;
    }
    TN_TRY(l->is_begun ? TN_OK : begin_days(l, now, err));
    TN_TRY(choose_day(l, now, &day, err));
    TN_TRY(begin_day(l, now, day, err));
    tn_evaluation_done(&now->out->valid); /* is of the model before */
    return TN_OK;
}

/* Notes that the day is learned when its last epoch is over. */
static tn_status note_learned(void *self, tn_run_now *now, tn_error *err)
{
    (void)self;
    tn_learned_days *days = &now->state->kept.days;
    if (!tn_run_is_last(now) || !days->within) {
        return TN_OK;
    }
    TN_ASSERT(days->used);
    TN_TRY(tn_days_add(days, days->day, err));
    days->within = false;
    return TN_OK;
}

/* Makes one checkpoint, on the disk before the next day begins; it stays until that has its own. A
 * signal that ends an evaluation leaves the day without a record: the next command makes both. */
static tn_status end_day(void *self, tn_run_now *now, tn_error *err)
{
    tn_day_loop *l = self;
    tn_saver *s = now->saver;
    const uint32_t day = now->state->kept.days.day;
    TN_TRY(note_learned(self, now, err));
    l->again = l->again && day != now->run->data.day[0];
    l->n++;
    TN_TRY(tn_saver_save(s, &(tn_save_request){.why = TN_SAVE_KEPT}, err));
    TN_TRY(now->state->kept.export.awaits ? TN_E_STOPPED : TN_OK);
    TN_TRY(judge_neighbours(l, now, day, err));
    TN_TRY(tn_saver_end(s, err));
    return say_day(now, now->epoch->whole, err);
}

/* Scores the day after for a calibration. Scores of an earlier model are none. */
static tn_status collect_scores(void *self, tn_run_now *now, tn_error *err)
{
    if (!now->run->data.next) {
        return TN_OK;
    }
    const tn_status status = judge_next(self, now, err);
    if (status == TN_E_DATA) {
        tn_calibrate_clear(now->calibrate);
    }
    return status;
}

/* Scores the day after by the model that stays, if a calibration is wanted and the day is there. */
static tn_status score_kept(void *self, tn_run_now *now, tn_error *err)
{
    tn_error why = {0};
    const tn_status status = now->calibrate != NULL ? collect_scores(self, now, &why) : TN_OK;
    return status == TN_OK || status == TN_E_DATA ? TN_OK : tn_fail(err, status, "%s", why.text);
}

extern const tn_module tn_module_days;
const tn_module tn_module_days = {.name = "days",
                                  .size = sizeof(tn_day_loop),
                                  .at = {[TN_AT_OPEN] = open_days,
                                         [TN_AT_DATA] = next_day,
                                         [TN_AT_EPOCH] = note_learned,
                                         [TN_AT_DAY] = end_day,
                                         [TN_AT_COLLECT] = collect_scores,
                                         [TN_AT_KEPT] = score_kept}};
