/* score_arrow.h - scores the rows of Arrow's batches: columns by name, as the model's slots read
 * them from data files.
 *
 *     tn_arrow_scorer_new(&a, exported, err);
 *     tn_arrow_scorer_score(a, scorer, &(tn_arrow_batch){&schema, &array, logit, pctr}, err);
 *
 * A cell means what it would mean in a CSV file of the same rows (io/arrow/cells_format.h), so the
 * scores are those of tnet-score. Columns that no slot reads are passed over, a label too. One
 * thread at a time; after the largest batch only the schema's columns are allocated.
 */
#pragma once

#include "base/core/error.h"

struct ArrowArray;
struct ArrowSchema;

typedef struct tn_exported_model tn_exported_model; /* serve/exported_model.h */
typedef struct tn_scorer tn_scorer;                 /* serve/score.h */

typedef struct tn_arrow_scorer tn_arrow_scorer;

/* Makes room for the rows of a model, which must outlive it. */
tn_status tn_arrow_scorer_new(tn_arrow_scorer **out, const tn_exported_model *b,
                              tn_error *err) TN_MUST_USE;
void tn_arrow_scorer_free(tn_arrow_scorer *a); /* NULL is fine */

/* A batch of a schema, and room for the scores of its rows. */
typedef struct tn_arrow_batch {
    const struct ArrowSchema *schema;
    const struct ArrowArray *array;
    float *logit; /* one for each row, as tn_scorer_score_rows writes them; NULL: none are wanted */
    float *pctr;  /* likewise */
    const struct tn_shared_row *shared; /* see tn_scorer_score_many; its columns are passed over.
                                           NULL: rows have all of their values */
} tn_arrow_batch;

/* Scores all rows. TN_E_DATA: a column is missing, or a column or a value is wrong; then some
 * scores may be written. */
tn_status tn_arrow_scorer_score(tn_arrow_scorer *a, tn_scorer *scorer, const tn_arrow_batch *batch,
                                tn_error *err) TN_MUST_USE;
