/* once.c - rows of keys that came only once leave after some days: the row policy of the recipe's
 * test. */
#include "config/field.h"
#include "ps/table/lifecycle.h"
#include "ps/table/tabledef.h"

typedef struct once_opts {
    double after_days; /* NAN: they stay */
} once_opts;

const tn_field tn_row_options_once[] = {
    TN_FIELD_F64(once_opts, after_days, "~", 0, 36500, "days",
                 "not seen for more of them since the only time"),
    TN_FIELD_END_OF(once_opts),
};

static const once_opts *options_of(const tn_row_options *all, uint32_t group)
{
    static const once_opts none = {.after_days = (double)NAN};
    const once_opts *opts = all->of[TN_POLICY_once];
    return opts != NULL ? &opts[group] : &none;
}

static uint64_t forget(const tn_policy_rows *rows)
{
    uint64_t leave = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        const tn_row *row = rows->row[i];
        const double days = tn_days_since(tn_row_day(row), rows->day);
        const bool once = tn_row_count(row->show_high, row->show_low) <= 1;
        const double after = options_of(&rows->t->options, rows->group[i])->after_days;
        leave |= (uint64_t)(once && days > after) << i;
    }
    return leave;
}

static uint32_t acts(const tn_row_options *all, const tn_layout *layout, uint32_t group)
{
    (void)layout;
    return isnan(options_of(all, group)->after_days) ? 0 : 1U << TN_ON_SWEEP;
}

const tn_row_policy tn_row_policy_once = {
    .name = "once",
    .options = tn_row_options_once,
    .on = {[TN_ON_SWEEP] = forget},
    .acts = acts,
};
