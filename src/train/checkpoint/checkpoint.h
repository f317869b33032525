/* checkpoint.h - one moment of everything: table, dense weights, optimizer state, progress,
 * metrics.
 *
 *     TN_TRY(tn_checkpoints_begin(c, w, &want, err));      between two steps: takes the moment
 *     .. steps ..                                          a thread of its own writes
 *     TN_TRY(tn_checkpoints_end(c, &saved, err));          waits for it
 *
 * Bytes in docs/formats.md, the order of writing in train/checkpoint/ckptdir.h. Loading tries the
 * newest first and falls back to the one before when its bytes are wrong (TN_E_CKPT if none is
 * whole). A checkpoint that cannot be read (TN_E_IO), or not by this version (TN_E_CKPT), ends the
 * loading; so does one whose model differs, and the differences are listed.
 */
#pragma once

#include "base/core/error.h"
#include "base/file/file.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_metrics tn_metrics;
typedef struct tn_arena tn_arena;               /* base/core/arena.h */
typedef struct tn_learned_days tn_learned_days; /* train/config/days.h */
typedef struct tn_valid_rows tn_valid_rows;     /* train/config/days.h */
typedef struct tn_model_plan tn_model_plan;
typedef struct tn_run tn_run;
typedef struct tn_run_state tn_run_state;
typedef struct tn_run_text tn_run_text;
typedef struct tn_text tn_text;
typedef struct tn_worker tn_worker;
struct tn_ckpt_peers;

typedef struct tn_checkpoints tn_checkpoints;

typedef struct tn_saved {
    char name[32]; /* ckpt-42 */
    uint64_t ordinal;
    uint64_t run_id;
    uint64_t bytes;   /* size of its files; once loaded, of rows and dense values of the full one */
    uint64_t rows;    /* rows of the model */
    uint64_t written; /* rows in the files of this one */
    uint64_t step, samples;
    uint32_t epoch;
    uint32_t deltas; /* up from the full one; 0: it is one */
    double seconds;
    double stall; /* seconds of these in which training paused */
    uint32_t crc; /* checksum of the manifest */
} tn_saved;

enum { TN_CKPT_DELTAS_MAX = 64 }; /* after so many the next one is full */

/* Takes the run directory (made when it is missing): lock, owner, left-overs removed. TN_E_CKPT: in
 * use. */
tn_status tn_checkpoints_open(tn_checkpoints **out, const tn_model_plan *plan,
                              const tn_run_text *text, tn_error *err) TN_MUST_USE;
void tn_checkpoints_close(tn_checkpoints *c); /* NULL is fine */
const char *tn_checkpoints_dir(const tn_checkpoints *c);
uint64_t tn_checkpoints_run_id(const tn_checkpoints *c);

/* From now on `c` saves and loads with others. Copied. Needed when w->shares has several peers. */
void tn_checkpoints_set_peers(tn_checkpoints *c, const struct tn_ckpt_peers *peers);

/* A request to save. `delta`: only changes since the checkpoint before, if these are known
 * (checkpoint.delta_every). */
typedef struct tn_ckpt_want {
    const tn_run_state *state;
    const tn_metrics *metrics;
    bool delta;
    bool later;     /* nothing is written before tn_checkpoints_end, if one process has few rows */
    bool keeps_all; /* nothing is removed: somebody may be reading an old one */
} tn_ckpt_want;

/* Begins to write `w` and `want` as they are now, while steps go on; the caller must end it. Then
 * old checkpoints are removed, but for `keep` and state->best_ordinal. One save at a time. */
tn_status tn_checkpoints_begin(tn_checkpoints *c, tn_worker *w, const tn_ckpt_want *want,
                               tn_error *err) TN_MUST_USE;
bool tn_checkpoints_written(const tn_checkpoints *c); /* tn_checkpoints_end will not wait */

bool tn_checkpoints_rests(const tn_checkpoints *c); /* nothing is written before the end */

