/* evalexport.c - see evalexport.h. */
#include "train/eval/evalexport.h"

#include "base/core/alloc.h"
#include "serve/score.h"
#include "train/eval/score_collector.h"
#include "train/step/reader_stopper.h"

typedef struct exam {
    tn_judging j;
    tn_scorer *scorer;
    tn_reader *reader;
    tn_stopper *stopper; /* NULL: nobody can stop it */
    float *logit;
} exam;

static tn_status open_all(exam *x, const tn_bundle *b, tn_error *err)
{
    tn_reader_opts opts = tn_judging_reader(&x->j);
    TN_TRY(tn_judging_begin(&x->j, err));
    TN_TRY(tn_scorer_new(&x->scorer, b, 0, err));
    x->logit = tn_try_alloc(opts.batch_rows, sizeof *x->logit, "scores", err);
    if (x->logit == NULL) {
        return TN_E_MEMORY;
    }
    TN_TRY(tn_reader_open(&x->reader, b->schema, &opts, err));
    const atomic_bool *stop = x->j.request->stop;
    return stop != NULL ? tn_stopper_start(&x->stopper, x->reader, stop, err) : TN_OK;
}

static tn_status run_through(exam *x, tn_error *err)
{
    tn_batch *batch = NULL;
    tn_status status = TN_OK;
    while (status == TN_OK && (status = tn_reader_next(x->reader, &batch, err)) == TN_OK) {
        status = tn_scorer_score(x->scorer, batch, x->logit, NULL, err);
        if (status == TN_OK) {
            const tn_scores scores = {.batch = batch, .logit = x->logit};
            status = tn_judging_add(&x->j, &scores, err);
        }
        tn_reader_recycle(x->reader, batch);
    }
    tn_reader_counts(x->reader, &x->j.out->counts);
    bool stopped = x->j.request->stop != NULL && atomic_load(x->j.request->stop);
    if (stopped && (status == TN_END || status == TN_E_STOPPED)) {
        return tn_fail(err, TN_E_STOPPED, "stopped by a signal while evaluating");
    }
    return status == TN_END ? TN_OK : status;
}

tn_status tn_evaluate_export(const tn_bundle *b, const tn_run *run, const tn_eval_request *request,
                             tn_evaluation *out, tn_error *err)
{
    exam x = {
        .j = {.run = run, .schema = b->schema, .request = request, .sampling = 1, .out = out}};
    tn_status status = open_all(&x, b, err);
    if (status == TN_OK) {
        status = run_through(&x, err);
    }
    tn_stopper_end(x.stopper);
    tn_reader_close(x.reader);
    tn_scorer_free(x.scorer);
    tn_free(x.logit);
    tn_judging_end(&x.j, status);
    return status;
}
