/* rows_compact.c - see rows_compact.h. */
#include "io/rows/rows_compact.h"

#include "base/core/alloc.h"
#include "io/rows/rows_private.h"

#include <string.h>

const tn_bare *tn_rows_bare(const tn_rows *rows)
{
    const tn_bare *bare = &rows->private->bare.now;
    return bare->key != NULL ? bare : NULL;
}

static bool is_even(const tn_bare *bare, uint32_t n_slots)
{
    bool even = bare->width == n_slots;
    for (uint32_t i = 0; even && i < n_slots; i++) {
        even = bare->slot[i] == i;
    }
    return even;
}

bool tn_rows_put_bare(tn_rows *rows, const char *key, uint32_t n, const char *slot, uint32_t width)
{
    struct rows_bare *b = &rows->private->bare;
    uint32_t n_slots = width > 0 ? width : n;
    void *keys = b->key;
    void *slots = b->slot;
    bool good = tn_rows_grow(&keys, 0, n + 1, sizeof *b->key, &b->keys_max);
    b->key = keys;
    good = good && tn_rows_grow(&slots, 0, n_slots + 1, sizeof *b->slot, &b->slots_max);
    b->slot = slots;
    if (!good || n == 0) {
        return good;
    }
    memcpy(b->key, key, n * sizeof *b->key);
    memcpy(b->slot, slot, n_slots * sizeof *b->slot);
    b->now = (tn_bare){.key = b->key, .slot = b->slot, .width = width};
    b->now.even = is_even(&b->now, rows->schema->n_slots);
    return true;
}

void tn_rows_free_bare(tn_rows *rows)
{
    tn_free(rows->private->bare.key);
    tn_free(rows->private->bare.slot);
    tn_free(rows->private->bare.grid);
}
