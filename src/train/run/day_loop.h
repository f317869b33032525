/* day_loop.h - learns day after day, with a checkpoint and a record for each.
 *
 *     choose and wait (day_plan.h) -> score its head -> learn -> save -> score its neighbours -> ..
 *
 * In the process that leads a run, as its module `days` (module.h). A day is learned when it is
 * saved; whatever ends the run before leaves the checkpoint of the day before, or one within the
 * day. Belongs to the trainer's thread.
 */
#pragma once

#include <stdbool.h>

typedef struct tn_run tn_run;

typedef struct tn_day_loop tn_day_loop;

/* Whether a run over days has something left to do, even where it would learn nothing: an export,
 * or the evaluations and the record of its last day, because a process ended before them. By
 * manifests, names and metrics.jsonl alone. */
bool tn_day_loop_owes(const tn_run *run);

/* Epochs of a run of one day that are as large a share of it as `epochs` of this day, and the days
 * before, are of this run. */
double tn_day_loop_share(const tn_day_loop *l, const tn_run *run, double epochs);
