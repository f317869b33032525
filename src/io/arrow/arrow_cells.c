/* arrow_cells.c - batches of columns side by side become rows of cells.
 *
 * Row by row, since a row is what is read again: each column appends its cell by the function of
 * its kind. The text grows by doubling, so nothing is allocated for a row.
 */
#include "io/arrow/arrow_cells.h"

#include "base/core/alloc.h"
#include "io/arrow/arrow_abi.h"
#include "io/arrow/arrow_column.h"
#include "io/arrow/cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { COLUMNS_MAX = 1 << 20, SHOWN_BYTES = 100 };

typedef struct member {
    char *name;              /* owned */
    tn_arrow_column *column; /* owned; NULL: its type is not read */
    char *why;               /* owned; the reason then */
    bool is_chosen;
} member;

struct tn_arrow_cells {
    char *name;
    member *member;
    uint32_t n;
};

/* ---- the schema ---- */

static tn_status copy_text(char **out, const char *text, tn_error *err)
{
    const size_t size = strlen(text) + 1;
    TN_TRY(TN_ALLOC(*out, size, "the name of a column", err));
    memcpy(*out, text, size);
    return TN_OK;
}

/* Reports the fault of a column; `row` is the number of the row, UINT64_MAX: of no single one. */
static tn_status fail_column(const tn_arrow_cells *cells, const member *m, uint64_t row,
                             const char *why, tn_error *err)
{
    char shown[SHOWN_BYTES];
    char at[40] = "";
    (void)snprintf(shown, sizeof shown, "%s", m->name);
    tn_make_printable(shown, "");
    if (row != UINT64_MAX) {
        (void)snprintf(at, sizeof at, "row %" PRIu64 ": ", row);
    }
    return tn_fail(err, TN_E_DATA, "%s: %serror: column '%s' %s", cells->name, at, shown, why);
}

/* A type that is not read is a fault only where something reads its column. */
static tn_status read_member(member *m, const struct ArrowSchema *schema, tn_error *err)
{
    char why[TN_ARROW_WHY_BYTES] = "";
    m->is_chosen = true;
    TN_TRY(copy_text(&m->name, schema != NULL && schema->name != NULL ? schema->name : "", err));
    const tn_status status = tn_arrow_column_read(&m->column, schema, why);
    if (status == TN_E_MEMORY) {
        return tn_fail(err, status, "no memory for a schema");
    }
    return status == TN_OK ? TN_OK : copy_text(&m->why, why, err);
}

static tn_status read_schema(tn_arrow_cells *cells, const struct ArrowSchema *schema, tn_error *err)
{
    const int64_t n = schema->release != NULL ? schema->n_children : -1;
    if (n < 0 || schema->format == NULL || strcmp(schema->format, "+s") != 0 ||
        schema->dictionary != NULL || (n > 0 && schema->children == NULL)) {
        return tn_fail(err, TN_E_DATA,
                       "%s: error: this is no table\nhint: a schema is wanted whose type is a "
                       "struct of columns, as of a record batch",
                       cells->name);
    }
    if (n > COLUMNS_MAX) {
        return tn_fail(err, TN_E_DATA, "%s: error: %" PRId64 " columns, at most %d are read",
                       cells->name, n, COLUMNS_MAX);
    }
    TN_TRY(TN_ALLOC(cells->member, (size_t)n + 1, "the columns of a table", err));
    for (; cells->n < (uint32_t)n; cells->n++) {
        const tn_status status =
            read_member(&cells->member[cells->n], schema->children[cells->n], err);
        if (status != TN_OK) {
            cells->n++; /* free() takes half-built ones */
            return status;
        }
    }
    return TN_OK;
}

tn_status tn_arrow_cells_new(tn_arrow_cells **out, const struct ArrowSchema *schema,
                             const char *name, tn_error *err)
{
    tn_arrow_cells *cells = NULL;
    *out = NULL;
    TN_TRY(TN_ALLOC(cells, 1, "the columns of a table", err));
    tn_status status = copy_text(&cells->name, name, err);
    status = status == TN_OK ? read_schema(cells, schema, err) : status;
    if (status != TN_OK) {
        tn_arrow_cells_free(cells);
        return status;
    }
    *out = cells;
    return TN_OK;
}

void tn_arrow_cells_free(tn_arrow_cells *cells)
{
    if (cells == NULL) {
        return;
    }
    for (uint32_t i = 0; i < cells->n; i++) {
        tn_free(cells->member[i].name);
        tn_free(cells->member[i].why);
        tn_arrow_column_free(cells->member[i].column);
    }
    tn_free(cells->member);
    tn_free(cells->name);
    tn_free(cells);
}

void tn_arrow_cells_choose(tn_arrow_cells *cells,
                           bool (*wants)(void *arg, const char *name, size_t size), void *arg)
{
    for (uint32_t i = 0; i < cells->n; i++) {
        member *m = &cells->member[i];
        m->is_chosen = m->is_chosen && wants(arg, m->name, strlen(m->name));
    }
}

