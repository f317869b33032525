/* run_tasks.c - reads the section `tasks`, and refuses what does not go together with it. */
#include "train/config/run_tasks.h"

#include "base/core/arena.h"
#include "base/core/error.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/fieldtree.h"
#include "config/tree.h"
#include "io/format/format.h"
#include "io/schema/schema.h"
#include "metrics/calibrator.h"
#include "metrics/metrics.h"
#include "nn/loss/loss.h"
#include "train/config/run.h"

#include <string.h>

enum { TASK_NAME_MAX = 64 };

typedef struct task_opts {
    const tn_tree *label;
    tn_variant loss;
    const tn_tree *weight;
    const char *of, *where;
} task_opts;

static const tn_field task_fields[] = {
    TN_FIELD_TREE_OF(task_opts, label, "~", "column", "as data.label; ~: the task's name"),
    TN_FIELD_VARIANT_WITH(task_opts, loss, TN_LOSS_DEFAULT, tn_loss_choices, tn_loss_common,
                          tn_loss_common_fields, "what is minimised"),
    TN_FIELD_TREE_ONE(task_opts, weight, "1", "factor of its loss, learned, or {column: name}"),
    TN_FIELD_STR(task_opts, of, "~", "the task that it is a share of"),
    TN_FIELD_STR(task_opts, where, "~", "the task whose clicks are its rows"),
    TN_FIELD_END,
};

/* ---- the first task is that of the run ---- */

static const tn_tree *label_of(tn_arena *arena, const tn_tree *task)
{
    TN_ASSERT(task != NULL);
    const tn_tree *label = task->kind == TN_TREE_MAP ? tn_tree_get(task, "label") : NULL;
    return tn_tree_is_null(label) ? tn_tree_scalar(arena, task->key, task->at) : label;
}

static bool is_same(const tn_tree *a, const tn_tree *b)
{
    tn_text mine = {0};
    tn_text other = {0};
    tn_tree_print_flow(&mine, a);
    tn_tree_print_flow(&other, b);
    const bool same = strcmp(tn_text_str(&mine), tn_text_str(&other)) == 0;
    tn_text_done(&mine);
    tn_text_done(&other);
    return same;
}

static const char *type_of(const tn_tree *loss)
{
    const tn_tree *t = loss != NULL && loss->kind == TN_TREE_MAP ? tn_tree_get(loss, "type") : loss;
    return t != NULL && t->kind == TN_TREE_SCALAR ? t->text : NULL;
}

/* Puts `value` in as section.key, or as the section where `key` is NULL. */
static tn_tree *put(const tn_binder *b, const tn_tree *tree, const char *section, const char *key,
                    const tn_tree *value)
{
    tn_tree *out = tn_tree_copy(b->arena, tree);
    const tn_tree *old = tn_tree_get(tree, section);
    tn_tree *part = tn_tree_copy(b->arena, value);
    if (key != NULL) {
        tn_tree *map = old != NULL && old->kind == TN_TREE_MAP
                           ? tn_tree_copy(b->arena, old)
                           : tn_tree_new(b->arena, TN_TREE_MAP, value->at);
        tn_tree_put(b->arena, map, key, part);
        part = map;
    }
    tn_tree_put(b->arena, out, section, part);
    return out;
}

static tn_tree *section_alone(const tn_binder *b, const char *name, const tn_tree *value)
{
    TN_ASSERT(value != NULL);
    tn_tree *map = tn_tree_new(b->arena, TN_TREE_MAP, value->at);
    tn_tree_put(b->arena, map, name, tn_tree_copy(b->arena, value));
    return map;
}

static const tn_tree *spread_loss(const tn_binder *b, const tn_tree *tree, const tn_tree *loss,
                                  const char *name)
{
    const tn_tree *given = tn_tree_get(tree, "loss");
    const char *type = type_of(given);
    const char *own = type_of(loss);
    if (type != NULL && own != NULL && strcmp(type, own) != 0) {
        tn_diag_error(b->diag, &given->at, "'loss' is %s, and the first task '%s' has the loss %s",
                      type, name, own);
        return tree;
    }
    if (tn_tree_is_null(given)) {
        return put(b, tree, "loss", NULL, loss);
    }
    const tn_tree *both = tn_fields_merge(b, tn_run_fields, section_alone(b, "loss", given),
                                          section_alone(b, "loss", loss));
    return put(b, tree, "loss", NULL, tn_tree_get(both, "loss"));
}

