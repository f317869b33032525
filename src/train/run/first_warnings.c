/* first_warnings.c - says before the first step what the configuration and the data have shown. */
#include "train/run/module.h"

#include "models/layerlist.h"

#include <stdio.h>

static tn_status warn_first(void *self, tn_run_now *now, tn_error *err)
{
    (void)self;
    const tn_run *run = now->run;
    const bool again = run->train.epochs > 1 && run->embedding.reset != TN_RESET_EPOCH;
    if (again && tn_layout_has_counts(now->plan->layout)) { /* counts hold the labels */
        TN_TRY(tn_run_say(now, "warn",
                          "clicks that a net reads (cvm) hold the labels of rows that a second "
                          "epoch sees again, which it learns by heart; train.epochs=1 or "
                          "embedding.reset: epoch would help",
                          err));
    }
    if (now->trained[0] != '\0') {
        char line[1500];
        (void)snprintf(line, sizeof line,
                       "data.valid: %s; rows that are trained on tell nothing of others: no early "
                       "stop and no calibration depends on them",
                       now->trained);
        TN_TRY(tn_run_say(now, "warn", line, err));
    }
    return run->data.ordered
               ? tn_run_say(now, "warn",
                            "the labels of data.train come in order, and a model forgets what it "
                            "has learned first: mix the files, or let data.shuffle hold all rows",
                            err)
               : TN_OK;
}

extern const tn_module tn_module_first_warnings;
const tn_module tn_module_first_warnings = {.name = "first_warnings",
                                            .at = {[TN_AT_BEGIN] = warn_first}};
