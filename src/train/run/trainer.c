/* trainer.c - a whole run: begins or goes on, trains, and has its modules do all else. */
#include "train/run/trainer.h"

#include "base/core/clock.h"
#include "ps/optim/optim.h"
#include "train/config/run_loss.h"
#include "train/group/ranks.h"
#include "train/report/profile.h"
#include "train/run/day_loop.h"
#include "train/run/early_stopping.h"
#include "train/run/epoch_reader.h"
#include "train/run/module.h"
#include "train/run/saver.h"
#include "train/run/timetable.h"

#include <math.h>

typedef struct trainer {
    tn_run_now now;
    tn_run_state state;
    tn_epoch epoch;
    tn_saver saver;
    tn_timetable timetable;
} trainer;

/* ---- between two steps ---- */

static bool is_due(const trainer *t, uint64_t steps)
{
    return tn_timetable_is_due(&t->timetable, steps, tn_clock_s()) || tn_run_is_asked(&t->now) ||
           tn_run_pauses(&t->now, steps) || tn_modules_due(&t->now);
}

/* Evaluations, checkpoints and signals between two steps. */
static tn_status do_what_is_due(trainer *t, tn_error *err)
{
    tn_run_now *now = &t->now;
    const double at = tn_clock_s();
    const uint64_t steps = now->worker->steps;
    TN_TRY(tn_saver_note(&t->saver, err));
    now->due = (tn_run_due){
        .eval = tn_timetable_take(&t->timetable, TN_DUE_EVAL, steps, at),
        .save = tn_timetable_take(&t->timetable, TN_DUE_CKPT, steps, at),
        .delta = tn_timetable_take(&t->timetable, TN_DUE_DELTA, steps, at),
        .over = tn_timetable_is_over(&t->timetable, steps, at),
        .publish = tn_timetable_take(&t->timetable, TN_DUE_EXPORT, steps, at),
    };
    TN_TRY(tn_modules_at(now, TN_AT_MEETING, err));
    now->stops = now->stops || now->due.over;
    now->due = (tn_run_due){0};
    if (now->stops) {
        return TN_OK;
    }
    return tn_run_is_asked(now) ? TN_E_STOPPED : tn_modules_at(now, TN_AT_ROOM, err);
}

/* Does what is due while all ranks wait, then has them go on. */
static tn_status meet(trainer *t, tn_error *err)
{
    bool gave_back;
    TN_TRY(t->epoch.ops->give_back(&t->epoch, &gave_back, err));
    if (gave_back && !is_due(t, t->now.worker->steps)) {
        return TN_OK; /* they met for that only */
    }
    TN_TRY(t->epoch.ops->gather(&t->epoch, err));
    tn_status status = do_what_is_due(t, err);
    tn_timetable_look(&t->timetable, t->now.worker->steps);
    TN_TRY(status);
    return t->now.stops ? TN_OK : t->epoch.ops->start(&t->epoch, false, err);
}

/* ---- steps ---- */

static tn_status report_step(trainer *t, const tn_step_turn *turn, double begin, tn_error *err)
{
    const tn_run_now *now = &t->now;
    const tn_rule_opts *dense = now->run->train.optimizer.opts;
    const tn_epoch *e = &t->epoch;
    tn_ranks_sums others;
    e->ranks.ops->sums(e->ranks.self, &others);
    const double epoch_done = tn_epoch_share(e, &others);
    const double of_day = t->state.progress.epoch - t->state.kept.days.epoch + epoch_done;
    const double epochs =
        now->days != NULL ? tn_day_loop_share(now->days, now->run, of_day) : of_day;
    tn_report_step step = {
        .window = {.turn = turn,
                   .joint =
                       e->is_async && turn->step != NULL ? turn->step->batch->rows : turn->rows,
                   .lr = dense->lr * turn->factor,
                   .bytes_in = others.bytes_in,
                   .bytes_out = others.bytes_out},
        .state = &t->state,
        .took_s = e->is_alone ? turn->waited_s + turn->took_s + tn_clock_s() - begin : 0,
        .epoch_done = epoch_done,
        .done = tn_timetable_share(&t->timetable, t->state.steps, epochs, tn_clock_s()),
        .reader = tn_step_prefetch_reader(e->data),
    };
    tn_span_begin(now->worker->lane, TN_PHASE_REPORT);
    tn_status status = tn_report_step_done(now->report, &step, err);
    tn_span_end(now->worker->lane);
    return status;
}

