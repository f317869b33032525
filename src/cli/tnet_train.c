/* tnet_train.c - train, evaluate, checkpoint, log. */
#include "base/core/log.h"
#include "base/thread/team.h"
#include "cli/exits.h"
#include "cli/local.h"
#include "cli/main.h"
#include "cli/picture.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "config/field.h"
#include "config/fieldtree.h"
#include "config/tree.h"
#include "train/config/lists.h"
#include "train/config/run_tasks.h"
#include "train/eval/task_results.h"
#include "train/job/train_job.h"
#include "train/report/eval_result.h"
#include "train/report/report.h"
#include "train/report/text_tables.h"
#include "train/run/dryrun.h"

#include <stdio.h>

typedef struct train_flags {
    uint32_t peers, threads;
    uint64_t pause;
    const char *profile;
    bool peers_table, resume, fresh, again, dry_run, plan, dot, print_config, print_graph;
    bool list_models, list_layers, list_ops, list_optimizers, list_formats, list_metrics,
        list_losses;
} train_flags;

static const tn_field flags[] = {
    TN_FIELD_U32(train_flags, peers, "~", 1, TN_CHILDREN_MAX, "", TN_LOCAL_HELP),
    TN_FIELD_U32(train_flags, threads, "0", 0, TN_TEAM_THREADS_MAX, "",
                 "threads that compute (0: train.threads); with --plan also more than there are "
                 "processors"),
    TN_FLAG_BOOL(train_flags, peers_table, "show a line per process every 10 s"),
    TN_FLAG_BOOL(train_flags, resume, "go on from the newest checkpoint, which must exist"),
    TN_FLAG_BOOL(train_flags, fresh, "begin anew; what is there is kept in the folder earlier-<n>"),
    TN_FLAG_BOOL(train_flags, again,
                 "learn the day of data.days although it is learned, or lies before one that is"),
    TN_FIELD_U64(train_flags, pause, "~", 1, 0x1p53, "steps",
                 "save after so many steps of the run and end with code 75, as after a signal"),
    TN_FLAG_BOOL(train_flags, dry_run, "check everything, read one batch, train nothing"),
    TN_FLAG_BOOL(train_flags, plan, "print every node: shape, parameters, FLOPs, bytes, time"),
    TN_FLAG_STR_OR(train_flags, profile, tn_picture_bare, "FILE", TN_PICTURE_HELP),
    TN_FLAG_BOOL(train_flags, dot, "print the graph as a drawing for Graphviz"),
    TN_FLAG_BOOL(train_flags, print_config, "print the resolved configuration with its sources"),
    TN_FLAG_BOOL(train_flags, print_graph, "print the model as a list of layers"),
    TN_FLAG_BOOL(train_flags, list_models, "what model.type may be, with presets and options"),
    TN_FLAG_BOOL(train_flags, list_layers, "the layers of `type: graph`, with their options"),
    TN_FLAG_BOOL(train_flags, list_ops, "the operators that layers are made of"),
    TN_FLAG_BOOL(train_flags, list_optimizers, "the rules of train.optimizer and train.sparse"),
    TN_FLAG_BOOL(train_flags, list_losses, "what loss may be, with targets and options"),
    TN_FLAG_BOOL(train_flags, list_formats, "what data.format may be"),
    TN_FLAG_BOOL(train_flags, list_metrics, "what eval.metrics may hold"),
    TN_FIELD_END,
};

static const tn_program program = {
    .name = "tnet-train",
    .summary = "train, evaluate and checkpoint a click-through-rate model",
    .words = "CONFIG [key=value ..]",
    .flags = flags,
    .config = tn_run_fields,
    .words_min = 1,
    .words_max = 1,
    .example = "tnet-train configs/widedeep.yaml train.epochs=2",
    .notes =
        "Ctrl-C, SIGTERM or a closed terminal (SIGHUP) saves a checkpoint and ends with code 75;\n"
        "the same command goes on from there. SIGUSR1 saves now. Results go to stdout, all else to "
        "stderr.\n"
        "--peers N ends with the code of the first process that failed, with 6 where one was "
        "killed.\n",
};

