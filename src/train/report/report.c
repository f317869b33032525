/* report.c - the bar, log lines and records of a run while it goes on, and its summary. */
#include "train/report/report.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/file/file.h"
#include "base/thread/threads.h"
#include "nn/graph/params.h"
#include "nn/loss/loss.h"
#include "train/begin/begun.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/run_state.h"
#include "train/config/days.h"
#include "train/config/run.h"
#include "train/config/run_loss.h"
#include "train/config/run_tasks.h"
#include "train/report/eval_result.h"
#include "train/report/metrics_jsonl.h"
#include "train/report/progress.h"
#include "train/report/run_counts.h"
#include "train/report/step_forecast.h"
#include "train/step/frozen.h"
#include "train/step/host.h"
#include "train/step/memory_cap.h"
#include "train/step/model_plan.h"
#include "train/step/row_sweep.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct tn_report {
    tn_report_opts opts;
    const tn_run *run;
    tn_journal journal;
    tn_window_totals window;
    tn_bar bar;
    tn_text warnings; /* shown so far, each ended by NUL */
    uint32_t n_warnings;
    bool told_diverging, told_no_pairs, told_aged;
    double started_wall, begin;
    double told_saved; /* when a save was reported; before the first: `begin` */
    double passed_on;  /* when the watch got how far the run is; 0: never */
    tn_paced paced;
    uint64_t rows, steps; /* made by this process, or by all together */
    char blas[TN_HOST_BLAS_SIZE];
};

void tn_outcome_done(tn_outcome *t)
{
    tn_evaluation_done(&t->valid);
    tn_evaluation_done(&t->test);
    *t = (tn_outcome){0};
}

/* Rows of the tables of all ranks, and, unless NULL, what they have read of that epoch. */
static tn_held held_by_all(const tn_report *r, uint64_t epoch, tn_met *met)
{
    tn_held held = tn_held_of(r->opts.worker->shard.table);
    if (r->opts.ranks != NULL) {
        r->opts.ranks->ops->counts(r->opts.ranks->self, &held, epoch, met);
    }
    return held;
}

static tn_text *begin(tn_report *r, const char *kind, const tn_run_state *state)
{
    const tn_journal_at at = {
        .step = state->steps, .samples = state->samples, .epoch = state->progress.epoch};
    return tn_journal_begin(&r->journal, kind, &at);
}

static void show(const tn_report *r, const char *text)
{
    if (r->opts.watch->show != NULL) {
        r->opts.watch->show(r->opts.watch->arg, text, false);
    }
}

/* Each line of a text. */
static void show_lines(const tn_report *r, const tn_text *lines)
{
    const char *at = tn_text_str(lines);
    for (const char *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        tn_text line = {0};
        tn_text_add(&line, at, (size_t)(end - at));
        show(r, tn_text_str(&line));
        tn_text_done(&line);
    }
}

static bool wants_bar(const tn_report *r)
{
    return r->run->log.progress != TN_SWITCH_FALSE;
}

tn_status tn_report_open(tn_report **out, const tn_report_opts *opts, tn_error *err)
{
    TN_ASSERT(opts->plan != NULL && opts->watch != NULL && opts->worker != NULL &&
              opts->dir != NULL);
    *out = NULL;
    tn_report *r = NULL;
    TN_TRY(TN_ALLOC(r, 1, "a report", err));
    r->opts = *opts;
    r->run = opts->plan->run;
    r->journal = (tn_journal){.hear = opts->hear, .arg = opts->arg};
    r->started_wall = tn_wall_s();
    r->begin = tn_clock_s();
    r->told_saved = r->begin;
    r->paced.batch = r->run->train.batch;
    r->paced.batches = (double)r->run->data.shuffle / r->run->train.batch;
    r->paced.ahead = 2 * r->run->train.prefetch;
    tn_host_blas(&r->run->compute, r->blas);
    tn_bar_opts bar = {
        .show = wants_bar(r) ? opts->watch->show : NULL,
        .arg = opts->watch->arg,
        .terminal = opts->watch->terminal || r->run->log.progress == TN_SWITCH_TRUE,
        .width = opts->watch->width,
        .every = r->run->log.every,
    };
    tn_bar_init(&r->bar, &bar, NULL, r->begin);
    const tn_metrics_opts kinds = tn_metrics_opts_of(r->run);
    tn_status status = tn_window_totals_init(&r->window, &kinds, opts->ranks, r->begin, err);
    if (status != TN_OK) {
        tn_report_close(r);
        return status;
    }
    if (opts->begun != NULL) {
        show_lines(r, &opts->begun->table);
    }
    *out = r;
    return TN_OK;
}

