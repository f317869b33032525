/* evaluate.c - scores a data set by a worker or an export, and collects metrics and slices. */
#include "train/eval/evaluate.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/math/fmath.h"
#include "base/math/key.h"
#include "base/trace/trace.h"
#include "io/read/fileset.h"
#include "io/schema/schema.h"
#include "metrics/calibrator.h"
#include "metrics/slices.h"
#include "serve/exported_model.h"
#include "serve/score.h"
#include "train/config/days.h"
#include "train/config/run_bind.h"
#include "train/config/run_tasks.h"
#include "train/eval/node_files.h"
#include "train/step/model_plan.h"
#include "train/step/step_prefetch.h"
#include "train/step/worker.h"

#include <string.h>

/* ---- scores become metrics and slices ---- */

tn_metrics_opts tn_metrics_opts_of(const tn_run *run)
{
    return (tn_metrics_opts){
        .target = run->data.target,
        .exact_auc = run->eval.auc == 1,
        .grouped = tn_run_grouped_metric(run) != NULL,
        .sampling = run->data.negative_sampling,
        .top_k = run->eval.top_k,
    };
}

void tn_evaluation_done(tn_evaluation *e)
{
    for (uint32_t k = 0; k < e->n_more; k++) {
        tn_evaluation_done(&e->more[k]);
    }
    tn_free(e->more);
    for (uint32_t i = 0; e->slices != NULL && i < e->n_slices; i++) {
        tn_slices_free(e->slices[i]);
    }
    tn_free(e->slices);
    tn_metrics_free(e->metrics);
    tn_metrics_free(e->raw);
    *e = (tn_evaluation){0};
}

const tn_evaluation *tn_evaluation_of_task(const tn_evaluation *e, uint32_t k)
{
    TN_ASSERT(k < TN_TASKS_MAX);
    return k == 0 ? e : k <= e->n_more ? &e->more[k - 1] : NULL;
}

const tn_metrics *tn_evaluation_task(const tn_evaluation *e, uint32_t k)
{
    const tn_evaluation *of = tn_evaluation_of_task(e, k);
    return of != NULL ? of->metrics : NULL;
}

void tn_scores_of_task(const tn_scores *scores, uint32_t k, tn_batch *batch, tn_scores *out)
{
    *out = *scores;
    if (scores->batch->task == NULL) {
        return;
    }
    TN_ASSERT(k == 0 || scores->task != NULL);
    *batch = *scores->batch;
    batch->label = scores->batch->task[k].label;
    batch->weight = scores->batch->task[k].weight;
    batch->task = NULL;
    out->batch = batch;
    out->logit = k == 0 ? scores->logit : scores->task->score[k];
    out->task = NULL;
}

enum { SLICES_MAX = 1 << 12 }; /* all tasks share these places */

/* One slot whose values get metrics of their own, and room for its signs. */
typedef struct slicer {
    const tn_slot_spec *spec;
    uint64_t *sign;
    uint32_t capacity;
} slicer;

static tn_status make_slices(tn_score_collector *j, tn_error *err)
{
    const tn_run *run = j->run;
    tn_evaluation *out = j->out;
    uint32_t n = run->eval.slices.n;
    if (n == 0) {
        return TN_OK;
    }
    TN_ASSERT(j->slicer == NULL && out->slices == NULL);
    out->slices = tn_alloc(n, sizeof(tn_slices *), "slices");
    j->slicer = tn_alloc(n, sizeof *j->slicer, "slices");
    out->n_slices = n;
    for (uint32_t i = 0; i < n; i++) {
        const char *name = run->eval.slices.item[i];
        j->slicer[i].spec = tn_schema_slot(j->schema, name);
        if (j->slicer[i].spec == NULL) {
            return tn_fail(err, TN_E_CONFIG, "eval.slices: no slot '%s' with keys", name);
        }
        tn_slices_opts opts = {
            .slices_max = SLICES_MAX / (j->n_tasks > 1 ? j->n_tasks : 1),
            .rows_min = run->eval.slices_min_rows,
            .sampling = j->sampling,
            .target = run->data.target,
        };
        TN_TRY(tn_slices_new(&out->slices[i], &opts, err));
    }
    return TN_OK;
}

