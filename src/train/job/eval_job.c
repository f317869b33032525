/* eval_job.c - an evaluation from the choice of model and data to its findings. */
#include "train/job/eval_job.h"

#include "base/core/log.h"
#include "base/file/file.h"
#include "base/math/fmath.h"
#include "config/absent.h"
#include "config/tree.h"
#include "io/read/fileset.h"
#include "io/schema/schema.h"
#include "io/source/remote.h"
#include "metrics/calibrator.h"
#include "serve/exported_model.h"
#include "train/begin/begun.h"
#include "train/begin/import.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/days.h"
#include "train/config/run_tasks.h"
#include "train/eval/evaluate.h"
#include "train/eval/importance.h"
#include "train/eval/node_files.h"
#include "train/eval/predict.h"
#include "train/group/ranks.h"
#include "train/report/profile.h"
#include "train/step/worker.h"

#include <string.h>

#define TN_COMPARE_KIND(name) extern const tn_compare_kind tn_compare_kind_##name;
#include "train/job/compare_kinds.def"
#undef TN_COMPARE_KIND

static const tn_compare_kind *const compare_kinds[] = {
#define TN_COMPARE_KIND(name) &tn_compare_kind_##name,
#include "train/job/compare_kinds.def"
#undef TN_COMPARE_KIND
    NULL,
};

struct tn_eval_job {
    tn_setup *setup;
    tn_eval_job_opts opts;
    tn_strs fetch;          /* names of nodes, one an item */
    tn_strs fed;            /* names of nodes that files set */
    tn_valid_rows fit_rows; /* to fit a calibration on */

    /* Rank 0 makes the rest, as does a process that is alone. */
    tn_evaluation evaluation;
    tn_eval_result findings;
    tn_text data_name, source, journal;
    tn_sign_words *words;        /* for the hashes of slices; NULL: none */
    tn_exported_model *exported; /* NULL: a checkpoint is evaluated */
    tn_predictions *to;          /* open file of scores; NULL: none */
    tn_fetch *nodes;             /* open file of nodes' values; NULL: none */
    tn_feed *feed;               /* NULL: no node is fed */
    tn_calibrate *calibrate;     /* NULL: nothing is fitted */
    /* the calibrations that the run has left, by task; kind NONE: scores are raw */
    tn_calibration map[TN_TASKS_MAX];
    tn_compare *compare;      /* NULL: one model alone; its job owns it, not that of the other */
    bool is_other;            /* this job gives `compare` the other model's scores */
    tn_importance importance; /* empty where nobody asks for it */
    double shift;             /* is added to a logit, for sampled negatives */
    tn_profile *profile;      /* NULL: nobody wants it */
    bool imported;            /* the model is checkpoint.from, there is no checkpoint yet */
};

/* ---- which data, which model ---- */

/* Returns whether days are evaluated: somebody named them, or there is nothing else. */
static bool has_days(const tn_setup *s)
{
    const tn_data_opts *data = &s->run.data;
    const bool others = data->test.n > 0 || data->valid.n > 0;
    return data->pattern.n > 0 && !(s->found_day && others);
}

static tn_status choose_data(tn_eval_job *j, const tn_strs **paths, tn_error *err)
{
    const tn_data_opts *data = &j->setup->run.data;
    const tn_strs *named = &j->opts.data;
    if (named->n > 0) {
        for (uint32_t i = 0; i < named->n; i++) {
            tn_text_addf(&j->data_name, "%s%s", i > 0 ? " " : "", named->item[i]);
        }
        *paths = named;
        return tn_text_check(&j->data_name, "paths", err);
    }
    if (j->opts.method != TN_CALIBRATE_NONE && data->pattern.n > 0 && j->fit_rows.day > 0) {
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
    bool test = data->test.n > 0 && j->opts.method == TN_CALIBRATE_NONE;
    if (!test && data->valid.n == 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "nothing to evaluate: neither data.test nor data.valid is set\nhint: "
                       "'--data PATH' names it");
    }
    tn_text_adds(&j->data_name, test ? "test" : "valid");
    *paths = test ? &data->test : &data->valid;
    return TN_OK;
}

/* Returns whether the run is still to begin, with the weights of checkpoint.from. */
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

