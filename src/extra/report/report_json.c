/* report_json.c - the numbers of the page, a function for each part. */
#include "extra/report/report_json.h"

#include "base/codec/json.h"
#include "extra/report/history.h"
#include "io/schema/schema.h"
#include "metrics/calibration.h"
#include "metrics/ranking.h"
#include "train/config/days.h"
#include "train/config/run.h"

#include <math.h>
#include <string.h>

enum { CURVE_POINTS = 200, BINS = 20, SCORE_BINS = 60, DECILES = 10, CELL_MAX = 99 };

/* ---- parts of parts ---- */

/* Appends a member, and frees its text. */
static void put_text(tn_text *out, const char *key, tn_text *text)
{
    tn_json_str(out, key, tn_text_str(text));
    out->failed = out->failed || text->failed;
    tn_text_done(text);
}

static void put_point(const double *value, uint32_t n, tn_text *out)
{
    tn_json_open(out, '[');
    for (uint32_t i = 0; i < n; i++) {
        tn_json_f64(out, NULL, value[i]);
    }
    tn_json_close(out, ']');
}

static tn_sheet begin_table(const char *const *names, uint32_t n)
{
    tn_sheet s = {.cols = n, .cell_max = CELL_MAX, .full = true};
    for (uint32_t i = 0; i < n; i++) {
        tn_sheet_word(&s, names[i]);
    }
    return s;
}

/* ---- facts ---- */

/* Appends a fact, unless it has neither code nor text, and empties the text. */
static void put_fact(tn_text *out, const char *name, const char *code, tn_text *text)
{
    if (code != NULL || text->size > 0) {
        tn_json_open(out, '{');
        tn_json_str(out, "name", name);
        tn_json_str(out, "code", code != NULL ? code : "");
        put_text(out, "text", text);
        tn_json_close(out, '}');
    }
}

/* Appends the files of a name such as `valid`, else what was given. */
static void put_paths(const tn_eval_result *f, tn_text *out)
{
    const tn_data_opts *d = &f->run->data;
    const tn_strs *paths = strcmp(f->data, "valid") == 0  ? &d->valid
                           : strcmp(f->data, "test") == 0 ? &d->test
                                                          : &(tn_strs){1, &f->data};
    for (uint32_t i = 0; i < paths->n; i++) {
        tn_text_addf(out, "%s%s", i > 0 ? " " : "", paths->item[i]);
    }
}

/* Appends "12 steps, 345 records, until 2026-11-29 12:40 UTC". */
static void put_trained(const tn_journal_at *at, double when, tn_text *out)
{
    tn_text_addf(out, "%llu steps, %llu records", (unsigned long long)at->step,
                 (unsigned long long)at->samples);
    if (when > 0 && when < 1e11) {
        char day[TN_DAY_TEXT];
        const uint64_t minutes = (uint64_t)when / 60;
        tn_day_text((uint32_t)(minutes / 60 / 24), day);
        tn_text_addf(out, ", until %s %02u:%02u UTC", day, (unsigned)(minutes / 60 % 24),
                     (unsigned)(minutes % 60));
    }
}

static void put_facts(const tn_eval_result *f, double when, tn_text *out)
{
    const tn_read_counts *counts = &f->result->counts;
    tn_text text = {0};
    tn_text paths = {0};
    tn_json_open_key(out, "facts", '[');
    put_fact(out, "model", f->run->model.choice != NULL ? f->run->model.choice->name : NULL, &text);
    put_fact(out, "weights", f->source, &text);
    put_fact(out, "model id", f->model_id, &text);
    put_fact(out, "configuration", f->config_hash, &text);
    put_trained(&f->at, when, &text);
    put_fact(out, "trained", NULL, &text);
    put_paths(f, &paths);
    tn_text_addf(&text, "%llu records of %u file%s, %llu bad, %.1f s",
                 (unsigned long long)counts->records, counts->sources,
                 counts->sources == 1 ? "" : "s", (unsigned long long)counts->bad,
                 f->result->seconds);
    put_fact(out, "data", tn_text_str(&paths), &text);
    tn_text_done(&paths);
    if (f->result->metrics != NULL) {
        tn_text_addf(&text, "%llu of weight above 0",
                     (unsigned long long)tn_metrics_rows(f->result->metrics));
    }
    put_fact(out, "rows", NULL, &text);
    tn_eval_result_calibrated(f->result, &text);
    put_fact(out, "scores", NULL, &text);
    tn_text_adds(&text, "TNet " TN_VERSION);
    put_fact(out, "made by", NULL, &text);
    tn_json_close(out, ']');
}