static tn_status add_slices(tn_score_collector *j, const tn_batch *batch, const tn_scored *rows,
                            tn_error *err)
{
    for (uint32_t i = 0; i < j->out->n_slices; i++) {
        slicer *s = &j->slicer[i];
        TN_ASSERT(s->spec->slot < batch->n_slots);
        const tn_slot *slot = &batch->slot[s->spec->slot];
        uint32_t n = slot->offset[batch->rows];
        if (n > s->capacity) {
            tn_free(s->sign);
            s->capacity = 0;
            TN_TRY(TN_ALLOC(s->sign, n, "slices", err));
            s->capacity = n;
        }
        for (uint32_t k = 0; k < n; k++) {
            s->sign[k] = tn_sign_of(slot->key[k], s->spec->salt);
        }
        TN_TRY(tn_slices_add(j->out->slices[i], rows,
                             &(tn_slice_keys){.sign = s->sign, .start = slot->offset}, err));
    }
    return TN_OK;
}

/* Collects the metrics of a task after the first. */
typedef struct task_collector {
    tn_run run;
    tn_eval_request request;
    tn_score_collector j;
} task_collector;

static const tn_calibration *map_of(const tn_eval_request *request, uint32_t k)
{
    const tn_calibration *map = request->calibration;
    return map != NULL && map[k].kind != TN_CALIBRATION_NONE ? &map[k] : NULL;
}

/* Begins a collector for each task after the first. */
static tn_status begin_tasks(tn_score_collector *j, tn_error *err)
{
    const tn_tasks *tasks = tn_run_tasks_of(j->run);
    if (tasks->n == 0) {
        return TN_OK;
    }
    TN_TRY(TN_ALLOC(j->task, tasks->n - 1, "tasks", err));
    TN_TRY(TN_ALLOC(j->out->more, tasks->n - 1, "tasks", err));
    j->out->n_more = tasks->n - 1;
    for (uint32_t k = 1; k < tasks->n; k++) {
        task_collector *t = &j->task[k - 1];
        tn_run_of_task(j->run, k, &t->run);
        t->request.calibration = map_of(j->request, k);
        t->j = (tn_score_collector){.run = &t->run,
                                    .schema = j->schema,
                                    .request = &t->request,
                                    .sampling = 1, /* scores are corrected, or need not be */
                                    .out = &j->out->more[k - 1],
                                    .grouped = j->grouped,
                                    .n_tasks = tasks->n};
        TN_TRY(tn_score_collector_begin(&t->j, err));
    }
    return TN_OK;
}

tn_status tn_score_collector_begin(tn_score_collector *j, tn_error *err)
{
    TN_ASSERT(j->out != NULL && j->request != NULL && j->slicer == NULL);
    *j->out = (tn_evaluation){0};
    j->began = tn_clock_s();
    if (j->request->only_scores) {
        TN_ASSERT(j->request->calibration == NULL); /* whoever makes the metrics applies it */
        return TN_OK;
    }
    tn_metrics_opts opts = tn_metrics_opts_of(j->run);
    opts.grouped = j->grouped = opts.grouped || j->grouped;
    j->n_tasks = j->n_tasks > 0 ? j->n_tasks : tn_tasks_count(tn_run_tasks_of(j->run));
    TN_TRY(begin_tasks(j, err));
    j->map = map_of(j->request, 0);
    if (j->map != NULL) {
        const tn_metrics_opts raw = {.coarse = true, .sampling = j->sampling};
        TN_TRY(tn_metrics_new(&j->out->raw, &raw, err));
        j->out->calibrated_by = tn_calibration_name(j->map);
        j->shift = j->sampling > 0 ? tn_ln(j->sampling) : 0;
        j->sampling = 1; /* a map is fitted to corrected scores */
    }
    opts.sampling = j->sampling;
    TN_TRY(tn_metrics_new(&j->out->metrics, &opts, err));
    return make_slices(j, err);
}

