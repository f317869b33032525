/* group_epoch.c - an epoch of rank 0 with other peers; see train/peers/leader.h. */
#include "train/peers/async_epoch.h"
#include "train/run/epoch_reader.h"
#include "train/run/trainer_state.h"

#include "base/core/clock.h"

/* ---- where all stand ---- */

static bool continues(const tn_manifest_part *before, const tn_part_info *part)
{
    return before->state == TN_PART_DONE && before->source == part->source &&
           before->end == part->first;
}

/* Part i of the epoch is the (i / n)-th of rank i mod n. */
static tn_manifest_part part_of(const tn_part_info *part, uint32_t i, uint32_t n,
                                const tn_progress *progress)
{
    const tn_progress *at = &progress[i % n];
    const bool here = i / n == at->part && at->position > 0;
    return (tn_manifest_part){
        .source = part->source,
        .begin = part->first,
        .end = part->end,
        .state = i / n < at->part ? TN_PART_DONE
                 : here           ? TN_PART_DEALT
                                  : TN_PART_FREE,
        .position = here ? at->position : 0,
    };
}

static void list_parts(tn_trainer *t, const tn_progress *progress)
{
    const tn_epoch_parts *map = t->state.data;
    const uint32_t n_ranks = t->plan->owners.n_peers;
    tn_arena_free(t->parts);
    t->parts = tn_arena_new(1 << 14);
    tn_manifest_part *list = TN_NEW_ARRAY(t->parts, tn_manifest_part, map->n_parts + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < map->n_parts; i++) {
        const tn_manifest_part part = part_of(&map->part[i], i, n_ranks, progress);
        if (n > 0 && part.state == TN_PART_DONE && continues(&list[n - 1], &map->part[i])) {
            list[n - 1].end = part.end;
        } else {
            list[n++] = part;
        }
    }
    t->state.part = list;
    t->state.n_parts = n;
}

/* In an epoch that others have begun all ranks deal themselves what was left. */
static tn_status follow_others(tn_trainer *t, const tn_progress *progress, tn_error *err)
{
    for (uint32_t r = 1; r < t->plan->owners.n_peers; r++) {
        TN_TRY(tn_part_dealer_follow(t->dealer, r, &progress[r], tn_clock_ns(), err));
    }
    return TN_OK;
}

static bool on_request(const tn_trainer *t)
{
    return tn_epoch_reader_on_request(t->worker);
}

tn_status tn_trainer_sum(tn_trainer *t, tn_error *err)
{
    const bool runs = t->state.data != NULL && t->state.progress.epoch == t->map_epoch;
    if (t->lead == NULL || !runs) { /* between two epochs: what the end of one summed up stays */
        return TN_OK;
    }
    tn_leader_totals totals;
    if (on_request(t)) {
        t->state.progress.records = t->returned + tn_part_dealer_records(t->dealer);
    }
    TN_TRY(tn_leader_sum(t->lead, &t->state.progress, t->epoch_metrics, t->whole, &totals, err));
    t->bad_of_others = totals.bad;
    bool begun = false;
    for (uint32_t r = 0; r < t->plan->owners.n_peers; r++) {
        begun = begun || totals.progress[r].part > 0 || totals.progress[r].position > 0;
    }
    if (!begun && t->dealer == NULL) { /* at the beginning of one */
        return TN_OK;
    }
    t->state.samples = t->samples_before + totals.records;
    if (t->dealer != NULL) { /* on request it has heard what the others hold */
        return on_request(t) ? TN_OK : follow_others(t, totals.progress, err);
    }
    list_parts(t, totals.progress);
    return TN_OK;
}

/* ---- steps ---- */

static bool meets(void *arg, uint64_t steps)
{
    tn_trainer *t = arg;
    tn_group *group = t->beats.group;
    if (tn_group_is_asked(group, TN_ASKS_STOP)) {
        t->peer_stops = true;
    }
    if (tn_group_is_asked(group, TN_ASKS_ROOM)) {
        t->peer_is_full = true;
    }
    if (t->watch->save != NULL && tn_group_is_asked(group, TN_ASKS_SAVE)) {
        atomic_store(t->watch->save, true);
    }
    return tn_trainer_is_due(t, steps) || tn_leader_gives_back(t->lead, false);
}

static double factor(void *arg)
{
    return tn_trainer_factor(arg);
}

static tn_status note(tn_trainer *t, const tn_turn_taken *turn, tn_reader *reader, double begin,
                      tn_error *err)
{
    tn_link_counts counts;
    tn_link_counts_of(tn_group_link(t->beats.group), &counts);
    const tn_step_told told = {.step = turn->step,
                               .learned = &turn->learned,
                               .reader = reader,
                               .joint = turn->rows,
                               .weight = turn->weight,
                               .factor = tn_trainer_factor(t),
                               .waited_s = turn->waited_s,
                               .waits = turn->waits,
                               .bytes_in = counts.bytes_in,
                               .bytes_out = counts.bytes_out,
                               .compute_s = tn_clock_s() - begin};
    TN_TRY(tn_trainer_note_step(t, &told, err));
    tn_heartbeat_stats_step(&t->beats, t->worker, turn, t->state.progress.records);
    return TN_OK;
}

static tn_status start(tn_trainer *t, bool at_first, tn_error *err)
{
    const tn_leader_begin how = {.epoch = t->state.progress.epoch,
                                 .is_fresh = at_first && t->worker->steps == 0 &&
                                             t->state.samples == 0 && !t->state.begun,
                                 .lr_scale = t->patience.state.lr_scale,
                                 .end = t->end};
    return tn_leader_start(t->lead, &how, err);
}

