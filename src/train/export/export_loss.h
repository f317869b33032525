/* export_loss.h - what an export's dictionary loses by keeping weights in fewer bits than a float.
 *
 *     <folder>/dict.tnd       of the export, with export.values
 *     <folder>/float32.tnd    all rows as floats, for the time of the comparison
 *
 * Both are scored on the rows to judge by (train/config/days.h) as a service would, so that nothing
 * else differs: rows below export.min_score are in neither, a calibration is in both.
 */
#pragma once

#include "base/core/error.h"
#include "train/config/days.h"
#include "train/config/run.h"

#include <stdatomic.h>

#define TN_FLOAT32_DICT "float32.tnd"

/* COPC may move by as many times as much as AUC may fall. */
enum { TN_LOSS_COPC_TIMES = 10 };

typedef struct tn_export_loss {
    uint64_t rows;            /* read from data.valid; 0: nothing was compared */
    double auc, copc;         /* figures of the export; NAN where they are not defined */
    double auc_f32, copc_f32; /* figures of the same export with floats */
    uint64_t bytes,
        bytes_f32; /* sizes of the two dictionaries; bytes_f32 0: nothing was compared */
} tn_export_loss;

/* Whether there is something to compare: fewer bits, a dictionary, clicks, and rows to judge by. */
bool tn_export_loss_wanted(const tn_run *run, const tn_valid_rows *valid);

/* Scores them twice; `bytes` are the caller's. TN_E_STOPPED: *stop; otherwise as
 * tn_evaluate_export. */
typedef struct tn_export_loss_job {
    const tn_run *run;
    const tn_valid_rows *valid;
    const char *folder;
    const atomic_bool *stop;
} tn_export_loss_job;
tn_status tn_export_loss_measure(tn_export_loss *out, const tn_export_loss_job *job,
                                 tn_error *err) TN_MUST_USE;

/* TN_E_LIMIT: more is lost than export.loss_max. What is not defined is not judged. */
tn_status tn_export_loss_check(const tn_export_loss *loss, const tn_run *run,
                               tn_error *err) TN_MUST_USE;

/* "dict.tnd 1.2 MB as int8, 31 % of float32; 5000 rows of data.valid: AUC ..", appended. */
void tn_export_loss_say(const tn_export_loss *loss, const tn_run *run, tn_text *out);