static bool meets(void *arg, uint64_t steps)
{
    trainer *t = arg;
    const bool deals_anew = t->epoch.ops->hear(&t->epoch);
    return is_due(t, steps) || deals_anew;
}

static double factor(void *arg)
{
    const trainer *t = arg;
    return tn_learning_rate_factor(t->now.run, t->now.worker->steps, t->epoch.schedule_end) *
           t->state.kept.patience.lr_scale;
}

static tn_status note_turn(void *arg, const tn_step_turn *turn, tn_error *err)
{
    trainer *t = arg;
    const double begin = tn_clock_s();
    tn_epoch_note(&t->epoch, turn);
    if (turn->step != NULL) {
        tn_loss_curve_add(t->now.curve, turn->learned.loss);
    }
    if (turn->step != NULL || !t->epoch.is_async) { /* else it had no data, and did nothing */
        tn_saver_set_unsaved(&t->saver);
        TN_TRY(report_step(t, turn, begin, err));
    }
    return turn->meets ? TN_OK : tn_saver_note(&t->saver, err);
}

static tn_status end_steps(trainer *t, tn_error *err)
{
    TN_TRY(t->epoch.ops->finish(&t->epoch, err));
    if (t->epoch.is_async && t->state.steps != t->now.worker->steps) {
        tn_saver_set_unsaved(&t->saver); /* others have learned after this rank's last step */
        t->state.steps = t->now.worker->steps;
    }
    return TN_END;
}

