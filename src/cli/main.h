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
 *     TN_TRY(tn_main_load(s, options, err));         the configuration, checked
 *     TN_TRY(tn_setup_plan(s, err));                 schema, layers, layout, rules
 *     ... s->plan, s->text ...
 */
#pragma once

#include "cli/options.h"
#include "train/job/setup.h"

/* Loads the configuration that the first word names, changed by environment and key=value
 * (tn_setup_load), and sets the level of the terminal's log by it. */
tn_status tn_main_load(tn_setup *s, const tn_options *options, tn_error *err) TN_MUST_USE;

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
