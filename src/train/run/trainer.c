/* trainer.c - a whole run: begins or goes on, trains, saves, evaluates, and ends. */
#include "train/run/trainer.h"

#include "base/core/clock.h"
#include "base/file/file.h"
#include "config/tree.h"
#include "io/schema/schema.h"
#include "models/model.h"
#include "ps/optim/optim.h"
#include "train/begin/begun.h"
#include "train/begin/import.h"
#include "train/checkpoint/rerun.h"
#include "train/checkpoint/run_state.h"
#include "train/config/data_checks.h"
#include "train/config/loss.h"
#include "train/eval/predict.h"
#include "train/peers/leader.h"
#include "train/report/advice.h"
#include "train/report/profile.h"
#include "train/report/report.h"
#include "train/run/day_loop.h"
#include "train/run/early_stopping.h"
#include "train/run/epoch.h"
#include "train/run/epoch_reader.h"
#include "train/run/first_warnings.h"
#include "train/run/follower.h"
#include "train/run/publisher.h"
#include "train/run/run_calibration.h"
#include "train/run/saver.h"
#include "train/run/timetable.h"
#include "train/step/memory_cap.h"
#include "train/step/model_plan.h"
#include "train/step/row_sweep.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct trainer {
    const tn_model_plan *plan;
    const tn_run *run;
    const tn_watch *watch;
    tn_outcome *out;
    tn_worker *worker;
    tn_report *report;
    tn_memory_cap memory;
    tn_run_state state;
    tn_begun begun; /* what checkpoint.from gave */
    tn_saver saver;
    tn_timetable timetable;
    tn_epoch epoch;
    tn_loss_curve curve;
    uint64_t best_step; /* where valid.logloss was smallest; 0: it is not known */
    double best_loss;
    bool told_unknown;  /* that the watched metric is not defined */
    uint64_t evaluated; /* steps when data.valid was last evaluated; UINT64_MAX: never */
    tn_text trained;    /* what of data.valid is learned, too; "": nothing */
    tn_run_calibration calibration;
    bool collected;    /* it has the scores of out->valid */
    tn_text map;       /* of the checkpoint that is saved, for its export, as JSON; "": none */
    uint64_t restored; /* the step of the best model, which is back; 0: the last one stays */
    bool stop;         /* early stop, max_steps or max_time: end as if the data had ended */
    tn_day_loop days;  /* of a run over days */
} trainer;

static bool has_days(const trainer *t)
{
    return t->run->data.pattern.n > 0;
}

/* Where the data at hand end; epochs are counted over all days. */
static uint32_t last_epoch(const trainer *t)
{
    return t->state.days.epoch + t->run->train.epochs;
}

/* ---- evaluating ---- */

/* Scores of data.valid: figures, and, if it `collects`, what a calibration can be fitted on. */
static tn_status evaluate_valid(trainer *t, bool collects, tn_error *err)
{
    t->collected = t->calibration.calibrate != NULL && collects;
    const tn_eval_request request = {.paths = &t->run->data.valid,
                                     .held = t->run->data.held != TN_HELD_NONE,
                                     .stop = t->watch->stop,
                                     .sink = t->collected ? tn_calibrate_sink : NULL,
                                     .sink_arg = t->calibration.calibrate};
    tn_calibrate_clear(t->calibration.calibrate);
    tn_evaluation_done(&t->out->valid);
    return tn_epoch_evaluate(&t->epoch, &request, &t->out->valid, err);
}

/* Tells early stopping the watched metric. Rows of one class tell nothing of a model, whatever it
 * is. */
static tn_verdict watch_valid(trainer *t)
{
    const tn_metrics *m = t->out->valid.metrics;
    const char *monitor = t->state.monitor;
    if (monitor == NULL) {
        return (tn_verdict){0};
    }
    const bool one = tn_metrics_one_class(m) != NULL;
    const uint64_t step = t->worker->steps;
    const tn_evaluated what = {monitor, one ? (double)NAN : tn_metrics_get(m, monitor), step,
                               tn_timetable_is_early(&t->timetable, step)};
    return tn_early_stopping_add(&t->run->train, &t->state.patience, &what);
}

/* For advice: which evaluation was the best, whatever is watched. */
static void note_best(trainer *t)
{
    const bool clicks = t->run->data.target == TN_TARGET_CLICK && !has_days(t);
    const double loss = clicks ? tn_metrics_get(t->out->valid.metrics, "logloss") : (double)NAN;
    if (t->best_step == 0 ? !isnan(loss) : loss < t->best_loss) {
        t->best_step = t->worker->steps;
        t->best_loss = loss;
    }
}

/* Once: that evaluations decide nothing. */
static tn_status tell_unknown(trainer *t, tn_error *err)
{
    const char *one = tn_metrics_one_class(t->out->valid.metrics);
    char line[240];
    TN_ASSERT(t->state.monitor != NULL);
    if (t->told_unknown) {
        return TN_OK;
    }
    t->told_unknown = true;
    (void)snprintf(
        line, sizeof line,
        "%s%s%svalid.%s cannot be judged: no learning rate and no end of the run depends "
        "on it",
        one != NULL ? "data.valid has " : "", one != NULL ? one : "", one != NULL ? "; " : "",
        t->state.monitor);
    return tn_report_event(t->report, &t->state, "warn", line, err);
}