/* Puts the logits of a batch through the map of the request. */
static tn_status calibrate(tn_score_collector *j, tn_scores *scores, tn_error *err)
{
    const uint32_t n = scores->batch->rows;
    if (n > j->capacity) {
        tn_free(j->calibrated);
        j->capacity = 0;
        TN_TRY(TN_ALLOC(j->calibrated, n, "calibrated scores", err));
        j->capacity = n;
    }
    for (uint32_t i = 0; i < n; i++) {
        const double z = (double)scores->logit[i] + j->shift;
        const uint32_t m = scores->unknown != NULL ? scores->unknown[i] : 0;
        j->calibrated[i] = (float)tn_calibration_logit(j->map, z, m);
    }
    scores->logit = j->calibrated;
    return TN_OK;
}

static bool is_stopped(const tn_score_collector *j)
{
    return j->request->stop != NULL && atomic_load(j->request->stop);
}

static tn_status fail_stopped(tn_error *err)
{
    return tn_fail(err, TN_E_STOPPED, "stopped by a signal while evaluating");
}

/* Judges what `scores` are after the map. */
static tn_status judge_scores(tn_score_collector *j, tn_scores *scores, tn_error *err)
{
    const tn_batch *batch = scores->batch;
    const bool judged = j->out->metrics != NULL && !j->schema->label->none;
    tn_scored rows = {.n = batch->rows,
                      .logit = scores->logit,
                      .label = batch->label,
                      .weight = batch->weight,
                      .group = batch->group};
    if (j->map != NULL) {
        TN_TRY(judged ? tn_metrics_add(j->out->raw, &rows, err) : TN_OK);
        TN_TRY(calibrate(j, scores, err));
        rows.logit = scores->logit;
    }
    if (judged) {
        TN_TRY(tn_metrics_add(j->out->metrics, &rows, err));
        TN_TRY(add_slices(j, batch, &rows, err));
    }
    return TN_OK;
}

/* Hands the scores of further tasks to their collectors. *served is what became of all. */
static tn_status add_tasks(const tn_score_collector *j, const tn_scores *scores,
                           tn_task_scores *served, tn_error *err)
{
    const uint32_t n = tn_run_tasks_of(j->run)->n;
    TN_ASSERT(j->task == NULL || j->out->n_more + 1 == n);
    for (uint32_t k = 1; j->task != NULL && scores->task != NULL && k < n; k++) {
        tn_batch batch;
        tn_scores of;
        tn_score_collector *own = &j->task[k - 1].j;
        tn_scores_of_task(scores, k, &batch, &of);
        TN_TRY(judge_scores(own, &of, err));
        served->score[k] = of.logit;
    }
    return TN_OK;
}

tn_status tn_score_collector_add(tn_score_collector *j, const tn_scores *scores, tn_error *err)
{
    TN_ASSERT(scores->batch != NULL && scores->logit != NULL);
    tn_scores served = *scores;
    tn_scores first;
    tn_batch batch;
    tn_task_scores task;
    tn_scores_of_task(scores, 0, &batch, &first);
    TN_TRY(judge_scores(j, &first, err));
    served.logit = first.logit;
    if (scores->task != NULL) {
        task = *scores->task;
        task.score[0] = first.logit;
        TN_TRY(add_tasks(j, scores, &task, err));
        served.task = &task;
    }
    if (j->request->sink != NULL) {
        TN_TRY(j->request->sink(j->request->sink_arg, &served, err));
    }
    return is_stopped(j) ? fail_stopped(err) : TN_OK;
}

