/* run_counts.h - counts of what is read and of rows that are held, which add up over readers and
 * over ranks.
 *
 *     tn_met_add_reader(&m, reader, TN_ALL_PARTS);    before a reader is closed
 *     tn_met_add(&sum, &m);                           those of another rank
 *
 * A part that a rank gives back before its end is counted by the rank that reads it to its end:
 * that reader begins at the first byte of the part, wherever in it the learning goes on.
 */
#pragma once

#include "base/core/text.h"
#include "io/read/reader.h"
#include "ps/table/table.h"

/* Counts of the readers of an epoch, and of the labels that were learned in it. */
typedef struct tn_met {
    tn_read_counts counts; /* sources: of the data, the same for all */
    tn_text reasons;       /* as tn_reader_counts_of, each reason once */
    tn_task_counts tasks;  /* if there are several */
} tn_met;

#define TN_ALL_PARTS UINT32_MAX

void tn_met_done(tn_met *m);                                          /* empty, and usable again */
void tn_met_add_reader(tn_met *m, tn_reader *reader, uint32_t parts); /* its first ones */
void tn_met_add(tn_met *m, const tn_met *more);

/* Counts the labels of a batch that was learned. */
void tn_met_add_labels(tn_met *m, const tn_tasks *tasks, const tn_batch *batch);

/* The reason at *at and how often it was met, in decimal; *at is the position after it then. False:
 * the end. */
bool tn_met_reason(const tn_met *m, size_t *at, const char **reason, const char **count);

/* Rows of a table, or of those of several ranks. */
typedef struct tn_held {
    uint64_t created, admitted, rows, bytes, expired, evicted;
} tn_held;
tn_held tn_held_of(const tn_table *t);