void tn_report_close(tn_report *r)
{
    if (r == NULL) {
        return;
    }
    tn_bar_done(&r->bar);
    tn_window_totals_done(&r->window);
    tn_text_done(&r->warnings);
    tn_journal_close(&r->journal);
    tn_free(r);
}

/* ---- steps ---- */

#define DIVERGING_NE 2.0     /* a batch norm that has just begun may say more than 1 */
#define DIVERGING_STEPS 100u /* before that many all losses are those of a beginning */

/* Warns once, as soon as predictions are far worse than the click rate alone. */
static tn_status tell_diverging(tn_report *r, const tn_run_state *state, const char *data,
                                const tn_metrics *m, tn_error *err)
{
    const double ne = tn_metrics_get(m, "ne");
    const tn_metrics *trained = r->opts.worker->metrics[0];
    if (!(ne > DIVERGING_NE) || r->told_diverging || r->opts.plan->run->data.ordered ||
        (trained != NULL &&
         (tn_metrics_one_class(trained) != NULL || tn_metrics_get(trained, "ne") < 1))) {
        return TN_OK; /* training's own loss is good where rows are known by heart */
    }
    r->told_diverging = true;
    char line[256];
    (void)snprintf(line, sizeof line,
                   "%s loss %.4g at step %llu is %.3g times that of the click rate alone: the run "
                   "diverges; try smaller learning rates (train.optimizer.lr, train.sparse.lr)",
                   data, tn_metrics_get(m, "logloss"), (unsigned long long)state->steps, ne);
    return tn_report_event(r, state, "warn", line, err);
}

bool tn_report_told_diverging(const tn_report *r)
{
    return r->told_diverging;
}

/* Warns once that a loss of pairs met none. */
static tn_status tell_no_pairs(tn_report *r, const tn_run_state *state, tn_error *err)
{
    const bool none = r->run->data.target == TN_TARGET_ORDER && r->window.steps > 0 &&
                      tn_window_totals_loss(&r->window) == 0;
    if (!none || r->told_no_pairs) {
        return TN_OK;
    }
    r->told_no_pairs = true;
    char line[256];
    (void)snprintf(line, sizeof line,
                   "no batch holds two rows of one data.group with unequal labels, so nothing is "
                   "learned: rows of a group must stand together in data.train, and data.shuffle, "
                   "which is %u, parts them",
                   r->run->data.shuffle);
    return tn_report_event(r, state, "warn", line, err);
}

static tn_status flush_window(tn_report *r, const tn_run_state *state, const tn_read_counts *counts,
                              tn_error *err)
{
    double now = tn_clock_s();
    tn_status status = tn_window_totals_hear(&r->window, err);
    if (status == TN_OK && r->window.steps > 0) {
        tn_text *t = begin(r, "train", state);
        tn_window_totals_record(&r->window, now, r->run->run.deterministic, t);
        tn_json_u64(t, "bad_records", counts->bad + r->window.others.bad);
        status = tn_journal_end(&r->journal, err);
    }
    if (status == TN_OK && state->steps >= r->window.steps + DIVERGING_STEPS) {
        status = tell_diverging(r, state, "train", tn_window_totals_metrics(&r->window), err);
    }
    status = status == TN_OK ? tell_no_pairs(r, state, err) : status;
    tn_window_totals_clear(&r->window, now);
    return status;
}

