/* run_bind.c - binds the options of a run, and refuses those that do not go together. */
#include "train/config/run_bind.h"

#include "base/thread/threads.h"
#include "config/absent.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/format/format.h"
#include "io/source/remote.h"
#include "metrics/calibrator.h"
#include "metrics/metrics.h"
#include "nn/gemm/gemm.h"
#include "nn/loss/loss.h"
#include "ps/optim/optim.h"
#include "ps/optim/schedule.h"
#include "train/config/data_checks.h"
#include "train/config/days.h"
#include "train/config/export_files.h"
#include "train/config/run_tasks.h"

#include <math.h>
#include <string.h>

enum { FILES_MAX = 8 }; /* words of export.graph */

static void check_day(const tn_binder *b, const tn_tree *tree, const char *text)
{
    uint32_t day = 0;
    if (!tn_day_read(text, &day)) {
        tn_diag_error(b->diag, tn_tree_place(tree, "run.day"),
                      "'run.day' is '%s', not a date from 1970-01-01 on like 2026-11-07, nor today",
                      text);
    }
}

static void check_every(const tn_binder *b, const tn_tree *tree, const char *path, const char *text)
{
    tn_every every;
    const bool saves = strcmp(path, "checkpoint.every") == 0;
    const bool good =
        text == NULL || (saves ? tn_every_read_save(text, &every) : tn_every_read(text, &every));
    if (!good) {
        tn_diag_error(b->diag, tn_tree_place(tree, path),
                      "'%s' is '%s', not like 1epoch, 5000steps, 15min or never%s", path, text,
                      saves ? ", nor auto" : "");
    }
}

static void check_export_every(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const char *text = r->export.every;
    tn_every every;
    if (text == NULL) {
        return;
    }
    const tn_origin *at = tn_tree_place(tree, "export.every");
    const bool over = tn_run_exports_days(r);
    const bool hours = r->data.n_days > 0 && tn_day_is_hour(r->data.day[0]);
    if (over && r->data.pattern.n == 0) {
        tn_diag_error(b->diag, at, "'export.every' is %s, and data.train has no {day:..}", text);
    } else if (over && hours != (strcmp(text, "hour") == 0)) {
        tn_diag_error(b->diag, at, "'export.every' is %s, and data.days are %s", text,
                      hours ? "hours" : "days");
    } else if (!tn_run_exports_days(r) && !tn_every_read(text, &every)) {
        tn_diag_error(b->diag, at,
                      "'export.every' is '%s', not like day, hour, 1epoch, 5000steps, 15min", text);
    } else if (r->export.to == NULL || r->export.to[0] == '\0') {
        tn_diag_error(b->diag, at, "'export.every' is %s, and export.to names no folder", text);
    }
}

/* Whether a path, as "../x" and "/x", leads out of the folder that it is joined to. */
static bool leads_out(const char *path)
{
    bool out = path[0] == '/';
    for (const char *step = path; step != NULL && !out; step = strchr(step, '/')) {
        step += *step == '/';
        out = strncmp(step, "..", 2) == 0 && (step[2] == '/' || step[2] == '\0');
    }
    return out;
}

/* Refuses what no store takes, before anything is learned. */
static void check_places(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    tn_error err = {0};
    if (r->run.dir == NULL && (r->run.name[0] == '\0' || leads_out(r->run.name))) {
        tn_diag_error(b->diag, tn_tree_place(tree, "run.name"),
                      "'run.name' is '%s', and names a folder in 'runs'", r->run.name);
        tn_diag_hint(b->diag, "run.dir=PATH is a folder anywhere");
    }
    if (r->run.dir != NULL && tn_uri_is(r->run.dir)) {
        tn_diag_error(b->diag, tn_tree_place(tree, "run.dir"),
                      "'run.dir' is '%s', and checkpoints are written to disks only", r->run.dir);
    }
    if (r->export.to != NULL && tn_uri_is(r->export.to) &&
        tn_remotes()->check_target(r->export.to, false, &err) != TN_OK) {
        tn_diag_error(b->diag, tn_tree_place(tree, "export.to"), "'export.to': %s", err.text);
    }
    if (r->eval.predictions != NULL && tn_uri_is(r->eval.predictions) &&
        tn_remotes()->check_target(r->eval.predictions, true, &err) != TN_OK) {
        tn_diag_error(b->diag, tn_tree_place(tree, "eval.predictions"), "'eval.predictions': %s",
                      err.text);
    }
}

