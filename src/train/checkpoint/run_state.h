/* run_state.h - the position of a run, in its data too: what a checkpoint keeps beside the weights.
 *
 * A checkpoint keeps tn_run_kept as a whole, and a resume restores it so: whoever adds to the state
 * of a run adds a member and a row of the table in run_state.c.
 *
 * Which files the data are, and whether they are still the same, train/checkpoint/sources.h says;
 * here only how they were cut into parts counts. The state is owned by the trainer, or by the
 * loader of a checkpoint. One thread.
 */
#pragma once

#include "io/read/reader.h"
#include "ps/snapshot/manifest.h"
#include "train/checkpoint/sources.h"
#include "train/config/days.h"

enum { TN_MODEL_ID_TEXT = 33 };

/* The sources and parts of an epoch. */
typedef struct tn_epoch_parts {
    const tn_sources *sources; /* when the epoch was opened; NULL: nobody has looked */
    uint32_t n_parts;
    const tn_part_info *part; /* in the order of this epoch */
    uint32_t cut_for;         /* ranks, as in tn_reader_opts */
} tn_epoch_parts;

typedef enum tn_part_state { TN_PART_FREE, TN_PART_DEALT, TN_PART_DONE } tn_part_state;

/* How far a part of an epoch is learned. */
typedef struct tn_epoch_part {
    uint32_t source;
    uint64_t begin, end; /* bytes */
    tn_part_state state;
    uint32_t attempt;  /* not of a part that is done */
    uint64_t position; /* records */
} tn_epoch_part;

/* Copies the parts of the reader into the arena. `sources` must outlive it, or is NULL. */
const tn_epoch_parts *tn_epoch_parts_of(const tn_reader *reader, const tn_sources *sources,
                                        tn_arena *arena);

/* Lists the parts for the manifest, of ranks whose positions are at[rank]; adjacent parts that are
 * done are merged. Lives in the arena. NULL: no epoch was begun. */
tn_epoch_part *tn_epoch_parts_manifest(const tn_epoch_parts *map, const tn_progress *at,
                                       uint32_t n_ranks, tn_arena *arena, uint32_t *n);

/* The position in an epoch. One reader is in one part, after those that are done; several readers
 * leave any pattern of parts (`shared`, cluster/ledger/ledger.h). */
typedef struct tn_epoch_position {
    uint32_t epoch;
    uint32_t n_parts;    /* 0: not within an epoch */
    tn_epoch_part *part; /* owned, but in the sections of a manifest */
    bool shared;
    uint32_t shuffle; /* if shared: data.shuffle, which positions of parts depend on */
    uint32_t cut_for; /* if shared: ranks, as in tn_reader_opts; 0: one */
} tn_epoch_position;

/* Copies `from` and its parts. On failure *out is empty. */
tn_status tn_epoch_position_init(tn_epoch_position *out, const tn_epoch_position *from,
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
    const char *monitor; /* metric that is watched; NULL: none */
    bool seen;           /* there is a best */
    double best;         /* the monitor's value */
    double counted;      /* if seen: the best but for early evaluations; NAN: none yet */
    uint64_t step;       /* when `best` was reached */
    uint32_t bad;        /* evaluations since that did not beat `counted` */
    double lr_scale;     /* factor of all learning rates */
} tn_early_stopping_state;

/* The exports that a run makes while it trains. */
typedef struct tn_publish_state {
    bool due; /* the newest checkpoint, or the one that is saved now, is to be exported */
    char newest[TN_MODEL_ID_TEXT]; /* model id of the export before that; "": none */
    bool awaits;             /* due, once its calibration is fitted, which a signal has ended */
    const char *calibration; /* JSON (serve/calibration_file.h) for this model; NULL: none */
} tn_publish_state;

typedef struct tn_run_kept {
    uint64_t epoch_step;  /* steps when this epoch began; 0: at the first, or not known */
    bool begun;           /* the run began with weights that are not its own */
    uint32_t begun_crc;   /* if begun: of that checkpoint's manifest; 0: it began with files */
    tn_learned_days days; /* day and epoch stay until the next one begins */
    tn_publish_state export;
    tn_early_stopping_state patience;
    bool eval_owed; /* an evaluation due at this step was stopped by a signal */
} tn_run_kept;

/* The sections of a manifest that are of the run. */
typedef struct tn_run_sections {
    tn_epoch_position progress;
    tn_run_kept kept;
    uint64_t seed;
    tn_doc_raw unused; /* "requests" and "logs" have a place in the format only */
    const char *cpu, *blas;
} tn_run_sections;

extern const tn_doc_row tn_run_sections_rows[];

/* Returns those of a manifest that was read (tn_ckpt_read_manifest), or of a moment of rank 0. */
const tn_run_sections *tn_run_sections_of(const tn_manifest *m);

typedef struct tn_run_state {
    tn_progress progress; /* counts of the epoch that runs */
    uint64_t steps;
    uint64_t samples; /* records consumed since the start */
    tn_run_kept kept;
    tn_past *past;              /* a resume fills it in; NULL: nobody asks */
    const tn_epoch_parts *data; /* parts of the epoch that runs; NULL: none was begun */
    tn_epoch_position stand;    /* after a resume: where in the epoch, until the reader is open */
    const tn_epoch_part *part;  /* parts by a ledger, lent; NULL: they follow from `progress` */
    uint32_t n_parts;           /* items of `part` */
    uint64_t best_ordinal;      /* checkpoint that holds the best model; 0: none */
    bool owes_best;             /* after a resume: there is one, and the weights are not its */
} tn_run_state;
