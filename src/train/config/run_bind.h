/* run_bind.h - from the tree of a configuration to the options of a run, with the checks that need
 * more than one option. Pure; any thread. */
#pragma once

#include "train/config/run.h"

typedef struct tn_metric tn_metric; /* metrics/metrics.h */

/* Binds `tree` (the merged configuration) and reports to b->diag, all at once and each at its
 * place: faults of single options, contradictions, and options that this build cannot honour.
 * Whoever adds an option adds its checks to run_bind.c. */
void tn_run_bind(const tn_binder *b, const tn_tree *tree, tn_run *out);

/* Returns the first metric that is shown or watched and looks at groups of rows; NULL: none. */
const char *tn_run_grouped_metric(const tn_run *run);

/* Reports to b->diag, at the option `path`, why a model of the run cannot be watched by `monitor`,
 * "valid.auc" or "valid.buy.auc". Returns its metric; NULL: there is none, or `monitor` is NULL. */
const tn_metric *tn_run_check_monitor(const tn_binder *b, const tn_tree *tree, const tn_run *run,
                                      const char *path, const char *monitor);
