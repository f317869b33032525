/* rig.h - a model of a configuration, trained or scored a little at a time: what several
 * benchmarks do in turns.
 *
 *     tn_rig rig;
 *     tn_rig_open(&rig, "speed.yaml", 2, overrides);    any fault: printed, exit
 *     tn_rig_load(&rig, 400);                           whole batches of data.train in memory
 *     tn_rig_warm(&rig);                                each once: the rows of all keys exist
 *     rows_per_s = tn_rig_train_memory(&rig, 1.0);
 *     tn_rig_close(&rig);
 *
 * What the configuration leaves to the data is chosen as tnet-train chooses it. Steps are those of
 * a run, and made ahead as there: localize, pull, forward, backward, push, metrics; from a file
 * they come by a run's own reader, shuffled as there.
 */
#pragma once

#include "base/core/arena.h"
#include "config/diag.h"
#include "machine.h"
#include "metrics/metrics.h"
#include "train/config/config.h"
#include "train/config/run.h"
#include "train/step/step_prefetch.h"

enum { TN_RIG_BATCHES_MAX = 4096 };

/* Batches in memory, round and round. */
typedef struct tn_memory {
    tn_reader *reader; /* lends them */
    tn_batch **batch;
    uint32_t n, next;
    tn_step_prefetch *feeder;
} tn_memory;

typedef struct tn_rig {
    tn_arena *arena;
    tn_diag diag;
    tn_run run;
    const tn_model_plan *plan;
    tn_worker *worker;
    tn_metrics *metrics;
    double metrics_s; /* spent in metrics so far */

    tn_memory learned; /* batches of train.batch rows */
    tn_memory scored;  /* the same rows, eval.batch at a time; without gradients */

    tn_step_prefetch *feeder; /* of the pass that is under way */
    uint32_t epoch;
} tn_rig;

void tn_rig_open(tn_rig *rig, const char *config, uint32_t n, const char *const *overrides);
void tn_rig_close(tn_rig *rig);

/* At most `batches` of train.batch rows; those of the file that are not whole are left out. The
 * first call of tn_rig_score_memory loads as many rows for itself. */
void tn_rig_load(tn_rig *rig, uint32_t batches);
double tn_rig_warm(tn_rig *rig); /* rows per second of this first pass */

/* The next of the batches in memory, in their order, round and round; to be given back. */
tn_step *tn_rig_next(tn_rig *rig);
void tn_rig_done(tn_rig *rig, tn_step *step);

/* Rows per second over at least `seconds`, at least one step. */
double tn_rig_train_memory(tn_rig *rig, double seconds);
double tn_rig_train_file(tn_rig *rig, double seconds);   /* the pass goes on from call to call */
double tn_rig_score_memory(tn_rig *rig, double seconds); /* forward and metrics */

/* A turn of one of the three. */
typedef double tn_rig_rate(tn_rig *rig, double seconds);
tn_turn tn_rig_turn(tn_rig *rig, tn_rig_rate *rate, double seconds);

/* Of one training step's matrix products, per row. */
double tn_rig_flops(const tn_rig *rig);
