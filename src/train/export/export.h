/* export.h - from a checkpoint to what an online service needs: one directory, never mixed up.
 *
 *     export/<model_id>/    model.json + dense.safetensors    the graph, for libtnet (serve/tnet.h)
 *                           graph.onnx                        the same graph, when asked for
 *                           dict.tnd                          key -> row, by mmap (dict/dict.h)
 *                           dict.tsv                          the same as text, when asked for
 *                           dict.resp                         .. as commands for Redis, likewise
 *                           EXPORT.json                       every file with size and crc
 *
 * model_id names what was learned (tn_ckpt_model_id), so equal models have equal ids. Every file
 * holds it and a loader that meets two refuses. All of it is written into
 * `<model_id>.<session>.tmp`, EXPORT.json last, then renamed. An export that is there already and
 * whole is left as it is.
 *
 * A run that publishes while it trains (train/run/publisher.h) exports `aside`: the rows come from
 * the files of the checkpoint, partition by partition, and no second table is in memory. The
 * bytes are the same. A file beside its exports names the newest:
 *
 *     export/LATEST             "<model id>\n"
 */
#pragma once

#include "base/file/file.h"
#include "train/export/export_loss.h"

#include <stdatomic.h>

typedef struct tn_binder tn_binder;
typedef struct tn_model_plan tn_model_plan;
typedef struct tn_run_text tn_run_text;

typedef struct tn_export_request {
    const char *checkpoint;  /* a checkpoint, or a run directory; see tn_checkpoint_load */
    const char *to;          /* the folder of exports; NULL: export.to */
    const char *delta_from;  /* id of an export in that folder: the dictionary holds what changed
                                since and needs it beside; NULL: all rows */
    const char *calibration; /* a file of serve/calibration_file.h, fitted on this model; NULL: with
                                eval.calibrate what the run has left for it, which is logged; else
                                none, and the bytes are those of ever */
    const tn_binder *binder;
    const tn_run_text *text; /* the run's, when the plan is for several processes; else NULL */
    bool *told_elsewhere;    /* as in tn_watch, of that run; NULL: nobody asks */
    const atomic_bool *stop; /* true: remove what is half made, TN_E_STOPPED; NULL: nobody asks */
    bool aside; /* beside a run: one process, one thread; `checkpoint` is a full one, not a run */
} tn_export_request;

typedef struct tn_exported {
    char path[TN_PATH_SIZE]; /* export/<model_id> */
    uint64_t step, rows, bytes;
    tn_export_loss loss; /* bytes 0: there is no dict.tnd */
    double seconds;
    uint32_t day; /* the last one that it has learned; 0: of no day */
    char model_id[33];
    bool existed; /* it was there already */
} tn_exported;

/* Loads the checkpoint into a worker of its own and writes. Of several processes this is rank 0,
 * and every other one calls tn_follower_serve: each loads its part, and the bytes are those that
 * one process writes. TN_E_LIMIT: the dictionary loses more than export.loss_max. TN_E_CKPT,
 * TN_E_IO, TN_E_CONFIG, TN_E_PEER. */
tn_status tn_export(const tn_model_plan *plan, const tn_export_request *request, tn_exported *out,
                    tn_error *err) TN_MUST_USE;

/* Whether the file `name` of a folder of exports, as LATEST, names this one; and writes it, as a
 * whole. */
bool tn_export_names(const char *folder, const char *name, const char *model_id);
tn_status tn_export_set_name(const char *folder, const char *name, const char *model_id,
                             tn_error *err) TN_MUST_USE;
