/* report.c - the bar, log lines and records of a run while it goes on, and its summary. */
#include "train/report/report.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/machine/limits.h"
#include "base/thread/threads.h"
#include "nn/graph/params.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/run_state.h"
#include "train/config/run.h"
#include "train/report/forecast.h"
#include "train/report/metrics_jsonl.h"
#include "train/report/progress.h"
#include "train/report/summary.h"
#include "train/step/host.h"
#include "train/step/memory_cap.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct tn_report {
    tn_report_opts opts;
    const tn_run *run;
    tn_journal *journal; /* NULL: log.jsonl is off */
    tn_window_totals window;
    tn_bar bar;
    tn_text warnings; /* told so far, each ended by NUL */
    uint32_t n_warnings;
    double started_wall, begin;
    tn_paced paced;
    uint64_t rows, steps; /* of the steps of this process, or of all together */
    char blas[TN_HOST_BLAS_SIZE];
};

void tn_outcome_done(tn_outcome *t)
{
    tn_evaluation_done(&t->valid);
    tn_evaluation_done(&t->test);
    *t = (tn_outcome){0};
}

/* Rows of the tables of all ranks. */
static tn_held held_by_all(const tn_report *r)
{
    const tn_held own = tn_held_of(r->opts.worker->shard.table);
    const tn_held others = tn_peer_progress_held(r->opts.reported);
    return (tn_held){.created = own.created + others.created,
                     .rows = own.rows + others.rows,
                     .bytes = own.bytes + others.bytes};
}

static tn_journal_at where(const tn_run_state *state)
{
    return (tn_journal_at){
        .step = state->steps, .samples = state->samples, .epoch = state->progress.epoch};
}

static void show(const tn_report *r, const char *text)
{
    if (r->opts.watch->show != NULL) {
        r->opts.watch->show(r->opts.watch->arg, text, false);
    }
}

static bool wants_bar(const tn_report *r)
{
    const uint32_t never = 2;
    return r->run->log.progress != never;
}

static tn_status write_start(tn_report *r, tn_error *err)
{
    if (r->journal == NULL) {
        return TN_OK;
    }
    tn_journal_at at = {.step = r->opts.worker->steps};
    tn_journal_start_record record = {
        .version = TN_VERSION,
        .config_hash = r->opts.text->hash,
        .resumed_from = r->opts.resumed != NULL ? r->opts.resumed->name : NULL,
        .cpu = tn_host_cpu(),
        .run_id = r->opts.run_id,
        .seed = r->run->run.seed,
        .peers = r->opts.plan->owners.n_peers,
        .threads = tn_run_threads(r->run),
    };
    return tn_journal_start(r->journal, &at, &record, err);
}