/* Does what is due while all stand still, then goes on. */
static tn_status meet(tn_trainer *t, tn_error *err)
{
    TN_TRY(tn_trainer_between(t, err));
    return t->stop ? TN_OK : start(t, false, err);
}

static tn_status take_steps(tn_trainer *t, tn_sync_epoch *x, tn_reader *reader, tn_error *err)
{
    const tn_ahead ahead = {meets, factor, t};
    while (!t->stop) {
        tn_turn_taken turn;
        const double begin = tn_clock_s();
        tn_lane_step(t->worker->lane, t->worker->steps);
        TN_TRY(tn_sync_epoch_next(x, &ahead, &turn, err));
        if (turn.over) {
            return TN_END;
        }
        TN_TRY(note(t, &turn, reader, begin, err));
        if (!turn.meets) {
            TN_TRY(tn_trainer_note_save(t, err));
            continue;
        }
        TN_TRY(meet(t, err));
    }
    return tn_trainer_sum(t, err); /* the run is over, perhaps with nothing to save */
}

/* Others may have learned after this rank's last step, and the last checkpoint. */
static void note_others(tn_trainer *t)
{
    t->unsaved = t->unsaved || t->state.steps != t->worker->steps;
    t->state.steps = t->worker->steps;
}

/* A meeting at staleness above 0: the others stand still when they are told to. */
static tn_status meet_apart(tn_trainer *t, tn_error *err)
{
    TN_TRY(tn_trainer_sum(t, err)); /* when it returns all stand still */
    TN_TRY(tn_peers_refresh(tn_leader_peers(t->lead), err));
    return meet(t, err);
}

/* Gives the parts of this rank to others that are idle; it asks anew. */
static tn_status give_back(tn_trainer *t, tn_async_epoch **x, tn_step_prefetch **feeder,
                           tn_error *err)
{
    tn_async_epoch_free(*x);
    *x = NULL;
    tn_reader_quit(
        tn_step_prefetch_reader(*feeder)); /* so that no part is over between these two */
    tn_met_add_reader(&t->met, tn_step_prefetch_reader(*feeder), tn_part_dealer_ended(t->dealer));
    tn_step_prefetch_close(*feeder);
    *feeder = NULL;
    t->returned += tn_part_dealer_records(t->dealer);
    tn_part_dealer_give_back(t->dealer, tn_clock_ns());
    const tn_dealt_epoch of = {t->state.progress.epoch, t->state.data->cut_for};
    TN_TRY(
        tn_epoch_reader_open_dealt(feeder, t->worker, &of, tn_part_dealer_dealer(t->dealer), err));
    return tn_async_epoch_new(x, t->worker, tn_leader_peers(t->lead), *feeder, err);
}

/* One step, or a look at what is due while there are no data. */
static tn_status step_apart(tn_trainer *t, tn_async_epoch *x, tn_reader *reader,
                            tn_turn_taken *turn, tn_error *err)
{
    const tn_ahead ahead = {meets, factor, t};
    const double begin = tn_clock_s();
    tn_lane_step(t->worker->lane, t->worker->steps);
    TN_TRY(tn_async_epoch_next(x, &ahead, turn, err));
    if (turn->step != NULL) {
        TN_TRY(note(t, turn, reader, begin, err));
    } else {
        tn_heartbeat_stats_step(&t->beats, t->worker, turn, t->state.progress.records);
        tn_heartbeat_stats_state(&t->beats, TN_PEER_WAITING);
    }
    return turn->meets || turn->over ? TN_OK : tn_trainer_note_save(t, err);
}

static tn_status take_steps_apart(tn_trainer *t, tn_async_epoch **x, tn_step_prefetch **feeder,
                                  tn_error *err)
{
    while (!t->stop) {
        tn_turn_taken turn;
        TN_TRY(step_apart(t, *x, tn_step_prefetch_reader(*feeder), &turn, err));
        if (turn.over) {
            TN_TRY(tn_leader_finish(t->lead, err));
            TN_TRY(tn_peers_refresh(tn_leader_peers(t->lead), err));
            note_others(t);
            return TN_END;
        }
        if (turn.meets && tn_leader_gives_back(t->lead, true)) {
            TN_TRY(give_back(t, x, feeder, err));
            turn.meets = tn_trainer_is_due(t, t->worker->steps);
        }
        if (turn.meets) {
            TN_TRY(meet_apart(t, err));
        }
    }
    return TN_OK;
}

static tn_status steps_apart(tn_trainer *t, tn_step_prefetch **feeder, tn_error *err)
{
    tn_async_epoch *x = NULL;
    TN_TRY(tn_async_epoch_new(&x, t->worker, tn_leader_peers(t->lead), *feeder, err));
    tn_status status = take_steps_apart(t, &x, feeder, err);
    tn_async_epoch_free(x);
    return status;
}

tn_status tn_trainer_group_steps(tn_trainer *t, tn_step_prefetch **feeder, tn_error *err)
{
    tn_sync_epoch *x = NULL;
    TN_TRY(start(t, true, err));
    if (t->run->cluster.staleness > 0) {
        return steps_apart(t, feeder, err);
    }
    TN_TRY(tn_sync_epoch_new(&x, t->worker, tn_leader_peers(t->lead), *feeder, err));
    tn_status status = take_steps(t, x, tn_step_prefetch_reader(*feeder), err);
    tn_sync_epoch_free(x);
    return status;
}
