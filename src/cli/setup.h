/* setup.h - what programs with a configuration share: from argv to a plan.
 *
 *     tn_setup s;
 *     tn_setup_begin(&s, options.verbosity);
 *     TN_TRY(tn_setup_load(&s, &options, err));      the configuration, checked
 *     TN_TRY(tn_setup_plan(&s, err));                schema, layers, layout, rules
 *     ... s.plan, s.text ...
 *     tn_setup_done(&s);                             also after a failure
 */
#ifndef TN_CLI_SETUP_H
#define TN_CLI_SETUP_H

#include "base/file/output_file.h"
#include "cli/options.h"
#include "config/tree.h"
#include "io/schema/dataopts.h"
#include "train/run/trainer.h"
#include "train/step/model_plan.h"

typedef struct tn_setup {
    tn_arena *arena;
    tn_diag diag; /* warnings too; tn_setup_exit prints it */
    tn_binder binder;
    const tn_tree *tree;
    tn_run run;
    const char *config; /* the file's name; NULL: not loaded */
    tn_inputs inputs;   /* what the run reads; see tn_setup_inputs */
    const tn_model_plan *plan;
    tn_run_text text;    /* the resolved configuration without folders, logs and paths */
    int exit_code;       /* of child processes, which have reported their failures themselves */
    bool told_elsewhere; /* another process of the group has failed, and reports it itself */
} tn_setup;

/* Empty, so that the three below may be called; libraries log to the terminal from now on. */
void tn_setup_begin(tn_setup *s, int verbosity);
/* The configuration named by the first word, changed by environment and key=value. */
tn_status tn_setup_load(tn_setup *s, const tn_options *options, tn_error *err) TN_MUST_USE;
tn_status tn_setup_plan(tn_setup *s, tn_error *err) TN_MUST_USE;
/* Fills s->inputs, with data that the configuration does not name. */
tn_status tn_setup_inputs(tn_setup *s, const tn_strs *more, tn_error *err) TN_MUST_USE;
void tn_setup_done(tn_setup *s);

/* Ends a program: faults of the configuration, or the failure, once; the exit code, which after a
 * success is s->exit_code. */
int tn_setup_exit(tn_setup *s, const char *program, tn_status status, const tn_error *err);

/* Adds the files that a program reads, so that no output replaces one: the file of the
 * configuration (NULL: none), the files that `tree` came from, and the data of training, validation
 * and test. */
tn_status tn_inputs_of(tn_inputs *out, const tn_tree *tree, const char *config,
                       const tn_data_opts *data, tn_error *err) TN_MUST_USE;

#endif
