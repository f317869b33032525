/* export_folder.h - the folder of an export while it is written, or fetched.
 *
 *     export/<model id>.<random>.tmp    being written: it is locked, so that nobody takes it away
 *     export/<model id>                 whole: renamed when every file in it was synced
 *
 *     tn_status status = tn_export_folder_begin(&d, to, model_id, err);
 *     ..                                            files into d.tmp, EXPORT.json last
 *     status = tn_export_folder_settle(&d, &existed, err);
 *     tn_export_folder_end(&d, err);                also after a failure
 *
 * The next export that begins removes the folders of killed ones. It locks each first; an export
 * that loses its folder this way makes another. One thread at a time.
 */
#pragma once

#include "base/file/file.h"

typedef struct tn_export_folder {
    char tmp[TN_PATH_SIZE];
    char path[TN_PATH_SIZE];
    tn_lock *lock; /* NULL: this disk knows no locks */
    bool made;     /* tmp is there */
} tn_export_folder;

/* Whether a name is a model's id: 32 hex digits. */
bool tn_export_is_id(const char *name);

/* Below `to`, which is made. TN_E_USAGE, TN_E_IO. */
tn_status tn_export_folder_begin(tn_export_folder *d, const char *to, const char *model_id,
                                 tn_error *err) TN_MUST_USE;
/* Gives the folder its name. *existed: an equal one had the name and stays; TN_E_CKPT: a different
 * one has it. */
tn_status tn_export_folder_sweep(const char *to, tn_error *err) TN_MUST_USE;
/* Gives the folder its name. *existed: an equal one had it and stays; another one is TN_E_CKPT. */
tn_status tn_export_folder_settle(tn_export_folder *d, bool *existed, tn_error *err) TN_MUST_USE;
/* `err`: the failure that led here, which says so if something is left over; or NULL. */
void tn_export_folder_end(tn_export_folder *d, tn_error *err);