/* ---- metrics ---- */

static void put_intervals(const tn_eval_result *f, tn_text *out)
{
    const tn_interval *const of[] = {&f->delong, &f->bootstrap};
    tn_sheet s = begin_table((const char *const[]){".95 interval of auc", "from", "to"}, 3);
    for (int i = 0; i < 2; i++) {
        tn_sheet_word(&s, i == 0 ? "DeLong" : "bootstrap");
        tn_sheet_metric(&s, of[i]->low);
        tn_sheet_metric(&s, of[i]->high);
    }
    tn_sheet_end(&s, "intervals", out);
}

static void put_metrics(const tn_eval_result *f, tn_text *out)
{
    const tn_strs usual = {10, (const char *const[]){"auc", "logloss", "ne", "ctr", "pctr", "copc",
                                                     "brier", "ece", "pr_auc", "rmse"}};
    const tn_metrics *m = f->result->metrics;
    tn_sheet s = begin_table((const char *const[]){"metric", "value", "meaning"}, 3);
    for (const tn_metric *const *metric = tn_all_metrics; *metric != NULL; metric++) {
        const char *name = (*metric)->name;
        const bool wanted = tn_strs_has(&usual, name) || tn_strs_has(&f->run->eval.metrics, name);
        if (wanted && tn_metric_fits(name, tn_metrics_target(m))) {
            tn_sheet_word(&s, name);
            tn_sheet_metric(&s, tn_metrics_get(m, name));
            tn_sheet_word(&s, (*metric)->help);
        }
    }
    tn_json_u64(out, "rows", tn_metrics_rows(m));
    tn_sheet_end(&s, "metrics", out);
    if (f->has_intervals) {
        put_intervals(f, out);
    }
}

/* ---- figures ---- */

/* Appends the points of both curves: false and true positive rate, precision. Nothing with one
 * class. */
static void put_curve(const tn_metrics *m, tn_text *out)
{
    tn_curve_point point[CURVE_POINTS];
    const uint32_t n = tn_curve_of(m, CURVE_POINTS, point);
    TN_ASSERT(n <= CURVE_POINTS);
    if (n == 0) {
        return;
    }
    tn_json_open_key(out, "curve", '{');
    tn_json_f64(out, "auc", tn_metrics_get(m, "auc"));
    tn_json_f64(out, "pr_auc", tn_metrics_get(m, "pr_auc"));
    tn_json_f64(out, "ctr", tn_metrics_get(m, "ctr"));
    tn_json_open_key(out, "points", '[');
    for (uint32_t i = 0; i < n; i++) {
        const tn_curve_point *p = &point[i];
        put_point((double[]){p->fpr, p->tpr, p->precision}, 3, out);
    }
    tn_json_close(out, ']');
    tn_json_close(out, '}');
}

/* Appends bins of equal weight: predicted rate, rate of clicks with Wilson's .95 interval, where a
 * row counts as its weight, rows. */
static void put_reliability(const tn_metrics *m, tn_text *out)
{
    tn_reliability bin[BINS];
    const uint32_t n = tn_reliability_of_mass(m, BINS, bin);
    TN_ASSERT(n <= BINS);
    tn_json_open_key(out, "reliability", '[');
    for (uint32_t i = 0; i < n; i++) {
        const tn_reliability *b = &bin[i];
        const tn_interval ctr = tn_interval_wilson(b->ctr, b->weight);
        put_point((double[]){b->pctr, b->ctr, ctr.low, ctr.high, b->weight}, 5, out);
    }
    tn_json_close(out, ']');
}

/* Finds where the scores lie. False: there is none. */
static bool span_of(const tn_metrics *m, double *low, double *high)
{
    bool any = false;
    tn_cell cell;
    for (tn_walk w = tn_walk_begin(m); tn_walk_next(&w, &cell);) {
        *low = any ? *low : cell.z;
        *high = cell.z;
        any = true;
    }
    if (any && *high - *low < 1) {
        *low -= 0.5;
        *high += 0.5;
    }
    return any;
}

