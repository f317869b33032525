/* api_jobs.c - what a run does: train, evaluate, predict, export, save. */
#include "api/api_run.h"

#include "base/core/alloc.h"
#include "base/core/log.h"
#include "base/math/fmath.h"
#include "config/tree.h"
#include "io/rows/batch.h"
#include "metrics/metrics.h"
#include "train/config/run_tasks.h"
#include "train/eval/evaluate.h"
#include "train/job/eval_job.h"
#include "train/job/export_job.h"
#include "train/job/train_job.h"
#include "train/report/eval_result.h"
#include "train/report/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- training ---- */

/* A run that trains, its options, and the rows of data.valid for a metric of the caller's. */
typedef struct watching {
    tnet_run *run;
    const tn_run *options;
    float *label, *p, *weight; /* n; `weight` is filled where weighed */
    size_t n, room;
    bool weighed, failed; /* failed: there was no memory for the rows */
} watching;

static void show_line(void *arg, const char *text, bool transient)
{
    const watching *w = arg;
    w->run->hooks.line(w->run->hooks.arg, TN_LOG_INFO, text, transient);
}

static void pass_record_on(void *arg, const char *line, size_t size)
{
    const watching *w = arg;
    w->run->hooks.record(w->run->hooks.arg, line, size);
}

static void pass_progress_on(void *arg, const tn_watch_progress *p)
{
    const watching *w = arg;
    const tnet_progress progress = {
        .size = sizeof progress,
        .steps = p->steps,
        .rows = p->samples,
        .epochs = p->epochs,
        .done = p->done,
        .seconds = p->seconds,
        .loss = p->loss,
    };
    if (w->run->hooks.progress(w->run->hooks.arg, &progress) != 0) {
        atomic_store(&w->run->stop, true);
    }
}

/* Makes room for n more rows. */
static bool grow_rows(watching *w, size_t n)
{
    const size_t room = w->room > 0 ? w->room : 1024;
    const size_t wanted = w->n + n <= w->room ? w->room : 2 * (room > n ? room : n);
    if (wanted > w->room && (TN_GROW(w->label, w->n, wanted, "labels", NULL) != TN_OK ||
                             TN_GROW(w->p, w->n, wanted, "scores", NULL) != TN_OK ||
                             TN_GROW(w->weight, w->n, wanted, "weights", NULL) != TN_OK)) {
        return false;
    }
    w->room = wanted;
    return true;
}

static void keep_rows(void *arg, const float *label, const float *logit, const float *weight,
                      uint32_t n)
{
    watching *w = arg;
    const bool clicks = w->options->data.target == TN_TARGET_CLICK;
    if (n == 0) {
        w->n = 0;
        w->weighed = w->failed = false;
        return;
    }
    if (w->failed || !grow_rows(w, n)) {
        w->failed = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        const size_t at = w->n + i;
        w->label[at] = label[i];
        w->p[at] = clicks ? (float)tn_sigmoid((double)logit[i]) : logit[i];
        w->weight[at] = weight != NULL ? weight[i] : 1;
    }
    w->weighed = w->weighed || weight != NULL;
    w->n += n;
}

/* Passes the usual metrics on, and those of eval.metrics. */
static void pass_scores_on(void *arg, uint64_t step, const tn_metrics *metrics)
{
    enum { VALUES_MAX = 64 };
    static const char *const usual[] = {"auc", "logloss", "copc"};
    watching *w = arg;
    const tnet_hooks *hooks = &w->run->hooks;
    const tn_strs *more = &w->options->eval.metrics;
    tnet_value value[VALUES_MAX];
    size_t n = 0;
    for (uint32_t i = 0; i < 3 + more->n && n + 1 < VALUES_MAX; i++) {
        const char *name = i < 3 ? usual[i] : more->item[i - 3];
        bool there = !tn_metric_fits(name, tn_metrics_target(metrics));
        for (uint32_t k = 0; k < 3 && i >= 3; k++) {
            there = there || strcmp(usual[k], name) == 0;
        }
        if (!there) {
            value[n++] = (tnet_value){"valid", name, tn_metrics_get(metrics, name)};
        }
    }
    if (hooks->metric != NULL && w->n > 0 && !w->failed) {
        value[n++] = (tnet_value){
            "valid", "custom",
            hooks->metric(hooks->arg, w->label, w->p, w->weighed ? w->weight : NULL, w->n)};
    }
    if (hooks->evaluated != NULL && hooks->evaluated(hooks->arg, step, value, n) != 0) {
        atomic_store(&w->run->ends, true);
    }
}

