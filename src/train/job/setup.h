/* setup.h - from a configuration to a plan: what every command does before its work.
 *
 *     tn_setup s = {.arena = arena};
 *     s.binder = (tn_binder){.arena = arena, .diag = &s.diag};
 *     TN_TRY(tn_setup_load(&s, &in, err));       layers of the configuration, bound and checked
 *     .. s.run may be changed ..
 *     TN_TRY(tn_setup_plan(&s, err));            schema, layers, layout, rules
 *     .. s.plan, s.text ..
 *     tn_setup_done(&s);
 *
 * Faults of the configuration are collected in s.diag, all of them at once; the functions return
 * TN_E_CONFIG then, and whoever calls them reports s.diag. All that is made lives in the arena.
 * One thread. Nothing here prints or changes the process; what is chosen for the user is logged
 * (base/core/log.h).
 */
#pragma once

#include "base/file/output_file.h"
#include "config/diag.h"
#include "config/tree.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"

/* The sources of a configuration. */
typedef struct tn_setup_in {
    const char *path; /* a file; of a setup that reads also the folder of a run or checkpoint */
    const char *text; /* the YAML of that file, which is not read then; NULL: it is */
    const char *const *env; /* "TNET_SECTION__KEY=value" among others; NULL-terminated, or NULL */
    tn_strs overrides;      /* "section.key=value" */
} tn_setup_in;

typedef struct tn_setup {
    tn_arena *arena;
    tn_diag diag; /* warnings, too */
    tn_binder binder;
    const tn_tree *tree;
    tn_run run;
    const char *config; /* the file's name; NULL: not loaded */
    tn_inputs inputs;   /* files that the run reads; see tn_setup_inputs */
    const tn_model_plan *plan;
    tn_run_text text; /* the resolved configuration without folders, logs and paths */

    /* A caller that only reads a checkpoint sets these three before tn_setup_load. */
    bool reads;
    bool opens;       /* in->path is the folder of a run, also where the run is to go on */
    bool reads_next;  /* judges a run over days by the day after the last learned one */
    const char *from; /* a checkpoint or run directory; NULL: what checkpoint.resume says */

    bool found_day; /* set by tn_setup_load: data.days is what the checkpoint makes of it */

    /* The caller sets these before tn_setup_plan. */
    bool alone;     /* it looks at the configuration, and at no checkpoint */
    bool has_day;   /* run.data.train has the files of the day that is learned first */
    uint32_t peers; /* processes that it starts, which log themselves what they choose; 0: none */

    int exit_code; /* after a success: that of child processes, or 4 for data with bad records */
    bool told_elsewhere; /* another process of the group has failed, and reports it itself */
} tn_setup;

/* Loads and binds the configuration. Where s->reads, in->path may be a folder of a run or of a
 * checkpoint, whose configuration is taken; rules of training, and a day that nobody names, are
 * the checkpoint's. TN_E_CONFIG: see s->diag. TN_E_CKPT: the folder has no checkpoint. */
tn_status tn_setup_load(tn_setup *s, const tn_setup_in *from, tn_error *err) TN_MUST_USE;

/* Refuses, or warns of, what a loaded setup names and nobody should send secrets to: hosts of
 * data. TN_E_CONFIG. */
tn_status tn_setup_check_hosts(const tn_setup *s, tn_error *err) TN_MUST_USE;

/* Adds a hint to a failure of the data, where a file that is missing lies beside the configuration.
 */
void tn_setup_advise(const tn_setup *s, tn_error *err);

/* Makes the choices that are left to the data (train/config/choices.h); `said` gets a line for each
 * of them. */
tn_status tn_setup_choose(tn_setup *s, tn_text *said, tn_error *err) TN_MUST_USE;

/* Chooses, makes s->plan and s->text, and logs the choices. TN_E_CONFIG, too: rows mean something
 * else to the checkpoint (train/config/meaning.h). After a failure the other ranks do not wait. */
tn_status tn_setup_plan(tn_setup *s, tn_error *err) TN_MUST_USE;

/* Fills s->inputs: files of the configuration, its data, and `more`. */
tn_status tn_setup_inputs(tn_setup *s, const tn_strs *more, tn_error *err) TN_MUST_USE;

/* Frees what is not in the arena. */
void tn_setup_done(tn_setup *s);

/* Adds the files that a program reads, so that no output replaces one: the file of the
 * configuration (NULL: none), the files that `tree` came from, and the data of training, validation
 * and test. */
tn_status tn_inputs_of(tn_inputs *out, const tn_tree *tree, const char *config,
                       const tn_data_opts *data, tn_error *err) TN_MUST_USE;
