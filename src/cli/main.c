/* main.c - signals, command line and exit code around the work of a program. */
#include "cli/main.h"

#include "base/core/alloc.h"
#include "cli/exits.h"
#include "cli/signals.h"

bool tn_main_options(const tn_main *m, tn_argv args, tn_arena *arena, tn_options *out, int *code)
{
    const tn_program *p = m->program;
    tn_error err = {0};
    *code = 0;
    if (tn_options_parse(p, args, arena, out, m->flags, &err) != TN_OK) {
        *code = tn_exit_with(p->name, &err);
        return false;
    }
    if (tn_describe_answer(p, out) || (m->answer != NULL && m->answer(m->flags))) {
        return false;
    }
    if (tn_options_check_words(p, out, &err) != TN_OK) {
        *code = tn_exit_with(p->name, &err);
        return false;
    }
    return true;
}

static int run(const tn_main *m, tn_argv args, tn_arena *arena)
{
    int code = 0;
    tn_options options;
    if (!tn_main_options(m, args, arena, &options, &code)) {
        return code;
    }
    tn_error err = {0};
    tn_setup s;
    tn_setup_begin(&s, options.verbosity);
    tn_status status = m->work(&s, &options, m->flags, &err);
    code = tn_setup_exit(&s, m->program->name, status, &err);
    tn_setup_done(&s);
    return code;
}

int tn_main_run(const tn_main *m, tn_argv args)
{
    tn_signals_start();
    tn_alloc_spare_address_space();
    tn_arena *arena = tn_arena_new(1 << 14);
    int code = run(m, args, arena);
    tn_arena_free(arena);
    return tn_exit_done(m->program->name, code);
}
