/* import_inside.h - what import.c and import_rows.c share. */
#ifndef TN_TRAIN_IMPORT_INSIDE_H
#define TN_TRAIN_IMPORT_INSIDE_H

#include "train/step/worker.h"

/* What does not fit, up to some; all of it is one message. */
typedef struct tn_misfits {
    tn_text text;
    uint32_t n;
} tn_misfits;

/* `what` is a few words before the name: "no column". */
void tn_misfit(tn_misfits *m, const char *what, const char *name);

/* TN_OK when there are none. The list is empty then. */
tn_status tn_misfits_tell(tn_misfits *m, const char *path, tn_error *err) TN_MUST_USE;

/* The rows of the dump at `path` into the table of `w`. */
tn_status tn_restore_rows(const char *path, tn_worker *w, tn_error *err) TN_MUST_USE;

#endif