/* Evaluates, tells patience, keeps the best (at once, or `later`). TN_E_STOPPED: by a signal. */
static tn_status validate(trainer *t, bool later, tn_error *err)
{
    if (t->run->data.valid.n == 0) {
        t->state.eval_owed = false;
        return TN_OK;
    }
    /* Among peers rows would travel for it: only where this model may be the one that stays. */
    const bool last = t->stop || t->state.progress.epoch >= last_epoch(t);
    TN_TRY(evaluate_valid(t, t->epoch.lead == NULL || last, err));
    t->evaluated = t->worker->steps;
    t->state.eval_owed = false;
    const char *monitor = t->state.monitor;
    const tn_verdict v = watch_valid(t);
    note_best(t);
    tn_report_eval eval = {.data = "valid",
                           .result = &t->out->valid,
                           .state = &t->state,
                           .step = t->worker->steps,
                           .best = v.best};
    TN_TRY(tn_report_eval_done(t->report, &eval, err));
    if (v.best) {
        TN_TRY(tn_saver_save_best(&t->saver, later, err));
    }
    if (v.unknown) {
        TN_TRY(tell_unknown(t, err));
    }
    char line[160];
    if (v.reduced) {
        (void)snprintf(line, sizeof line, "no better %s: learning rate times %g", monitor,
                       t->state.patience.lr_scale);
        TN_TRY(tn_report_event(t->report, &t->state, "info", line, err));
    }
    if (v.stop) {
        (void)snprintf(line, sizeof line, "no better %s %u times in a row: stopping", monitor,
                       t->state.patience.bad);
        TN_TRY(tn_report_event(t->report, &t->state, "info", line, err));
        t->stop = true;
    }
    return TN_OK;
}

/* ---- the calibration of what is published ---- */

/* Scores of the rows to judge by, of the model at hand, unless they are known. TN_E_DATA: there are
 * no rows, and why. */
static tn_status collect_scores(trainer *t, tn_error *err)
{
    if (t->run->data.next) {
        const tn_status status = tn_day_loop_judge(&t->days, err);
        if (status == TN_E_DATA) {
            tn_calibrate_clear(t->calibration.calibrate); /* of an earlier model */
        }
        return status;
    }
    const bool known =
        t->out->valid.metrics != NULL && t->collected && t->evaluated == t->worker->steps;
    t->evaluated = t->worker->steps;
    return known ? TN_OK : evaluate_valid(t, true, err);
}

/* Fits the map that a checkpoint is saved and exported with. Where a signal ends that, the next
 * command fits it, and publishes then. */
static tn_status calibrate_export(trainer *t, tn_error *err)
{
    tn_error why = {0};
    tn_status status = collect_scores(t, &why);
    if (status == TN_OK) {
        status = tn_run_calibration_fit(&t->calibration, t->out->valid.metrics, &t->map, &why);
    }
    if (status == TN_E_STOPPED) {
        t->state.export.awaits = true;
        t->saver.saving_export = false;
        return TN_OK;
    }
    return tn_run_calibration_judge(&t->calibration, status, why.text, err);
}

/* An export that a run before was to publish, and whose calibration a signal has ended. */
static tn_status publish_late(trainer *t, tn_error *err)
{
    if (!t->state.export.awaits || t->saver.publisher == NULL) {
        return TN_OK;
    }
    t->saver.export_next = true;
    TN_TRY(tn_saver_save(&t->saver, false, err));
    return t->state.export.awaits ? tn_saver_stop(&t->saver, err) : TN_OK;
}

/* ---- the end by a signal, or for want of memory ---- */

static bool is_asked(const trainer *t)
{
    return t->epoch.is_stopped || (t->watch->stop != NULL && atomic_load(t->watch->stop));
}

/* Evaluates; when a signal ends that, so does the run, and a resumed one begins with it. */
static tn_status validate_or_owe(trainer *t, tn_error *err)
{
    tn_status status = validate(t, false, err);
    if (status != TN_E_STOPPED) {
        return status;
    }
    if (!t->state.eval_owed) {
        tn_saver_set_unsaved(&t->saver);
    }
    t->state.eval_owed = true;
    return tn_saver_stop(&t->saver, err);
}

/* Here or at another rank. */
static bool is_full(trainer *t)
{
    return t->epoch.is_full || tn_room_is_over(tn_memory_cap_look(&t->memory));
}

/* The end then: saves, and is TN_E_MEMORY. */
static tn_status stop_full(trainer *t, tn_error *err)
{
    char path[TN_PATH_SIZE];
    TN_TRY(tn_saver_save_last(&t->saver, true, err));
    TN_TRY(tn_path_join(tn_checkpoints_dir(t->saver.checkpoints), t->saver.saved.name, path, err));
    return tn_memory_cap_fail(&t->memory, path, err);
}

/* ---- between two steps ---- */

