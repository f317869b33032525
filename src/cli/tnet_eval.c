/* tnet_eval.c - how good is a model: metrics, slices, a report, every score. */
#include "base/core/log.h"
#include "base/file/file.h"
#include "base/math/fmath.h"
#include "cli/children.h"
#include "cli/local.h"
#include "cli/main.h"
#include "cli/picture.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/read/fileset.h"
#include "io/schema/schema.h"
#include "io/source/uri.h"
#include "metrics/calibrator.h"
#include "serve/exported_model.h"
#include "train/begin/begun.h"
#include "train/begin/import.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/days.h"
#include "train/config/loss.h"
#include "train/eval/calibrate.h"
#include "train/eval/compare.h"
#include "train/eval/evaluate.h"
#include "train/eval/feed_nodes.h"
#include "train/eval/predict.h"
#include "train/peers/leader.h"
#include "train/peers/peers.h"
#include "train/report/comparison.h"
#include "train/report/eval_pages.h"
#include "train/report/eval_result.h"
#include "train/report/profile.h"
#include "train/run/follower.h"
#include "train/step/worker.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* In the working directory. */
#define FETCH_FILE "fetch.npz"
#define TRACE_FILE "trace.json"
#define CALIBRATION_FILE "calibration.json"

typedef struct eval_flags {
    uint32_t peers;
    tn_strs data;
    const char *checkpoint, *export, *predictions, *report, *profile, *compare;
    tn_strs fetch, feed;
    uint32_t calibrate;
    const char *calibration_out;
    bool json;
} eval_flags;

/* From a model and data to findings. `findings` and what they lend are there until job_done, which
 * is also called after a failure. */
typedef struct eval_job {
    tn_setup *setup; /* loaded, not planned */
    const eval_flags *flags;
    const tn_options *options;
    const char *predictions; /* file for every score; NULL: none */
    const tn_strs *fetch;    /* names of nodes, for fetch.npz */
    tn_strs fed;             /* names of nodes that files set */
    tn_calibrate_opts fit;   /* method NONE: nothing is fitted */
    tn_valid_rows fit_rows;  /* .. on these */
    const atomic_bool *stop; /* true: end with TN_E_STOPPED */
    tn_profile *profile;     /* of a checkpoint's evaluation; NULL: nobody wants it */

    /* made by run_job, where this process is rank 0 or alone; the others leave it to rank 0 */
    tn_evaluation evaluation;
    tn_eval_result findings;
    tn_text data_name, source, journal;
    tn_sign_words *words;        /* behind the hashes of slices; NULL: none */
    tn_exported_model *exported; /* of the export; NULL: none */
    tn_predictions *to;          /* NULL: nobody wants every score, or they are all there .. */
    tn_fetch *nodes;             /* .. likewise of nodes */
    tn_feed *feed;               /* NULL: no node is fed */
    tn_calibrate *calibrate;     /* NULL: nothing is fitted */
    tn_calibration map;          /* that the run has left; of kind NONE: scores are raw */
    tn_compare *compare;         /* owned by the first of two jobs; NULL: one model alone */
    bool is_other;               /* .. whose scores it takes, rather than meets */
    double shift;                /* of a logit, for sampled negatives */
    bool imported;               /* the model is checkpoint.from, there is no checkpoint yet */
} eval_job;

/* ---- which data, which model ---- */

/* Days are evaluated that somebody has named, or for want of anything else. */
static bool has_days(const tn_setup *s)
{
    const tn_data_opts *data = &s->run.data;
    const bool others = data->test.n > 0 || data->valid.n > 0;
    return data->pattern.n > 0 && !(s->found_day && others);
}