static tn_status take_steps(trainer *t, tn_error *err)
{
    const tn_step_hooks hooks = {meets, factor, note_turn, t};
    while (!t->now.stops) {
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
    if (t->now.run->embedding.reset == TN_RESET_EPOCH && t->epoch.is_whole &&
        t->state.progress.epoch > 0) {
        TN_TRY(tn_saver_end(&t->saver, err));
        tn_table_clear(t->now.worker->shard.table);
    }
    return TN_OK;
}

static tn_status learn_steps(trainer *t, tn_error *err)
{
    const atomic_bool *stop = t->epoch.is_alone ? t->now.watch->stop : NULL;
    TN_TRY(tn_step_prefetch_watch(t->epoch.data, stop, err));
    TN_TRY(tn_modules_at(&t->now, TN_AT_STEPS, err));
    TN_TRY(reset_rows(t, err));
    TN_TRY(tn_epoch_begin_steps(&t->epoch, err));
    return take_steps(t, err);
}

/* TN_END: the epoch is over; TN_OK: the run is. A signal may have cut the reader short. */
static tn_status all_steps(trainer *t, tn_error *err)
{
    const tn_status status = learn_steps(t, err);
    const bool cut = status == TN_E_STOPPED || (status == TN_END && tn_run_is_asked(&t->now));
    return cut ? tn_modules_at(&t->now, TN_AT_SIGNAL, err) : status;
}

/* ---- an epoch ---- */

/* Sets what is due after `epochs` epochs. */
static void set_due(trainer *t, uint32_t epochs, uint64_t samples_before)
{
    tn_run_now *now = &t->now;
    const tn_timetable *table = &t->timetable;
    const bool last = tn_run_is_last(now);
    const bool exports = tn_timetable_is_due_after(table, TN_DUE_EXPORT, epochs);
    const bool days = tn_run_exports_days(now->run);
    const bool save = tn_timetable_saves_after(table, epochs, samples_before, t->state.samples);
    now->due = (tn_run_due){.eval = tn_timetable_is_due_after(table, TN_DUE_EVAL, epochs) || last,
                            .save = save,
                            .delta = tn_timetable_is_due_after(table, TN_DUE_DELTA, epochs),
                            .may_rest = !save && tn_timetable_is_patient(table),
                            .publish = last ? tn_run_has_days(now) && (exports || days) : exports};
}

static tn_status after_epoch(trainer *t, tn_error *err)
{
    tn_epoch_end end;
    TN_ASSERT(t->epoch.data == NULL && !t->now.due.publish);
    const tn_learned_days days = t->state.kept.days;
    TN_TRY(tn_epoch_finish(&t->epoch, &end, err));
    set_due(t, t->state.progress.epoch, end.samples_before);
    const tn_status status = tn_modules_at(&t->now, TN_AT_EPOCH, err);
    t->now.due = (tn_run_due){.publish = t->now.due.publish && status == TN_OK};
    if (status == TN_E_STOPPED) {
        tn_epoch_return(&t->epoch, &end); /* so that a resumed run comes here again */
        t->state.kept.days = days;
    }
    return status;
}

static tn_status open_epoch(trainer *t, tn_error *err)
{
    const bool first = !t->epoch.is_begun;
    TN_TRY(tn_epoch_open(&t->epoch, t->now.report, err));
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

/* ---- a run ---- */

/* Learns the data at hand: their epochs, and of a day also the rest of one that train.epochs leaves
 * out by now. */
static tn_status learn_data(trainer *t, tn_error *err)
{
    const tn_run_now *now = &t->now;
    while ((!now->stops || t->state.kept.eval_owed) &&
           (!tn_run_is_last(now) || (now->days != NULL && t->state.stand.n_parts > 0))) {
        TN_TRY(run_epoch(t, err));
    }
    return TN_OK;
}

/* Until no data are left, or the run is to end within some. */
static tn_status learn_all(trainer *t, tn_error *err)
{
    tn_run_now *now = &t->now;
    bool more = now->days == NULL || !now->stops;
    while (more) {
        const tn_status status = tn_modules_at(now, TN_AT_DATA, err);
        if (status == TN_END) {
            return TN_OK;
        }
        TN_TRY(status);
        TN_TRY(learn_data(t, err));
        more = now->days != NULL && tn_run_is_last(now);
        TN_TRY(more ? tn_modules_at(now, TN_AT_DAY, err) : TN_OK);
    }
    return TN_OK;
}

static tn_status run(trainer *t, tn_error *err)
{
    tn_run_now *now = &t->now;
    now->stops = tn_early_stopping_is_over(&now->run->train, &t->state.kept.patience) ||
                 now->worker->steps >= now->run->train.max_steps;
    TN_TRY(tn_modules_at(now, TN_AT_BEGIN, err));
    if (!now->stops && (tn_run_goes_on(now) || now->worker->steps == 0)) {
        TN_TRY(tn_evaluate_look(now->run, err));
    }
    if (!now->stops && tn_run_pauses(now, now->worker->steps)) {
        return TN_E_STOPPED; /* without another step */
    }
    TN_TRY(learn_all(t, err));
    now->learned = now->worker->steps;
    TN_TRY(tn_saver_end(&t->saver, err));
    TN_TRY(tn_modules_at(now, TN_AT_END, err));
    return tn_run_is_asked(now) ? TN_E_STOPPED : tn_modules_at(now, TN_AT_KEPT, err);
}

/* ---- the beginning of a run ---- */

static tn_status open_parts(trainer *t, const tn_binder *b, tn_error *err)
{
    tn_run_now *now = &t->now;
    TN_TRY(tn_worker_new(&now->worker, now->plan, &(tn_worker_opts){.training = true}, b, err));
    TN_TRY(tn_epoch_init(&t->epoch, now->worker, err));
    tn_profile_begin(now->watch->profile, now->worker);
    TN_TRY(tn_modules_new(now, err));
    TN_TRY(tn_modules_at(now, TN_AT_OPEN, err));
    TN_TRY(tn_saver_open(&t->saver, now, err));
    TN_TRY(tn_modules_at(now, TN_AT_LOOK, err));
    return tn_epoch_form(&t->epoch, now->text, t->saver.checkpoints, err);
}

static tn_status begin_run(trainer *t, tn_error *err)
{
    tn_run_now *now = &t->now;
    TN_TRY(tn_modules_at(now, TN_AT_LOAD, err));
    if (now->resumed != NULL) {
        tn_timetable_look(&t->timetable, t->state.steps);
    }
    tn_report_opts report = {
        .plan = now->plan,
        .text = now->text,
        .watch = now->watch,
        .worker = now->worker,
        .dir = tn_checkpoints_dir(t->saver.checkpoints),
        .ranks = t->epoch.is_alone ? NULL : &t->epoch.ranks,
        .run_id = tn_checkpoints_run_id(t->saver.checkpoints),
        .memory = now->memory,
        .begun = now->begun,
        .hear = tn_modules_hear,
        .arg = now,
    };
    TN_TRY(tn_report_open(&now->report, &report, err));
    now->worker->metrics[1] = tn_report_scores(now->report);
    return TN_OK;
}

/* ---- the end of a run ---- */

/* Ends the report, which has the first failure. */
static tn_status end_report(trainer *t, tn_status status, tn_error *err)
{
    const tn_report_end end = {
        .status = status == TN_OK          ? "ok"
                  : status == TN_E_STOPPED ? "stopped"
                                           : "failed",
        .result = status,
        .message = status == TN_OK ? NULL : err->text,
        .state = &t->state,
        .trained = t->now.out,
        .met = &t->epoch.met,
        .epoch = t->epoch.number,
        .train = t->epoch.whole,
        .saved = tn_saver_has_saved(&t->saver) ? &t->saver.saved : NULL,
        .reassigned = tn_epoch_reassigned(&t->epoch),
    };
    tn_error second = {0};
    tn_status written = tn_report_finish(t->now.report, &end, &second);
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
    tn_outcome *out = t->now.out;
    tn_worker *w = t->now.worker;
    tn_status ended = tn_saver_give_up(&t->saver, status == TN_OK ? err : &second);
    status = status != TN_OK ? status : ended;
    out->steps = w != NULL ? w->steps : 0;
    out->samples = t->state.samples;
    out->seconds = tn_clock_s() - t->timetable.begin;
    out->loss =
        t->epoch.whole != NULL ? tn_run_loss_value(t->now.run, t->epoch.whole) : (double)NAN;
    if (t->now.report != NULL) {
        status = end_report(t, status, err);
    }
    tn_modules_close(&t->now);
    tn_profile_end(t->now.watch->profile, w);
    tn_epoch_done(&t->epoch, status, status == TN_OK ? "" : err->text);
    tn_report_close(t->now.report);
    tn_checkpoints_close(t->saver.checkpoints);
    tn_worker_free(w);
    tn_epoch_position_done(&t->state.stand);
    if (status != TN_OK && status != TN_E_STOPPED) {
        tn_outcome_done(out);
    }
    return status;
}

tn_status tn_train(const tn_model_plan *plan, const tn_run_text *text, const tn_watch *watch,
                   const tn_binder *b, tn_outcome *out, tn_error *err)
{
    if (plan->run->cluster.rank > 0) {
        return tn_group_built()->follow(plan, text, watch, b, out, err);
    }
    *out = (tn_outcome){0};
    tn_past past = {0};
    trainer t = {.now = {.plan = plan,
                         .run = plan->run,
                         .text = text,
                         .watch = watch,
                         .state = &t.state,
                         .epoch = &t.epoch,
                         .saver = &t.saver,
                         .timetable = &t.timetable,
                         .out = out},
                 .epoch = {.run = plan->run, .watch = watch, .state = &t.state}};
    tn_timetable_init(&t.timetable, plan->run, tn_clock_s());
    t.state.past = &past;
    t.state.kept.patience.monitor = tn_run_monitor(plan->run);
    t.state.kept.patience.lr_scale = 1;
    tn_status status = open_parts(&t, b, err);
    if (status == TN_OK) {
        status = begin_run(&t, err);
    }
    if (status == TN_OK) {
        status = run(&t, err);
        /* Also where a signal ended the wait for a server, which knows of nothing to save. */
        status = status == TN_E_STOPPED ? tn_modules_at(&t.now, TN_AT_SIGNAL, err) : status;
    }
    status = finish(&t, status, err);
    tn_text_done(&past.config);
    tn_text_done(&past.sources);
    return status;
}
