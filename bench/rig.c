/* rig.c - see rig.h. */
#include "rig.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/trace/trace.h"
#include "io/format/format.h"
#include "models/model.h"
#include "nn/passes/plan.h"
#include "train/config/choices.h"
#include "train/config/run_bind.h"
#include "train/run/epoch_reader.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <stdio.h>
#include <stdlib.h>

static void check(tn_status status, const tn_error *err)
{
    if (status != TN_OK) {
        (void)fprintf(stderr, "bench: %s\n", err->text);
        exit(1); // NOLINT(concurrency-mt-unsafe): the main thread
    }
}

static const char *format_preset(const char *name)
{
    const tn_format *f = tn_format_find(name);
    return f != NULL ? f->preset : NULL;
}

void tn_rig_open(tn_rig *rig, const char *config, uint32_t n, const char *const *overrides)
{
    static const tn_presets presets = {.format = format_preset, .model = tn_model_preset};
    *rig = (tn_rig){.arena = tn_arena_new(1 << 18)};
    tn_binder binder = {.arena = rig->arena, .diag = &rig->diag};
    tn_config_in in = {.fields = tn_run_fields,
                       .presets = &presets,
                       .path = config,
                       .overrides = overrides,
                       .n_overrides = n};
    tn_error err = {0};
    const tn_tree *tree = tn_config_load(&in, rig->arena, &rig->diag);
    if (tree != NULL) {
        tn_run_bind(&binder, tree, &rig->run);
    }
    (void)fputs(tn_text_str(&rig->diag.text), stderr);
    check(tn_diag_check(&rig->diag, &err), &err);
    tn_text said = {0};
    check(tn_choices_make(&binder, "", &tree, &rig->run, &said, &err), &err);
    tn_text_done(&said);
    check(tn_model_plan_new(&rig->plan, &rig->run, &binder, &err), &err);
    check(
        tn_worker_new(&rig->worker, rig->plan, &(tn_worker_opts){.training = true}, &binder, &err),
        &err);
    const tn_metrics_opts metrics = {.sampling = rig->run.data.negative_sampling};
    check(tn_metrics_new(&rig->metrics, &metrics, &err), &err);
}

static void drop(tn_memory *m)
{
    tn_step_prefetch_close(m->feeder);
    tn_reader_close(m->reader);
    tn_free(m->batch);
}

void tn_rig_close(tn_rig *rig)
{
    tn_step_prefetch_close(rig->feeder);
    drop(&rig->learned);
    drop(&rig->scored);
    tn_metrics_free(rig->metrics);
    tn_worker_free(rig->worker);
    tn_diag_done(&rig->diag);
    tn_arena_free(rig->arena);
}

static tn_status next_of_memory(void *from, uint64_t until_ns, tn_batch **out, tn_error *err)
{
    (void)until_ns;
    (void)err;
    tn_memory *m = from;
    *out = m->batch[m->next];
    m->next = (m->next + 1) % m->n;
    return TN_OK;
}

static void keep(void *from, tn_batch *batch)
{
    (void)from;
    (void)batch;
}

/* Whole batches of `rows`, at most n. */
static void load(tn_rig *rig, uint32_t rows, uint32_t n, bool training, tn_memory *m)
{
    tn_error err = {0};
    const tn_reader_opts opts = {.paths = rig->run.data.train,
                                 .batch_rows = rows,
                                 .training = true,
                                 .seed = rig->run.run.seed,
                                 .prefetch = n,
                                 .trace = rig->worker->trace};
    m->batch = tn_alloc(n, sizeof(tn_batch *), "batches in memory");
    check(tn_reader_open(&m->reader, rig->plan->schema, &opts, &err), &err);
    tn_status status = TN_OK;
    while (m->n < n && status == TN_OK) {
        status = tn_reader_next(m->reader, &m->batch[m->n], &err);
        m->n += status == TN_OK && m->batch[m->n]->rows == rows;
    }
    check(status == TN_END ? TN_OK : status, &err);
    if (m->n == 0) {
        check(tn_fail(&err, TN_E_DATA, "no whole batch of %u rows in the data", rows), &err);
    }
    const tn_step_prefetch_opts feeding = {.plan = rig->plan,
                                           .team = rig->worker->team,
                                           .ahead = rig->run.train.prefetch,
                                           .training = training};
    tn_batches batches = {.next = next_of_memory, .recycle = keep, .from = m};
    check(tn_step_prefetch_over(&m->feeder, &feeding, &batches, &err), &err);
}

void tn_rig_load(tn_rig *rig, uint32_t batches)
{
    uint32_t n = batches < TN_RIG_BATCHES_MAX ? batches : TN_RIG_BATCHES_MAX;
    load(rig, rig->run.train.batch, n, true, &rig->learned);
}

