/* eval_result.c - an evaluation as tables and as JSON. */
#include "train/report/eval_result.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "config/tree.h"
#include "io/schema/schema.h"
#include "train/config/run.h"
#include "train/config/run_loss.h"
#include "train/config/run_tasks.h"
#include "train/eval/task_results.h"
#include "train/report/text_tables.h"

#include <inttypes.h>
#include <math.h>

enum { SLICES_SHOWN = 20, CELL_MAX = 59 };

/* The metrics of a slice that are shown; they fit the target. */
static tn_strs slice_metrics(const tn_eval_result *f)
{
    static const char *const of[TN_TARGETS][5] = {
        [TN_TARGET_CLICK] = {"auc", "logloss", "copc", "ctr", "pctr"},
        [TN_TARGET_SIDE] = {"auc", "accuracy", "ctr"},
        [TN_TARGET_NUMBER] = {"rmse", "mae", "label_mean", "prediction_mean"},
        [TN_TARGET_ORDER] = {"auc"},
    };
    const char *const *names = of[tn_metrics_target(f->result->metrics)];
    uint32_t n = 0;
    while (n < 5 && names[n] != NULL) {
        n++;
    }
    return (tn_strs){n, names};
}

void tn_eval_result_intervals(tn_eval_result *f)
{
    TN_ASSERT(!f->has_intervals);
    if (f->run->eval.auc == 0 || f->schema->label->none ||
        !tn_metric_fits("auc", tn_metrics_target(f->result->metrics))) {
        return;
    }
    f->delong = tn_interval_delong(f->result->metrics);
    f->bootstrap = tn_interval_bootstrap(f->result->metrics, NULL, f->run->run.seed);
    f->has_intervals = true;
}

void tn_eval_result_of_task(const tn_eval_result *f, uint32_t k, tn_run *run, tn_eval_result *out)
{
    const tn_tasks *tasks = tn_run_tasks_of(f->run);
    *out = *f;
    tn_run_of_task(f->run, k, run);
    out->run = run;
    out->task = tasks->n > 0 ? tasks->task[k].name : NULL;
    out->result = tn_evaluation_of_task(f->result, k);
    TN_ASSERT(out->result != NULL);
    if (k > 0 && f->has_intervals) {
        out->has_intervals = false;
        tn_eval_result_intervals(out);
    }
}

void tn_eval_result_interval(tn_text *out, const char *name, const tn_interval *i)
{
    tn_json_open_key(out, name, '{');
    tn_json_f64(out, "value", i->value);
    tn_json_f64(out, "low", i->low);
    tn_json_f64(out, "high", i->high);
    tn_json_f64(out, "variance", i->variance);
    tn_json_close(out, '}');
}

/* ---- slices ---- */

tn_status tn_eval_result_slices(const tn_eval_result *f, uint32_t i, uint32_t max, tn_slice *out,
                                tn_slice_cut *cut, tn_error *err)
{
    TN_ASSERT(i < f->result->n_slices);
    tn_slices *slices = f->result->slices[i];
    tn_slice *all = NULL;
    TN_TRY(TN_ALLOC(all, (size_t)tn_slices_count(slices) + 1, "a report of slices", err));
    uint32_t n_all = 0;
    tn_status status = tn_slices_report(slices, all, &n_all, err);
    if (status == TN_OK) {
        *cut = (tn_slice_cut){0};
        for (uint32_t k = 0; k < n_all; k++) {
            if (k < max || all[k].is_other) {
                TN_ASSERT(cut->n <= max); /* `out` holds one more */
                out[cut->n++] = all[k];
            } else {
                cut->hidden++;
            }
        }
    }
    tn_free(all);
    return status;
}

void tn_eval_result_value(const tn_eval_result *f, uint32_t i, const tn_slice *slice, tn_text *out)
{
    if (slice->is_other) {
        tn_text_adds(out, "other");
        return;
    }
    const tn_slot_spec *spec = tn_schema_slot(f->schema, f->run->eval.slices.item[i]);
    TN_ASSERT(spec != NULL);
    const char *word = tn_sign_word(f->words, i, slice->sign);
    for (const char *c = word; c != NULL && *c != '\0'; c++) {
        bool control = (unsigned char)*c < ' ' || *c == 0x7f;
        tn_text_add(out, control ? "?" : c, 1);
    }
    if (word == NULL) {
        tn_sign_text(spec, slice->sign, out);
    }
}

