/* served_model.h - one version of a model that is served: the opened export, a scorer for each
 * worker, and readers of every text format.
 *
 *     tn_served_open(&v, "exports/ads/6636c5aa..", &opts, err);       any thread
 *     hand = tn_served_hand(v, worker);                               the worker's own
 *     tn_served_sink(v, hand, &ask, &sink, err);                      where rows go
 *     ... rows by body_rows.h ...
 *     tn_served_score(v, hand, &sink, err);                           hand->score
 *     tn_served_close(v);                                             when nobody scores any more
 *
 * A hand is used by one thread at a time; everything else of a version is only read, but for
 * readers of further formats, which are made when they are first asked for (under a lock). After
 * its largest request a hand allocates nothing.
 */
#pragma once

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/keys/tasks.h"
#include "dict/dict.h"
#include "extra/http/body_rows.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_exported_model tn_exported_model; /* serve/exported_model.h */
typedef struct tn_scorer tn_scorer;                 /* serve/score.h */

typedef struct tn_served tn_served;

typedef struct tn_served_opts {
    tn_verify verify;
    bool half_weights;
    uint32_t hands; /* workers */
} tn_served_opts;

/* The memory with which one worker scores by one version. */
typedef struct tn_served_hand tn_served_hand;

/* Opens an export directory, and scores one empty row, so that a first request finds its memory.
 * Statuses as tn_exported_model_open. On failure *out is NULL. */
tn_status tn_served_open(tn_served **out, const char *dir, const tn_served_opts *opts,
                         tn_error *err) TN_MUST_USE;
void tn_served_close(tn_served *v); /* NULL is fine */

const tn_exported_model *tn_served_exported(const tn_served *v);
const char *tn_served_version(const tn_served *v); /* the model id, 32 hex digits */
tn_served_hand *tn_served_hand_of(tn_served *v, uint32_t worker);

/* The kind of rows that a request has. */
typedef struct tn_row_kind {
    const char *format; /* NULL: the training data's, or jsonl where that is binary */
    bool unlabelled;    /* positions of labels are not there; else as in training */
    const char *source; /* as tn_row_sink.source */
    uint32_t rows_max;
} tn_row_kind;

/* Empties the hand's rows of this kind and says how to fill them. A format whose rows name their
 * columns needs no label: there it is never read. TN_E_USAGE: no such text format, or not in this
 * build; TN_E_CONFIG: the model's options do not fit it. */
tn_status tn_served_sink(tn_served *v, tn_served_hand *hand, const tn_row_kind *kind,
                         tn_row_sink *out, tn_error *err) TN_MUST_USE;

/* Reads what all rows of a sink share, an object of a request; before the first of them. Its fields
 * count for each row, in place of what the row has of them. The sink is one of jsonl. */
tn_status tn_served_share(tn_served_hand *hand, const tn_row_sink *to, const tn_json_span *context,
                          tn_error *err) TN_MUST_USE;

/* How the score of a task is called: the task's name, or of one label pctr, prediction or score. */
const char *tn_served_task_name(const tn_served *v, uint32_t task);

/* Scores of the rows of the last tn_served_score. */
typedef struct tn_served_scores {
    uint32_t n;
    uint32_t n_tasks;                 /* at least 1 */
    const char *name[TN_TASKS_MAX];   /* tn_served_task_name */
    const float *value[TN_TASKS_MAX]; /* n; of clicks probabilities */
} tn_served_scores;

/* Scores the rows of a sink by all tasks, as tnet-score does; the result is the hand's. */
tn_status tn_served_score(tn_served *v, tn_served_hand *hand, const tn_row_sink *rows,
                          tn_served_scores *out, tn_error *err) TN_MUST_USE;
