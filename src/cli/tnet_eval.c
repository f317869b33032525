/* tnet_eval.c - how good is a model: metrics, slices, a report, every score. */
#include "cli/local.h"
#include "cli/main.h"
#include "cli/picture.h"
#include "cli/signals.h"
#include "config/absent.h"
#include "config/field.h"
#include "train/config/run.h"
#include "train/job/eval_job.h"
#include "train/report/eval_pages.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* In the working directory. */
#define FETCH_FILE "fetch.npz"
#define TRACE_FILE "trace.json"
#define CALIBRATION_FILE "calibration.json"

typedef struct eval_flags {
    uint32_t peers;
    tn_strs data;
    const char *checkpoint, *export, *predictions, *report, *profile, *compare;
    tn_strs fetch, feed;
    uint32_t calibrate, importance;
    const char *calibration_out;
    bool json;
} eval_flags;

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
    TN_FIELD_U32(
        eval_flags, importance, "0", 0, TN_IMPORTANCE_REPEATS, "times",
        "deal the values of each slot among the rows so often, and tell how much worse the "
        "model scores them (0: not at all)"),
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

static tn_status add_findings(const tn_eval_result *found, bool json, tn_text *out, tn_text *more,
                              tn_error *err)
{
    tn_eval_result f = *found;
    const bool two = f.compare != NULL;
    if (!json) {
        TN_TRY(tn_eval_result_text(&f, out, err));
        return two ? f.with->text(&f, out, err) : TN_OK;
    }
    TN_TRY(two ? f.with->json(&f, more, err) : TN_OK);
    f.more = tn_text_str(more);
    return tn_eval_result_json(&f, out, err);
}

/* Prints the tables, or the JSON object. */
static tn_status print_result(const tn_eval_result *found, bool json, FILE *out, tn_error *err)
{
    tn_text text = {0};
    tn_text more = {0};
    tn_status status = add_findings(found, json, &text, &more, err);
    status = status == TN_OK ? tn_text_check(&text, "results", err) : status;
    if (status == TN_OK) {
        (void)fputs(tn_text_str(&text), out);
    }
    tn_text_done(&text);
    tn_text_done(&more);
    return status;
}

/* Returns where every score goes; NULL: nowhere. */
static const char *predictions_of(const tn_setup *s, const eval_flags *f)
{
    return f->predictions != NULL ? f->predictions : s->run.eval.predictions;
}

/* Returns where a calibration goes; NULL: nowhere. */
static const char *calibration_of(const eval_flags *f)
{
    const char *path = f->calibration_out != NULL ? f->calibration_out : CALIBRATION_FILE;
    return f->calibrate == TN_CALIBRATE_NONE ? NULL : path;
}

/* Returns where tables go: to stderr when a file of results is standard output. */
static FILE *tables_of(const tn_setup *s, const eval_flags *f)
{
    return tn_output_is_stdout(predictions_of(s, f)) || tn_output_is_stdout(f->report) ||
                   tn_output_is_stdout(calibration_of(f))
               ? stderr
               : stdout;
}

/* Appends "page.buy.html" of "page.html". */
static void put_page_path(const char *path, const char *task, tn_text *out)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash != NULL ? slash : path, '.');
    const int size = (int)(dot != NULL ? (size_t)(dot - path) : strlen(path));
    tn_text_addf(out, "%.*s.%s%s", size, path, task, dot != NULL ? dot : "");
}

/* Writes a page, and one for each further task. */
static tn_status write_pages(const tn_eval_result *found, const char *config, const char *path,
                             tn_error *err)
{
    tn_status status = TN_OK;
    for (uint32_t k = 0; k <= found->result->n_more && status == TN_OK; k++) {
        tn_run own;
        tn_eval_result one;
        tn_text to = {0};
        tn_eval_result_of_task(found, k, &own, &one);
        if (k == 0) {
            tn_text_adds(&to, path);
        } else {
            put_page_path(path, one.task, &to);
        }
        status = tn_text_check(&to, "a path", err);
        if (status == TN_OK) {
            status = tn_eval_page_write(tn_all_eval_pages[0], &one, config, tn_text_str(&to), err);
        }
        tn_text_done(&to);
    }
    return status;
}

static tn_status evaluate(const tn_setup *s, const eval_flags *f, tn_eval_job *job,
                          tn_profile *profile, tn_error *err)
{
    TN_TRY(tn_eval_job_run(job, profile, err));
    if (s->run.cluster.rank > 0) {
        return TN_OK; /* rank 0 prints what all have found */
    }
    tn_eval_result *found = tn_eval_job_result(job);
    TN_TRY(print_result(found, f->json, tables_of(s, f), err));
    return f->report == NULL ? TN_OK : write_pages(found, s->text.config, f->report, err);
}

/* Evaluates in this process. */
static tn_status run(tn_setup *s, const eval_flags *f, tn_eval_job *job, tn_error *err)
{
    const bool leads = s->run.cluster.rank == 0;
    const char *file = f->profile != NULL && f->profile[0] == '\0' ? TRACE_FILE : f->profile;
    tn_picture picture = {0};
    TN_TRY(tn_eval_job_check_outputs(job, &f->report, 1, err));
    TN_TRY(tn_picture_open(&picture, leads ? file : NULL, TRACE_FILE, &s->inputs, err));
    const tn_status status = evaluate(s, f, job, picture.profile, err);
    return tn_picture_show(&picture, f->json ? stderr : tables_of(s, f), status, err);
}

/* Refuses options that do not go together. */
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
    return f->report != NULL && tn_all_eval_pages[0] == NULL
               ? tn_fail(err, TN_E_USAGE, TN_ABSENT_FORM, "--report")
               : TN_OK;
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
    if (f->report != NULL && tn_output_is_stdout(f->report) && s->run.several != NULL) {
        return tn_fail(err, TN_E_CONFIG,
                       "'--report' writes a page for each task, and standard output holds one");
    }
    TN_TRY(tn_local_rank(&local, s, err));
    s->peers = tn_local_is_group(&local) ? f->peers : 0;
    const tn_eval_job_opts opts = {.export = f->export,
                                   .data = f->data,
                                   .predictions = predictions_of(s, f),
                                   .fetch = f->fetch,
                                   .fetch_file = FETCH_FILE,
                                   .feed = f->feed,
                                   .method = (tn_calibrate_method)f->calibrate,
                                   .calibration = calibration_of(f),
                                   .repeats = f->importance,
                                   .compare = f->compare,
                                   .env = (const char *const *)environ,
                                   .stop = tn_signals_watch_stop()};
    tn_eval_job *job = NULL;
    TN_TRY(tn_eval_job_new(&job, s, &opts, err));
    const tn_status status =
        tn_local_is_group(&local) ? tn_local_run(&local, s, err) : run(s, f, job, err);
    tn_eval_job_free(job);
    return status;
}

int main(int argc, char **argv)
{
    eval_flags f;
    const tn_main m = {.program = &program, .flags = &f, .work = work};
    return tn_main_run(&m, (tn_argv){argc, argv});
}