static tn_status draw(tn_report *r, const tn_report_step *s, double now, tn_error *err)
{
    TN_TRY(tn_window_totals_hear(&r->window, err));
    tn_bar_state state = {
        .epoch = s->state->progress.epoch - s->state->kept.days.epoch + 1,
        .epochs = r->run->train.epochs,
        .step = s->state->steps,
        .epoch_done = s->epoch_done,
        .run_done = s->done,
        .may_end_early = r->run->train.stop.monitor != NULL,
        .rows = r->rows + r->window.others.rows,
        .loss = tn_window_totals_loss(&r->window),
        .auc = tn_metrics_get(tn_window_totals_metrics(&r->window), "auc"),
    };
    tn_bar_draw(&r->bar, &state, now);
    return TN_OK;
}

/* Passes on to the watch how far the run is, ten times a second. */
static void pass_progress_on(tn_report *r, const tn_report_step *s, double now)
{
    const tn_watch *watch = r->opts.watch;
    TN_ASSERT(s->state != NULL);
    if (watch->progress == NULL || now - r->passed_on < .1) {
        return;
    }
    const tn_watch_progress progress = {
        .steps = s->state->steps,
        .samples = s->state->samples,
        .epochs = s->state->progress.epoch + s->epoch_done,
        .done = s->done,
        .loss = r->window.steps > 0 ? tn_window_totals_loss(&r->window) : (double)NAN,
        .seconds = now - r->begin,
    };
    r->passed_on = now;
    watch->progress(watch->arg, &progress);
}

tn_metrics *tn_report_scores(tn_report *r)
{
    return r->window.metrics;
}

tn_status tn_report_step_done(tn_report *r, const tn_report_step *s, tn_error *err)
{
    const tn_window_step *step = &s->window;
    TN_ASSERT(s->state != NULL && step->turn != NULL);
    double now = tn_clock_s();
    if (r->steps == 0) {
        tn_bar_begin(&r->bar, now - step->turn->took_s);
    }
    r->rows += step->joint;
    r->steps++;
    tn_window_totals_add(&r->window, step);
    if (s->took_s > 0) {
        tn_paced_step(&r->paced, step->turn->waited_s, s->took_s);
    }
    if (tn_bar_due(&r->bar, now)) {
        TN_TRY(draw(r, s, now, err));
    }
    pass_progress_on(r, s, now);
    if (now - r->window.begin >= r->run->log.every) {
        tn_read_counts counts;
        tn_reader_counts(s->reader, &counts);
        return flush_window(r, s->state, &counts, err);
    }
    return TN_OK;
}

/* ---- between steps ---- */

/* Appends the metrics of a task that judge it. */
static void put_metrics(const tn_report *r, const tn_report_eval *e, uint32_t k, tn_text *line)
{
    const tn_strs names = tn_task_metric_names(r->run, k);
    const tn_metrics *m = tn_evaluation_task(e->result, k);
    for (uint32_t i = 0; i < names.n && m != NULL; i++) {
        const char *name = names.item[i];
        double value = tn_metrics_get(m, name);
        if (!tn_metric_fits(name, tn_metrics_target(m))) {
            continue;
        }
        if (isnan(value)) {
            tn_text_addf(line, "  %s n/a", name);
        } else {
            tn_text_addf(line, "  %s %.5f", name, value);
        }
    }
}

/* A line for each further task. */
static void show_tasks(const tn_report *r, const tn_report_eval *e)
{
    const tn_tasks *tasks = tn_run_tasks_of(r->run);
    for (uint32_t k = 1; k < tasks->n; k++) {
        tn_text line = {0};
        tn_text_addf(&line, "%s.%s:", e->data, tasks->task[k].name);
        put_metrics(r, e, k, &line);
        show(r, tn_text_str(&line));
        tn_text_done(&line);
    }
}

static void show_eval(const tn_report *r, const tn_report_eval *e)
{
    tn_text line = {0};
    tn_text_addf(&line, "%s after step %llu:", e->data, (unsigned long long)e->step);
    put_metrics(r, e, 0, &line);
    tn_text_addf(&line, "  (%llu rows, %.1f s)%s",
                 (unsigned long long)tn_metrics_rows(e->result->metrics), e->result->seconds,
                 e->best ? "  best so far" : "");
    tn_text_adds(&line, e->result->calibrated_by != NULL ? "  " : "");
    tn_eval_result_calibrated(e->result, &line);
    show(r, tn_text_str(&line));
    tn_text_done(&line);
    show_tasks(r, e);
}

