/* runcheck.c - what no single option can say about itself; see run.h. */
#include "train/config/run.h"

#include "base/core/clock.h"
#include "base/core/number.h"
#include "base/thread/team.h"
#include "base/thread/threads.h"
#include "io/format/format.h"
#include "metrics/metrics.h"
#include "models/model.h"
#include "nn/gemm/bf16.h"
#include "ps/optim/rule.h"
#include "ps/optim/schedule.h"

#include <math.h>
#include <string.h>

static const tn_origin nowhere = {.source = "configuration"};

void tn_run_dir(const tn_run_opts *run, tn_text *out)
{
    if (run->dir != NULL) {
        tn_text_adds(out, run->dir);
    } else {
        tn_text_addf(out, "runs/%s", run->name);
    }
}

uint32_t tn_run_threads(const tn_run *run)
{
    uint32_t cpus = tn_cpu_count();
    uint32_t asked = run->train.threads;
    return asked == TN_WORD_U32(0) ? (cpus < TN_TEAM_THREADS_MAX ? cpus : TN_TEAM_THREADS_MAX)
                                   : asked;
}

bool tn_schedule_ends_with_run(const tn_run *run)
{
    const tn_rule_opts *dense = run->train.optimizer.opts;
    return run->train.max_steps == TN_UNSET_U64 && tn_schedule_check(&dense->schedule, 0) != NULL &&
           tn_schedule_check(&dense->schedule, 1) == NULL;
}

static const tn_origin *place(const tn_tree *tree, const char *path)
{
    const tn_tree *t = tn_tree_at(tree, path);
    return t != NULL ? &t->at : &nowhere;
}

static bool has_suffix(const char *text, const char *suffix, uint64_t *number)
{
    size_t n = strlen(text);
    size_t k = strlen(suffix);
    return n > k && strcmp(text + n - k, suffix) == 0 &&
           tn_read_u64(text, n - k, number) == TN_NUM_OK && *number > 0;
}

bool tn_every_read(const char *text, tn_every *out)
{
    uint64_t n = 0;
    *out = (tn_every){0};
    if (has_suffix(text, "epochs", &n) || has_suffix(text, "epoch", &n)) {
        out->epochs = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
        return true;
    }
    if (has_suffix(text, "steps", &n) || has_suffix(text, "step", &n)) {
        out->steps = n;
        return true;
    }
    if (strcmp(text, "never") == 0) {
        return true;
    }
    tn_diag quiet = {0};
    const tn_binder b = {.diag = &quiet};
    const tn_field duration = {.kind = TN_KIND_DURATION, .key = "every", .min = 0, .max = 1e9};
    const tn_tree scalar = {.kind = TN_TREE_SCALAR, .text = text, .at = nowhere};
    bool good = tn_read_scalar(&b, &duration, &scalar, &out->seconds) && out->seconds > 0;
    tn_diag_done(&quiet);
    return good;
}

/* Digits text[0 .. n - 1]. */
static bool read_digits(const char *text, size_t n, uint64_t *out)
{
    return strspn(text, "0123456789") >= n && tn_read_u64(text, n, out) == TN_NUM_OK;
}

bool tn_day_read(const char *text, uint32_t *out)
{
    static const uint64_t before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    uint64_t year = 0;
    uint64_t month = 0;
    uint64_t day = 0;
    *out = 0;
    if (text == NULL) {
        return true;
    }
    if (strcmp(text, "today") == 0) {
        *out = tn_wall_day();
        return true;
    }
    if (strlen(text) != 10 || text[4] != '-' || text[7] != '-' || !read_digits(text, 4, &year) ||
        !read_digits(text + 5, 2, &month) || !read_digits(text + 8, 2, &day) || year < 1970 ||
        month < 1 || month > 12) {
        return false;
    }
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    const uint64_t days = before[month] - before[month - 1] + (leap && month == 2);
    if (day < 1 || day > days) {
        return false;
    }
    const uint64_t last = year - 1; /* leap years up to it, since year 1; 477 before 1970 */
    const uint64_t leaps = last / 4 - last / 100 + last / 400 - 477;
    *out =
        (uint32_t)((year - 1970) * 365 + leaps + before[month - 1] + (leap && month > 2) + day - 1);
    return true;
}

