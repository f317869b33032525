/* judge.c - see judge.h. */
#include "cli/judge.h"

#include "train/checkpoint/checkpoint.h"
#include "train/eval/evaluate.h"
#include "train/eval/predict.h"
#include "train/peers/leader.h"
#include "train/report/metrics_jsonl.h"
#include "train/run/follower.h"

#include <string.h>

/* ---- which data, which model ---- */

static tn_status choose_data(tn_judge *j, const tn_strs **paths, tn_error *err)
{
    const tn_data_opts *data = &j->setup->run.data;
    if (j->data->n > 0) {
        for (uint32_t i = 0; i < j->data->n; i++) {
            tn_text_addf(&j->data_name, "%s%s", i > 0 ? " " : "", j->data->item[i]);
        }
        *paths = j->data;
        return tn_text_check(&j->data_name, "paths", err);
    }
    bool test = data->test.n > 0;
    if (!test && data->valid.n == 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "nothing to evaluate: neither data.test nor data.valid is set\nhint: "
                       "'--data PATH' names it");
    }
    tn_text_adds(&j->data_name, test ? "test" : "valid");
    *paths = test ? &data->test : &data->valid;
    return TN_OK;
}

/* A checkpoint of a run directory is named with it. */
static void name_source(tn_judge *j, const char *path, const tn_saved *saved)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    tn_text_add(&j->source, path, size);
    const char *last = strrchr(tn_text_str(&j->source), '/');
    last = last != NULL ? last + 1 : tn_text_str(&j->source);
    if (strcmp(last, saved->name) != 0) {
        tn_text_addf(&j->source, "/%s", saved->name);
    }
}

static tn_status load(tn_judge *j, tn_worker *w, tn_error *err)
{
    tn_saved saved = {0};
    tn_text dir = {0};
    tn_run_dir(&j->setup->run.run, &dir);
    const char *path = j->checkpoint != NULL ? j->checkpoint : tn_text_str(&dir);
    tn_status status = tn_checkpoint_load(path, w, &saved, err);
    if (status == TN_OK) {
        name_source(j, path, &saved);
        j->findings.step = saved.step;
        j->findings.samples = saved.samples;
        j->findings.epoch = saved.epoch;
    }
    tn_text_done(&dir);
    return status;
}

/* ---- who gets the scores ---- */

/* Predictions and fetched nodes; either may be NULL. */
typedef struct outputs {
    tn_predictions *predictions;
    tn_fetch *fetch;
} outputs;

static tn_status open_outputs(const tn_judge *j, double sampling, outputs *out, tn_error *err)
{
    if (j->predictions != NULL) {
        const tn_predictions_opts opts = {.path = j->predictions,
                                          .sampling = sampling,
                                          .schema = j->findings.schema,
                                          .inputs = &j->setup->inputs,
                                          .stop = j->stop};
        TN_TRY(tn_predictions_open(&out->predictions, &opts, err));
    }
    return j->fetch->n == 0 ? TN_OK : tn_fetch_open(&out->fetch, TN_FETCH_FILE, j->fetch, err);
}

static tn_status take_scores(void *arg, const tn_scores *scores, tn_error *err)
{
    const outputs *out = arg;
    if (out->predictions != NULL) {
        TN_TRY(tn_predictions_sink(out->predictions, scores, err));
    }
    return out->fetch == NULL ? TN_OK : tn_fetch_sink(out->fetch, scores, err);
}

/* The files appear when `status` is good. */
static tn_status close_outputs(outputs *out, tn_status status, tn_error *err)
{
    if (status == TN_OK && out->predictions != NULL) {
        status = tn_predictions_commit(out->predictions, err);
        out->predictions = NULL;
    }
    if (status == TN_OK && out->fetch != NULL) {
        status = tn_fetch_commit(out->fetch, err);
        out->fetch = NULL;
    }
    tn_predictions_abandon(out->predictions);
    tn_fetch_abandon(out->fetch);
    return status;
}

static tn_eval_request request_of(const tn_judge *j, const tn_strs *paths, outputs *out)
{
    bool wanted = out->predictions != NULL || out->fetch != NULL;
    return (tn_eval_request){.paths = paths,
                             .want_ids = wanted,
                             .sink = wanted ? take_scores : NULL,
                             .sink_arg = out,
                             .fetch = out->fetch != NULL ? j->fetch : NULL,
                             .stop = j->stop};
}

static tn_status check_records(const tn_judge *j, tn_error *err)
{
    if (j->evaluation.counts.records > 0) {
        return TN_OK;
    }
    return tn_fail(err, TN_E_DATA, "'%s' holds no records", tn_text_str(&j->data_name));
}

/* ---- a checkpoint ---- */

/* `lead` NULL: alone. */
static tn_status evaluate(tn_judge *j, tn_worker *w, tn_lead *lead, const tn_strs *paths,
                          tn_error *err)
{
    TN_TRY(load(j, w, err));
    if (lead != NULL) {
        TN_TRY(tn_lead_load(lead, tn_text_str(&j->source), err));
    }
    tn_profile_begin(j->profile, w);
    outputs out = {0};
    tn_status status = open_outputs(j, j->setup->run.data.negative_sampling, &out, err);
    if (status == TN_OK) {
        tn_eval_request request = request_of(j, paths, &out);
        status = lead != NULL ? tn_lead_evaluate(lead, "data", &request, &j->evaluation, err)
                              : tn_evaluate(w, &request, &j->evaluation, err);
    }
    if (status == TN_OK) {
        status = check_records(j, err);
    }
    return close_outputs(&out, status, err);
}