static tn_status choose_data(eval_job *j, const tn_strs **paths, tn_error *err)
{
    const tn_data_opts *data = &j->setup->run.data;
    const tn_strs *named = &j->flags->data;
    if (named->n > 0) {
        for (uint32_t i = 0; i < named->n; i++) {
            tn_text_addf(&j->data_name, "%s%s", i > 0 ? " " : "", named->item[i]);
        }
        *paths = named;
        return tn_text_check(&j->data_name, "paths", err);
    }
    if (j->fit.method != TN_CALIBRATE_NONE && data->pattern.n > 0 && j->fit_rows.day > 0) {
        char name[TN_DAY_NAME];
        tn_day_name(j->fit_rows.day, name);
        tn_text_adds(&j->data_name, name);
        *paths = &j->fit_rows.paths;
        return tn_text_check(&j->data_name, "a day", err);
    }
    if (has_days(j->setup)) {
        tn_text_adds(&j->data_name, data->n_days == 1 ? "day" : "days");
        for (uint32_t i = 0; i < data->days.n; i++) {
            tn_text_addf(&j->data_name, "%s%s", i > 0 ? ", " : " ", data->days.item[i]);
        }
        tn_strs *all = TN_NEW(j->setup->arena, tn_strs);
        *all = tn_days_all_paths(data, j->setup->arena);
        *paths = all;
        return tn_text_check(&j->data_name, "days", err);
    }
    bool test = data->test.n > 0 && j->fit.method == TN_CALIBRATE_NONE;
    if (!test && data->valid.n == 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "nothing to evaluate: neither data.test nor data.valid is set\nhint: "
                       "'--data PATH' names it");
    }
    tn_text_adds(&j->data_name, test ? "test" : "valid");
    *paths = test ? &data->test : &data->valid;
    return TN_OK;
}

/* Whether the run is still to begin, with the weights of checkpoint.from. */
static bool is_to_begin(const tn_run *run, const char *dir)
{
    tn_text config = {0};
    if (!tn_tree_is_null(run->checkpoint.from)) {
        tn_checkpoint_config(dir, &config);
    }
    const bool has_checkpoint = config.size > 0;
    tn_text_done(&config);
    return !tn_tree_is_null(run->checkpoint.from) && !has_checkpoint;
}

static tn_status load_first_weights(eval_job *j, tn_worker *w, tn_error *err)
{
    tn_begun begun = {0};
    tn_text said = {0};
    if (j->fit.method != TN_CALIBRATE_NONE) {
        return tn_fail(err, TN_E_CONFIG,
                       "'--calibrate' needs a checkpoint, and this run has none yet\nhint: "
                       "'tnet-train CONFIG train.epochs=0' makes one of checkpoint.from");
    }
    j->imported = true;
    tn_status status = tn_import(j->setup->run.checkpoint.from, w, &begun, err);
    if (status == TN_OK) {
        tn_begun_say(&begun, &said);
        tn_log(TN_LOG_INFO, "no checkpoint yet: the model %s", tn_text_str(&said));
        tn_text_adds(&j->source, tn_text_str(&begun.from));
    }
    tn_text_done(&said);
    tn_begun_done(&begun);
    return status;
}

static tn_status load(eval_job *j, tn_worker *w, tn_error *err)
{
    tn_saved saved = {0};
    tn_text dir = {0};
    tn_run_dir(&j->setup->run.run, &dir);
    const char *path = j->setup->from != NULL ? j->setup->from : tn_text_str(&dir);
    const bool begins = j->setup->from == NULL && is_to_begin(&j->setup->run, path);
    tn_status status =
        begins ? load_first_weights(j, w, err) : tn_checkpoint_load(path, w, &saved, err);
    if (status == TN_OK && !begins) {
        tn_saved_path(path, &saved, &j->source);
        j->findings.at.step = saved.step;
        j->findings.at.samples = saved.samples;
        j->findings.at.epoch = saved.epoch;
        char folder[TN_PATH_SIZE];
        status = tn_path_parent(tn_text_str(&j->source), folder, err);
        tn_text_addf(&j->journal, "%s/metrics.jsonl", folder);
    }
    tn_text_done(&dir);
    return status;
}

/* ---- who gets the scores ---- */

/* `sampling`: of negatives, where scores are not corrected for it. */
static tn_status open_outputs(eval_job *j, double sampling, const tn_strs *paths, tn_error *err)
{
    if (j->fit.method != TN_CALIBRATE_NONE) {
        if (j->findings.schema->label->none) {
            return tn_fail(err, TN_E_CONFIG, "'--calibrate' needs labels, and data.label is none");
        }
        if (j->setup->run.data.target != TN_TARGET_CLICK) {
            return tn_fail(err, TN_E_CONFIG,
                           "'--calibrate' makes probabilities, and a model of loss '%s' has none",
                           tn_loss_of(&j->setup->run.loss)->choice.name);
        }
        j->fit.data = paths;
        j->fit.sampling = sampling;
        j->fit.stop = j->stop;
        TN_TRY(tn_calibrate_open(&j->calibrate, &j->fit, err));
    }
    if (j->predictions != NULL) {
        const tn_predictions_opts opts = {.path = j->predictions,
                                          .sampling = sampling,
                                          .schema = j->findings.schema,
                                          .inputs = &j->setup->inputs,
                                          .stop = j->stop,
                                          .secrets = j->setup->run.data.secrets};
        TN_TRY(tn_predictions_open(&j->to, &opts, err));
    }
    return j->fetch->n == 0 ? TN_OK : tn_fetch_open(&j->nodes, FETCH_FILE, j->fetch, err);
}

