/* group_epoch.c - an epoch that several ranks share, on rank 0: it has the others train, wait and
 * report how far they are, and deals parts to those that ask for them. */
#include "cluster/train/leader.h"

#include "base/core/arena.h"
#include "base/core/clock.h"
#include "cluster/group/group.h"
#include "cluster/train/heartbeat_stats.h"
#include "cluster/train/part_dealer.h"
#include "cluster/train/peers.h"
#include "io/read/bad_record_limit.h"
#include "metrics/metrics.h"
#include "train/checkpoint/run_state.h"
#include "train/config/run.h"
#include "train/run/epoch.h"
#include "train/step/model_plan.h"
#include "train/step/step_loop.h"
#include "train/step/step_prefetch.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

/* Rank 0's own dealer of the epoch; NULL: there is none. */
static tn_part_dealer *dealer_of(const tn_epoch *e)
{
    return e->dealer.self;
}

/* ---- its data ---- */

static tn_status open_dealt(tn_epoch *e, uint32_t epoch, uint32_t cut_for, tn_error *err)
{
    const tn_dealer *dealer = tn_part_dealer_dealer(dealer_of(e));
    return tn_epoch_reader_open_dealt(&e->data, e->w, epoch, cut_for, dealer, err);
}

/* Opens the ledger of all ranks, and a reader that asks it. */
static tn_status deal_on_request(tn_epoch *e, tn_error *err)
{
    const uint32_t epoch = e->state->progress.epoch;
    tn_epoch_position *stand = &e->state->stand;
    const bool goes_on = stand->n_parts > 0 && stand->epoch == epoch;
    const tn_part_dealer_opts opts = {.epoch = epoch,
                                      .ranks = e->w->plan->owners.n_peers,
                                      .rank = e->w->rank,
                                      .mode = TN_LEDGER_ON_REQUEST,
                                      .stand = goes_on ? stand : NULL};
    tn_part_dealer *dealer = NULL;
    TN_TRY(tn_part_dealer_open(&dealer, &opts, err));
    e->dealer = tn_part_dealer_of_epoch(dealer);
    const tn_status status = open_dealt(e, epoch, tn_epoch_cut_for(e->w, epoch, stand), err);
    if (status != TN_OK) {
        tn_epoch_dealer_close(&e->dealer);
    }
    if (status == TN_E_DATA && goes_on && e->run->data.changed == TN_CHANGED_ACCEPT) {
        tn_epoch_position_done(stand); /* the epoch begins anew, with other data */
        return deal_on_request(e, err);
    }
    TN_TRY(status);
    if (goes_on) {
        tn_epoch_position_done(stand);
    }
    tn_leader_deal(e->ranks.self, dealer);
    return TN_OK;
}

static tn_status open_data(tn_epoch *e, tn_error *err)
{
    tn_run_state *s = e->state;
    return e->is_async
               ? deal_on_request(e, err)
               : tn_epoch_reader_open(&e->data, e->w, &s->progress, &s->stand, &e->dealer, err);
}

static void close_data(tn_epoch *e)
{
    tn_leader_deal(e->ranks.self, NULL);
}

/* ---- its steps ---- */

static tn_status prior(tn_epoch *e, tn_prior *out, tn_error *err)
{
    tn_leader *lead = e->ranks.self;
    const uint32_t epoch = e->state->progress.epoch;
    TN_TRY(tn_leader_prior(lead, epoch, err));
    const tn_status status = e->is_async
                                 ? tn_epoch_reader_prior(e->w, epoch, out, err)
                                 : tn_reader_prior(tn_step_prefetch_reader(e->data), out, err);
    return status == TN_OK || status == TN_END ? tn_leader_add_priors(lead, epoch, out, err)
                                               : status;
}

static tn_status start(tn_epoch *e, bool at_first, tn_error *err)
{
    const tn_leader_begin how = {.epoch = e->state->progress.epoch,
                                 .is_fresh = at_first && tn_epoch_is_fresh(e),
                                 .lr_scale = e->state->kept.patience.lr_scale,
                                 .end = e->schedule_end};
    return tn_leader_start(e->ranks.self, &how, err);
}

static void note(tn_epoch *e, const tn_step_turn *turn)
{
    tn_run_state *s = e->state;
    tn_heartbeat_stats *beats = tn_leader_beats(e->ranks.self);
    const bool learned = turn->step != NULL || !e->is_async; /* else this rank had no data */
    if (learned) {
        s->samples += turn->rows;
        s->steps = e->w->steps;
    }
    tn_heartbeat_stats_step(beats, e->w, turn, s->progress.records);
    if (!learned) {
        tn_heartbeat_stats_state(beats, TN_PEER_WAITING);
    }
}

