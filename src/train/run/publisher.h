/* publisher.h - the exports that a run publishes while it trains (export.every), on a thread of its
 * own, each from a checkpoint that was saved for it.
 *
 *     a moment of export.every    the saver saves a full checkpoint, marked in its manifest
 *     it is saved                 tn_publisher_begin: training goes on, the thread writes
 *                                   <to>/<model id>  all rows, or what changed since the one before
 *                                   <to>/LATEST      names it
 *     between two steps           tn_publisher_note: a line reports it, or that it failed
 *
 * The bytes are those that tnet-export would write of the checkpoint. The first export is a full
 * one; each other is a delta on the one before, until readers would have to stack more than
 * TN_DICT_DELTAS_MAX, or a delta cannot be made: the line says why. The state of the run, and so
 * its checkpoints, name the one before: neither the clock nor what else lies in the folder
 * matters. What is in the folder is never written anew.
 *
 * One export at a time: a moment that comes earlier waits. Rows are read from the files of the
 * checkpoint, which the saver keeps meanwhile; memory is 12 bytes per row, of a delta 28. After a
 * kill the newest marked checkpoint is looked at again (tn_publisher_owe). A failure is treated as
 * that of a checkpoint, by checkpoint.on_error. Failpoints: export.begin, export.before_latest.
 * Belongs to the trainer's thread.
 */
#pragma once

#include "base/core/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tn_model_plan tn_model_plan;
typedef struct tn_report tn_report;
typedef struct tn_run tn_run;
typedef struct tn_run_state tn_run_state;

typedef struct tn_publisher tn_publisher;

/* All must outlive it. */
typedef struct tn_publisher_opts {
    const tn_model_plan *plan;
    const char *dir;         /* folder of the checkpoints */
    tn_run_state *state;     /* its export.newest is set here */
    const atomic_bool *stop; /* ends an export; NULL: nothing does */
} tn_publisher_opts;

/* *out stays NULL when export.every is not set. TN_E_USAGE: export.to cannot be a folder of
 * exports; TN_E_CONFIG: it is a URI that cannot be written to (export_target.h). */
tn_status tn_publisher_open(tn_publisher **out, const tn_publisher_opts *opts,
                            tn_error *err) TN_MUST_USE;
void tn_publisher_set_report(tn_publisher *p, tn_report *report); /* NULL is fine */

/* Waits for an export that is being written, and reports nothing of it. NULL is fine. */
void tn_publisher_close(tn_publisher *p);

/* Exports a full checkpoint, after the one that is being exported. */
tn_status tn_publisher_begin(tn_publisher *p, uint64_t ordinal, tn_error *err) TN_MUST_USE;

/* Whether a checkpoint is still needed: for an export that the state of the run does not name yet,
 * or that the process that goes on will make. NULL: false. */
bool tn_publisher_needs_checkpoints(const tn_publisher *p);

/* A run goes on from checkpoint `highest`: what was to be exported up to there and is not in the
 * folder is, in order. NULL is fine. */
tn_status tn_publisher_owe(tn_publisher *p, uint64_t highest, tn_error *err) TN_MUST_USE;

/* Whether a run directory owes an export: one that a checkpoint is marked for is not there, or was
 * not named or sent, or the end of a run that is to be published is not marked. By names and
 * manifests alone, for a command that finds nothing to learn. What cannot be read counts as paid.
 */
bool tn_publisher_is_owed(const tn_run *run);

/* Takes note of an export that is written; `end` waits for it. TN_E_STOPPED, of `end` alone: a
 * signal has ended it, and the run that goes on owes it. NULL is fine. */
tn_status tn_publisher_note(tn_publisher *p, tn_error *err) TN_MUST_USE;
tn_status tn_publisher_end(tn_publisher *p, tn_error *err) TN_MUST_USE;