/* Appends by what each task of data.test is calibrated; false: none is. */
static bool put_calibrated(const tn_run *run, const tn_evaluation *test, tn_text *out)
{
    const tn_tasks *tasks = tn_run_tasks_of(run);
    bool some = false;
    for (uint32_t k = 0; test->metrics != NULL && k < tn_tasks_count(tasks); k++) {
        const tn_evaluation *e = tn_evaluation_of_task(test, k);
        if (e != NULL && e->calibrated_by != NULL) {
            some = true;
            tn_text_addf(out, "test%s%s is ", tasks->n > 0 ? "." : "",
                         tasks->n > 0 ? tasks->task[k].name : "");
            tn_eval_result_calibrated(e, out);
            tn_text_addc(out, '\n');
        }
    }
    return some;
}

static void print_results(const tn_setup *s, const tn_outcome *out)
{
    FILE *table_out = tn_output_is_stdout(s->run.eval.predictions) ? stderr : stdout;
    tn_result_columns columns = {.names = s->arena};
    tn_text calibrated = {0};
    const bool raw = put_calibrated(&s->run, &out->test, &calibrated); /* data.valid never is */
    if (out->valid.metrics != NULL) {
        tn_eval_result_columns(&s->run, "valid", raw ? " (raw)" : "", &out->valid, &columns);
    }
    if (out->test.metrics != NULL) {
        tn_eval_result_columns(&s->run, "test", "", &out->test, &columns);
    }
    tn_text text = {0};
    if (columns.n > 0) {
        const char *room[TN_METRIC_NAMES_MAX];
        const tn_strs metrics = tn_all_metric_names(&s->run, room);
        tn_results_text(columns.of, columns.n, &metrics, &text);
        tn_text_adds(&text, tn_text_str(&calibrated));
    }
    (void)fputs(tn_text_str(&text), table_out);
    tn_text_done(&text);
    tn_text_done(&calibrated);
}

static tn_status open_picture(const tn_setup *s, const char *asked, tn_picture *out, tn_error *err)
{
    tn_text usual = {0};
    tn_run_dir(&s->run.run, &usual);
    tn_text_adds(&usual, "/trace.json");
    tn_status status = tn_text_check(&usual, "run.dir", err);
    if (status == TN_OK) {
        status = tn_picture_open(out, asked, tn_text_str(&usual), &s->inputs, err);
    }
    tn_text_done(&usual);
    return status;
}

static tn_status train(tn_setup *s, const tn_options *options, const train_flags *f, tn_error *err)
{
    tn_picture picture = {0};
    const bool leads = s->run.cluster.rank == 0; /* the picture of a group is that of rank 0 */
    if (leads && f->profile != NULL) {
        TN_TRY(tn_setup_inputs(s, &(tn_strs){0}, err));
    }
    TN_TRY(open_picture(s, leads ? f->profile : NULL, &picture, err));
    tn_watch watch = {
        .show = options->verbosity < 0 ? NULL : tn_terminal_show,
        .peers_table = f->peers_table,
        .terminal = tn_terminal_is_one(),
        .width = tn_terminal_width(),
        .inputs = &s->inputs,
        .profile = picture.profile,
        .stop = tn_signals_watch_stop(),
        .pause = f->pause != TN_UNSET_U64 ? f->pause : 0,
        .save = tn_signals_watch_save(),
        .told_elsewhere = &s->told_elsewhere,
    };
    tn_outcome out;
    tn_status status = tn_train_job_run(s, &watch, &out, err);
    tn_terminal_done();
    if (status == TN_OK) {
        print_results(s, &out);
    }
    tn_outcome_done(&out);
    return tn_picture_show(&picture, stdout, status, err);
}

static void print_fields(const tn_field *fields, const tn_tree *tree, bool sources)
{
    tn_text text = {0};
    const tn_print_opts print = {.sources = sources};
    tn_fields_print(&text, fields, tree, &print);
    (void)fputs(tn_text_str(&text), stdout);
    tn_text_done(&text);
}

