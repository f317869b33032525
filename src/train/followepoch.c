/* followepoch.c - a rank's parts of an epoch: begun and gone on with when rank 0 orders. */
#include "base/clock.h"
#include "train/followstate.h"
#include "train/trainfeed.h"

#include <string.h>

void tn_follower_end_epoch(tn_follower *f)
{
    tn_together_free(f->steps);
    tn_apart_free(f->apart);
    tn_feeder_close(f->feeder);
    tn_partdealer_close(f->dealer);
    f->steps = NULL;
    f->apart = NULL;
    f->is_over = false;
    f->feeder = NULL;
    f->dealer = NULL;
}

static tn_status begin_epoch(tn_follower *f, uint32_t epoch, tn_error *err)
{
    tn_follower_end_epoch(f);
    f->epoch = epoch;
    f->progress = (tn_progress){.epoch = epoch};
    tn_metrics_clear(f->metrics);
    TN_TRY(tn_training_feeder(&f->feeder, f->w, &f->progress, &f->stand, &f->dealer, err));
    if (tn_peers_async(f->peers) != NULL) {
        return tn_apart_new(&f->apart, f->w, f->peers, f->feeder, err);
    }
    return tn_together_new(&f->steps, f->w, f->peers, f->feeder, err);
}

static tn_status note_step(tn_follower *f, const tn_turn_taken *turn, tn_error *err)
{
    if (turn->step == NULL) {
        return TN_OK;
    }
    const tn_batch *batch = turn->step->batch;
    const tn_scored rows = {.n = batch->rows,
                            .logit = f->w->train_logit->val,
                            .label = batch->label,
                            .weight = batch->weight};
    tn_read_counts counts;
    f->progress = batch->progress;
    tn_reader_counts(tn_feeder_reader(f->feeder), &counts);
    const tn_reporter_step step = {.rows = &rows,
                                   .learned = f->apart != NULL ? &turn->learned : NULL,
                                   .weight = turn->weight,
                                   .epoch = f->epoch,
                                   .records = f->progress.records,
                                   .bad = counts.bad};
    TN_TRY(tn_reporter_add(&f->reporter, &step, tn_clock_ns(), err));
    return tn_metrics_add(f->metrics, &rows, err);
}

static bool has_order(void *arg, uint64_t steps)
{
    (void)steps;
    const tn_follower *f = arg;
    return tn_group_has_order(f->group);
}

static double factor(void *arg)
{
    const tn_follower *f = arg;
    return f->lr_scale * tn_learning_rate_factor(f->plan->run, f->w->steps);
}

tn_status tn_follower_train(tn_follower *f, bool to_the_end, tn_error *err)
{
    const tn_ahead ahead = {.meets = to_the_end ? NULL : has_order, .factor = factor, .arg = f};
    const tn_ahead led = {0};
    tn_turn_taken turn = {.over = f->is_over};
    while (!turn.over && !turn.meets) {
        tn_lane_step(f->w->lane, f->w->steps);
        TN_TRY(f->apart != NULL ? tn_apart_next(f->apart, &ahead, &turn, err)
                                : tn_together_next(f->steps, &led, &turn, err));
        TN_TRY(note_step(f, &turn, err));
        TN_TRY(tn_follower_note_share(f, err));
        tn_beats_step(&f->beats, f->w, &turn, f->progress.records);
    }
    f->is_over = f->apart != NULL && turn.over;
    return TN_OK;
}

tn_status tn_follower_start(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    tn_error why = {0};
    tn_status status = TN_OK;
    if (order->more.n == 1) {
        memcpy(&f->lr_scale, order->more.at, sizeof f->lr_scale);
    }
    if (order->text[0] != '\0') {
        status = tn_worker_set_bias(f->w, order->text, &why);
    }
    if (status == TN_OK) {
        status = tn_peers_begin(f->peers, &why);
    }
    if (status == TN_OK && (f->feeder == NULL || f->epoch != order->number)) {
        status = begin_epoch(f, (uint32_t)order->number, &why);
    }
    TN_TRY(tn_follower_say_done(f, order, status, &why, err));
    return status == TN_OK ? tn_follower_train(f, false, err) : TN_OK; /* rank 0 ends the group */
}