static tn_status take_scores(void *arg, const tn_scores *scores, tn_error *err)
{
    const eval_job *j = arg;
    if (j->to != NULL) {
        TN_TRY(tn_predictions_sink(j->to, scores, err));
    }
    if (j->calibrate != NULL) {
        TN_TRY(tn_calibrate_sink(j->calibrate, scores, err));
    }
    if (j->compare != NULL) {
        TN_TRY(j->is_other ? tn_compare_take(j->compare, scores, j->shift, err)
                           : tn_compare_sink(j->compare, scores, j->shift, err));
    }
    return j->nodes == NULL ? TN_OK : tn_fetch_sink(j->nodes, scores, err);
}

/* The files appear. */
static tn_status commit_outputs(eval_job *j, tn_error *err)
{
    if (j->calibrate != NULL) {
        TN_TRY(
            tn_calibrate_commit(j->calibrate, tn_text_str(&j->source), j->findings.at.step, err));
        j->findings.calibrate = j->calibrate;
    }
    tn_predictions *to = j->to;
    j->to = NULL;
    if (to != NULL) {
        TN_TRY(tn_predictions_commit(to, err));
    }
    tn_fetch *nodes = j->nodes;
    j->nodes = NULL;
    return nodes != NULL ? tn_fetch_commit(nodes, err) : TN_OK;
}

/* With eval.calibrate scores are behind the map that the run has left for this checkpoint; a fit is
 * one of raw scores. */
static tn_status find_calibration(eval_job *j, tn_error *err)
{
    const tn_run *r = &j->setup->run;
    const tn_calibrate_wanted wanted = {.method = (tn_calibrate_method)r->eval.calibrate,
                                        .checkpoint = tn_text_str(&j->source),
                                        .step = j->findings.at.step,
                                        .sampling = r->data.negative_sampling};
    if (j->fit.method != TN_CALIBRATE_NONE || j->imported) {
        return TN_OK;
    }
    tn_text said = {0};
    tn_status status = tn_calibrate_find(&wanted, j->setup->arena, &j->map, &said, err);
    if (status == TN_OK && said.size > 0) {
        const bool used = j->map.kind != TN_CALIBRATION_NONE;
        tn_log(used ? TN_LOG_INFO : TN_LOG_WARN, "scores are %s", tn_text_str(&said));
    }
    tn_text_done(&said);
    return status;
}

/* `w` NULL: the export; `lead` NULL: alone. */
static tn_status judge(eval_job *j, tn_worker *w, tn_leader *lead, const tn_strs *paths,
                       tn_error *err)
{
    const bool mapped = j->map.kind != TN_CALIBRATION_NONE;
    const bool corrected = w == NULL || mapped; /* an export, or a map, is behind that */
    const double sampling = corrected ? 1 : j->setup->run.data.negative_sampling;
    j->shift = tn_ln(sampling);
    TN_TRY(open_outputs(j, sampling, paths, err));
    if (w != NULL && j->fed.n > 0) {
        TN_TRY(tn_feed_open(&j->feed, &j->flags->feed, &j->fed, w->eval_graph, err));
    }
    const bool named = j->to != NULL || j->nodes != NULL;
    const bool wanted = named || j->calibrate != NULL || j->compare != NULL;
    if (j->compare != NULL && j->findings.schema->label->none) {
        return tn_fail(err, TN_E_CONFIG, "'--compare' needs labels, and data.label is none");
    }
    if (j->compare != NULL && !j->is_other) {
        TN_TRY(tn_compare_begin(j->compare, &j->setup->run, j->findings.schema, err));
    }
    const tn_eval_request request = {.paths = paths,
                                     .rows_max = j->fit_rows.rows_max,
                                     .day = j->fit_rows.day,
                                     .held = paths == &j->setup->run.data.valid &&
                                             j->setup->run.data.held != TN_HELD_NONE,
                                     .want_ids = named,
                                     .sink = wanted ? take_scores : NULL,
                                     .sink_arg = j,
                                     .calibration = mapped ? &j->map : NULL,
                                     .fetch = j->nodes != NULL ? j->fetch : NULL,
                                     .feed = j->feed,
                                     .stop = j->stop};
    tn_evaluation *out = &j->evaluation;
    TN_TRY(lead != NULL ? tn_leader_evaluate(lead, "data", &request, out, err)
           : w != NULL  ? tn_evaluate(w, &request, out, err)
                        : tn_evaluate_export(j->exported, &j->setup->run, &request, out, err));
    if (out->counts.records == 0) {
        return tn_fail(err, TN_E_DATA, "'%s' holds no records", tn_text_str(&j->data_name));
    }
    return commit_outputs(j, err);
}