tn_status tn_arrow_cells_head(const tn_arrow_cells *cells, tn_text *out, tn_error *err)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < cells->n; i++) {
        n += cells->member[i].is_chosen;
    }
    tn_text_add(out, TN_CELLS_MAGIC, TN_CELLS_MAGIC_BYTES);
    tn_text_add_u32le(out, n);
    for (uint32_t i = 0; i < cells->n; i++) {
        const member *m = &cells->member[i];
        if (m->is_chosen) {
            tn_text_add_u32le(out, (uint32_t)strlen(m->name));
            tn_text_adds(out, m->name);
            tn_text_add_u32le(out, m->column == NULL ? (uint32_t)strlen(m->why) : 0);
            tn_text_adds(out, m->column == NULL ? m->why : "");
        }
    }
    return tn_text_check(out, "names of columns", err);
}

/* ---- rows ---- */

/* Checks a batch, and binds the columns that are chosen to its arrays. */
static tn_status bind_batch(const tn_arrow_cells *cells, const struct ArrowArray *batch,
                            uint64_t to, tn_error *err)
{
    char why[TN_ARROW_WHY_BYTES];
    const bool is_good = batch->release != NULL && batch->length >= 0 && batch->offset >= 0 &&
                         batch->length <= INT64_MAX - batch->offset &&
                         batch->n_children == cells->n &&
                         (batch->children != NULL || cells->n == 0) &&
                         (batch->n_buffers <= 0 || batch->buffers != NULL);
    if (!is_good) {
        return tn_fail(err, TN_E_DATA,
                       "%s: error: a batch of %" PRId64 " columns and %" PRId64
                       " rows from offset %" PRId64 " does not fit the schema of %u columns",
                       cells->name, batch->n_children, batch->length, batch->offset, cells->n);
    }
    if (to > (uint64_t)batch->length) {
        return tn_fail(err, TN_E_DATA, "%s: error: a batch has %" PRId64 " rows, expected %" PRIu64,
                       cells->name, batch->length, to);
    }
    for (uint32_t i = 0; i < cells->n; i++) {
        const member *m = &cells->member[i];
        const int64_t n = batch->offset + batch->length;
        if (m->is_chosen && m->column != NULL &&
            !tn_arrow_column_bind(m->column, batch->children[i], n, why)) {
            return fail_column(cells, m, UINT64_MAX, why, err);
        }
    }
    return TN_OK;
}

/* Whether a row of a batch is null as a whole, which a table's rows are not. */
static bool is_null_row(const struct ArrowArray *batch, int64_t at)
{
    const uint8_t *valid =
        batch->null_count != 0 && batch->n_buffers > 0 ? batch->buffers[0] : NULL;
    return valid != NULL && (valid[at / 8] >> (at % 8) & 1) == 0;
}

/* Appends the cells of a row. */
static tn_status put_cells(const tn_arrow_cells *cells, const struct ArrowArray *batch, int64_t at,
                           uint64_t number, tn_cell_writer *w, tn_error *err)
{
    const bool is_null = is_null_row(batch, at);
    for (uint32_t i = 0; i < cells->n; i++) {
        const member *m = &cells->member[i];
        const bool is_none = is_null || m->column == NULL;
        const bool good = !m->is_chosen || (is_none ? tn_cell_writer_none(w)
                                                    : tn_arrow_column_put(m->column, at, w));
        if (!good) {
            return w->why[0] != '\0' ? fail_column(cells, m, number, w->why, err) : TN_E_MEMORY;
        }
    }
    return TN_OK;
}

static tn_status put_row(const tn_arrow_cells *cells, const struct ArrowArray *batch, uint64_t row,
                         uint64_t number, tn_cell_writer *w, tn_error *err)
{
    const size_t start = (size_t)(w->at - w->out->data);
    if (!tn_cell_writer_has(w, TN_CELLS_ROW_HEAD)) {
        return TN_E_MEMORY;
    }
    tn_store_u64(w->at + sizeof(uint32_t), number);
    w->at += TN_CELLS_ROW_HEAD;
    TN_TRY(put_cells(cells, batch, batch->offset + (int64_t)row, number, w, err));
    const size_t size = (size_t)(w->at - w->out->data) - start - sizeof(uint32_t);
    TN_ASSERT(size <= UINT32_MAX); /* a text ends before */
    tn_store_u32(w->out->data + start, (uint32_t)size);
    return TN_OK;
}

tn_status tn_arrow_cells_rows(tn_arrow_cells *cells, const struct ArrowArray *batch,
                              tn_arrow_rows rows, tn_text *out, tn_error *err)
{
    TN_ASSERT(rows.from <= rows.to);
    const size_t before = out->size;
    tn_cell_writer w = {.out = out};
    TN_TRY(tn_text_check(out, "rows of cells", err));
    TN_TRY(bind_batch(cells, batch, rows.to, err));
    if (rows.from == rows.to) {
        return TN_OK;
    }
    w.at = out->data != NULL ? out->data + before : NULL;
    w.end = w.at;
    tn_status status = TN_OK;
    for (uint64_t i = rows.from; status == TN_OK && i < rows.to; i++) {
        status = put_row(cells, batch, i, rows.number + (i - rows.from), &w, err);
    }
    out->size = status == TN_OK ? (size_t)(w.at - out->data) : before;
    if (out->data != NULL) {
        out->data[out->size] = '\0';
    }
    return status == TN_E_MEMORY ? tn_text_check(out, "rows of cells", err) : status;
}