tn_status tn_report_eval_done(tn_report *r, const tn_report_eval *e, tn_error *err)
{
    show_eval(r, e);
    const tn_eval_result f = {.data = e->data, .run = r->run, .result = e->result};
    TN_TRY(tn_eval_result_members(&f, e->best, begin(r, "eval", e->state), err));
    r->journal.record.data = e->data;
    r->journal.record.metrics = e->result->metrics;
    TN_TRY(tn_journal_end(&r->journal, err));
    return e->state->steps >= DIVERGING_STEPS
               ? tell_diverging(r, e->state, e->data, e->result->metrics, err)
               : TN_OK;
}

/* "; valid loss 0.4957, auc 0.7387", of numbers "; valid rmse 1.031"; what is not known is left
 * out.
 */
static void put_scores(const tn_report *r, tn_text *out, const char *whose, const tn_metrics *m)
{
    const bool clicks = tn_metrics_target(m) == TN_TARGET_CLICK;
    const char *name = tn_loss_of(&r->run->loss)->watched + strlen("valid.");
    const double value = tn_metrics_get(m, name);
    const double auc = strcmp(name, "auc") != 0 ? tn_metrics_get(m, "auc") : (double)NAN;
    if (isnan(value)) {
        return;
    }
    tn_text_addf(out, "; %s %s %.4f", whose, clicks ? "loss" : name, value);
    if (!isnan(auc)) {
        tn_text_addf(out, ", auc %.4f", auc);
    }
}

tn_status tn_report_day_done(tn_report *r, const tn_report_day *d, tn_error *err)
{
    const uint64_t rows = d->state->samples - d->state->kept.days.samples;
    const double loss = tn_run_loss_value(r->run, d->train);
    const double auc = tn_metrics_get(d->train, "auc");
    const char *saved = d->saved != NULL ? d->saved->name : NULL;
    tn_text line = {0};
    tn_text_addf(&line, "%s %s is learned: %llu rows", strchr(d->day, 'T') != NULL ? "hour" : "day",
                 d->day, (unsigned long long)rows);
    put_scores(r, &line, "progressive", d->train);
    tn_text_addf(&line, "; %s%s", saved != NULL ? "saved as " : "not saved",
                 saved != NULL ? saved : "");
    show(r, tn_text_str(&line));
    tn_text_done(&line);
    tn_text *t = begin(r, "day", d->state);
    tn_json_str(t, "day", d->day);
    tn_json_u64(t, "epochs", d->epochs);
    tn_json_u64(t, "rows", rows);
    tn_journal_loss(t, loss, r->run->run.deterministic);
    tn_json_f64(t, "auc", auc);
    tn_json_str(t, "checkpoint", saved);
    return tn_journal_end(&r->journal, err);
}

static tn_status write_table(tn_report *r, const tn_run_state *state, tn_error *err)
{
    const tn_held held = held_by_all(r, 0, NULL);
    tn_text *t = begin(r, "table", state);
    tn_json_u64(t, "created", held.created);
    tn_json_u64(t, "admitted", held.admitted);
    tn_json_u64(t, "expired", held.expired);
    tn_json_u64(t, "evicted", held.evicted);
    tn_json_u64(t, "rows", held.rows);
    tn_json_u64(t, "bytes", held.bytes);
    return tn_journal_end(&r->journal, err);
}

static void add_rows(const tn_group_rows *rows, tn_text *t)
{
    tn_json_u64(t, "rows", rows->rows);
    tn_json_u64(t, "waiting", rows->waiting);
    tn_json_u64(t, "bytes", rows->bytes);
    tn_json_u64(t, "nonzero_weights", rows->nonzero);
    tn_json_u64(t, "admitted", rows->admitted);
    tn_json_u64(t, "expired", rows->expired);
    tn_json_u64(t, "evicted", rows->evicted);
}

static void add_groups(const tn_layout *layout, const tn_group_rows *groups, tn_text *t)
{
    tn_json_open_key(t, "slots", '{');
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        tn_json_open_key(t, layout->group[g].name, '{');
        add_rows(&groups[g], t);
        tn_json_close(t, '}');
    }
    tn_json_close(t, '}');
}

