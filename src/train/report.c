/* report.c - see report.h. */
#include "train/report.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/threads.h"
#include "train/host.h"
#include "train/journal.h"
#include "train/progress.h"
#include "train/results.h"
#include "train/summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Sums since the last `train` record. */
typedef struct window {
    double begin;
    uint64_t steps, rows, keys;
    double loss, grad_norm, wait_read_s, compute_s;
    double lr; /* of the last step */
} window;

struct tn_report {
    tn_report_opts opts;
    const tn_run *run;
    tn_journal *journal; /* NULL: log.jsonl is off */
    tn_metrics *metrics; /* of the window; 2^12 bins are enough for a line */
    tn_bar bar;
    window window;
    double started_wall, begin;
    uint64_t rows; /* seen by this process */
    char blas[TN_HOST_BLAS_SIZE];
};

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
        .peers = 1,
        .threads = tn_worker_threads(r->run),
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
    r->begin = r->window.begin = tn_clock_s();
    tn_host_blas(r->blas);
    tn_bar_opts bar = {
        .show = wants_bar(r) ? opts->watch->show : NULL,
        .arg = opts->watch->arg,
        .terminal = opts->watch->terminal || r->run->log.progress == 1,
        .width = opts->watch->width,
        .every = r->run->log.every,
    };
    tn_bar_init(&r->bar, &bar, NULL, r->begin);
    tn_metrics_opts coarse = {.coarse = true, .sampling = r->run->data.negative_sampling};
    tn_status status = tn_metrics_new(&r->metrics, &coarse, err);
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
    tn_metrics_free(r->metrics);
    tn_journal_close(r->journal);
    tn_free(r);
}

/* ---- steps ---- */

static tn_status flush_window(tn_report *r, const tn_run_state *state, tn_reader *reader,
                              tn_error *err)
{
    window *w = &r->window;
    double seconds = tn_clock_s() - w->begin;
    tn_status status = TN_OK;
    if (r->journal != NULL && w->steps > 0) {
        tn_read_counts counts = {0};
        if (reader != NULL) {
            tn_reader_counts(reader, &counts);
        }
        double steps = (double)w->steps;
        tn_journal_train_record record = {
            .window = r->metrics,
            .loss = w->loss / (double)w->rows,
            .lr = w->lr,
            .rows_per_s = seconds > 0 ? (double)w->rows / seconds : (double)NAN,
            .grad_norm = w->grad_norm / steps,
            .wait_read_ms = 1e3 * w->wait_read_s / steps,
            .compute_ms = 1e3 * w->compute_s / steps,
            .keys = w->keys / w->steps,
            .rss_bytes = tn_host_rss(),
            .bad_records = counts.bad,
        };
        tn_journal_at at = where(state);
        status = tn_journal_train(r->journal, &at, &record, err);
    }
    *w = (window){.begin = tn_clock_s()};
    tn_metrics_clear(r->metrics);
    return status;
}

static void draw(tn_report *r, const tn_report_step *s, double now)
{
    tn_bar_state state = {
        .epoch = s->state->progress.epoch + 1,
        .epochs = r->run->train.epochs,
        .step = s->state->steps,
        .epoch_done = s->epoch_done,
        .run_done = s->done,
        .rows = r->rows,
        .loss = r->window.rows > 0 ? r->window.loss / (double)r->window.rows : (double)NAN,
        .auc = tn_metrics_get(r->metrics, "auc"),
    };
    tn_bar_draw(&r->bar, &state, now);
}

