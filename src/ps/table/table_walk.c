/* table_walk.c - every row of a partition in key order, for exports and tests. */
#include "base/core/alloc.h"
#include "ps/table/rowsort.h"
#include "ps/table/tabledef.h"

enum { FETCH_AHEAD = 8 }; /* rows */

static void list_rows(const tn_table *t, uint32_t partition, tn_row_entry *out)
{
    const tn_partition *p = &t->partition[partition];
    for (uint32_t r = 0; r < t->layout->n_records; r++) {
        const tn_slab *slab = &p->shelf[r].slab;
        for (uint32_t i = 0; i < slab->n_rows; i++) {
            const tn_row *row = tn_slab_at(slab, i);
            *out++ = (tn_row_entry){tn_row_key(row, partition), row};
        }
    }
}

static tn_status walk_locked(const tn_table *t, uint32_t partition, tn_row_visit *visit, void *arg,
                             tn_error *err)
{
    const tn_partition *p = &t->partition[partition];
    size_t n = 0;
    for (uint32_t r = 0; r < t->layout->n_records; r++) {
        n += p->shelf[r].slab.n_rows;
    }
    if (n == 0) {
        return TN_OK;
    }
    tn_row_entry *both = tn_try_alloc(2 * n, sizeof *both, "rows in key order", err);
    if (both == NULL) {
        return TN_E_MEMORY;
    }
    list_rows(t, partition, both);
    const tn_row_entry *sorted = tn_rows_sort(both, n);
    tn_status status = TN_OK;
    for (size_t i = 0; i < n && status == TN_OK; i++) {
        if (n - i > FETCH_AHEAD) { /* in key order rows lie anywhere */
            const char *soon = (const char *)sorted[i + FETCH_AHEAD].row;
            __builtin_prefetch(soon);
            __builtin_prefetch(soon + TN_CACHE_LINE);
        }
        tn_row_view view = tn_view_of(t, sorted[i].key, sorted[i].row);
        status = visit(arg, &view, err);
    }
    tn_free(both);
    return status;
}

tn_status tn_table_walk(tn_table *t, uint32_t partition, tn_row_visit *visit, void *arg,
                        tn_error *err)
{
    TN_ASSERT(partition < TN_PARTITIONS);
    tn_partition *p = &t->partition[partition];
    pthread_mutex_lock(&p->lock);
    tn_status status = walk_locked(t, partition, visit, arg, err);
    pthread_mutex_unlock(&p->lock);
    return status;
}
