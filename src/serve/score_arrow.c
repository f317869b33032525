/* score_arrow.c - batches become cells, cells rows, rows scores, some hundred rows at a time. */
#include "serve/score_arrow.h"

#include "base/core/alloc.h"
#include "base/core/text.h"
#include "io/arrow/arrow_abi.h"
#include "io/arrow/arrow_cells.h"
#include "io/arrow/cells_format.h"
#include "io/schema/schema.h"
#include "serve/exported_model.h"
#include "serve/score.h"

#include <stdio.h>
#include <string.h>

enum { ROWS_AT_ONCE = 256 };

struct tn_arrow_scorer {
    tn_schema schema; /* the model's, without label, weight, group and record id */
    tn_columns columns;
    const tn_columns *all; /* the model's */
    uint32_t *spec;        /* n_specs: columns.spec, TN_NOWHERE where all rows share the value */
    uint32_t *values;      /* n_specs: columns.values, likewise */
    tn_rows *rows;
    tn_text text;
    tn_head head;
    bool *is_read;  /* per name of `columns`: the rows of a batch are to have it */
    bool *is_there; /* likewise: the batch has it */
};

static const char source[] = "the batch";

/* Whether all rows have the values of a slot or number in common. */
static bool is_shared(const tn_shared_row *shared, const tn_slot_spec *spec)
{
    return shared != NULL &&
           (spec->slot != TN_NOWHERE ? shared->slot[spec->slot] : shared->numeric[spec->numeric]);
}

/* Marks the columns that the rows of a batch are to have. */
static void mark_read(tn_arrow_scorer *a, const tn_shared_row *shared)
{
    memset(a->is_read, 0, a->columns.n * sizeof *a->is_read);
    for (uint32_t i = 0; i < a->schema.n_specs; i++) {
        const bool wanted = !is_shared(shared, &a->schema.spec[i]);
        a->spec[i] = wanted ? a->all->spec[i] : TN_NOWHERE;
        a->values[i] = wanted ? a->all->values[i] : TN_NOWHERE;
        if (a->spec[i] != TN_NOWHERE) {
            a->is_read[a->spec[i]] = true;
        }
        if (a->values[i] != TN_NOWHERE) {
            a->is_read[a->values[i]] = true;
        }
    }
}

static tn_status fill(tn_arrow_scorer *a, const tn_exported_model *b, tn_error *err)
{
    const uint32_t n = b->schema->columns->n;
    TN_TRY(TN_ALLOC(a->spec, (size_t)b->schema->n_specs + 1, "the columns of a model", err));
    TN_TRY(TN_ALLOC(a->values, (size_t)b->schema->n_specs + 1, "the columns of a model", err));
    a->all = b->schema->columns;
    a->columns = *a->all;
    a->columns.spec = a->spec;
    a->columns.values = a->values;
    a->columns.label = a->columns.weight = TN_NOWHERE;
    a->columns.group = a->columns.record_id = TN_NOWHERE;
    a->schema = *b->schema;
    a->schema.columns = &a->columns;
    TN_TRY(TN_ALLOC(a->is_read, (size_t)n + 1, "the columns of a model", err));
    TN_TRY(TN_ALLOC(a->is_there, (size_t)n + 1, "the columns of a model", err));
    TN_TRY(TN_ALLOC(a->head.column, (size_t)n + 1, "the columns of a model", err));
    return tn_rows_new(&a->rows, b->schema, 0, err);
}

tn_status tn_arrow_scorer_new(tn_arrow_scorer **out, const tn_exported_model *b, tn_error *err)
{
    tn_arrow_scorer *a = NULL;
    *out = NULL;
    TN_TRY(TN_ALLOC(a, 1, "a scorer", err));
    const tn_status status = fill(a, b, err);
    if (status != TN_OK) {
        tn_arrow_scorer_free(a);
        return status;
    }
    *out = a;
    return TN_OK;
}

void tn_arrow_scorer_free(tn_arrow_scorer *a)
{
    if (a != NULL) {
        tn_rows_free(a->rows);
        tn_text_done(&a->text);
        tn_free(a->head.column);
        tn_free(a->spec);
        tn_free(a->values);
        tn_free(a->is_read);
        tn_free(a->is_there);
        tn_free(a);
    }
}

