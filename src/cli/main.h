/* main.h - what every program does around its work: signals, the command line, the configuration,
 * the message of a failure, the exit code.
 *
 *     int main(int argc, char **argv)
 *     {
 *         eval_flags f;
 *         const tn_main m = {.program = &program, .flags = &f, .work = work};
 *         return tn_main_run(&m, (tn_argv){argc, argv});
 *     }
 *
 * and in `work`, of programs with a configuration:
 *
 *     TN_TRY(tn_setup_load(s, options, err));        the configuration, checked
 *     TN_TRY(tn_setup_plan(s, err));                 schema, layers, layout, rules
 *     ... s->plan, s->text ...
 */
#pragma once

#include "base/file/output_file.h"
#include "cli/options.h"
#include "config/diag.h"
#include "config/tree.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"

typedef struct tn_setup {
    tn_arena *arena;
    tn_diag diag; /* warnings too; printed at the end */
    tn_binder binder;
    const tn_tree *tree;
    tn_run run;
    const char *config; /* the file's name; NULL: not loaded */
    tn_inputs inputs;   /* what the run reads; see tn_setup_inputs */
    const tn_model_plan *plan;
    tn_run_text text; /* the resolved configuration without folders, logs and paths */
    int exit_code;    /* of a success: of child processes, which have reported their failures
                            themselves; or 4 where data was found wanting */
    /* Set by a program before tn_setup_load, where it only reads a checkpoint: */
    bool reads;
    bool reads_next;  /* .. of a run over days, to judge it by the day after the last learned one */
    const char *from; /* a checkpoint or run directory; NULL: what checkpoint.resume says */
    bool found_day;   /* by tn_setup_load: data.days is what the checkpoint makes of it */
    bool alone;       /* set by a program: it looks at the configuration, and at no checkpoint */
    bool has_day;     /* run.data.train has the files of the day that is learned first */
    uint32_t peers;   /* that it starts, which tell themselves what they choose; 0: none */
    bool told_elsewhere; /* another process of the group has failed, and reports it itself */
} tn_setup;

/* The configuration named by the first word, changed by environment and key=value. Where a
 * program only reads, the word may be the folder of a run or of a checkpoint, which has its
 * configuration; rules of training, and a day that nobody names, are the checkpoint's. */
tn_status tn_setup_load(tn_setup *s, const tn_options *options, tn_error *err) TN_MUST_USE;
/* Makes the choices that are left to the data (train/config/choices.h); `said` gets words about
 * them. */
tn_status tn_setup_choose(tn_setup *s, tn_text *said, tn_error *err) TN_MUST_USE;
/* The same, then the plan; the user is told. TN_E_CONFIG: rows mean something else to the
 * checkpoint (train/config/meaning.h). */
tn_status tn_setup_plan(tn_setup *s, tn_error *err) TN_MUST_USE;
/* Fills s->inputs, with data that the configuration does not name. */
tn_status tn_setup_inputs(tn_setup *s, const tn_strs *more, tn_error *err) TN_MUST_USE;

/* Adds the files that a program reads, so that no output replaces one: the file of the
 * configuration (NULL: none), the files that `tree` came from, and the data of training, validation
 * and test. */
tn_status tn_inputs_of(tn_inputs *out, const tn_tree *tree, const char *config,
                       const tn_data_opts *data, tn_error *err) TN_MUST_USE;

typedef struct tn_main {
    const tn_program *program;
    void *flags;                       /* a struct of program->flags, filled before the two below */
    bool (*answer)(const void *flags); /* answers a question that needs no words; NULL: none */
    /* `s` is empty, not loaded; libraries log to the terminal. A failure is printed once, and
     * so are faults of the configuration; after a success the exit code is s->exit_code. */
    tn_status (*work)(tn_setup *s, const tn_options *options, const void *flags, tn_error *err);
} tn_main;

/* All of a program; returns its exit code. */
int tn_main_run(const tn_main *m, tn_argv args);

/* The same, for a program with several works, within what tn_main_run does around it. `arena`: of
 * the command line. */
int tn_main_work(const tn_main *m, tn_argv args, tn_arena *arena);
