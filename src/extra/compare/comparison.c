/* comparison.c - two models on the same rows: a grid of words, printed as text or as JSON.
 *
 *     compared with   this     other    change       low      high  by
 *     auc         0.780123  0.771002  0.009121  0.008011  0.010231  DeLong
 *
 *     category   rows       auc     other   logloss     other    change       low      high
 *     68fd1e64   1201  0.751002  0.740110  0.440101  0.451200 -0.011099 -0.014002 -0.008196
 *
 * Each slot of eval.slices is listed by the values whose log loss has moved (TN_COMPARE_MOVED), the
 * largest changes first.
 */
#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "extra/compare/compare.h"
#include "train/config/run.h"
#include "train/report/eval_result.h"
#include "train/report/text_tables.h"

#include <math.h>
#include <stdlib.h>

enum { MOVED_SHOWN = 20, CELL_MAX = 59 };

/* ---- figures ---- */

/* A line of the table: a metric, and how sure its change is. */
typedef struct change_line {
    const char *metric, *by;
    const tn_interval *interval; /* NULL: not known */
} change_line;

enum { LINES = 5 };

static void lines_of(const tn_compare *c, change_line out[LINES])
{
    out[0] = (change_line){"auc", "DeLong", &c->auc};
    out[1] = (change_line){"auc", "bootstrap", &c->auc_draws};
    out[2] = (change_line){"logloss", "bootstrap", &c->logloss};
    out[3] = (change_line){"copc", "", NULL};
    out[4] = (change_line){"ece", "", NULL};
}

#define P_TOLD 1e-300 /* near the least that a double holds */

/* Whether the evaluated model, or the other, is better by its AUC, or chance could. */
static void verdict(const tn_compare *c, tn_text *out)
{
    if (isnan(c->p)) {
        tn_text_adds(out, "no test of AUC: too few rows of one class");
        return;
    }
    const char *what = c->p >= 0.05       ? "chance could make this difference of AUC"
                       : c->auc.value > 0 ? "this model has the higher AUC"
                                          : "the other has the higher AUC";
    tn_text_addf(out, "%s: p ", what);
    tn_text_addf(out, c->p < P_TOLD ? "below %.3g" : "%.3g", fmax(c->p, P_TOLD));
    tn_text_adds(out, " by DeLong's test");
}

/* A value of a slot, as both models have it. */
typedef struct moved_slice {
    tn_slice of, other;
    tn_interval change; /* difference of the log losses */
} moved_slice;

typedef struct moved_slices {
    moved_slice *item; /* owned */
    uint32_t n;        /* slices that have moved, the largest changes first */
    uint32_t all;      /* values that were looked at */
} moved_slices;

static int by_change(const void *a, const void *b)
{
    const double x = fabs(((const moved_slice *)a)->change.value);
    const double y = fabs(((const moved_slice *)b)->change.value);
    return (x < y) - (x > y);
}

/* Slot i of eval.slices. The three reports have the same rows, and so the same values in one order.
 */
static tn_status find_moved(const tn_eval_result *f, uint32_t i, moved_slices *out, tn_error *err)
{
    tn_slices *const from[3] = {f->result->slices[i], f->compare->other.slices[i],
                                f->compare->change.slices[i]};
    const size_t most = (size_t)tn_slices_count(from[0]) + 1;
    tn_slice *slice = NULL;
    uint32_t n = 0;
    *out = (moved_slices){0};
    TN_TRY(TN_ALLOC(slice, 3 * most, "slices of two models", err));
    tn_status status = TN_ALLOC(out->item, most, "slices of two models", err);
    for (uint32_t k = 0; k < 3 && status == TN_OK; k++) {
        TN_ASSERT(tn_slices_count(from[k]) + 1 == most);
        status = tn_slices_report(from[k], slice + k * most, &n, err);
    }
    for (uint32_t k = 0; k < n && status == TN_OK; k++) {
        const tn_slice *of = &slice[k];
        const tn_interval change = tn_compare_change(of[2 * most].metrics);
        TN_ASSERT(of[2 * most].sign == of->sign && of[most].sign == of->sign);
        if (fabs(change.value) > TN_COMPARE_MOVED * sqrt(change.variance)) {
            out->item[out->n++] = (moved_slice){.of = *of, .other = of[most], .change = change};
        }
    }
    out->all = n;
    tn_free(slice);
    if (out->n > 0) {
        qsort(out->item, out->n, sizeof *out->item, by_change);
    }
    return status;
}

