/* htmlreport.c - the page: facts, tables, and the figures between them. */
#include "train/report/htmlreport.h"

#include "base/file/output_file.h"
#include "io/schema/schema.h"
#include "metrics/calibration.h"
#include "train/config/days.h"
#include "train/config/run.h"
#include "train/report/comparison.h"
#include "train/report/history.h"
#include "train/report/htmlfigures.h"
#include "train/report/text_tables.h"

#include <math.h>
#include <string.h>

enum { DECILES = 10, SLICES_SHOWN = 50 };

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1c2430;--soft:#5a6675;--page:#fff;--line:#e3e7ec;"
    "--grid:#eceff3;--frame:#c3cbd5;--box:#f5f7f9;--first:#1f6fb2;--second:#c2570c;--pale:#b9d3ea}"
    "@media (prefers-color-scheme:dark){:root{--ink:#e3e8ef;--soft:#a3afbd;--page:#14181e;"
    "--line:#2b333d;--grid:#242b34;--frame:#4a5563;--box:#1c222a;--first:#63aeea;"
    "--second:#f0944d;--pale:#34506b}}"
    "body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--page);"
    "max-width:60em;margin:2em auto;padding:0 1em}"
    "h1{font-size:1.5em;margin-bottom:.2em}h2{font-size:1.15em;margin-top:2em}"
    "h1,code{overflow-wrap:anywhere}"
    "table{border-collapse:collapse;margin:.5em 0}.wide{overflow-x:auto}"
    "th,td{padding:.2em 1em .2em 0;text-align:left;vertical-align:top}"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}"
    "tr{border-bottom:1px solid var(--line)}th{font-weight:600}"
    "td.help{color:var(--soft)}code,pre{font:13px/1.4 ui-monospace,monospace}"
    "pre{background:var(--box);padding:1em;overflow-x:auto}"
    ".figures{display:flex;flex-wrap:wrap;gap:1em}"
    "svg{max-width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:var(--soft)}"
    "svg .title{font-size:13px;font-weight:600;fill:var(--ink)}"
    "svg path{fill:none}.grid{stroke:var(--grid)}.frame{fill:none;stroke:var(--frame)}"
    ".ideal,.resumed{stroke:var(--soft);stroke-dasharray:4 3}.resumed{stroke-dasharray:1 3}"
    "circle.ideal,circle.resumed{fill:var(--soft)}"
    ".curve{stroke:var(--first);stroke-width:2}.thin{stroke:var(--first);stroke-width:1}"
    ".second{stroke:var(--second)}.dot{fill:var(--first);fill-opacity:.8}"
    ".dot.second{fill:var(--second);stroke:none}.others{fill:var(--pale)}.clicks{fill:var(--first)}"
    "@media (max-width:40em){.wide{font-size:13px}.wide svg{max-width:none}.wide th,.wide "
    "td{padding-right:.6em}}"
    ".wide th{white-space:nowrap}"
    "@media print{body{max-width:none;margin:0}svg,tr{break-inside:avoid}"
    "h2,tr:first-child{break-after:avoid}.figures svg{width:48%}.wide{overflow:visible;"
    "font-size:11px}.wide th,.wide td{padding-right:.7em}pre{white-space:pre-wrap}}";

static void fact(tn_text *out, const char *name, const char *value)
{
    if (value != NULL) {
        tn_text_addf(out, "<tr><th>%s</th><td><code>", name);
        tn_html_text(out, value);
        tn_text_adds(out, "</code></td></tr>\n");
    }
}

/* The files of a name such as `valid`, else what was given. */
static void put_paths(const tn_eval_result *f, tn_text *out)
{
    const tn_data_opts *d = &f->run->data;
    const tn_strs *paths = strcmp(f->data, "valid") == 0  ? &d->valid
                           : strcmp(f->data, "test") == 0 ? &d->test
                                                          : &(tn_strs){1, &f->data};
    for (uint32_t i = 0; i < paths->n; i++) {
        tn_text_adds(out, "<code>");
        tn_html_text(out, paths->item[i]);
        tn_text_adds(out, "</code> ");
    }
}

/* "2026-11-29 12:40" */
static void put_time(double when, tn_text *out)
{
    char day[TN_DAY_TEXT];
    const uint64_t minutes = (uint64_t)when / 60;
    tn_day_text((uint32_t)(minutes / 60 / 24), day);
    tn_text_addf(out, "%s %02u:%02u", day, (unsigned)(minutes / 60 % 24), (unsigned)(minutes % 60));
}

static void number_cell(tn_text *out, uint64_t rows, double value)
{
    if (isfinite(value)) {
        tn_text_addf(out, "<td class=\"n\">%.*f</td>", tn_decimals(rows, value), value);
    } else {
        tn_text_adds(out, "<td class=\"n\">n/a</td>");
    }
}