/* ---- a checkpoint ---- */

/* `lead` NULL: alone. */
static tn_status evaluate(eval_job *j, tn_worker *w, tn_leader *lead, const tn_strs *paths,
                          tn_error *err)
{
    TN_TRY(load(j, w, err));
    TN_TRY(find_calibration(j, err));
    if (lead != NULL) {
        TN_TRY(tn_leader_load(lead, j->imported ? "" : tn_text_str(&j->source), err));
    }
    tn_profile_begin(j->profile, w);
    return judge(j, w, lead, paths, err);
}

static tn_status evaluate_together(eval_job *j, tn_worker *w, const tn_strs *paths, tn_error *err)
{
    tn_leader *lead = NULL;
    tn_error why = {0};
    tn_status status = tn_leader_open(&lead, w, &j->setup->text, NULL, NULL, &why);
    if (status != TN_OK) {
        tn_peers_decline(&j->setup->run, status, why.text);
        return tn_fail(err, status, "%s", why.text);
    }
    status = tn_leader_form(lead, j->stop, &why);
    if (status == TN_OK) {
        status = evaluate(j, w, lead, paths, &why);
    }
    j->setup->told_elsewhere = tn_leader_close(lead, status, why.text);
    return status == TN_OK ? TN_OK : tn_fail(err, status, "%s", why.text);
}

