/* run_loss.h - the loss of a run (nn/loss/loss.h), for those who read its configuration or say how
 * well it does. */
#pragma once

#include "train/config/run.h"

typedef struct tn_metrics tn_metrics; /* metrics/metrics.h */

/* Returns the target of a configuration of which other sections are read alone; a loss that does
 * not exist is taken for the default. */
tn_target tn_loss_target(const tn_tree *root);
/* Returns what a loss has in place of common defaults, as YAML, for tn_presets; NULL: nothing. */
const char *tn_loss_defaults(const char *name);
/* Returns the name of the first loss of the list that has this target. */
const char *tn_loss_for(tn_target target);

/* Returns the loss of the rows in `m`; NAN if no metric has it. */
double tn_run_loss_value(const tn_run *run, const tn_metrics *m);
