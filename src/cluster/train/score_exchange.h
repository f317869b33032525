/* score_exchange.h - scored rows of several ranks come to rank 0, in the order of the data.
 *
 *     rank 1     scored rows ──> [ up to 32 MB, in order ] ──> DONE to an ORDER ROWS of rank 0
 *
 *     rank 0     own rows   a.tsv:0 .. a.tsv:900             c.tsv:0 ..   batch by batch, as scored
 *                rank 1                         b.tsv:0 ..                asked for at their turn
 *                ->         a.tsv:0 .. a.tsv:900 b.tsv:0 .. c.tsv:0 ..    take
 *
 * Every rank scores the rows of its parts in the order of the data (number of the source, place in
 * it), and parts do not overlap, so rank 0 merges sorted rows. Of every other rank it holds one
 * piece. Each side belongs to one thread, the one that trains.
 */
#pragma once

#include "cluster/train/scored_rows.h"
#include "cluster/wire/control_messages.h"

/* ---- rank 0 ---- */

typedef struct tn_score_merge_opts {
    tn_scored_form form;
    uint32_t others; /* ranks besides this one */
    /* Appends more rows of one of them, 0 .. others - 1 (tn_scored_add); nothing: it has no more.
     * May wait. */
    tn_status (*more)(void *arg, uint32_t other, tn_text *out, tn_error *err);
    tn_score_sink *take; /* rows in order, at least one */
    void *arg;           /* both functions' */
} tn_score_merge_opts;

typedef struct tn_score_merge tn_score_merge;

/* In the arena. */
tn_score_merge *tn_score_merge_new(const tn_score_merge_opts *opts, tn_arena *arena);
void tn_score_merge_done(tn_score_merge *m); /* NULL is fine */

/* The next batch of this rank, which is read with ids; a tn_score_sink. Returns what `more` and
 * `take` return; TN_E_PEER when rows of another rank are none, or not in order. */
tn_status tn_score_merge_own(void *merge, const tn_scores *scores, tn_error *err);

/* This rank has no more: the rest of the others. */
tn_status tn_score_merge_end(tn_score_merge *m, tn_error *err) TN_MUST_USE;

/* ---- the others ----
 *
 * A rank that holds so much waits until rank 0 asks. After the last row it waits until all are
 * handed over, and answers once more with nothing. An order for anything else means that rank 0 has
 * given up; the caller then carries it out.
 */

/* A sum of these is the first number in `more` of an order to evaluate. Where not all rows of
 * data.valid are wanted two more follow: the day whose data.train they are the head of, and
 * rows_max. An order for rows has the most bytes in `more`. */
enum { TN_EVALUATES_ROWS = 1, TN_EVALUATES_WITH_IDS = 2, TN_EVALUATES_WITH_NODES = 4 };

/* How orders come and answers go. */
typedef struct tn_score_sender_callbacks {
    /* The next order, lent until the next call. TN_END: none yet; with `wait` it has waited for a
     * while. Any other status ends the evaluation. */
    tn_status (*order)(void *arg, bool wait, tn_order_note *out, tn_error *err);
    tn_status (*done)(void *arg, const tn_done_note *note, tn_error *err);
    void *arg;
} tn_score_sender_callbacks;

typedef struct tn_score_sender {
    const tn_scored_form *form;
    tn_score_sender_callbacks line;
    size_t hold; /* bytes that may wait */
    tn_text rows;
    size_t handed;         /* bytes of `rows` that rank 0 has */
    bool told;             /* rank 0 knows that no more come */
    bool given_up;         /* rank 0 has ordered something else */
    tn_order_note instead; /* the order; lent until the next one is asked for */
} tn_score_sender;

/* A tn_score_sink, for batches that are read with ids. TN_END, which ends the pass well: rank 0 has
 * given up, and tn_score_sender_end says so again. */
tn_status tn_score_sender_sink(void *sender, const tn_scores *scores, tn_error *err);

/* There are no more rows: returns when rank 0 has all. TN_END: it has given up. Then `rows` is to
 * be freed, as after a failure. */
tn_status tn_score_sender_end(tn_score_sender *h, tn_error *err) TN_MUST_USE;

/* All of it: what of a data set this worker scores. */
typedef struct tn_score_sender_pass {
    tn_worker *w;
    const tn_strs *paths;
    uint64_t rows_max;    /* as in tn_eval_request */
    bool held;            /* likewise */
    bool ids;             /* rank 0 wants them */
    const tn_strs *fetch; /* and values of these nodes; NULL: of none */
    tn_score_sender_callbacks line;
} tn_score_sender_pass;

/* *counts: what was read. TN_END: rank 0 has given up and orders *instead. */
tn_status tn_score_sender_run(const tn_score_sender_pass *pass, tn_read_counts *counts,
                              tn_order_note *instead, tn_error *err) TN_MUST_USE;
