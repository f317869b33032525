/* expiry.c - rows that leave at a sweep: by their age, score, show or norm. */
#include "config/field.h"
#include "ps/table/lifecycle.h"
#include "ps/table/tabledef.h"

enum { DAYS_MAX = 2932896 }; /* 9999-12-31, as of run.day (ps/snapshot/manifest.h) */

static const char *const combine_words[] = {"or", "and", NULL};

const tn_field tn_row_options_expiry[] = {
    TN_FIELD_F64(tn_lifecycle, ttl_days, "~", 0, DAYS_MAX, "days",
                 "not seen for more of them (run.day)"),
    TN_FIELD_F64(tn_lifecycle, score_below, "~", 0, 1e30, "",
                 "click * clicks + non_click * the rest, decayed, is less"),
    TN_FIELD_F64(tn_lifecycle, show_below, "~", 0, 1e30, "occurrences", "decayed, are fewer"),
    TN_FIELD_F64(tn_lifecycle, norm_below, "~", 0, 1e30, "", "L2 norm of its weights is less"),
    TN_FIELD_CHOICE(tn_lifecycle, combine, "or", combine_words,
                    "a row leaves when one of these holds that are given, or all of them"),
    TN_FIELD_F64(tn_lifecycle, click, "1", 0, 1e6, "", "weight of clicks in a row's score"),
    TN_FIELD_F64(tn_lifecycle, non_click, "0.1", 0, 1e6, "", "weight of other occurrences"),
    TN_FIELD_END_OF(tn_lifecycle),
};

static double norm2_of(const tn_plan *plan, const tn_row *row)
{
    double sum = 0;
    for (uint32_t s = 0; s < plan->n_segments; s++) {
        const float *w = row->data + plan->segment[s].w;
        for (uint32_t i = 0; i < plan->segment[s].dim; i++) {
            sum += (double)w[i] * (double)w[i];
        }
    }
    return sum;
}

/* The norm of a row that waits is above every bound. */
static bool has_expired(const tn_table *t, const tn_lifecycle *life, const tn_row *row,
                        uint32_t day)
{
    const tn_row_view view = tn_view_of(t, 0, row);
    const uint32_t days = tn_days_since(view.last_seen, day);
    const double norm = life->norm_below;
    const double norm2 = tn_row_waits(row) ? (double)INFINITY
                         : isnan(norm)     ? 0
                                           : norm2_of(tn_plan_of(t, view.group), row);
    const double asked[] = {life->ttl_days, life->score_below, life->show_below, norm};
    const bool yes[] = {days > life->ttl_days, tn_score_of(life, &view, day) < life->score_below,
                        view.show * tn_decay_of(life->decay, days) < life->show_below,
                        norm2 < norm * norm};
    bool any = false;
    bool every = true;
    for (uint32_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        any = any || yes[i]; /* a bound that is NAN says no */
        every = every && (yes[i] || isnan(asked[i]));
    }
    return life->combine != 0 ? any && every : any;
}

static uint64_t expire(const tn_policy_rows *rows)
{
    uint64_t leave = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        const tn_lifecycle *life = tn_lifecycle_of(&rows->t->options, rows->group[i]);
        const bool old =
            tn_lifecycle_expires(life) && has_expired(rows->t, life, rows->row[i], rows->day);
        leave |= (uint64_t)old << i;
    }
    return leave;
}

static uint32_t acts(const tn_row_options *all, const tn_layout *layout, uint32_t group)
{
    (void)layout;
    return (uint32_t)tn_lifecycle_expires(tn_lifecycle_of(all, group)) << TN_ON_SWEEP;
}

const tn_row_policy tn_row_policy_expiry = {
    .name = "expiry",
    .options = tn_row_options_expiry,
    .on = {[TN_ON_SWEEP] = expire},
    .acts = acts,
};
