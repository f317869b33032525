/* leader_eval.c - a data set scored by all ranks; see leader.h. Who scored a row does not show:
 * either integers are added up, or rows go through the same tn_score_collector as with one process,
 * in the same order. */
#include "train/peers/leader_eval.h"

#include "base/core/arena.h"
#include "io/read/bad_record_limit.h"
#include "train/eval/evaluate.h"
#include "train/peers/score_merge.h"
#include "train/peers/score_sender.h"

/* Whether metrics of ranks do not add up to those of all. */
static bool needs_rows(const tn_run *run, const tn_eval_request *request)
{
    const tn_metrics_opts kinds = tn_metrics_opts_of(run, NULL);
    return kinds.exact_auc || kinds.grouped || run->eval.slices.n > 0 || request->sink != NULL;
}

/* ---- integers ---- */

static tn_status add_up(tn_lead *l, const char *data, const tn_eval_request *request,
                        tn_evaluation *out, tn_error *err)
{
    TN_TRY(tn_lead_begin_evaluation(l, data, 0, err));
    TN_TRY(tn_evaluate(tn_lead_worker(l), request, out, err));
    tn_status status = tn_lead_end_evaluation(l, out, true, err);
    if (status != TN_OK) {
        tn_evaluation_done(out);
    }
    return status;
}

/* ---- rows ---- */

typedef struct judged {
    tn_lead *lead;
    tn_score_collector judging;
    tn_scoremerge *merge;
} judged;

static tn_status more(void *arg, uint32_t other, tn_text *out, tn_error *err)
{
    const judged *j = arg;
    return tn_lead_more_rows(j->lead, other, out, err);
}

static tn_status take(void *arg, const tn_scores *scores, tn_error *err)
{
    judged *j = arg;
    return tn_score_collector_add(&j->judging, scores, err);
}

static tn_status score_all(judged *j, const char *data, const tn_eval_request *request,
                           tn_error *err)
{
    tn_worker *w = tn_lead_worker(j->lead);
    const uint64_t how = TN_EVALUATES_ROWS | (request->want_ids ? TN_EVALUATES_WITH_IDS : 0U) |
                         (request->fetch != NULL ? TN_EVALUATES_WITH_NODES : 0U);
    const tn_eval_request own = {.paths = request->paths,
                                 .want_ids = true,
                                 .only_scores = true,
                                 .sink = tn_scoremerge_own,
                                 .sink_arg = j->merge,
                                 .stop = request->stop};
    tn_evaluation scored = {0};
    TN_TRY(tn_lead_begin_evaluation(j->lead, data, how, err));
    TN_TRY(tn_evaluate(w, &own, &scored, err));
    TN_TRY(tn_scoremerge_end(j->merge, err));
    TN_TRY(tn_lead_end_evaluation(j->lead, &scored, false, err));
    j->judging.out->counts = scored.counts;
    return TN_OK;
}

static tn_status bring_rows(tn_lead *l, const char *data, const tn_eval_request *request,
                            tn_evaluation *out, tn_error *err)
{
    const tn_worker *w = tn_lead_worker(l);
    const tn_run *run = w->plan->run;
    tn_arena *arena = tn_arena_new(1 << 12);
    judged j = {.lead = l,
                .judging = {.run = run,
                            .schema = w->plan->schema,
                            .request = request,
                            .sampling = run->data.negative_sampling,
                            .out = out}};
    tn_scoremerge_opts opts = {
        .form = tn_scored_form_of(run, w->plan->schema, request->want_ids, arena),
        .others = tn_lead_ranks(l) - 1,
        .more = more,
        .take = take,
        .arg = &j};
    tn_status status = tn_score_collector_begin(&j.judging, err);
    if (status == TN_OK && request->fetch != NULL) {
        status = tn_scored_form_fetch(&opts.form, w->eval_graph, request->fetch, arena, err);
    }
    if (status == TN_OK) {
        status = tn_scoremerge_new(&j.merge, &opts, err);
    }
    if (status == TN_OK) {
        status = score_all(&j, data, request, err);
    }
    tn_score_collector_end(&j.judging, status);
    tn_scoremerge_free(j.merge);
    tn_arena_free(arena);
    return status;
}

tn_status tn_lead_evaluate(tn_lead *l, const char *data, const tn_eval_request *request,
                           tn_evaluation *out, tn_error *err)
{
    const tn_run *run = tn_lead_worker(l)->plan->run;
    tn_bad_limit limit;
    TN_TRY(tn_bad_limit_read(run->data.bad_records_max, &limit, err));
    TN_TRY(needs_rows(run, request) ? bring_rows(l, data, request, out, err)
                                    : add_up(l, data, request, out, err));
    tn_status status = tn_bad_limit_end(&limit, out->counts.records, out->counts.bad, err);
    if (status != TN_OK) {
        tn_evaluation_done(out);
    }
    return status;
}
