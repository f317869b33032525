/* early_stopping.h - what an evaluation means for the run: the best yet, smaller steps, or the end.
 *
 * Every evaluation is added; one that does not beat the best by min_delta counts as bad, and one
 * whose metric is not defined, as AUC on rows of one class, counts as none. After
 * reduce_on_plateau.patience bad ones in a row the learning rate is multiplied by factor, down to
 * min_lr; after stop.patience of them training ends. (BARS: factor .1 at the first, stop at the
 * second.) Plain functions of the state that a checkpoint keeps.
 */
#pragma once

#include "train/checkpoint/run_state.h"

typedef struct tn_train_opts tn_train_opts; /* train/config/run.h */

typedef struct tn_verdict {
    bool best;    /* better than all before: worth keeping */
    bool reduced; /* lr_scale has become smaller */
    bool stop;
    bool unknown; /* the metric is not defined: nothing has changed */
} tn_verdict;

typedef struct tn_evaluated {
    const char *monitor; /* the metric that is watched */
    double value;        /* NAN: not defined */
    uint64_t step;
    bool is_early; /* may be the best, and does not count where it is not */
} tn_evaluated;

tn_verdict tn_early_stopping_add(const tn_train_opts *opts, tn_early_stopping_state *s,
                                 const tn_evaluated *what);

/* Whether the run has had as many bad ones as it may. */
bool tn_early_stopping_is_over(const tn_train_opts *opts, const tn_early_stopping_state *s);
