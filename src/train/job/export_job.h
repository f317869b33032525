/* export_job.h - exports a model from its setup: what tnet-export and the library for training
 * share.
 *
 * The setup is loaded with `reads`, and knows its rank; the job makes its plan. Of several
 * processes every one runs the job, and rank 0 has the result. One thread.
 */
#pragma once

#include "train/export/export.h"
#include "train/job/setup.h"

/* Lent for the call. */
typedef struct tn_export_job_opts {
    const char *to;          /* folder of exports, or a URI; NULL: export.to */
    const char *delta_from;  /* see tn_export_request */
    const char *calibration; /* likewise */
    const atomic_bool *stop; /* true: end with TN_E_STOPPED; NULL: nobody asks */
} tn_export_job_opts;

/* Exports the checkpoint s->from, or the newest of the run, and says in the log what fewer bits
 * cost. TN_E_CONFIG: options that do not go together; errors of the checkpoint, of the disk, of the
 * store, of the group. */
tn_status tn_export_job_run(tn_setup *s, const tn_export_job_opts *o, tn_exported *out,
                            tn_error *err) TN_MUST_USE;