static tn_status evaluate_checkpoint(eval_job *j, const tn_strs *paths, tn_error *err)
{
    tn_setup *s = j->setup;
    s->run.checkpoint.resume = "must"; /* of what is evaluated */
    TN_TRY(tn_setup_plan(s, err));
    if (s->run.cluster.rank > 0) {
        const tn_watch watch = {.stop = j->stop, .told_elsewhere = &s->told_elsewhere};
        const tn_follower_data data = {paths, j->fetch->n > 0 ? j->fetch : NULL};
        return tn_follower_serve(s->plan, &s->text, &watch, &data, &s->binder, err);
    }
    j->findings.schema = s->plan->schema;
    tn_worker_opts opts = {.compares = true,
                           .fetch = j->fetch->item,
                           .n_fetch = j->fetch->n,
                           .feed = j->fed.item,
                           .n_feed = j->fed.n};
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

static tn_status evaluate_export(eval_job *j, const tn_strs *paths, tn_error *err)
{
    tn_setup *s = j->setup;
    if (j->fetch->n + j->fed.n > 0) {
        return tn_fail(err, TN_E_USAGE, "'--%s' needs a checkpoint, an export has no nodes left",
                       j->fetch->n > 0 ? "fetch" : "feed");
    }
    tn_exported_model_opts opts = {.verify = TN_VERIFY_FULL,
                                   .data = tn_tree_get(s->tree, "data"),
                                   .judges = true,
                                   .target = s->run.data.target};
    char dir[TN_PATH_SIZE];
    TN_TRY(tn_export_find(j->flags->export, dir, err));
    TN_TRY(tn_exported_model_open(&j->exported, dir, &opts, err));
    tn_text_adds(&j->source, dir);
    j->findings.at.step = j->exported->step;
    j->findings.model_id = j->exported->model_id;
    j->findings.schema = j->exported->schema;
    return judge(j, NULL, NULL, paths, err);
}

/* ---- another model ---- */

static void job_done(eval_job *j)
{
    tn_predictions_abandon(j->to);
    tn_fetch_abandon(j->nodes);
    tn_feed_close(j->feed);
    tn_evaluation_done(&j->evaluation);
    tn_sign_words_free(j->words);
    tn_exported_model_close(j->exported);
    tn_calibrate_free(j->calibrate);
    tn_compare_free(j->compare);
    tn_text_done(&j->data_name);
    tn_text_done(&j->source);
    tn_text_done(&j->journal);
}

/* Scores the same data by another model: `s` is its setup, `flags` name it. */
static tn_status take_other(const eval_job *j, tn_setup *s, const eval_flags *model,
                            const tn_strs *paths, tn_error *err)
{
    const tn_strs none = {0};
    eval_job other = {.setup = s,
                      .flags = model,
                      .fetch = &none,
                      .stop = j->stop,
                      .compare = j->compare,
                      .is_other = true};
    s->run.eval.auc = 0; /* only its scores are wanted */
    s->run.eval.slices.n = 0;
    s->run.eval.metrics.n = 0;
    tn_text_adds(&other.data_name, tn_text_str(&j->data_name));
    tn_status status = model->export != NULL ? evaluate_export(&other, paths, err)
                                             : evaluate_checkpoint(&other, paths, err);
    other.compare = NULL;
    job_done(&other);
    return status;
}

/* A checkpoint has a configuration of its own, without places of data. */
static tn_status take_checkpoint(const eval_job *j, const tn_strs *paths, tn_error *err)
{
    tn_setup *mine = j->setup;
    tn_text file = {0};
    tn_setup s = {.arena = mine->arena, .reads = true, .from = j->flags->compare};
    tn_options options = *j->options;
    const eval_flags model = {.checkpoint = j->flags->compare};
    tn_checkpoint_config_path(model.checkpoint, &file);
    const char *const name = tn_tree_text(s.arena, tn_text_str(&file), file.size);
    options.words = (tn_strs){1, &name};
    options.overrides = (tn_strs){0};
    s.binder = (tn_binder){.arena = s.arena, .diag = &s.diag};
    tn_status status = tn_path_exists(name)
                           ? tn_setup_load(&s, &options, err)
                           : tn_fail(err, TN_E_CKPT,
                                     "'%s' is neither an export nor a checkpoint, and no run has "
                                     "one there",
                                     model.checkpoint);
    if (status == TN_OK) {
        tn_terminal_log(options.verbosity, (tn_log_level)mine->run.log.level);
        s.run.train.threads = mine->run.train.threads;
        s.run.data.secrets = mine->run.data.secrets;
        status = take_other(j, &s, &model, paths, err);
    }
    if (s.diag.n_errors > 0) {
        status = tn_fail(err, TN_E_CONFIG, "%s", tn_text_str(&s.diag.text));
    }
    tn_diag_done(&s.diag);
    tn_text_done(&file);
    return status;
}

static tn_status find_other(eval_job *j, const tn_strs *paths, tn_error *err)
{
    const char *other = j->flags->compare;
    char model[TN_PATH_SIZE];
    if (other == NULL) {
        return TN_OK;
    }
    if (j->setup->run.data.target != TN_TARGET_CLICK) {
        return tn_fail(err, TN_E_CONFIG, "'--compare' is for clicks, not for loss '%s'",
                       tn_loss_of(&j->setup->run.loss)->choice.name);
    }
    if (tn_path_is_dir(other) && tn_strs_has(paths, "-")) {
        return tn_fail(err, TN_E_USAGE,
                       "'--data' is '-', standard input, which two models cannot share");
    }
    j->setup->run.eval.auc = 1; /* DeLong wants every row */
    TN_TRY(tn_compare_open(&j->compare, other, err));
    if (!tn_path_is_dir(other)) {
        return tn_compare_read(j->compare, other, err);
    }
    TN_TRY(tn_path_join(other, "model.json", model, err));
    if (!tn_path_exists(model)) {
        return take_checkpoint(j, paths, err);
    }
    tn_setup s = *j->setup;
    return take_other(j, &s, &(eval_flags){.export = other}, paths, err);
}

static tn_status run_job(eval_job *j, tn_error *err)
{
    const tn_strs *paths = NULL;
    TN_TRY(choose_data(j, &paths, err));
    TN_TRY(find_other(j, paths, err));
    TN_TRY(j->flags->export != NULL ? evaluate_export(j, paths, err)
                                    : evaluate_checkpoint(j, paths, err));
    tn_eval_result *f = &j->findings;
    if (j->setup->run.cluster.rank > 0) {
        return TN_OK;
    }
    f->data = tn_text_str(&j->data_name);
    f->run = &j->setup->run;
    f->result = &j->evaluation;
    f->source = tn_text_str(&j->source);
    f->journal = j->journal.size > 0 ? tn_text_str(&j->journal) : NULL;
    f->config_hash = j->setup->text.hash;
    const tn_sign_search shown = {.schema = f->schema,
                                  .paths = paths,
                                  .slots = &f->run->eval.slices,
                                  .result = f->result,
                                  .most = TN_EVAL_SLICES,
                                  .stop = j->stop};
    TN_TRY(tn_sign_words_find(&j->words, &shown, err));
    f->words = j->words;
    tn_eval_result_intervals(f);
    f->compare = j->compare;
    return j->compare != NULL ? tn_compare_end(j->compare, f->result, err) : TN_OK;
}

/* ---- the program ---- */

static const tn_field flags[] = {
    TN_FIELD_U32(eval_flags, peers, "~", 1, TN_CHILDREN_MAX, "", TN_LOCAL_HELP),
    TN_FIELD_STRS(eval_flags, data, "[]",
                  "what to evaluate; may be given again (~: data.days, else data.test, "
                  "else data.valid)"),
    TN_FLAG_STR(eval_flags, checkpoint, "PATH",
                "a checkpoint, or a run directory (~: the newest of this run)"),
    TN_FLAG_STR(eval_flags, export, "DIR", "evaluate an export instead"),
    TN_FLAG_STR(eval_flags, predictions, "FILE|URI",
                "write every score (~: eval.predictions); of several files of data into FILE, and "
                "with a number before its ending: F.tsv, F.1.tsv, F.2.tsv"),
    TN_FLAG_STR(eval_flags, report, "FILE.html", "write a page with curves and calibration"),
    TN_FLAG_STR(eval_flags, compare, "OTHER",
                "another model on the same data: a run directory, a checkpoint, an export, or a "
                "file of '--predictions'; tells which is better, and whether chance could"),
    TN_FIELD_STRS(eval_flags, fetch, "[]",
                  "nodes whose values go to fetch.npz; by commas, or given again"),
    TN_FIELD_STRS(
        eval_flags, feed, "[]",
        "NODE=FILE.npz: the node's values are the array of its name there, a row for each "
        "of the data, as '--fetch' writes it; may be given again"),
    TN_FIELD_CHOICE(eval_flags, calibrate, "none", tn_calibrate_words,
                    "platt, platt_smoothed or isotonic: fit a map from scores to probabilities on "
                    "data.valid, or on '--data', for tnet-export --calibration"),
    TN_FLAG_STR(eval_flags, calibration_out, "FILE",
                "where '--calibrate' writes it (~: " CALIBRATION_FILE ")"),
    TN_FLAG_STR_OR(eval_flags, profile, tn_picture_bare, "FILE", TN_PICTURE_HELP),
    TN_FLAG_BOOL(eval_flags, json, "print one JSON object instead of tables"),
    TN_FIELD_END,
};

static const tn_program program = {
    .name = "tnet-eval",
    .summary = "tell how good a trained model is",
    .words = "CONFIG|RUN [key=value ..]",
    .flags = flags,
    .config = tn_run_fields,
    .words_min = 1,
    .words_max = 1,
    .example = "tnet-eval configs/widedeep.yaml --data data/demo/test.tsv",
    .notes = "RUN is the folder of a run, or of a checkpoint, which has its configuration.\n"
             "Results go to stdout, all else to stderr. eval.auc=exact adds intervals of the AUC,\n"
             "eval.slices=[slot] a table for each value of a slot.\n",
};

static tn_status add_findings(const eval_job *j, tn_text *out, tn_text *more, tn_error *err)
{
    tn_eval_result f = j->findings;
    const bool two = f.compare != NULL;
    if (!j->flags->json) {
        TN_TRY(tn_eval_result_text(&f, out, err));
        return two ? tn_comparison_text(&f, out, err) : TN_OK;
    }
    TN_TRY(two ? tn_comparison_json(&f, more, err) : TN_OK);
    f.more = tn_text_str(more);
    return tn_eval_result_json(&f, out, err);
}

static tn_status tell(const eval_job *j, FILE *out, tn_error *err)
{
    const eval_flags *f = j->flags;
    tn_text text = {0};
    tn_text more = {0};
    tn_status status = add_findings(j, &text, &more, err);
    status = status == TN_OK ? tn_text_check(&text, "results", err) : status;
    if (status == TN_OK) {
        (void)fputs(tn_text_str(&text), out);
    }
    tn_text_done(&text);
    tn_text_done(&more);
    TN_TRY(status);
    return f->report == NULL ? TN_OK
                             : tn_eval_page_write(tn_all_eval_pages[0], &j->findings,
                                                  j->setup->text.config, f->report, err);
}

/* Names behind commas are names of their own. */
static tn_strs split(const tn_strs *given, tn_arena *arena)
{
    size_t most = 0;
    for (uint32_t i = 0; i < given->n; i++) {
        most += strlen(given->item[i]) / 2 + 1;
    }
    const char **item = TN_NEW_ARRAY(arena, const char *, most);
    uint32_t n = 0;
    for (uint32_t i = 0; i < given->n; i++) {
        const char *at = given->item[i];
        while (*at != '\0') {
            size_t size = strcspn(at, ",");
            if (size > 0) {
                item[n++] = tn_tree_text(arena, at, size);
            }
            at += size + (at[size] == ',');
        }
    }
    return (tn_strs){.n = n, .item = item};
}

/* Refuses what several processes cannot do yet. */
static tn_status check_group(const eval_flags *f, tn_error *err)
{
    if (f->export != NULL) {
        return tn_fail(err, TN_E_CONFIG,
                       "'--export' does not work with several processes\n"
                       "hint: '--peers 1' evaluates in one");
    }
    if (f->compare != NULL) {
        return tn_fail(err, TN_E_CONFIG,
                       "'--compare' does not work with several processes\n"
                       "hint: '--peers 1' evaluates in one");
    }
    if (f->feed.n > 0) {
        return tn_fail(
            err, TN_E_CONFIG,
            "'--feed' sets rows in the order of the data, which several processes do not "
            "keep\nhint: '--peers 1' evaluates in one");
    }
    return tn_strs_has(&f->data, "-")
               ? tn_fail(err, TN_E_CONFIG,
                         "'--data' is '-', standard input, which several processes cannot share")
               : TN_OK;
}

/* Where every score goes; NULL: nowhere. */
static const char *predictions_of(const tn_setup *s, const eval_flags *f)
{
    return f->predictions != NULL ? f->predictions : s->run.eval.predictions;
}

/* Where a calibration goes; NULL: nowhere. */
static const char *calibration_of(const eval_flags *f)
{
    const char *path = f->calibration_out != NULL ? f->calibration_out : CALIBRATION_FILE;
    return f->calibrate == TN_CALIBRATE_NONE ? NULL : path;
}

/* Where tables go: beside whatever has standard output for itself. */
static FILE *tables_of(const tn_setup *s, const eval_flags *f)
{
    return tn_output_is_stdout(predictions_of(s, f)) || tn_output_is_stdout(f->report) ||
                   tn_output_is_stdout(calibration_of(f))
               ? stderr
               : stdout;
}

/* Outputs that cannot be written are reported before anything is evaluated. */
static tn_status check_outputs(tn_setup *s, const eval_flags *f, tn_error *err)
{
    const char *predictions = predictions_of(s, f);
    const bool remote = predictions != NULL && tn_uri_is(predictions);
    const char *const names[] = {remote ? NULL : predictions, f->report,
                                 f->fetch.n > 0 ? FETCH_FILE : NULL, calibration_of(f)};
    if (s->run.cluster.rank > 0) {
        return TN_OK; /* rank 0 writes */
    }
    TN_TRY(remote ? tn_predictions_check_uri(predictions, s->run.data.secrets, err) : TN_OK);
    TN_TRY(tn_setup_inputs(s, &f->data, err));
    TN_TRY(tn_fileset_check_hosts(&s->run.data, &f->data, false, err));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i] != NULL) {
            TN_TRY(tn_output_try(names[i], &s->inputs, err));
        }
    }
    return TN_OK;
}

