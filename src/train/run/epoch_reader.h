/* epoch_reader.h - what a pass over the training data is made from, the same for every process of a
 * run: its reader, the factor of learning rates, the last step. */
#pragma once

#include "io/read/reader.h"

typedef struct tn_arena tn_arena;                   /* base/core/arena.h */
typedef struct tn_epoch_parts tn_epoch_parts;       /* train/checkpoint/run_state.h */
typedef struct tn_epoch_position tn_epoch_position; /* likewise */
typedef struct tn_epoch_part tn_epoch_part;         /* train/checkpoint/run_state.h */
typedef struct tn_model_plan tn_model_plan;
typedef struct tn_run tn_run;
typedef struct tn_step_prefetch tn_step_prefetch;
typedef struct tn_worker tn_worker;

/* ---- parts that several readers share ---- */

/* Deals the parts of an epoch to the reader of this process. */
typedef struct tn_epoch_dealer_ops {
    const tn_dealer *(*dealer)(const void *self); /* for one reader at a time, which it outlives */
    /* This process has learned one more batch, whose progress this is. Monotonic time. */
    void (*note)(void *self, const tn_progress *at, uint64_t now_ns);
    /* Lists for a manifest how far all parts are learned, in the arena. */
    tn_epoch_part *(*parts)(void *self, tn_arena *arena, uint32_t *n, uint64_t now_ns);
    uint32_t (*reassigned)(void *self); /* parts that were taken from a rank and given to another */
    void (*close)(void *self);          /* after the reader */
} tn_epoch_dealer_ops;

typedef struct tn_epoch_dealer {
    const tn_epoch_dealer_ops *ops; /* NULL: all parts are this reader's */
    void *self;
} tn_epoch_dealer;

/* Several readers left this of an epoch. */
typedef struct tn_epoch_dealt {
    uint32_t epoch, rank, ranks;    /* this process */
    const tn_epoch_parts *map;      /* all parts of the epoch */
    const tn_epoch_position *stand; /* within it; lent */
} tn_epoch_dealt;

void tn_epoch_dealer_close(tn_epoch_dealer *d); /* then there is none; none is fine */

/* ---- readers ---- */

/* Reads the worker's own parts of the epoch of *from, from there on. A run that goes on reads from
 * `stand` on, when that is within this epoch; `stand` is empty afterwards. If one process goes on
 * from a checkpoint of one process, *from becomes the place. Else *dealer knows which parts are
 * left for this worker, and is closed after the reader. On failure *out is NULL, and there is no
 * dealer. */
tn_status tn_epoch_reader_open(tn_step_prefetch **out, const tn_worker *w, tn_progress *from,
                               tn_epoch_position *stand, tn_epoch_dealer *dealer,
                               tn_error *err) TN_MUST_USE;

/* Reads the first rows that the worker would get by rule (tn_reader_prior), where parts are dealt
 * on request: it is not known before which rank gets which part, and there may be fewer parts than
 * ranks. They are read once more later. */
tn_status tn_epoch_reader_prior(const tn_worker *w, uint32_t epoch, tn_prior *out,
                                tn_error *err) TN_MUST_USE;

/* Ranks that an epoch is cut for, as in tn_reader_opts: those that begin it; where a run goes on
 * within it, those of the checkpoint. */
uint32_t tn_epoch_cut_for(const tn_worker *w, uint32_t epoch, const tn_epoch_position *stand);

/* Opens a reader of the parts of an epoch that `dealer` deals. On failure *out is NULL. */
tn_status tn_epoch_reader_open_dealt(tn_step_prefetch **out, const tn_worker *w, uint32_t epoch,
                                     uint32_t cut_for, const tn_dealer *dealer,
                                     tn_error *err) TN_MUST_USE;

/* The factor of every learning rate after `step` steps, by the schedule of train.optimizer. `end`:
 * where the schedule ends, when that is with the run (tn_run_end). */
double tn_learning_rate_factor(const tn_run *run, uint64_t step, uint64_t end);

/* Finds the last step of the run, at which a schedule that ends with it ends. The present epoch,
 * `epoch`, began at step `epoch_step` (0: not known, or the first). Before an epoch has been read,
 * its rows are counted or estimated (io/read/row_scan.h); after the first, its steps are known.
 * Nothing else goes into the number, so a run that goes on, and every rank of a group, finds the
 * same. TN_E_CONFIG: nobody can know. */
tn_status tn_run_end(const tn_model_plan *plan, uint32_t epoch, uint64_t epoch_step, uint64_t *out,
                     tn_error *err) TN_MUST_USE;
