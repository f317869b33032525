/* score_merge.h - scored rows of several ranks in the order of the data, as one process has them.
 *
 *     own rows   a.tsv:0 .. a.tsv:900             c.tsv:0 ..   batch by batch, as scored here
 *     rank 1                         b.tsv:0 ..                asked for when it is their turn
 *     ->         a.tsv:0 .. a.tsv:900 b.tsv:0 .. c.tsv:0 ..    take
 *
 * Every rank scores the rows of its parts in the order of the data (number of the source, place in
 * it), and parts do not overlap, so this is a merge of sorted rows. Of every other rank it holds
 * one piece. One thread.
 */
#ifndef TN_TRAIN_SCORE_MERGE_H
#define TN_TRAIN_SCORE_MERGE_H

#include "train/peers/scored_rows.h"

typedef struct tn_scoremerge_opts {
    tn_scored_form form;
    uint32_t others; /* ranks besides this one */
    /* Appends more rows of one of them, 0 .. others - 1 (tn_scored_add); nothing: it has no more.
     * May wait. */
    tn_status (*more)(void *arg, uint32_t other, tn_text *out, tn_error *err);
    tn_score_sink *take; /* rows in order, at least one */
    void *arg;           /* of both */
} tn_scoremerge_opts;

typedef struct tn_scoremerge tn_scoremerge;

tn_status tn_scoremerge_new(tn_scoremerge **out, const tn_scoremerge_opts *opts,
                            tn_error *err) TN_MUST_USE;
void tn_scoremerge_free(tn_scoremerge *m); /* NULL is fine */

/* The next batch of this rank, which is read with ids; a tn_score_sink. Returns what `more` and
 * `take` return; TN_E_PEER when rows of another rank are none, or not in order. */
tn_status tn_scoremerge_own(void *merge, const tn_scores *scores, tn_error *err);

/* This rank has no more: the rest of the others. */
tn_status tn_scoremerge_end(tn_scoremerge *m, tn_error *err) TN_MUST_USE;

#endif