/* Once: it goes on at every sweep. */
static tn_status tell_aged(tn_report *r, const tn_report_sweep *swept, tn_error *err)
{
    if (swept->aged == 0 || r->told_aged) {
        return TN_OK;
    }
    r->told_aged = true;
    return tn_report_event(r, swept->state, "warn",
                           "the filter of admission holds more keys than it was made for, so "
                           "counts of keys that wait are halved: keys that come seldom are "
                           "forgotten; a larger 'keys' of admission.filter remembers them",
                           err);
}

tn_status tn_report_swept(tn_report *r, const tn_report_sweep *swept, tn_error *err)
{
    const tn_layout *layout = r->opts.plan->layout;
    tn_group_rows all = {0};
    bool waits = false;
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        waits = waits || tn_record_of(layout, g)->waits != 0;
        tn_group_rows_sum(&all, &swept->groups[g]);
    }
    if (all.expired + all.evicted > 0) {
        tn_log(TN_LOG_INFO, "rows that left: %llu expired, %llu for want of room; %llu stay",
               (unsigned long long)all.expired, (unsigned long long)all.evicted,
               (unsigned long long)all.rows);
    }
    if (waits) {
        tn_log(TN_LOG_INFO, "keys admitted: %llu; rows that wait: %llu of %llu",
               (unsigned long long)all.admitted, (unsigned long long)all.waiting,
               (unsigned long long)all.rows);
    }
    tn_text *t = begin(r, "sweep", swept->state);
    tn_json_u64(t, "day", swept->day);
    add_rows(&all, t);
    tn_json_f64(t, "seconds", swept->seconds);
    add_groups(layout, swept->groups, t);
    TN_TRY(tn_journal_end(&r->journal, err));
    return tell_aged(r, swept, err);
}

/* Passes of seconds, each of which is saved, would fill the screen. */
#define SAVES_APART_S 60.0

tn_status tn_report_saved(tn_report *r, const tn_saved *saved, const tn_run_state *state,
                          bool asked, tn_error *err)
{
    const double now = tn_clock_s();
    const bool tell = asked || now - r->told_saved >= SAVES_APART_S;
    r->told_saved = tell ? now : r->told_saved;
    tn_log(tell ? TN_LOG_INFO : TN_LOG_DEBUG, "saved %s/%s: %llu rows, %.1f MB in %.2f s",
           r->opts.dir, saved->name, (unsigned long long)saved->written, (double)saved->bytes / 1e6,
           saved->seconds);
    const tn_journal_at at = {
        .step = saved->step, .samples = saved->samples, .epoch = saved->epoch};
    tn_text *t = tn_journal_begin(&r->journal, "ckpt", &at);
    tn_json_str(t, "name", saved->name);
    tn_json_bool(t, "delta", saved->deltas > 0);
    tn_json_u64(t, "bytes", saved->bytes);
    tn_json_u64(t, "rows", saved->written);
    tn_json_f64(t, "seconds", saved->seconds);
    tn_json_f64(t, "stall_ms", 1e3 * saved->stall);
    TN_TRY(tn_journal_end(&r->journal, err));
    return write_table(r, state, err);
}

tn_status tn_report_event(tn_report *r, const tn_run_state *state, const char *level,
                          const char *text, tn_error *err)
{
    if (strcmp(level, "warn") == 0) {
        tn_log(TN_LOG_WARN, "%s", text);
        tn_text_add(&r->warnings, text, strlen(text) + 1);
        r->n_warnings += !r->warnings.failed; /* counts the warnings that are kept */
    } else {
        show(r, text);
    }
    tn_text *t = begin(r, "event", state);
    tn_json_str(t, "level", level);
    tn_json_str(t, "text", text);
    return tn_journal_end(&r->journal, err);
}

/* ---- the closing lines ---- */

static uint64_t trained_rows(const tn_report *r)
{
    return r->rows + r->window.others.rows;
}

/* Mean over all steps. */
static double step_ms(const tn_report *r)
{
    return r->paced.n > 0 ? r->paced.seconds / (double)r->paced.n * 1e3 : (double)NAN;
}