/* Refuses products that this machine does not have now rather than with the first graph. A lack of
 * memory is no fault of the configuration, and is reported then. */
static void check_compute(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    tn_products products;
    tn_error err = {0};
    const tn_status found = tn_products_find(&products, (tn_products_choice)r->compute.gemm, &err);
    if (found != TN_OK && found != TN_E_MEMORY) {
        tn_diag_error(b->diag, tn_tree_place(tree, "compute.gemm"), "'compute.gemm': %s", err.text);
    }
    if (r->compute.pin && tn_run_threads(r) > tn_cpu_count()) {
        tn_diag_error(b->diag, tn_tree_place(tree, "compute.pin"),
                      "'compute.pin' wants a processor per thread: %u threads, %u processors",
                      tn_run_threads(r), tn_cpu_count());
    }
    if (r->compute.bf16 && found == TN_OK && tn_bf16_products(&products, &err) != TN_OK) {
        tn_diag_error(b->diag, tn_tree_place(tree, "compute.bf16"), "'compute.bf16': %s", err.text);
    }
}

static void check_stdin(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    if (r->train.epochs > 1 && r->train.epochs != TN_AUTO && tn_run_trains_on_stdin(r)) {
        tn_diag_error(b->diag, tn_tree_place(tree, "train.epochs"),
                      "train.epochs is %u, and data.train '-', standard input, can be read once",
                      r->train.epochs);
    }
}

static void check_reset(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    if (r->embedding.reset != TN_RESET_NEVER && r->checkpoint.delta_every != NULL) {
        tn_diag_error(b->diag, tn_tree_place(tree, "embedding.reset"),
                      "embedding.reset drops all rows, which checkpoint.delta_every cannot write");
    }
}

static void check_schedule(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const tn_rule_opts *dense = r->train.optimizer.opts;
    const tn_origin *at = tn_tree_place(tree, "train.optimizer.schedule");
    const char *why = tn_schedule_check(&dense->schedule, 1);
    if (why != NULL) {
        tn_diag_error(b->diag, at, "'train.optimizer.schedule': %s", why);
    }
    if (tn_schedule_ends_with_run(r) && tn_run_trains_on_stdin(r)) {
        tn_diag_error(b->diag, at,
                      "schedule '%s' ends with the run, and how long data.train '-', standard "
                      "input, is nobody knows",
                      dense->schedule.choice->name);
        tn_diag_hint(b->diag, "set train.optimizer.schedule.steps or train.max_steps");
    }
}

/* Refuses options that end with the data, or with what it is worth: they have no meaning when a day
 * follows another. */
static void check_days(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    if (r->data.pattern.n == 0) {
        return;
    }
    const bool plateau = !isnan(r->train.reduce_on_plateau.factor);
    if (r->train.stop.monitor != NULL || plateau) {
        const char *what = plateau ? "train.reduce_on_plateau" : "train.stop";
        tn_diag_error(
            b->diag, tn_tree_place(tree, what),
            "'%s' compares evaluations of the same rows, and data.days brings others each "
            "day: a run over days learns every day to its end",
            what);
    }
    if (r->train.epochs == 0) {
        tn_diag_error(b->diag, tn_tree_place(tree, "train.epochs"),
                      "'train.epochs' is 0, and a run over days learns each of them");
    }
    if (tn_schedule_ends_with_run(r)) {
        const tn_rule_opts *dense = r->train.optimizer.opts;
        tn_diag_error(b->diag, tn_tree_place(tree, "train.optimizer.schedule"),
                      "schedule '%s' ends with the run, and a run over days has no end",
                      dense->schedule.choice->name);
        tn_diag_hint(b->diag, "set train.optimizer.schedule.steps or train.max_steps");
    }
    if (r->run.day != NULL) {
        tn_diag_error(b->diag, tn_tree_place(tree, "run.day"),
                      "'run.day' and data.days are both set: rows have the day of their data");
    }
}