const tn_tree *tn_tasks_spread(const tn_binder *b, const tn_tree *tree)
{
    const tn_tree *tasks = tn_tree_get(tree, "tasks");
    if (tn_tree_is_null(tasks) || tasks->kind != TN_TREE_MAP || tasks->first == NULL) {
        return tree;
    }
    const tn_tree *first = tasks->first;
    const tn_tree *label = label_of(b->arena, first);
    const tn_tree *given = tn_tree_at(tree, "data.label");
    const tn_tree *loss = first->kind == TN_TREE_MAP ? tn_tree_get(first, "loss") : NULL;
    if (tn_tree_is_null(given)) {
        tree = put(b, tree, "data", "label", label);
    } else if (!tn_label_is_none(given) &&
               !is_same(tn_label_words(b->arena, given), tn_label_words(b->arena, label))) {
        tn_diag_error(b->diag, &given->at,
                      "'data.label' is another label than that of the first task '%s'", first->key);
        tn_diag_hint(b->diag, "leave data.label out: each task names its own");
    }
    return tn_tree_is_null(loss) ? tree : spread_loss(b, tree, loss, first->key);
}

/* ---- reading ---- */

typedef struct reading {
    const tn_binder *b;
    tn_run_tasks *out;
    bool unlabelled; /* data.label is none: rows have no label of any task */
    const tn_tree *at[TN_TASKS_MAX];
    task_opts opts[TN_TASKS_MAX];
    const char *names[TN_TASKS_MAX];
} reading;

/* Words that records have beside a task's name (docs/formats.md section 9). */
static bool is_taken(const char *name)
{
    static const char *const words[] = {"tasks", "rows",   "data",    "loss",    "loss_hex",
                                        "best",  "slices", "t",       "kind",    "step",
                                        "epoch", "model",  "seconds", "samples", "calibrated_by"};
    bool taken = tn_metric_find(name) != NULL;
    for (uint32_t i = 0; i < sizeof words / sizeof words[0] && !taken; i++) {
        taken = strcmp(name, words[i]) == 0;
    }
    return taken;
}

static bool is_name(const char *name)
{
    const size_t size = strlen(name);
    bool good = size >= 1 && size <= TASK_NAME_MAX;
    for (size_t i = 0; i < size && good; i++) {
        const char c = name[i];
        good = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
    }
    return good;
}

/* The place of the task that `of` or `where` names. */
static uint32_t find_task(const reading *r, uint32_t k, const char *key, const char *name)
{
    const tn_tree *at = tn_tree_get(r->at[k], key);
    const uint32_t found =
        name != NULL ? tn_tasks_find(&r->out->tasks, name, strlen(name)) : TN_NO_TASK;
    if (name != NULL && found == TN_NO_TASK) {
        tn_diag_unknown(r->b->diag, &at->at, "task", name, r->names, r->out->tasks.n);
    } else if (found == k) {
        tn_diag_error(r->b->diag, &at->at, "task '%s' has itself as '%s'", name, key);
        return TN_NO_TASK;
    } else if (found != TN_NO_TASK && r->out->tasks.task[found].target != TN_TARGET_CLICK) {
        tn_diag_error(r->b->diag, &at->at, "'%s' of task '%s' is '%s', whose labels are not clicks",
                      key, r->names[k], name);
        return TN_NO_TASK;
    }
    return found;
}

static uint32_t add_aside(tn_run_tasks *out, const char *column, const tn_tree *label,
                          tn_target target)
{
    TN_ASSERT(out->tasks.n_aside < sizeof out->aside / sizeof out->aside[0]);
    out->aside[out->tasks.n_aside] = (tn_aside){.column = column, .label = label, .target = target};
    return out->tasks.n_aside++;
}

static void read_label(const reading *r, uint32_t k)
{
    tn_arena *arena = r->b->arena;
    const tn_tree *label = tn_label_words(arena, label_of(arena, r->at[k]));
    const tn_tree *column = label->kind == TN_TREE_MAP ? tn_tree_get(label, "column") : label;
    tn_task *t = &r->out->tasks.task[k];
    t->label = TN_NO_ASIDE;
    if (r->unlabelled) {
        return;
    }
    if (tn_label_is_none(label) || column == NULL || column->kind != TN_TREE_SCALAR) {
        tn_diag_error(r->b->diag, &label->at, "the label of task '%s' is no column", t->name);
    } else if (k > 0) {
        t->label = add_aside(r->out, column->text, label, t->target);
    }
}