/* The last lines of a run that ended well: rows, time and scores, then the folder. */
static void closing_lines(const tn_report *r, const tn_report_end *end, tn_text *out)
{
    const tn_outcome *t = end->trained;
    const uint64_t rows = trained_rows(r);
    tn_text_addf(out, "trained %llu rows in ", (unsigned long long)rows);
    if (t->seconds < 60) {
        tn_text_addf(out, "%.1f s", t->seconds);
    } else {
        tn_put_duration(out, t->seconds);
    }
    if (t->seconds > 0) {
        tn_text_adds(out, ", ");
        tn_put_count(out, (double)rows / t->seconds);
        tn_text_adds(out, " rows/s");
    }
    if (t->valid.metrics != NULL) {
        put_scores(r, out, "valid", t->valid.metrics);
    } else if (end->train != NULL) {
        put_scores(r, out, "progressive", end->train);
        tn_text_adds(out, end->epoch > end->state->kept.days.epoch
                              ? "\n  on rows known from earlier epochs: only data.valid shows how "
                                "others fare"
                              : "\n  each row was scored before it was learned");
    }
    tn_text_addf(out, "\nall in %s\n", r->opts.dir);
}

/* ---- summary.json: how a run ended, for programs (docs/formats.md section 9) ----
 *
 * Replaced as a whole. Missing parts (no test data, no best) and what is not finite are null.
 */

/* Adds what all ranks have read. */
static void add_data(const tn_met *met, uint64_t reassigned, tn_text *t)
{
    tn_json_open_key(t, "data", '{');
    tn_json_u64(t, "sources", met->counts.sources);
    tn_json_count(t, "bytes", met->counts.bytes);
    tn_json_count(t, "records", met->counts.records);
    tn_json_u64(t, "blank", met->counts.blank);
    tn_json_open_key(t, "bad", '{');
    tn_json_u64(t, "total", met->counts.bad);
    tn_json_open_key(t, "by_reason", '{');
    const char *reason = NULL;
    const char *count = NULL;
    for (size_t at = 0; tn_met_reason(met, &at, &reason, &count);) {
        tn_json_raw(t, reason, count);
    }
    tn_json_close(t, '}');
    tn_json_close(t, '}');
    tn_json_u64(t, "duplicate_key", met->counts.duplicate_key);
    tn_json_u64(t, "parts_reassigned", reassigned);
    tn_json_close(t, '}');
}

static void add_metrics(const tn_report *r, const char *key, const tn_evaluation *e, tn_text *t)
{
    const tn_metrics *m = e->metrics;
    const tn_strs usual = {3, (const char *const[]){"auc", "logloss", "copc"}};
    if (m == NULL) {
        tn_json_str(t, key, NULL);
        return;
    }
    tn_json_open_key(t, key, '{');
    tn_json_count(t, "rows", tn_metrics_rows(m));
    tn_journal_metrics(t, m, &usual, &r->run->eval.metrics);
    tn_eval_result_calibrated_json(e, t);
    tn_eval_result_tasks_json(r->run, e, t);
    tn_json_close(t, '}');
}

/* Adds what checkpoint.from gave; null in a run that began otherwise, or goes on. */
static void add_begun(const tn_begun *b, tn_text *t)
{
    if (b == NULL || b->table.size == 0) {
        tn_json_str(t, "begun", NULL);
        return;
    }
    tn_json_open_key(t, "begun", '{');
    tn_json_str(t, "from", tn_text_str(&b->from));
    tn_json_open_key(t, "items", '[');
    tn_json_raw(t, NULL, tn_text_str(&b->json));
    tn_json_close(t, ']');
    tn_json_close(t, '}');
}

static void add_results(const tn_report *r, const tn_report_end *end, tn_text *t)
{
    const tn_early_stopping_state *best = &end->state->kept.patience;
    const double loss = end->train != NULL ? tn_run_loss_value(r->run, end->train) : (double)NAN;
    tn_json_open_key(t, "train", '{');
    tn_json_f64(t, "loss", loss);
    tn_json_close(t, '}');
    add_metrics(r, "valid", &end->trained->valid, t);
    add_metrics(r, "test", &end->trained->test, t);
    if (!best->seen) {
        tn_json_str(t, "best", NULL);
        return;
    }
    tn_json_open_key(t, "best", '{');
    tn_json_str(t, "name", end->state->kept.patience.monitor);
    tn_json_f64(t, "value", best->best);
    tn_json_u64(t, "step", best->step);
    tn_json_close(t, '}');
}

