/* api_run.c - makes and frees runs, and does the jobs of their functions. */
#include "api/api_run.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/log.h"
#include "base/thread/threads.h"
#include "config/tree.h"
#include "train/config/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int tn_api_fail(tnet_error *out, const tn_error *err)
{
    const int code = tn_exit_code(err->code);
    if (out != NULL) {
        out->code = code;
        (void)snprintf(out->text, sizeof out->text, "%s", err->text);
    }
    return code;
}

static const char forked[] = "this run was made in another process: a forked child opens it anew";

int tn_api_refuse(tnet_error *out, tn_status status, const char *what)
{
    tn_error err = {0};
    (void)tn_fail(&err, status, "%s", what);
    return tn_api_fail(out, &err);
}

/* ---- lines ---- */

static void pass_line_on(void *arg, int level, const char *line)
{
    const tnet_run *run = arg;
    if (run->hooks.line != NULL && level <= (int)TN_LOG_INFO) {
        run->hooks.line(run->hooks.arg, level, line, 0);
    }
}

/* ---- texts that the run keeps ---- */

static tn_status keep_text(char **out, const char *text, tn_error *err)
{
    *out = NULL;
    if (text == NULL) {
        return TN_OK;
    }
    const size_t size = strlen(text) + 1;
    TN_TRY(TN_ALLOC(*out, size, "a text of a run", err));
    memcpy(*out, text, size);
    return TN_OK;
}

static tn_status add_override(tnet_run *run, const char *override, tn_error *err)
{
    TN_TRY(TN_GROW(run->override, run->n_overrides, run->n_overrides + 1, "options", err));
    TN_TRY(keep_text(&run->override[run->n_overrides], override, err));
    run->n_overrides++;
    return TN_OK;
}

/* ---- a call ---- */

/* Adds "KEY=text", the text in quotes where YAML wants them. */
static const char *assign(tn_arena *arena, const char *key, const char *value)
{
    tn_text text = {0};
    tn_text_addf(&text, "%s=", key);
    tn_tree_print_scalar(&text, value);
    const char *copy = tn_tree_text(arena, tn_text_str(&text), text.size);
    tn_text_done(&text);
    return copy;
}

static const char *const stream_names[TN_API_STREAMS] = {"train", "valid", "test", "rows"};

/* Overrides of the caller, then those by which the run has its folder and its streams. */
static tn_strs overrides_of(const tnet_run *run, const tn_api_job *job, tn_arena *arena)
{
    enum { OWN = TN_API_STREAMS + 2 };
    uint32_t n = 0;
    uint32_t extra = 0;
    while (job->extra != NULL && job->extra[extra] != NULL) {
        extra++;
    }
    const char **item = TN_NEW_ARRAY(arena, const char *, run->n_overrides + OWN + extra);
    for (size_t i = 0; i < run->n_overrides; i++) {
        item[n++] = run->override[i];
    }
    if (run->dir[0] != '\0' && !run->is_folder) {
        item[n++] = assign(arena, "run.dir", run->dir);
    }
    for (uint32_t i = 0; i < TN_API_OWN_STREAM; i++) {
        if (run->given[i].open != NULL || (i == TNET_TRAIN && run->awaits && job->checks)) {
            char key[16];
            char path[32];
            (void)snprintf(key, sizeof key, "data.%s", stream_names[i]);
            (void)snprintf(path, sizeof path, TN_PRODUCER_PREFIX "%s", stream_names[i]);
            item[n++] = assign(arena, key, path);
        }
    }
    if (run->in_memory) { /* they mean what a CSV file of them would mean */
        item[n++] = "data.format=csv";
    }
    for (uint32_t i = 0; i < extra; i++) {
        item[n++] = job->extra[i];
    }
    return (tn_strs){.n = n, .item = item};
}

static int open_stream(void *arg, struct ArrowArrayStream *out, char *why)
{
    const tnet_stream *stream = arg;
    return stream->open(stream->arg, out, why);
}