static tn_status train(tnet_run *run, tn_setup *s, void *arg, tn_error *err)
{
    const unsigned *how = arg;
    watching watch = {.run = run, .options = &s->run};
    const tnet_hooks *hooks = &run->hooks;
    const tn_watch hooked = {
        .show = hooks->line != NULL ? show_line : NULL,
        .record = hooks->record != NULL ? pass_record_on : NULL,
        .progress = hooks->progress != NULL ? pass_progress_on : NULL,
        .scored = hooks->metric != NULL ? keep_rows : NULL,
        .evaluated = hooks->evaluated != NULL || hooks->metric != NULL ? pass_scores_on : NULL,
        .arg = &watch,
        .terminal = true,
        .stop = &run->stop,
        .save = &run->saves,
        .ends = &run->ends,
        .inputs = &s->inputs,
    };
    const tn_train_job_opts begins = {.resume = (*how & TNET_RESUME) != 0,
                                      .fresh = (*how & TNET_FRESH) != 0,
                                      .again = (*how & TNET_AGAIN) != 0};
    TN_TRY(tn_train_job_begin(s, &begins, err));
    atomic_store(&run->ends, false);
    const tn_status planned = tn_train_job_plan(s, &run->stop, err);
    if (planned != TN_OK) {
        return planned == TN_END ? TN_OK : planned;
    }
    tn_outcome out;
    const tn_status status = tn_train_job_run(s, &hooked, &out, err);
    tn_outcome_done(&out);
    tn_free(watch.label);
    tn_free(watch.p);
    tn_free(watch.weight);
    return status;
}

int tnet_run_train_as(tnet_run *run, unsigned how, tnet_error *err)
{
    if ((how & ~(unsigned)(TNET_RESUME | TNET_FRESH | TNET_AGAIN)) != 0) {
        return tn_api_refuse(err, TN_E_USAGE, "training is asked for what this library has not");
    }
    return tn_api_call(run, &(tn_api_job){.work = train, .arg = &how}, err);
}

int tnet_run_train(tnet_run *run, tnet_error *err)
{
    return tnet_run_train_as(run, 0, err);
}

/* ---- evaluation ---- */

typedef struct judging {
    bool rows;        /* by the stream of the call */
    uint32_t repeats; /* for the importance of slots; 0: it is not asked for */
    tn_eval_job_sink *sink;
    void *sink_arg;
    tn_text json;
} judging;

static tn_status judge(tnet_run *run, tn_setup *s, void *arg, tn_error *err)
{
    static const char *const rows[] = {TN_API_ROWS};
    judging *j = arg;
    const tn_eval_job_opts opts = {.data = {.n = j->rows ? 1 : 0, .item = rows},
                                   .predictions = j->sink == NULL ? s->run.eval.predictions : NULL,
                                   .repeats = j->repeats,
                                   .sink = j->sink,
                                   .sink_arg = j->sink_arg,
                                   .stop = &run->stop};
    tn_eval_job *job = NULL;
    TN_TRY(tn_eval_job_new(&job, s, &opts, err));
    tn_status status = tn_eval_job_check_outputs(job, NULL, 0, err);
    status = status == TN_OK ? tn_eval_job_run(job, NULL, err) : status;
    if (status == TN_OK && j->sink == NULL) {
        status = tn_eval_result_json(tn_eval_job_result(job), &j->json, err);
        status = status == TN_OK ? tn_text_check(&j->json, "results", err) : status;
    }
    tn_eval_job_free(job);
    return status;
}

static int evaluate(tnet_run *run, const tnet_stream *stream, uint32_t repeats, char **json,
                    tnet_error *err)
{
    judging j = {.rows = stream != NULL, .repeats = repeats};
    const tn_api_job job = {.work = judge, .arg = &j, .reads = true, .rows = stream};
    tn_error why = {0};
    if (json == NULL) {
        return tn_api_refuse(err, TN_E_USAGE, "there is no place for the results");
    }
    *json = NULL;
    int code = tn_api_call(run, &job, err);
    if (code == TNET_OK && TN_ALLOC(*json, j.json.size + 1, "results", &why) != TN_OK) {
        code = tn_api_fail(err, &why);
    }
    if (code == TNET_OK) {
        TN_ASSERT(*json != NULL);
        memcpy(*json, tn_text_str(&j.json), j.json.size + 1);
    }
    tn_text_done(&j.json);
    return code;
}

int tnet_run_evaluate(tnet_run *run, const tnet_stream *stream, char **json, tnet_error *err)
{
    return evaluate(run, stream, 0, json, err);
}

int tnet_run_importance(tnet_run *run, const tnet_stream *stream, int repeats, char **json,
                        tnet_error *err)
{
    if (repeats < 1 || repeats > TN_IMPORTANCE_REPEATS) {
        return tn_api_refuse(err, TN_E_USAGE, "slots are dealt from 1 to 100 times");
    }
    return evaluate(run, stream, (uint32_t)repeats, json, err);
}

void tnet_text_free(char *text)
{
    tn_free(text);
}

/* The caller of a prediction. */
typedef struct taking_scores {
    tnet_take_scores *take;
    void *arg;
    const char *task; /* NULL: the first */
    uint32_t k;       /* its number */
    bool clicks;      /* logits are those of clicks */
    float *logit, *click;
    size_t logit_max, click_max;
} taking_scores;