/* Adds the parameters that train.freeze names, where it names some. */
static void add_frozen(const tn_strs *freeze, const tn_params *params, tn_text *t)
{
    if (freeze->n == 0) {
        return;
    }
    tn_json_open_key(t, "frozen", '[');
    for (uint32_t i = 0; i < tn_params_count(params); i++) {
        const tn_param_slice *s = tn_params_get(params, i);
        if (tn_frozen_has(freeze, s)) {
            tn_json_str(t, NULL, s->name);
        }
    }
    tn_json_close(t, ']');
}

static void add_model(const tn_report *r, const tn_held *held, tn_text *t)
{
    const tn_worker *w = r->opts.worker;
    const uint64_t bytes_max = tn_table_limit(w->shard.table);
    tn_json_open_key(t, "model", '{');
    tn_json_u64(t, "dense_params", tn_params_trained(w->params));
    add_frozen(&r->run->train.freeze, w->params, t);
    tn_json_count(t, "sparse_rows", held->rows);
    tn_json_count(t, "sparse_bytes", held->bytes);
    if (tn_rows_come_and_go(r->opts.plan)) {
        tn_json_count(t, "admitted", held->admitted);
        tn_json_count(t, "expired", held->expired);
        tn_json_count(t, "evicted", held->evicted);
    }
    if (bytes_max > 0) {
        tn_text memory = {0};
        tn_memory_cap_text(r->opts.memory, &memory);
        tn_json_count(t, "sparse_bytes_max", bytes_max);
        tn_json_str(t, "memory", tn_text_str(&memory));
        tn_text_done(&memory);
    }
    tn_json_close(t, '}');
}

/* The checkpoint and the machine, and what was warned of. */
static void add_rest(const tn_report *r, const tn_saved *saved, tn_text *t)
{
    if (saved == NULL) {
        tn_json_str(t, "checkpoint", NULL);
    } else {
        char crc[9];
        (void)snprintf(crc, sizeof crc, "%08x", saved->crc);
        tn_json_open_key(t, "checkpoint", '{');
        tn_json_str(t, "name", saved->name);
        tn_json_str(t, "crc32c", crc);
        tn_json_close(t, '}');
    }
    tn_json_open_key(t, "host", '{');
    tn_json_str(t, "cpu", tn_host_cpu());
    tn_json_u64(t, "cores", tn_cpu_count());
    tn_json_str(t, "blas", r->blas);
    tn_json_count(t, "peak_rss_bytes", tn_host_peak_rss());
    tn_json_close(t, '}');
    tn_json_open_key(t, "warnings", '[');
    const char *at = tn_text_str(&r->warnings);
    for (uint32_t i = 0; i < r->n_warnings; i++) {
        tn_json_str(t, NULL, at);
        at += strlen(at) + 1;
    }
    tn_json_close(t, ']');
}

/* The last day that a run over days has learned; null: none yet. */
static void add_day(const tn_learned_days *days, tn_text *t)
{
    if (days->used && days->n > 0) {
        char day[TN_DAY_TEXT];
        tn_day_text(days->range[days->n - 1].last, day);
        tn_json_str(t, "day", day);
    } else if (days->used) {
        tn_json_str(t, "day", NULL);
    }
}

