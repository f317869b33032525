/* follower_epoch.c - a rank's parts of an epoch: begun and gone on with when rank 0 orders. */
#include "base/core/clock.h"
#include "train/run/epoch_reader.h"
#include "train/run/follower_state.h"

#include <string.h>

static const uint64_t again_ns = 1000000000; /* who waits for a part asks again */
static const uint64_t settle_ns = 100000000; /* looks whether the group still is one */

/* ---- an epoch ---- */

static void stop_reading(tn_follower *f)
{
    tn_together_free(f->steps);
    tn_apart_free(f->apart);
    tn_feeder_close(f->feeder);
    f->steps = NULL;
    f->apart = NULL;
    f->feeder = NULL;
}

void tn_follower_end_epoch(tn_follower *f)
{
    stop_reading(f);
    tn_partdealer_close(f->dealer);
    if (f->asks != NULL) {
        tn_group_set_parts(f->group, NULL);
    }
    tn_askdealer_close(f->asks);
    f->is_over = false;
    f->dealer = NULL;
    f->asks = NULL;
    f->records = 0;
    tn_met_clear(&f->met);
}

static void say_ask(void *arg, const tn_ask_note *note)
{
    tn_group_ask(arg, note);
}

static tn_status open_asks(tn_follower *f, tn_error *err)
{
    const tn_askdealer_opts opts = {
        .epoch = f->epoch, .again_ns = tn_timer_ns(again_ns), .ask = say_ask, .arg = f->group};
    tn_group_parts parts;
    TN_TRY(tn_askdealer_open(&f->asks, &opts, err));
    tn_askdealer_bind(f->asks, &parts);
    tn_group_set_parts(f->group, &parts);
    f->cut_for = tn_dealt_epoch_of(f->w, f->epoch, &f->stand).cut_for;
    tn_data_stand_done(&f->stand); /* rank 0's ledger has it */
    return TN_OK;
}

/* Parts that rank 0 deals. */
static tn_status read_on_request(tn_follower *f, tn_error *err)
{
    const tn_dealer *dealer = tn_askdealer_dealer(f->asks);
    const tn_dealt_epoch of = {f->epoch, f->cut_for};
    TN_TRY(tn_dealt_feeder(&f->feeder, f->w, &of, dealer, err));
    return tn_apart_new(&f->apart, f->w, f->peers, f->feeder, err);
}

static tn_status open_epoch(tn_follower *f, uint32_t epoch, tn_error *err)
{
    if (f->feeder != NULL && f->epoch == epoch) {
        return TN_OK;
    }
    tn_follower_end_epoch(f);
    f->epoch = epoch;
    f->progress = (tn_progress){.epoch = epoch};
    tn_metrics_clear(f->metrics);
    if (tn_deals_on_request(f->w)) {
        TN_TRY(open_asks(f, err));
        return read_on_request(f, err);
    }
    return tn_training_feeder(&f->feeder, f->w, &f->progress, &f->stand, &f->dealer, err);
}

static tn_status begin_epoch(tn_follower *f, uint32_t epoch, tn_error *err)
{
    TN_TRY(open_epoch(f, epoch, err));
    return f->apart != NULL || f->steps != NULL
               ? TN_OK
               : tn_together_new(&f->steps, f->w, f->peers, f->feeder, err);
}

static tn_status first_rows(tn_follower *f, uint32_t epoch, tn_prior *out, tn_error *err)
{
    if (tn_deals_on_request(f->w)) {
        return tn_first_rows(f->w, epoch, out, err);
    }
    TN_TRY(open_epoch(f, epoch, err));
    return tn_reader_prior(tn_feeder_reader(f->feeder), out, err);
}

