/* tnet_tune.c - try values of options, keep the best. */
#include "base/core/arena.h"
#include "base/file/file.h"
#include "cli/main.h"
#include "cli/signals.h"
#include "config/field.h"
#include "config/fieldtree.h"
#include "config/tree.h"
#include "extra/tune/tune.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct tune_flags {
    bool fresh, best, space;
    const char *try;
} tune_flags;

static const tn_field flags[] = {
    TN_FLAG_BOOL(tune_flags, fresh, "begin anew; what is there is kept in tune-earlier-<n>"),
    TN_FLAG_BOOL(tune_flags, best, "print the configuration of the best trial so far; run none"),
    TN_FLAG_BOOL(tune_flags, space,
                 "print tune.space as the search space of 'optuna ask'; run no trial"),
    TN_FLAG_STR(tune_flags, try, "JSON", "run one whole trial with these values, print its goal"),
    TN_FIELD_END,
};

static const tn_program program = {
    .name = "tnet-tune",
    .summary = "try values of options, and keep those of the best model",
    .words = "CONFIG [key=value ..]",
    .flags = flags,
    .config = tn_run_fields,
    .words_min = 1,
    .words_max = 1,
    .example = "tnet-tune configs/deepfm.yaml tune.trials=9",
    .notes =
        "Section `tune` says what is tried. Each trial is a run of tnet-train in a folder of its\n"
        "own, in tune/ of the run's folder. Ctrl-C ends it with code 75; the same command goes "
        "on,\nand what is finished is not done again. Results go to stdout, all else to stderr.\n",
};

/* The folder of this program, where its companions are. */
static tn_status find_folder(char out[TN_PATH_SIZE], tn_error *err)
{
    char path[TN_PATH_SIZE];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    if (size <= 0) {
        return tn_fail(err, TN_E_IO, "cannot find the folder of this program: /proc is not there");
    }
    path[size] = '\0';
    return tn_path_parent(path, out, err);
}

/* Prints the whole configuration, with the values of a trial. */
static tn_status print_best(tn_setup *s, const tn_tune *t, const tn_tune_opts *o, tn_error *err)
{
    const uint32_t best = tn_tune_best(t);
    if (best == UINT32_MAX) {
        return tn_fail(err, TN_E_DATA,
                       "no trial has a result yet\nhint: without --best tnet-tune "
                       "runs them");
    }
    const tn_strs values = tn_tune_values(t, best);
    const char **item = TN_NEW_ARRAY(s->arena, const char *, (size_t)o->overrides.n + values.n);
    memcpy(item, o->overrides.item, o->overrides.n * sizeof *item);
    memcpy(item + o->overrides.n, values.item, values.n * sizeof *item);
    tn_setup chosen = {.arena = s->arena};
    chosen.binder = (tn_binder){.arena = s->arena, .diag = &chosen.diag};
    const tn_setup_in in = {
        .path = o->config, .env = o->env, .overrides = {o->overrides.n + values.n, item}};
    TN_TRY(tn_setup_load(&chosen, &in, err));
    static const char *const without[] = {"tune", NULL};
    const tn_print_opts print = {.without = without};
    tn_text text = {0};
    tn_fields_print(&text, tn_run_fields, chosen.tree, &print);
    (void)fputs(tn_text_str(&text), stdout);
    tn_text_done(&text);
    tn_setup_done(&chosen);
    return TN_OK;
}

static tn_status print_results(const tn_tune *t, bool timed_out, tn_error *err)
{
    tn_text text = {0};
    tn_text dir = {0};
    const uint32_t best = tn_tune_best(t);
    tn_tune_text(t, &text);
    (void)fputs(tn_text_str(&text), stdout);
    if (best != UINT32_MAX) {
        (void)printf(
            "\nbest: trial %u, a run in '%s'; 'tnet-tune CONFIG --best > best.yaml' has its "
            "configuration\n",
            best, tn_tune_folder(t, best, &dir));
    }
    if (timed_out) {
        (void)printf("tune.time is over, and trials are left: the same command goes on\n");
    }
    tn_text_done(&text);
    tn_text_done(&dir);
    return best != UINT32_MAX || timed_out
               ? TN_OK
               : tn_fail(err, TN_E_DATA, "no trial came to its end; each has said why");
}

static tn_status tune(tn_setup *s, tn_tune *t, const tn_tune_opts *o, const tune_flags *f,
                      tn_error *err)
{
    if (f->space) {
        tn_text text = {0};
        tn_tune_space_json(t, &text);
        (void)fputs(tn_text_str(&text), stdout);
        tn_text_done(&text);
        return TN_OK;
    }
    TN_TRY(tn_tune_begin(t, f->best, err));
    if (f->best) {
        return print_best(s, t, o, err);
    }
    if (f->try != NULL) {
        double value = 0;
        TN_TRY(tn_tune_try(t, f->try, &value, err));
        (void)printf("%.17g\n", value);
        return TN_OK;
    }
    bool timed_out = false;
    TN_TRY(tn_tune_run(t, &timed_out, err));
    TN_TRY(tn_tune_page_write(t, err));
    return print_results(t, timed_out, err);
}

static tn_status work(tn_setup *s, const tn_options *options, const void *asked, tn_error *err)
{
    const tune_flags *f = asked;
    char folder[TN_PATH_SIZE];
    if (f->best + f->space + (f->try != NULL) + f->fresh > 1) {
        return tn_fail(err, TN_E_USAGE,
                       "only one of '--best', '--space', '--try' and '--fresh' at a time");
    }
    if (strcmp(options->words.item[0], "-") == 0) {
        return tn_fail(err, TN_E_USAGE, "every trial reads the configuration: it must be a file");
    }
    TN_TRY(tn_main_load(s, options, err));
    TN_TRY(find_folder(folder, err));
    const tn_tune_opts o = {.folder = folder,
                            .config = options->words.item[0],
                            .overrides = options->overrides,
                            .env = (const char *const *)environ,
                            .fresh = f->fresh,
                            .stop = tn_signals_watch_stop()};
    tn_tune *t = NULL;
    TN_TRY(tn_tune_open(&t, s, &o, err));
    const tn_status status = tune(s, t, &o, f, err);
    tn_tune_close(t);
    return status;
}

int main(int argc, char **argv)
{
    tune_flags f;
    const tn_main m = {.program = &program, .flags = &f, .work = work};
    return tn_main_run(&m, (tn_argv){argc, argv});
}
