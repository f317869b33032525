/* local.c - what --peers means, and the start of this program once per rank. */
#include "cli/local.h"

#include "base/core/arena.h"
#include "base/core/clock.h"
#include "base/file/file.h"
#include "base/thread/threads.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "config/diag.h"
#include "train/config/run.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The others notice a lost peer within 15 s and then end. */
static const uint64_t grace_ns = 20000000000;

enum { OVERRIDE_BYTES = 48, OVERRIDES_MAX = 3 };

bool tn_local_is_group(const tn_local_group *l)
{
    return l->peers != TN_UNSET_U32 && l->peers > 1;
}

static char * override(tn_arena *arena, const char *key, uint32_t value)
{
    char *text = TN_NEW_ARRAY(arena, char, OVERRIDE_BYTES);
    (void)snprintf(text, OVERRIDE_BYTES, "%s=%u", key, value);
    return text;
}

tn_options tn_local_options(const tn_local_group *l, tn_arena *arena)
{
    tn_options out = *l->options;
    const tn_strs *given = &l->options->overrides;
    const char **item = TN_NEW_ARRAY(arena, const char *, (size_t)given->n + OVERRIDES_MAX);
    uint32_t n = given->n;
    for (uint32_t i = 0; i < n; i++) {
        item[i] = given->item[i];
    }
    if (l->peers != TN_UNSET_U32) {
        item[n++] = override(arena, "cluster.peers", l->peers);
    }
    if (l->threads > 0) {
        item[n++] = override(arena, "train.threads", l->threads);
    }
    out.overrides = (tn_strs){n, item};
    return out;
}

tn_argv tn_local_words(const tn_local_group *l, const tn_run *run, tn_arena *arena)
{
    uint32_t cpus = tn_cpu_count();
    tn_argv given = tn_options_without(l->program, l->options->args, "peers", arena);
    char **item = TN_NEW_ARRAY(arena, char *, (size_t)given.n + OVERRIDES_MAX + 1);
    int n = given.n;
    memcpy(item, given.item, (size_t)given.n * sizeof *item);
    item[n++] = override(arena, "cluster.peers", l->peers);
    if (run->train.threads == TN_WORD_U32(0) && !run->compute.pin) {
        item[n++] = override(arena, "train.threads", cpus > l->peers ? cpus / l->peers : 1);
    }
    if (run->data.readers == TN_AUTO && !run->compute.pin) {
        uint32_t readers = cpus / 2 / l->peers;
        item[n++] = override(arena, "data.readers", readers > 1 ? readers : 1);
    }
    item[n] = NULL;
    return (tn_argv){n, item};
}

tn_argv tn_local_words_again(const tn_local_group *l, const tn_run *run, tn_arena *arena)
{
    const char *resume = run->checkpoint.resume;
    const bool goes_on = l->goes_on && !run->checkpoint.fresh && !run->data.again &&
                         (strcmp(resume, "auto") == 0 || strcmp(resume, "must") == 0) &&
                         !tn_run_trains_on_stdin(run);
    if (!goes_on) {
        return (tn_argv){0, NULL};
    }
    /* --resume wants a checkpoint, and the first start may have fallen before it saved one. */
    return tn_options_without(l->program, tn_local_words(l, run, arena), "resume", arena);
}

/* Every child reads it for itself. */
static tn_status check_config(const char *path, tn_error *err)
{
    struct stat s;
    if (strcmp(path, "-") != 0 &&
        (stat(path, &s) != 0 || S_ISREG(s.st_mode) || S_ISDIR(s.st_mode))) {
        return TN_OK;
    }
    return tn_fail(err, TN_E_USAGE,
                   "'%s' can be read once, but with --peers every process reads it", path);
}

/* The file of this program, also where another has been put in its place. */
static const char *own_path(char path[TN_PATH_SIZE])
{
    static const char self[] = "/proc/self/exe";
    ssize_t size = readlink(self, path, TN_PATH_SIZE - 1);
    if (size <= 0) {
        return self;
    }
    path[size] = '\0';
    return access(path, X_OK) == 0 ? path : self;
}

tn_status tn_local_run(const tn_local_group *l, tn_setup *s, tn_error *err)
{
    char path[TN_PATH_SIZE];
    TN_ASSERT(tn_local_is_group(l));
    TN_TRY(check_config(l->options->words.item[0], err));
    TN_TRY(tn_group_built()->prepare(&s->run, l->peers, l->folder, err));
    tn_children_opts opts = {
        .path = own_path(path),
        .words = tn_local_words(l, &s->run, s->arena).item,
        .n = l->peers,
        .job = tn_random_id(),
        .grace_s = (double)tn_timer_ns(grace_ns) * 1e-9,
        .part_cpus = s->run.compute.pin,
        .stops = tn_signals_stops,
        .again = tn_local_words_again(l, &s->run, s->arena).item,
    };
    const bool read = tn_restarts_read(s->run.cluster.restarts, &opts.restarts, &opts.restart_s);
    TN_ASSERT(read); /* else the configuration was refused */
    tn_terminal_share();
    return tn_group_built()->start(&opts, &s->exit_code, err);
}

/* Lets the others of the group know that this rank does not come. */
static void decline(const tn_local_group *l, tn_setup *s)
{
    tn_diag ignored = {0}; /* s->diag has what is wrong */
    const tn_binder b = {.arena = s->arena, .diag = &ignored};
    if (s->tree == NULL || tn_local_is_group(l)) {
        return;
    }
    if (s->run.cluster.membership == NULL) {
        tn_status status = tn_group_built()->find_rank(&b, s->tree, &s->run, l->folder, NULL);
        (void)status; /* it is a group, or is not */
    }
    tn_group_built()->decline(&s->run, TN_E_CONFIG, tn_text_str(&s->diag.text));
    tn_diag_done(&ignored);
}

tn_status tn_local_load(const tn_local_group *l, tn_setup *s, tn_error *err)
{
    const tn_options own = tn_local_options(l, s->arena);
    tn_status status = tn_main_load(s, &own, err);
    if (status != TN_OK) {
        decline(l, s);
    }
    return status;
}

tn_status tn_local_rank(const tn_local_group *l, tn_setup *s, tn_error *err)
{
    if (tn_local_is_group(l)) {
        tn_group_built()->check(&s->binder, s->tree, &s->run);
        return tn_diag_check(&s->diag, err);
    }
    tn_status status = tn_group_built()->find_rank(&s->binder, s->tree, &s->run, l->folder, err);
    if (status != TN_OK) {
        decline(l, s);
        return status;
    }
    if (s->run.cluster.size > 1) {
        tn_terminal_rank(s->run.cluster.rank);
    }
    return TN_OK;
}