void tn_score_collector_end(tn_score_collector *j, tn_status status)
{
    for (uint32_t k = 0; j->task != NULL && k < j->out->n_more; k++) {
        tn_score_collector_end(&j->task[k].j, TN_OK); /* its findings go with j->out */
    }
    tn_free(j->task);
    j->task = NULL;
    for (uint32_t i = 0; j->slicer != NULL && i < j->out->n_slices; i++) {
        tn_free(j->slicer[i].sign);
    }
    tn_free(j->slicer);
    j->slicer = NULL;
    tn_free(j->calibrated);
    j->calibrated = NULL;
    j->out->seconds = tn_clock_s() - j->began;
    if (status != TN_OK) {
        tn_evaluation_done(j->out);
    }
}

/* How a pass that ended so has ended. */
static tn_status end_of(const tn_score_collector *j, tn_status status, tn_error *err)
{
    if (is_stopped(j) && (status == TN_END || status == TN_E_STOPPED)) {
        return fail_stopped(err);
    }
    return status == TN_END ? TN_OK : status;
}

static tn_reader_opts reader_of(const tn_score_collector *j)
{
    return (tn_reader_opts){.paths = *j->request->paths,
                            .batch_rows = j->run->eval.batch,
                            .held = j->request->held,
                            .want_ids = j->request->want_ids,
                            .seed = j->run->run.seed,
                            .prefetch = j->run->train.prefetch};
}

/* ---- a worker ---- */

/* Counts of one slot. */
typedef struct key_count {
    uint64_t values, unknown;
} key_count;

static void count_keys(const tn_step *s, uint32_t n_slots, key_count *slot)
{
    for (uint32_t i = 0; i < n_slots; i++) {
        slot[i].values += s->local->bag[i].offset[s->batch->rows];
        slot[i].unknown += s->unknown[i];
    }
}

static tn_unknown_keys sum_keys(const tn_schema *schema, const key_count *slot)
{
    tn_unknown_keys all = {0};
    for (uint32_t i = 0; i < schema->n_slots; i++) {
        const double share =
            slot[i].values > 0 ? (double)slot[i].unknown / (double)slot[i].values : 0;
        all.values += slot[i].values;
        all.unknown += slot[i].unknown;
        if (share > all.share) {
            all.share = share;
            all.slot = schema->slot[i]->name;
        }
    }
    return all;
}

static tn_status judge(tn_worker *w, tn_score_collector *j, tn_task_gather *tasks, tn_step *step,
                       tn_error *err)
{
    const float *logit = NULL;
    if (j->request->feed != NULL) {
        TN_TRY(tn_feed_built()->next(j->request->feed, step->batch->rows, err));
    }
    TN_TRY(tn_step_score(w, step, &logit, err));
    tn_span_begin(w->lane, TN_PHASE_METRICS);
    const tn_scores scores = {.batch = step->batch,
                              .logit = logit,
                              .unknown = step->unknown_slots,
                              .graph = w->eval_graph,
                              .task = tn_task_gather_scores(tasks, step->batch->rows)};
    tn_status status = tn_score_collector_add(j, &scores, err);
    tn_span_end(w->lane);
    return status;
}

static tn_status next_step(const tn_worker *w, tn_step_prefetch *feeder, tn_step **out,
                           tn_error *err)
{
    tn_span_begin(w->lane, TN_PHASE_WAIT_DATA);
    tn_status status = tn_step_prefetch_next(feeder, out, err);
    tn_span_end(w->lane);
    return status;
}

/* Rows of the request that this rank scores. */
static uint64_t share_of_rows(const tn_worker *w, const tn_eval_request *request)
{
    const uint32_t ranks = w->shares->owners.n_peers;
    const uint64_t most = request->rows_max;
    return most == 0 ? UINT64_MAX : most / ranks + (w->rank < most % ranks);
}

