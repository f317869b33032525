/* import.h - a model from files instead of a checkpoint: `checkpoint.from: {rows: dict.tsv, dense:
 * x.safetensors}`.
 *
 * rows is a dump of tnet-export with `export.state: true` (without states a rule starts fresh),
 * dense holds the parameters by name. Names, shapes and columns that do not fit are listed,
 * TN_E_CKPT.
 */
#ifndef TN_TRAIN_IMPORT_H
#define TN_TRAIN_IMPORT_H

#include "base/core/error.h"
#include "config/tree.h"

typedef struct tn_worker tn_worker;

tn_status tn_import(const tn_tree *from, tn_worker *w, tn_error *err) TN_MUST_USE;

#endif
