/* tune.c - trials, rungs and who goes on. */
#include "extra/tune/tune.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/file/file.h"
#include "base/thread/threads.h"
#include "config/field.h"
#include "config/fieldtree.h"
#include "extra/tune/tune_private.h"
#include "io/read/row_scan.h"
#include "metrics/metrics.h"
#include "train/config/run_bind.h"
#include "train/report/text_tables.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Values to try where the configuration has none; a model takes the options that it has. */
#define USUAL_SPACE                                                                                \
    "{train.optimizer.lr: {log: [3e-4, 3e-3]}, train.batch: [256, 512, 1024], "                    \
    "train.reduce_on_plateau.factor: [~, 0.1], embedding.dim: [8, 16, 32], "                       \
    "model.hidden: [[128, 64], [400, 400], [400, 400, 400]], model.dropout: [0, 0.2, 0.4]}"

/* ---- trials ---- */

double tn_rung_share(const tn_tune *t, uint32_t rung)
{
    return pow(t->section->eta, -(double)(t->rungs - 1 - rung));
}

const tn_tune_result *tn_trial_result(const tn_trial *one, uint32_t rung)
{
    const uint32_t at = rung == TN_LAST_RUNG ? one->reached - 1 : rung;
    return at < one->reached ? &one->result[at] : NULL;
}

bool tn_trial_has_value(const tn_tune_result *r)
{
    return r != NULL && r->failure == NULL && !isnan(r->value);
}

/* Returns how far a value is from the best that there could be. */
static double badness(const tn_tune *t, double value)
{
    return t->metric->best == TN_BEST_LARGEST       ? -value
           : t->metric->best == TN_BEST_NEAREST_ONE ? fabs(value - 1)
                                                    : value;
}

/* Returns whether trial a is better than trial b, of a lower number: it came further, or reached
 * the better value there. */
static bool is_better(const tn_tune *t, uint32_t a, uint32_t b, uint32_t rung)
{
    const tn_tune_result *ra = tn_trial_result(t->trial[a], rung);
    const tn_tune_result *rb = tn_trial_result(t->trial[b], rung);
    if (!tn_trial_has_value(ra) || !tn_trial_has_value(rb)) {
        return tn_trial_has_value(ra);
    }
    return ra->rung != rb->rung ? ra->rung > rb->rung
                                : badness(t, ra->value) < badness(t, rb->value);
}

uint32_t *tn_tune_order(const tn_tune *t, uint32_t n, uint32_t rung)
{
    uint32_t *order = TN_NEW_ARRAY(t->arena, uint32_t, (size_t)n + 1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at > 0 && is_better(t, i, order[at - 1], rung); at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    return order;
}

uint32_t tn_tune_best(const tn_tune *t)
{
    const uint32_t first = tn_tune_order(t, t->n, TN_LAST_RUNG)[0];
    return tn_trial_has_value(tn_trial_result(t->trial[first], TN_LAST_RUNG)) ? first : UINT32_MAX;
}

tn_strs tn_tune_values(const tn_tune *t, uint32_t trial)
{
    return t->trial[trial]->values;
}

const char *tn_tune_folder(const tn_tune *t, uint32_t trial, tn_text *out)
{
    tn_text_clear(out);
    tn_text_addf(out, "%s/trial-%" PRIu32, t->dir, trial);
    return tn_text_str(out);
}

/* ---- opening ---- */

/* The overrides of the command line, and then those of a trial. */
static tn_strs joined(const tn_tune *t, const tn_strs *values)
{
    const tn_strs *given = &t->opts.overrides;
    const char **item = TN_NEW_ARRAY(t->arena, const char *, (size_t)given->n + values->n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < given->n; i++) {
        item[n++] = given->item[i];
    }
    for (uint32_t i = 0; i < values->n; i++) {
        item[n++] = values->item[i];
    }
    return (tn_strs){n, item};
}

/* Loads the configuration of a trial as tnet-train will, and takes its batch. */
static tn_status check_trial(const tn_tune *t, tn_trial *one, uint32_t number, tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 18);
    tn_setup s = {.arena = arena};
    s.binder = (tn_binder){.arena = arena, .diag = &s.diag};
    const tn_setup_in in = {
        .path = t->opts.config, .env = t->opts.env, .overrides = joined(t, &one->values)};
    tn_status status = tn_setup_load(&s, &in, err);
    if (status == TN_E_CONFIG && s.diag.n_errors > 0) {
        status = tn_fail(err, status, "trial %" PRIu32 " cannot be:\n%s", number,
                         tn_text_str(&s.diag.text));
    }
    if (status == TN_OK) {
        const uint32_t batch = s.run.train.batch;
        one->batch = batch != TN_AUTO ? batch : t->setup->run.train.batch;
    }
    tn_setup_done(&s);
    tn_arena_free(arena);
    return status;
}