static void count(tn_rig *rig, const tn_batch *batch, const float *logit)
{
    tn_error err = {0};
    tn_scored rows = {
        .n = batch->rows, .logit = logit, .label = batch->label, .weight = batch->weight};
    double from = tn_clock_s();
    tn_span_begin(rig->worker->lane, TN_PHASE_METRICS);
    check(tn_metrics_add(rig->metrics, &rows, &err), &err);
    tn_span_end(rig->worker->lane);
    rig->metrics_s += tn_clock_s() - from;
}

static void learn(tn_rig *rig, tn_step *step)
{
    tn_error err = {0};
    tn_learned learned;
    check(tn_step_learn(rig->worker, step, 1, &learned, &err), &err);
    count(rig, step->batch, rig->worker->train_logit->val);
    tn_lane_step(rig->worker->lane, rig->worker->steps);
}

static tn_step *next_step(const tn_rig *rig, tn_step_prefetch *feeder)
{
    tn_error err = {0};
    tn_step *step = NULL;
    tn_span_begin(rig->worker->lane, TN_PHASE_WAIT_DATA);
    tn_status status = tn_step_prefetch_next(feeder, &step, &err);
    tn_span_end(rig->worker->lane);
    check(status == TN_END ? TN_OK : status, &err);
    return status == TN_END ? NULL : step;
}

tn_step *tn_rig_next(tn_rig *rig)
{
    return next_step(rig, rig->learned.feeder);
}

void tn_rig_done(tn_rig *rig, tn_step *step)
{
    tn_step_prefetch_recycle(rig->learned.feeder, step);
}

static void learn_memory(tn_rig *rig)
{
    tn_step *step = tn_rig_next(rig);
    learn(rig, step);
    tn_rig_done(rig, step);
}

double tn_rig_warm(tn_rig *rig)
{
    double from = tn_clock_s();
    for (uint32_t i = 0; i < rig->learned.n; i++) {
        learn_memory(rig);
    }
    return (double)rig->learned.n * rig->run.train.batch / (tn_clock_s() - from);
}

double tn_rig_train_memory(tn_rig *rig, double seconds)
{
    double from = tn_clock_s();
    uint64_t steps = 0;
    do {
        learn_memory(rig);
        steps++;
    } while (tn_clock_s() - from < seconds);
    return (double)(steps * rig->run.train.batch) / (tn_clock_s() - from);
}

double tn_rig_score_memory(tn_rig *rig, double seconds)
{
    tn_error err = {0};
    uint32_t rows = rig->run.eval.batch;
    if (rig->scored.n == 0) {
        uint64_t all = (uint64_t)rig->learned.n * rig->run.train.batch;
        load(rig, rows, all > rows ? (uint32_t)(all / rows) : 1, false, &rig->scored);
    }
    double from = tn_clock_s();
    uint64_t steps = 0;
    do {
        const float *logit = NULL;
        tn_step *step = next_step(rig, rig->scored.feeder);
        check(tn_step_score(rig->worker, step, &logit, &err), &err);
        count(rig, step->batch, logit);
        tn_step_prefetch_recycle(rig->scored.feeder, step);
        steps++;
    } while (tn_clock_s() - from < seconds);
    return (double)(steps * rows) / (tn_clock_s() - from);
}

/* The next step of the file, of the next pass when this one has ended. */
static tn_step *next_of_file(tn_rig *rig)
{
    tn_error err = {0};
    for (uint32_t empty = 0; empty < 2; empty++) {
        if (rig->feeder == NULL) {
            const uint32_t cut_for = tn_epoch_cut_for(rig->worker, rig->epoch, NULL);
            check(tn_epoch_reader_open_dealt(&rig->feeder, rig->worker, rig->epoch++, cut_for, NULL,
                                             &err),
                  &err);
        }
        tn_step *step = next_step(rig, rig->feeder);
        if (step != NULL) {
            return step;
        }
        tn_step_prefetch_close(rig->feeder);
        rig->feeder = NULL;
    }
    check(tn_fail(&err, TN_E_DATA, "no rows in the data"), &err);
    return NULL;
}

double tn_rig_train_file(tn_rig *rig, double seconds)
{
    double from = tn_clock_s();
    uint64_t rows = 0;
    do {
        tn_step *step = next_of_file(rig);
        learn(rig, step);
        rows += step->batch->rows;
        tn_step_prefetch_recycle(rig->feeder, step);
    } while (tn_clock_s() - from < seconds);
    return (double)rows / (tn_clock_s() - from);
}

tn_turn tn_rig_turn(tn_rig *rig, tn_rig_rate *rate, double seconds)
{
    tn_turn t = {0};
    do {
        tn_turn_begin(&t);
    } while (tn_turn_end(&t, rate(rig, seconds)));
    return t;
}

double tn_rig_flops(const tn_rig *rig)
{
    tn_cost cost = tn_graph_cost(rig->worker->train_graph);
    return cost.product_flops / rig->run.train.batch;
}