tn_sheet tn_eval_result_sheet(const tn_eval_result *f, uint32_t i, const tn_slice *slice,
                              uint32_t n, bool full)
{
    const tn_strs names = slice_metrics(f);
    tn_sheet s = {.cols = 2 + names.n, .cell_max = CELL_MAX, .full = full};
    tn_text_addf(&s.cells, "%s%s%s", f->task != NULL ? f->task : "", f->task != NULL ? " by " : "",
                 f->run->eval.slices.item[i]);
    tn_sheet_next(&s);
    tn_sheet_word(&s, "rows");
    for (uint32_t c = 0; c < names.n; c++) {
        tn_sheet_word(&s, names.item[c]);
    }
    for (uint32_t k = 0; k < n; k++) {
        tn_eval_result_value(f, i, &slice[k], &s.cells);
        tn_sheet_next(&s);
        tn_text_add_u64(&s.cells, tn_metrics_rows(slice[k].metrics));
        tn_sheet_next(&s);
        for (uint32_t c = 0; c < names.n; c++) {
            tn_sheet_metric(&s, tn_metrics_get(slice[k].metrics, names.item[c]));
        }
    }
    return s;
}

static tn_status slice_table(const tn_eval_result *f, uint32_t i, tn_text *out, tn_error *err)
{
    tn_slice slice[SLICES_SHOWN + 1];
    tn_slice_cut cut = {0};
    TN_TRY(tn_eval_result_slices(f, i, SLICES_SHOWN, slice, &cut, err));
    tn_sheet s = tn_eval_result_sheet(f, i, slice, cut.n, false);
    tn_text_addc(out, '\n');
    tn_sheet_end(&s, NULL, out);
    if (cut.hidden > 0) {
        tn_text_addf(out, "and %u more values\n", cut.hidden);
    }
    return TN_OK;
}

/* ---- calibration ---- */

static const char *const calibrated_names[] = {"logloss", "copc", "ece"};
enum { CALIBRATED_NAMES = sizeof calibrated_names / sizeof calibrated_names[0] };

void tn_eval_result_calibrated(const tn_evaluation *e, tn_text *out)
{
    if (e->calibrated_by == NULL) {
        return;
    }
    tn_text_addf(out, "calibrated by %s", e->calibrated_by);
    if (e->raw != NULL) {
        tn_text_addf(out, " (raw: logloss %.6f, copc %.6f)", tn_metrics_get(e->raw, "logloss"),
                     tn_metrics_get(e->raw, "copc"));
    }
}

void tn_eval_result_calibrated_json(const tn_evaluation *e, tn_text *out)
{
    if (e->calibrated_by == NULL) {
        return;
    }
    tn_json_str(out, "calibrated_by", e->calibrated_by);
    if (e->raw != NULL) {
        tn_json_f64(out, "raw_logloss", tn_metrics_get(e->raw, "logloss"));
        tn_json_f64(out, "raw_copc", tn_metrics_get(e->raw, "copc"));
    }
}

/* Begins the object of a task, to be ended by the caller. */
static void open_task(const tn_eval_result *f, tn_text *out)
{
    const tn_strs usual = {
        8, (const char *const[]){"auc", "logloss", "copc", "ctr", "pctr", "ne", "rmse", "mae"}};
    const tn_metrics *m = f->result->metrics;
    tn_json_open_key(out, f->task, '{');
    tn_json_u64(out, "rows", tn_metrics_rows(m));
    tn_journal_metrics(out, m, &usual, &f->run->eval.metrics);
    tn_eval_result_calibrated_json(f->result, out);
}

void tn_eval_result_tasks_json(const tn_run *run, const tn_evaluation *e, tn_text *out)
{
    const tn_eval_result all = {.run = run, .result = e};
    for (uint32_t k = 0; k < tn_run_tasks_of(run)->n; k++) {
        tn_run own;
        tn_eval_result f;
        tn_eval_result_of_task(&all, k, &own, &f);
        open_task(&f, out);
        tn_json_close(out, '}');
    }
}

