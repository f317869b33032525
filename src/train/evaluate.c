/* evaluate.c - see evaluate.h. */
#include "train/evaluate.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/key.h"
#include "io/label.h"
#include "train/feeder.h"

#include <string.h>

/* One slot whose values get metrics of their own, and room for its signs. */
typedef struct slicer {
    uint32_t slot;
    uint64_t salt;
    uint64_t *sign;
    uint32_t capacity;
} slicer;

typedef struct pass {
    tn_worker *w;
    const tn_eval_request *request;
    tn_evaluation *out;
    slicer *slicer;
} pass;

tn_metrics_opts tn_metrics_opts_of(const tn_run *run, const tn_schema *schema)
{
    bool grouped = false;
    for (uint32_t i = 0; i < run->eval.metrics.n; i++) {
        grouped |= tn_metric_find(run->eval.metrics.item[i])->needs_groups;
    }
    (void)schema;
    return (tn_metrics_opts){
        .exact_auc = run->eval.auc == 1,
        .grouped = grouped,
        .sampling = run->data.negative_sampling,
    };
}

static tn_status find_slot(const tn_schema *schema, const char *name, slicer *out, tn_error *err)
{
    for (uint32_t i = 0; i < schema->n_slots; i++) {
        if (strcmp(schema->slot[i]->name, name) == 0) {
            out->slot = i;
            out->salt = schema->slot[i]->salt;
            return TN_OK;
        }
    }
    return tn_fail(err, TN_E_CONFIG, "eval.slices: no slot '%s' with keys", name);
}

static tn_status make_slices(pass *p, tn_error *err)
{
    const tn_run *run = p->w->plan->run;
    tn_evaluation *out = p->out;
    uint32_t n = run->eval.slices.n;
    if (n == 0) {
        return TN_OK;
    }
    out->slices = tn_alloc(n, sizeof(tn_slices *), "slices");
    p->slicer = tn_alloc(n, sizeof *p->slicer, "slices");
    out->n_slices = n;
    for (uint32_t i = 0; i < n; i++) {
        TN_TRY(find_slot(p->w->plan->schema, run->eval.slices.item[i], &p->slicer[i], err));
        tn_slices_opts opts = {.slices_max = 1 << 12,
                               .rows_min = run->eval.slices_min_rows,
                               .sampling = run->data.negative_sampling};
        TN_TRY(tn_slices_new(&out->slices[i], &opts, err));
    }
    return TN_OK;
}

static tn_status add_slices(pass *p, const tn_batch *batch, const tn_scored *rows, tn_error *err)
{
    for (uint32_t i = 0; i < p->out->n_slices; i++) {
        slicer *s = &p->slicer[i];
        const tn_slot *slot = &batch->slot[s->slot];
        uint32_t n = slot->offset[batch->rows];
        if (n > s->capacity) {
            tn_free(s->sign);
            s->capacity = 0;
            s->sign = tn_try_alloc(n, sizeof *s->sign, "slices", err);
            if (s->sign == NULL) {
                return TN_E_MEMORY;
            }
            s->capacity = n;
        }
        for (uint32_t k = 0; k < n; k++) {
            s->sign[k] = tn_sign_of(slot->key[k], s->salt);
        }
        TN_TRY(tn_slices_add(p->out->slices[i], rows,
                             &(tn_slice_keys){.sign = s->sign, .start = slot->offset}, err));
    }
    return TN_OK;
}

static tn_status judge(pass *p, tn_step *step, tn_error *err)
{
    const tn_batch *batch = step->batch;
    const float *logit = NULL;
    TN_TRY(tn_step_score(p->w, step, &logit, err));
    if (!p->w->plan->schema->label->none) {
        tn_scored rows = {.n = batch->rows,
                          .logit = logit,
                          .label = batch->label,
                          .weight = batch->weight,
                          .group = batch->group};
        TN_TRY(tn_metrics_add(p->out->metrics, &rows, err));
        TN_TRY(add_slices(p, batch, &rows, err));
    }
    if (p->request->sink == NULL) {
        return TN_OK;
    }
    tn_scores scores = {.batch = batch, .logit = logit, .graph = p->w->eval_graph};
    return p->request->sink(p->request->sink_arg, &scores, err);
}

static tn_status run_through(pass *p, tn_feeder *feeder, tn_error *err)
{
    tn_step *step = NULL;
    tn_status status = TN_OK;
    while (status == TN_OK && (status = tn_feeder_next(feeder, &step, err)) == TN_OK) {
        status = judge(p, step, err);
        tn_feeder_recycle(feeder, step);
        if (status == TN_OK && p->request->stop != NULL && *p->request->stop != 0) {
            status = tn_fail(err, TN_E_STOPPED, "stopped by a signal while evaluating");
        }
    }
    tn_reader_counts(tn_feeder_reader(feeder), &p->out->counts);
    return status == TN_END ? TN_OK : status;
}

tn_status tn_evaluate(tn_worker *w, const tn_eval_request *request, tn_evaluation *out,
                      tn_error *err)
{
    const tn_run *run = w->plan->run;
    *out = (tn_evaluation){0};
    pass p = {.w = w, .request = request, .out = out};
    double begin = tn_clock_s();
    tn_metrics_opts opts = tn_metrics_opts_of(run, w->plan->schema);
    tn_feeder *feeder = NULL;
    tn_status status = tn_metrics_new(&out->metrics, &opts, err);
    if (status == TN_OK) {
        status = make_slices(&p, err);
    }
    if (status == TN_OK) {
        tn_reader_opts reader = {.paths = *request->paths,
                                 .batch_rows = run->eval.batch,
                                 .want_ids = request->want_ids,
                                 .seed = run->run.seed,
                                 .prefetch = run->train.prefetch};
        status = tn_feeder_open(&feeder, w->plan, &reader, run->train.prefetch, err);
    }
    if (status == TN_OK) {
        status = run_through(&p, feeder, err);
    }
    tn_feeder_close(feeder);
    for (uint32_t i = 0; p.slicer != NULL && i < out->n_slices; i++) {
        tn_free(p.slicer[i].sign);
    }
    tn_free(p.slicer);
    out->seconds = tn_clock_s() - begin;
    if (status != TN_OK) {
        tn_evaluation_done(out);
    }
    return status;
}

void tn_evaluation_done(tn_evaluation *e)
{
    for (uint32_t i = 0; e->slices != NULL && i < e->n_slices; i++) {
        tn_slices_free(e->slices[i]);
    }
    tn_free(e->slices);
    tn_metrics_free(e->metrics);
    *e = (tn_evaluation){0};
}