/* Rows of a batch, so that whole batches make `rows` where they can; results do not depend on it.
 */
static uint32_t batch_for(uint32_t batch, uint64_t rows)
{
    if (rows == UINT64_MAX) {
        return batch;
    }
    if (rows <= batch) {
        return rows > 0 ? (uint32_t)rows : 1;
    }
    uint32_t even = batch;
    while (even > batch / 2 && rows % even != 0) {
        even--;
    }
    return even > batch / 2 ? even : batch;
}

static tn_status run_through(tn_worker *w, tn_score_collector *j, tn_step_prefetch *feeder,
                             tn_error *err)
{
    tn_step *step = NULL;
    key_count *slot = NULL;
    tn_task_gather *tasks = NULL;
    const tn_schema *schema = w->plan->schema;
    tn_status status = TN_ALLOC(slot, schema->n_slots, "counts of keys", err);
    if (status == TN_OK) {
        status = tn_task_gather_new(&tasks, w, w->plan->run->eval.batch, err);
    }
    if (status == TN_OK) {
        status = tn_step_prefetch_watch(feeder, j->request->stop, err);
    }
    uint64_t batches = 0;
    uint64_t left = share_of_rows(w, j->request);
    while (status == TN_OK && left > 0 && (status = next_step(w, feeder, &step, err)) == TN_OK) {
        status = judge(w, j, tasks, step, err);
        left -= step->batch->rows < left ? step->batch->rows : left;
        if (status == TN_OK) {
            count_keys(step, schema->n_slots, slot);
        }
        tn_step_prefetch_recycle(feeder, step);
        tn_lane_step(w->lane, ++batches);
    }
    tn_reader_counts(tn_step_prefetch_reader(feeder), &j->out->counts);
    if (slot != NULL) {
        j->out->keys = sum_keys(schema, slot);
    }
    tn_free(slot);
    tn_task_gather_free(tasks);
    return end_of(j, status, err);
}

tn_status tn_evaluate(tn_worker *w, const tn_eval_request *request, tn_evaluation *out,
                      tn_error *err)
{
    const tn_run *run = w->plan->run;
    tn_score_collector j = {.run = run,
                            .schema = w->plan->schema,
                            .request = request,
                            .sampling = run->data.negative_sampling,
                            .out = out};
    tn_step_prefetch *feeder = NULL;
    tn_status status = tn_score_collector_begin(&j, err);
    if (status == TN_OK) {
        tn_reader_opts reader = reader_of(&j);
        reader.trace = w->trace;
        reader.share = w->rank;
        reader.shares = w->shares->owners.n_peers;
        reader.batch_rows = batch_for(reader.batch_rows, share_of_rows(w, request));
        tn_step_prefetch_opts opts = {
            .plan = w->plan, .team = w->team, .ahead = run->train.prefetch};
        status = tn_step_prefetch_open(&feeder, &opts, &reader, err);
    }
    if (status == TN_OK) {
        status = run_through(w, &j, feeder, err);
    }
    if (status == TN_OK && request->feed != NULL) {
        status = tn_feed_built()->end(request->feed, err);
    }
    tn_step_prefetch_close(feeder);
    tn_score_collector_end(&j, status);
    return status;
}

/* ---- an export ---- */

typedef struct exam {
    tn_score_collector j;
    tn_scorer *scorer;
    tn_reader *reader;
    tn_reader_stopper *stopper; /* NULL: nobody can stop it */
    float *logit;
    float *value;            /* [task][score, given][batch_rows]; NULL: there is one label */
    tn_task_columns columns; /* there, for the scorer */
    tn_task_scores task;     /* the same, to read */
} exam;