/* The table of one task that was fitted, of one label the whole. */
static void put_calibrated(const tn_eval_result *f, uint32_t k, tn_text *out)
{
    const tn_calibrate *c = f->calibrate;
    const char *method = tn_calibrate_words[c->opts.method];
    TN_ASSERT(k < c->n && c->of[k].after != NULL);
    tn_sheet s = {.cols = 3, .cell_max = CELL_MAX};
    tn_text_addf(&s.cells, "%s%s%s", c->n > 1 ? c->opts.tasks->task[k].name : "",
                 c->n > 1 ? " by " : "", method);
    tn_sheet_next(&s);
    tn_sheet_word(&s, "before");
    tn_sheet_word(&s, "after");
    for (uint32_t i = 0; i < CALIBRATED_NAMES; i++) {
        const tn_metrics *of[2] = {tn_evaluation_task(f->result, k), c->of[k].after};
        tn_sheet_word(&s, calibrated_names[i]);
        for (uint32_t side = 0; side < 2; side++) {
            tn_text_addf(&s.cells, "%.6f", tn_metrics_get(of[side], calibrated_names[i]));
            tn_sheet_next(&s);
        }
    }
    tn_text_addc(out, '\n');
    tn_sheet_end(&s, NULL, out);
}

static void calibration_text(const tn_eval_result *f, tn_text *out)
{
    const tn_calibrate *c = f->calibrate;
    for (uint32_t k = 0; k < c->n; k++) {
        if (c->of[k].after != NULL) {
            put_calibrated(f, k, out);
        }
    }
    tn_calibrate_put(c->map, c->opts.tasks, out);
    tn_text_addf(out, ", fitted on these %" PRIu64 " rows of", c->of[0].rows);
    for (uint32_t i = 0; i < c->opts.data->n; i++) {
        tn_text_addf(out, " %s", c->opts.data->item[i]);
    }
    tn_text_adds(out, ": other rows tell what it is worth");
    tn_calibrate_left(c, out);
    tn_text_addf(out, "\n%s: for tnet-export --calibration\n", c->opts.path);
}

static void add_before_after(const tn_eval_result *f, uint32_t k, tn_text *out)
{
    const tn_metrics *of[2] = {tn_evaluation_task(f->result, k), f->calibrate->of[k].after};
    for (uint32_t side = 0; side < 2; side++) {
        tn_json_open_key(out, side == 0 ? "before" : "after", '{');
        for (uint32_t i = 0; i < CALIBRATED_NAMES && of[1] != NULL; i++) {
            tn_json_f64(out, calibrated_names[i], tn_metrics_get(of[side], calibrated_names[i]));
        }
        tn_json_close(out, '}');
    }
}

static void calibration_json(const tn_eval_result *f, tn_text *out)
{
    const tn_calibrate *c = f->calibrate;
    tn_json_open_key(out, "calibration", '{');
    tn_json_str(out, "method", tn_calibrate_words[c->opts.method]);
    tn_json_str(out, "file", c->opts.path);
    tn_json_u64(out, "fitted_rows", c->of[0].rows);
    add_before_after(f, 0, out);
    for (uint32_t k = 1; k < c->n; k++) {
        if (c->of[k].after != NULL) {
            tn_json_open_key(out, c->opts.tasks->task[k].name, '{');
            tn_json_u64(out, "fitted_rows", c->of[k].rows);
            add_before_after(f, k, out);
            tn_json_close(out, '}');
        }
    }
    tn_json_close(out, '}');
}

/* ---- importance of slots ---- */