static tn_status load_first_weights(tn_eval_job *j, tn_worker *w, tn_error *err)
{
    tn_begun begun = {0};
    tn_text said = {0};
    if (j->opts.method != TN_CALIBRATE_NONE) {
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

static tn_status load(tn_eval_job *j, tn_worker *w, tn_error *err)
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

/* Opens files and the calibrator. `sampling`: of negatives, 1 where scores are corrected for it. */
static tn_status open_outputs(tn_eval_job *j, double sampling, const tn_strs *paths, tn_error *err)
{
    if (j->opts.method != TN_CALIBRATE_NONE) {
        if (j->findings.schema->label->none) {
            return tn_fail(err, TN_E_CONFIG, "'--calibrate' needs labels, and data.label is none");
        }
        if (!tn_run_has_clicks(&j->setup->run)) {
            return tn_fail(err, TN_E_CONFIG,
                           "'--calibrate' makes probabilities, and a model of loss '%s' has none",
                           j->setup->run.loss.choice->name);
        }
        const tn_calibrate_opts fit = {.method = j->opts.method,
                                       .path = j->opts.calibration,
                                       .data = paths,
                                       .sampling = sampling,
                                       .tasks = j->setup->run.data.tasks,
                                       .inputs = &j->setup->inputs,
                                       .stop = j->opts.stop};
        TN_TRY(tn_calibrate_open(&j->calibrate, &fit, err));
    }
    if (j->opts.predictions != NULL) {
        const tn_predictions_opts opts = {.path = j->opts.predictions,
                                          .sampling = sampling,
                                          .schema = j->findings.schema,
                                          .inputs = &j->setup->inputs,
                                          .stop = j->opts.stop,
                                          .secrets = j->setup->run.data.secrets};
        TN_TRY(tn_predictions_open(&j->to, &opts, err));
    }
    return j->fetch.n == 0 ? TN_OK
                           : tn_fetch_built()->open(&j->nodes, j->opts.fetch_file, &j->fetch, err);
}

static tn_status take_scores(void *arg, const tn_scores *scores, tn_error *err)
{
    const tn_eval_job *j = arg;
    if (j->to != NULL) {
        TN_TRY(tn_predictions_sink(j->to, scores, err));
    }
    if (j->calibrate != NULL) {
        TN_TRY(tn_calibrate_sink(j->calibrate, scores, err));
    }
    if (j->compare != NULL) {
        TN_TRY(j->findings.with->add(j->compare, scores, j->shift, err));
    }
    if (j->opts.sink != NULL) {
        TN_TRY(j->opts.sink(j->opts.sink_arg, scores, j->shift, err));
    }
    return j->nodes == NULL ? TN_OK : tn_fetch_built()->sink(j->nodes, scores, err);
}

/* Makes the files appear. */
static tn_status commit_outputs(tn_eval_job *j, tn_error *err)
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
    return nodes != NULL ? tn_fetch_built()->commit(nodes, err) : TN_OK;
}

/* Finds the map that the run has left for this checkpoint, which eval.calibrate asks for. */
static tn_status find_calibration(tn_eval_job *j, tn_error *err)
{
    const tn_run *r = &j->setup->run;
    const tn_calibrate_wanted wanted = {.method = (tn_calibrate_method)r->eval.calibrate,
                                        .checkpoint = tn_text_str(&j->source),
                                        .step = j->findings.at.step,
                                        .sampling = r->data.negative_sampling,
                                        .tasks = r->data.tasks};
    if (j->opts.method != TN_CALIBRATE_NONE || j->imported) {
        return TN_OK;
    }
    tn_text said = {0};
    tn_status status = tn_calibrate_find(&wanted, j->setup->arena, j->map, &said, err);
    if (status == TN_OK && said.size > 0) {
        const bool used = tn_calibrates(j->map, r->data.tasks);
        tn_log(used ? TN_LOG_INFO : TN_LOG_WARN, "scores are %s", tn_text_str(&said));
    }
    tn_text_done(&said);
    return status;
}

/* Scores the data. `w` NULL: by the export; */
static tn_status judge(tn_eval_job *j, tn_worker *w, const tn_ranks *ranks, const tn_strs *paths,
                       tn_error *err)
{
    TN_ASSERT(j->findings.schema != NULL && (w == NULL) == (ranks == NULL));
    const bool mapped = tn_calibrates(j->map, j->setup->run.data.tasks);
    const bool corrected = w == NULL || mapped; /* as exports and maps are */
    const double sampling = corrected ? 1 : j->setup->run.data.negative_sampling;
    j->shift = tn_ln(sampling);
    TN_TRY(open_outputs(j, sampling, paths, err));
    if (w != NULL && j->fed.n > 0) {
        TN_TRY(tn_feed_built()->open(&j->feed, &j->opts.feed, &j->fed, w->eval_graph, err));
    }
    const bool named = j->to != NULL || j->nodes != NULL;
    const bool wanted = named || j->calibrate != NULL || j->compare != NULL || j->opts.sink != NULL;
    if (j->compare != NULL && j->findings.schema->label->none) {
        return tn_fail(err, TN_E_CONFIG, "'--compare' needs labels, and data.label is none");
    }
    if (j->compare != NULL && !j->is_other) {
        TN_TRY(j->findings.with->begin(j->compare, &j->setup->run, j->findings.schema, err));
    }
    const tn_eval_request request = {.paths = paths,
                                     .rows_max = j->fit_rows.rows_max,
                                     .day = j->fit_rows.day,
                                     .held = paths == &j->setup->run.data.valid &&
                                             j->setup->run.data.held != TN_HELD_NONE,
                                     .want_ids = named,
                                     .sink = wanted ? take_scores : NULL,
                                     .sink_arg = j,
                                     .calibration = mapped ? j->map : NULL,
                                     .fetch = j->nodes != NULL ? &j->fetch : NULL,
                                     .feed = j->feed,
                                     .stop = j->opts.stop};
    tn_evaluation *out = &j->evaluation;
    TN_TRY(w != NULL ? ranks->ops->evaluate(ranks->self, w, "data", &request, out, err)
                     : tn_evaluate_export(j->exported, &j->setup->run, &request, out, err));
    if (out->counts.records == 0) {
        return tn_fail(err, TN_E_DATA, "'%s' holds no records", tn_text_str(&j->data_name));
    }
    TN_TRY(w != NULL && j->opts.repeats > 0
               ? tn_importance_measure(w, &request, j->opts.repeats, &j->importance, err)
               : TN_OK);
    return commit_outputs(j, err);
}

/* ---- a checkpoint ---- */

static tn_status evaluate(tn_eval_job *j, tn_worker *w, const tn_ranks *ranks, const tn_strs *paths,
                          tn_error *err)
{
    TN_TRY(load(j, w, err));
    TN_TRY(find_calibration(j, err));
    TN_TRY(ranks->ops->load(ranks->self, j->imported ? "" : tn_text_str(&j->source), err));
    tn_profile_begin(j->profile, w);
    return judge(j, w, ranks, paths, err);
}

static tn_status evaluate_together(tn_eval_job *j, tn_worker *w, const tn_strs *paths,
                                   tn_error *err)
{
    tn_ranks ranks;
    tn_error why = {0};
    const tn_ranks_opts opts = {.worker = w, .text = &j->setup->text};
    tn_status status = tn_ranks_open(&ranks, &opts, &why);
    if (status != TN_OK) {
        tn_group_built()->decline(&j->setup->run, status, why.text);
        return tn_fail(err, status, "%s", why.text);
    }
    status = ranks.ops->form(ranks.self, j->opts.stop, &why);
    if (status == TN_OK) {
        status = evaluate(j, w, &ranks, paths, &why);
    }
    j->setup->told_elsewhere = ranks.ops->close(ranks.self, status, why.text);
    return status == TN_OK ? TN_OK : tn_fail(err, status, "%s", why.text);
}

static tn_status evaluate_checkpoint(tn_eval_job *j, const tn_strs *paths, tn_error *err)
{
    tn_setup *s = j->setup;
    s->run.checkpoint.resume = "must";
    TN_TRY(tn_setup_plan(s, err));
    if (s->run.cluster.rank > 0) {
        const tn_watch watch = {.stop = j->opts.stop, .told_elsewhere = &s->told_elsewhere};
        const tn_rank_data data = {paths, j->fetch.n > 0 ? &j->fetch : NULL};
        return tn_group_built()->serve(s->plan, &s->text, &watch, &data, &s->binder, err);
    }
    j->findings.schema = s->plan->schema;
    tn_worker_opts opts = {.compares = true,
                           .fetch = j->fetch.item,
                           .n_fetch = j->fetch.n,
                           .feed = j->fed.item,
                           .n_feed = j->fed.n};
    tn_worker *w = NULL;
    tn_error why = {0};
    tn_status status = tn_worker_new(&w, s->plan, &opts, &s->binder, &why);
    if (status != TN_OK) {
        tn_group_built()->decline(&s->run, status, why.text);
        return tn_fail(err, status, "%s", why.text);
    }
    status = evaluate_together(j, w, paths, err);
    tn_profile_end(j->profile, w);
    tn_worker_free(w);
    return status;
}

/* ---- an export ---- */

static tn_status evaluate_export(tn_eval_job *j, const tn_strs *paths, tn_error *err)
{
    tn_setup *s = j->setup;
    if (j->fetch.n + j->fed.n > 0) {
        return tn_fail(err, TN_E_USAGE, "'--%s' needs a checkpoint, an export has no nodes left",
                       j->fetch.n > 0 ? "fetch" : "feed");
    }
    tn_exported_model_opts opts = {.verify = TN_VERIFY_FULL,
                                   .data = tn_tree_get(s->tree, "data"),
                                   .judges = true,
                                   .target = s->run.data.target,
                                   .tasks = &s->run.data};
    char dir[TN_PATH_SIZE];
    TN_TRY(tn_export_find(j->opts.export, dir, err));
    TN_TRY(tn_exported_model_open(&j->exported, dir, &opts, err));
    tn_text_adds(&j->source, dir);
    j->findings.at.step = j->exported->step;
    j->findings.model_id = j->exported->model_id;
    j->findings.schema = j->exported->schema;
    return judge(j, NULL, NULL, paths, err);
}

/* ---- another model ---- */

/* Frees what a job has made. */
static void job_done(tn_eval_job *j)
{
    tn_predictions_abandon(j->to);
    if (j->nodes != NULL) {
        tn_fetch_built()->abandon(j->nodes);
    }
    if (j->feed != NULL) {
        tn_feed_built()->close(j->feed);
    }
    tn_evaluation_done(&j->evaluation);
    tn_sign_words_free(j->words);
    tn_exported_model_close(j->exported);
    tn_calibrate_free(j->calibrate);
    if (j->compare != NULL) {
        j->findings.with->drop(j->compare);
    }
    tn_importance_done(&j->importance);
    tn_text_done(&j->data_name);
    tn_text_done(&j->source);
    tn_text_done(&j->journal);
}

/* Scores the same data by another model, whose setup is `s`. `export` NULL: its checkpoint. */
static tn_status take_other(const tn_eval_job *j, tn_setup *s, const char *export,
                            const tn_strs *paths, tn_error *err)
{
    tn_eval_job other = {.setup = s,
                         .opts = {.export = export, .stop = j->opts.stop},
                         .findings = {.with = j->findings.with},
                         .compare = j->compare,
                         .is_other = true};
    s->run.eval.auc = 0; /* only its scores are wanted */
    s->run.eval.slices.n = 0;
    s->run.eval.metrics.n = 0;
    tn_text_adds(&other.data_name, tn_text_str(&j->data_name));
    tn_status status = export != NULL ? evaluate_export(&other, paths, err)
                                      : evaluate_checkpoint(&other, paths, err);
    other.compare = NULL;
    job_done(&other);
    return status;
}

/* Scores by another checkpoint, which has a configuration of its own, without places of data. */
static tn_status take_checkpoint(const tn_eval_job *j, const tn_strs *paths, tn_error *err)
{
    tn_setup *mine = j->setup;
    tn_text file = {0};
    tn_setup s = {.arena = mine->arena, .reads = true, .from = j->opts.compare};
    tn_checkpoint_config_path(s.from, &file);
    const tn_setup_in in = {.path = tn_tree_text(s.arena, tn_text_str(&file), file.size),
                            .env = j->opts.env};
    s.binder = (tn_binder){.arena = s.arena, .diag = &s.diag};
    tn_status status = tn_path_exists(in.path)
                           ? tn_setup_load(&s, &in, err)
                           : tn_fail(err, TN_E_CKPT,
                                     "'%s' is neither an export nor a checkpoint, and no run has "
                                     "one there",
                                     s.from);
    if (status == TN_OK) {
        s.run.train.threads = mine->run.train.threads;
        s.run.data.secrets = mine->run.data.secrets;
        status = take_other(j, &s, NULL, paths, err);
    }
    if (s.diag.n_errors > 0) {
        status = tn_fail(err, TN_E_CONFIG, "%s", tn_text_str(&s.diag.text));
    }
    tn_setup_done(&s);
    tn_text_done(&file);
    return status;
}

/* Opens the comparison, and fills it with the other model's scores. */
static tn_status find_other(tn_eval_job *j, const tn_strs *paths, tn_error *err)
{
    const char *other = j->opts.compare;
    char model[TN_PATH_SIZE];
    if (other == NULL) {
        return TN_OK;
    }
    if (j->setup->run.data.target != TN_TARGET_CLICK) {
        return tn_fail(err, TN_E_CONFIG, "'--compare' is for clicks, not for loss '%s'",
                       j->setup->run.loss.choice->name);
    }
    if (tn_path_is_dir(other) && tn_strs_has(paths, "-")) {
        return tn_fail(err, TN_E_USAGE,
                       "'--data' is '-', standard input, which two models cannot share");
    }
    j->setup->run.eval.auc = 1; /* DeLong wants every row */
    TN_TRY(j->findings.with->open(&j->compare, other, err));
    if (!tn_path_is_dir(other)) {
        return j->findings.with->read(j->compare, other, err);
    }
    TN_TRY(tn_path_join(other, "model.json", model, err));
    if (!tn_path_exists(model)) {
        return take_checkpoint(j, paths, err);
    }
    tn_setup s = *j->setup;
    return take_other(j, &s, other, paths, err);
}

tn_status tn_eval_job_run(tn_eval_job *j, tn_profile *profile, tn_error *err)
{
    j->profile = profile;
    const tn_strs *paths = NULL;
    TN_TRY(choose_data(j, &paths, err));
    TN_TRY(find_other(j, paths, err));
    TN_TRY(j->opts.export != NULL ? evaluate_export(j, paths, err)
                                  : evaluate_checkpoint(j, paths, err));
    tn_eval_result *f = &j->findings;
    for (uint32_t k = 0; k < j->evaluation.n_more; k++) { /* all tasks are of the same rows */
        j->evaluation.more[k].counts = j->evaluation.counts;
        j->evaluation.more[k].seconds = j->evaluation.seconds;
    }
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
                                  .stop = j->opts.stop};
    TN_TRY(tn_sign_words_find(&j->words, &shown, err));
    f->words = j->words;
    f->importance = j->opts.repeats > 0 ? &j->importance : NULL;
    tn_eval_result_intervals(f);
    f->compare = j->compare;
    return j->compare != NULL ? j->findings.with->end(j->compare, f->result, err) : TN_OK;
}