static bool is_new(const tn_tune *t, const tn_strs *values)
{
    bool found = false;
    for (uint32_t i = 0; i < t->n && !found; i++) {
        const tn_strs *other = &t->trial[i]->values;
        found = other->n == values->n;
        for (uint32_t k = 0; k < values->n && found; k++) {
            found = strcmp(other->item[k], values->item[k]) == 0;
        }
    }
    return !found;
}

tn_status tn_tune_add(tn_tune *t, const tn_strs *values, tn_error *err)
{
    tn_trial *one = TN_NEW(t->arena, tn_trial);
    one->values = *values;
    TN_TRY(check_trial(t, one, t->n, err));
    t->trial[t->n++] = one;
    return TN_OK;
}

/* Draws the trials. Those that have been drawn already are left out: lists may have fewer
 * combinations than there are to be trials. */
static tn_status draw_trials(tn_tune *t, tn_error *err)
{
    const tn_tune_section *o = t->section;
    const bool grid = o->method == TN_GRID;
    const uint32_t all = grid ? tn_space_combinations(&t->space) : o->trials;
    if (grid && all == 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "tune.method=grid tries every combination, and not all of tune.space are "
                       "lists\nhint: write lists, as [1e-4, 1e-3], or take method=random");
    }
    const uint32_t n = all < o->trials ? all : o->trials;
    for (uint32_t i = 0; i < n; i++) {
        const tn_strs values = grid ? tn_space_combination(&t->space, i, t->arena)
                                    : tn_space_draw(&t->space, t->setup->run.run.seed, i, t->arena);
        if (is_new(t, &values)) {
            TN_TRY(tn_tune_add(t, &values, err));
        }
    }
    t->drawn = t->n;
    if (t->n < o->trials && all > t->n) {
        tn_log(TN_LOG_INFO, "%" PRIu32 " of %" PRIu32 " trials: others would be the same again",
               t->n, o->trials);
    } else if (grid && all > n) {
        tn_log(TN_LOG_WARN, "tune.trials=%" PRIu32 ": the first of the %" PRIu32 " combinations", n,
               all);
    }
    return TN_OK;
}

/* Finds the metric and the task of the goal. */
static tn_status choose_goal(tn_tune *t, tn_error *err)
{
    tn_setup *s = t->setup;
    const char *goal = t->section->goal;
    if (goal == NULL) {
        goal = s->run.train.stop.monitor;
    }
    if (goal == NULL) {
        goal = s->run.data.target == TN_TARGET_CLICK ? "valid.auc" : tn_run_watched(&s->run);
    }
    t->goal = goal;
    t->metric = tn_run_check_monitor(&s->binder, s->tree, &s->run, "tune.goal", goal);
    TN_TRY(tn_diag_check(&s->diag, err));
    if (!tn_data_has_valid(&s->run.data)) {
        return tn_fail(err, TN_E_CONFIG,
                       "nothing to judge trials by: data.valid is not set\nhint: "
                       "'data.valid={share: 10%%}' holds rows of data.train back");
    }
    const char *name = goal + strlen("valid.");
    const char *dot = strchr(name, '.');
    t->task = dot != NULL ? tn_tree_text(t->arena, name, (size_t)(dot - name)) : NULL;
    return s->run.several != NULL && (t->task == NULL || strcmp(t->task, "tasks") == 0)
               ? tn_fail(err, TN_E_CONFIG,
                         "tune.goal '%s' is of all tasks together\nhint: name one, as "
                         "valid.%s.auc",
                         goal, s->run.data.tasks->task[0].name)
               : TN_OK;
}

