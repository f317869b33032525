/* batchfill.c - from rows to slots. */
#include "io/batchfill.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "io/rows_bare.h"

#include <string.h>

enum { FIRST_CAPACITY = 256, BARE_MAX = 32 };

/* One slot of the batch, while it grows. */
typedef struct column {
    uint64_t *key;
    float *value;
    uint32_t *offset; /* rows_max + 1 */
    uint32_t n;
    uint32_t capacity;
    bool odd; /* some value is not 1; else `value` is not written */
} column;

/* A row whose keys are still to be copied. */
typedef struct bare {
    const uint64_t *key;
    const uint16_t *slot;
    uint32_t n;
} bare;

struct tn_filling {
    tn_batch batch; /* first: see tn_filling_of */
    const tn_schema *schema;
    uint32_t rows_max;
    bool want_ids;
    column *column;      /* n_slots */
    bare bare[BARE_MAX]; /* the last n_bare rows */
    uint32_t n_bare;
    bool even; /* all of them are */
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
        column *c = &f->column[s];
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
        tn_free(f->column[s].key);
        tn_free(f->column[s].value);
        tn_free(f->column[s].offset);
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

/* Twice the room for the keys of a slot; false: no memory. */
static bool grow(column *c)
{
    uint32_t more = c->capacity == 0 ? FIRST_CAPACITY : 2 * c->capacity;
    uint64_t *key = tn_try_alloc(more, sizeof *key, what, NULL);
    float *value = tn_try_alloc(more, sizeof *value, what, NULL);
    if (key == NULL || value == NULL || more <= c->capacity) {
        tn_free(key);
        tn_free(value);
        return false;
    }
    if (c->n > 0) {
        memcpy(key, c->key, c->n * sizeof *key);
        memcpy(value, c->value, c->n * sizeof *value); /* zeros, where they are not written */
    }
    tn_free(c->key);
    tn_free(c->value);
    c->key = key;
    c->value = value;
    c->capacity = more;
    return true;
}

/* A value that is not 1: from here on values are kept, and those so far were 1. */
static void begin_values(column *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        c->value[i] = 1;
    }
    c->odd = true;
}

/* The entries from `e` on that are of one slot, as many are where a slot takes many; NULL: no
 * memory. */
static inline const tn_entry *add_run(column *c, const tn_entry *e, const tn_entry *end)
{
    const uint32_t slot = e->slot;
    const uint32_t one = 0x3f800000;
    do {
        uint32_t n = c->n;
        if (n == c->capacity && !grow(c)) {
            return NULL;
        }
        c->key[n] = e->key;
        if ((tn_load_u32(&e->value) ^ one) != 0 && !c->odd) {
            begin_values(c);
        }
        if (c->odd) {
            c->value[n] = e->value;
        }
        c->n = n + 1;
        e++;
    } while (e < end && e->slot == slot);
    return e;
}

static bool add_entries(tn_filling *f, const tn_entry *entry, uint32_t n)
{
    const tn_entry *end = entry + n;
    const tn_entry *e = entry;
    while (e != NULL && e < end) {
        e = add_run(&f->column[e->slot], e, end);
    }
    return e != NULL;
}

/* One slot of rows that have one key of each. */
static bool copy_even(const tn_filling *f, uint32_t s, column *c)
{
    uint32_t n = f->n_bare;
    while (c->n + n > c->capacity) {
        if (!grow(c)) {
            return false;
        }
    }
    uint64_t *key = c->key + c->n;
    uint32_t *end = c->offset + (f->batch.rows - n) + 1;
    for (uint32_t i = 0; i < n; i++) {
        key[i] = f->bare[i].key[s];
        end[i] = c->n + i + 1;
        c->value[c->n + i] = 1;
    }
    c->n += n;
    return true;
}

/* One slot of any rows, whose slots ascend; what is taken leaves them. Whether a row has a key here
 * cannot be foretold, so the first one is copied either way, and counts if it is of the slot. */
static bool copy_any(tn_filling *f, uint32_t s, column *c)
{
    uint32_t *end = c->offset + (f->batch.rows - f->n_bare) + 1;
    uint32_t from = c->n;
    for (uint32_t i = 0; i < f->n_bare; i++) {
        bare *row = &f->bare[i];
        do {
            if (c->n == c->capacity && !grow(c)) {
                return false;
            }
            uint32_t taken = (row->n > 0) & (*row->slot == s);
            c->key[c->n] = *row->key;
            c->n += taken;
            row->key += taken;
            row->slot += taken;
            row->n -= taken;
        } while ((row->n > 0) & (*row->slot == s));
        end[i] = c->n;
    }
    for (uint32_t i = from; i < c->n; i++) {
        c->value[i] = 1;
    }
    return true;
}

/* All of any rows, where there is one slot only. */
static bool copy_all(const tn_filling *f, column *c)
{
    uint32_t *end = c->offset + (f->batch.rows - f->n_bare) + 1;
    uint32_t from = c->n;
    for (uint32_t i = 0; i < f->n_bare; i++) {
        const bare *row = &f->bare[i];
        while (row->n > c->capacity - c->n) {
            if (!grow(c)) {
                return false;
            }
        }
        if (row->n > 0) {
            memcpy(c->key + c->n, row->key, row->n * sizeof *row->key);
        }
        c->n += row->n;
        end[i] = c->n;
    }
    for (uint32_t i = from; i < c->n; i++) {
        c->value[i] = 1;
    }
    return true;
}

/* Many rows at once and slot by slot, so that each column is gone to once. False: no memory. */
static bool copy_bare(tn_filling *f)
{
    bool good = true;
    for (uint32_t s = 0; f->n_bare > 0 && good && s < f->schema->n_slots; s++) {
        column *c = &f->column[s];
        good = f->even                   ? copy_even(f, s, c)
               : f->schema->n_slots == 1 ? copy_all(f, c)
                                         : copy_any(f, s, c);
    }
    f->n_bare = 0;
    return good;
}

tn_status tn_filling_settle(tn_filling *f, tn_error *err)
{
    return copy_bare(f)
               ? TN_OK
               : tn_fail(err, TN_E_MEMORY, "no memory for a batch of %u rows", f->rows_max);
}

/* Bare rows are remembered until there are some; entries are added at once. False: no memory. */
static bool add_keys(tn_filling *f, const tn_rows *rows, uint32_t i)
{
    const tn_bare *b = tn_rows_bare(rows);
    uint32_t first = rows->row[i].first;
    uint32_t n = tn_rows_end_of(rows, i) - first;
    if ((b == NULL || f->n_bare == BARE_MAX) && !copy_bare(f)) {
        return false;
    }
    if (b != NULL) {
        f->even = b->even && (f->n_bare == 0 || f->even);
        f->bare[f->n_bare++] = (bare){b->key + first, b->slot + (b->width > 0 ? 0 : first), n};
        return true;
    }
    bool good = add_entries(f, rows->entry + first, n);
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
        size_t more = 2 * (f->id_size + size) + FIRST_CAPACITY;
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
    const tn_row *row = &rows->row[i];
    uint32_t r = f->batch.rows;
    uint32_t n = tn_rows_end_of(rows, i) - row->first;
    uint32_t n_numeric = f->schema->n_numeric;
    TN_ASSERT(r < f->rows_max);
    if (n > UINT32_MAX - f->batch.n_keys) {
        return tn_fail(err, TN_E_LIMIT, "more than %u keys in a batch", UINT32_MAX);
    }
    bool good = add_keys(f, rows, i);
    if (good && f->want_ids) {
        good = add_id(f, rows->text + row->id.at, row->id.size);
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
        const column *c = &f->column[s];
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
