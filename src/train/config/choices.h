/* choices.h - what a configuration leaves to the data, decided before the run begins.
 *
 *     train.batch: auto          256 rows where a pass has fewer than 100,000 (without
 *                                data.valid 250,000), else 1024
 *     train.epochs: auto         one pass where it has 2,000 steps or more; else until
 *                                valid.logloss (of other targets tn_loss.watched) is not better
 *                                twice in a row, at most 20 or as many as make 1,000 steps, up to
 *                                100; without data.valid as many as make 2,000 steps, up to 4, of
 *                                lr up to 20
 *     data.shuffle: auto         65536 rows, or 262144 if that holds all of a pass; where they are
 *                                in the order of their labels as many as a gigabyte holds; with
 *                                loss pairwise 0, so that rows of a group stay together
 *     train.value_sizes          the sizes of values x_j that are not about 1, but for rows
 *                                of length 1 (tf-idf) that have many values
 *     train.sparse               lr, fm, fwfm on rows of length 1: larger steps, less L2, no sizes;
 *                                else a smaller rate of vectors whose pairs of more than 10 values
 *                                add up
 *     transform: quantiles       bounds of buckets, from the first 262,144 rows of data.train; 20,
 *                                of fewer than 4,000 rows one for 200, but at least 5
 *     as: value                  the same buckets, in models without a numeric input
 *
 * Choices become part of the configuration, with the origin "chosen by the data": they are
 * in --print-config and in config.yaml of every checkpoint. A run that goes on, and whoever reads a
 * checkpoint, takes the choices from there, so that other data never change a model under way. Each
 * process of a group chooses for itself, from the same files, the same. Depends on data and
 * configuration alone.
 */
#pragma once

#include "base/core/error.h"

typedef struct tn_binder tn_binder; /* config/values.h */
typedef struct tn_run tn_run;       /* train/config/run.h */
typedef struct tn_text tn_text;     /* base/core/text.h */
typedef struct tn_tree tn_tree;     /* config/tree.h */

/* Replaces *tree, the merged configuration that `run` was bound from, and the members of `run` that
 * were left open, and notes which (epochs_chosen ..). `past`: config.yaml of the checkpoint that is
 * read; "": there is none. `said` gets a line for the user about what was chosen now, or stays as
 * it is. TN_E_DATA and TN_E_IO: data.train cannot be read; TN_E_CONFIG: faults in b->diag. */
tn_status tn_choices_make(const tn_binder *b, const char *past, const tn_tree **tree, tn_run *run,
                          tn_text *said, tn_error *err) TN_MUST_USE;
