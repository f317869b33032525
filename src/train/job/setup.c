/* setup.c - a configuration out of its layers and of the checkpoint, choices, meaning, plan. */
#include "train/job/setup.h"

#include "base/core/alloc.h"
#include "base/core/log.h"
#include "base/core/stop.h"
#include "base/file/file.h"
#include "base/math/sha256.h"
#include "config/field.h"
#include "io/format/format.h"
#include "io/read/fileset.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"
#include "models/model.h"
#include "train/begin/warm_start.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/ckptdir.h"
#include "train/config/choices.h"
#include "train/config/config.h"
#include "train/config/days.h"
#include "train/config/meaning.h"
#include "train/config/run_bind.h"
#include "train/config/run_loss.h"
#include "train/config/run_tasks.h"
#include "train/group/ranks.h"
#include "train/run/day_plan.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

/* ---- what a run reads: every node of a configuration knows its file ---- */

/* "command line" is no file, and is passed over. */
static tn_status add_source(tn_inputs *out, const char *source, const char **last, tn_error *err)
{
    if (source == NULL || (*last != NULL && strcmp(source, *last) == 0)) {
        return TN_OK;
    }
    *last = source;
    return tn_inputs_add(out, source, err);
}

static tn_status add_sources(tn_inputs *out, const tn_tree *tree, const char **last, tn_error *err)
{
    TN_TRY(add_source(out, tree->at.source, last, err));
    TN_TRY(add_source(out, tree->key_at.source, last, err));
    for (const tn_tree *t = tree->first; t != NULL; t = t->next) {
        TN_TRY(add_sources(out, t, last, err));
    }
    return TN_OK;
}

tn_status tn_inputs_of(tn_inputs *out, const tn_tree *tree, const char *config,
                       const tn_data_opts *data, tn_error *err)
{
    const char *last = NULL;
    TN_TRY(add_source(out, config, &last, err));
    TN_TRY(add_sources(out, tree, &last, err));
    TN_TRY(tn_fileset_inputs(&data->train, out, err));
    TN_TRY(tn_fileset_inputs(&data->valid, out, err));
    return tn_fileset_inputs(&data->test, out, err);
}

/* ---- the configuration ---- */

/* Options that do not make another run: folders, logs, places of files. */
static const char *const not_hashed[] = {
    "run.name",
    "run.dir",
    "log",
    "data.train",
    "data.valid",
    "data.test",
    "data.readers",
    "data.changed",
    "data.secrets",
    "train.threads",
    "train.prefetch",
    "checkpoint",
    "eval.predictions",
    "export",
    "compute.pin",
    "cluster.peers",
    "cluster.security",
    "cluster.start_timeout",
    "cluster.restarts",
    "data.days",
    "data.valid_rows",
    "data.done",
    "data.wait",
    "tune",
    NULL,
};

/* Sections that config.yaml of a checkpoint has as a whole, and what each command says for itself:
 * not in run.yaml. */
static const char *const not_kept[] = {
    "run.dir",    "data.days", "slots",   "embedding", "model", "loss", "train",
    "checkpoint", "cluster",   "compute", "log",       "tune",  NULL,
};

/* A run of one label says nothing of tasks, as ever. */
static const char *print_text(const tn_setup *s, const char *const *without)
{
    tn_text text = {0};
    uint32_t n = 0;
    while (without[n] != NULL) {
        n++;
    }
    const char **all = TN_NEW_ARRAY(s->arena, const char *, n + 2);
    memcpy(all, without, n * sizeof *all);
    all[n] = tn_tree_is_null(s->run.tasks) ? "tasks" : NULL;
    const tn_print_opts print = {.without = all};
    tn_fields_print(&text, tn_run_fields, s->tree, &print);
    const char *copy = tn_tree_text(s->arena, tn_text_str(&text), text.size);
    tn_text_done(&text);
    return copy;
}

static void resolve_text(tn_setup *s)
{
    TN_ASSERT(s->tree != NULL);
    const char *config = print_text(s, not_hashed);
    char *hash = TN_NEW_ARRAY(s->arena, char, 65);
    tn_sha256_hex_of(config, strlen(config), hash);
    s->text = (tn_run_text){.config = config, .hash = hash, .places = print_text(s, not_kept)};
}

