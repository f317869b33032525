/* trainfeed.c - see trainfeed.h. */
#include "train/trainfeed.h"

tn_status tn_training_feeder(tn_feeder **out, const tn_worker *w, const tn_progress *from,
                             const tn_dealer *dealer, tn_error *err)
{
    const tn_run *run = w->plan->run;
    const tn_reader_opts reader = {
        .paths = run->data.train,
        .batch_rows = run->train.batch,
        .training = true,
        .seed = run->run.seed,
        .from = *from,
        .dealer = dealer,
        .share = w->rank,
        .shares = w->plan->owners.n_peers,
        .prefetch = run->train.prefetch,
        .trace = w->trace,
        .use_cache = true,
    };
    const tn_feeder_opts opts = {
        .plan = w->plan, .team = w->team, .ahead = run->train.prefetch, .training = true};
    return tn_feeder_open(out, &opts, &reader, err);
}