/* Whether something is when `steps` are done. */
static bool is_due(trainer *t, uint64_t steps)
{
    return tn_timetable_is_due(&t->timetable, steps, tn_clock_s()) || is_asked(t) || is_full(t) ||
           t->memory.room == TN_ROOM_AFTER_SAVE ||
           (t->watch->save != NULL && atomic_load(t->watch->save));
}

static tn_status stop_if_full(trainer *t, tn_error *err)
{
    if (tn_memory_cap_look(&t->memory) == TN_ROOM_AFTER_SAVE) {
        TN_TRY(tn_saver_end(&t->saver, err));
        (void)tn_memory_cap_look(&t->memory);
    }
    const bool full = t->epoch.is_full || tn_room_is_over(t->memory.room);
    return full ? stop_full(t, err) : TN_OK;
}

/* Evaluations, checkpoints and signals between two steps. */
static tn_status do_what_is_due(trainer *t, tn_error *err)
{
    const double now = tn_clock_s();
    const uint64_t steps = t->worker->steps;
    TN_TRY(tn_saver_note(&t->saver, err));
    const bool over = tn_timetable_is_over(&t->timetable, steps, now);
    /* A run that is killed behind a checkpoint of the best model must know of the export. */
    t->saver.export_next = tn_timetable_take(&t->timetable, TN_DUE_EXPORT, steps, now) && !over;
    if (tn_timetable_take(&t->timetable, TN_DUE_EVAL, steps, now)) {
        TN_TRY(validate_or_owe(t, err));
    }
    t->stop = t->stop || over;
    if (t->stop) {
        t->saver.export_next = false;
        return TN_OK; /* the run's end saves, perhaps another model than this one */
    }
    bool delta = tn_timetable_take(&t->timetable, TN_DUE_DELTA, steps, now);
    bool save_now = t->watch->save != NULL && atomic_exchange(t->watch->save, false);
    const bool full = tn_timetable_take(&t->timetable, TN_DUE_CKPT, steps, now);
    if (save_now || full || t->saver.export_next) {
        TN_TRY(tn_saver_save(&t->saver, false, err));
        t->saver.saving_asked = save_now;
    } else if (delta) {
        TN_TRY(tn_saver_save(&t->saver, true, err));
    }
    return is_asked(t) ? tn_saver_stop(&t->saver, err) : stop_if_full(t, err);
}

/* ---- steps ---- */

static tn_status report_step(trainer *t, const tn_step_turn *turn, double begin, tn_error *err)
{
    const tn_rule_opts *dense = t->run->train.optimizer.opts;
    const tn_epoch *e = &t->epoch;
    tn_link_counts counts = {0};
    if (e->lead != NULL) {
        tn_link_counts_of(tn_group_link(e->beats.group), &counts);
    }
    const double epoch_done = tn_epoch_share(e);
    const double of_day = t->state.progress.epoch - t->state.days.epoch + epoch_done;
    const double epochs = has_days(t) ? tn_day_loop_share(&t->days, of_day) : of_day;
    tn_report_step step = {
        .window = {.turn = turn,
                   .joint =
                       e->is_async && turn->step != NULL ? turn->step->batch->rows : turn->rows,
                   .lr = dense->lr * turn->factor,
                   .bytes_in = counts.bytes_in,
                   .bytes_out = counts.bytes_out},
        .state = &t->state,
        .took_s = e->lead == NULL ? turn->waited_s + turn->took_s + tn_clock_s() - begin : 0,
        .epoch_done = epoch_done,
        .done = tn_timetable_share(&t->timetable, t->state.steps, epochs, tn_clock_s()),
        .reader = tn_step_prefetch_reader(e->data),
    };
    tn_span_begin(t->worker->lane, TN_PHASE_REPORT);
    tn_status status = tn_report_step_done(t->report, &step, err);
    tn_span_end(t->worker->lane);
    return status;
}

/* ---- hooks of the steps ---- */

static bool meets(void *arg, uint64_t steps)
{
    trainer *t = arg;
    const bool deals_anew = tn_epoch_hear(&t->epoch);
    return is_due(t, steps) || deals_anew;
}

static double factor(void *arg)
{
    const trainer *t = arg;
    return tn_learning_rate_factor(t->run, t->worker->steps, t->epoch.schedule_end) *
           t->state.patience.lr_scale;
}

static tn_status note_turn(void *arg, const tn_step_turn *turn, tn_error *err)
{
    trainer *t = arg;
    const double begin = tn_clock_s();
    tn_epoch_note(&t->epoch, turn);
    if (turn->step != NULL) {
        tn_loss_curve_add(&t->curve, turn->learned.loss);
    }
    if (turn->step != NULL || !t->epoch.is_async) { /* else it had no data, and did nothing */
        tn_saver_set_unsaved(&t->saver);
        TN_TRY(report_step(t, turn, begin, err));
    }
    return turn->meets ? TN_OK : tn_saver_note(&t->saver, err);
}