/* ---- before any work ---- */

/* Splits items at commas. */
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

/* Refuses what several processes cannot do. */
static tn_status check_group(const tn_eval_job_opts *o, tn_error *err)
{
    const char *const refused = o->export != NULL    ? "export"
                                : o->compare != NULL ? "compare"
                                                     : NULL;
    if (refused != NULL) {
        return tn_fail(err, TN_E_CONFIG,
                       "'--%s' does not work with several processes\n"
                       "hint: '--peers 1' evaluates in one",
                       refused);
    }
    if (o->feed.n > 0) {
        return tn_fail(
            err, TN_E_CONFIG,
            "'--feed' sets rows in the order of the data, which several processes do not "
            "keep\nhint: '--peers 1' evaluates in one");
    }
    return tn_strs_has(&o->data, "-")
               ? tn_fail(err, TN_E_CONFIG,
                         "'--data' is '-', standard input, which several processes cannot share")
               : TN_OK;
}

/* Refuses what the importance of slots cannot be found with. */
static tn_status check_importance(const tn_eval_job *j, tn_error *err)
{
    const tn_eval_job_opts *o = &j->opts;
    const char *const with = o->export != NULL     ? "--export"
                             : o->compare != NULL  ? "--compare"
                             : o->feed.n > 0       ? "--feed"
                             : j->setup->peers > 1 ? "--peers"
                                                   : NULL;
    if (with != NULL) {
        return tn_fail(err, TN_E_USAGE, "'--importance' does not go together with '%s'", with);
    }
    if (tn_strs_has(&o->data, "-")) {
        return tn_fail(err, TN_E_USAGE,
                       "'--importance' reads the data twice, and '--data' is '-', standard input");
    }
    return tn_label_is_none(j->setup->run.data.label)
               ? tn_fail(err, TN_E_CONFIG, "'--importance' needs labels, and data.label is none")
               : TN_OK;
}

