/* import.h - what a new run begins with, `checkpoint.from`: another checkpoint (warm_start.h), a
 * model of another program (weight_source.h), or files, {rows: dict.tsv, dense: x.safetensors}.
 *
 * rows is a dump of tnet-export with `export.state: true` (without states a rule starts fresh),
 * dense holds the parameters by name. Names, shapes and columns that do not fit are listed,
 * TN_E_CKPT.
 */
#pragma once

#include "base/core/text.h"
#include "config/tree.h"

typedef struct tn_begun tn_begun; /* train/begin/begun.h */
typedef struct tn_worker tn_worker;

/* `begun` (may be NULL) gets what was taken. */
tn_status tn_import(const tn_tree *from, tn_worker *w, tn_begun *begun, tn_error *err) TN_MUST_USE;

/* Names of a file that do not fit, some of them, for one message. */
typedef struct tn_misfits {
    tn_text text;
    uint32_t n;
} tn_misfits;

/* `what` is a few words before the name: "no column". */
void tn_misfits_add(tn_misfits *m, const char *what, const char *name);
/* TN_OK when there are none, else TN_E_CKPT. The list is empty then. */
tn_status tn_misfits_fail(tn_misfits *m, const char *path, tn_error *err) TN_MUST_USE;
