/* export_target.h - where exports go: a folder, or, when that is a URI, a folder beside the
 * checkpoints, whose files are sent.
 *
 *     export.to: s3://models/ctr            <run.dir>/upload/<model id>/    dict.tnd model.json ..
 *                                             |  as it is, EXPORT.json last
 *                                             v
 *                                           s3://models/ctr/<model id>/     LATEST after it
 *
 *     TN_TRY(tn_export_target_open(&t, to, run, err));
 *     request.to = t.folder;  tn_export(..);
 *     TN_TRY(t.upload->send(&t, made.model_id, stop, &sent, err));    with t.remote
 *     tn_export_target_close(&t);
 *
 * A reader that looks for EXPORT.json finds all of an export or none. One that is there already and
 * whole is left as it is. What was sent stays in the local folder, since deltas are made of it,
 * until a later export holds all rows (prune); what is gone is fetched back. With a folder in place
 * of a URI `folder` is that one, and nothing is sent or removed. The row of uploads.def, if any,
 * sends the files. One thread at a time.
 */
#pragma once

#include "base/file/file.h"

#include <stdatomic.h>

typedef struct tn_remote tn_remote; /* io/source/remote.h */
typedef struct tn_run tn_run;       /* train/config/run.h */
typedef struct tn_upload tn_upload;

typedef struct tn_export_target {
    tn_remote *remote;       /* owned; NULL: `folder` is where exports stay */
    const tn_upload *upload; /* with `remote` */
    const char *to;          /* must outlive it */
    char folder[TN_PATH_SIZE];
} tn_export_target;

/* All need t->remote. */
struct tn_upload {
    /* Sends the export of this id from `folder`; *sent: it was not there before. TN_E_CKPT: another
     * one is there by this name. TN_E_IO, TN_E_STOPPED: EXPORT.json is not there, and sending again
     * goes on. */
    tn_status (*send)(const tn_export_target *t, const char *model_id, const atomic_bool *stop,
                      bool *sent, tn_error *err);
    /* Sends LATEST (tn_export_set_name) from `folder`. */
    tn_status (*send_latest)(const tn_export_target *t, const atomic_bool *stop, tn_error *err);
    tn_status (*fetch_base)(const tn_export_target *t, const char *model_id, tn_error *err);
    /* Removes from `folder` all that was sent but the export `model_id`, which holds all rows. */
    void (*prune)(const tn_export_target *t, const char *model_id);
};

/* TN_E_CONFIG: a URI that is not written to, no libcurl, secrets that cannot be read, a build that
 * sends nothing. After a failure there is nothing to close. */
tn_status tn_export_target_open(tn_export_target *t, const char *to, const tn_run *run,
                                tn_error *err) TN_MUST_USE;
void tn_export_target_close(tn_export_target *t); /* also of zeros */

/* Before a delta since the export `model_id` is made: what of its chain is not in `folder` any
 * more, or damaged there, is fetched from where it was sent, and compared with its EXPORT.json.
 * Does nothing with a folder in place of a URI, or what is no id. TN_E_CKPT: it is in neither of
 * both, or damaged there, or another model's; TN_E_IO, TN_E_STOPPED. */
tn_status tn_export_fetch_base(const tn_export_target *t, const char *model_id,
                               tn_error *err) TN_MUST_USE;
