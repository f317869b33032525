/* run_inputs.h - the files that a program reads, so that none of its outputs replaces one.
 *
 *     tn_inputs inputs = {0};
 *     TN_TRY(tn_inputs_of(&inputs, tree, "a.yaml", &run.data, err));
 *     TN_TRY(tn_output_try(flags.report, &inputs, err));
 *     ..
 *     tn_inputs_done(&inputs);
 */
#ifndef TN_CLI_RUN_INPUTS_H
#define TN_CLI_RUN_INPUTS_H

#include "base/file/output_file.h"
#include "config/tree.h"
#include "io/schema/dataopts.h"

/* Adds the file of the configuration (NULL: none), the files that `tree` came from, and the data of
 * training, validation and test. */
tn_status tn_inputs_of(tn_inputs *out, const tn_tree *tree, const char *config,
                       const tn_data_opts *data, tn_error *err) TN_MUST_USE;

#endif