/* Does what is due while all stand still, then has them go on. */
static tn_status meet(trainer *t, tn_error *err)
{
    bool gave_back;
    TN_TRY(tn_epoch_give_back(&t->epoch, &gave_back, err));
    if (gave_back && !is_due(t, t->worker->steps)) {
        return TN_OK; /* they met for that only */
    }
    TN_TRY(tn_epoch_gather(&t->epoch, err));
    tn_status status = do_what_is_due(t, err);
    tn_timetable_look(&t->timetable, t->worker->steps);
    TN_TRY(status);
    return t->stop ? TN_OK : tn_epoch_go_on(&t->epoch, err);
}

static tn_status end_steps(trainer *t, tn_error *err)
{
    TN_TRY(tn_epoch_wait_for_all(&t->epoch, err));
    if (t->epoch.is_async && t->state.steps != t->worker->steps) {
        tn_saver_set_unsaved(&t->saver); /* others have learned after this rank's last step */
        t->state.steps = t->worker->steps;
    }
    return TN_END;
}

static tn_status take_steps(trainer *t, tn_error *err)
{
    const tn_step_hooks hooks = {meets, factor, note_turn, t};
    while (!t->stop) {
        tn_status status = tn_step_loop_run(t->epoch.steps, &hooks, err);
        if (status == TN_END) {
            return end_steps(t, err);
        }
        TN_TRY(status);
        TN_TRY(meet(t, err));
    }
    /* The run is over, perhaps with nothing to save. */
    return t->epoch.is_async ? TN_OK : tn_epoch_locate(&t->epoch, err);
}

/* embedding.reset: all rows go before an epoch that is not the first begins. A checkpoint that is
 * being written reads them still. */
static tn_status reset_rows(trainer *t, tn_error *err)
{
    if (t->run->embedding.reset == TN_RESET_EPOCH && t->epoch.is_whole &&
        t->state.progress.epoch > 0) {
        TN_TRY(tn_saver_end(&t->saver, err));
        tn_table_clear(t->worker->shard.table);
    }
    return TN_OK;
}

/* The steps of an epoch, behind an evaluation that the run before owed. TN_END: it is over; TN_OK:
 * the run is. A signal may have cut the reader short. */
static tn_status all_steps(trainer *t, tn_error *err)
{
    const atomic_bool *stop = t->epoch.lead != NULL ? NULL : t->watch->stop;
    TN_TRY(tn_step_prefetch_watch(t->epoch.data, stop, err));
    if (t->state.eval_owed) {
        TN_TRY(validate_or_owe(t, err));
    }
    TN_TRY(publish_late(t, err));
    TN_TRY(reset_rows(t, err));
    tn_status status = tn_epoch_begin_steps(&t->epoch, err);
    if (status == TN_OK) {
        status = take_steps(t, err);
    }
    bool cut = (status == TN_END || status == TN_E_STOPPED) && is_asked(t);
    return cut ? tn_saver_stop(&t->saver, err) : status;
}

/* ---- an epoch ---- */

/* Of a run that publishes days these are published, and nothing else. */
static bool publishes_its_end(const trainer *t)
{
    return t->run->export.every != NULL && !tn_run_exports_days(t->run);
}

/* Saves after an epoch that is not the last, if that is due; `full`: by checkpoint.every. */
static tn_status save_between(trainer *t, uint32_t epoch, bool full, tn_error *err)
{
    const bool delta = tn_timetable_is_due_after(&t->timetable, TN_DUE_DELTA, epoch);
    const bool saves = t->saver.export_next || ((full || delta) && t->saver.is_unsaved);
    t->saver.export_next = t->saver.export_next && !t->stop;
    return saves && !t->stop ? tn_saver_save(&t->saver, !full, err) : TN_OK;
}

static tn_status after_epoch(trainer *t, tn_error *err)
{
    tn_epoch_end end;
    TN_TRY(tn_epoch_finish(&t->epoch, &end, err));
    const tn_manifest_days days = t->state.days;
    const uint32_t epoch = t->state.progress.epoch;
    const bool last = epoch >= last_epoch(t);
    if (tn_rows_come_and_go(t->plan) && (last || !has_days(t))) {
        TN_TRY(tn_saver_end(&t->saver, err)); /* its rows may not leave meanwhile */
        TN_TRY(tn_epoch_sweep(&t->epoch, err));
        tn_saver_set_unsaved(&t->saver); /* a checkpoint of the last step has rows that left */
    }
    if (last) {
        TN_TRY(tn_day_loop_close(&t->state, err));
    }
    const bool exports = tn_timetable_is_due_after(&t->timetable, TN_DUE_EXPORT, epoch);
    const bool full =
        tn_timetable_saves_after(&t->timetable, epoch, end.samples_before, t->state.samples);
    t->saver.export_next = last ? has_days(t) && (exports || tn_run_exports_days(t->run)) : exports;
    if (tn_timetable_is_due_after(&t->timetable, TN_DUE_EVAL, epoch) || last) {
        tn_status status = validate(t, !full && tn_timetable_is_patient(&t->timetable), err);
        if (status == TN_E_STOPPED) {
            tn_epoch_return(&t->epoch, &end); /* so that a resumed run comes here again */
            t->saver.export_next = false;
            t->state.days = days;
            return tn_saver_stop(&t->saver, err);
        }
        TN_TRY(status);
    }
    return last ? TN_OK : save_between(t, epoch, full, err); /* the run's end saves, or the day's */
}