/* ---- what a command that only reads takes from the checkpoint ---- */

/* Replaces section.key of the configuration. */
static void put(tn_setup *s, const char *section, const char *key, const char *value)
{
    const tn_origin at = {.source = "checkpoint"};
    tn_tree *whole = tn_tree_copy(s->arena, s->tree);
    const tn_tree *old = tn_tree_get(s->tree, section);
    tn_tree *part = old != NULL && old->kind == TN_TREE_MAP
                        ? tn_tree_copy(s->arena, old)
                        : tn_tree_new(s->arena, TN_TREE_MAP, at);
    tn_tree_put(s->arena, part, key, tn_tree_scalar(s->arena, value, at));
    tn_tree_put(s->arena, whole, section, part);
    s->tree = whole;
}

/* Takes the configuration of a run or checkpoint: run.yaml, and config.yaml of the checkpoint on
 * top. `dir` gets the run directory. */
static tn_status find_config(tn_setup *s, const char *folder, tn_config_in *in,
                             char dir[TN_PATH_SIZE], tn_error *err)
{
    char places[TN_PATH_SIZE];
    tn_text config = {0};
    tn_checkpoint_config_path(folder, &config);
    in->top = tn_tree_text(s->arena, tn_text_str(&config), config.size);
    tn_text_done(&config);
    if (!tn_path_exists(in->top)) {
        return tn_fail(err, TN_E_CKPT,
                       "no checkpoint in the folder '%s'\nhint: give a configuration, or the "
                       "folder of a run or of a checkpoint",
                       folder);
    }
    TN_TRY(tn_checkpoint_run_dir(folder, dir, err));
    TN_TRY(tn_path_join(dir, TN_RUN_YAML, places, err));
    in->path = tn_path_exists(places) ? tn_tree_text(s->arena, places, strlen(places)) : NULL;
    s->from = s->from != NULL || strcmp(dir, folder) == 0 ? s->from : folder;
    s->config = in->top;
    return TN_OK;
}

/* Chooses the day of a run over days when nobody names one: the last learned one, or else the one
 * that was begun; the day after it, if there is nothing else to judge by. */
static void take_day(tn_setup *s, const tn_data_opts *data, const char *path)
{
    tn_learned_days learned = {0};
    if (data->days.n > 0 || data->train.n == 0 || !tn_days_is_pattern(data->train.item[0])) {
        return;
    }
    tn_checkpoint_days_at(path, &learned);
    if (learned.n > 0 || learned.day != 0) {
        char text[TN_DAY_TEXT];
        const bool next = data->valid.n == 0 || strcmp(data->valid.item[0], "next") == 0;
        const bool after = s->reads_next && next && data->test.n == 0;
        const uint32_t last = learned.n > 0 ? learned.range[learned.n - 1].last : learned.day;
        tn_day_text(last + after, text);
        put(s, "data", "days", text);
        s->found_day = true;
    }
}

static void take_past(tn_setup *s)
{
    tn_run run; /* as it is written, without checks */
    tn_diag unheard = {0};
    tn_text dir = {0};
    tn_text past = {0};
    const tn_binder lenient = {.arena = s->arena, .diag = &unheard};
    tn_fields_bind_some(&lenient, tn_run_fields, s->tree, &run);
    tn_run_dir(&run.run, &dir);
    const char *path = s->from != NULL ? s->from : tn_text_str(&dir);
    tn_checkpoint_config(path, &past);
    s->tree = tn_meaning_read_rules(&s->binder, s->tree, tn_text_str(&past));
    take_day(s, &run.data, path);
    tn_text_done(&past);
    tn_text_done(&dir);
    tn_diag_done(&unheard);
}