static void check_words(const tn_binder *b, const tn_origin *at, const char *what,
                        const tn_strs *given, const char *const *known, uint32_t n_known)
{
    for (uint32_t i = 0; i < given->n; i++) {
        bool found = false;
        for (uint32_t k = 0; k < n_known && !found; k++) {
            found = strcmp(given->item[i], known[k]) == 0;
        }
        if (!found) {
            tn_diag_unknown(b->diag, at, what, given->item[i], known, n_known);
        }
    }
}

static void check_files(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const char *graphs[FILES_MAX] = {"native"};
    const char *dicts[FILES_MAX] = {"tnd"};
    uint32_t n_graphs = 1;
    uint32_t n_dicts = 1;
    for (const tn_export_file *const *f = tn_all_export_files; *f != NULL; f++) {
        TN_ASSERT(n_graphs < FILES_MAX && n_dicts < FILES_MAX);
        if ((*f)->make != NULL) {
            graphs[n_graphs++] = (*f)->word;
        } else {
            dicts[n_dicts++] = (*f)->word;
        }
    }
    check_words(b, tn_tree_place(tree, "export.dict"), "kind of dictionary", &r->export.dict, dicts,
                n_dicts);
    check_words(b, tn_tree_place(tree, "export.graph"), "kind of graph", &r->export.graph, graphs,
                n_graphs);
}

static void check_restarts(const tn_binder *b, const tn_tree *tree, const char *text)
{
    uint32_t n = 0;
    double within_s = 0;
    if (!tn_restarts_read(text, &n, &within_s)) {
        tn_diag_error(b->diag, tn_tree_place(tree, "cluster.restarts"),
                      "'%s' is not '<number>/<time>' with 1 to %d restarts, as '3/1h', nor 0", text,
                      (int)TN_RESTARTS_MAX);
    }
}

/* The metric in "valid.auc" or "valid.buy.auc", and the task; NULL: there is none of that name. */
static const tn_metric *watched_metric(const tn_run *run, const char *monitor, uint32_t *task)
{
    static const char prefix[] = "valid.";
    size_t size = sizeof prefix - 1;
    const char *metric = monitor;
    *task = strncmp(monitor, prefix, size) == 0
                ? tn_monitor_task(tn_run_tasks_of(run), monitor + size, &metric)
                : TN_NO_TASK;
    return *task != TN_NO_TASK ? tn_metric_find(metric) : NULL;
}

