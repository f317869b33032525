/* table_refill.c - rows put back: from checkpoints, dumps and by hand. */
#include "ps/table/tabledef.h"

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

static tn_status check_limit(const tn_table *t, tn_error *err)
{
    const uint64_t limit = tn_table_limit(t);
    return limit == 0 || tn_table_bytes(t) <= limit
               ? TN_OK
               : tn_fail(err, TN_E_MEMORY,
                         "the rows take more than %.1f MB, which is what the table may take",
                         (double)limit * 1e-6);
}

void tn_refill_begin(tn_refill *r, tn_table *t, uint32_t partition)
{
    TN_ASSERT(partition < TN_PARTITIONS);
    *r = (tn_refill){.t = t, .partition = partition, .fresh = true};
    pthread_mutex_lock(&t->partition[partition].lock);
    for (uint32_t i = 0; i < t->layout->n_records; i++) {
        r->fresh = r->fresh && t->partition[partition].shelf[i].slab.n_rows == 0;
    }
}

tn_status tn_refill_add(tn_refill *r, const tn_row_view *view, tn_error *err)
{
    tn_table *t = r->t;
    TN_TRY(check_view(t, view, err));
    TN_ASSERT(tn_partition_of(view->key, TN_PARTITIONS) == r->partition);
    tn_shelf *shelf = tn_shelf_of(t, view->key, view->group);
    uint32_t number = 0;
    r->fresh = r->fresh && (r->n == 0 || view->key > r->last_key);
    tn_row *row = r->fresh ? NULL : tn_shelf_find(shelf, view->key, view->group, &number);
    if (row == NULL) {
        TN_TRY(tn_shelf_add(shelf, &t->extents, view->key, view->group, &row, err));
        r->added++;
        TN_TRY(check_limit(t, err));
    }
    r->last_key = view->key;
    r->n++;
    tn_row_set_seen(row, 0, view->last_seen);
    tn_row_set_count(view->show, &row->show_high, &row->show_low);
    tn_row_set_count(view->click, &row->click_high, &row->click_low);
    memcpy(row->data, view->data, view->n_floats * sizeof *view->data);
    return TN_OK;
}

tn_status tn_refill_remove(tn_refill *r, uint64_t key, uint16_t group, tn_error *err)
{
    tn_table *t = r->t;
    if (group >= t->layout->n_groups) {
        return tn_fail(err, TN_E_CKPT, "a row of group %u, where there are %u groups", group,
                       t->layout->n_groups);
    }
    TN_ASSERT(tn_partition_of(key, TN_PARTITIONS) == r->partition);
    r->fresh = false;
    if (tn_shelf_remove(tn_shelf_of(t, key, group), key, group)) {
        r->added--;
    }
    return TN_OK;
}

void tn_refill_end(tn_refill *r)
{
    pthread_mutex_unlock(&r->t->partition[r->partition].lock);
    atomic_fetch_add(&r->t->rows, (uint64_t)r->added);
}

tn_status tn_table_restore(tn_table *t, const tn_row_view *row, tn_error *err)
{
    tn_refill r;
    tn_refill_begin(&r, t, tn_partition_of(row->key, TN_PARTITIONS));
    tn_status status = tn_refill_add(&r, row, err);
    tn_refill_end(&r);
    return status;
}