static tn_status open_epoch(trainer *t, tn_error *err)
{
    const bool first = !t->epoch.is_begun;
    TN_TRY(tn_epoch_open(&t->epoch, t->report, err));
    if (!first) {
        return TN_OK;
    }
    TN_TRY(tn_saver_check_room(&t->saver, err));
    return tn_epoch_check_parts(&t->epoch, err);
}

static tn_status run_epoch(trainer *t, tn_error *err)
{
    tn_status status = open_epoch(t, err);
    if (status == TN_OK) {
        status = all_steps(t, err);
    }
    tn_epoch_close(&t->epoch);
    return status == TN_END ? after_epoch(t, err) : status;
}

/* ---- days ---- */

/* The epochs of a day; within one also where train.epochs has become less. */
static tn_status learn_day(void *arg, tn_error *err)
{
    trainer *t = arg;
    while ((!t->stop || t->state.eval_owed) &&
           (t->state.progress.epoch < last_epoch(t) || t->state.stand.within)) {
        TN_TRY(run_epoch(t, err));
    }
    return t->state.progress.epoch >= last_epoch(t) ? TN_OK : TN_END;
}

static bool stops(void *arg)
{
    trainer *t = arg;
    (void)tn_epoch_hear(&t->epoch);
    return is_asked(t);
}

/* Until no day is left, or the run is to end within one. */
static tn_status run_days(trainer *t, tn_error *err)
{
    t->days = (tn_day_loop){.run = t->run,
                            .stop = t->watch->stop,
                            .state = &t->state,
                            .epoch = &t->epoch,
                            .saver = &t->saver,
                            .report = t->report,
                            .next = &t->out->valid,
                            .calibrate = t->calibration.calibrate,
                            .learn = learn_day,
                            .stops = stops,
                            .arg = t};
    if (!t->state.stand.within) {
        TN_TRY(publish_late(t, err));
    }
    return t->stop ? TN_OK : tn_day_loop_run(&t->days, err);
}

/* ---- the end of a run: the best model restored, saved and tested ---- */

/* The best model back; it is not saved as the newest checkpoint yet. */
static tn_status restore_best(trainer *t, tn_error *err)
{
    const tn_early_stopping_state *p = &t->state.patience;
    const tn_stop_opts *stop = &t->run->train.stop;
    if (stop->monitor == NULL || stop->restore != 0 || !p->seen || p->step == t->worker->steps) {
        return TN_OK;
    }
    const uint64_t steps = t->worker->steps;
    tn_error why = {.text = "was not kept"};
    bool back = false;
    if (t->state.best_ordinal != 0) {
        TN_TRY(tn_saver_restore_best(&t->saver, &back, &why, err));
        tn_error_context(&why, "cannot be read back");
    }
    if (back) {
        t->restored = p->step;
        tn_evaluation_done(&t->out->valid); /* was of the model that is gone */
    }
    char line[sizeof why.text + 200];
    char best[160];
    const uint32_t epochs = t->state.progress.epoch;
    (void)snprintf(best, sizeof best, "%s %.6f at step %llu, epoch %.3g of %u", t->state.monitor,
                   p->best, (unsigned long long)p->step,
                   (double)p->step * epochs / (double)(steps > 0 ? steps : 1), epochs);
    (void)snprintf(line, sizeof line,
                   back ? "restored the best model: %s"
                        : "the best model, %s, %s: the last one stays",
                   best, why.text);
    return tn_report_event(t->report, &t->state, back ? "info" : "warn", line, err);
}

/* Scores of data.test, written down where eval.predictions says. */
static tn_status evaluate_test(trainer *t, tn_error *err)
{
    tn_predictions *p = NULL;
    const tn_predictions_opts opts = {
        .path = t->run->eval.predictions,
        .sampling = t->calibration.map != NULL ? 1 : t->run->data.negative_sampling,
        .schema = t->plan->schema,
        .inputs = t->watch->inputs,
        .stop = t->watch->stop,
        .secrets = t->run->data.secrets};
    if (opts.path != NULL) {
        TN_TRY(tn_predictions_open(&p, &opts, err));
    }
    const tn_eval_request request = {.paths = &t->run->data.test,
                                     .want_ids = p != NULL,
                                     .calibration = t->calibration.map,
                                     .stop = t->watch->stop,
                                     .sink = p != NULL ? tn_predictions_sink : NULL,
                                     .sink_arg = p};
    tn_status status = tn_epoch_evaluate(&t->epoch, &request, &t->out->test, err);
    if (status == TN_OK && p != NULL) {
        return tn_predictions_commit(p, err);
    }
    tn_predictions_abandon(p);
    return status;
}

/* Scores of the model that stays, which is being saved: those of data.valid unless they are known,
 * of data.test always, behind the calibration that was fitted on the former. */
