/* reportend.c - the closing line and summary.json of a run, from what it told and what became of
 * it. */
#include "base/thread/threads.h"
#include "train/report/reportstate.h"
#include "train/report/summary.h"

#include <math.h>
#include <string.h>

void tn_outcome_done(tn_outcome *t)
{
    tn_evaluation_done(&t->valid);
    tn_evaluation_done(&t->test);
    *t = (tn_outcome){0};
}

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

void tn_report_closing(const tn_report *r, const tn_report_end *end, tn_text *out)
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

tn_held tn_report_held(const tn_report *r)
{
    const tn_held own = tn_held_of(r->opts.worker->shard.table);
    const tn_held others = tn_reported_held(r->opts.reported);
    return (tn_held){.created = own.created + others.created,
                     .rows = own.rows + others.rows,
                     .bytes = own.bytes + others.bytes};
}

static void fill_outcome(const tn_report *r, const tn_report_end *end, tn_summary *s)
{
    const tn_worker *w = r->opts.worker;
    const tn_held held = tn_report_held(r);
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
    return list;
}

tn_status tn_report_summary(const tn_report *r, const tn_report_end *end, tn_error *err)
{
    tn_summary_best best = {.name = end->state->monitor,
                            .value = end->state->patience.best,
                            .step = end->state->patience.step};
    tn_met met = {0}; /* by all ranks */
    tn_met_add(&met, end->met);
    tn_reported_met(r->opts.reported, end->epoch, &met);
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
