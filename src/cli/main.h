/* main.h - what every program does around its work: signals, the command line, the message of a
 * failure, the exit code.
 *
 *     int main(int argc, char **argv)
 *     {
 *         eval_flags f;
 *         const tn_main m = {.program = &program, .flags = &f, .work = work};
 *         return tn_main_run(&m, (tn_argv){argc, argv});
 *     }
 */
#ifndef TN_CLI_MAIN_H
#define TN_CLI_MAIN_H

#include "cli/setup.h"

typedef struct tn_main {
    const tn_program *program;
    void *flags;                       /* a struct of program->flags, filled before the two below */
    bool (*answer)(const void *flags); /* answers a question that needs no words; NULL: none */
    /* `s` is begun, not loaded. */
    tn_status (*work)(tn_setup *s, const tn_options *options, const void *flags, tn_error *err);
} tn_main;

/* All of a program; returns its exit code. */
int tn_main_run(const tn_main *m, tn_argv args);

/* Only the command line, for a program with several works (m->work is not used). False: there is
 * nothing left to do, a question was answered or a fault told; *code is the exit code. */
bool tn_main_options(const tn_main *m, tn_argv args, tn_arena *arena, tn_options *out,
                     int *code) TN_MUST_USE;

#endif
