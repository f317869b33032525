/* evaluate.c - a worker scores a data set; see evaluate.h. */
#include "train/eval/evaluate.h"

#include "base/core/alloc.h"
#include "train/eval/score_collector.h"
#include "train/step/step_prefetch.h"

tn_metrics_opts tn_metrics_opts_of(const tn_run *run, const tn_schema *schema)
{
    (void)schema;
    return (tn_metrics_opts){
        .exact_auc = run->eval.auc == 1,
        .grouped = tn_run_grouped_metric(run) != NULL,
        .sampling = run->data.negative_sampling,
    };
}

static tn_status judge(tn_worker *w, tn_judging *j, tn_step *step, tn_error *err)
{
    const float *logit = NULL;
    TN_TRY(tn_step_score(w, step, &logit, err));
    tn_span_begin(w->lane, TN_PHASE_METRICS);
    const tn_scores scores = {.batch = step->batch, .logit = logit, .graph = w->eval_graph};
    tn_status status = tn_judging_add(j, &scores, err);
    tn_span_end(w->lane);
    return status;
}

static tn_status next_step(const tn_worker *w, tn_feeder *feeder, tn_step **out, tn_error *err)
{
    tn_span_begin(w->lane, TN_PHASE_WAIT_DATA);
    tn_status status = tn_feeder_next(feeder, out, err);
    tn_span_end(w->lane);
    return status;
}

static tn_status run_through(tn_worker *w, tn_judging *j, tn_feeder *feeder, tn_error *err)
{
    tn_step *step = NULL;
    tn_status status = tn_feeder_watch(feeder, j->request->stop, err);
    uint64_t batches = 0;
    while (status == TN_OK && (status = next_step(w, feeder, &step, err)) == TN_OK) {
        status = judge(w, j, step, err);
        tn_feeder_recycle(feeder, step);
        tn_lane_step(w->lane, ++batches);
    }
    tn_reader_counts(tn_feeder_reader(feeder), &j->out->counts);
    bool stopped = j->request->stop != NULL && atomic_load(j->request->stop);
    if (stopped && (status == TN_END || status == TN_E_STOPPED)) {
        return tn_fail(err, TN_E_STOPPED, "stopped by a signal while evaluating");
    }
    return status == TN_END ? TN_OK : status;
}

tn_status tn_evaluate(tn_worker *w, const tn_eval_request *request, tn_evaluation *out,
                      tn_error *err)
{
    const tn_run *run = w->plan->run;
    tn_judging j = {.run = run,
                    .schema = w->plan->schema,
                    .request = request,
                    .sampling = run->data.negative_sampling,
                    .out = out};
    tn_feeder *feeder = NULL;
    tn_status status = tn_judging_begin(&j, err);
    if (status == TN_OK) {
        tn_reader_opts reader = tn_judging_reader(&j);
        reader.trace = w->trace;
        reader.share = w->rank;
        reader.shares = w->shares->owners.n_peers;
        tn_feeder_opts opts = {.plan = w->plan, .team = w->team, .ahead = run->train.prefetch};
        status = tn_feeder_open(&feeder, &opts, &reader, err);
    }
    if (status == TN_OK) {
        status = run_through(w, &j, feeder, err);
    }
    tn_feeder_close(feeder);
    tn_judging_end(&j, status);
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