static tn_status run(tn_setup *s, const tn_options *options, const eval_flags *f,
                     const tn_valid_rows *fit_rows, tn_error *err)
{
    const tn_strs nodes = split(&f->fetch, s->arena);
    if (f->fetch.n > 0 && nodes.n == 0) {
        return tn_fail(err, TN_E_USAGE, "'--fetch' names no node");
    }
    tn_strs fed = {0};
    TN_TRY(tn_feed_names(&f->feed, s->arena, &fed, err));
    const bool others = s->run.cluster.rank > 0; /* rank 0 tells what they found */
    tn_picture picture = {0};
    const char *file = f->profile != NULL && f->profile[0] == '\0' ? TRACE_FILE : f->profile;
    TN_TRY(check_outputs(s, f, err));
    TN_TRY(tn_picture_open(&picture, others ? NULL : file, TRACE_FILE, &s->inputs, err));
    eval_job j = {
        .setup = s,
        .flags = f,
        .options = options,
        .predictions = predictions_of(s, f),
        .fetch = &nodes,
        .fed = fed,
        .fit = {.method = (tn_calibrate_method)f->calibrate,
                .path = calibration_of(f),
                .inputs = &s->inputs},
        .fit_rows = *fit_rows,
        .stop = tn_signals_watch_stop(),
        .profile = picture.profile,
    };
    tn_status status = run_job(&j, err);
    if (status == TN_OK && !others) {
        status = tell(&j, tables_of(s, f), err);
    }
    job_done(&j);
    return tn_picture_show(&picture, f->json ? stderr : tables_of(s, f), status, err);
}

