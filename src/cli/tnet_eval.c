/* tnet_eval.c - how good is a model: metrics, slices, a report, every score. */
#include "cli/children.h"
#include "cli/judge.h"
#include "cli/local.h"
#include "cli/main.h"
#include "cli/picture.h"
#include "cli/signals.h"
#include "train/report/htmlreport.h"

#include <stdio.h>
#include <string.h>

#define TRACE_FILE "trace.json" /* in the working directory */

typedef struct eval_flags {
    uint32_t peers;
    tn_strs data;
    const char *checkpoint, *export, *predictions, *report, *profile;
    tn_strs fetch;
    bool json;
} eval_flags;

static const tn_field flags[] = {
    TN_FIELD_U32(eval_flags, peers, "~", 1, TN_CHILDREN_MAX, "", TN_LOCAL_HELP),
    TN_FIELD_STRS(eval_flags, data, "[]",
                  "what to evaluate; may be given again (~: data.test, else data.valid)"),
    TN_FLAG_STR(eval_flags, checkpoint, "PATH",
                "a checkpoint, or a run directory (~: the newest of this run)"),
    TN_FLAG_STR(eval_flags, export, "DIR", "evaluate an export instead"),
    TN_FLAG_STR(eval_flags, predictions, "FILE",
                "write every score (~: eval.predictions); of several files of data into FILE, and "
                "with a number before its ending: F.tsv, F.1.tsv, F.2.tsv"),
    TN_FLAG_STR(eval_flags, report, "FILE.html", "write a page with curves and calibration"),
    TN_FIELD_STRS(eval_flags, fetch, "[]",
                  "nodes whose values go to fetch.npz; by commas, or given again"),
    TN_FLAG_STR_OR(eval_flags, profile, tn_picture_bare, "FILE", TN_PICTURE_HELP),
    TN_FLAG_BOOL(eval_flags, json, "print one JSON object instead of tables"),
    TN_FIELD_END,
};

static const tn_program program = {
    .name = "tnet-eval",
    .summary = "tell how good a trained model is",
    .words = "CONFIG [key=value ..]",
    .flags = flags,
    .config = tn_run_fields,
    .words_min = 1,
    .words_max = 1,
    .example = "tnet-eval configs/widedeep.yaml --data data/demo/test.tsv",
    .notes = "Results go to stdout, all else to stderr. eval.auc=exact adds intervals of the AUC,\n"
             "eval.slices=[slot] a table for each value of a slot.\n",
};

static tn_status tell(const tn_judge *j, const eval_flags *f, FILE *out, tn_error *err)
{
    tn_text text = {0};
    tn_status status = f->json ? tn_findings_json(&j->findings, &text, err)
                               : tn_findings_text(&j->findings, &text, err);
    if (status == TN_OK) {
        (void)fputs(tn_text_str(&text), out);
    }
    tn_text_done(&text);
    TN_TRY(status);
    return f->report == NULL
               ? TN_OK
               : tn_html_report_write(&j->findings, j->setup->text.config, f->report, err);
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

/* What several processes cannot do yet. */
static tn_status check_group(const eval_flags *f, tn_error *err)
{
    if (f->export != NULL) {
        return tn_fail(err, TN_E_CONFIG,
                       "'--export': with several processes: not in this build yet\n"
                       "hint: '--peers 1' evaluates in one");
    }
    for (uint32_t i = 0; i < f->data.n; i++) {
        if (strcmp(f->data.item[i], "-") == 0) {
            return tn_fail(err, TN_E_CONFIG,
                           "'--data' is '-', standard input, which several processes cannot share");
        }
    }
    return TN_OK;
}

/* Where every score goes; NULL: nowhere. */
static const char *predictions_of(const tn_setup *s, const eval_flags *f)
{
    return f->predictions != NULL ? f->predictions : s->run.eval.predictions;
}

/* Where tables go: beside whatever has standard output for itself. */
static FILE *tables_of(const tn_setup *s, const eval_flags *f)
{
    return tn_output_is_stdout(predictions_of(s, f)) || tn_output_is_stdout(f->report) ? stderr
                                                                                       : stdout;
}

/* What cannot be written is told before anything is evaluated. */
static tn_status check_outputs(tn_setup *s, const eval_flags *f, tn_error *err)
{
    const char *const names[] = {predictions_of(s, f), f->report,
                                 f->fetch.n > 0 ? TN_FETCH_FILE : NULL};
    if (s->run.cluster.rank > 0) {
        return TN_OK; /* rank 0 writes */
    }
    TN_TRY(tn_setup_inputs(s, &f->data, err));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i] != NULL) {
            TN_TRY(tn_output_try(names[i], &s->inputs, err));
        }
    }
    return TN_OK;
}

static tn_status run(tn_setup *s, const eval_flags *f, tn_error *err)
{
    const tn_strs nodes = split(&f->fetch, s->arena);
    if (f->fetch.n > 0 && nodes.n == 0) {
        return tn_fail(err, TN_E_USAGE, "'--fetch' names no node");
    }
    const bool others = s->run.cluster.rank > 0; /* rank 0 tells what they found */
    tn_picture picture = {0};
    const char *file = f->profile != NULL && f->profile[0] == '\0' ? TRACE_FILE : f->profile;
    TN_TRY(check_outputs(s, f, err));
    TN_TRY(tn_picture_open(&picture, others ? NULL : file, TRACE_FILE, &s->inputs, err));
    tn_judge j = {
        .setup = s,
        .data = &f->data,
        .checkpoint = f->checkpoint,
        .export_dir = f->export,
        .predictions = predictions_of(s, f),
        .fetch = &nodes,
        .stop = tn_signals_watch_stop(),
        .profile = picture.profile,
    };
    tn_status status = tn_judge_run(&j, err);
    if (status == TN_OK && !others) {
        status = tell(&j, f, tables_of(s, f), err);
    }
    tn_judge_done(&j);
    return tn_picture_show(&picture, f->json ? stderr : tables_of(s, f), status, err);
}

static tn_status work(tn_setup *s, const tn_options *options, const void *asked, tn_error *err)
{
    const eval_flags *f = asked;
    if (f->export != NULL && f->checkpoint != NULL) {
        return tn_fail(err, TN_E_USAGE, "either '--checkpoint' or '--export', not both");
    }
    if (f->export != NULL && f->profile != NULL) {
        return tn_fail(err, TN_E_USAGE, "'--profile' needs a checkpoint");
    }
    const tn_local_group local = {
        .program = &program, .options = options, .peers = f->peers, .folder = "eval"};
    const tn_options own = tn_local_options(&local, s->arena);
    tn_status status = tn_setup_load(s, &own, err);
    status = status == TN_OK ? tn_local_seat(&local, s, err) : status;
    if (status != TN_OK) {
        tn_local_decline(&local, s);
        return status;
    }
    if (tn_local_is_group(&local) || s->run.cluster.size > 1) {
        TN_TRY(check_group(f, err));
    }
    return tn_local_is_group(&local) ? tn_local_run(&local, s, err) : run(s, f, err);
}

int main(int argc, char **argv)
{
    eval_flags f;
    const tn_main m = {.program = &program, .flags = &f, .work = work};
    return tn_main_run(&m, (tn_argv){argc, argv});
}
