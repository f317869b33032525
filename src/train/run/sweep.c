/* sweep.c - rows that expire leave the tables of all ranks at the end of an epoch, or of a day. */
#include "train/run/module.h"

#include "base/core/arena.h"
#include "base/core/clock.h"
#include "train/peers/leader.h"
#include "train/report/report.h"
#include "train/run/epoch.h"
#include "train/run/saver.h"
#include "train/step/model_plan.h"
#include "train/step/row_sweep.h"
#include "train/step/worker.h"

/* Sweeps on the worker's day, while all stand still and nothing is being saved. */
static tn_status sweep_rows(tn_run_now *now, tn_error *err)
{
    const tn_epoch *e = now->epoch;
    const uint32_t day = now->worker->day;
    const uint32_t n = now->plan->layout->n_groups;
    const double begin = tn_clock_s();
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_report_sweep swept = {
        .day = day, .groups = TN_NEW_ARRAY(arena, tn_group_rows, n + 1), .state = now->state};
    TN_ASSERT(e->data == NULL);
    tn_status status = tn_rows_sweep(now->worker, day, swept.groups, err);
    if (status == TN_OK && e->lead != NULL) {
        status = tn_leader_sweep(e->lead, day, swept.groups, n, err);
    }
    swept.seconds = tn_clock_s() - begin;
    swept.aged = tn_table_aged(now->worker->shard.table);
    if (status == TN_OK) {
        status = tn_report_swept(now->report, &swept, err);
    }
    tn_arena_free(arena);
    return status;
}

/* A run over days sweeps once a day. */
static tn_status sweep_after_epoch(void *self, tn_run_now *now, tn_error *err)
{
    (void)self;
    if (!tn_rows_come_and_go(now->plan) || (tn_run_has_days(now) && !tn_run_is_last(now))) {
        return TN_OK;
    }
    TN_TRY(tn_saver_end(now->saver, err)); /* its rows may not leave meanwhile */
    TN_TRY(sweep_rows(now, err));
    tn_saver_set_unsaved(now->saver); /* a checkpoint of the last step has rows that left */
    return TN_OK;
}

const tn_module tn_module_sweep = {.name = "sweep", .at = {[TN_AT_EPOCH] = sweep_after_epoch}};