/* Finds how many rows a whole run learns, and how many rungs there are. */
static tn_status plan_rungs(tn_tune *t, tn_error *err)
{
    const tn_tune_section *o = t->section;
    const tn_run *run = &t->setup->run;
    t->rungs = 1;
    for (uint32_t n = t->drawn; o->method == TN_HALVING && n >= o->eta; n /= o->eta) {
        t->rungs++;
    }
    TN_ASSERT(t->rungs <= TN_RUNGS_MAX);
    t->rows = (double)o->rows;
    if (t->rungs == 1 || o->rows != TN_UNSET_U64) {
        return TN_OK;
    }
    if (run->data.pattern.n > 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "a run over days has no last row: tune.rows must be set for halving");
    }
    TN_TRY(tn_row_scan_estimate(&run->data.train, t->setup->plan->schema,
                                TN_ROW_SCAN_ESTIMATE_BLOCKS, &t->rows, err));
    if (t->rows < 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "how many rows data.train has nobody knows: set tune.rows, or "
                       "tune.method=random");
    }
    t->rows *= run->train.epochs;
    const double most = (double)run->train.max_steps * run->train.batch;
    t->rows = run->train.max_steps != TN_UNSET_U64 && most < t->rows ? most : t->rows;
    return TN_OK;
}

/* Takes a result of the journal. Numbers after the drawn ones are those of tn_tune_try. */
static tn_status read_result(void *arg, const tn_tune_result *r, tn_error *err)
{
    tn_tune *t = arg;
    if (r->trial == t->n && t->n < 2 * TN_TRIALS_MAX) {
        TN_TRY(tn_tune_add(t, &r->values, err));
    }
    if (r->trial < t->n && r->rung < t->rungs) {
        tn_trial *one = t->trial[r->trial];
        one->result[r->rung] = *r;
        one->reached = r->rung + 1;
    }
    return TN_OK;
}

/* Keeps an earlier folder under a name of its own. */
static tn_status set_aside(const tn_tune *t, tn_error *err)
{
    tn_text aside = {0};
    uint32_t i = 0;
    do {
        tn_text_clear(&aside);
        tn_text_addf(&aside, "%s-earlier-%" PRIu32, t->dir, ++i);
    } while (tn_path_exists(tn_text_str(&aside)));
    tn_log(TN_LOG_INFO, "what was found before is kept in '%s'", tn_text_str(&aside));
    const tn_status status = tn_rename(t->dir, tn_text_str(&aside), err);
    tn_text_done(&aside);
    return status;
}

/* Appends the first line of the journal: all that the results depend on. */
static void add_head(const tn_tune *t, tn_text *out)
{
    const tn_tune_section *o = t->section;
    tn_json_open(out, '{');
    tn_json_str(out, "kind", "tune");
    tn_json_str(out, "config_hash", t->setup->text.hash);
    tn_json_str(out, "goal", t->goal);
    tn_json_str(out, "method", tn_tune_methods[o->method]);
    tn_json_u64(out, "trials", t->drawn);
    tn_json_u64(out, "eta", o->eta);
    tn_json_f64(out, "rows", t->rows);
    tn_json_open_key(out, "space", '[');
    for (uint32_t i = 0; i < t->drawn; i++) {
        tn_text values = {0};
        for (uint32_t k = 0; k < t->trial[i]->values.n; k++) {
            tn_text_addf(&values, "%s%s", k > 0 ? " " : "", t->trial[i]->values.item[k]);
        }
        tn_json_str(out, NULL, tn_text_str(&values));
        tn_text_done(&values);
    }
    tn_json_close(out, ']');
    tn_json_close(out, '}');
}

tn_status tn_tune_begin(tn_tune *t, bool reads, tn_error *err)
{
    const bool exists = tn_path_exists(t->dir);
    if (reads && !exists) {
        return TN_OK;
    }
    TN_TRY(t->opts.fresh && exists ? set_aside(t, err) : TN_OK);
    TN_TRY(tn_dir_make(t->dir, err));
    tn_text head = {0};
    add_head(t, &head);
    tn_status status = tn_text_check(&head, "journal.jsonl", err);
    if (status == TN_OK) {
        const tn_tune_reader reader = {t->arena, read_result, t};
        status = tn_tune_journal_open(&t->journal, t->dir, tn_text_str(&head), &reader, err);
    }
    tn_text_done(&head);
    return status;
}

