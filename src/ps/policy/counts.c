/* counts.c - how often the key of a row was shown and clicked: kept by pushes, read by nets. */
#include "ps/table/lifecycle.h"
#include "ps/table/tabledef.h"

/* Brings the counts of a row that was last touched on another day to this one. A day before its
 * last one changes nothing, and while a row waits its counts are kept whole. Returns the stamp and
 * day that the row gets. */
__attribute__((noinline)) static uint32_t age_row(const tn_policy_rows *rows, uint32_t group,
                                                  tn_row *row)
{
    const uint32_t last = tn_row_day(row);
    const double show = tn_row_count(row->show_high, row->show_low);
    if (rows->day < last) {
        return (rows->seen & ~(uint32_t)TN_ROW_DAY_MAX) | last;
    }
    if (show != 0 && !tn_row_waits(row)) {
        const tn_lifecycle *life = tn_lifecycle_of(&rows->t->options, group);
        const double factor = tn_decay_of(life->decay, rows->day - last);
        const double click = tn_row_count(row->click_high, row->click_low);
        tn_row_set_count(show * factor, &row->show_high, &row->show_low);
        tn_row_set_count(click * factor, &row->click_high, &row->click_low);
    }
    return rows->seen;
}

static uint64_t count_push(const tn_policy_rows *rows)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        tn_row *row = rows->row[i];
        uint32_t seen = rows->seen;
        if (row == NULL) {
            continue;
        }
        if (__builtin_expect(((row->seen ^ seen) & TN_ROW_DAY_MAX) != 0, 0)) {
            seen = age_row(rows, rows->group[i], row);
        }
        const double show = tn_row_count(row->show_high, row->show_low) + rows->show[i];
        const double click = tn_row_count(row->click_high, row->click_low) + rows->click[i];
        tn_row_set_count(show, &row->show_high, &row->show_low);
        tn_row_set_count(click, &row->click_high, &row->click_low);
        row->seen = seen | (row->seen & TN_ROW_KEPT);
    }
    return 0;
}

/* Reads as zeros where a key has no row, or one that no export holds. */
static uint64_t read_counts(const tn_policy_rows *rows)
{
    const tn_table *t = rows->t;
    for (uint32_t i = 0; i < rows->n && rows->to != NULL; i++) {
        const uint32_t group = rows->group[i];
        const tn_record *record = tn_record_of(t->layout, group);
        const tn_row *row = rows->row[i];
        tn_row_view view = {0};
        if (record->counts.dim == 0) {
            continue;
        }
        if (row != NULL && tn_plan_of_row(t, row)->present != 0) {
            view = tn_view_of(t, 0, row);
        }
        tn_net_counts(tn_lifecycle_of(&t->options, group), &view, *t->day, record->raw_show,
                      rows->to + rows->at[i] + record->counts.at);
    }
    return 0;
}

static uint32_t acts(const tn_row_options *all, const tn_layout *layout, uint32_t group)
{
    (void)all;
    const uint32_t read = tn_record_of(layout, group)->counts.dim > 0;
    return 1U << TN_ON_PUSH | read << TN_ON_READ;
}

const tn_row_policy tn_row_policy_counts = {
    .name = "counts",
    .on = {[TN_ON_READ] = read_counts, [TN_ON_PUSH] = count_push},
    .acts = acts,
};
