/* main.c - from argv to a plan and to the exit code: command line, configuration, its files. */
#include "cli/main.h"

#include "base/core/alloc.h"
#include "base/core/log.h"
#include "base/core/text.h"
#include "base/math/sha256.h"
#include "cli/children.h"
#include "cli/exits.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "config/field.h"
#include "io/format/format.h"
#include "io/read/fileset.h"
#include "io/schema/dataopts.h"
#include "models/model.h"
#include "train/begin/warm_start.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/choices.h"
#include "train/config/config.h"
#include "train/config/days.h"
#include "train/config/loss.h"
#include "train/peers/peers.h"
#include "train/run/day_plan.h"

#include <string.h>
#include <unistd.h>

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
    "cluster.wait",
    "cluster.start_timeout",
    "cluster.on_loss",
    "data.days",
    "data.valid_rows",
    "data.done",
    "data.wait",
    NULL,
};

static void resolve_text(tn_setup *s)
{
    tn_text text = {0};
    tn_print_opts print = {.without = not_hashed};
    tn_fields_print(&text, tn_run_fields, s->tree, &print);
    char *config = TN_NEW_ARRAY(s->arena, char, text.size + 1);
    memcpy(config, tn_text_str(&text), text.size);
    uint8_t digest[32];
    char *hash = TN_NEW_ARRAY(s->arena, char, 65);
    tn_sha256 h;
    tn_sha256_init(&h);
    tn_sha256_add(&h, config, text.size);
    tn_sha256_end(&h, digest);
    tn_sha256_hex(digest, hash);
    s->text = (tn_run_text){.config = config, .hash = hash};
    tn_text_done(&text);
}

tn_status tn_setup_load(tn_setup *s, const tn_options *options, tn_error *err)
{
    static const tn_presets presets = {
        .format = tn_format_preset,
        .model = tn_model_preset,
        .list = tn_model_list_presets,
        .loss = tn_loss_defaults,
    };
    tn_config_in in = {
        .fields = tn_run_fields,
        .presets = &presets,
        .path = options->words.item[0],
        .env = (const char *const *)environ,
        .overrides = options->overrides.item,
        .n_overrides = options->overrides.n,
    };
    s->config = options->words.item[0];
    s->tree = tn_config_load(&in, s->arena, &s->diag);
    if (s->tree != NULL) {
        tn_run_bind(&s->binder, s->tree, &s->run);
    }
    TN_TRY(tn_diag_check(&s->diag, err));
    tn_terminal_log(options->verbosity, (tn_log_level)s->run.log.level);
    return TN_OK;
}

/* The configuration of the checkpoint that the run goes on from, or whose weights it begins with;
 * nothing: there is none. */
static void find_past(const tn_setup *s, const char *from, tn_text *out)
{
    const tn_checkpoint_opts *o = &s->run.checkpoint;
    tn_text dir = {0};
    tn_run_dir(&s->run.run, &dir);
    const bool own = strcmp(o->resume, "auto") == 0 || strcmp(o->resume, "must") == 0;
    if (from != NULL) {
        tn_checkpoint_config(from, out);
    } else if (strcmp(o->resume, "never") != 0) {
        if (!o->fresh) {
            tn_checkpoint_config(tn_text_str(&dir), out);
        }
        if (out->size == 0 && !own) {
            tn_checkpoint_config(o->resume, out);
        }
        if (out->size == 0) {
            tn_warm_start_slots(o->from, s->arena, out);
        }
    }
    tn_text_done(&dir);
}

tn_status tn_setup_choose(tn_setup *s, const char *from, tn_text *said, tn_error *err)
{
    tn_text past = {0};
    tn_cluster_opts *cluster = &s->run.cluster;
    const uint32_t size = cluster->size;
    if (!s->has_day) {
        tn_day_plan_any(&s->run, &s->binder);
    }
    cluster->size = s->peers > 0 ? s->peers : size;
    find_past(s, from, &past);
    tn_status status =
        tn_choices_make(&s->binder, tn_text_str(&past), &s->tree, &s->run, said, err);
    cluster->size = size;
    tn_text_done(&past);
    return status;
}

tn_status tn_setup_inputs(tn_setup *s, const tn_strs *more, tn_error *err)
{
    const tn_strs days = tn_days_all_paths(&s->run.data, s->arena);
    TN_TRY(tn_inputs_of(&s->inputs, s->tree, s->config, &s->run.data, err));
    TN_TRY(tn_fileset_inputs(&days, &s->inputs, err));
    return tn_fileset_inputs(more, &s->inputs, err);
}

/* Line by line. */
static void tell(const char *lines)
{
    while (*lines != '\0') {
        const size_t size = strcspn(lines, "\n");
        tn_log(TN_LOG_INFO, "%.*s", (int)size, lines);
        lines += size + (lines[size] != '\0');
    }
}

tn_status tn_setup_plan(tn_setup *s, const char *from, tn_error *err)
{
    tn_text said = {0};
    tn_status status = tn_setup_choose(s, from, &said, err);
    if (status == TN_OK) {
        resolve_text(s);
        status = tn_model_plan_new(&s->plan, &s->run, &s->binder, err);
    }
    const bool begins = from == NULL && strcmp(s->run.checkpoint.resume, "must") != 0;
    const bool tells = begins && s->peers == 0 && s->run.cluster.rank == 0;
    if (status == TN_OK && tells) {
        tell(tn_text_str(&said));
    }
    tn_text_done(&said);
    if (status != TN_OK) { /* nobody shall wait for this rank */
        const bool faults = s->diag.n_errors > 0;
        tn_peers_decline(&s->run, status, faults ? tn_text_str(&s->diag.text) : err->text);
    }
    return status;
}

/* ---- around the work ---- */

/* Prints what is wrong, once; the exit code. */
static int end(tn_setup *s, const char *program, tn_status status, const tn_error *err)
{
    tn_terminal_done();
    if (s->diag.n_errors > 0) {
        return tn_exit_diag(program, &s->diag);
    }
    if (status == TN_OK) {
        return s->exit_code;
    }
    /* Processes that share a terminal tell a failure once; elsewhere every log has a line. */
    return s->told_elsewhere && tn_spawn_is_child() ? tn_exit_code(err->code)
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
    tn_inputs_done(&s.inputs);
    tn_diag_done(&s.diag);
    tn_arena_free(s.arena);
    return code;
}

int tn_main_run(const tn_main *m, tn_argv args)
{
    tn_signals_start();
    tn_alloc_spare_address_space();
    tn_arena *arena = tn_arena_new(1 << 14);
    int code = tn_main_work(m, args, arena);
    tn_arena_free(arena);
    return tn_exit_done(m->program->name, code);
}