/* A number, or a column of them. */
static void read_weight(const reading *r, uint32_t k)
{
    TN_ASSERT(r->opts[k].weight != NULL); /* it has a default */
    static const tn_field number = {
        .kind = TN_KIND_F64, .key = "weight", .min = 0, .max = 1e6, .unit = ""};
    const tn_tree *weight = r->opts[k].weight;
    const tn_tree *column = weight->kind == TN_TREE_MAP ? tn_tree_get(weight, "column") : NULL;
    tn_task *t = &r->out->tasks.task[k];
    t->weight = 1;
    t->weight_column = TN_NO_ASIDE;
    t->learned = weight->kind == TN_TREE_SCALAR && strcmp(weight->text, "learned") == 0;
    if (t->learned) {
        return;
    }
    if (weight->kind != TN_TREE_MAP) {
        (void)tn_read_scalar(r->b, &number, weight, &t->weight);
    } else if (column == NULL || column->kind != TN_TREE_SCALAR || tn_tree_count(weight) != 1) {
        tn_diag_error(r->b->diag, &weight->at, "expected a number, learned, or {column: name}");
    } else if (!r->unlabelled) {
        t->weight_column = add_aside(r->out, column->text, NULL, TN_TARGET_NUMBER);
    }
}

static void read_task(reading *r, uint32_t k, const tn_tree *tree)
{
    TN_ASSERT(k < r->out->tasks.n && tree->key != NULL);
    tn_task *t = &r->out->tasks.task[k];
    tn_arena *arena = r->b->arena;
    tn_binder inner = *r->b;
    inner.path = "tasks";
    if (!is_name(tree->key)) {
        tn_diag_error(r->b->diag, &tree->key_at, "task '%s' is not 1 to %d of A-Z a-z 0-9 _ -",
                      tree->key, TASK_NAME_MAX);
    } else if (is_taken(tree->key)) {
        tn_diag_error(r->b->diag, &tree->key_at,
                      "a task cannot be called '%s': records have that word for something else",
                      tree->key);
    }
    tn_tree *map = tree->kind == TN_TREE_MAP ? tn_tree_copy(arena, tree)
                                             : tn_tree_new(arena, TN_TREE_MAP, tree->at);
    if (tree->kind != TN_TREE_MAP && !tn_tree_is_null(tree)) {
        tn_diag_error(r->b->diag, &tree->at, "expected {label: .., loss: .., of: ..}");
    }
    map->key = tree->key;
    r->at[k] = map;
    r->names[k] = tree->key;
    tn_fields_bind(&inner, task_fields, map, &r->opts[k]);
    const tn_loss *loss = tn_loss_of(&r->opts[k].loss);
    r->out->loss[k] = r->opts[k].loss;
    *t = (tn_task){.name = tree->key, .target = loss->target};
    if (loss->target == TN_TARGET_ORDER) {
        tn_diag_error(
            r->b->diag, &map->at,
            "task '%s' has the loss '%s' of pairs of rows, which several tasks do not take",
            t->name, loss->choice.name);
    }
}

/* Reports each cycle of `of` at its first task. */
static void refuse_cycle(const reading *r, uint32_t k)
{
    const tn_tasks *t = &r->out->tasks;
    TN_ASSERT(k < t->n);
    uint32_t at = t->task[k].of;
    for (uint32_t steps = 0; at != TN_NO_TASK && at != k && steps < t->n; steps++) {
        at = t->task[at].of;
    }
    bool first = at == k;
    for (uint32_t i = t->task[k].of; first && i != k; i = t->task[i].of) {
        first = i > k;
    }
    if (first) {
        tn_diag_error(r->b->diag, &r->at[k]->at, "task '%s' is, by 'of', a share of itself",
                      t->task[k].name);
    }
}

