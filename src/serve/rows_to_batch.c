/* rows_to_batch.c - see rows_to_batch.h: a counting sort of the entries by slot, rows stay in
 * order. */
#include "serve/rows_to_batch.h"

#include "base/core/alloc.h"

struct tn_row_batch {
    const tn_schema *schema;
    tn_batch batch;
    tn_slot *slot;
    uint32_t *next; /* per slot: where its next entry goes */
    uint32_t rows_max;
    uint32_t *offset; /* slots * (rows_max + 1) */
    uint32_t entries_max;
    uint64_t *key;
    float *value;
};

tn_status tn_row_batch_new(tn_row_batch **out, const tn_schema *schema, tn_error *err)
{
    *out = NULL;
    tn_row_batch *b = tn_try_alloc(1, sizeof *b, "rows to score", err);
    if (b == NULL) {
        return TN_E_MEMORY;
    }
    b->schema = schema;
    b->slot = tn_try_alloc((size_t)schema->n_slots + 1, sizeof *b->slot, "rows to score", err);
    b->next = tn_try_alloc((size_t)schema->n_slots + 1, sizeof *b->next, "rows to score", err);
    if (b->slot == NULL || b->next == NULL) {
        tn_row_batch_free(b);
        return TN_E_MEMORY;
    }
    *out = b;
    return TN_OK;
}

void tn_row_batch_free(tn_row_batch *b)
{
    if (b != NULL) {
        tn_free(b->slot);
        tn_free(b->next);
        tn_free(b->offset);
        tn_free(b->key);
        tn_free(b->value);
        tn_free(b);
    }
}

static tn_status make_room(tn_row_batch *b, const tn_rows *rows, tn_error *err)
{
    if (rows->n > b->rows_max || b->offset == NULL) {
        size_t n = (size_t)rows->n + rows->n / 4 + 16;
        tn_free(b->offset);
        b->rows_max = 0;
        b->offset = tn_try_alloc((size_t)b->schema->n_slots * (n + 1) + 1, sizeof *b->offset,
                                 "rows to score", err);
        if (b->offset == NULL) {
            return TN_E_MEMORY;
        }
        b->rows_max = (uint32_t)n;
    }
    if (rows->n_entries > b->entries_max || b->key == NULL) {
        size_t n = (size_t)rows->n_entries + rows->n_entries / 4 + 64;
        tn_free(b->key);
        tn_free(b->value);
        b->entries_max = 0;
        b->key = tn_try_alloc(n, sizeof *b->key, "rows to score", err);
        b->value = tn_try_alloc(n, sizeof *b->value, "rows to score", err);
        if (b->key == NULL || b->value == NULL) {
            return TN_E_MEMORY;
        }
        b->entries_max = (uint32_t)n;
    }
    return TN_OK;
}

/* Where each slot's run of entries begins. */
static void place_slots(tn_row_batch *b, const tn_rows *rows)
{
    uint32_t n_slots = b->schema->n_slots;
    for (uint32_t s = 0; s < n_slots; s++) {
        b->next[s] = 0;
    }
    for (uint32_t i = 0; i < rows->n_entries; i++) {
        b->next[rows->entry[i].slot]++;
    }
    uint32_t at = 0;
    for (uint32_t s = 0; s < n_slots; s++) {
        uint32_t count = b->next[s];
        b->slot[s] = (tn_slot){.offset = b->offset + (size_t)s * (b->rows_max + (size_t)1),
                               .key = b->key + at};
        b->next[s] = at;
        at += count;
    }
}

tn_status tn_row_batch_fill(tn_row_batch *b, const tn_rows *rows, const tn_batch **out,
                            tn_error *err)
{
    TN_TRY(make_room(b, rows, err));
    place_slots(b, rows);
    uint32_t n_slots = b->schema->n_slots;
    for (uint32_t r = 0; r < rows->n; r++) {
        for (uint32_t s = 0; s < n_slots; s++) {
            b->slot[s].offset[r] = b->next[s] - (uint32_t)(b->slot[s].key - b->key);
        }
        for (uint32_t i = rows->row[r].first; i < tn_rows_end_of(rows, r); i++) {
            const tn_entry *e = &rows->entry[i];
            uint32_t to = b->next[e->slot]++;
            b->key[to] = e->key;
            b->value[to] = e->value;
            if (e->value != 1) {
                b->slot[e->slot].value = b->value + (b->slot[e->slot].key - b->key);
            }
        }
    }
    for (uint32_t s = 0; s < n_slots; s++) {
        b->slot[s].offset[rows->n] = b->next[s] - (uint32_t)(b->slot[s].key - b->key);
    }
    b->batch = (tn_batch){.rows = rows->n,
                          .n_slots = n_slots,
                          .n_numeric = b->schema->n_numeric,
                          .n_keys = rows->n_entries,
                          .numeric = rows->numeric,
                          .slot = b->slot};
    *out = &b->batch;
    return TN_OK;
}