static void share_processors(tn_tune *t)
{
    const uint32_t cpus = tn_cpu_count();
    const uint32_t asked = t->section->parallel != TN_AUTO ? t->section->parallel : cpus;
    const uint32_t most = asked < TN_PROGRAMS_MAX ? asked : TN_PROGRAMS_MAX;
    t->parallel = most < t->n ? most : t->n;
    t->parallel = t->parallel > 0 ? t->parallel : 1;
    t->threads = cpus > t->parallel ? cpus / t->parallel : 1;
}

static const tn_tree *usual_space(const tn_tune *t)
{
    const tn_field *options = t->setup->run.model.choice->fields;
    const tn_tree *all = tn_tree_read_flow(t->arena, USUAL_SPACE, "tune.space");
    tn_tree *space = tn_tree_new(t->arena, TN_TREE_MAP, all->at);
    for (const tn_tree *at = all->first; at != NULL; at = at->next) {
        const char *model = strncmp(at->key, "model.", 6) == 0 ? at->key + 6 : NULL;
        if (model == NULL || (options != NULL && tn_field_find(options, model) != NULL)) {
            tn_tree_put(t->arena, space, at->key, tn_tree_copy(t->arena, at));
        }
    }
    return space;
}

static tn_status open_tune(tn_tune *t, tn_error *err)
{
    tn_setup *s = t->setup;
    const tn_tree *space = t->section->space != NULL ? t->section->space : usual_space(t);
    const tn_binder b = {.arena = t->arena, .diag = &s->diag};
    tn_space_read(&t->space, space, &b);
    TN_TRY(tn_diag_check(&s->diag, err));
    TN_TRY(choose_goal(t, err));
    s->alone = true;
    TN_TRY(tn_setup_plan(s, err));
    TN_TRY(draw_trials(t, err));
    TN_TRY(plan_rungs(t, err));
    share_processors(t);
    t->job = TN_NEW_ARRAY(t->arena, tn_job, TN_PROGRAMS_MAX);
    tn_text dir = {0};
    tn_run_dir(&s->run.run, &dir);
    const tn_status status = tn_path_join(tn_text_str(&dir), "tune", t->dir, err);
    tn_text_done(&dir);
    return status;
}

tn_status tn_tune_open(tn_tune **out, tn_setup *s, const tn_tune_opts *o, tn_error *err)
{
    *out = NULL;
    tn_tune *t = tn_alloc(1, sizeof *t, "trials");
    t->opts = *o;
    t->setup = s;
    t->arena = s->arena;
    t->section = tn_run_section(&s->run, tn_section_tune);
    const tn_status status = open_tune(t, err);
    if (status != TN_OK) {
        tn_tune_close(t);
        return status;
    }
    *out = t;
    return TN_OK;
}

/* ---- results ---- */

void tn_tune_space_json(const tn_tune *t, tn_text *out)
{
    tn_space_json(&t->space, out);
}

void tn_tune_text(const tn_tune *t, tn_text *out)
{
    enum { COLUMNS = 4, WIDTH = 300 };
    tn_sheet sheet = {.cols = COLUMNS, .cell_max = WIDTH};
    const uint32_t *order = tn_tune_order(t, t->n, TN_LAST_RUNG);
    tn_sheet_word(&sheet, "trial");
    tn_sheet_word(&sheet, t->goal);
    tn_sheet_word(&sheet, "steps");
    tn_sheet_word(&sheet, "values");
    for (uint32_t i = 0; i < t->n; i++) {
        const tn_trial *one = t->trial[order[i]];
        const tn_tune_result *r = tn_trial_result(one, TN_LAST_RUNG);
        tn_text_addf(&sheet.cells, "%" PRIu32, order[i]);
        tn_sheet_next(&sheet);
        tn_sheet_metric(&sheet, r != NULL ? r->value : (double)NAN);
        tn_text_addf(&sheet.cells, "%" PRIu64, r != NULL ? r->step : 0);
        tn_sheet_next(&sheet);
        for (uint32_t k = 0; k < one->values.n; k++) {
            tn_text_addf(&sheet.cells, "%s%s", k > 0 ? " " : "", one->values.item[k]);
        }
        tn_text_adds(&sheet.cells, one->values.n == 0 ? "(as configured)" : "");
        tn_sheet_next(&sheet);
    }
    tn_sheet_end(&sheet, NULL, out);
}

void tn_tune_close(tn_tune *t)
{
    if (t != NULL) {
        tn_tune_journal_close(t->journal);
        tn_free(t);
    }
}