static void link_tasks(const reading *r)
{
    tn_tasks *t = &r->out->tasks;
    for (uint32_t k = 0; k < t->n; k++) {
        const task_opts *o = &r->opts[k];
        t->task[k].of = find_task(r, k, "of", o->of);
        t->task[k].where = find_task(r, k, "where", o->where);
        if (o->of != NULL && o->where != NULL) {
            tn_diag_error(
                r->b->diag, &r->at[k]->at,
                "task '%s' has 'of' and 'where': of learns from all rows, where from some",
                t->task[k].name);
        }
        if (o->of != NULL && t->task[k].target != TN_TARGET_CLICK) {
            tn_diag_error(r->b->diag, &r->at[k]->at,
                          "task '%s' has 'of', and its loss '%s' makes no probability of a click",
                          t->task[k].name, tn_loss_of(&o->loss)->choice.name);
        }
    }
    for (uint32_t k = 0; k < t->n; k++) {
        refuse_cycle(r, k);
    }
}

/* ---- what does not go together ---- */

static void check_format(const tn_binder *b, const tn_tree *tree, const tn_run *run)
{
    const tn_format *f = run->data.format != NULL ? tn_format_find(run->data.format) : NULL;
    if (f != NULL && !(tn_format_reads(f->data_options, "group") &&
                       tn_format_reads(f->data_options, "record_id"))) {
        tn_diag_error(b->diag, tn_tree_place(tree, "tasks"),
                      "records of format '%s' have one label, and 'tasks' wants a column for each",
                      f->name);
        tn_diag_hint(b->diag, "csv, tsv, jsonl and tfrecord have columns of names");
    }
}

/* Returns whether rows with a click of task k have one of the first, as labels of shares say. */
static bool is_within_first(const tn_tasks *tasks, uint32_t k)
{
    for (uint32_t steps = 0; k != 0 && k != TN_NO_TASK && steps < tasks->n; steps++) {
        k = tasks->task[k].of;
    }
    return k == 0;
}

/* Rows are left out by the label of the first task. What that does to a share of it, or to a task
 * of its clicks alone, is known; what it does to another one depends on labels that no score says.
 * */
static void check_sampling(const reading *r, const tn_tree *tree, const tn_run *run)
{
    const tn_tasks *tasks = &r->out->tasks;
    for (uint32_t k = 1; k < tasks->n && run->data.negative_sampling < 1; k++) {
        const tn_task *t = &tasks->task[k];
        if (!is_within_first(tasks, t->where != TN_NO_TASK ? t->where : k)) {
            tn_diag_error(r->b->diag, tn_tree_place(tree, "data.negative_sampling"),
                          "'data.negative_sampling' leaves out rows by the label of '%s', and "
                          "scores of '%s' cannot be corrected for it",
                          tasks->task[0].name, t->name);
            tn_diag_hint(r->b->diag, "they can where the task has 'of: %s' or 'where: %s'",
                         tasks->task[0].name, tasks->task[0].name);
        }
    }
}

/* One task is a run of one label: nothing else can be said of it. */
static void check_alone(const reading *r)
{
    const task_opts *o = &r->opts[0];
    const tn_tree *w = o->weight;
    const tn_task *t = &r->out->tasks.task[0];
    if (w->kind == TN_TREE_MAP || t->weight != 1 || t->learned) {
        tn_diag_error(r->b->diag, &w->at, "the weight of the only task '%s' is a factor of nothing",
                      r->names[0]);
        tn_diag_hint(r->b->diag, "data.weight names the column of row weights");
    }
}

void tn_tasks_bind(const tn_binder *b, const tn_tree *tree, tn_run *run)
{
    const tn_tree *tasks = run->tasks;
    run->several = NULL;
    run->data.tasks = NULL;
    run->data.aside = NULL;
    if (tn_tree_is_null(tasks)) {
        return;
    }
    const uint32_t n = tasks->kind == TN_TREE_MAP ? tn_tree_count(tasks) : 0;
    if (n == 0 || n > TN_TASKS_MAX) {
        tn_diag_error(b->diag, &tasks->at, "expected {name: {label: ..}, ..} of 1 to %d tasks",
                      TN_TASKS_MAX);
        return;
    }
    reading *r = TN_NEW(b->arena, reading);
    *r = (reading){.b = b,
                   .out = TN_NEW(b->arena, tn_run_tasks),
                   .unlabelled = tn_label_is_none(run->data.label)};
    r->out->tasks.n = n;
    uint32_t k = 0;
    for (const tn_tree *t = tasks->first; t != NULL; t = t->next) {
        read_task(r, k++, t);
    }
    r->out->loss[0] = run->loss;
    r->out->tasks.task[0].target = tn_loss_of(&run->loss)->target;
    for (k = 0; k < n; k++) { /* labels first: the order that base/keys/tasks.h shows */
        read_label(r, k);
    }
    for (k = 0; k < n; k++) {
        read_weight(r, k);
    }
    link_tasks(r);
    if (n == 1) {
        check_alone(r);
        return;
    }
    check_format(b, tree, run);
    check_sampling(r, tree, run);
    run->several = r->out;
    run->data.tasks = &r->out->tasks;
    run->data.aside = r->out->aside;
}

