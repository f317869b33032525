/* main.c - from argv to the work and to the exit code. */
#include "cli/main.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/file/file.h"
#include "cli/describe.h"
#include "cli/exits.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "io/format/format.h"
#include "io/read/fileset.h"
#include "train/group/ranks.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

tn_status tn_main_load(tn_setup *s, const tn_options *options, tn_error *err)
{
    const tn_setup_in in = {.path = options->words.item[0],
                            .env = (const char *const *)environ,
                            .overrides = options->overrides};
    TN_TRY(tn_setup_load(s, &in, err));
    tn_terminal_log(options->verbosity, (tn_log_level)s->run.log.level);
    return tn_fileset_check_hosts(&s->run.data, &(tn_strs){0}, !tn_group_built()->is_child(), err);
}

static bool is_there(const char *pattern)
{
    glob_t found;
    const int result = glob(pattern, GLOB_NOSORT, NULL, &found); // NOLINT(concurrency-mt-unsafe)
    globfree(&found);
    return result == 0;
}

/* Says so where a file of the data lies beside the configuration, but not here. */
static void hint_path(const tn_setup *s, tn_error *err)
{
    const tn_strs *const lists[] = {&s->run.data.train, &s->run.data.valid, &s->run.data.test};
    const char *name = s->config != NULL ? strrchr(s->config, '/') : NULL;
    for (uint32_t i = 0; name != NULL && i < 3; i++) {
        for (uint32_t k = 0; k < lists[i]->n; k++) {
            char beside[TN_PATH_SIZE];
            const char *item = lists[i]->item[k];
            (void)snprintf(beside, sizeof beside, "%.*s/%s", (int)(name - s->config), s->config,
                           item);
            if (!is_there(item) && is_there(beside)) {
                char hint[TN_PATH_SIZE + 100];
                (void)snprintf(hint, sizeof hint,
                               "'%s' is there: paths are taken from where you stand, not from the "
                               "configuration's folder",
                               beside);
                (void)tn_record_advise(TN_E_DATA, hint, err);
                return;
            }
        }
    }
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
    if (err->code == TN_E_DATA) {
        hint_path(s, err);
    }
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
