/* data_checks.h - one part of the data against another: what makes figures too good to be true.
 *
 *     a slot that reads the column of the label     a fault of the configuration
 *     a file of data.valid that is one of           said; nothing is concluded from its rows
 *     data.train
 *
 * Files are the same by path, through links, by device and inode, or when they hold the same bytes:
 * all of a small file, of a large one pieces of all of it. Any thread.
 */
#pragma once

#include <stdbool.h>

typedef struct tn_binder tn_binder;             /* config/values.h */
typedef struct tn_data_opts tn_data_opts;       /* io/schema/dataopts.h */
typedef struct tn_learned_days tn_learned_days; /* train/config/days.h */
typedef struct tn_strs tn_strs;                 /* config/values.h */
typedef struct tn_tables tn_tables;
typedef struct tn_text tn_text; /* base/core/text.h */
typedef struct tn_tree tn_tree; /* config/tree.h */

/* Returns whether a file of `paths` is one that the model is trained on: of data.train, or of a day
 * of it that is `learned`; when that is NULL or not used, also of the days that data.days names.
 * `which` gets "'a' is also in data.train", with ": it holds the bytes of 'b'" when names differ. A
 * file that cannot be found is passed over: its reader reports it. */
bool tn_data_is_trained(const tn_data_opts *data, const tn_learned_days *learned,
                        const tn_strs *paths, tn_text *which);

/* Slots that read the column of the label or of the weight, which data.label_slots refuses. Faults
 * go to b->diag. */
void tn_data_check_slots(const tn_binder *b, const tn_data_opts *data, const tn_tables *slots);