/* What cannot go together. */
static tn_status check_flags(const eval_flags *f, tn_error *err)
{
    const bool fits = f->calibrate != TN_CALIBRATE_NONE;
    if (f->export != NULL && f->checkpoint != NULL) {
        return tn_fail(err, TN_E_USAGE, "either '--checkpoint' or '--export', not both");
    }
    if (f->export != NULL && (f->profile != NULL || fits)) {
        return tn_fail(err, TN_E_USAGE, "'--%s' needs a checkpoint",
                       fits ? "calibrate" : "profile");
    }
    if (f->feed.n > 0 && fits) {
        return tn_fail(err, TN_E_USAGE,
                       "'--calibrate' is for scores of the model as it is, not "
                       "with '--feed'");
    }
    if (f->calibration_out != NULL && !fits) {
        return tn_fail(err, TN_E_USAGE, "'--calibration-out' needs '--calibrate'");
    }
    if (f->report != NULL && tn_all_eval_pages[0] == NULL) {
        return tn_fail(err, TN_E_USAGE,
                       "'--report' needs the part 'report' of src/extra, which this tnet-eval was "
                       "built without");
    }
    return TN_OK;
}

static tn_status work(tn_setup *s, const tn_options *options, const void *asked, tn_error *err)
{
    const eval_flags *f = asked;
    TN_TRY(check_flags(f, err));
    const tn_local_group local = {
        .program = &program, .options = options, .peers = f->peers, .folder = "eval"};
    s->reads = true;
    s->reads_next = f->data.n == 0;
    s->from = f->checkpoint;
    TN_TRY(tn_local_load(&local, s, err));
    TN_TRY(tn_local_rank(&local, s, err));
    if (tn_local_is_group(&local) || s->run.cluster.size > 1) {
        TN_TRY(check_group(f, err));
    }
    tn_valid_rows fit_rows = {.day = 0};
    if (f->calibrate != TN_CALIBRATE_NONE) {
        TN_TRY(tn_calibrate_rows(&s->run, &f->data, s->from, s->arena, &fit_rows, err));
    }
    if (f->data.n == 0 && fit_rows.day == 0 && !tn_spawn_is_child()) { /* told once */
        tn_error why = {0};
        const tn_status found = has_days(s) ? tn_days_look_all(&s->run.data, &why) : TN_OK;
        if (found != TN_OK) {
            return tn_fail(err, found, "%s%s", why.text,
                           s->found_day ? "\nhint: day=.. names another day, --data files" : "");
        }
    }
    return tn_local_is_group(&local) ? tn_local_run(&local, s, err)
                                     : run(s, options, f, &fit_rows, err);
}

int main(int argc, char **argv)
{
    eval_flags f;
    const tn_main m = {.program = &program, .flags = &f, .work = work};
    return tn_main_run(&m, (tn_argv){argc, argv});
}