/* Appends how many rows have which logit: clicks and others of each bin. */
static void put_scores(const tn_metrics *m, tn_text *out)
{
    double low = 0;
    double high = 0;
    double count[SCORE_BINS][2] = {{0}};
    if (!span_of(m, &low, &high)) {
        return;
    }
    tn_walk w = tn_walk_begin(m);
    for (tn_cell cell; tn_walk_next(&w, &cell);) {
        const double bin = (cell.z - low) / (high - low) * SCORE_BINS;
        TN_ASSERT(bin >= 0);
        const uint32_t i = bin < SCORE_BINS ? (uint32_t)bin : SCORE_BINS - 1;
        count[i][0] += (double)cell.pos / w.unit;
        count[i][1] += (double)cell.neg / w.unit;
    }
    tn_json_open_key(out, "scores", '{');
    tn_json_f64(out, "low", low);
    tn_json_f64(out, "high", high);
    tn_json_open_key(out, "bins", '[');
    for (uint32_t i = 0; i < SCORE_BINS; i++) {
        put_point(count[i], 2, out);
    }
    tn_json_close(out, ']');
    tn_json_close(out, '}');
}

static void put_deciles(const tn_metrics *m, tn_text *out)
{
    tn_reliability bin[DECILES];
    const uint32_t n = tn_reliability_of_mass(m, DECILES, bin);
    TN_ASSERT(n <= DECILES);
    tn_sheet s = begin_table((const char *const[]){"decile", "from", "to", "rows", "ctr",
                                                   ".95 from", "to", "pctr", "copc"},
                             9);
    for (uint32_t i = 0; i < n; i++) {
        const tn_reliability *b = &bin[i];
        const tn_interval ctr = tn_interval_wilson(b->ctr, b->weight);
        const double row[] = {i + 1,   b->low,   b->high, round(b->weight), b->ctr,
                              ctr.low, ctr.high, b->pctr, b->copc};
        for (int k = 0; k < 9; k++) {
            tn_sheet_metric(&s, row[k]);
        }
    }
    tn_sheet_end(&s, "deciles", out);
}

/* ---- all of it ---- */

static tn_status put_slot(const tn_eval_result *f, uint32_t i, tn_text *out, tn_error *err)
{
    tn_slice slice[TN_EVAL_SLICES + 1];
    tn_slice_cut cut = {0};
    TN_TRY(tn_eval_result_slices(f, i, TN_EVAL_SLICES, slice, &cut, err));
    tn_sheet s = tn_eval_result_sheet(f, i, slice, cut.n, true);
    tn_json_open(out, '{');
    tn_sheet_end(&s, "table", out);
    tn_json_u64(out, "hidden", cut.hidden);
    tn_json_close(out, '}');
    return TN_OK;
}

static tn_status put_comparison(const tn_eval_result *f, tn_text *out, tn_error *err)
{
    tn_json_open_key(out, "compare", '{');
    TN_TRY(f->with->tables(f, out, err));
    put_reliability(f->with->other(f->compare), out);
    tn_json_close(out, '}');
    return TN_OK;
}

static tn_status put_results(const tn_eval_result *f, tn_text *out, tn_error *err)
{
    const tn_metrics *m = f->result->metrics;
    put_metrics(f, out);
    if (tn_metric_fits("auc", tn_metrics_target(m))) {
        put_curve(m, out);
    }
    if (tn_metrics_target(m) == TN_TARGET_CLICK) {
        put_reliability(m, out);
        put_scores(m, out);
        put_deciles(m, out);
    }
    TN_TRY(f->compare != NULL ? put_comparison(f, out, err) : TN_OK);
    tn_json_open_key(out, "slices", '[');
    for (uint32_t i = 0; i < f->result->n_slices; i++) {
        TN_TRY(put_slot(f, i, out, err));
    }
    tn_json_close(out, ']');
    return TN_OK;
}

tn_status tn_report_json(const tn_eval_result *f, const char *config, tn_text *out, tn_error *err)
{
    double when = 0;
    tn_text title = {0};
    TN_ASSERT(f->schema->label->none || f->result->metrics != NULL);
    tn_json_open(out, '{');
    tn_text_addf(&title, "%s%s%s on %s", f->task != NULL ? f->task : "",
                 f->task != NULL ? " of " : "", f->run->run.name, f->data);
    put_text(out, "title", &title);
    TN_TRY(tn_history_json(f->journal, f->at.step, out, &when, err));
    put_facts(f, when, out);
    TN_TRY(f->schema->label->none ? TN_OK : put_results(f, out, err));
    tn_json_str(out, "config", config);
    tn_json_close(out, '}');
    return tn_text_check(out, "the report", err);
}