static void check_day(const tn_binder *b, const tn_tree *tree, const char *text)
{
    uint32_t day = 0;
    if (!tn_day_read(text, &day)) {
        tn_diag_error(b->diag, place(tree, "run.day"),
                      "'run.day' is '%s', not a date from 1970-01-01 on like 2026-11-07, nor today",
                      text);
    }
}

static void check_every(const tn_binder *b, const tn_tree *tree, const char *path, const char *text)
{
    tn_every every;
    if (text != NULL && !tn_every_read(text, &every)) {
        tn_diag_error(b->diag, place(tree, path),
                      "'%s' is '%s', not like 1epoch, 5000steps, 15min or never", path, text);
    }
}

/* Better told before the data are opened than when the first graph is made. */
static void check_compute(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    tn_products products;
    tn_error err = {0};
    if (tn_products_find(&products, (tn_products_choice)r->compute.gemm, &err) != TN_OK) {
        tn_diag_error(b->diag, place(tree, "compute.gemm"), "'compute.gemm': %s", err.text);
    }
    if (r->compute.pin && tn_run_threads(r) > tn_cpu_count()) {
        tn_diag_error(b->diag, place(tree, "compute.pin"),
                      "'compute.pin' wants a processor per thread: %u threads, %u processors",
                      tn_run_threads(r), tn_cpu_count());
    }
    if (r->compute.bf16 && tn_bf16_products(&products, &err) != TN_OK) {
        tn_diag_error(b->diag, place(tree, "compute.bf16"), "'compute.bf16': %s", err.text);
    }
}

/* What comes by standard input comes once. */
static void check_stdin(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const tn_strs *train = &r->data.train;
    bool more = r->train.epochs > 1;
    for (uint32_t i = 0; i < train->n && more; i++) {
        if (strcmp(train->item[i], "-") == 0) {
            tn_diag_error(
                b->diag, place(tree, "train.epochs"),
                "train.epochs is %u, and data.train '-', standard input, can be read once",
                r->train.epochs);
            return;
        }
    }
}

