/* first_warnings.c - looks at the configuration and at what the data have shown. */
#include "train/run/first_warnings.h"

#include "models/layerlist.h"
#include "train/config/run.h"
#include "train/report/report.h"
#include "train/step/model_plan.h"

#include <stdio.h>

tn_status tn_warn_first(const tn_model_plan *plan, const char *trained, tn_report *report,
                        const tn_run_state *state, tn_error *err)
{
    const tn_run *run = plan->run;
    const bool again = run->train.epochs > 1 && run->embedding.reset != TN_RESET_EPOCH;
    if (again && tn_layout_has_counts(plan->layout)) { /* which hold the labels */
        TN_TRY(tn_report_event(report, state, "warn",
                               "clicks that a net reads (cvm) hold the labels of rows that a "
                               "second epoch sees again, which it learns by heart; train.epochs=1 "
                               "or embedding.reset: epoch would help",
                               err));
    }
    if (trained[0] != '\0') {
        char line[1500];
        (void)snprintf(line, sizeof line,
                       "data.valid: %s; rows that are trained on tell nothing of others: no early "
                       "stop and no calibration depends on them",
                       trained);
        TN_TRY(tn_report_event(report, state, "warn", line, err));
    }
    return run->data.ordered
               ? tn_report_event(report, state, "warn",
                                 "the labels of data.train come in order, and a model forgets what "
                                 "it has learned first: mix the files, or let data.shuffle hold "
                                 "all rows",
                                 err)
               : TN_OK;
}
