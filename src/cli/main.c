/* main.c - from argv to the work and to the exit code. */
#include "cli/main.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "cli/describe.h"
#include "cli/exits.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "train/group/ranks.h"

#include <stdio.h>
#include <unistd.h>

tn_status tn_main_load(tn_setup *s, const tn_options *options, tn_error *err)
{
    const tn_setup_in in = {.path = options->words.item[0],
                            .env = (const char *const *)environ,
                            .overrides = options->overrides};
    TN_TRY(tn_setup_load(s, &in, err));
    tn_terminal_log(options->verbosity, (tn_log_level)s->run.log.level);
    return tn_setup_check_hosts(s, err);
}

/* Prints what is wrong, once; the exit code. */
static int end(tn_setup *s, const char *program, tn_status status, tn_error *err)
{
    tn_terminal_done();
    if (s->diag.n_errors > 0) {
        return tn_exit_diag(program, &s->diag);
    }
    if (status == TN_OK) {
        return s->exit_code;
    }
    tn_setup_advise(s, err);
    /* Processes that share a terminal report a failure once; elsewhere every log has a line. */
    return s->told_elsewhere && tn_group_built()->is_child() ? tn_exit_code(err->code)
                                                             : tn_exit_with(program, err);
}

int tn_main_work(const tn_main *m, tn_argv args, tn_arena *arena)
{
    const tn_program *p = m->program;
    tn_options options;
    tn_error err = {0};
    tn_status status = tn_options_parse(p, args, arena, &options, m->flags, &err);
    if (status == TN_OK) {
        if (tn_describe_answer(p, &options) || (m->answer != NULL && m->answer(m->flags))) {
            return 0;
        }
        status = tn_options_check_words(p, &options, &err);
    }
    if (status != TN_OK) {
        return tn_exit_with(p->name, &err);
    }
    tn_setup s = {.arena = tn_arena_new(1 << 18)};
    s.binder = (tn_binder){.arena = s.arena, .diag = &s.diag};
    tn_terminal_log(options.verbosity, TN_LOG_INFO);
    status = m->work(&s, &options, m->flags, &err);
    const int code = end(&s, p->name, status, &err);
    tn_setup_done(&s);
    tn_arena_free(s.arena);
    return code;
}

int tn_main_run(const tn_main *m, tn_argv args)
{
    tn_signals_start();
    tn_alloc_share_heap();
    tn_arena *arena = tn_arena_new(1 << 14);
    int code = tn_main_work(m, args, arena);
    tn_arena_free(arena);
    return tn_exit_done(m->program->name, code);
}
