/* scored_rows.h - rows with their scores as bytes: what a rank that evaluates hands to rank 0,
 * where metrics, slices and predictions are made of the rows of all.
 *
 *     u32 bytes that follow | u32 source | u64 place in it | f32 logit | f32 label | f32 weight |
 *     u64 group | u32 unknown slots | per task of several: f32 label, factor, score, given |
 *     u32 bytes of the id, id | floats of nodes |
 *     per slot that travels: u32 keys, 8 bytes each
 *
 * Little-endian, row after row: any run of whole rows is a message. Bytes may come from outside:
 * whatever they hold, reading them is safe, and what was read is fit for tn_metrics_add.
 * The id and floats are there when the form says so. One thread per object.
 */
#pragma once

#include "base/core/text.h"
#include "train/eval/evaluate.h"

typedef struct tn_node tn_node;

/* The members of a row that travel, the same on both sides. */
typedef struct tn_scored_form {
    const tn_schema *schema; /* must outlive whoever has the form */
    const bool *slot;        /* whether a slot's keys travel; likewise */
    const tn_tasks *tasks;   /* labels and scores of each travel; NULL: there is one label */
    bool ids;
    uint32_t n_nodes;     /* their values travel; 0: none */
    const tn_node **node; /* nodes of the evaluation graph; likewise */
    const uint32_t *cols; /* each one's values per row; likewise */
    uint32_t width;       /* the sum of `cols` */
} tn_scored_form;

enum { TN_SCORED_ROW_MAX = 16 << 20 }; /* bytes of a row */

/* The form of evaluations of this run, whose slices want keys; `ids`: predictions are wanted. Lives
 * in the arena. */
tn_scored_form tn_scored_form_of(const tn_run *run, const tn_schema *schema, bool ids,
                                 tn_arena *arena);
/* Values of these nodes travel, too. TN_E_CONFIG: the graph has no such node. */
tn_status tn_scored_form_fetch(tn_scored_form *form, const tn_graph *graph, const tn_strs *nodes,
                               tn_arena *arena, tn_error *err) TN_MUST_USE;

/* Appends the rows of a batch that was read with ids. TN_E_LIMIT: one is too long; TN_E_MEMORY. */
tn_status tn_scored_add(const tn_scored_form *form, const tn_scores *scores, tn_text *out,
                        tn_error *err) TN_MUST_USE;

/* Bytes of the rows in front that fit `most`, but at least of one; 0: there is none. Of what
 * tn_scored_add wrote. */
size_t tn_scored_fitting(const char *bytes, size_t size, size_t most);

/* Rows that were read.
 *
 *     tn_scored_rows r = {.form = &form};
 *     TN_TRY(tn_scored_read(&r, bytes, size, err));
 *     ... r.scores, which has no graph ...
 *     tn_scored_rows_done(&r);
 */
typedef struct tn_scored_rows {
    const tn_scored_form *form;
    tn_arena *arena; /* holds the rows; owned; NULL: none */
    tn_batch batch;
    tn_task_scores task;
    tn_fetched fetched;
    tn_scores scores; /* lent until the next read */
} tn_scored_rows;

/* Replaces the rows of `r` by those that `bytes` hold. TN_E_PEER: they hold none such; then `r` is
 * empty. */
tn_status tn_scored_read(tn_scored_rows *r, const char *bytes, size_t size,
                         tn_error *err) TN_MUST_USE;
void tn_scored_rows_done(tn_scored_rows *r); /* empty, and usable again */

/* Rows from .. from + n - 1 of a batch as a batch: what metrics, slices and predictions need of it.
 * slot[] has room for those of the schema. Everything is lent by `of`; a view is not copied. */
typedef struct tn_scored_view {
    tn_batch batch;
    tn_task_rows rows[TN_TASKS_MAX];
    tn_task_scores task;
    tn_fetched fetched;
    tn_scores scores; /* this batch's */
} tn_scored_view;
void tn_scored_view_of(const tn_scored_form *form, const tn_scores *of, uint32_t from, uint32_t n,
                       tn_slot *slot, tn_scored_view *out);
