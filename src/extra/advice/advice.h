/* advice.h - what the figures of a run that has ended show, and what to try.
 *
 *     tn_advice_text(&facts, &lines);      a sentence a line, nothing when all is as it should be
 *
 * Each sentence says what was seen, in figures, and one remedy, whose worth docs/training.md has.
 * Pure; any thread.
 */
#pragma once

#include "train/run/module.h"

typedef struct tn_advice {
    uint64_t steps;
    uint32_t epochs; /* finished */
    uint32_t batch;
    bool epochs_chosen, batch_chosen; /* by the program: not for the user to mend */
    bool stops;                       /* train.stop watches data.valid */
    bool past_best;                   /* the model that stays is that of an earlier step */
    bool linear;                      /* the model knows no pairs of slots */
    bool days;                        /* a run over days, which learns each once */
    bool ordered;                     /* rows come in the order of their labels */
    const tn_loss_curve *curve;       /* NULL: not known */
    uint64_t best_step;               /* step at which valid.logloss was smallest; 0: not known */
    double best_loss;
    bool cut;                /* train.stop, max_steps or max_time ended it before train.epochs */
    bool diverged;           /* the run has said so while it went on */
    bool calibrates;         /* a map is fitted on data.valid, or a line has said why not */
    const tn_metrics *train; /* progressive, of the last epoch; NULL: not known */
    const tn_metrics *valid; /* figures of the model that stays; NULL: there is no data.valid */
    const tn_unknown_keys *keys; /* keys in the same rows; NULL: not known */
} tn_advice;

void tn_advice_text(const tn_advice *a, tn_text *lines);