/* Refuses what takes one score, where the run has several. */
static tn_status check_tasks(const tn_setup *s, const tn_eval_job_opts *o, tn_error *err)
{
    return o->compare != NULL ? tn_tasks_refuse(&s->run, "'--compare'", err) : TN_OK;
}

/* Refuses options, and days that are not there. */
static tn_status check(tn_eval_job *j, tn_error *err)
{
    const tn_setup *s = j->setup;
    const tn_eval_job_opts *o = &j->opts;
    if (s->peers > 1 || s->run.cluster.size > 1) {
        TN_TRY(check_group(o, err));
    }
    TN_TRY(check_tasks(s, o, err));
    if (o->fetch.n > 0 && j->fetch.n == 0) {
        return tn_fail(err, TN_E_USAGE, "'--fetch' names no node");
    }
    TN_TRY(o->repeats > 0 ? check_importance(j, err) : TN_OK);
    TN_TRY(o->compare != NULL ? tn_absent_check("compare", TN_E_USAGE, err) : TN_OK);
    TN_TRY(o->fetch.n + o->feed.n > 0 ? tn_absent_check("npz", TN_E_USAGE, err) : TN_OK);
    TN_TRY(o->feed.n > 0 ? tn_feed_built()->names(&o->feed, s->arena, &j->fed, err) : TN_OK);
    if (o->method != TN_CALIBRATE_NONE) {
        TN_TRY(tn_calibrate_rows(&s->run, &o->data, s->from, s->arena, &j->fit_rows, err));
    }
    if (o->data.n == 0 && j->fit_rows.day == 0 && has_days(s)) {
        tn_error why = {0};
        const tn_status status = tn_days_look_all(&s->run.data, &why);
        if (status != TN_OK) {
            return tn_fail(err, status, "%s%s", why.text,
                           s->found_day ? "\nhint: day=.. names another day, --data files" : "");
        }
    }
    return TN_OK;
}

