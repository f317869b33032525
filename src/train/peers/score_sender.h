/* score_sender.h - a rank other than 0 scores its parts of a data set and hands the rows to rank 0,
 * which asks for them when it has come to where they stand (train/peers/score_merge.h).
 *
 *     scored rows ──> [ up to TN_HANDOVER_BYTES, in order ] ──> DONE to an ORDER ROWS of rank 0
 *
 * When so much is held it waits until rank 0 asks. After the last row it waits until all are handed
 * over, and answers once more with nothing. An order for anything else means that rank 0 has given
 * up, and is the caller's to carry out. The thread that trains.
 */
#ifndef TN_TRAIN_SCORE_SENDER_H
#define TN_TRAIN_SCORE_SENDER_H

#include "cluster/wire/control_structs.h"
#include "train/peers/scored_rows.h"

enum { TN_HANDOVER_BYTES = 32 << 20 };

/* How rows are to be had, as the order to evaluate says it in `more`: a sum of these. `more` of an
 * order for rows: bytes at most. */
enum { TN_EVALUATES_ROWS = 1, TN_EVALUATES_WITH_IDS = 2, TN_EVALUATES_WITH_NODES = 4 };

/* How orders come and answers go. */
typedef struct tn_handover_line {
    /* The next order, lent until the next call. TN_END: none yet; with `wait` it has waited for a
     * while. Any other status ends the evaluation. */
    tn_status (*order)(void *arg, bool wait, tn_order_note *out, tn_error *err);
    tn_status (*done)(void *arg, const tn_done_note *note, tn_error *err);
    void *arg;
} tn_handover_line;

typedef struct tn_handover tn_handover;

/* `line` is copied. `hold`: bytes that may wait; 0: TN_HANDOVER_BYTES. */
tn_status tn_handover_new(tn_handover **out, const tn_scored_form *form,
                          const tn_handover_line *line, size_t hold, tn_error *err) TN_MUST_USE;
void tn_handover_free(tn_handover *h); /* NULL is fine */

/* A tn_score_sink, for batches that are read with ids. TN_END, which ends the pass well: rank 0 has
 * given up, and tn_handover_end says so again. */
tn_status tn_handover_sink(void *handover, const tn_scores *scores, tn_error *err);

/* There are no more rows: returns when rank 0 has all. TN_END: it has given up. */
tn_status tn_handover_end(tn_handover *h, tn_error *err) TN_MUST_USE;

/* After TN_END: what rank 0 ordered instead. Lent until the next order is asked for. */
const tn_order_note *tn_handover_instead(const tn_handover *h);

/* All of it: what of a data set this worker scores. */
typedef struct tn_handover_pass {
    tn_worker *w;
    const tn_strs *paths;
    bool ids;             /* rank 0 wants them */
    const tn_strs *fetch; /* and values of these nodes; NULL: of none */
    tn_handover_line line;
} tn_handover_pass;

/* *counts: what was read. TN_END: rank 0 has given up and orders *instead. */
tn_status tn_handover_run(const tn_handover_pass *pass, tn_read_counts *counts,
                          tn_order_note *instead, tn_error *err) TN_MUST_USE;

#endif
