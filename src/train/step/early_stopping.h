/* early_stopping.h - the best model so far, when to slow down, when to stop.
 *
 * Every evaluation is added; one that does not beat the best by min_delta counts as bad. After
 * reduce_on_plateau.patience bad ones in a row the learning rate is multiplied by factor, down to
 * min_lr; after stop.patience of them training ends. (BARS: factor .1 at the first, stop at the
 * second.) What it remembers is in tn_early_stopping_state and goes into checkpoints.
 */
#ifndef TN_TRAIN_EARLY_STOPPING_H
#define TN_TRAIN_EARLY_STOPPING_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_train_opts tn_train_opts; /* train/config/run.h */

typedef struct tn_early_stopping_state {
    bool seen;       /* there is a best */
    double best;     /* the monitor's value */
    uint64_t step;   /* when it was reached */
    uint32_t bad;    /* evaluations since that did not beat it */
    double lr_scale; /* factor of all learning rates */
} tn_early_stopping_state;

typedef struct tn_early_stopping {
    const tn_train_opts *opts;
    const char *metric; /* what is watched, "auc"; NULL: nothing */
    bool larger_is_better;
    double base_lr; /* of train.optimizer, for min_lr */
    tn_early_stopping_state *state;
} tn_early_stopping;

typedef struct tn_verdict {
    bool best;    /* better than all before: worth keeping */
    bool reduced; /* lr_scale has become smaller */
    bool stop;
} tn_verdict;

/* Training has ended by itself: as many bad evaluations in a row as stop.patience. */
bool tn_early_stopping_is_over(const tn_early_stopping *p);

/* Begins with an empty memory in `state`, which must outlive it; a run that goes on fills that in.
 */
void tn_early_stopping_init(tn_early_stopping *p, const tn_train_opts *opts,
                            tn_early_stopping_state *state);

/* A value that is not defined (NAN) counts as bad. */
tn_verdict tn_early_stopping_add(tn_early_stopping *p, double value, uint64_t step);

#endif
