/* report.c - see report.h. */
#include "train/report/report.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/machine/memlimit.h"
#include "train/report/reportstate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    *out = NULL;
    tn_report *r = tn_try_alloc(1, sizeof *r, "a report", err);
    if (r == NULL) {
        return TN_E_MEMORY;
    }
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
    tn_status status = tn_window_sums_init(&r->window, r->run->data.negative_sampling,
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
    tn_window_sums_done(&r->window);
    tn_text_done(&r->warnings);
    tn_journal_close(r->journal);
    tn_free(r);
}

/* ---- steps ---- */

static tn_status flush_window(tn_report *r, const tn_run_state *state, const tn_read_counts *counts,
                              tn_error *err)
{
    double now = tn_clock_s();
    tn_status status = tn_window_sums_hear(&r->window, err);
    if (status == TN_OK && r->journal != NULL && r->window.steps > 0) {
        tn_journal_train_record record = tn_window_sums_record(&r->window, now);
        tn_memory_use use;
        tn_memory_use_of("", &use);
        record.rss_bytes = use.resident;
        record.bad_records = counts->bad + r->window.others.bad;
        tn_journal_at at = where(state);
        status = tn_journal_train(r->journal, &at, &record, err);
    }
    tn_window_sums_clear(&r->window, now);
    return status;
}

static tn_status draw(tn_report *r, const tn_report_step *s, double now, tn_error *err)
{
    TN_TRY(tn_window_sums_hear(&r->window, err));
    tn_bar_state state = {
        .epoch = s->state->progress.epoch + 1,
        .epochs = r->run->train.epochs,
        .step = s->state->steps,
        .epoch_done = s->epoch_done,
        .run_done = s->done,
        .may_end_early = r->run->train.stop.monitor != NULL,
        .rows = r->rows + r->window.others.rows,
        .loss = tn_window_sums_loss(&r->window),
        .auc = tn_metrics_get(tn_window_sums_metrics(&r->window), "auc"),
    };
    tn_bar_draw(&r->bar, &state, now);
    return TN_OK;
}

tn_status tn_report_step_done(tn_report *r, const tn_report_step *s, tn_error *err)
{
    double now = tn_clock_s();
    if (r->steps == 0) {
        tn_bar_begin(&r->bar, now - s->compute_s);
    }
    r->rows += s->joint;
    r->steps++;
    TN_TRY(tn_window_sums_add(&r->window, s, err));
    if (s->took_s > 0) {
        tn_paced_step(&r->paced, s->wait_read_s, s->took_s);
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
    const tn_held held = tn_report_held(r);
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
        r->n_warnings++;
    } else {
        show(r, text);
    }
    if (r->journal == NULL) {
        return TN_OK;
    }
    tn_journal_at at = where(state);
    return tn_journal_event(r->journal, &at, level, text, err);
}

/* ---- the end ---- */

/* What a group cost: bytes of rank 0's messages. */
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
    tn_report_closing(r, end, &line);
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
    tn_status written = tn_report_summary(r, end, status == TN_OK ? err : &second);
    return status != TN_OK ? status : written;
}