void tn_tasks_put_meaning(tn_arena *arena, const tn_tree *tasks, tn_text *out)
{
    const bool named = tasks != NULL && tasks->kind == TN_TREE_MAP && tn_tree_count(tasks) > 1;
    for (const tn_tree *t = named ? tasks->first : NULL; t != NULL; t = t->next) {
        const bool is_map = t->kind == TN_TREE_MAP;
        const tn_tree *of = is_map ? tn_tree_get(t, "of") : NULL;
        const char *loss = is_map ? type_of(tn_tree_get(t, "loss")) : NULL;
        tn_text_addf(out, "%s%s: {label: ", t != tasks->first ? ", " : "", t->key);
        tn_tree_print_flow(out, tn_label_words(arena, label_of(arena, t)));
        tn_text_addf(out, ", loss: %s", loss != NULL ? loss : TN_LOSS_DEFAULT);
        if (of != NULL && of->kind == TN_TREE_SCALAR) {
            tn_text_addf(out, ", of: %s", of->text);
        }
        tn_text_adds(out, "}");
    }
}

const tn_tasks *tn_run_tasks_of(const tn_run *run)
{
    static const tn_tasks none;
    return run->several != NULL ? &run->several->tasks : &none;
}

tn_status tn_tasks_refuse(const tn_run *run, const char *what, tn_error *err)
{
    return run->several == NULL
               ? TN_OK
               : tn_fail(err, TN_E_CONFIG,
                         "'tasks' and %s do not go together: it has one score, the run has %u",
                         what, run->several->tasks.n);
}

tn_strs tn_task_metric_names(const tn_run *run, uint32_t k)
{
    static const char *const usual[TN_TARGETS][6] = {
        [TN_TARGET_CLICK] = {"auc", "logloss", "ne", "ctr", "copc"},
        [TN_TARGET_SIDE] = {"auc", "accuracy", "ctr"},
        [TN_TARGET_NUMBER] = {"rmse", "mae", "label_mean", "prediction_mean"},
        [TN_TARGET_ORDER] = {"auc"},
    };
    const tn_tasks *tasks = tn_run_tasks_of(run);
    TN_ASSERT(k < tn_tasks_count(tasks));
    const tn_target target = tasks->n > 0 ? tasks->task[k].target : run->data.target;
    const tn_strs *all = &run->eval.metrics;
    bool fits = tasks->n == 0;
    for (uint32_t i = 0; i < all->n; i++) {
        fits = fits || tn_metric_fits(all->item[i], target);
    }
    uint32_t n = 0;
    while (usual[target][n] != NULL) {
        n++;
    }
    return fits ? *all : (tn_strs){n, usual[target]};
}

void tn_run_of_task(const tn_run *run, uint32_t k, tn_run *out)
{
    const tn_tasks *tasks = tn_run_tasks_of(run);
    *out = *run;
    if (tasks->n > 0) {
        out->loss = *tn_run_task_loss(run, k);
        out->data.target = tasks->task[k].target;
        out->eval.metrics = tn_task_metric_names(run, k);
        out->data.negative_sampling = k == 0 ? run->data.negative_sampling : 1;
        out->several = NULL;
        out->data.tasks = NULL;
    }
}

const tn_variant *tn_run_task_loss(const tn_run *run, uint32_t k)
{
    TN_ASSERT(k < tn_tasks_count(tn_run_tasks_of(run)));
    return k == 0 ? &run->loss : &run->several->loss[k];
}

uint32_t tn_monitor_task(const tn_tasks *tasks, const char *monitor, const char **metric)
{
    const char *dot = strchr(monitor, '.');
    *metric = dot != NULL ? dot + 1 : monitor;
    if (tasks->n > 0 && dot != NULL && strncmp(monitor, "tasks.", strlen("tasks.")) == 0) {
        return TN_ALL_TASKS;
    }
    return dot != NULL ? tn_tasks_find(tasks, monitor, (size_t)(dot - monitor)) : 0;
}