static tn_status judge_the_last(trainer *t, tn_error *err)
{
    const bool calibrates = t->calibration.calibrate != NULL;
    const bool known = t->out->valid.metrics != NULL && (t->collected || !calibrates);
    const bool wanted = t->run->data.next ? calibrates : t->run->data.valid.n > 0 && !known;
    tn_error why = {0};
    const tn_status status = wanted ? collect_scores(t, &why) : TN_OK;
    if (status != TN_OK && status != TN_E_DATA) {
        return tn_fail(err, status, "%s", why.text);
    }
    TN_TRY(tn_run_calibration_end(&t->calibration, t->out->valid.metrics, t->watch->stop, err));
    if (t->run->data.test.n == 0) {
        return TN_OK;
    }
    TN_TRY(evaluate_test(t, err));
    tn_report_eval eval = {.data = "test",
                           .result = &t->out->test,
                           .state = &t->state,
                           .step = t->restored != 0 ? t->restored : t->worker->steps};
    return tn_report_eval_done(t->report, &eval, err);
}

/* The model that stays, with the evaluation that may still tell which one that is. */
static tn_status choose_the_last(trainer *t, tn_error *err)
{
    if (!t->epoch.is_begun) { /* its checkpoint is written; a kill came before the best one's */
        return t->state.owes_best && !is_asked(t) ? restore_best(t, err) : TN_OK;
    }
    if (t->evaluated != t->worker->steps) { /* ended within an epoch */
        TN_TRY(validate_or_owe(t, err));
    }
    return restore_best(t, err);
}

/* What the figures of the run say about it, a warning each. */
static tn_status advise(trainer *t, uint64_t steps, tn_error *err)
{
    const tn_advice facts = {.steps = steps,
                             .epochs = t->state.progress.epoch - t->state.days.epoch,
                             .batch = t->run->train.batch,
                             .epochs_chosen = t->run->train.epochs_chosen,
                             .batch_chosen = t->run->train.batch_chosen,
                             .past_best = t->restored != 0,
                             .linear = ((const tn_model *)t->run->model.choice->impl)->linear,
                             .days = has_days(t),
                             .ordered = t->run->data.ordered,
                             .curve = &t->curve,
                             .best_step = t->best_step,
                             .best_loss = t->best_loss,
                             .stops = t->run->train.stop.monitor != NULL,
                             .cut = t->stop,
                             .diverged = tn_report_told_diverging(t->report),
                             .calibrates =
                                 t->calibration.map != NULL || tn_run_calibration_is_wanted(t->run),
                             .train = t->epoch.whole,
                             .valid = t->out->valid.metrics,
                             .keys = &t->out->valid.keys};
    tn_text lines = {0};
    tn_advice_text(&facts, &lines);
    tn_status status = tn_text_check(&lines, "advice", err);
    char *line = lines.data;
    for (char *end; status == TN_OK && line != NULL && *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        status = tn_report_event(t->report, &t->state, "warn", line, err);
    }
    tn_text_done(&lines);
    return status;
}

/* Begins the checkpoint of the model that stays. */
static tn_status save_the_last(trainer *t, tn_error *err)
{
    TN_TRY(tn_saver_end(&t->saver, err));
    TN_TRY(choose_the_last(t, err));
    TN_TRY(tn_saver_end(&t->saver, err)); /* of the best model, which it may be */
    const bool unlearned = t->restored != 0 || (t->state.begun && !t->saver.has_saved);
    const bool saves = (t->epoch.is_begun || unlearned) && !t->saver.is_rare && !is_asked(t);
    t->saver.due_next = publishes_its_end(t);
    tn_status status = saves ? tn_saver_begin_last(&t->saver, false, err) : TN_OK;
    t->saver.due_next = false;
    return status;
}

/* With its calibration. */
static tn_status publish_the_last(trainer *t, tn_error *err)
{
    return publishes_its_end(t) ? tn_saver_export_last(&t->saver, err)
                                : tn_publisher_end(t->saver.publisher, err);
}

/* The end of training: the best model is brought back, saved, and tested. */
static tn_status wind_up(trainer *t, tn_error *err)
{
    const uint64_t steps = t->worker->steps; /* those behind the best model, too */
    TN_TRY(save_the_last(t, err));
    tn_status status = is_asked(t) ? TN_E_STOPPED : judge_the_last(t, err);
    if (status == TN_OK) {
        status = publish_the_last(t, err);
    }
    if (status == TN_OK && t->epoch.is_begun) {
        return advise(t, steps, err);
    }
    return status == TN_E_STOPPED ? tn_saver_stop(&t->saver, err) : status;
}

/* ---- the beginning of a run ---- */

/* What a checkpoint holds: how the run stands, over all ranks. */
static tn_status gather(void *arg, tn_ckpt_want *want, tn_error *err)
{
    trainer *t = arg;
    t->state.steps = t->worker->steps;
    t->state.export.awaits = false;
    tn_text_clear(&t->map);
    if (t->saver.saving_export && t->calibration.calibrate != NULL) {
        TN_TRY(calibrate_export(t, err));
    }
    t->state.export.calibration = t->map.size > 0 ? tn_text_str(&t->map) : NULL;
    TN_TRY(tn_epoch_locate(&t->epoch, err));
    want->state = &t->state;
    want->metrics = t->epoch.whole;
    return TN_OK;
}