/* ---- grids ---- */

static void interval_cells(tn_sheet *s, const tn_interval *i)
{
    tn_sheet_metric(s, i != NULL ? i->low : (double)NAN);
    tn_sheet_metric(s, i != NULL ? i->high : (double)NAN);
}

static tn_sheet metric_sheet(const tn_eval_result *f, bool full)
{
    static const char *const head[] = {"metric", "this", "other", "change", ".95 from", "to", "by"};
    const tn_compare *c = f->compare;
    tn_sheet s = {.cols = sizeof head / sizeof head[0], .cell_max = CELL_MAX, .full = full};
    change_line line[LINES];
    lines_of(c, line);
    for (uint32_t i = 0; i < s.cols; i++) {
        tn_sheet_word(&s, head[i]);
    }
    for (uint32_t i = 0; i < LINES; i++) {
        const double of = tn_metrics_get(f->result->metrics, line[i].metric);
        const double other = tn_metrics_get(c->other.metrics, line[i].metric);
        tn_sheet_word(&s, line[i].metric);
        tn_sheet_metric(&s, of);
        tn_sheet_metric(&s, other);
        tn_sheet_metric(&s, of - other);
        interval_cells(&s, line[i].interval);
        tn_sheet_word(&s, line[i].by);
    }
    return s;
}

static tn_sheet slice_sheet(const tn_eval_result *f, uint32_t i, const moved_slices *moved,
                            bool full)
{
    static const char *const head[] = {"rows",  "auc",    "other",    "logloss",
                                       "other", "change", ".95 from", "to"};
    tn_sheet s = {.cols = 1 + sizeof head / sizeof head[0], .cell_max = CELL_MAX, .full = full};
    tn_sheet_word(&s, f->run->eval.slices.item[i]);
    for (uint32_t k = 0; k + 1 < s.cols; k++) {
        tn_sheet_word(&s, head[k]);
    }
    for (uint32_t k = 0; k < moved->n && k < MOVED_SHOWN; k++) {
        const moved_slice *m = &moved->item[k];
        tn_eval_result_value(f, i, &m->of, &s.cells);
        tn_sheet_next(&s);
        tn_text_add_u64(&s.cells, tn_metrics_rows(m->of.metrics));
        tn_sheet_next(&s);
        for (uint32_t metric = 0; metric < 2; metric++) {
            const char *name = metric == 0 ? "auc" : "logloss";
            tn_sheet_metric(&s, tn_metrics_get(m->of.metrics, name));
            tn_sheet_metric(&s, tn_metrics_get(m->other.metrics, name));
        }
        tn_sheet_metric(&s, m->change.value);
        interval_cells(&s, &m->change);
    }
    return s;
}

static void count_moved(const char *slot, const moved_slices *moved, tn_text *out)
{
    tn_text_addf(out, "%s: %u of %u values moved in log loss by more than %g standard errors", slot,
                 moved->n, moved->all, TN_COMPARE_MOVED);
    if (moved->n > MOVED_SHOWN) {
        tn_text_addf(out, ", the largest %d changes are shown", MOVED_SHOWN);
    }
}

/* ---- for people ---- */

static tn_status print_slot(const tn_eval_result *f, uint32_t i, bool json, tn_text *out,
                            tn_error *err)
{
    moved_slices moved;
    tn_text said = {0};
    tn_status status = find_moved(f, i, &moved, err);
    if (status == TN_OK) {
        count_moved(f->run->eval.slices.item[i], &moved, &said);
    }
    if (status == TN_OK && json) {
        tn_sheet s = slice_sheet(f, i, &moved, true);
        tn_json_open(out, '{');
        tn_json_str(out, "note", tn_text_str(&said));
        tn_sheet_end(&s, "table", out);
        tn_json_close(out, '}');
    } else if (status == TN_OK) {
        tn_text_addf(out, "\n%s\n", tn_text_str(&said));
        if (moved.n > 0) {
            tn_sheet s = slice_sheet(f, i, &moved, false);
            tn_sheet_end(&s, NULL, out);
        }
    }
    tn_text_done(&said);
    tn_free(moved.item);
    return status;
}