tn_status tn_setup_load(tn_setup *s, const tn_setup_in *from, tn_error *err)
{
    static const tn_presets presets = {
        .format = tn_format_preset,
        .model = tn_model_preset,
        .list = tn_model_list_presets,
        .loss = tn_loss_defaults,
        .spread = tn_tasks_spread,
    };
    tn_config_in in = {
        .fields = tn_run_fields,
        .presets = &presets,
        .path = from->path,
        .text = from->text,
        .env = from->env,
        .overrides = from->overrides.item,
        .n_overrides = from->overrides.n,
    };
    char dir[TN_PATH_SIZE] = "";
    s->config = in.path;
    if ((s->reads || s->opens) && in.text == NULL && tn_path_is_dir(in.path)) {
        TN_TRY(find_config(s, in.path, &in, dir, err));
    }
    s->tree = tn_config_load(&in, s->arena, &s->diag);
    TN_TRY(tn_alloc_check(err));
    if (s->tree != NULL && dir[0] != '\0') {
        put(s, "run", "dir", dir);
    }
    if (s->tree != NULL && s->reads) {
        take_past(s);
    }
    if (s->tree != NULL) {
        tn_run_bind(&s->binder, s->tree, &s->run);
    }
    return tn_diag_check(&s->diag, err);
}

tn_status tn_setup_check_hosts(const tn_setup *s, tn_error *err)
{
    TN_ASSERT(s->tree != NULL);
    return tn_fileset_check_hosts(&s->run.data, &(tn_strs){0}, !tn_group_built()->is_child(), err);
}

static bool is_there(const char *pattern)
{
    glob_t found;
    const int result = glob(pattern, GLOB_NOSORT, NULL, &found); // NOLINT(concurrency-mt-unsafe)
    globfree(&found);
    return result == 0;
}