/* Chooses the columns that slots read, and notes that they are there. */
static bool wants(void *arg, const char *name, size_t size)
{
    tn_arrow_scorer *a = arg;
    const uint32_t at = tn_columns_find(&a->columns, name, size);
    if (at == TN_NOWHERE || !a->is_read[at]) {
        return false;
    }
    a->is_there[at] = true;
    return true;
}

/* Finds the place of each column that the model reads. */
static tn_status read_head(tn_arrow_scorer *a, tn_arrow_cells *cells, const tn_shared_row *shared,
                           const tn_record_location *place, tn_error *err)
{
    mark_read(a, shared);
    memset(a->is_there, 0, a->columns.n * sizeof *a->is_there);
    tn_arrow_cells_choose(cells, wants, a);
    for (uint32_t i = 0; i < a->columns.n; i++) {
        if (a->is_read[i] && !a->is_there[i]) {
            return tn_fail(err, TN_E_DATA, "%s has no column '%s', which the model reads", source,
                           a->columns.name[i]);
        }
    }
    tn_text_clear(&a->text);
    TN_TRY(tn_arrow_cells_head(cells, &a->text, err));
    tn_bytes window = {a->text.data, a->text.size, false};
    return tn_cells_format.head(&window, true, &a->schema, place, &a->head, err);
}

/* Parses rows from, from + 1, .. of the array. */
static tn_status parse_rows(tn_arrow_scorer *a, tn_arrow_cells *cells,
                            const struct ArrowArray *array, tn_arrow_rows rows, tn_error *err)
{
    const tn_record_location place = {.source = source, .head = &a->head};
    tn_bytes record;
    tn_text_clear(&a->text);
    tn_rows_clear(a->rows);
    TN_TRY(tn_arrow_cells_rows(cells, array, rows, &a->text, err));
    tn_bytes window = {a->text.data, a->text.size, false};
    while (window.size > 0) {
        TN_TRY(tn_cells_format.cut(&window, true, &a->schema, &record, err));
        TN_TRY(tn_cells_format.parse(record, &a->schema, &place, a->rows, err));
    }
    return TN_OK;
}

static tn_status score_cells(tn_arrow_scorer *a, tn_arrow_cells *cells, tn_scorer *scorer,
                             const tn_arrow_batch *batch, tn_error *err)
{
    const tn_record_location place = {.source = source};
    const int64_t length = batch->array->length;
    const uint64_t n = length > 0 ? (uint64_t)length : 0;
    uint64_t from = 0;
    TN_TRY(read_head(a, cells, batch->shared, &place, err));
    a->rows->common = batch->shared != NULL ? batch->shared->row : NULL;
    a->rows->common_slot = batch->shared != NULL ? batch->shared->slot : NULL;
    do { /* also once for none, so that a batch that does not fit is always refused */
        const uint64_t to = n - from < ROWS_AT_ONCE ? n : from + ROWS_AT_ONCE;
        TN_TRY(parse_rows(a, cells, batch->array, (tn_arrow_rows){from, to, from}, err));
        float *logit = batch->logit != NULL ? batch->logit + from : NULL;
        float *pctr = batch->pctr != NULL ? batch->pctr + from : NULL;
        TN_TRY(batch->shared != NULL
                   ? tn_scorer_score_many(scorer, batch->shared, a->rows, logit, pctr, err)
                   : tn_scorer_score_rows(scorer, a->rows, logit, pctr, err));
        from = to;
    } while (from < n);
    return TN_OK;
}

tn_status tn_arrow_scorer_score(tn_arrow_scorer *a, tn_scorer *scorer, const tn_arrow_batch *batch,
                                tn_error *err)
{
    tn_arrow_cells *cells = NULL;
    TN_TRY(tn_arrow_cells_new(&cells, batch->schema, source, err));
    const tn_status status = score_cells(a, cells, scorer, batch, err);
    tn_arrow_cells_free(cells);
    return status;
}