/* Makes the producers of the streams that are given; those that exist stay. */
static tn_status open_sources(tnet_run *run, tn_error *err)
{
    run->producers.n = 0;
    for (uint32_t i = 0; i < TN_API_STREAMS; i++) {
        if (run->given[i].open == NULL) {
            continue;
        }
        if (run->source[i] == NULL) {
            const tn_arrow_source_opts opts = {.name = stream_names[i],
                                               .open = open_stream,
                                               .arg = &run->given[i],
                                               .once = run->given[i].once != 0};
            TN_TRY(tn_arrow_source_new(&run->source[i], &opts, err));
        }
        run->producers.producer[run->producers.n++] = tn_arrow_source_producer(run->source[i]);
    }
    return TN_OK;
}

static void drop_stream(tnet_run *run, uint32_t which)
{
    tn_arrow_source_free(run->source[which]);
    run->source[which] = NULL;
    run->given[which] = (tnet_stream){.open = NULL};
}

/* Copies a stream of the caller's, whose struct may be shorter than ours. */
static tn_status take_stream(tnet_run *run, uint32_t which, const tnet_stream *stream,
                             tn_error *err)
{
    drop_stream(run, which);
    if (stream == NULL) {
        return TN_OK;
    }
    if (stream->size < offsetof(tnet_stream, arg) || stream->open == NULL) {
        return tn_fail(err, TN_E_USAGE, "a stream without its size, or without 'open'");
    }
    memcpy(&run->given[which], stream,
           stream->size < sizeof *stream ? stream->size : sizeof *stream);
    return TN_OK;
}

/* Refuses what only a program may do to its process. */
static tn_status check_run(const tn_run *run, tn_error *err)
{
    if (run->compute.pin) {
        return tn_fail(err, TN_E_CONFIG,
                       "'compute.pin' is for the programs: a library pins no threads of others");
    }
    const tn_tree *peers = run->cluster.peers; /* auto asks launchers, which start programs */
    const bool asked = !tn_tree_is_null(peers) &&
                       (peers->kind != TN_TREE_SCALAR || strcmp(peers->text, "auto") != 0);
    return !asked
               ? TN_OK
               : tn_fail(err, TN_E_CONFIG,
                         "'cluster.peers' is for the programs: the library trains in one process");
}

/* Names the configuration in messages, where it is no file. */
static const char *config_path(const tnet_run *run)
{
    return run->path != NULL ? run->path : "configuration";
}

static tn_status load_and_work(tnet_run *run, const tn_api_job *job, tn_setup *s, tn_error *err)
{
    const tn_setup_in in = {.path = config_path(run),
                            .text = run->config,
                            .overrides = overrides_of(run, job, s->arena)};
    s->reads = job->reads;
    s->opens = run->is_folder;
    TN_TRY(tn_setup_load(s, &in, err));
    TN_TRY(check_run(&s->run, err));
    TN_TRY(tn_setup_check_hosts(s, err));
    return job->work(run, s, job->arg, err);
}

static tn_status work_in_arena(tnet_run *run, const tn_api_job *job, tn_error *err)
{
    tn_setup s = {.arena = tn_arena_new(1 << 18)};
    s.binder = (tn_binder){.arena = s.arena, .diag = &s.diag};
    tn_status status = load_and_work(run, job, &s, err);
    if (status != TN_OK && s.diag.n_errors == 0) {
        tn_setup_advise(&s, err);
    }
    if (s.diag.n_errors > 0) {
        static const char mark[] = "error: "; /* begins a fault without a place */
        const char *text = tn_text_str(&s.diag.text);
        const bool marked = strncmp(text, mark, sizeof mark - 1) == 0;
        status = tn_fail(err, TN_E_CONFIG, "%s", text + (marked ? sizeof mark - 1 : 0));
    }
    tn_setup_done(&s);
    tn_arena_free(s.arena);
    return status;
}

int tn_api_call(tnet_run *run, const tn_api_job *job, tnet_error *err)
{
    if (run == NULL) {
        return tn_api_refuse(err, TN_E_USAGE, "there is no run");
    }
    if (run->pid != getpid()) {
        return tn_api_refuse(err, TN_E_USAGE, forked);
    }
    tn_error why = {0};
    tn_error short_of = {0};
    const uint64_t mode = tn_flush_denormals();
    tn_spare_clear(run->spare);
    const tn_embedder *before = tn_embedder_enter(&run->embedder);
    tn_status status = take_stream(run, TN_API_OWN_STREAM, job->rows, &why);
    status = status == TN_OK ? open_sources(run, &why) : status;
    status = status == TN_OK ? work_in_arena(run, job, &why) : status;
    drop_stream(run, TN_API_OWN_STREAM);
    atomic_store(&run->stop, false);
    (void)tn_embedder_enter(before);
    tn_float_mode_set(mode);
    if (tn_spare_check(run->spare, &short_of) != TN_OK) {
        return tn_api_fail(err, &short_of); /* whatever else was found may come of it */
    }
    return status == TN_OK ? TNET_OK : tn_api_fail(err, &why);
}

