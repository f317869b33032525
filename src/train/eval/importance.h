/* importance.h - what a model loses when the values of one slot are dealt among the rows at random.
 *
 *     block       65,536 rows, as they are read
 *       | deal    one slot, by stream (seed, TN_RNG_IMPORTANCE, slot, block and repeat)
 *     batches     eval.batch rows: scored, judged
 *
 * Labels and all other slots stay where they are, so the loss is what the model has from this slot
 * and from no other: of two slots that say the same each seems to matter little. It is that of the
 * model, not of the data. Where rows of a block are alike in a slot (files in the order of time or
 * of users) dealing changes little: such files are to be shuffled.
 *
 * Any number of threads finds the same bits, and slots that are added change nothing for others.
 */
#pragma once

#include "train/eval/evaluate.h"

enum { TN_IMPORTANCE_METRICS = 2, TN_IMPORTANCE_REPEATS = 100 };

typedef struct tn_slot_importance {
    const char *slot; /* lives as long as the schema */
    /* How much worse each metric is; below 0: better. NAN: it is not defined. */
    double lost[TN_IMPORTANCE_METRICS];
} tn_slot_importance;

typedef struct tn_importance {
    const char *metric[TN_IMPORTANCE_METRICS]; /* by the model's target: auc, logloss; NULL: none */
    double value[TN_IMPORTANCE_METRICS];       /* metrics before a slot is dealt */
    uint64_t rows;
    uint32_t n;
    tn_slot_importance *slot; /* n, in the order of the configuration; owned */
} tn_importance;

/* Scores the rows of `request` once as they are, and for each slot `repeats` times. Of the request
 * paths, held, calibration, rows_max and stop count. One process. Errors of the data, TN_E_MEMORY,
 * TN_E_STOPPED. */
tn_status tn_importance_measure(tn_worker *w, const tn_eval_request *request, uint32_t repeats,
                                tn_importance *out, tn_error *err) TN_MUST_USE;
void tn_importance_done(tn_importance *found);