/* Where a run before has left off, and what is said of it. */
static tn_status go_on(trainer *t, const tn_saved *which, const tn_run_text *text, tn_text *said,
                       tn_error *err)
{
    t->worker->steps = t->state.steps;
    tn_timetable_look(&t->timetable, t->state.steps);
    const tn_rerun rerun = {.plan = t->plan,
                            .text = text,
                            .state = &t->state,
                            .name = which->name,
                            .patience_over =
                                tn_early_stopping_is_over(&t->run->train, &t->state.patience)};
    return tn_rerun_tell(&rerun, said, err);
}

/* Weights to begin with: a checkpoint, files, or first values with the label rate as bias. `said`:
 * what people are told of it; empty: a fresh start. */
static tn_status first_weights(trainer *t, const tn_run_text *text, tn_saved *which, tn_text *said,
                               tn_error *err)
{
    TN_TRY(tn_saver_resume(&t->saver, t->epoch.metrics, which, err));
    if (which->ordinal != 0) {
        return go_on(t, which, text, said, err);
    }
    if (t->state.begun) {
        tn_text_addf(said, "begins with the weights of '%s' (epoch %u, step %llu)",
                     t->run->checkpoint.resume, which->epoch, (unsigned long long)which->step);
        return tn_text_check(said, "a sentence", err);
    }
    if (!tn_tree_is_null(t->run->checkpoint.from)) {
        t->state.begun = true;
        TN_TRY(tn_import(t->run->checkpoint.from, t->worker, &t->begun, err));
        tn_begun_say(&t->begun, said);
        return t->epoch.lead != NULL ? tn_leader_load(t->epoch.lead, "", err) : TN_OK;
    }
    const tn_model_common *model = t->run->model.shared;
    if (t->worker->output_bias == NULL || strcmp(model->bias_init, "prior") == 0) {
        return TN_OK; /* drawn from the first window of the data, see tn_epoch_begin_steps */
    }
    return tn_worker_set_bias(t->worker, model->bias_init, err);
}

/* Rows of data.valid that are learned, too, judge nothing. */
static tn_status look_at_valid(trainer *t, tn_error *err)
{
    const tn_data_opts *data = &t->run->data;
    tn_manifest_days learned = {0};
    if (has_days(t) && !t->run->checkpoint.fresh) {
        tn_checkpoint_days(t->run, &learned, NULL);
        learned.used = false; /* those that are asked for will be learned, too */
    }
    if (tn_data_is_trained(data, &learned, &data->valid, &t->trained)) {
        t->state.monitor = NULL;
    }
    t->calibration.trained = tn_text_str(&t->trained);
    return tn_text_check(&t->trained, "a sentence", err);
}

static tn_status open_parts(trainer *t, const tn_run_text *text, const tn_binder *b, tn_error *err)
{
    TN_TRY(tn_worker_new(&t->worker, t->plan, &(tn_worker_opts){.training = true}, b, err));
    TN_TRY(tn_epoch_init(&t->epoch, t->worker, err));
    tn_profile_begin(t->watch->profile, t->worker);
    TN_TRY(tn_memory_cap_init(&t->memory, t->worker, 0, err));
    TN_TRY(tn_saver_open(&t->saver, t->worker, text, err));
    const tn_publisher_opts publisher = {.plan = t->plan,
                                         .dir = tn_checkpoints_dir(t->saver.checkpoints),
                                         .state = &t->state,
                                         .stop = t->watch->stop};
    TN_TRY(tn_publisher_open(&t->saver.publisher, &publisher, err));
    TN_TRY(look_at_valid(t, err));
    TN_TRY(tn_run_calibration_open(&t->calibration, t->watch, err));
    return tn_epoch_form(&t->epoch, text, t->saver.checkpoints, err);
}

static tn_status begin_run(trainer *t, const tn_run_text *text, tn_text *said, tn_error *err)
{
    tn_saved which;
    TN_TRY(first_weights(t, text, &which, said, err));
    tn_memory_cap_begin(&t->memory);
    tn_report_opts report = {
        .plan = t->plan,
        .text = text,
        .watch = t->watch,
        .worker = t->worker,
        .dir = tn_checkpoints_dir(t->saver.checkpoints),
        .reported = t->epoch.lead != NULL ? tn_leader_peer_progress(t->epoch.lead) : NULL,
        .run_id = tn_checkpoints_run_id(t->saver.checkpoints),
        .resumed = which.ordinal != 0 ? &which : NULL,
        .memory = &t->memory,
        .begun = &t->begun,
    };
    TN_TRY(tn_report_open(&t->report, &report, err));
    t->saver.report = t->report;
    tn_publisher_set_report(t->saver.publisher, t->report);
    t->worker->metrics[1] = tn_report_scores(t->report);
    return said->size > 0 ? tn_report_event(t->report, &t->state, "info", tn_text_str(said), err)
                          : TN_OK;
}

/* ---- a run ---- */

/* A run that has ended publishes its last model with its calibration, in the end. */
static tn_status publish_what_is_owed(trainer *t, bool goes_on, tn_error *err)
{
    const tn_saver *s = &t->saver;
    const bool later = publishes_its_end(t) && !goes_on;
    return s->has_saved ? tn_publisher_owe(s->publisher, s->saved.ordinal - later, err) : TN_OK;
}

