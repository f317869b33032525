/* ckpt_peers.h - one checkpoint by several processes: each adds what it owns to the same folder.
 *
 *     rank 0                                       every other rank
 *     takes the moment, makes the folder
 *     announce(order)     ---------------------->  tn_ckptshare_begin, between the same two steps
 *     writes its own files                         a thread of its own writes its files
 *     collect(files)      <----------------------  tn_ckptshare_end: what it wrote
 *     MANIFEST, rename: it is saved                tn_ckptshare_free
 *
 * Every rank writes the shard files of its partitions and the dense file of its range. Rank 0 also
 * writes config, sources and metrics, and the manifest, without which there is no checkpoint. The
 * run directory must be one folder for all. The caller carries orders and answers. A checkpoint is
 * loaded the same way: rank 0 says which one, and each rank reads what it owns, whatever number of
 * ranks wrote it.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_ckpt_files tn_ckpt_files; /* train/checkpoint/ckptfiles.h */
typedef struct tn_ckpt_wrote tn_ckpt_wrote;
typedef struct tn_epoch_position tn_epoch_position;
typedef struct tn_worker tn_worker;

/* The order of rank 0 to all others when a save begins. */
typedef struct tn_ckpt_order {
    char folder[64]; /* in the run directory: ckpt-42.<session>.tmp */
    uint64_t ordinal;
    uint64_t run_id, step;
    uint64_t base_step; /* step of a delta's predecessor */
    bool delta;         /* only rows that changed since the save or the load before */
} tn_ckpt_order;

/* ---- rank 0 ---- */

/* How rank 0 reaches the others. Any failure fails the save, or the load, with the same status. */
typedef struct tn_ckpt_peers {
    /* On the trainer's thread, inside tn_checkpoints_begin: all others are to begin. */
    tn_status (*announce)(void *arg, const tn_ckpt_order *order, tn_error *err);
    /* On the thread that saves: waits until all have written, tn_ckpt_files_add for each. TN_E_IO:
     * a disk refused rows, another save may be tried. */
    tn_status (*collect)(void *arg, tn_ckpt_files *files, tn_error *err);
    /* On either thread: a save that was announced has failed, its folder is removed next. When it
     * returns, no living rank writes there any more. */
    void (*abandon)(void *arg);
    /* On the trainer's thread, when rank 0 has read its part of the checkpoint at `path`: all
     * others are to do the same (tn_ckptshare_load). TN_E_CKPT: it is damaged, and the one before
     * is tried when that is allowed. */
    tn_status (*load)(void *arg, const char *path, bool goes_on, tn_error *err);
    void *arg;
} tn_ckpt_peers;

/* ---- the others ---- */

typedef struct tn_ckptshare tn_ckptshare;

/* Takes the moment of `w` and begins to write into `run_dir`/order->folder while steps go on. One
 * at a time, between two steps. On failure *out is NULL. TN_E_IO: the folder is not there.
 * TN_E_MEMORY also when a delta is asked for and what changed is not known. `w` must outlive it. */
tn_status tn_ckptshare_begin(tn_ckptshare **out, tn_worker *w, const char *run_dir,
                             const tn_ckpt_order *order, tn_error *err) TN_MUST_USE;
bool tn_ckptshare_written(const tn_ckptshare *s); /* tn_ckptshare_end will not wait */

/* Waits until all is written; to be called once. *out is lent until free. */
tn_status tn_ckptshare_end(tn_ckptshare *s, tn_ckpt_wrote *out, tn_error *err) TN_MUST_USE;
void tn_ckptshare_free(tn_ckptshare *s); /* waits, if nobody has; NULL is fine */

/* Reads what `w` owns of the checkpoint at `path` and of its chain. A run that goes on passes
 * `stand`, which becomes the place in the epoch: then steps are those of the checkpoint, and deltas
 * may be based on it. NULL: only the model is loaded. TN_E_CKPT: rows are damaged; names the file.
 * TN_E_IO: they cannot be read, or the files are not those that rank 0 has found whole. */
tn_status tn_ckptshare_load(tn_worker *w, const char *path, tn_epoch_position *stand,
                            tn_error *err) TN_MUST_USE;