static tn_status pass_on(void *arg, const tn_scores *scores, double shift, tn_error *err)
{
    taking_scores *t = arg;
    const uint32_t n = scores->batch->rows;
    const float *logit = t->k > 0 ? scores->task->score[t->k] : scores->logit;
    TN_TRY(TN_RESERVE(t->logit, t->logit_max, n, "logits", err));
    TN_TRY(TN_RESERVE(t->click, t->click_max, n, "probabilities", err));
    for (uint32_t i = 0; i < n; i++) {
        t->logit[i] = (float)((double)logit[i] + (t->k == 0 ? shift : 0));
        t->click[i] = t->clicks ? (float)tn_sigmoid((double)t->logit[i]) : t->logit[i];
    }
    return t->take(t->arg, t->logit, t->click, n) == 0
               ? TN_OK
               : tn_fail(err, TN_E_STOPPED, "stopped by whoever takes the scores");
}

static tn_status predict(tnet_run *run, tn_setup *s, void *arg, tn_error *err)
{
    judging *j = arg;
    taking_scores *t = j->sink_arg;
    const tn_tasks *tasks = tn_run_tasks_of(&s->run);
    t->k = t->task != NULL ? tn_tasks_find(tasks, t->task, strlen(t->task)) : 0;
    if (t->k == TN_NO_TASK) {
        return tn_fail(err, TN_E_USAGE, "the run has no task '%s'", t->task);
    }
    t->clicks = (tasks->n > 0 ? tasks->task[t->k].target : s->run.data.target) == TN_TARGET_CLICK;
    s->run.eval.auc = 0; /* only scores are wanted */
    s->run.eval.slices.n = 0;
    s->run.eval.metrics.n = 0;
    return judge(run, s, arg, err);
}

int tnet_run_predict(tnet_run *run, const tnet_stream *stream, tnet_take_scores *take, void *arg,
                     tnet_error *err)
{
    return tnet_run_predict_task(run, stream, NULL, take, arg, err);
}

int tnet_run_predict_task(tnet_run *run, const tnet_stream *stream, const char *task,
                          tnet_take_scores *take, void *arg, tnet_error *err)
{
    static const char *const unlabelled[] = {"data.label=none",
                                             "data.weight=~",
                                             "data.group=~",
                                             "eval.metrics=[]",
                                             "train.stop.monitor=~",
                                             "train.reduce_on_plateau.monitor=~",
                                             NULL};
    taking_scores t = {.take = take, .arg = arg, .task = task};
    judging j = {.rows = stream != NULL, .sink = pass_on, .sink_arg = &t};
    const tn_api_job job = {
        .work = predict, .arg = &j, .reads = true, .rows = stream, .extra = unlabelled};
    if (take == NULL) {
        return tn_api_refuse(err, TN_E_USAGE, "nobody takes the scores");
    }
    const int code = tn_api_call(run, &job, err);
    tn_free(t.logit);
    tn_free(t.click);
    return code;
}

/* ---- exports ---- */

typedef struct exporting {
    const char *to;
    tn_exported out;
} exporting;

static tn_status export(tnet_run *run, tn_setup *s, void *arg, tn_error *err)
{
    exporting *e = arg;
    return tn_export_job_run(s, &(tn_export_job_opts){.to = e->to, .stop = &run->stop}, &e->out,
                             err);
}

int tnet_run_export(tnet_run *run, const char *to, char id[33], tnet_error *err)
{
    exporting e = {.to = to};
    const int code = tn_api_call(run, &(tn_api_job){.work = export, .arg = &e, .reads = true}, err);
    if (code == TNET_OK && id != NULL) {
        memcpy(id, e.out.model_id, sizeof e.out.model_id);
    }
    return code;
}

/* ---- saving ---- */

/* Leaves out what belongs to a process that works on a run. */
static bool is_kept(const char *name)
{
    return strcmp(name, "LOCK") != 0 && strcmp(name, "OWNER") != 0;
}

static tn_status save(tnet_run *run, tn_setup *s, void *arg, tn_error *err)
{
    char latest[TN_PATH_SIZE];
    (void)s;
    TN_TRY(tn_path_join(run->dir, "LATEST", latest, err));
    if (!tn_path_exists(latest)) {
        return tn_fail(err, TN_E_CKPT, "nothing is learned yet: '%s' has no checkpoint", run->dir);
    }
    return tn_copy_tree(run->dir, arg, is_kept, err);
}

int tnet_run_save(tnet_run *run, const char *dir, tnet_error *err)
{
    char to[TN_PATH_SIZE];
    const int size = dir != NULL ? snprintf(to, sizeof to, "%s", dir) : -1;
    if (size <= 0 || (size_t)size >= sizeof to) {
        return tn_api_refuse(err, TN_E_USAGE, "a model is saved to a folder, and none is named");
    }
    return tn_api_call(run, &(tn_api_job){.work = save, .arg = to, .reads = true}, err);
}