tn_status tn_follower_prior(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    tn_prior prior = {0};
    tn_error why = {0};
    tn_status status = first_rows(f, (uint32_t)order->number, &prior, &why);
    if (status != TN_OK && status != TN_END) {
        return tn_follower_say_done(f, order, status, &why, err);
    }
    const tn_done_note note = {.what = order->what,
                               .number = order->number,
                               .text = "",
                               .clicks = prior.clicks,
                               .weight = prior.weight};
    return tn_group_done(f->group, &note, err);
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
    f->progress.records += f->records;
    if (f->asks != NULL) {
        tn_askdealer_note(f->asks, &batch->progress);
    }
    tn_reader_counts(tn_feeder_reader(f->feeder), &counts);
    const tn_reporter_step step = {.rows = &rows,
                                   .learned = f->apart != NULL ? &turn->learned : NULL,
                                   .weight = turn->weight,
                                   .epoch = f->epoch,
                                   .records = f->progress.records,
                                   .bad = f->met.counts.bad + counts.bad};
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
    return f->lr_scale * tn_learning_rate_factor(f->plan->run, f->w->steps, f->end);
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
        if (turn.step == NULL && f->apart != NULL) {
            tn_beats_state(&f->beats, TN_PEER_WAITING); /* for a part */
        }
    }
    f->is_over = f->apart != NULL && turn.over;
    return TN_OK;
}

tn_status tn_follower_start(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    tn_error why = {0};
    tn_status status = TN_OK;
    if (order->more.n == 3 && order->more.at[2] <= TN_DAY_MAX) {
        memcpy(&f->lr_scale, order->more.at, sizeof f->lr_scale);
        f->end = order->more.at[1];
        f->w->day = (uint32_t)order->more.at[2];
    }
    if (order->text[0] != '\0') {
        status = tn_worker_set_bias(f->w, order->text, &why);
    }
    if (status == TN_OK) {
        status = tn_peers_begin(f->peers, &why);
    }
    if (status == TN_OK) {
        status = begin_epoch(f, (uint32_t)order->number, &why);
    }
    TN_TRY(tn_follower_say_done(f, order, status, &why, err));
    f->trains = status == TN_OK && f->apart == NULL; /* if not, GO follows or the end */
    return f->trains ? tn_follower_train(f, false, err) : TN_OK;
}

tn_status tn_follower_go(tn_follower *f, tn_error *err)
{
    if (f->apart == NULL) {
        return tn_fail(err, TN_E_PEER, "rank 0 orders to go on before it said with what");
    }
    f->trains = true;
    return tn_follower_train(f, false, err);
}

/* ---- parts that others can have ---- */

static tn_status settle(tn_follower *f, tn_error *err)
{
    while (!tn_askdealer_settle(f->asks, tn_clock_ns() + settle_ns)) {
        TN_TRY(tn_group_check(f->group, err));
    }
    return TN_OK;
}

tn_status tn_follower_held(tn_follower *f, tn_arena *arena, tn_note_parts *out, tn_error *err)
{
    TN_TRY(settle(f, err));
    f->progress.records = f->records + tn_askdealer_records(f->asks);
    tn_askdealer_held(f->asks, arena, out);
    return TN_OK;
}

static tn_status say_returned(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 10);
    tn_done_note note = {.what = TN_ORDER_RETURN, .number = order->number, .text = ""};
    tn_askdealer_give_back(f->asks, arena, &note.parts);
    tn_status status = tn_group_done(f->group, &note, err);
    tn_arena_free(arena);
    return status;
}

tn_status tn_follower_give_back(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    if (f->asks != NULL && f->epoch == order->number && !f->is_over) {
        tn_reader *reader = tn_feeder_reader(f->feeder);
        tn_apart_free(f->apart);
        f->apart = NULL;
        tn_reader_quit(reader); /* so that no part is over between these two */
        tn_met_add_reader(&f->met, reader, tn_askdealer_ended(f->asks));
        stop_reading(f);
        TN_TRY(settle(f, err));
        f->records += tn_askdealer_records(f->asks);
        f->progress.records = f->records;
        TN_TRY(say_returned(f, order, err));
        TN_TRY(read_on_request(f, err));
    }
    return f->trains ? tn_follower_train(f, false, err) : TN_OK;
}
