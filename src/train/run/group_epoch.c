/* group_epoch.c - an epoch of rank 0 with other peers; see train/peers/leader.h. */
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

bool tn_trainer_is_async(const tn_trainer *t)
{
    return t->lead != NULL && t->run->cluster.staleness > 0;
}

tn_status tn_trainer_start_peers(tn_trainer *t, bool at_first, tn_error *err)
{
    if (t->lead == NULL) {
        return TN_OK;
    }
    const tn_leader_begin how = {.epoch = t->state.progress.epoch,
                                 .is_fresh = at_first && t->worker->steps == 0 &&
                                             t->state.samples == 0 && !t->state.begun,
                                 .lr_scale = t->patience.state.lr_scale,
                                 .end = t->end};
    return tn_leader_start(t->lead, &how, err);
}

bool tn_trainer_hear_peers(tn_trainer *t)
{
    if (t->lead == NULL) {
        return false;
    }
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
    return tn_leader_gives_back(t->lead, false);
}

/* Gives the parts of this rank to others that are idle; it asks anew. */
static tn_status give_back(tn_trainer *t, tn_error *err)
{
    tn_reader *reader = tn_step_prefetch_reader(t->data);
    tn_step_loop_free(t->steps);
    t->steps = NULL;
    tn_reader_quit(reader); /* so that no part is over between these two */
    tn_met_add_reader(&t->met, reader, tn_part_dealer_ended(t->dealer));
    tn_step_prefetch_close(t->data);
    t->data = NULL;
    t->returned += tn_part_dealer_records(t->dealer);
    tn_part_dealer_give_back(t->dealer, tn_clock_ns());
    const tn_dealt_epoch of = {t->state.progress.epoch, t->state.data->cut_for};
    TN_TRY(tn_epoch_reader_open_dealt(&t->data, t->worker, &of, tn_part_dealer_dealer(t->dealer),
                                      err));
    return tn_step_loop_new(&t->steps, t->worker, t->data, err);
}

tn_status tn_trainer_gather_peers(tn_trainer *t, bool *is_due, tn_error *err)
{
    *is_due = true;
    if (!tn_trainer_is_async(t)) {
        return TN_OK; /* alone, or the step itself was the meeting */
    }
    if (tn_leader_gives_back(t->lead, true)) {
        TN_TRY(give_back(t, err));
        *is_due = tn_trainer_is_due(t, t->worker->steps);
    }
    if (!*is_due) {
        return TN_OK;
    }
    TN_TRY(tn_trainer_sum(t, err)); /* the others stand still when they are told to */
    return tn_peers_refresh(tn_leader_peers(t->lead), err);
}

tn_status tn_trainer_end_peers(tn_trainer *t, tn_error *err)
{
    if (!tn_trainer_is_async(t)) {
        return TN_OK;
    }
    TN_TRY(tn_leader_finish(t->lead, err));
    TN_TRY(tn_peers_refresh(tn_leader_peers(t->lead), err));
    /* Others may have learned after this rank's last step, and the last checkpoint. */
    t->unsaved = t->unsaved || t->state.steps != t->worker->steps;
    t->state.steps = t->worker->steps;
    return TN_OK;
}
