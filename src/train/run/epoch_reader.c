/* epoch_reader.c - opens the reader of an epoch, and finds where the schedule of a run ends. */
#include "train/run/epoch_reader.h"

#include "io/read/row_scan.h"
#include "ps/optim/optim.h"
#include "ps/optim/schedule.h"
#include "train/checkpoint/run_state.h"
#include "train/config/run.h"
#include "train/group/ranks.h"
#include "train/step/model_plan.h"
#include "train/step/step_prefetch.h"
#include "train/step/worker.h"

#include <math.h>
#include <string.h>

uint32_t tn_epoch_cut_for(const tn_worker *w, uint32_t epoch, const tn_epoch_position *stand)
{
    if (stand != NULL && stand->n_parts > 0 && stand->epoch == epoch) {
        return stand->cut_for;
    }
    return w->plan->owners.n_peers;
}

static tn_reader_opts reader_opts(const tn_worker *w, const tn_progress *from, uint32_t cut_for,
                                  const tn_dealer *dealer)
{
    const tn_run *run = w->plan->run;
    return (tn_reader_opts){
        .paths = w->train,
        .batch_rows = run->train.batch,
        .training = true,
        .seed = run->run.seed,
        .from = *from,
        .dealer = dealer,
        .cut_for = cut_for,
        .share = w->rank,
        .shares = w->plan->owners.n_peers,
        .prefetch = run->train.prefetch,
        .trace = w->trace,
    };
}

/* From `from` on, the worker's own parts; or those that `dealer`, which may be NULL, deals. */
static tn_status open_feeder(tn_step_prefetch **out, const tn_worker *w, const tn_progress *from,
                             uint32_t cut_for, const tn_dealer *dealer, tn_error *err)
{
    const tn_run *run = w->plan->run;
    const tn_reader_opts reader = reader_opts(w, from, cut_for, dealer);
    const tn_step_prefetch_opts opts = {
        .plan = w->plan, .team = w->team, .ahead = run->train.prefetch, .training = true};
    return tn_step_prefetch_open(out, &opts, &reader, err);
}

/* Finds the place; ranks that go on from the same position find the same. */
static tn_status find_place(const tn_worker *w, const tn_epoch_parts *map,
                            const tn_epoch_position *stand, tn_progress *from,
                            tn_epoch_dealer *dealer, tn_error *err)
{
    const tn_epoch_dealt left = {.epoch = from->epoch,
                                 .rank = w->rank,
                                 .ranks = w->plan->owners.n_peers,
                                 .map = map,
                                 .stand = stand};
    TN_ASSERT(stand->n_parts > 0 && left.rank < left.ranks);
    bool plain = left.ranks == 1 && !stand->shared;
    return plain ? tn_epoch_parts_find(map, stand, from, err)
                 : tn_group_built()->deal(dealer, &left, err);
}

void tn_epoch_dealer_close(tn_epoch_dealer *d)
{
    if (d->ops != NULL) {
        d->ops->close(d->self);
    }
    *d = (tn_epoch_dealer){0};
}

tn_status tn_epoch_reader_open_dealt(tn_step_prefetch **out, const tn_worker *w, uint32_t epoch,
                                     uint32_t cut_for, const tn_dealer *dealer, tn_error *err)
{
    TN_ASSERT(dealer != NULL && dealer->next != NULL);
    return open_feeder(out, w, &(tn_progress){.epoch = epoch}, cut_for, dealer, err);
}

tn_status tn_epoch_reader_prior(const tn_worker *w, uint32_t epoch, tn_prior *out, tn_error *err)
{
    tn_reader *reader = NULL;
    const tn_reader_opts opts =
        reader_opts(w, &(tn_progress){.epoch = epoch}, tn_epoch_cut_for(w, epoch, NULL), NULL);
    TN_TRY(tn_reader_open(&reader, w->plan->schema, &opts, err));
    tn_status status = tn_reader_prior(reader, out, err);
    tn_reader_close(reader);
    return status;
}

/* Whether to learn from other data than the checkpoint's, at the cost of the place in them. */
static bool accepts(const tn_worker *w)
{
    return w->plan->run->data.changed == TN_CHANGED_ACCEPT;
}

tn_status tn_epoch_reader_open(tn_step_prefetch **out, const tn_worker *w, tn_progress *from,
                               tn_epoch_position *stand, tn_epoch_dealer *dealer, tn_error *err)
{
    TN_ASSERT(dealer->ops == NULL);
    *dealer = (tn_epoch_dealer){0};
    const uint32_t cut_for = tn_epoch_cut_for(w, from->epoch, stand);
    TN_TRY(open_feeder(out, w, from, cut_for, NULL, err));
    if (stand->n_parts == 0 || stand->epoch != from->epoch) {
        return TN_OK;
    }
    tn_arena *arena = tn_arena_new(1 << 14);
    const tn_epoch_parts *map = tn_epoch_parts_of(tn_step_prefetch_reader(*out), NULL, arena);
    tn_step_prefetch_close(*out);
    *out = NULL;
    tn_status status = find_place(w, map, stand, from, dealer, err);
    tn_arena_free(arena);
    if (status != TN_E_DATA || !accepts(w)) { /* else the epoch begins anew, on every rank */
        TN_TRY(status);
    }
    tn_epoch_position_done(stand);
    const tn_dealer *deals = dealer->ops != NULL ? dealer->ops->dealer(dealer->self) : NULL;
    status = open_feeder(out, w, from, cut_for, deals, err);
    if (status != TN_OK) {
        tn_epoch_dealer_close(dealer);
    }
    return status;
}

double tn_learning_rate_factor(const tn_run *run, uint64_t step, uint64_t end)
{
    const tn_rule_opts *dense = run->train.optimizer.opts;
    const uint64_t planned = run->train.max_steps != TN_UNSET_U64 ? run->train.max_steps : end;
    return tn_schedule_factor(&dense->schedule, step, planned);
}

static tn_status steps_of_epoch(const tn_model_plan *plan, double *out, tn_error *err)
{
    const tn_run *run = plan->run;
    const tn_rule_opts *dense = run->train.optimizer.opts;
    /* At staleness 0 a step takes a batch of every rank, above it of one. */
    const uint32_t joint = run->cluster.staleness > 0 ? 1 : plan->owners.n_peers;
    double rows = 0;
    TN_TRY(tn_row_scan_estimate(&run->data.train, plan->schema, TN_ROW_SCAN_ESTIMATE_BLOCKS, &rows,
                                err));
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

tn_status tn_run_end(const tn_model_plan *plan, uint32_t epoch, uint64_t epoch_step, uint64_t *out,
                     tn_error *err)
{
    const double epochs = plan->run->train.epochs;
    double steps = 0; /* in one epoch */
    if (epoch > 0 && epoch_step > 0) {
        steps = ceil((double)epoch_step * epochs / epoch);
    } else {
        TN_TRY(steps_of_epoch(plan, &steps, err));
        steps *= epochs;
    }
    *out = steps > 1 ? (uint64_t)steps : 1;
    return TN_OK;
}