/* ---- making and freeing ---- */

/* Address space of a run for what a call allocates after memory was refused: the set-up of a few
 * thousand slots takes less. */
enum { SPARE_BYTES = 16 << 20 };

/* Makes a folder of its own for a run that names none. */
static tn_status make_folder(tnet_run *run, tn_error *err)
{
    const char *base = getenv("TMPDIR"); // NOLINT(concurrency-mt-unsafe): read only
    base = base != NULL && base[0] != '\0' ? base : "/tmp";
    const int size = snprintf(run->dir, sizeof run->dir, "%s/tnet-run-%016llx", base,
                              (unsigned long long)tn_random_id());
    if (size < 0 || (size_t)size >= sizeof run->dir) {
        run->dir[0] = '\0';
        return tn_fail(err, TN_E_LIMIT, "TMPDIR is too long for a folder in it");
    }
    TN_TRY(tn_dir_make_private(run->dir, err));
    run->owns_dir = true;
    return TN_OK;
}

/* Finds the run's folder: the one that its configuration names, or one that is made. */
static tn_status find_folder(tnet_run *run, tn_setup *s, void *arg, tn_error *err)
{
    (void)arg;
    const bool named = run->is_folder || !tn_tree_is_null(tn_tree_at(s->tree, "run.dir")) ||
                       !tn_tree_is_null(tn_tree_at(s->tree, "run.name"));
    if (!named) {
        return make_folder(run, err);
    }
    tn_text dir = {0};
    tn_run_dir(&s->run.run, &dir);
    tn_status status = tn_text_check(&dir, "run.dir", err);
    if (status == TN_OK && dir.size >= sizeof run->dir) {
        status = tn_fail(err, TN_E_LIMIT, "run.dir is too long");
    }
    if (status == TN_OK) {
        memcpy(run->dir, tn_text_str(&dir), dir.size + 1);
    }
    tn_text_done(&dir);
    return status;
}

/* Looks whether the configuration says how records are written; where it does not, rows are in
 * memory. Faults are reported by the call that comes next. */
static void look_for_format(tnet_run *run)
{
    tn_setup s = {.arena = tn_arena_new(1 << 16)};
    tn_error unheard = {0};
    s.binder = (tn_binder){.arena = s.arena, .diag = &s.diag};
    const tn_setup_in in = {.path = config_path(run),
                            .text = run->config,
                            .overrides = overrides_of(run, &(tn_api_job){.work = NULL}, s.arena)};
    const tn_status status = tn_setup_load(&s, &in, &unheard);
    (void)status;
    run->in_memory = s.tree != NULL && tn_tree_is_null(tn_tree_at(s.tree, "data.format"));
    run->awaits = run->in_memory && tn_tree_is_null(tn_tree_at(s.tree, "data.train"));
    tn_setup_done(&s);
    tn_arena_free(s.arena);
}

/* Copies what the caller gives, whose structs may be shorter than ours. */
static tn_status take_opts(tnet_run *run, const tnet_run_opts *opts, tn_error *err)
{
    TN_TRY(keep_text(&run->config, opts->config, err));
    TN_TRY(keep_text(&run->path, opts->path, err));
    for (size_t i = 0; i < opts->n_overrides; i++) {
        TN_TRY(add_override(run, opts->overrides[i], err));
    }
    if (opts->hooks != NULL) {
        const size_t size = opts->hooks->size;
        memcpy(&run->hooks, opts->hooks, size < sizeof run->hooks ? size : sizeof run->hooks);
    }
    return run->config == NULL && run->path == NULL
               ? tn_fail(err, TN_E_USAGE,
                         "a run wants a configuration: neither 'config' nor "
                         "'path' is set")
               : TN_OK;
}