/* A save that rests leaves nothing: tn_checkpoints_end is TN_E_STOPPED. Any other save goes on. */
void tn_checkpoints_drop(tn_checkpoints *c);
tn_status tn_checkpoints_end(tn_checkpoints *c, tn_saved *out, tn_error *err) TN_MUST_USE;

/* The disk before the first save. */
typedef struct tn_ckpt_room {
    uint64_t least;  /* bytes that every full checkpoint will take */
    uint64_t unused; /* bytes of the disk */
    uint32_t wanted; /* checkpoints that are still to come before the oldest goes */
} tn_ckpt_room;

/* `from` says what `w` was loaded from; its ordinal 0: begun anew. */
tn_status tn_checkpoints_room(const tn_checkpoints *c, const tn_worker *w, const tn_saved *from,
                              tn_ckpt_room *out, tn_error *err) TN_MUST_USE;

/* Whether the last save failed because the disk refused rows. Rows are not kept once they are
 * written, so only another save can try that file again. */
bool tn_checkpoints_lost_rows(const tn_checkpoints *c);

/* As checkpoint.resume says, into `w`, `state` and `metrics` (which may be NULL). which->ordinal is
 * 0 when there was nothing to load. */
tn_status tn_checkpoints_resume(tn_checkpoints *c, tn_worker *w, tn_run_state *state,
                                tn_metrics *metrics, tn_saved *which, tn_error *err) TN_MUST_USE;

/* Weights and optimizer state of one ordinal; `state` is left alone. On failure the model in memory
 * is lost; a checkpoint that is damaged is set aside. */
tn_status tn_checkpoints_restore(tn_checkpoints *c, tn_worker *w, uint64_t ordinal,
                                 tn_error *err) TN_MUST_USE;

/* Appends the configuration of the checkpoint at `path`, or of the newest in a run directory;
 * nothing where there is none, or it cannot be read: its loader reports that. */
void tn_checkpoint_config(const char *path, tn_text *out);
void tn_checkpoint_config_path(const char *path,
                               tn_text *out); /* its file, which may not be there */

/* The run directory of the checkpoint at `path`, or `path` where that is one. */
tn_status tn_checkpoint_run_dir(const char *path, char out[TN_PATH_SIZE],
                                tn_error *err) TN_MUST_USE;

/* Reads the days that the checkpoint at `path`, or the newest in a run directory, has learned. */
void tn_checkpoint_days_at(const char *path, tn_learned_days *out);

/* Whether it has learned this day. */
bool tn_checkpoint_has_day(const char *path, uint32_t day);

/* The rows to judge it by, as tn_valid_rows_find (train/config/days.h). */
tn_status tn_checkpoint_valid_rows(const char *path, const tn_run *run, tn_arena *arena,
                                   tn_valid_rows *out, tn_error *err) TN_MUST_USE;

/* Reads the days and the step (or NULL) of the checkpoint that the run goes on from, by its
 * manifest alone; nothing where there is none, or it cannot be read: its loader reports that. */
void tn_checkpoint_days(const tn_run *run, tn_learned_days *out, uint64_t *step);

/* For a run that finds nothing to learn: does what one that was killed has left undone in the run
 * directory (ckptdir.h), unless another is at work there. */
void tn_checkpoint_settle(const tn_run *run);

/* Loads a checkpoint for evaluation or export without taking the run directory: `path` is a
 * checkpoint, or a run directory whose newest good one is taken. */
tn_status tn_checkpoint_load(const char *path, tn_worker *w, tn_saved *which,
                             tn_error *err) TN_MUST_USE;
/* The same of the full checkpoint at `path` without its rows, which the caller reads from its
 * files.
 */
tn_status tn_checkpoint_load_dense(const char *path, tn_worker *w, tn_saved *which,
                                   tn_error *err) TN_MUST_USE;
/* Adds the path of the checkpoint that such a load has found. */
void tn_saved_path(const char *path, const tn_saved *which, tn_text *out);