static tn_status open_journal(tn_report *r, tn_error *err)
{
    if (!r->run->log.jsonl) {
        return TN_OK;
    }
    tn_text path = {0};
    tn_text_addf(&path, "%s/metrics.jsonl", r->opts.dir);
    tn_status status =
        tn_journal_open(&r->journal, tn_text_str(&path), r->run->run.deterministic, err);
    tn_text_done(&path);
    return status;
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
    r->started_wall = tn_wall_s();
    r->begin = tn_clock_s();
    r->paced.pace.batch = r->run->train.batch;
    r->paced.pace.batches = (double)r->run->data.shuffle / r->run->train.batch;
    r->paced.pace.ahead = 2 * r->run->train.prefetch;
    tn_host_blas(&r->run->compute, r->blas);
    tn_bar_opts bar = {
        .show = wants_bar(r) ? opts->watch->show : NULL,
        .arg = opts->watch->arg,
        .terminal = opts->watch->terminal || r->run->log.progress == 1,
        .width = opts->watch->width,
        .every = r->run->log.every,
    };
    tn_bar_init(&r->bar, &bar, NULL, r->begin);
    tn_status status = tn_window_totals_init(&r->window, r->run->data.negative_sampling,
                                             opts->reported, r->begin, err);
    if (status == TN_OK) {
        status = open_journal(r, err);
    }
    if (status == TN_OK) {
        status = write_start(r, err);
    }
    if (status != TN_OK) {
        tn_report_close(r);
        return status;
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
    tn_journal_close(r->journal);
    tn_free(r);
}

/* ---- steps ---- */

static tn_status flush_window(tn_report *r, const tn_run_state *state, const tn_read_counts *counts,
                              tn_error *err)
{
    double now = tn_clock_s();
    tn_status status = tn_window_totals_hear(&r->window, err);
    if (status == TN_OK && r->journal != NULL && r->window.steps > 0) {
        tn_journal_train_record record = tn_window_totals_record(&r->window, now);
        tn_memory_use use;
        tn_memory_use_of("", &use);
        record.rss_bytes = use.resident;
        record.bad_records = counts->bad + r->window.others.bad;
        tn_journal_at at = where(state);
        status = tn_journal_train(r->journal, &at, &record, err);
    }
    tn_window_totals_clear(&r->window, now);
    return status;
}

static tn_status draw(tn_report *r, const tn_report_step *s, double now, tn_error *err)
{
    TN_TRY(tn_window_totals_hear(&r->window, err));
    tn_bar_state state = {
        .epoch = s->state->progress.epoch + 1,
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

tn_status tn_report_step_done(tn_report *r, const tn_report_step *s, tn_error *err)
{
    const tn_window_step *step = &s->window;
    TN_ASSERT(s->state != NULL && step->turn != NULL && step->rows != NULL);
    double now = tn_clock_s();
    if (r->steps == 0) {
        tn_bar_begin(&r->bar, now - step->turn->took_s);
    }
    r->rows += step->joint;
    r->steps++;
    TN_TRY(tn_window_totals_add(&r->window, step, err));
    if (s->took_s > 0) {
        tn_paced_step(&r->paced, step->turn->waited_s, s->took_s);
    }
    if (tn_bar_due(&r->bar, now)) {
        TN_TRY(draw(r, s, now, err));
    }
    if (now - r->window.begin >= r->run->log.every) {
        tn_read_counts counts;
        tn_reader_counts(s->reader, &counts);
        return flush_window(r, s->state, &counts, err);
    }
    return TN_OK;
}

/* ---- between steps ---- */

static void show_eval(const tn_report *r, const tn_report_eval *e)
{
    tn_text line = {0};
    tn_text_addf(&line, "%s after step %llu:", e->data, (unsigned long long)e->state->steps);
    for (uint32_t i = 0; i < r->run->eval.metrics.n; i++) {
        const char *name = r->run->eval.metrics.item[i];
        double value = tn_metrics_get(e->result->metrics, name);
        if (isnan(value)) {
            tn_text_addf(&line, "  %s n/a", name);
        } else {
            tn_text_addf(&line, "  %s %.5f", name, value);
        }
    }
    tn_text_addf(&line, "  (%llu rows, %.1f s)%s",
                 (unsigned long long)tn_metrics_rows(e->result->metrics), e->result->seconds,
                 e->best ? "  best so far" : "");
    show(r, tn_text_str(&line));
    tn_text_done(&line);
}

tn_status tn_report_eval_done(tn_report *r, const tn_report_eval *e, tn_error *err)
{
    show_eval(r, e);
    if (r->journal == NULL) {
        return TN_OK;
    }
    tn_journal_slices slices[64];
    uint32_t n = e->result->n_slices < 64 ? e->result->n_slices : 64;
    TN_ASSERT(n <= r->run->eval.slices.n);
    // cppcheck-suppress knownConditionTrueFalse; there may be slices
    for (uint32_t i = 0; i < n; i++) {
        slices[i] = (tn_journal_slices){.slot = r->run->eval.slices.item[i],
                                        .slices = e->result->slices[i]};
    }
    tn_journal_eval_record record = {
        .data = e->data,
        .metrics = e->result->metrics,
        .loss = tn_metrics_get(e->result->metrics, "logloss"),
        .best = e->best,
        .more = r->run->eval.metrics.item,
        .n_more = r->run->eval.metrics.n,
        .slices = slices,
        .n_slices = n,
    };
    tn_journal_at at = where(e->state);
    return tn_journal_eval(r->journal, &at, &record, err);
}

static tn_status write_table(tn_report *r, const tn_run_state *state, tn_error *err)
{
    const tn_held held = held_by_all(r);
    tn_journal_table_record record = {
        .created = held.created, .admitted = held.created, .rows = held.rows, .bytes = held.bytes};
    tn_journal_at at = where(state);
    return tn_journal_table(r->journal, &at, &record, err);
}

tn_status tn_report_saved(tn_report *r, const tn_saved *saved, const tn_run_state *state,
                          tn_error *err)
{
    tn_log(TN_LOG_INFO, "saved %s/%s: %llu rows, %.1f MB in %.2f s", r->opts.dir, saved->name,
           (unsigned long long)saved->written, (double)saved->bytes / 1e6, saved->seconds);
    if (r->journal == NULL) {
        return TN_OK;
    }
    tn_journal_ckpt_record record = {.name = saved->name,
                                     .delta = saved->deltas > 0,
                                     .bytes = saved->bytes,
                                     .rows = saved->written,
                                     .seconds = saved->seconds,
                                     .stall_ms = 1e3 * saved->stall};
    tn_journal_at at = {.step = saved->step, .samples = saved->samples, .epoch = saved->epoch};
    TN_TRY(tn_journal_ckpt(r->journal, &at, &record, err));
    return write_table(r, state, err);
}

tn_status tn_report_event(tn_report *r, const tn_run_state *state, const char *level,
                          const char *text, tn_error *err)
{
    bool warning = strcmp(level, "warn") == 0;
    if (warning) {
        tn_log(TN_LOG_WARN, "%s", text);
        tn_text_add(&r->warnings, text, strlen(text) + 1);
        r->n_warnings += !r->warnings.failed; /* those that are kept */
    } else {
        show(r, text);
    }
    if (r->journal == NULL) {
        return TN_OK;
    }
    tn_journal_at at = where(state);
    return tn_journal_event(r->journal, &at, level, text, err);
}

/* ---- the end: the closing line and summary.json ---- */

static uint64_t trained_rows(const tn_report *r)
{
    return r->rows + r->window.others.rows;
}

#define TOLD_S 10.0 /* in steps, before the closing line has their mean */

/* Mean over all steps. */
static double step_ms(const tn_report *r)
{
    return r->paced.n > 0 ? r->paced.seconds / (double)r->paced.n * 1e3 : (double)NAN;
}

/* "; valid loss 0.4957, auc 0.7387"; what is not known is left out. */
static void put_scores(tn_text *out, const char *whose, const tn_metrics *m)
{
    const double loss = tn_metrics_get(m, "logloss");
    const double auc = tn_metrics_get(m, "auc");
    if (isnan(loss)) {
        return;
    }
    tn_text_addf(out, "; %s loss %.4f", whose, loss);
    if (!isnan(auc)) {
        tn_text_addf(out, ", auc %.4f", auc);
    }
}

/* The last line of a run that ended well: rows, time, scores, folder. */
static void closing_line(const tn_report *r, const tn_report_end *end, tn_text *out)
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
    if (r->paced.predicted > 0 && r->paced.seconds >= TOLD_S) {
        tn_text_addf(out, ", %.2f ms a step (predicted %.2f)", step_ms(r),
                     r->paced.predicted * 1e3);
    }
    if (t->valid.metrics != NULL) {
        put_scores(out, "valid", t->valid.metrics);
    } else if (end->train != NULL) {
        put_scores(out, "progressive", end->train);
        tn_text_addf(out, " (%seach row scored before it was learned)",
                     r->run->train.epochs > 1 ? "of the last epoch, " : "");
    }
    tn_text_addf(out, "; all in %s", r->opts.dir);
}

static void fill_outcome(const tn_report *r, const tn_report_end *end, tn_summary *s)
{
    const tn_worker *w = r->opts.worker;
    const tn_held held = held_by_all(r);
    s->run_id = r->opts.run_id;
    s->config_hash = r->opts.text->hash;
    s->started = r->started_wall;
    s->seconds = end->trained->seconds;
    s->steps = end->trained->steps;
    s->samples = end->trained->samples;
    s->epochs = end->state->progress.epoch;
    s->rows_per_s = s->seconds > 0 ? (double)trained_rows(r) / s->seconds : 0;
    s->step_predicted = r->paced.predicted > 0 ? r->paced.predicted * 1e3 : (double)NAN;
    s->step_measured = step_ms(r);
    s->peers = r->opts.plan->owners.n_peers;
    s->pulled_bytes = r->window.bytes_in;
    s->pushed_bytes = r->window.bytes_out;
    s->train_loss = end->train != NULL ? tn_metrics_get(end->train, "logloss") : (double)NAN;
    s->valid = end->trained->valid.metrics;
    s->test = end->trained->test.metrics;
    s->metrics = r->run->eval.metrics.item;
    s->n_metrics = r->run->eval.metrics.n;
    s->dense_params = tn_params_trained(w->params);
    s->sparse_rows = held.rows;
    s->sparse_bytes = held.bytes;
    s->checkpoint = end->saved != NULL ? end->saved->name : NULL;
    s->checkpoint_crc = end->saved != NULL ? end->saved->crc : 0;
    s->cpu = tn_host_cpu();
    s->blas = r->blas;
    s->cores = tn_cpu_count();
    s->peak_rss_bytes = tn_host_peak_rss();
}

static const char *const *list_warnings(const tn_report *r, tn_arena *arena)
{
    const char **list = TN_NEW_ARRAY(arena, const char *, r->n_warnings);
    const char *at = tn_text_str(&r->warnings);
    for (uint32_t i = 0; i < r->n_warnings; i++) {
        list[i] = at;
        at += strlen(at) + 1;
    }
    TN_ASSERT(at == tn_text_str(&r->warnings) + r->warnings.size);
    return list;
}

/* Replaces summary.json. */
static tn_status write_summary(const tn_report *r, const tn_report_end *end, tn_error *err)
{
    TN_ASSERT(end->met != NULL && end->state != NULL && end->trained != NULL);
    tn_summary_best best = {.name = end->state->monitor,
                            .value = end->state->patience.best,
                            .step = end->state->patience.step};
    tn_met met = {0}; /* by all ranks */
    tn_met_add(&met, end->met);
    tn_peer_progress_met(r->opts.reported, end->epoch, &met);
    tn_summary s = {
        .status = end->status,
        .exit_code = r->opts.watch->exit_code(end->result),
        .error = end->message,
        .best = end->state->patience.seen ? &best : NULL,
        .data = {.sources = met.counts.sources,
                 .bytes = met.counts.bytes,
                 .records = met.counts.records,
                 .blank = met.counts.blank,
                 .bad = met.counts.bad,
                 .parts_reassigned = end->reassigned,
                 .duplicate_key = met.counts.duplicate_key,
                 .bad_reasons = met.reasons.data,
                 .bad_reasons_size = met.reasons.size},
    };
    fill_outcome(r, end, &s);
    tn_arena *arena = tn_arena_new(1 << 12);
    s.warnings = list_warnings(r, arena);
    s.n_warnings = r->n_warnings;
    tn_text memory = {0};
    tn_memory_cap_text(r->opts.memory, &memory);
    s.sparse_bytes_max = tn_table_limit(r->opts.worker->shard.table);
    s.memory = tn_text_str(&memory);
    tn_text path = {0};
    tn_text_addf(&path, "%s/summary.json", r->opts.dir);
    tn_status status = tn_summary_write(&s, tn_text_str(&path), err);
    tn_text_done(&path);
    tn_text_done(&memory);
    tn_met_done(&met);
    tn_arena_free(arena);
    return status;
}

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
    tn_text line = {0};
    closing_line(r, end, &line);
    show(r, tn_text_str(&line));
    tn_text_done(&line);
}

tn_status tn_report_finish(tn_report *r, const tn_report_end *end, tn_error *err)
{
    tn_status status = flush_window(r, end->state, &end->met->counts, err);
    show_bytes(r);
    show_closing(r, end);
    if (r->journal != NULL && status == TN_OK) {
        tn_journal_at at = where(end->state);
        tn_journal_end_record record = {.status = end->status,
                                        .exit_code = r->opts.watch->exit_code(end->result),
                                        .seconds = end->trained->seconds};
        status = tn_journal_end(r->journal, &at, &record, err);
    }
    tn_error second = {0}; /* the first failure is the one that is told */
    tn_status written = write_summary(r, end, status == TN_OK ? err : &second);
    return status != TN_OK ? status : written;
}