static tn_status new_run(const tnet_run_opts *opts, bool is_folder, tnet_run **out, tn_error *err)
{
    tnet_run_opts given = {0};
    tnet_run *run = NULL;
    if (opts == NULL || opts->size < sizeof opts->size) {
        return tn_fail(err, TN_E_USAGE, "the options of a run lack their size");
    }
    memcpy(&given, opts, opts->size < sizeof given ? opts->size : sizeof given);
    TN_TRY(TN_ALLOC(run, 1, "a run", err));
    *out = run;
    run->pid = getpid();
    run->is_folder = is_folder;
    TN_TRY(tn_spare_open(&run->spare, SPARE_BYTES, err));
    run->embedder = (tn_embedder){.line = pass_line_on,
                                  .arg = run,
                                  .stop = &run->stop,
                                  .spare = run->spare,
                                  .producers = &run->producers};
    return take_opts(run, &given, err);
}

static int make(const tnet_run_opts *opts, bool is_folder, tnet_run **out, tnet_error *err)
{
    tn_error why = {0};
    tnet_run *run = NULL;
    if (out == NULL) {
        return tn_api_refuse(err, TN_E_USAGE, "there is no place for the run");
    }
    *out = NULL;
    int code = new_run(opts, is_folder, &run, &why) == TN_OK ? 0 : tn_api_fail(err, &why);
    if (code == 0) {
        TN_ASSERT(run != NULL);
        const tn_embedder *before = tn_embedder_enter(&run->embedder);
        if (!is_folder) {
            look_for_format(run);
        }
        (void)tn_embedder_enter(before);
        code = tn_spare_check(run->spare, &why) == TN_OK ? 0 : tn_api_fail(err, &why);
    }
    if (code == 0) {
        code = tn_api_call(run, &(tn_api_job){.work = find_folder, .checks = true}, err);
    }
    if (code != 0) {
        tnet_run_free(run);
        return code;
    }
    *out = run;
    return TNET_OK;
}

int tnet_train_abi(void)
{
    return TNET_TRAIN_ABI;
}

int tnet_run_new(const tnet_run_opts *opts, tnet_run **out, tnet_error *err)
{
    return make(opts, false, out, err);
}

int tnet_run_open(const tnet_run_opts *opts, tnet_run **out, tnet_error *err)
{
    return make(opts, true, out, err);
}

void tnet_run_free(tnet_run *run)
{
    if (run == NULL) {
        return;
    }
    const bool own = run->pid == getpid();
    for (uint32_t i = 0; own && i < TN_API_STREAMS; i++) {
        drop_stream(run, i);
    }
    if (own && run->owns_dir) {
        const tn_status status = tn_remove_tree(run->dir, NULL);
        (void)status; /* files that cannot be removed stay below $TMPDIR */
    }
    for (size_t i = 0; i < run->n_overrides; i++) {
        tn_free(run->override[i]);
    }
    tn_free(run->override);
    tn_free(run->config);
    tn_free(run->path);
    tn_spare_close(run->spare);
    tn_free(run);
}

void tnet_run_stop(tnet_run *run)
{
    if (run != NULL) {
        atomic_store(&run->stop, true);
    }
}

void tnet_run_checkpoint(tnet_run *run)
{
    if (run != NULL) {
        atomic_store(&run->saves, true);
    }
}

const char *tnet_run_dir(const tnet_run *run)
{
    return run != NULL ? run->dir : NULL;
}

int tnet_run_set(tnet_run *run, const char *override, tnet_error *err)
{
    tn_error why = {0};
    if (run == NULL || override == NULL) {
        return tn_api_refuse(err, TN_E_USAGE, "there is no run, or no option");
    }
    if (run->pid != getpid()) {
        return tn_api_refuse(err, TN_E_USAGE, forked);
    }
    return add_override(run, override, &why) == TN_OK ? TNET_OK : tn_api_fail(err, &why);
}

int tnet_run_data(tnet_run *run, int which, const tnet_stream *stream, tnet_error *err)
{
    tn_error why = {0};
    if (run == NULL || which < TNET_TRAIN || which > TNET_TEST) {
        return tn_api_refuse(err, TN_E_USAGE, "there is no run, or no data of that number");
    }
    if (run->pid != getpid()) {
        return tn_api_refuse(err, TN_E_USAGE, forked);
    }
    return take_stream(run, (uint32_t)which, stream, &why) == TN_OK ? TNET_OK
                                                                    : tn_api_fail(err, &why);
}