tn_status tn_report_step_done(tn_report *r, const tn_report_step *s, tn_error *err)
{
    window *w = &r->window;
    w->steps++;
    w->rows += s->rows->n;
    w->keys += s->keys;
    w->loss += s->learned->loss * s->rows->n;
    w->grad_norm += s->learned->grad_norm;
    w->wait_read_s += s->wait_read_s;
    w->compute_s += s->compute_s;
    w->lr = s->lr;
    r->rows += s->rows->n;
    TN_TRY(tn_metrics_add(r->metrics, s->rows, err));
    double now = tn_clock_s();
    if (tn_bar_due(&r->bar, now)) {
        draw(r, s, now);
    }
    if (now - w->begin >= r->run->log.every) {
        return flush_window(r, s->state, s->reader, err);
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
        slices[i] = (tn_journal_slices){r->run->eval.slices.item[i], e->result->slices[i]};
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
    const tn_table *table = r->opts.worker->shard.table;
    tn_journal_table_record record = {
        .created = tn_table_created(table),
        .admitted = tn_table_created(table),
        .rows = tn_table_rows(table),
        .bytes = tn_table_bytes(table),
    };
    tn_journal_at at = where(state);
    return tn_journal_table(r->journal, &at, &record, err);
}

tn_status tn_report_saved(tn_report *r, const tn_saved *saved, const tn_run_state *state,
                          tn_error *err)
{
    tn_log(TN_LOG_INFO, "saved %s/%s: %llu rows, %.1f MB in %.2f s", r->opts.dir, saved->name,
           (unsigned long long)saved->rows, (double)saved->bytes / 1e6, saved->seconds);
    if (r->journal == NULL) {
        return TN_OK;
    }
    tn_journal_ckpt_record record = {.name = saved->name,
                                     .bytes = saved->bytes,
                                     .rows = saved->rows,
                                     .seconds = saved->seconds,
                                     .stall_ms = 1e3 * saved->seconds};
    tn_journal_at at = where(state);
    TN_TRY(tn_journal_ckpt(r->journal, &at, &record, err));
    return write_table(r, state, err);
}

tn_status tn_report_event(tn_report *r, const tn_run_state *state, const char *level,
                          const char *text, tn_error *err)
{
    bool warning = strcmp(level, "warn") == 0;
    if (warning) {
        tn_log(TN_LOG_WARN, "%s", text);
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

static void fill_outcome(const tn_report *r, const tn_report_end *end, tn_summary *s)
{
    const tn_worker *w = r->opts.worker;
    s->run_id = r->opts.run_id;
    s->config_hash = r->opts.text->hash;
    s->started = r->started_wall;
    s->seconds = end->trained->seconds;
    s->steps = end->trained->steps;
    s->samples = end->trained->samples;
    s->epochs = end->state->progress.epoch;
    s->rows_per_s = s->seconds > 0 ? (double)r->rows / s->seconds : 0;
    s->train_loss = end->train != NULL ? tn_metrics_get(end->train, "logloss") : (double)NAN;
    s->valid = end->trained->valid.metrics;
    s->test = end->trained->test.metrics;
    s->metrics = r->run->eval.metrics.item;
    s->n_metrics = r->run->eval.metrics.n;
    s->dense_params = tn_params_trained(w->params);
    s->sparse_rows = tn_table_rows(w->shard.table);
    s->sparse_bytes = tn_table_bytes(w->shard.table);
    s->checkpoint = end->saved != NULL ? end->saved->name : NULL;
    s->checkpoint_crc = end->saved != NULL ? end->saved->crc : 0;
    s->cpu = tn_host_cpu();
    s->blas = r->blas;
    s->cores = tn_cpu_count();
    s->peak_rss_bytes = tn_host_peak_rss();
}

static tn_status write_summary(tn_report *r, const tn_report_end *end, tn_error *err)
{
    tn_summary_best best = {.name = end->state->monitor,
                            .value = end->state->patience.best,
                            .step = end->state->patience.step};
    tn_summary s = {
        .status = end->status,
        .exit_code = r->opts.watch->exit_code(end->result),
        .error = end->message,
        .best = end->state->patience.seen ? &best : NULL,
        .data = {.sources = end->counts->sources,
                 .bytes = end->counts->bytes,
                 .records = end->counts->records,
                 .blank = end->counts->blank,
                 .bad = end->counts->bad,
                 .duplicate_key = end->counts->duplicate_key,
                 .bad_reasons = end->bad_reasons->data,
                 .bad_reasons_size = end->bad_reasons->size},
    };
    fill_outcome(r, end, &s);
    tn_text path = {0};
    tn_text_addf(&path, "%s/summary.json", r->opts.dir);
    tn_status status = tn_summary_write(&s, tn_text_str(&path), err);
    tn_text_done(&path);
    return status;
}

tn_status tn_report_finish(tn_report *r, const tn_report_end *end, tn_error *err)
{
    tn_status status = flush_window(r, end->state, NULL, err);
    if (r->journal != NULL && status == TN_OK) {
        tn_journal_at at = where(end->state);
        tn_journal_end_record record = {.status = end->status,
                                        .exit_code = r->opts.watch->exit_code(end->result),
                                        .seconds = end->trained->seconds};
        status = tn_journal_end(r->journal, &at, &record, err);
    }
    tn_status written = write_summary(r, end, err);
    return status != TN_OK ? status : written;
}
