/* batch_builder.c - from rows to slots. */
#include "io/rows/batch_builder.h"

#include "base/core/alloc.h"
#include "io/rows/batch_column.h"
#include "io/rows/rows_compact.h"

#include <string.h>

enum { IDS_MIN = 256, BARE_MAX = 32 };

/* How keys come that are still to be copied: see batch_column.h. */
typedef enum form { EVEN, GRID, ANY } form;

struct tn_filling {
    tn_batch batch; /* first: see tn_filling_of */
    const tn_schema *schema;
    uint32_t rows_max;
    bool want_ids;
    tn_column *column;          /* n_slots; room for rows_max ends */
    tn_bare_row bare[BARE_MAX]; /* the last n_bare rows */
    uint32_t n_bare;
    form form; /* of all of them */
    uint64_t *group;
    float *weight;
    uint32_t *id_offset;
    char *id_text;
    size_t id_size;
    size_t id_capacity;
    bool has_weight; /* some row weighs other than 1 */
    bool has_group;
    bool has_id;
};

static const char what[] = "a batch";

static bool alloc_columns(tn_filling *f, tn_error *err)
{
    uint32_t n_slots = f->schema->n_slots;
    f->column = tn_try_alloc((size_t)n_slots + 1, sizeof *f->column, what, err);
    f->batch.slot = tn_try_alloc((size_t)n_slots + 1, sizeof *f->batch.slot, what, err);
    if (f->column == NULL || f->batch.slot == NULL) {
        return false;
    }
    for (uint32_t s = 0; s < n_slots; s++) {
        tn_column *c = &f->column[s];
        c->offset = tn_try_alloc((size_t)f->rows_max + 1, sizeof *c->offset, what, err);
        if (c->offset == NULL) {
            return false;
        }
    }
    return true;
}

static bool alloc_rows(tn_filling *f, tn_error *err)
{
    size_t n = (size_t)f->rows_max + 1;
    f->batch.label = tn_try_alloc(n, sizeof *f->batch.label, what, err);
    f->weight = tn_try_alloc(n, sizeof *f->weight, what, err);
    f->group = tn_try_alloc(n, sizeof *f->group, what, err);
    if (f->batch.label == NULL || f->weight == NULL || f->group == NULL) {
        return false;
    }
    if (f->schema->n_numeric > 0) {
        f->batch.numeric = tn_try_alloc(n * f->schema->n_numeric, sizeof(float), what, err);
        if (f->batch.numeric == NULL) {
            return false;
        }
    }
    if (!f->want_ids) {
        return true;
    }
    f->id_offset = tn_try_alloc(n, sizeof *f->id_offset, what, err);
    f->batch.source = tn_try_alloc(n, sizeof *f->batch.source, what, err);
    f->batch.source_at = tn_try_alloc(n, sizeof *f->batch.source_at, what, err);
    return f->id_offset != NULL && f->batch.source != NULL && f->batch.source_at != NULL;
}

tn_status tn_filling_new(tn_filling **out, const tn_schema *schema, uint32_t rows_max,
                         bool want_ids, tn_error *err)
{
    *out = NULL;
    tn_filling *f = tn_try_alloc(1, sizeof *f, what, err);
    if (f == NULL) {
        return TN_E_MEMORY;
    }
    f->schema = schema;
    f->rows_max = rows_max;
    f->want_ids = want_ids;
    if (!alloc_columns(f, err) || !alloc_rows(f, err)) {
        tn_filling_free(f);
        return TN_E_MEMORY;
    }
    tn_filling_clear(f);
    *out = f;
    return TN_OK;
}

void tn_filling_free(tn_filling *f)
{
    if (f == NULL) {
        return;
    }
    for (uint32_t s = 0; f->column != NULL && s < f->schema->n_slots; s++) {
        tn_column_done(&f->column[s]);
    }
    tn_free(f->column);
    tn_free(f->batch.slot);
    tn_free(f->batch.label);
    tn_free(f->batch.numeric);
    tn_free(f->batch.source);
    tn_free(f->batch.source_at);
    tn_free(f->weight);
    tn_free(f->group);
    tn_free(f->id_offset);
    tn_free(f->id_text);
    tn_free(f);
}

void tn_filling_clear(tn_filling *f)
{
    for (uint32_t s = 0; s < f->schema->n_slots; s++) {
        f->column[s].n = 0;
        f->column[s].odd = false;
        f->column[s].offset[0] = 0;
    }
    f->n_bare = 0;
    f->batch.rows = 0;
    f->batch.n_keys = 0;
    f->id_size = 0;
    f->has_weight = false;
    f->has_group = f->schema->data->group != NULL;
    f->has_id = false;
}

/* Many rows at once and slot by slot, so that each column is gone to once. False: no memory. */
static bool copy_bare(tn_filling *f)
{
    uint32_t n = f->n_bare;
    uint32_t r = f->batch.rows - n;
    uint32_t n_slots = f->schema->n_slots;
    bool good = true;
    f->n_bare = 0;
    if (n > 0 && f->form == GRID) {
        return tn_columns_add_grid(f->column, n_slots, f->bare, n, r);
    }
    for (uint32_t s = 0; n > 0 && good && s < n_slots; s++) {
        tn_column *c = &f->column[s];
        uint32_t *end = c->offset + r + 1;
        good = f->form == EVEN ? tn_column_add_even(c, s, f->bare, n, end)
               : n_slots == 1  ? tn_column_add_all(c, f->bare, n, end)
                               : tn_column_add_any(c, s, f->bare, n, end);
    }
    return good;
}