/* Slots by what is lost of the first metric, those that matter most first. */
static void importance_text(const tn_importance *found, tn_text *out, uint32_t *order)
{
    tn_sheet s = {.cols = found->metric[1] != NULL ? 3 : 2, .cell_max = CELL_MAX};
    tn_sheet_word(&s, "slot");
    for (uint32_t c = 0; c + 1 < s.cols; c++) {
        tn_text_addf(&s.cells, "%s lost", found->metric[c]);
        tn_sheet_next(&s);
    }
    for (uint32_t i = 0; i < found->n; i++) {
        uint32_t k = i;
        for (; k > 0 && found->slot[order[k - 1]].lost[0] < found->slot[i].lost[0]; k--) {
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
    for (uint32_t i = 0; i < found->n; i++) {
        tn_sheet_word(&s, found->slot[order[i]].slot);
        for (uint32_t c = 0; c + 1 < s.cols; c++) {
            tn_sheet_metric(&s, found->slot[order[i]].lost[c]);
        }
    }
    tn_text_addc(out, '\n');
    tn_sheet_end(&s, NULL, out);
}

static tn_status add_importance(const tn_importance *found, tn_text *out, tn_error *err)
{
    uint32_t *order = NULL;
    TN_TRY(TN_ALLOC(order, found->n, "importance of slots", err));
    importance_text(found, out, order);
    tn_free(order);
    return TN_OK;
}

static void importance_json(const tn_importance *found, tn_text *out)
{
    tn_json_open_key(out, "importance", '[');
    for (uint32_t i = 0; i < found->n; i++) {
        tn_json_open(out, '{');
        tn_json_str(out, "slot", found->slot[i].slot);
        for (uint32_t c = 0; c < TN_IMPORTANCE_METRICS && found->metric[c] != NULL; c++) {
            tn_json_f64(out, found->metric[c], found->slot[i].lost[c]);
        }
        tn_json_close(out, '}');
    }
    tn_json_close(out, ']');
}

/* ---- all of it ---- */

static void interval_line(const tn_eval_result *f, const char *how, const tn_interval *i,
                          tn_text *out)
{
    if (!isnan(i->low) && !isnan(i->high)) {
        tn_text_addf(out, "%s%sauc, .95 interval by %s: %.6f .. %.6f\n",
                     f->task != NULL ? f->task : "", f->task != NULL ? "." : "", how, i->low,
                     i->high);
    }
}

/* All of one task, or label, but its column of the table. */
static tn_status put_rest(const tn_eval_result *f, tn_text *out, tn_error *err)
{
    const tn_evaluation *e = f->result;
    if (e->calibrated_by != NULL) {
        tn_text_addf(out, "%s%s", f->task != NULL ? f->task : "", f->task != NULL ? ": " : "");
        tn_eval_result_calibrated(e, out);
        tn_text_addc(out, '\n');
    }
    if (f->has_intervals) {
        interval_line(f, "DeLong", &f->delong, out);
        interval_line(f, "bootstrap", &f->bootstrap, out);
    }
    for (uint32_t i = 0; i < e->n_slices; i++) {
        TN_TRY(slice_table(f, i, out, err));
    }
    return TN_OK;
}

void tn_eval_result_columns(const tn_run *run, const char *data, const char *note,
                            const tn_evaluation *e, tn_result_columns *out)
{
    const tn_tasks *tasks = tn_run_tasks_of(run);
    for (uint32_t k = 0; k < tn_tasks_count(tasks) && out->n < TN_RESULTS_MAX; k++) {
        tn_text name = {0};
        const char *dot = tasks->n > 0 ? "." : "";
        tn_text_addf(&name, "%s%s%s%s", data, dot, tasks->n > 0 ? tasks->task[k].name : "", note);
        out->of[out->n++] = (tn_result){tn_tree_text(out->names, tn_text_str(&name), name.size),
                                        tn_evaluation_task(e, k)};
        tn_text_done(&name);
    }
}

static void put_table(const tn_eval_result *f, tn_text *out)
{
    const char *room[TN_METRIC_NAMES_MAX];
    tn_result_columns columns = {.names = tn_arena_new(1 << 10)};
    const tn_strs metrics = tn_all_metric_names(f->run, room);
    tn_eval_result_columns(f->run, f->data, "", f->result, &columns);
    tn_results_text(columns.of, columns.n, &metrics, out);
    tn_arena_free(columns.names);
}

tn_status tn_eval_result_text(const tn_eval_result *f, tn_text *out, tn_error *err)
{
    const tn_evaluation *e = f->result;
    if (f->schema->label->none) {
        tn_text_addf(out, "%llu rows without labels\n", (unsigned long long)e->counts.records);
        return TN_OK;
    }
    put_table(f, out);
    for (uint32_t k = 0; k <= e->n_more; k++) {
        tn_run run;
        tn_eval_result one;
        tn_eval_result_of_task(f, k, &run, &one);
        TN_TRY(put_rest(&one, out, err));
    }
    if (f->importance != NULL) {
        TN_TRY(add_importance(f->importance, out, err));
    }
    if (f->calibrate != NULL) {
        calibration_text(f, out);
    }
    return tn_text_check(out, "results", err);
}

/* "<slot>":[{"sign":"<16 hex>","value":"<its word>","rows":..},..,{"sign":null,..}]: the last is
 * everything else. */
static tn_status add_slices(const tn_eval_result *f, uint32_t i, tn_text *t, tn_error *err)
{
    tn_slice slice[TN_EVAL_SLICES + 1];
    tn_slice_cut cut = {0};
    const tn_strs names = slice_metrics(f);
    TN_TRY(tn_eval_result_slices(f, i, TN_EVAL_SLICES, slice, &cut, err));
    tn_json_open_key(t, f->run->eval.slices.item[i], '[');
    for (uint32_t k = 0; k < cut.n; k++) {
        const tn_slice *s = &slice[k];
        const char *word = s->is_other ? NULL : tn_sign_word(f->words, i, s->sign);
        tn_json_open(t, '{');
        if (s->is_other) {
            tn_json_str(t, "sign", NULL);
        } else {
            tn_json_hex64(t, "sign", s->sign);
        }
        if (word != NULL) {
            tn_json_str(t, "value", word);
        }
        tn_json_u64(t, "rows", tn_metrics_rows(s->metrics));
        tn_journal_metrics(t, s->metrics, &names, &(tn_strs){0});
        tn_json_close(t, '}');
    }
    tn_json_close(t, ']');
    return TN_OK;
}

static tn_status add_all_slices(const tn_eval_result *f, tn_text *out, tn_error *err)
{
    tn_json_open_key(out, "slices", '{');
    for (uint32_t i = 0; i < f->result->n_slices; i++) {
        TN_TRY(add_slices(f, i, out, err));
    }
    tn_json_close(out, '}');
    return TN_OK;
}

static void add_intervals(const tn_eval_result *f, tn_text *out)
{
    if (f->has_intervals) {
        tn_eval_result_interval(out, "auc_delong", &f->delong);
        tn_eval_result_interval(out, "auc_bootstrap", &f->bootstrap);
    }
}

static tn_status add_tasks(const tn_eval_result *f, tn_text *out, tn_error *err)
{
    for (uint32_t k = 0; k < tn_run_tasks_of(f->run)->n; k++) {
        tn_run run;
        tn_eval_result one;
        tn_eval_result_of_task(f, k, &run, &one);
        open_task(&one, out);
        TN_TRY(one.result->n_slices > 0 ? add_all_slices(&one, out, err) : TN_OK);
        add_intervals(&one, out);
        tn_json_close(out, '}');
    }
    return TN_OK;
}

tn_status tn_eval_result_members(const tn_eval_result *f, bool best, tn_text *out, tn_error *err)
{
    const tn_strs usual = {10, (const char *const[]){"auc", "logloss", "copc", "ctr", "pctr", "ne",
                                                     "brier", "ece", "pr_auc", "gauc"}};
    const tn_metrics *m = f->result->metrics;
    tn_json_str(out, "data", f->data);
    tn_json_u64(out, "rows", tn_metrics_rows(m));
    tn_journal_loss(out, tn_run_loss_value(f->run, m), f->run->run.deterministic);
    tn_journal_metrics(out, m, &usual, &f->run->eval.metrics);
    tn_eval_result_calibrated_json(f->result, out);
    TN_TRY(add_tasks(f, out, err));
    TN_TRY(add_all_slices(f, out, err));
    tn_json_bool(out, "best", best);
    return TN_OK;
}

tn_status tn_eval_result_json(const tn_eval_result *f, tn_text *out, tn_error *err)
{
    tn_journal_head(out, "eval", &f->at);
    TN_TRY(tn_eval_result_members(f, false, out, err));
    add_intervals(f, out);
    if (f->importance != NULL) {
        importance_json(f->importance, out);
    }
    if (f->calibrate != NULL) {
        calibration_json(f, out);
    }
    tn_text_adds(out, f->more != NULL ? f->more : "");
    tn_json_str(out, "model", f->source);
    tn_json_str(out, "model_id", f->model_id);
    tn_json_str(out, "config_hash", f->config_hash);
    tn_json_u64(out, "bad_records", f->result->counts.bad);
    tn_json_f64(out, "seconds", f->result->seconds);
    tn_json_close(out, '}');
    tn_text_addc(out, '\n');
    return tn_text_check(out, "results", err);
}