const char *tn_run_grouped_metric(const tn_run *run)
{
    const char *const monitors[] = {run->train.stop.monitor, run->train.reduce_on_plateau.monitor};
    for (uint32_t i = 0; i < run->eval.metrics.n; i++) {
        const tn_metric *m = tn_metric_find(run->eval.metrics.item[i]);
        if (m != NULL && m->needs_groups) {
            return m->name;
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t task = 0;
        const tn_metric *m = monitors[i] != NULL ? watched_metric(run, monitors[i], &task) : NULL;
        if (m != NULL && m->needs_groups) {
            return m->name;
        }
    }
    return NULL;
}

/* Says what else there is, since the names are many. */
static void refuse_metric(const tn_binder *b, const tn_origin *at, const tn_run *r, uint32_t task,
                          const char *name)
{
    static const char *const scores[] = {"probabilities of a click", "scores that say 1 above 0",
                                         "numbers", "scores that order rows"};
    const tn_loss *loss = tn_loss_of(tn_run_task_loss(r, task != TN_ALL_TASKS ? task : 0));
    tn_text fit = {0};
    for (const tn_metric *const *m = tn_all_metrics; *m != NULL; m++) {
        if (tn_metric_fits((*m)->name, loss->target)) {
            tn_text_addf(&fit, "%s%s", fit.size > 0 ? ", " : "", (*m)->name);
        }
    }
    tn_diag_error(b->diag, at, "metric '%s' does not judge a model of loss '%s', which makes %s",
                  name, loss->choice.name, scores[loss->target]);
    tn_diag_hint(b->diag, "these do: %s", tn_text_str(&fit));
    tn_text_done(&fit);
}

/* Whether the metric judges the task, or some of all. */
static bool fits(const tn_run *r, const char *name, uint32_t task)
{
    const uint32_t n = tn_tasks_count(tn_run_tasks_of(r));
    bool fit = tn_metric_find(name) == NULL;
    for (uint32_t k = 0; k < n && !fit; k++) {
        fit = (task == TN_ALL_TASKS || task == k) &&
              tn_metric_fits(name, tn_loss_of(tn_run_task_loss(r, k))->target);
    }
    return fit;
}

const tn_metric *tn_run_check_monitor(const tn_binder *b, const tn_tree *tree, const tn_run *r,
                                      const char *path, const char *monitor)
{
    uint32_t task = 0;
    const tn_metric *metric = monitor != NULL ? watched_metric(r, monitor, &task) : NULL;
    if (monitor != NULL && metric == NULL) {
        tn_diag_error(b->diag, tn_tree_place(tree, path),
                      "'%s' is not valid.<metric>, as valid.auc%s", monitor,
                      r->several != NULL ? ", nor valid.<task>.<metric>" : "");
    } else if (metric != NULL && !fits(r, metric->name, task)) {
        refuse_metric(b, tn_tree_place(tree, path), r, task, metric->name);
    } else if (metric != NULL && metric->best == TN_BEST_NONE) {
        tn_diag_error(b->diag, tn_tree_place(tree, path),
                      "'%s' cannot be watched: no value of %s is better than another", monitor,
                      metric->name);
        tn_diag_hint(b->diag, "valid.auc, valid.logloss and valid.copc, of which the nearest to 1 "
                              "is the best, can");
    }
    return metric;
}

/* Whether records may have groups without a column. */
static bool has_qid(const tn_run *r)
{
    const char *format = r->data.format != NULL ? r->data.format : "";
    return strcmp(format, "libsvm") == 0 || strcmp(format, "libfm") == 0;
}

/* Reports what the loss makes impossible. */
static void check_loss(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const tn_loss *loss = tn_loss_of(&r->loss);
    const char *name = loss->choice.name;
    for (uint32_t i = 0; i < r->eval.metrics.n; i++) {
        if (!fits(r, r->eval.metrics.item[i], TN_ALL_TASKS)) {
            refuse_metric(b, tn_tree_place(tree, "eval.metrics"), r, 0, r->eval.metrics.item[i]);
        }
    }
    if (loss->target == TN_TARGET_ORDER && r->data.group == NULL && !has_qid(r)) {
        tn_diag_error(
            b->diag,
            tn_tree_place(tree, tn_tree_at(tree, "loss.type") != NULL ? "loss.type" : "loss"),
            "loss '%s' needs data.group, the column whose value groups rows", name);
    }
    if (r->data.negative_sampling < 1 && !loss->corrects_sampling) {
        tn_diag_error(b->diag, tn_tree_place(tree, "data.negative_sampling"),
                      "'data.negative_sampling' is %g, and scores of loss '%s' cannot be corrected "
                      "for it",
                      r->data.negative_sampling, name);
        tn_diag_hint(b->diag, "'tnet-train --list-losses' says which can");
    }
    if (!tn_run_has_clicks(r) && r->eval.calibrate != TN_CALIBRATE_AUTO &&
        r->eval.calibrate != TN_CALIBRATE_NONE) {
        tn_diag_error(b->diag, tn_tree_place(tree, "eval.calibrate"),
                      "'eval.calibrate' is %s, and a model of loss '%s' has no probabilities to "
                      "calibrate",
                      tn_calibrate_choices[r->eval.calibrate], name);
    }
}

static void check_watch(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const char *stop = r->train.stop.monitor;
    const char *plateau = r->train.reduce_on_plateau.monitor;
    (void)tn_run_check_monitor(b, tree, r, "train.stop.monitor", stop);
    (void)tn_run_check_monitor(b, tree, r, "train.reduce_on_plateau.monitor", plateau);
    if (stop != NULL && plateau != NULL && strcmp(stop, plateau) != 0) {
        tn_diag_error(b->diag, tn_tree_place(tree, "train.reduce_on_plateau.monitor"),
                      "train.stop watches '%s', and only one metric is watched", stop);
    }
    bool watched = stop != NULL || !isnan(r->train.reduce_on_plateau.factor);
    if (watched && r->data.valid.n == 0) {
        const char *path = stop != NULL ? "train.stop" : "train.reduce_on_plateau";
        tn_diag_error(b->diag, tn_tree_place(tree, path), "'%s' needs data.valid", path);
    }
}

static void check_metrics(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const char *names[128];
    uint32_t n = 0;
    for (const tn_metric *const *m = tn_all_metrics; *m != NULL && n < 128; m++) {
        names[n++] = (*m)->name;
    }
    TN_ASSERT(n < 128); /* none was left out */
    check_words(b, tn_tree_place(tree, "eval.metrics"), "metric", &r->eval.metrics, names, n);
    const char *grouped = tn_run_grouped_metric(r);
    const bool of_loss =
        tn_loss_of(&r->loss)->target == TN_TARGET_ORDER; /* this loss needs data.group */
    if (grouped != NULL && r->data.group == NULL && !has_qid(r) && !of_loss) {
        tn_diag_error(b->diag, tn_tree_place(tree, "eval.metrics"),
                      "metric '%s' needs data.group, the column whose value groups rows", grouped);
    }
    check_watch(b, tree, r);
}

/* Commands are made of the rows of tnd, and keys of text name groups. */
static void check_resp(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const tn_export_opts *o = &r->export;
    const bool rows =
        tn_strs_has(&o->dict, "tnd") && (o->check_groups || o->redis_keys == TN_RESP_KEY8);
    if (tn_strs_has(&o->dict, "resp") && !rows) {
        tn_diag_error(b->diag, tn_tree_place(tree, "export.dict"),
                      "'export.dict' has resp, which is made of tnd with export.check_groups: "
                      "true, or export.redis_keys: key8");
    }
}

/* Also checks if some option is at fault and has its default: all faults at once. */
static void check_all(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    check_day(b, tree, r->run.day);
    check_every(b, tree, "eval.every", r->eval.every);
    check_every(b, tree, "checkpoint.every", r->checkpoint.every);
    check_restarts(b, tree, r->cluster.restarts);
    check_every(b, tree, "checkpoint.delta_every", r->checkpoint.delta_every);
    check_export_every(b, tree, r);
    check_places(b, tree, r);
    if (r->log.tensorboard == TN_SWITCH_TRUE && tn_is_absent("tensorboard")) {
        tn_diag_error(b->diag, tn_tree_place(tree, "log.tensorboard"), TN_ABSENT_FORM,
                      "tensorboard");
    }
    check_files(b, tree, r);
    check_resp(b, tree, r);
    check_metrics(b, tree, r);
    check_loss(b, tree, r);
    check_stdin(b, tree, r);
    check_days(b, tree, r);
    check_schedule(b, tree, r);
    check_reset(b, tree, r);
    check_compute(b, tree, r);
    if (r->embedding.on_full == TN_FULL_EVICT && r->embedding.memory == TN_MEMORY_NONE) {
        tn_diag_error(b->diag, tn_tree_place(tree, "embedding.on_full"),
                      "'embedding.on_full' is evict, and embedding.memory is none: nothing is ever "
                      "full");
    }
}

void tn_run_bind(const tn_binder *b, const tn_tree *tree, tn_run *out)
{
    tn_binder in_data = *b;
    in_data.path = "data";
    tn_fields_bind(b, tn_run_fields, tree, out);
    tn_days_bind(b, tree, &out->data);
    tn_format_check_data(&in_data, tn_tree_get(tree, "data"), &out->data);
    tn_format_check_slots(b, out->data.format, &out->slots);
    tn_tasks_bind(b, tree, out);
    tn_data_check_slots(b, &out->data, &out->slots);
    check_all(b, tree, out);
    if (out->export.every != NULL && strcmp(out->export.every, "never") == 0) {
        out->export.every = NULL;
    }
    out->data.target = tn_loss_of(&out->loss)->target;
    if (!tn_run_has_clicks(out)) {
        out->eval.calibrate = TN_CALIBRATE_NONE;
    }
}
