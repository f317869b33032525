/* table_walk.c - every row of a partition in key order, for snapshots and exports; and rows put
 * back. */
#include "base/alloc.h"
#include "ps/rowsort.h"
#include "ps/tabledef.h"

static void list_rows(const tn_table *t, const tn_partition *p, tn_row_entry *out)
{
    for (uint32_t r = 0; r < t->layout->n_records; r++) {
        const tn_slab *slab = &p->shelf[r].slab;
        for (uint32_t i = 0; i < slab->n_rows; i++) {
            const tn_row *row = tn_slab_at(slab, i);
            *out++ = (tn_row_entry){tn_row_key(row), row};
        }
    }
}

static tn_status walk_locked(const tn_table *t, const tn_partition *p, tn_row_visit *visit,
                             void *arg, tn_error *err)
{
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
    list_rows(t, p, both);
    const tn_row_entry *sorted = tn_rows_sort(both, n);
    tn_status status = TN_OK;
    for (size_t i = 0; i < n && status == TN_OK; i++) {
        tn_row_view view = tn_view_of(t, sorted[i].row);
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
    tn_status status = walk_locked(t, p, visit, arg, err);
    pthread_mutex_unlock(&p->lock);
    return status;
}

static tn_status check_view(const tn_table *t, const tn_row_view *view, tn_error *err)
{
    if (view->group >= t->layout->n_groups) {
        return tn_fail(err, TN_E_CKPT, "a row of group %u, where there are %u groups", view->group,
                       t->layout->n_groups);
    }
    const tn_plan *plan = tn_plan_of(t, view->group);
    if (view->n_floats != plan->n_floats || view->present != tn_all_present(plan)) {
        return tn_fail(err, TN_E_CKPT, "a row of '%s' with %u floats, where rows have %u",
                       t->layout->group[view->group].name, view->n_floats, plan->n_floats);
    }
    if (view->last_seen > TN_ROW_DAY_MAX) {
        return tn_fail(err, TN_E_CKPT, "a row last seen on day %u, the last day is %d",
                       view->last_seen, TN_ROW_DAY_MAX);
    }
    return TN_OK;
}

static tn_status restore_locked(tn_table *t, const tn_row_view *view, tn_error *err)
{
    tn_shelf *shelf = tn_shelf_of(t, view->key, view->group);
    uint32_t number = 0;
    tn_row *row = tn_shelf_find(shelf, view->key, view->group, &number);
    if (row == NULL) {
        TN_TRY(tn_shelf_add(shelf, &t->extents, view->key, view->group, &row, err));
        atomic_fetch_add(&t->rows, 1);
    }
    row->present = view->present;
    row->seen = view->last_seen;
    tn_row_set_count(view->show, &row->show_high, &row->show_low);
    tn_row_set_count(view->click, &row->click_high, &row->click_low);
    memcpy(row->data, view->data, view->n_floats * sizeof *view->data);
    return TN_OK;
}

tn_status tn_table_restore(tn_table *t, const tn_row_view *row, tn_error *err)
{
    TN_TRY(check_view(t, row, err));
    pthread_mutex_t *lock = &t->partition[tn_partition_of(row->key, TN_PARTITIONS)].lock;
    pthread_mutex_lock(lock);
    tn_status status = restore_locked(t, row, err);
    pthread_mutex_unlock(lock);
    return status;
}
