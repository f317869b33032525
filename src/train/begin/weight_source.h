/* weight_source.h - models of other programs that a run can begin with, by checkpoint.from.
 *
 * To add one: a constant tn_weight_source_KEY of a folder of src/extra, whose row in
 * weight_sources.def is TN_WEIGHT_SOURCE(KEY). train/begin/incoming_row.h has what it needs to add
 * rows to a table.
 */
#pragma once

#include "base/core/error.h"

typedef struct tn_begun tn_begun;   /* train/begin/begun.h */
typedef struct tn_tree tn_tree;     /* config/tree.h */
typedef struct tn_worker tn_worker; /* train/step/worker.h */

typedef struct tn_weight_source {
    const char *key; /* the member of checkpoint.from that names it */
    const char
        *value; /* names the member's value in messages: "FILE"; NULL: the member is a file of
                        * a model of TNet, which `take` finds there */
    /* Fills a new worker from `from`, the whole of checkpoint.from. `begun` (may be NULL) gets what
     * was taken. TN_E_CONFIG: a fault in `from`; TN_E_CKPT, TN_E_DATA: one in the files. */
    tn_status (*take)(const tn_tree *from, tn_worker *w, tn_begun *begun, tn_error *err);
} tn_weight_source;

extern const tn_weight_source *const tn_all_weight_sources[]; /* NULL-terminated */
