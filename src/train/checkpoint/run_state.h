/* run_state.h - where a run stands: what a checkpoint keeps beside the weights.
 *
 * Owned by the trainer, or by whoever loads a checkpoint; a resume fills it in. One thread.
 */
#ifndef TN_TRAIN_RUN_STATE_H
#define TN_TRAIN_RUN_STATE_H

#include "train/checkpoint/epoch_parts.h"
#include "train/step/early_stopping.h"

/* What a checkpoint says of how it came about: its texts. */
typedef struct tn_past {
    tn_text config;  /* config.yaml; empty: not known */
    tn_text sources; /* sources.jsonl */
} tn_past;

/* Where a run stands: what a checkpoint keeps beside the weights. */
typedef struct tn_run_state {
    tn_progress progress; /* of the epoch that runs */
    uint64_t steps;
    uint64_t samples;    /* records consumed since the start */
    uint64_t epoch_step; /* steps when this epoch began; 0: at the first, or not known */
    bool begun;          /* with weights from elsewhere, as in tn_manifest .. */
    uint32_t begun_crc;
    tn_past *past;       /* a resume fills it in; NULL: nobody asks */
    const char *monitor; /* metric that patience watches; NULL: none */
    tn_patience_state patience;
    const tn_data_map *data; /* of the epoch that runs; NULL: none was begun */
    tn_data_stand stand;     /* after a resume: where in the epoch, until the reader is open */
    const tn_manifest_part
        *part;             /* of the epoch that runs, as a ledger tells them; lent. NULL: .. */
    uint32_t n_parts;      /* .. they follow from `progress` */
    uint64_t best_ordinal; /* checkpoint that holds the best model; 0: none */
    bool eval_owed;        /* an evaluation due at this step was stopped by a signal */
} tn_run_state;

#endif
