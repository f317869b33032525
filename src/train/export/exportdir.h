/* exportdir.h - the folder of an export while it is written; part of export.c.
 *
 *     export/<model id>.<random>.tmp    being written: it is locked, so that nobody takes it away
 *     export/<model id>                 whole: renamed when every file in it was synced
 *
 *     TN_TRY(tn_exportdir_begin(&d, "export", model_id, err));
 *     ..                                               files into d.tmp
 *     TN_TRY(tn_exportdir_settle(&d, &existed, err));
 *     tn_exportdir_end(&d, err);                       always; removes what was not settled
 *
 * What a killed export left behind is removed when the next one begins; a folder without a file
 * stays, since who made it may be about to lock it.
 */
#ifndef TN_TRAIN_EXPORTDIR_H
#define TN_TRAIN_EXPORTDIR_H

#include "base/file/file.h"

typedef struct tn_exportdir {
    char tmp[TN_PATH_SIZE];
    char path[TN_PATH_SIZE];
    tn_lock *lock; /* NULL: this disk knows no locks */
    bool made;     /* tmp is there */
} tn_exportdir;

/* After a failure only tn_exportdir_end is left, as after all others. */
tn_status tn_exportdir_begin(tn_exportdir *d, const char *to, const char *model_id,
                             tn_error *err) TN_MUST_USE;

/* Gives the folder its name. *existed: an equal one had it, which stays; one that is not equal is
 * TN_E_CKPT. */
tn_status tn_exportdir_settle(tn_exportdir *d, bool *existed, tn_error *err) TN_MUST_USE;

/* err: of the failure that led here, which gets a word when something is left behind; or NULL. */
void tn_exportdir_end(tn_exportdir *d, tn_error *err);

#endif
