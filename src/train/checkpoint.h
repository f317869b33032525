/* checkpoint.h - one moment of everything: table, dense weights, optimizer state, progress,
 * metrics.
 *
 * Bytes in docs/formats.md, the order of writing in train/ckptdir.h. Loading tries the newest first
 * and falls back to the one before; a checkpoint whose model differs is refused with the
 * differences listed.
 */
#ifndef TN_TRAIN_CHECKPOINT_H
#define TN_TRAIN_CHECKPOINT_H

#include "train/metrics.h"
#include "train/trainer.h"

typedef struct tn_checkpoints tn_checkpoints;

typedef struct tn_saved {
    char name[32]; /* ckpt-42 */
    uint64_t ordinal;
    uint64_t bytes, rows;
    uint64_t step, samples;
    uint32_t epoch;
    double seconds;
    uint32_t crc; /* of the manifest */
} tn_saved;

/* run.dir, or where runs of this name are kept. */
void tn_run_dir(const tn_run_opts *run, tn_text *out);

/* Takes the run directory (made when it is missing): lock, owner, left-overs removed. TN_E_CKPT: in
 * use. */
tn_status tn_checkpoints_open(tn_checkpoints **out, const tn_blueprint *plan,
                              const tn_run_text *text, tn_error *err) TN_MUST_USE;
void tn_checkpoints_close(tn_checkpoints *c); /* NULL is fine */
const char *tn_checkpoints_dir(const tn_checkpoints *c);
uint64_t tn_checkpoints_run_id(const tn_checkpoints *c);

/* Writes all of `w` and `state`; then prunes to `keep`, never state->best_ordinal. */
tn_status tn_checkpoints_save(tn_checkpoints *c, tn_worker *w, const tn_run_state *state,
                              const tn_metrics *metrics, tn_saved *out, tn_error *err) TN_MUST_USE;

/* As checkpoint.resume says, into `w`, `state` and `metrics` (which may be NULL). which->ordinal is
 * 0 when there was nothing to load. */
tn_status tn_checkpoints_resume(tn_checkpoints *c, tn_worker *w, tn_run_state *state,
                                tn_metrics *metrics, tn_saved *which, tn_error *err) TN_MUST_USE;

/* Weights and optimizer state of one ordinal; `state` is left alone. */
tn_status tn_checkpoints_restore(tn_checkpoints *c, tn_worker *w, uint64_t ordinal,
                                 tn_error *err) TN_MUST_USE;

/* Loads a checkpoint for evaluation or export without taking the run directory: `path` is a
 * checkpoint, or a run directory whose newest good one is taken. */
tn_status tn_checkpoint_load(const char *path, tn_worker *w, tn_saved *which,
                             tn_error *err) TN_MUST_USE;

#endif