static void summary_text(const tn_report *r, const tn_report_end *end, tn_text *t)
{
    const double seconds = end->trained->seconds;
    tn_met met = {0};
    tn_met_add(&met, end->met);
    const tn_held held = held_by_all(r, end->epoch, &met);
    tn_json_open(t, '{');
    tn_json_str(t, "format", "tnet-summary");
    tn_json_raw(t, "version", "[1,0]");
    tn_json_str(t, "status", end->status);
    tn_json_u64(t, "exit_code", (uint64_t)tn_exit_code(end->result));
    if (end->message != NULL) {
        tn_json_str(t, "error", end->message);
    }
    tn_json_hex64(t, "run_id", r->opts.run_id);
    tn_json_str(t, "tnet", TN_VERSION);
    tn_json_str(t, "config_hash", r->opts.text->hash);
    tn_json_f64(t, "started", r->started_wall);
    tn_json_f64(t, "seconds", seconds);
    tn_json_u64(t, "steps", end->trained->steps);
    tn_json_count(t, "samples", end->trained->samples);
    tn_json_u64(t, "epochs", end->state->progress.epoch);
    add_day(&end->state->kept.days, t);
    tn_json_f64(t, "rows_per_s", seconds > 0 ? (double)trained_rows(r) / seconds : 0);
    tn_json_open_key(t, "step_ms", '{');
    tn_json_f64(t, "predicted", r->paced.predicted > 0 ? r->paced.predicted * 1e3 : (double)NAN);
    tn_json_f64(t, "measured", step_ms(r));
    tn_json_close(t, '}');
    tn_json_u64(t, "peers", r->opts.plan->owners.n_peers);
    tn_json_count(t, "pulled_bytes", r->window.bytes_in);
    tn_json_count(t, "pushed_bytes", r->window.bytes_out);
    add_begun(r->opts.begun, t);
    add_data(&met, end->reassigned, t);
    add_results(r, end, t);
    add_model(r, &held, t);
    add_rest(r, end->saved, t);
    tn_json_close(t, '}');
    tn_text_addc(t, '\n');
    tn_met_done(&met);
}

static tn_status write_summary(const tn_report *r, const tn_report_end *end, tn_error *err)
{
    TN_ASSERT(end->status != NULL && end->met != NULL && end->state != NULL &&
              end->trained != NULL);
    char path[TN_PATH_SIZE];
    tn_text t = {0};
    TN_TRY(tn_path_join(r->opts.dir, "summary.json", path, err));
    summary_text(r, end, &t);
    tn_status status = tn_text_check(&t, "summary.json", err);
    if (status == TN_OK) {
        status = tn_file_replace(path, t.data, t.size, err);
    }
    tn_text_done(&t);
    return status;
}

/* ---- the end ---- */

/* The traffic of a group: bytes of rank 0's messages. */
static void show_bytes(const tn_report *r)
{
    const uint32_t n = r->opts.plan->owners.n_peers;
    if (n == 1 || r->steps == 0) {
        return;
    }
    tn_text line = {0};
    tn_text_addf(&line, "%u peers; rank 0 received ", n);
    tn_put_bytes(&line, (double)r->window.bytes_in);
    tn_text_adds(&line, " and sent ");
    tn_put_bytes(&line, (double)r->window.bytes_out);
    tn_text_adds(&line, ", ");
    tn_put_bytes(&line, (double)(r->window.bytes_in + r->window.bytes_out) / (double)r->steps);
    tn_text_adds(&line, " per step");
    show(r, tn_text_str(&line));
    tn_text_done(&line);
}

/* A run that had nothing to learn any more has said so. */
static void show_closing(const tn_report *r, const tn_report_end *end)
{
    if (end->result != TN_OK || r->rows + r->window.others.rows == 0) {
        return;
    }
    if (r->paced.predicted > 0) {
        tn_log(TN_LOG_DEBUG, "%.2f ms a step, %.2f were predicted", step_ms(r),
               r->paced.predicted * 1e3);
    }
    tn_text lines = {0};
    closing_lines(r, end, &lines);
    show_lines(r, &lines);
    tn_text_done(&lines);
}

tn_status tn_report_finish(tn_report *r, const tn_report_end *end, tn_error *err)
{
    tn_status status = flush_window(r, end->state, &end->met->counts, err);
    show_bytes(r);
    show_closing(r, end);
    if (status == TN_OK) {
        tn_text *t = begin(r, "end", end->state);
        tn_json_str(t, "status", end->status);
        tn_json_u64(t, "exit_code", (uint64_t)tn_exit_code(end->result));
        tn_json_f64(t, "seconds", end->trained->seconds);
        r->journal.record.well = end->result == TN_OK;
        status = tn_journal_end(&r->journal, err);
    }
    tn_error second = {0}; /* the first failure is the one that is reported */
    tn_status written = write_summary(r, end, status == TN_OK ? err : &second);
    return status != TN_OK ? status : written;
}
