/* rerun.c - compares the options of a run with those it was begun with. */
#include "train/checkpoint/rerun.h"

#include "base/core/number.h"
#include "config/diag.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "train/checkpoint/run_state.h"
#include "train/checkpoint/sources.h"
#include "train/config/days.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 8, PATH_BYTES = 256 };

/* ---- options ---- */

typedef struct comparison {
    const char *const *passed_over; /* paths, NULL-terminated */
    tn_text *names;
    uint32_t n;
} comparison;

static bool same_text(const char *a, const char *b)
{
    double x = 0;
    double y = 0;
    return strcmp(a, b) == 0 || (tn_read_f64(a, strlen(a), &x) == TN_NUM_OK &&
                                 tn_read_f64(b, strlen(b), &y) == TN_NUM_OK && x == y);
}

static bool same_tree(const tn_tree *a, const tn_tree *b)
{
    if (a->kind != b->kind || (a->kind == TN_TREE_SCALAR && !same_text(a->text, b->text))) {
        return false;
    }
    const tn_tree *x = a->first;
    const tn_tree *y = b->first;
    for (; x != NULL && y != NULL; x = x->next, y = y->next) {
        if ((x->key != NULL && strcmp(x->key, y->key) != 0) || !same_tree(x, y)) {
            return false;
        }
    }
    return x == NULL && y == NULL;
}

static void add_name(tn_text *names, uint32_t n, const char *name)
{
    if (n < NAMES_MAX) {
        tn_text_addf(names, "%s%s", n > 0 ? ", " : "", name);
    } else if (n == NAMES_MAX) {
        tn_text_adds(names, ", ..");
    }
}

static void compare(comparison *c, const char *path, const tn_tree *was, const tn_tree *now)
{
    for (const char *const *p = c->passed_over; *p != NULL; p++) {
        if (strcmp(*p, path) == 0) {
            return;
        }
    }
    if (was->kind != TN_TREE_MAP || now->kind != TN_TREE_MAP) {
        if (!same_tree(was, now)) {
            add_name(c->names, c->n++, path);
        }
        return;
    }
    for (const tn_tree *item = now->first; item != NULL; item = item->next) {
        const tn_tree *other = tn_tree_get(was, item->key);
        char below[PATH_BYTES];
        (void)snprintf(below, sizeof below, "%s%s%s", path, path[0] != '\0' ? "." : "", item->key);
        if (other != NULL) {
            compare(c, below, other, item);
        }
    }
}

/* NULL: it is none that this build reads. */
static const tn_tree *tree_of(const char *text, tn_arena *arena)
{
    tn_diag unheard = {0};
    const tn_yaml_in in = {.text = text, .size = strlen(text), .source = "config.yaml"};
    const tn_tree *tree = tn_yaml_read(arena, &unheard, &in);
    tn_diag_done(&unheard);
    return tree;
}

/* Whether evaluations decide when the run ends, and with which model and rates. */
static bool is_watched(const tn_run *run)
{
    return run->train.stop.monitor != NULL || !isnan(run->train.reduce_on_plateau.factor);
}

/* Adds the names of options that differ in two resolved configurations, ", " between them, and
 * returns how many there are. Options that only one of them has are not compared; where a run ends
 * is none of them while it is not `finished`. */
static uint32_t options_changed(const char *was, const char *now, const tn_run *run, bool finished,
                                tn_text *names)
{
    const char *passed_over[] = {
        "compute.gemm",
        "compute.huge_pages",
        "eval.metrics",
        "eval.slices",
        "eval.slices_min_rows",
        "eval.batch",
        "eval.calibrate",
        NULL, /* all of eval, when it decides nothing */
        NULL, /* options that only say where the run ends, when it goes on */
        NULL,
        NULL,
        NULL};
    uint32_t n = 7;
    if (!is_watched(run)) {
        passed_over[n++] = "eval";
    }
    if (!finished) {
        passed_over[n++] = "train.epochs";
        passed_over[n++] = "train.max_steps";
        passed_over[n++] = "train.max_time";
    }
    TN_ASSERT(n < sizeof passed_over / sizeof passed_over[0] && passed_over[n] == NULL);
    tn_arena *arena = tn_arena_new(1 << 16);
    const tn_tree *before = tree_of(was, arena);
    const tn_tree *after = tree_of(now, arena);
    comparison c = {.passed_over = passed_over, .names = names};
    if (before != NULL && after != NULL) {
        compare(&c, "", before, after);
    }
    tn_arena_free(arena);
    return c.n;
}

/* ---- data ---- */