static tn_status run_epochs(trainer *t, tn_error *err)
{
    TN_TRY(tn_warn_first(t->plan, tn_text_str(&t->trained), t->report, &t->state, err));
    t->stop = tn_early_stopping_is_over(&t->run->train, &t->state.patience) ||
              t->worker->steps >= t->run->train.max_steps;
    const bool goes_on =
        t->worker->steps > 0 && (has_days(t) || t->state.progress.epoch < last_epoch(t));
    if (!t->stop && goes_on && is_full(t)) {
        return stop_full(t, err);
    }
    TN_TRY(publish_what_is_owed(t, !t->stop && goes_on, err));
    if (!t->stop && (goes_on || t->worker->steps == 0)) {
        TN_TRY(tn_evaluate_look(t->run, err));
    }
    if (has_days(t)) {
        TN_TRY(run_days(t, err));
        return wind_up(t, err);
    }
    while ((!t->stop || t->state.eval_owed) && t->state.progress.epoch < t->run->train.epochs) {
        TN_TRY(run_epoch(t, err));
    }
    return wind_up(t, err);
}

/* Ends the report; the first failure is the one that is told. */
static tn_status end_report(trainer *t, tn_status status, tn_error *err)
{
    const tn_report_end end = {
        .status = status == TN_OK          ? "ok"
                  : status == TN_E_STOPPED ? "stopped"
                                           : "failed",
        .result = status,
        .message = status == TN_OK ? NULL : err->text,
        .state = &t->state,
        .trained = t->out,
        .met = &t->epoch.met,
        .epoch = t->epoch.number,
        .train = t->epoch.whole,
        .saved = t->saver.has_saved ? &t->saver.saved : NULL,
        .reassigned = tn_epoch_reassigned(&t->epoch),
    };
    tn_error second = {0};
    tn_status written = tn_report_finish(t->report, &end, &second);
    if (status == TN_OK && written != TN_OK) {
        *err = second;
        status = written;
    }
    return status;
}

/* Ends a run and its files. A failed one waits for the checkpoint that is being written: it is
 * good. */
static tn_status finish(trainer *t, tn_status status, tn_error *err)
{
    tn_error second = {0};
    tn_status ended = tn_saver_give_up(&t->saver, status == TN_OK ? err : &second);
    status = status != TN_OK ? status : ended;
    tn_publisher_close(t->saver.publisher);
    t->out->steps = t->worker != NULL ? t->worker->steps : 0;
    t->out->samples = t->state.samples;
    t->out->seconds = tn_clock_s() - t->timetable.begin;
    t->out->loss =
        t->epoch.whole != NULL ? tn_loss_value(&t->run->loss, t->epoch.whole) : (double)NAN;
    if (t->report != NULL) {
        status = end_report(t, status, err);
    }
    tn_profile_end(t->watch->profile, t->worker);
    tn_epoch_done(&t->epoch, status, status == TN_OK ? "" : err->text);
    tn_report_close(t->report);
    tn_checkpoints_close(t->saver.checkpoints);
    tn_calibrate_free(t->calibration.calibrate);
    tn_worker_free(t->worker);
    tn_epoch_position_done(&t->state.stand);
    tn_begun_done(&t->begun);
    if (status != TN_OK && status != TN_E_STOPPED) {
        tn_outcome_done(t->out);
    }
    return status;
}

tn_status tn_train(const tn_model_plan *plan, const tn_run_text *text, const tn_watch *watch,
                   const tn_binder *b, tn_outcome *out, tn_error *err)
{
    if (plan->run->cluster.rank > 0) {
        return tn_follower_run(plan, text, watch, b, out, err);
    }
    *out = (tn_outcome){0};
    tn_past past = {0};
    tn_text said = {0};
    trainer t = {
        .plan = plan,
        .run = plan->run,
        .watch = watch,
        .out = out,
        .saver = {.state = &t.state, .gather = gather, .arg = &t},
        .calibration = {.run = plan->run, .saver = &t.saver, .stopped = &t.epoch.is_stopped},
        .epoch = {.run = plan->run, .watch = watch, .state = &t.state},
        .evaluated = UINT64_MAX};
    tn_timetable_init(&t.timetable, t.run, tn_clock_s());
    t.saver.is_rare = !tn_timetable_saves(&t.timetable) && !has_days(&t);
    t.state.past = &past;
    t.state.monitor = tn_run_monitor(t.run);
    t.state.patience.lr_scale = 1;
    tn_status status = open_parts(&t, text, b, err);
    if (status == TN_OK) {
        status = begin_run(&t, text, &said, err);
    }
    if (status == TN_OK) {
        status = run_epochs(&t, err);
        /* Also where a signal ended the wait for a server, which knows of nothing to save. */
        status = status == TN_E_STOPPED ? tn_saver_stop(&t.saver, err) : status;
    }
    status = finish(&t, status, err);
    tn_text_done(&past.config);
    tn_text_done(&past.sources);
    tn_text_done(&said);
    tn_text_done(&t.trained);
    tn_text_done(&t.map);
    return status;
}