/* Has the scorer write the scores of each task. */
static tn_status take_tasks(exam *x, const tn_tasks *tasks, size_t rows, tn_error *err)
{
    if (tasks->n == 0 || tn_run_tasks_of(x->j.run)->n == 0) {
        return TN_OK;
    }
    TN_TRY(TN_ALLOC(x->value, 2 * rows * tasks->n, "scores of tasks", err));
    for (uint32_t k = 0; k < tasks->n; k++) {
        float *at = x->value + 2 * rows * k;
        const bool share = tasks->task[k].of != TN_NO_TASK;
        x->task.score[k] = x->columns.score[k] = at;
        x->task.given[k] = x->columns.given[k] = share ? at + rows : NULL;
    }
    tn_scorer_set_columns(x->scorer, &x->columns);
    return TN_OK;
}

static tn_status open_exam(exam *x, const tn_exported_model *b, tn_error *err)
{
    tn_reader_opts opts = reader_of(&x->j);
    TN_TRY(tn_score_collector_begin(&x->j, err));
    TN_TRY(tn_scorer_new(&x->scorer, b, err));
    TN_TRY(TN_ALLOC(x->logit, opts.batch_rows, "scores", err));
    TN_TRY(take_tasks(x, b->tasks, opts.batch_rows, err));
    TN_TRY(tn_reader_open(&x->reader, b->schema, &opts, err));
    const atomic_bool *stop = x->j.request->stop;
    return stop != NULL ? tn_reader_stopper_start(&x->stopper, x->reader, stop, err) : TN_OK;
}

static tn_status score_all(exam *x, tn_error *err)
{
    tn_batch *batch = NULL;
    tn_status status = TN_OK;
    while (status == TN_OK && (status = tn_reader_next(x->reader, &batch, err)) == TN_OK) {
        TN_ASSERT(batch->rows <= x->j.run->eval.batch); /* rows that `logit` has room for */
        status = tn_scorer_score(x->scorer, batch, x->logit, NULL, err);
        if (status == TN_OK) {
            const tn_scores scores = {
                .batch = batch, .logit = x->logit, .task = x->value != NULL ? &x->task : NULL};
            status = tn_score_collector_add(&x->j, &scores, err);
        }
        tn_reader_recycle(x->reader, batch);
    }
    tn_reader_counts(x->reader, &x->j.out->counts);
    return end_of(&x->j, status, err);
}

tn_status tn_evaluate_export(const tn_exported_model *b, const tn_run *run,
                             const tn_eval_request *request, tn_evaluation *out, tn_error *err)
{
    const tn_target made = b->schema->data->target;
    if (made != run->data.target) {
        return tn_fail(
            err, TN_E_CONFIG, "the export's scores are of target '%s', those of loss '%s' of '%s'",
            tn_target_words[made], run->loss.choice->name, tn_target_words[run->data.target]);
    }
    exam x = {
        .j = {.run = run, .schema = b->schema, .request = request, .sampling = 1, .out = out}};
    tn_status status = open_exam(&x, b, err);
    if (status == TN_OK) {
        out->calibrated_by = tn_calibration_name(&b->calibration);
        for (uint32_t k = 1; k <= out->n_more; k++) {
            out->more[k - 1].calibrated_by = tn_calibration_name(&b->task[k].calibration);
        }
        status = score_all(&x, err);
    }
    tn_reader_stopper_end(x.stopper);
    tn_reader_close(x.reader);
    tn_scorer_free(x.scorer);
    tn_free(x.value);
    tn_free(x.logit);
    tn_score_collector_end(&x.j, status);
    return status;
}

static tn_status look_for(const tn_strs *paths, const char *secrets, tn_error *err)
{
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < paths->n && status == TN_OK; i++) {
        const tn_strs one = {1, &paths->item[i]};
        status = tn_days_is_pattern(one.item[0]) ? TN_OK : tn_fileset_look(&one, secrets, err);
    }
    return status;
}

tn_status tn_evaluate_look(const tn_run *run, tn_error *err)
{
    TN_TRY(look_for(&run->data.valid, run->data.secrets, err));
    return look_for(&run->data.test, run->data.secrets, err);
}