static void put_facts(const tn_eval_result *f, double when, tn_text *out)
{
    tn_text_adds(out, "<h1>");
    tn_html_text(out, f->run->run.name);
    tn_text_adds(out, " on ");
    tn_html_text(out, f->data);
    tn_text_adds(out, "</h1>\n<div class=\"wide\"><table>\n");
    fact(out, "model", f->run->model.choice != NULL ? f->run->model.choice->name : NULL);
    fact(out, "weights", f->source);
    fact(out, "model id", f->model_id);
    if (f->config_hash != NULL) {
        tn_text_addf(out,
                     "<tr><th>configuration</th><td><code title=\"%s\">%.12s</code></td></tr>\n",
                     f->config_hash, f->config_hash);
    }
    tn_text_addf(out, "<tr><th>trained</th><td>%llu steps, %llu records",
                 (unsigned long long)f->at.step, (unsigned long long)f->at.samples);
    if (when > 0 && when < 1e11) {
        tn_text_adds(out, ", until ");
        put_time(when, out);
        tn_text_adds(out, " UTC");
    }
    tn_text_adds(out, "</td></tr>\n<tr><th>data</th><td>");
    put_paths(f, out);
    tn_text_addf(out, "%llu records of %u file%s, %llu bad, %.1f s</td></tr>\n",
                 (unsigned long long)f->result->counts.records, f->result->counts.sources,
                 f->result->counts.sources == 1 ? "" : "s",
                 (unsigned long long)f->result->counts.bad, f->result->seconds);
    if (f->result->calibrated_by != NULL) {
        tn_text_adds(out, "<tr><th>scores</th><td>");
        tn_eval_result_calibrated(f->result, out);
        tn_text_adds(out, "</td></tr>\n");
    }
    tn_text_adds(out, "<tr><th>made by</th><td>TNet " TN_VERSION "</td></tr>\n</table></div>\n");
}

static void interval_row(tn_text *out, uint64_t rows, const char *how, const tn_interval *i)
{
    if (!isnan(i->low)) {
        const int decimals = tn_decimals(rows, i->value);
        tn_text_addf(out,
                     "<tr><td>auc, .95</td><td class=\"n\">%.*f to %.*f</td>"
                     "<td class=\"help\">interval by %s</td></tr>\n",
                     decimals, i->low, decimals, i->high, how);
    }
}

static void put_metrics(const tn_eval_result *f, tn_text *out)
{
    const tn_strs usual = {10, (const char *const[]){"auc", "logloss", "ne", "ctr", "pctr", "copc",
                                                     "brier", "ece", "pr_auc", "rmse"}};
    const tn_metrics *m = f->result->metrics;
    const uint64_t rows = tn_metrics_rows(m);
    tn_text_adds(out, "<h2>Metrics</h2>\n<div class=\"wide\"><table>\n<tr><th>metric</th><th "
                      "class=\"n\">value</th>"
                      "<th>meaning</th></tr>\n");
    tn_text_addf(out,
                 "<tr><td>rows</td><td class=\"n\">%llu</td><td class=\"help\">of weight above 0"
                 "</td></tr>\n",
                 (unsigned long long)rows);
    for (const tn_metric *const *metric = tn_all_metrics; *metric != NULL; metric++) {
        const bool fits = tn_metric_fits((*metric)->name, tn_metrics_target(m));
        if (!fits || (!tn_strs_has(&usual, (*metric)->name) &&
                      !tn_strs_has(&f->run->eval.metrics, (*metric)->name))) {
            continue;
        }
        tn_text_addf(out, "<tr><td>%s</td>", (*metric)->name);
        number_cell(out, rows, tn_metrics_get(m, (*metric)->name));
        tn_text_adds(out, "<td class=\"help\">");
        tn_html_text(out, (*metric)->help);
        tn_text_adds(out, "</td></tr>\n");
    }
    if (f->has_intervals) {
        interval_row(out, rows, "DeLong", &f->delong);
        interval_row(out, rows, "bootstrap", &f->bootstrap);
    }
    tn_text_adds(out, "</table></div>\n");
}

/* Curves of ranks; of probabilities also how they are calibrated. */
static void put_figures(const tn_metrics *m, tn_text *out)
{
    const tn_target target = tn_metrics_target(m);
    if (!tn_metric_fits("auc", target)) {
        return;
    }
    tn_text_adds(out, "<h2>Curves</h2>\n<div class=\"figures\">\n");
    tn_figure_roc(m, out);
    tn_figure_precision(m, out);
    if (target == TN_TARGET_CLICK) {
        tn_figure_reliability(m, NULL, out);
        tn_figure_scores(m, out);
    }
    tn_text_adds(out, "</div>\n");
}