/* The list of layers of any model, as a configuration of the model "graph", and first values of
 * vectors, where some models have a default of their own. */
static void print_graph(const tn_setup *s)
{
    tn_field row = *tn_field_find(tn_run_fields, "model");
    row.table = NULL;
    const tn_field fields[] = {row, TN_FIELD_END};
    tn_arena *arena = s->binder.arena;
    tn_tree *model = tn_tree_copy(arena, s->plan->list);
    tn_tree_put(arena, model, "type", tn_tree_scalar(arena, "graph", (tn_origin){0}));
    print_fields(fields, tn_tree_wrap(arena, "model", model), false);
    tn_text init = {0};
    tn_tree_print_flow(&init, s->plan->run->embedding.init);
    (void)printf("embedding: {init: %s}\n", tn_text_str(&init));
    tn_text_done(&init);
}

static tn_status answer(tn_setup *s, const train_flags *f, tn_error *err)
{
    if (f->print_graph) {
        print_graph(s);
        return TN_OK;
    }
    tn_text text = {0};
    tn_status status = f->dry_run ? tn_dry_run(s->plan, &s->binder, &text, err)
                                  : tn_describe_graph(s->plan, &s->binder, f->dot, &text, err);
    (void)fputs(tn_text_str(&text), stdout);
    tn_text_done(&text);
    return status;
}

/* Prints the configuration with the choices that the data allow; without data 'auto' stays. */
static void print_config(tn_setup *s)
{
    tn_error why = {0};
    tn_diag unheard = {0}; /* ignored: a run would report these faults */
    tn_text said = {0};    /* ignored: the printed configuration has it */
    s->binder.diag = &unheard;
    tn_status status = tn_setup_choose(s, &said, &why);
    s->binder.diag = &s->diag;
    tn_text_done(&said);
    tn_diag_done(&unheard);
    if (status == TN_E_DATA || status == TN_E_IO) {
        tn_log(TN_LOG_INFO, "nothing is chosen by the data: %s", why.text);
    }
    print_fields(tn_run_fields, s->tree, true);
}

static tn_status work(tn_setup *s, const tn_options *options, const void *asked, tn_error *err)
{
    const train_flags *f = asked;
    const tn_local_group local = {.program = &program,
                                  .options = options,
                                  .peers = f->peers,
                                  .threads = f->threads,
                                  .goes_on = true};
    TN_TRY(tn_local_load(&local, s, err));
    const tn_train_job_opts how = {.resume = f->resume, .fresh = f->fresh, .again = f->again};
    TN_TRY(tn_train_job_begin(s, &how, err));
    s->peers = tn_local_is_group(&local) ? f->peers : 0;
    if (f->print_config) {
        print_config(s);
        return TN_OK;
    }
    TN_TRY(tn_local_rank(&local, s, err));
    s->alone = f->print_graph || f->plan || f->dot;
    if (s->alone || f->dry_run) {
        TN_TRY(tn_setup_plan(s, err));
        return answer(s, f, err);
    }
    /* Watched from here on: the first look may already be one at a silent server. */
    const tn_status status = tn_train_job_plan(s, tn_signals_watch_stop(), err);
    if (status != TN_OK) {
        return status == TN_END ? TN_OK : status;
    }
    if (tn_local_is_group(&local)) {
        return tn_local_run(&local, s, err);
    }
    return train(s, options, f, err);
}

static bool print_lists(const void *asked)
{
    const train_flags *f = asked;
    const tn_lists lists = {f->list_models,  f->list_layers,  f->list_ops,   f->list_optimizers,
                            f->list_formats, f->list_metrics, f->list_losses};
    tn_text text = {0};
    bool any = tn_lists_text(&lists, &text);
    (void)fputs(tn_text_str(&text), stdout);
    tn_text_done(&text);
    return any;
}

int main(int argc, char **argv)
{
    train_flags f;
    const tn_main m = {.program = &program, .flags = &f, .answer = print_lists, .work = work};
    return tn_main_run(&m, (tn_argv){argc, argv});
}