static tn_status evaluate_together(tn_judge *j, tn_worker *w, const tn_strs *paths, tn_error *err)
{
    tn_lead *lead = NULL;
    tn_error why = {0};
    tn_status status = tn_lead_open(&lead, w, &j->setup->text, NULL, NULL, &why);
    if (status != TN_OK) {
        tn_peers_decline(&j->setup->run, status, why.text);
        return tn_fail(err, status, "%s", why.text);
    }
    status = tn_lead_form(lead, j->stop, &why);
    if (status == TN_OK) {
        status = evaluate(j, w, lead, paths, &why);
    }
    j->setup->told_elsewhere = tn_lead_close(lead, status, why.text);
    return status == TN_OK ? TN_OK : tn_fail(err, status, "%s", why.text);
}

static tn_status judge_checkpoint(tn_judge *j, const tn_strs *paths, tn_error *err)
{
    tn_setup *s = j->setup;
    TN_TRY(tn_setup_plan(s, err));
    if (s->run.cluster.rank > 0) {
        const tn_watch watch = {.stop = j->stop, .told_elsewhere = &s->told_elsewhere};
        const tn_follow_data data = {paths, j->fetch->n > 0 ? j->fetch : NULL};
        return tn_follow_evaluation(s->plan, &s->text, &watch, &data, &s->binder, err);
    }
    j->findings.schema = s->plan->schema;
    tn_worker_opts opts = {.compares = true, .fetch = j->fetch->item, .n_fetch = j->fetch->n};
    tn_worker *w = NULL;
    tn_error why = {0};
    tn_status status = tn_worker_new(&w, s->plan, &opts, &s->binder, &why);
    if (status != TN_OK) {
        tn_peers_decline(&s->run, status, why.text);
        return tn_fail(err, status, "%s", why.text);
    }
    status = s->run.cluster.size > 1 ? evaluate_together(j, w, paths, err)
                                     : evaluate(j, w, NULL, paths, err);
    tn_profile_end(j->profile, w);
    tn_worker_free(w);
    return status;
}

/* ---- an export ---- */

static tn_status evaluate_export(tn_judge *j, const tn_strs *paths, tn_error *err)
{
    const tn_run *run = &j->setup->run;
    outputs out = {0};
    tn_status status = open_outputs(j, 1, &out, err); /* its scores are corrected already */
    if (status == TN_OK) {
        tn_eval_request request = request_of(j, paths, &out);
        status = tn_evaluate_export(j->bundle, run, &request, &j->evaluation, err);
    }
    if (status == TN_OK) {
        status = check_records(j, err);
    }
    return close_outputs(&out, status, err);
}

static tn_status judge_export(tn_judge *j, const tn_strs *paths, tn_error *err)
{
    tn_setup *s = j->setup;
    if (j->fetch->n > 0) {
        return tn_fail(err, TN_E_USAGE,
                       "'--fetch' needs a checkpoint, an export has no nodes left");
    }
    tn_bundle_opts opts = {.verify = TN_VERIFY_FULL, .data = tn_tree_get(s->tree, "data")};
    TN_TRY(tn_bundle_open(&j->bundle, j->export_dir, &opts, err));
    tn_text_adds(&j->source, j->export_dir);
    j->findings.step = j->bundle->step;
    j->findings.model_id = j->bundle->model_id;
    j->findings.schema = j->bundle->schema;
    return evaluate_export(j, paths, err);
}

/* Values of slices that are shown, in the words of the data. */
static tn_status find_words(tn_judge *j, const tn_strs *paths, tn_error *err)
{
    const tn_sign_search search = {
        .schema = j->findings.schema,
        .paths = paths,
        .slots = &j->setup->run.eval.slices,
        .result = &j->evaluation,
        .most = TN_JOURNAL_SLICES,
        .stop = j->stop,
    };
    TN_TRY(tn_sign_words_find(&j->words, &search, err));
    j->findings.words = j->words;
    return TN_OK;
}

tn_status tn_judge_run(tn_judge *j, tn_error *err)
{
    const tn_strs *paths = NULL;
    TN_TRY(choose_data(j, &paths, err));
    TN_TRY(j->export_dir != NULL ? judge_export(j, paths, err) : judge_checkpoint(j, paths, err));
    tn_findings *f = &j->findings;
    if (j->setup->run.cluster.rank > 0) {
        return TN_OK;
    }
    f->data = tn_text_str(&j->data_name);
    f->run = &j->setup->run;
    f->result = &j->evaluation;
    f->source = tn_text_str(&j->source);
    f->config_hash = j->setup->text.hash;
    TN_TRY(find_words(j, paths, err));
    return tn_findings_intervals(f, err);
}

void tn_judge_done(tn_judge *j)
{
    tn_evaluation_done(&j->evaluation);
    tn_sign_words_free(j->words);
    tn_bundle_close(j->bundle);
    tn_text_done(&j->data_name);
    tn_text_done(&j->source);
}