static void put_deciles(const tn_metrics *m, tn_text *out)
{
    static const char *const head[] = {"from",     "to", "rows", "ctr",
                                       ".95 from", "to", "pctr", "copc"};
    tn_reliability bin[DECILES];
    if (tn_metrics_target(m) != TN_TARGET_CLICK) {
        return;
    }
    uint32_t n = tn_reliability_of_mass(m, DECILES, bin);
    TN_ASSERT(n <= DECILES);
    tn_sheet s = {.cols = sizeof head / sizeof head[0], .cell_max = TN_CELL_MAX};
    for (uint32_t i = 0; i < s.cols; i++) {
        tn_sheet_word(&s, head[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        s.rows = (uint64_t)bin[i].weight + 1;
        const tn_interval ctr = tn_interval_wilson(bin[i].ctr, bin[i].weight);
        tn_sheet_metric(&s, bin[i].low);
        tn_sheet_metric(&s, bin[i].high);
        tn_text_addf(&s.cells, "%.0f", bin[i].weight);
        tn_sheet_next(&s);
        tn_sheet_metric(&s, bin[i].ctr);
        tn_sheet_metric(&s, ctr.low);
        tn_sheet_metric(&s, ctr.high);
        tn_sheet_metric(&s, bin[i].pctr);
        tn_sheet_metric(&s, bin[i].copc);
    }
    tn_text_adds(out, "<h2>Calibration by deciles of the score</h2>\n");
    tn_sheet_end(&s, true, out);
}

static tn_status put_slot(const tn_eval_result *f, uint32_t i, tn_text *out, tn_error *err)
{
    tn_slice slice[SLICES_SHOWN + 1];
    const char *label[SLICES_SHOWN + 1];
    size_t at[SLICES_SHOWN + 1];
    tn_slice_cut cut = {0};
    TN_TRY(tn_eval_result_slices(f, i, SLICES_SHOWN, slice, &cut, err));
    TN_ASSERT(cut.n <= SLICES_SHOWN + 1);
    tn_text labels = {0};
    for (uint32_t k = 0; k < cut.n; k++) {
        at[k] = labels.size;
        tn_eval_result_value(f, i, &slice[k], &labels);
        tn_text_addc(&labels, '\0');
    }
    for (uint32_t k = 0; k < cut.n; k++) {
        label[k] = tn_text_str(&labels) + at[k];
    }
    tn_status status = tn_text_check(&labels, "values of a slot", err);
    if (status == TN_OK) {
        tn_text_adds(out, "<h2>By values of ");
        tn_html_text(out, f->run->eval.slices.item[i]);
        tn_text_adds(out, "</h2>\n");
        if (tn_metrics_target(f->result->metrics) == TN_TARGET_CLICK) {
            tn_text_adds(out, "<div class=\"wide\">");
            tn_figure_copc(slice, label, cut.n, out);
            tn_text_adds(out, "</div>\n");
        }
        tn_sheet s = tn_eval_result_sheet(f, i, slice, cut.n, true);
        tn_sheet_end(&s, true, out);
        if (cut.hidden > 0) {
            tn_text_addf(out, "<p>and %u more values</p>\n", cut.hidden);
        }
    }
    tn_text_done(&labels);
    return status;
}

static tn_status put_results(const tn_eval_result *f, tn_text *out, tn_error *err)
{
    put_metrics(f, out);
    put_figures(f->result->metrics, out);
    put_deciles(f->result->metrics, out);
    TN_TRY(f->compare != NULL ? tn_comparison_html(f, out, err) : TN_OK);
    for (uint32_t i = 0; i < f->result->n_slices; i++) {
        TN_TRY(put_slot(f, i, out, err));
    }
    return TN_OK;
}

tn_status tn_html_report(const tn_eval_result *f, const char *config, tn_text *out, tn_error *err)
{
    TN_ASSERT(f->schema->label->none || f->result->metrics != NULL);
    tn_text past = {0};
    double when = 0;
    tn_status status = tn_history_html(f->journal, f->at.step, &past, &when, err);
    tn_text_adds(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
    tn_html_text(out, f->run->run.name);
    tn_text_addf(out, ": evaluation</title>\n<style>%s</style>\n</head>\n<body>\n", style);
    put_facts(f, when, out);
    if (status == TN_OK && !f->schema->label->none) {
        status = put_results(f, out, err);
    }
    tn_text_add(out, tn_text_str(&past), past.size);
    tn_text_done(&past);
    if (config != NULL) {
        tn_text_adds(out, "<h2>Configuration</h2>\n<details><summary>resolved</summary>\n<pre>");
        tn_html_text(out, config);
        tn_text_adds(out, "</pre></details>\n");
    }
    tn_text_adds(out, "</body>\n</html>\n");
    return status == TN_OK ? tn_text_check(out, "the report", err) : status;
}

tn_status tn_html_report_write(const tn_eval_result *f, const char *config, const char *path,
                               tn_error *err)
{
    tn_text page = {0};
    tn_status status = tn_html_report(f, config, &page, err);
    if (status == TN_OK) {
        status = tn_output_put(path, tn_text_str(&page), page.size, &(tn_output_with){.tell = true},
                               err);
    }
    tn_text_done(&page);
    return status;
}
