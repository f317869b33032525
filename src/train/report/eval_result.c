/* eval_result.c - an evaluation as tables and as JSON. */
#include "train/report/eval_result.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "io/schema/schema.h"
#include "train/config/run.h"
#include "train/report/metrics_jsonl.h"
#include "train/report/text_tables.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SLICES_SHOWN = 20, SLICE_COLS = 7, CELL_SIZE = 40 };

void tn_eval_result_intervals(tn_eval_result *f)
{
    TN_ASSERT(!f->has_intervals);
    if (f->run->eval.auc == 0 || f->schema->label->none) {
        return;
    }
    f->delong = tn_interval_delong(f->result->metrics);
    f->bootstrap = tn_interval_bootstrap(f->result->metrics, f->run->run.seed);
    f->has_intervals = true;
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

static const tn_slot_spec *find_slot(const tn_schema *schema, const char *name)
{
    for (uint32_t i = 0; i < schema->n_slots; i++) {
        if (strcmp(schema->slot[i]->name, name) == 0) {
            return schema->slot[i];
        }
    }
    return NULL;
}

void tn_eval_result_value(const tn_eval_result *f, uint32_t i, const tn_slice *slice, tn_text *out)
{
    if (slice->is_other) {
        tn_text_adds(out, "other");
        return;
    }
    const tn_slot_spec *spec = find_slot(f->schema, f->run->eval.slices.item[i]);
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

/* A grid that is filled cell by cell; texts live in one block. */
typedef struct grid {
    char (*text)[CELL_SIZE];
    const char **cell;
    uint32_t n;
} grid;

static void put(grid *g, tn_text *t)
{
    size_t size = t->size < CELL_SIZE ? t->size : CELL_SIZE - 1;
    memcpy(g->text[g->n], tn_text_str(t), size);
    g->text[g->n][size] = '\0';
    g->cell[g->n] = g->text[g->n];
    g->n++;
    tn_text_clear(t);
}

static void put_slice(grid *g, const tn_eval_result *f, uint32_t i, const tn_slice *slice,
                      tn_text *t)
{
    static const char *const names[] = {"auc", "logloss", "copc", "ctr", "pctr"};
    tn_eval_result_value(f, i, slice, t);
    put(g, t);
    tn_text_add_u64(t, tn_metrics_rows(slice->metrics));
    put(g, t);
    for (uint32_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        double value = tn_metrics_get(slice->metrics, names[k]);
        if (isnan(value)) {
            tn_text_adds(t, "n/a");
        } else {
            tn_text_addf(t, "%.6f", value);
        }
        put(g, t);
    }
}

static tn_status slice_table(const tn_eval_result *f, uint32_t i, tn_text *out, tn_error *err)
{
    tn_slice slice[SLICES_SHOWN + 1];
    tn_slice_cut cut = {0};
    TN_TRY(tn_eval_result_slices(f, i, SLICES_SHOWN, slice, &cut, err));
    const size_t cells = (size_t)SLICE_COLS * (SLICES_SHOWN + 2);
    grid g = {.text = tn_alloc(cells, CELL_SIZE, "cells of a table"),
              .cell = tn_alloc(cells, sizeof(const char *), "a table")};
    const char *const heads[SLICE_COLS] = {
        f->run->eval.slices.item[i], "rows", "auc", "logloss", "copc", "ctr", "pctr"};
    tn_text t = {0};
    for (uint32_t c = 0; c < SLICE_COLS; c++) {
        tn_text_adds(&t, heads[c]);
        put(&g, &t);
    }
    for (uint32_t k = 0; k < cut.n; k++) {
        put_slice(&g, f, i, &slice[k], &t);
    }
    TN_ASSERT(g.n == (cut.n + 1) * SLICE_COLS);
    tn_text_addc(out, '\n');
    tn_grid_text(g.cell, cut.n + 1, SLICE_COLS, out);
    if (cut.hidden > 0) {
        tn_text_addf(out, "and %u more values\n", cut.hidden);
    }
    tn_text_done(&t);
    tn_free(g.text);
    tn_free(g.cell);
    return TN_OK;
}

/* ---- calibration ---- */

static const char *const calibrated_names[] = {"logloss", "copc", "ece"};
enum { CALIBRATED_NAMES = sizeof calibrated_names / sizeof calibrated_names[0] };

static void map_line(const tn_calibration *map, tn_text *out)
{
    if (map->kind == TN_CALIBRATION_PLATT) {
        tn_text_addf(out, "p = sigmoid(%.6g z %c %.6g)", map->a, map->b < 0 ? '-' : '+',
                     fabs(map->b));
    } else {
        tn_text_addf(out, "p linear between %u knots", map->n);
    }
}

static void calibration_text(const tn_eval_result *f, tn_text *out)
{
    const tn_calibrate *c = f->calibrate;
    char value[CALIBRATED_NAMES][2][CELL_SIZE];
    const char *cell[CALIBRATED_NAMES + 1][3] = {
        {tn_calibrate_words[c->opts.method], "before", "after"}};
    for (uint32_t i = 0; i < CALIBRATED_NAMES; i++) {
        const char *name = calibrated_names[i];
        const double of[2] = {tn_metrics_get(f->result->metrics, name),
                              tn_metrics_get(c->after, name)};
        cell[i + 1][0] = name;
        for (uint32_t k = 0; k < 2; k++) {
            (void)snprintf(value[i][k], CELL_SIZE, "%.6f", of[k]);
            cell[i + 1][k + 1] = value[i][k];
        }
    }
    tn_text_addc(out, '\n');
    tn_grid_text(cell[0], CALIBRATED_NAMES + 1, 3, out);
    map_line(&c->map, out);
    tn_text_addf(out, ", fitted on these %" PRIu64 " rows of", c->rows);
    for (uint32_t i = 0; i < c->opts.data->n; i++) {
        tn_text_addf(out, " %s", c->opts.data->item[i]);
    }
    tn_text_addf(out, ": other rows tell what it is worth\n%s: for tnet-export --calibration\n",
                 c->opts.path);
}

static void calibration_json(const tn_eval_result *f, tn_text *out)
{
    const tn_calibrate *c = f->calibrate;
    const tn_metrics *of[2] = {f->result->metrics, c->after};
    tn_json_open_key(out, "calibration", '{');
    tn_json_str(out, "method", tn_calibrate_words[c->opts.method]);
    tn_json_str(out, "file", c->opts.path);
    tn_json_u64(out, "fitted_rows", c->rows);
    for (uint32_t k = 0; k < 2; k++) {
        tn_json_open_key(out, k == 0 ? "before" : "after", '{');
        for (uint32_t i = 0; i < CALIBRATED_NAMES; i++) {
            tn_json_f64(out, calibrated_names[i], tn_metrics_get(of[k], calibrated_names[i]));
        }
        tn_json_close(out, '}');
    }
    tn_json_close(out, '}');
}

/* ---- all of it ---- */

static void interval_line(const char *how, const tn_interval *i, tn_text *out)
{
    if (!isnan(i->low) && !isnan(i->high)) {
        tn_text_addf(out, "auc, .95 interval by %s: %.6f .. %.6f\n", how, i->low, i->high);
    }
}

tn_status tn_eval_result_text(const tn_eval_result *f, tn_text *out, tn_error *err)
{
    const tn_evaluation *e = f->result;
    if (f->schema->label->none) {
        tn_text_addf(out, "%llu rows without labels\n", (unsigned long long)e->counts.records);
        return TN_OK;
    }
    tn_result result = {f->data, e->metrics};
    tn_results_text(&result, 1, f->run->eval.metrics.item, f->run->eval.metrics.n, out);
    if (f->has_intervals) {
        interval_line("DeLong", &f->delong, out);
        interval_line("bootstrap", &f->bootstrap, out);
    }
    for (uint32_t i = 0; i < e->n_slices; i++) {
        TN_TRY(slice_table(f, i, out, err));
    }
    if (f->calibrate != NULL) {
        calibration_text(f, out);
    }
    return tn_text_check(out, "results", err);
}

static void add_interval(tn_text *out, const char *name, const tn_interval *i)
{
    tn_json_open_key(out, name, '{');
    tn_json_f64(out, "low", i->low);
    tn_json_f64(out, "high", i->high);
    tn_json_f64(out, "variance", i->variance);
    tn_json_close(out, '}');
}

tn_status tn_eval_result_json(const tn_eval_result *f, tn_text *out, tn_error *err)
{
    const tn_strs *names = &f->run->eval.slices;
    const tn_evaluation *e = f->result;
    tn_journal_slices *slices = NULL;
    TN_TRY(TN_ALLOC(slices, (size_t)e->n_slices + 1, "slices", err));
    for (uint32_t i = 0; i < e->n_slices; i++) {
        slices[i] = (tn_journal_slices){names->item[i], e->slices[i], f->words, i};
    }
    tn_journal_at at = {.step = f->step, .samples = f->samples, .epoch = f->epoch};
    tn_journal_eval_record record = {.data = f->data,
                                     .metrics = e->metrics,
                                     .loss = tn_metrics_get(e->metrics, "logloss"),
                                     .more = f->run->eval.metrics.item,
                                     .n_more = f->run->eval.metrics.n,
                                     .slices = slices,
                                     .n_slices = e->n_slices};
    tn_json_open(out, '{');
    tn_status status = tn_journal_eval_members(&at, &record, f->run->run.deterministic, out, err);
    if (status == TN_OK && f->has_intervals) {
        add_interval(out, "auc_delong", &f->delong);
        add_interval(out, "auc_bootstrap", &f->bootstrap);
    }
    if (f->calibrate != NULL) {
        calibration_json(f, out);
    }
    tn_json_str(out, "model", f->source);
    tn_json_str(out, "model_id", f->model_id);
    tn_json_str(out, "config_hash", f->config_hash);
    tn_json_u64(out, "bad_records", e->counts.bad);
    tn_json_f64(out, "seconds", e->seconds);
    tn_json_close(out, '}');
    tn_text_addc(out, '\n');
    tn_free(slices);
    return status == TN_OK ? tn_text_check(out, "results", err) : status;
}