/* Whether data.train is other data than the last epoch read: what cannot be looked at is. */
static bool data_changed(const tn_rerun *r)
{
    const tn_sources *was = NULL;
    const tn_sources *now = NULL;
    const tn_strs *paths = &r->plan->run->data.train;
    tn_text how = {0};
    tn_arena *arena = tn_arena_new(1 << 14);
    bool changed = tn_run_trains_on_stdin(r->plan->run);
    if (tn_sources_read(&was, &r->state->past->sources, "sources.jsonl", arena, NULL) == TN_OK &&
        was->n > 0 && !changed) {
        changed = tn_sources_now(&now, paths, r->plan->schema, arena, NULL) != TN_OK ||
                  tn_sources_differ(was, now, &how);
    }
    tn_text_done(&how);
    tn_arena_free(arena);
    return changed;
}

/* ---- sentences ---- */

/* Says how far a run over days has come, which is never finished. */
static void say_days(const tn_rerun *r, tn_text *out)
{
    const tn_learned_days *days = &r->state->kept.days;
    tn_text_addf(out, "goes on from %s (", r->name);
    if (days->within) {
        char name[TN_DAY_NAME];
        tn_day_name(days->day, name);
        tn_text_addf(out, "within %s; ", name);
    }
    tn_days_put(days, out);
    tn_text_addf(out, ", step %llu)", (unsigned long long)r->state->steps);
}

/* Says how far the run has come. Returns true when it is finished; `remedy` gets what lets it train
 * on. */
static bool say_where(const tn_rerun *r, tn_text *out, tn_text *remedy)
{
    const tn_run *run = r->plan->run;
    const tn_run_state *s = r->state;
    const unsigned long long steps = s->steps;
    if (run->data.pattern.n > 0 && steps < run->train.max_steps) {
        say_days(r, out);
        return false;
    }
    if (run->data.pattern.n == 0 && s->progress.epoch >= run->train.epochs) {
        tn_text_addf(out, "run '%s' is finished (epoch %u of %u, step %llu)", run->run.name,
                     s->progress.epoch, run->train.epochs, steps);
        tn_text_addf(remedy, "train.epochs=%u", s->progress.epoch + 1);
    } else if (s->kept.eval_owed || (steps < run->train.max_steps && !r->patience_over)) {
        tn_text_addf(out, "goes on from %s (epoch %u of %u, step %llu)", r->name,
                     s->progress.epoch + 1, run->train.epochs, steps);
        return false;
    } else if (steps >= run->train.max_steps) {
        tn_text_addf(out, "run '%s' is finished (step %llu of %llu)", run->run.name, steps,
                     (unsigned long long)run->train.max_steps);
        tn_text_addf(remedy, "train.max_steps=%llu", 2 * steps + 1);
    } else {
        tn_text_addf(out, "run '%s' is finished (no better %s %u times in a row, step %llu)",
                     run->run.name, run->train.stop.monitor, s->kept.patience.bad, steps);
        tn_text_addf(remedy, "train.stop.patience=%u", s->kept.patience.bad + 1);
    }
    return true;
}

static uint32_t say_changes(const tn_rerun *r, bool finished, bool other_data, tn_text *out)
{
    const tn_run *run = r->plan->run;
    tn_text names = {0};
    uint32_t n = options_changed(tn_text_str(&r->state->past->config), r->text->config, run,
                                 finished, &names);
    if (other_data) {
        add_name(&names, n++, "data.train");
    }
    if (!tn_tree_is_null(run->checkpoint.from) && !r->state->kept.begun) {
        add_name(&names, n++, "checkpoint.from");
    }
    if (n > 0) {
        tn_text_addf(out, "; %u option%s: %s", n, n == 1 ? " differs" : "s differ",
                     tn_text_str(&names));
    }
    tn_text_done(&names);
    return n;
}

tn_status tn_rerun_tell(const tn_rerun *r, tn_text *out, tn_error *err)
{
    TN_ASSERT(r->state->past != NULL && r->text != NULL);
    tn_text remedy = {0};
    tn_text_adds(&remedy, "train on with ");
    const bool finished = say_where(r, out, &remedy);
    const bool other_data = finished && data_changed(r); /* else an epoch is opened, and looks */
    tn_text_addf(&remedy, "%s, begin anew with run.%s=.. or --fresh",
                 other_data ? " data.changed=accept" : "",
                 r->plan->run->run.dir != NULL ? "dir" : "name");
    tn_status status = TN_OK;
    if (say_changes(r, finished, other_data, out) == 0 && finished) {
        tn_text_addf(out, "; nothing trained; %s", tn_text_str(&remedy));
        status = tn_text_check(out, "a sentence", err);
    } else if (finished) {
        status = tn_fail(err, TN_E_CONFIG, "%s; nothing trained\nhint: %s", tn_text_str(out),
                         tn_text_str(&remedy));
    }
    tn_text_done(&remedy);
    return status;
}
