/* run_state.h - the position of a run, in its data too: what a checkpoint keeps beside the weights.
 *
 * Which files the data are, and whether they are still the same, train/checkpoint/sources.h says;
 * here only how they were cut into parts counts. The state is owned by the trainer, or by the
 * loader of a checkpoint. One thread.
 */
#pragma once

#include "io/read/reader.h"
#include "ps/snapshot/manifest.h"
#include "train/checkpoint/sources.h"

/* The sources and parts of an epoch. */
typedef struct tn_epoch_parts {
    const tn_sources *sources; /* when the epoch was opened; NULL: nobody has looked */
    uint32_t n_parts;
    const tn_part_info *part; /* in the order of this epoch */
    uint32_t cut_for;         /* ranks, as in tn_reader_opts */
} tn_epoch_parts;

/* Copies the parts of the reader into the arena. `sources` must outlive it, or is NULL. */
const tn_epoch_parts *tn_epoch_parts_of(const tn_reader *reader, const tn_sources *sources,
                                        tn_arena *arena);

/* Lists the parts for the manifest, of ranks whose positions are at[rank]; adjacent parts that are
 * done are merged. Lives in the arena. NULL: no epoch was begun. */
const tn_manifest_part *tn_epoch_parts_manifest(const tn_epoch_parts *map, const tn_progress *at,
                                                uint32_t n_ranks, tn_arena *arena, uint32_t *n);

/* The position in an epoch by a manifest. One reader is in one part, after those that are done;
 * several readers leave any pattern of parts (`shared`, cluster/ledger/ledger.h). */
typedef struct tn_epoch_position {
    bool within; /* it is within the epoch `epoch` */
    uint32_t epoch;
    bool shared;
    uint32_t cut_for; /* ranks, as in tn_reader_opts; 0: not within an epoch */
    uint32_t n_parts;
    tn_manifest_part *part; /* as in the manifest; owned */
} tn_epoch_position;

/* On failure *out is empty. */
tn_status tn_epoch_position_init(tn_epoch_position *out, const tn_manifest *m,
                                 tn_error *err) TN_MUST_USE;
void tn_epoch_position_done(tn_epoch_position *s); /* and is empty */

/* Finds the position of one reader among the parts of the same epoch, and sets at->part and
 * at->position. TN_E_DATA: the data are cut into other parts, or these come in another order. */
tn_status tn_epoch_parts_find(const tn_epoch_parts *map, const tn_epoch_position *stand,
                              tn_progress *at, tn_error *err) TN_MUST_USE;

/* TN_E_DATA: the parts come in another order, as far as the position shows; the ledger checks
 * whether they are the same parts. */
tn_status tn_epoch_parts_check(const tn_epoch_parts *map, const tn_epoch_position *stand,
                               tn_error *err) TN_MUST_USE;

/* Fails with TN_E_DATA: these are other parts. */
tn_status tn_epoch_parts_refuse(tn_error *err) TN_MUST_USE;

/* The texts of a checkpoint about the run that wrote it. */
typedef struct tn_past {
    tn_text config;  /* config.yaml; empty: not known */
    tn_text sources; /* sources.jsonl */
} tn_past;

/* Memory of early stopping. */
typedef struct tn_early_stopping_state {
    bool seen;   /* there is a best */
    double best; /* the monitor's value */
    bool has_counted;
    double counted;  /* the best of the evaluations that count, which early ones do not */
    uint64_t step;   /* when it was reached */
    uint32_t bad;    /* evaluations since that did not beat `counted` */
    double lr_scale; /* factor of all learning rates */
} tn_early_stopping_state;

typedef struct tn_run_state {
    tn_progress progress; /* counts of the epoch that runs */
    uint64_t steps;
    uint64_t samples;    /* records consumed since the start */
    uint64_t epoch_step; /* steps when this epoch began; 0: at the first, or not known */
    bool begun;          /* the run began with weights from elsewhere, as in tn_manifest */
    uint32_t begun_crc;
    tn_past *past;       /* a resume fills it in; NULL: nobody asks */
    const char *monitor; /* metric that patience watches; NULL: none */
    tn_early_stopping_state patience;
    const tn_epoch_parts *data;   /* parts of the epoch that runs; NULL: none was begun */
    tn_epoch_position stand;      /* after a resume: where in the epoch, until the reader is open */
    const tn_manifest_part *part; /* parts by a ledger, lent; NULL: they follow from `progress` */
    uint32_t n_parts;             /* items of `part` */
    uint64_t best_ordinal;        /* checkpoint that holds the best model; 0: none */
    bool owes_best;               /* after a resume: there is one, and the weights are not its */
    bool eval_owed;               /* an evaluation due at this step was stopped by a signal */
    tn_manifest_days days;        /* day and epoch stay until the next one begins */
    tn_manifest_export export;    /* due: of the newest checkpoint, or what is saved now */
} tn_run_state;