void tn_setup_advise(const tn_setup *s, tn_error *err)
{
    const tn_strs *const lists[] = {&s->run.data.train, &s->run.data.valid, &s->run.data.test};
    const char *name = s->config != NULL ? strrchr(s->config, '/') : NULL;
    for (uint32_t i = 0; name != NULL && err->code == TN_E_DATA && i < 3; i++) {
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

/* Finds the checkpoint that is read, or continued: its path and its configuration; nothing: there
 * is none. */
static void find_past(const tn_setup *s, tn_text *path, tn_text *config)
{
    const tn_checkpoint_opts *o = &s->run.checkpoint;
    const bool own = strcmp(o->resume, "auto") == 0 || strcmp(o->resume, "must") == 0;
    if (s->from != NULL) {
        tn_text_adds(path, s->from);
        tn_checkpoint_config(s->from, config);
        return;
    }
    if (strcmp(o->resume, "never") != 0 && !o->fresh) {
        tn_run_dir(&s->run.run, path);
        tn_checkpoint_config(tn_text_str(path), config);
    }
    if (strcmp(o->resume, "never") != 0 && config->size == 0 && !own) {
        tn_text_clear(path);
        tn_text_adds(path, o->resume);
        tn_checkpoint_config(o->resume, config);
    }
}

/* Returns the checkpoint whose weights a new run begins with; NULL: there is none. */
static const tn_tree *first_weights(const tn_setup *s)
{
    const tn_checkpoint_opts *o = &s->run.checkpoint;
    const bool begins = s->from == NULL && strcmp(o->resume, "never") != 0;
    return begins && !tn_tree_is_null(o->from) ? o->from : NULL;
}

tn_status tn_setup_choose(tn_setup *s, tn_text *said, tn_error *err)
{
    tn_text path = {0};
    tn_text past = {0};
    tn_cluster_opts *cluster = &s->run.cluster;
    const uint32_t size = cluster->size;
    uint32_t base = 0;
    if (!s->has_day) {
        tn_day_plan_any(&s->run, &s->binder);
    }
    cluster->size = s->peers > 0 ? s->peers : size;
    find_past(s, &path, &past);
    if (s->run.data.index_base == TN_AUTO &&
        tn_meaning_index_base(&s->binder, tn_text_str(&past), &base)) {
        s->run.data.index_base = base;
        put(s, "data", "index_base", base == 0 ? "0" : "1");
    }
    if (past.size == 0) {
        tn_warm_start_slots(first_weights(s), s->arena, &past);
    }
    tn_status status =
        tn_choices_make(&s->binder, tn_text_str(&past), &s->tree, &s->run, said, err);
    cluster->size = size;
    tn_text_done(&path);
    tn_text_done(&past);
    return status;
}

/* Compares what rows mean with the checkpoint. *begins: there is none to go on from, or to read. */
static tn_status check_meaning(const tn_setup *s, bool *begins, tn_error *err)
{
    tn_text path = {0};
    tn_text past = {0};
    char hint[TN_PATH_SIZE + 100];
    tn_meaning m = {.b = &s->binder, .run = &s->run, .reads = s->reads, .hint = hint};
    find_past(s, &path, &past);
    *begins = past.size == 0;
    (void)snprintf(hint, sizeof hint,
                   s->reads ? "'%s' in place of the configuration has all of this from there"
                            : "--fresh begins anew, run.name=.. elsewhere",
                   tn_text_str(&path));
    const tn_tree *from = past.size == 0 ? first_weights(s) : NULL;
    if (from != NULL) {
        const tn_tree *other = from->kind == TN_TREE_SCALAR ? from : tn_tree_get(from, "path");
        tn_text_clear(&path);
        if (other != NULL && other->kind == TN_TREE_SCALAR) {
            tn_text_adds(&path, other->text);
            tn_checkpoint_config(other->text, &past);
        }
        m.from = from;
        m.hint = "checkpoint.from.rows leaves a slot out, checkpoint.from.dense the net";
    }
    m.past = tn_text_str(&past);
    m.path = tn_text_str(&path);
    const tn_status status = s->alone ? TN_OK : tn_meaning_check(&m, err);
    tn_text_done(&path);
    tn_text_done(&past);
    return status;
}

tn_status tn_setup_inputs(tn_setup *s, const tn_strs *more, tn_error *err)
{
    const tn_strs days = tn_days_globs(&s->run.data.pattern, s->arena);
    TN_TRY(tn_inputs_of(&s->inputs, s->tree, s->config, &s->run.data, err));
    TN_TRY(tn_fileset_inputs(&days, &s->inputs, err));
    return tn_fileset_inputs(more, &s->inputs, err);
}

/* Logs text line by line. */
static void log_lines(const char *lines)
{
    while (*lines != '\0') {
        const size_t size = strcspn(lines, "\n");
        tn_log(TN_LOG_INFO, "%.*s", (int)size, lines);
        lines += size + (lines[size] != '\0');
    }
}

tn_status tn_setup_plan(tn_setup *s, tn_error *err)
{
    TN_ASSERT(s->tree != NULL);
    tn_text said = {0};
    bool begins = false;
    tn_status status = tn_setup_choose(s, &said, err);
    if (status == TN_OK) {
        resolve_text(s);
        status = tn_model_plan_new(&s->plan, &s->run, &s->binder, err);
    }
    if (status == TN_OK) {
        status = check_meaning(s, &begins, err);
        /* All ranks find the same, unless rank 0 is stopped before it looks. */
        s->told_elsewhere = status != TN_OK && s->run.cluster.rank > 0 && !tn_stop_is(NULL);
    }
    if (status == TN_OK && begins && s->run.data.index_base == TN_AUTO) { /* it is found by now */
        put(s, "data", "index_base", s->plan->schema->index_base == 0 ? "0" : "1");
        resolve_text(s);
    }
    const bool learns = s->from == NULL && strcmp(s->run.checkpoint.resume, "must") != 0;
    const bool tells = learns && s->peers == 0 && s->run.cluster.rank == 0;
    if (status == TN_OK && tells) {
        log_lines(tn_text_str(&said));
    }
    tn_text_done(&said);
    if (status != TN_OK) { /* nobody shall wait for this rank */
        const bool faults = s->diag.n_errors > 0;
        tn_group_built()->decline(&s->run, status, faults ? tn_text_str(&s->diag.text) : err->text);
    }
    return status;
}

void tn_setup_done(tn_setup *s)
{
    tn_inputs_done(&s->inputs);
    tn_diag_done(&s->diag);
}