static tn_status print_slots(const tn_eval_result *f, bool json, tn_text *out, tn_error *err)
{
    for (uint32_t i = 0; i < f->result->n_slices; i++) {
        TN_TRY(print_slot(f, i, json, out, err));
    }
    return TN_OK;
}

static tn_status print_text(const tn_eval_result *f, tn_text *out, tn_error *err)
{
    TN_ASSERT(f->compare != NULL);
    tn_text_addf(out, "\ncompared with '%s'\n", f->compare->name);
    tn_sheet s = metric_sheet(f, false);
    tn_sheet_end(&s, NULL, out);
    verdict(f->compare, out);
    tn_text_addc(out, '\n');
    return print_slots(f, false, out, err);
}

static tn_status print_tables(const tn_eval_result *f, tn_text *out, tn_error *err)
{
    tn_text said = {0};
    tn_sheet s = metric_sheet(f, true);
    verdict(f->compare, &said);
    tn_json_str(out, "other", f->compare->name);
    tn_json_str(out, "verdict", tn_text_str(&said));
    tn_sheet_end(&s, "metrics", out);
    tn_text_done(&said);
    tn_json_open_key(out, "moved", '[');
    TN_TRY(print_slots(f, true, out, err));
    tn_json_close(out, ']');
    return TN_OK;
}

/* ---- for programs ---- */

static tn_status add_moved(const tn_eval_result *f, uint32_t i, tn_text *out, tn_error *err)
{
    moved_slices moved;
    tn_status status = find_moved(f, i, &moved, err);
    tn_json_open_key(out, f->run->eval.slices.item[i], '[');
    for (uint32_t k = 0; status == TN_OK && k < moved.n && k < TN_EVAL_SLICES; k++) {
        const moved_slice *m = &moved.item[k];
        tn_text value = {0};
        tn_eval_result_value(f, i, &m->of, &value);
        tn_json_open(out, '{');
        tn_json_str(out, "value", tn_text_str(&value));
        tn_json_u64(out, "rows", tn_metrics_rows(m->of.metrics));
        tn_json_f64(out, "auc", tn_metrics_get(m->of.metrics, "auc"));
        tn_json_f64(out, "other_auc", tn_metrics_get(m->other.metrics, "auc"));
        tn_eval_result_interval(out, "logloss", &m->change);
        tn_json_close(out, '}');
        tn_text_done(&value);
    }
    tn_json_close(out, ']');
    tn_free(moved.item);
    return status;
}

static tn_status print_json(const tn_eval_result *f, tn_text *out, tn_error *err)
{
    static const char *const names[] = {"auc", "logloss", "copc", "ece"};
    const tn_compare *c = f->compare;
    TN_ASSERT(c != NULL);
    tn_text_adds(out, ",\"compare\":{");
    tn_json_str(out, "other", c->name);
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tn_json_f64(out, names[i], tn_metrics_get(c->other.metrics, names[i]));
    }
    tn_eval_result_interval(out, "auc_delong", &c->auc);
    tn_json_f64(out, "p", c->p);
    tn_eval_result_interval(out, "auc_bootstrap", &c->auc_draws);
    tn_eval_result_interval(out, "logloss_bootstrap", &c->logloss);
    tn_json_open_key(out, "moved", '{');
    for (uint32_t i = 0; i < f->result->n_slices; i++) {
        TN_TRY(add_moved(f, i, out, err));
    }
    tn_json_close(out, '}');
    tn_json_close(out, '}');
    return TN_OK;
}

static const tn_metrics *metrics_of_other(const tn_compare *c)
{
    return c->other.metrics;
}

extern const tn_compare_kind tn_compare_kind_compare;
const tn_compare_kind tn_compare_kind_compare = {.open = tn_compare_open,
                                                 .drop = tn_compare_free,
                                                 .read = tn_compare_read,
                                                 .begin = tn_compare_begin,
                                                 .add = tn_compare_add,
                                                 .end = tn_compare_end,
                                                 .other = metrics_of_other,
                                                 .text = print_text,
                                                 .json = print_json,
                                                 .tables = print_tables};