static bool hear(tn_epoch *e)
{
    tn_leader *lead = e->ranks.self;
    tn_group *group = tn_peers_group(tn_leader_peers(lead));
    e->is_stopped = tn_group_is_asked(group, TN_ASKS_STOP) || e->is_stopped;
    e->is_full = tn_group_is_asked(group, TN_ASKS_ROOM) || e->is_full;
    if (e->watch->save != NULL && tn_group_is_asked(group, TN_ASKS_SAVE)) {
        atomic_store(e->watch->save, true);
    }
    return tn_leader_gives_back(lead, false);
}

static tn_status give_back(tn_epoch *e, bool *given, tn_error *err)
{
    *given = e->is_async && tn_leader_gives_back(e->ranks.self, true);
    if (!*given) {
        return TN_OK;
    }
    tn_part_dealer *dealer = dealer_of(e);
    tn_reader *reader = tn_step_prefetch_reader(e->data);
    tn_step_loop_free(e->steps);
    e->steps = NULL;
    tn_reader_quit(reader); /* so that no part is over between these two */
    tn_met_add_reader(&e->met, reader, tn_part_dealer_ended(dealer));
    tn_step_prefetch_close(e->data);
    e->data = NULL;
    e->returned += tn_part_dealer_records(dealer);
    tn_part_dealer_give_back(dealer, tn_clock_ns());
    TN_TRY(open_dealt(e, e->state->progress.epoch, e->state->data->cut_for, err));
    return tn_step_loop_new(&e->steps, e->w, e->data, err);
}

/* ---- how far all are ---- */

/* In an epoch that others have begun all ranks deal themselves what was left. */
static tn_status follow_others(const tn_epoch *e, const tn_progress *progress, tn_error *err)
{
    for (uint32_t r = 1; r < e->w->plan->owners.n_peers; r++) {
        TN_TRY(tn_part_dealer_follow(dealer_of(e), r, &progress[r], tn_clock_ns(), err));
    }
    return TN_OK;
}

/* Lists the parts as ranks at progress[rank] read them; false before they have. */
static bool list_parts(tn_epoch *e, const tn_progress *progress)
{
    tn_run_state *s = e->state;
    tn_arena_free(e->parts);
    e->parts = tn_arena_new(1 << 14);
    s->part = tn_epoch_parts_manifest(s->data, progress, e->w->plan->owners.n_peers, e->parts,
                                      &s->n_parts);
    return s->part != NULL;
}

static tn_status sum(tn_epoch *e, tn_error *err)
{
    tn_run_state *s = e->state;
    if (s->data == NULL || s->progress.epoch != e->number) {
        return TN_OK; /* between two epochs: what the end of one summed up stays */
    }
    tn_leader_totals totals;
    if (e->is_async) {
        s->progress.records = e->returned + tn_part_dealer_records(dealer_of(e));
    }
    TN_TRY(tn_leader_sum(e->ranks.self, &s->progress, e->metrics, e->whole, &totals, err));
    e->bad_of_others = totals.bad;
    if (dealer_of(e) == NULL && !list_parts(e, totals.progress)) {
        return TN_OK; /* at the beginning of one */
    }
    s->samples = e->samples_before + totals.records;
    /* The dealer of parts on request knows already which parts the others hold. */
    return dealer_of(e) == NULL || e->is_async ? TN_OK : follow_others(e, totals.progress, err);
}

static tn_status gather(tn_epoch *e, tn_error *err)
{
    if (!e->is_async) {
        return TN_OK; /* the step itself was the meeting */
    }
    TN_TRY(sum(e, err)); /* the others wait from then on */
    return tn_peers_refresh(tn_leader_peers(e->ranks.self), err);
}

static tn_status finish(tn_epoch *e, tn_error *err)
{
    if (!e->is_async) {
        return TN_OK;
    }
    TN_TRY(tn_leader_finish(e->ranks.self, err));
    return tn_peers_refresh(tn_leader_peers(e->ranks.self), err);
}

/* A rank counts records up to its last batch, so bad ones after it are added. */
static tn_status judge(tn_epoch *e, tn_error *err)
{
    if (!e->is_whole) {
        return TN_OK;
    }
    const uint64_t bad = e->met.counts.bad + e->bad_of_others;
    const uint64_t reported = e->state->samples - e->samples_before;
    const uint64_t learned = tn_metrics_rows(e->whole);
    const uint64_t records = reported > learned + bad ? reported : learned + bad;
    tn_bad_record_limit limit;
    TN_TRY(tn_bad_record_limit_read(e->run->data.bad_records_max, &limit, err));
    return tn_bad_record_limit_end(&limit, records, bad, err);
}

const tn_epoch_ops tn_group_epoch = {.open_data = open_data,
                                     .close_data = close_data,
                                     .prior = prior,
                                     .start = start,
                                     .note = note,
                                     .hear = hear,
                                     .give_back = give_back,
                                     .gather = gather,
                                     .finish = finish,
                                     .sum = sum,
                                     .judge = judge};