tn_status tn_filling_settle(tn_filling *f, tn_error *err)
{
    return copy_bare(f)
               ? TN_OK
               : tn_fail(err, TN_E_MEMORY, "no memory for a batch of %u rows", f->rows_max);
}

static form form_of(const tn_bare *b)
{
    return b->stride > 0 ? GRID : b->even ? EVEN : ANY;
}

/* The keys of a row. */
static inline uint32_t count_keys(const tn_rows *rows, const tn_bare *b, uint32_t i)
{
    return b != NULL && b->stride > 0
               ? (uint32_t)__builtin_popcountll(b->key[(size_t)i * b->stride])
               : tn_rows_end_of(rows, i) - rows->row[i].first;
}

/* Remembers a row whose keys are still to be copied, with others of its form. False: no memory. */
static bool add_bare(tn_filling *f, const tn_bare *b, uint32_t i, uint32_t first, uint32_t n)
{
    form how = form_of(b);
    bool other = f->n_bare > 0 && f->form != how;
    if ((other || f->n_bare == BARE_MAX) && !copy_bare(f)) {
        return false;
    }
    f->form = how;
    f->bare[f->n_bare++] =
        how == GRID ? (tn_bare_row){b->key + (size_t)i * b->stride + 1, NULL, n}
                    : (tn_bare_row){b->key + first, b->slot + (b->width > 0 ? 0 : first), n};
    return true;
}

static bool add_entries(tn_filling *f, const tn_entry *entry, uint32_t n)
{
    bool good = copy_bare(f) && tn_columns_add(f->column, entry, n);
    for (uint32_t s = 0; good && s < f->schema->n_slots; s++) {
        f->column[s].offset[f->batch.rows + 1] = f->column[s].n;
    }
    return good;
}

/* Bytes of the record id behind those of the others; false: no memory. */
static bool add_id(tn_filling *f, const char *text, uint32_t size)
{
    f->id_offset[f->batch.rows] = (uint32_t)f->id_size;
    if (f->id_size + size > f->id_capacity) {
        size_t more = 2 * (f->id_size + size) + IDS_MIN;
        char *bytes = more <= UINT32_MAX ? tn_try_alloc(more, 1, what, NULL) : NULL;
        if (bytes == NULL) {
            return false;
        }
        if (f->id_size > 0) {
            memcpy(bytes, f->id_text, f->id_size);
        }
        tn_free(f->id_text);
        f->id_text = bytes;
        f->id_capacity = more;
    }
    if (size > 0) {
        memcpy(f->id_text + f->id_size, text, size);
        f->has_id = true;
    }
    f->id_size += size;
    return true;
}

tn_status tn_filling_add(tn_filling *f, const tn_rows *rows, uint32_t i, uint32_t source,
                         tn_error *err)
{
    const tn_parsed_row *row = &rows->row[i];
    uint32_t r = f->batch.rows;
    const tn_bare *bare = tn_rows_bare(rows);
    uint32_t n = count_keys(rows, bare, i);
    uint32_t n_numeric = f->schema->n_numeric;
    TN_ASSERT(r < f->rows_max);
    if (n > UINT32_MAX - f->batch.n_keys) {
        return tn_fail(err, TN_E_LIMIT, "more than %u keys in a batch", UINT32_MAX);
    }
    bool good = bare != NULL ? add_bare(f, bare, i, row->first, n)
                             : add_entries(f, rows->entry + row->first, n);
    if (good && f->want_ids) {
        const char *id = row->id.size > 0 ? rows->text + row->id.at : ""; /* no text at all: NULL */
        good = add_id(f, id, row->id.size);
        f->batch.source[r] = source;
        f->batch.source_at[r] = row->at;
    }
    if (!good) {
        return tn_fail(err, TN_E_MEMORY, "no memory for a batch of %u rows", f->rows_max);
    }
    f->batch.n_keys += n;
    f->batch.label[r] = row->label;
    f->weight[r] = row->weight;
    f->has_weight = f->has_weight || row->weight != 1;
    f->group[r] = row->group;
    f->has_group = f->has_group || row->group != TN_NO_GROUP;
    if (n_numeric > 0) {
        memcpy(f->batch.numeric + (size_t)r * n_numeric, rows->numeric + (size_t)i * n_numeric,
               n_numeric * sizeof(float));
    }
    f->batch.rows = r + 1;
    return TN_OK;
}

uint32_t tn_filling_rows(const tn_filling *f)
{
    return f->batch.rows;
}

tn_batch *tn_filling_end(tn_filling *f)
{
    tn_batch *b = &f->batch;
    TN_ASSERT(f->n_bare == 0);
    b->n_slots = f->schema->n_slots;
    b->n_numeric = f->schema->n_numeric;
    for (uint32_t s = 0; s < b->n_slots; s++) {
        const tn_column *c = &f->column[s];
        b->slot[s] = (tn_slot){c->offset, c->key, c->odd ? c->value : NULL};
    }
    b->weight = f->has_weight ? f->weight : NULL;
    b->group = f->has_group ? f->group : NULL;
    b->id_offset = f->has_id ? f->id_offset : NULL;
    b->id_text = f->has_id ? f->id_text : NULL;
    if (f->has_id) {
        f->id_offset[b->rows] = (uint32_t)f->id_size;
    }
    return b;
}

tn_filling *tn_filling_of(tn_batch *batch)
{
    return (tn_filling *)(void *)batch; /* its first member */
}
