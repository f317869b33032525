/* run_length.c - see run_length.h. */
#include "train/step/run_length.h"

#include "io/read/row_estimate.h"

#include <math.h>

static tn_status steps_of_epoch(const tn_blueprint *plan, double *out, tn_error *err)
{
    const tn_run *run = plan->run;
    const tn_rule_opts *dense = run->train.optimizer.opts;
    /* At staleness 0 a step takes a batch of every rank, above it of one. */
    const uint32_t joint = run->cluster.staleness > 0 ? 1 : plan->owners.n_peers;
    double rows = 0;
    TN_TRY(tn_row_count(&run->data.train, plan->schema, TN_ROWCOUNT_BLOCKS, &rows, err));
    if (rows < 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "schedule '%s' ends with the run, and how long data.train is nobody knows: "
                       "it comes by a pipe\nhint: set train.optimizer.schedule.steps or "
                       "train.max_steps",
                       dense->schedule.choice->name);
    }
    *out = ceil(rows / ((double)run->train.batch * joint));
    return TN_OK;
}

tn_status tn_run_end(const tn_blueprint *plan, uint32_t epoch, uint64_t epoch_step, uint64_t *out,
                     tn_error *err)
{
    const double epochs = plan->run->train.epochs;
    double steps = 0; /* of an epoch */
    if (epoch > 0 && epoch_step > 0) {
        steps = ceil((double)epoch_step * epochs / epoch);
    } else {
        TN_TRY(steps_of_epoch(plan, &steps, err));
        steps *= epochs;
    }
    *out = steps > 1 ? (uint64_t)steps : 1;
    return TN_OK;
}
