/* ckptrun.h - the run of bench_checkpoint: Wide & Deep on batches that stay in memory, in a table
 * most of whose rows training never meets.
 *
 *     tn_bench_run b = {.arena = .., .dir = "..", .data = ".."};
 *     tn_bench_run_open(&b, rows, n, overrides);        any fault: printed, exit
 *     tn_bench_run_learn(&b);                           one step, timed
 *     tn_bench_run_close(&b);
 */
#ifndef TN_BENCH_CKPTRUN_H
#define TN_BENCH_CKPTRUN_H

#include "base/file/file.h"
#include "config/diag.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/run_state.h"
#include "train/config/config.h"
#include "train/config/run.h"
#include "train/eval/evaluate.h"
#include "train/step/step.h"

enum { TN_BENCH_BATCHES = 60, TN_BENCH_STEPS_MAX = 1 << 16 };

typedef struct tn_bench_run {
    tn_arena *arena;
    tn_diag diag;
    tn_run run;
    const tn_model_plan *plan;
    tn_worker *worker;
    tn_metrics *metrics;
    tn_checkpoints *checkpoints;
    tn_reader *reader;
    tn_batch *batch[TN_BENCH_BATCHES];
    uint32_t n, next;
    tn_step *step;
    tn_run_state state;
    double step_s[TN_BENCH_STEPS_MAX]; /* since n_steps was set to 0; round and round */
    uint32_t n_steps;
    char data[TN_PATH_SIZE];
    char dir[TN_PATH_SIZE];
} tn_bench_run;

/* Prints what failed and ends the program. */
void tn_bench_check(tn_status status, const tn_error *err);

/* `dir` and `data` are set; rows of the table, and key=value. */
void tn_bench_run_open(tn_bench_run *b, uint64_t rows, uint32_t n_more, char *const *more);
void tn_bench_run_close(tn_bench_run *b);

void tn_bench_run_learn(tn_bench_run *b);

#endif