tn_status tn_eval_job_new(tn_eval_job **out, tn_setup *s, const tn_eval_job_opts *opts,
                          tn_error *err)
{
    tn_eval_job *j = TN_NEW(s->arena, tn_eval_job);
    *out = NULL;
    *j = (tn_eval_job){.setup = s, .opts = *opts, .fetch = split(&opts->fetch, s->arena)};
    j->findings.with = compare_kinds[0];
    const tn_status status = check(j, err);
    if (status == TN_OK) {
        *out = j;
    }
    return status;
}

tn_status tn_eval_job_check_outputs(tn_eval_job *j, const char *const *more, uint32_t n,
                                    tn_error *err)
{
    tn_setup *s = j->setup;
    const tn_eval_job_opts *o = &j->opts;
    const bool remote = o->predictions != NULL && tn_uri_is(o->predictions);
    const char *const own[] = {remote ? NULL : o->predictions,
                               o->fetch.n > 0 ? o->fetch_file : NULL,
                               o->method != TN_CALIBRATE_NONE ? o->calibration : NULL};
    const uint32_t n_own = sizeof own / sizeof own[0];
    if (s->run.cluster.rank > 0) {
        return TN_OK; /* rank 0 writes */
    }
    TN_TRY(remote ? tn_predictions_check_uri(o->predictions, s->run.data.secrets, err) : TN_OK);
    TN_TRY(tn_setup_inputs(s, &o->data, err));
    TN_TRY(tn_fileset_check_hosts(&s->run.data, &o->data, false, err));
    for (uint32_t i = 0; i < n_own + n; i++) {
        const char *name = i < n_own ? own[i] : more[i - n_own];
        TN_TRY(name != NULL ? tn_output_try(name, &s->inputs, err) : TN_OK);
    }
    return TN_OK;
}

tn_eval_result *tn_eval_job_result(tn_eval_job *j)
{
    TN_ASSERT(j->findings.result != NULL);
    return &j->findings;
}

void tn_eval_job_free(tn_eval_job *j)
{
    if (j != NULL) {
        job_done(j);
    }
}