static void check_schedule(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const tn_rule_opts *dense = r->train.optimizer.opts;
    const tn_origin *at = place(tree, "train.optimizer.schedule");
    const char *why = tn_schedule_check(&dense->schedule, 1);
    if (why != NULL) {
        tn_diag_error(b->diag, at, "'train.optimizer.schedule': %s", why);
    }
    for (uint32_t i = 0; i < r->data.train.n && tn_schedule_ends_with_run(r); i++) {
        if (strcmp(r->data.train.item[i], "-") == 0) {
            tn_diag_error(b->diag, at,
                          "schedule '%s' ends with the run, and how long data.train '-', standard "
                          "input, is nobody knows",
                          dense->schedule.choice->name);
            tn_diag_hint(b->diag, "set train.optimizer.schedule.steps or train.max_steps");
            return;
        }
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

static void check_format(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    enum { NAMES_MAX = 64 };
    const char *names[NAMES_MAX];
    uint32_t n = 0;
    for (const tn_format *const *f = tn_all_formats; *f != NULL && n < NAMES_MAX; f++) {
        names[n++] = (*f)->name;
    }
    if (r->data.format != NULL) {
        const tn_strs given = {1, &r->data.format};
        check_words(b, place(tree, "data.format"), "format", &given, names, n);
    }
}

/* The metric in "valid.auc"; NULL: there is none of that name. */
static const tn_metric *watched_metric(const char *monitor)
{
    static const char prefix[] = "valid.";
    size_t size = sizeof prefix - 1;
    return strncmp(monitor, prefix, size) == 0 ? tn_metric_find(monitor + size) : NULL;
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
        const tn_metric *m = monitors[i] != NULL ? watched_metric(monitors[i]) : NULL;
        if (m != NULL && m->needs_groups) {
            return m->name;
        }
    }
    return NULL;
}

static void check_monitor(const tn_binder *b, const tn_tree *tree, const char *path,
                          const char *monitor)
{
    if (monitor != NULL && watched_metric(monitor) == NULL) {
        tn_diag_error(b->diag, place(tree, path), "'%s' is not valid.<metric>, as valid.auc",
                      monitor);
    }
}

static void check_watch(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const char *stop = r->train.stop.monitor;
    const char *plateau = r->train.reduce_on_plateau.monitor;
    check_monitor(b, tree, "train.stop.monitor", stop);
    check_monitor(b, tree, "train.reduce_on_plateau.monitor", plateau);
    if (stop != NULL && plateau != NULL && strcmp(stop, plateau) != 0) {
        tn_diag_error(b->diag, place(tree, "train.reduce_on_plateau.monitor"),
                      "train.stop watches '%s', and only one metric is watched", stop);
    }
    bool watched = stop != NULL || !isnan(r->train.reduce_on_plateau.factor);
    if (watched && r->data.valid.n == 0) {
        const char *path = stop != NULL ? "train.stop" : "train.reduce_on_plateau";
        tn_diag_error(b->diag, place(tree, path), "'%s' needs data.valid", path);
    }
}

static void check_metrics(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    const char *names[128];
    uint32_t n = 0;
    for (const tn_metric *const *m = tn_all_metrics; *m != NULL && n < 128; m++) {
        names[n++] = (*m)->name;
    }
    check_words(b, place(tree, "eval.metrics"), "metric", &r->eval.metrics, names, n);
    const char *grouped = tn_run_grouped_metric(r);
    bool qid = r->data.format != NULL && strcmp(r->data.format, "libsvm") == 0;
    if (grouped != NULL && r->data.group == NULL && !qid) {
        tn_diag_error(b->diag, place(tree, "eval.metrics"),
                      "metric '%s' needs data.group, the column whose value groups rows", grouped);
    }
    check_watch(b, tree, r);
}

void tn_run_check_group(const tn_binder *b, const tn_tree *tree, const tn_run *r)
{
    if (!isinf(r->cluster.staleness) && r->cluster.staleness != floor(r->cluster.staleness)) {
        tn_diag_error(b->diag, place(tree, "cluster.staleness"),
                      "'cluster.staleness' is %g, not a whole number of steps or inf",
                      r->cluster.staleness);
    }
    for (uint32_t i = 0; i < r->data.train.n; i++) {
        if (strcmp(r->data.train.item[i], "-") == 0) {
            tn_diag_error(
                b->diag, place(tree, "data.train"),
                "data.train is '-', standard input, which several processes cannot share");
        }
    }
}

void tn_run_bind(const tn_binder *b, const tn_tree *tree, tn_run *out)
{
    static const char *const dicts[] = {"tnd", "tsv"};
    static const char *const graphs[] = {"native"};
    tn_fields_bind(b, tn_run_fields, tree, out);
    check_format(b, tree, out);
    /* Also where some option is at fault already, and has its default: all faults at once. */
    check_day(b, tree, out->run.day);
    check_every(b, tree, "eval.every", out->eval.every);
    check_every(b, tree, "checkpoint.every", out->checkpoint.every);
    check_every(b, tree, "checkpoint.delta_every", out->checkpoint.delta_every);
    check_words(b, place(tree, "export.dict"), "kind of dictionary", &out->export.dict, dicts, 2);
    check_words(b, place(tree, "export.graph"), "kind of graph", &out->export.graph, graphs, 1);
    check_metrics(b, tree, out);
    check_stdin(b, tree, out);
    check_schedule(b, tree, out);
    check_compute(b, tree, out);
}
