/* lifecycle.h - the options of row policies, and what the counts of a row are worth.
 *
 *     stored        show, click as of the last day on which the row was touched
 *     on day D      show d^(D - last), click d^(D - last)       d: decay
 *     score         click_weight click + non_click_weight (show - click)
 *     to a net      ln(1 + show), ln(1 + click) - ln(1 + show)
 *
 * What a count is worth depends on the stored one and on two days, never on how often it was asked
 * for: it is written only when the row is touched. Days are those of the data (run.day), so a run
 * gives the same on any day of the calendar. Source: docs/numerics.md, section 9.
 */
#pragma once

#include "base/keys/record.h"
#include "base/math/fmath.h"
#include "ps/table/row_policy.h"

#include <math.h>

/* Says when the segments of a key that wait (base/keys/record.h) come into being: in the first step
 * of training after steps in which it was seen `threshold` times, with this probability, and with
 * l1_shrk only while a weight that does not wait is not 0. */
typedef struct tn_admission {
    uint32_t threshold; /* Occurrences in earlier steps; 0: at once. */
    double probability; /* It is drawn in each step anew. */
    tn_variant filter;  /* with tn_filter_opts it counts keys without a row. */
    tn_strs uses;       /* The embedding inputs that wait; n 0: all. */
    bool l1_shrk;       /* They read as zeros whenever the weights of the others are all 0. */
} tn_admission;

typedef struct tn_filter_opts {
    uint64_t keys; /* The number of keys that it is made for. */
    double error;
} tn_filter_opts;

/* Says when a row leaves, and how its counts decay. A bound that is NAN is not looked at. */
typedef struct tn_lifecycle {
    double decay;            /* The share of show and click that is left after a day. */
    double click, non_click; /* Weights of the score. */
    double ttl_days;         /* A row leaves when it was not seen for more days, */
    double score_below;
    double show_below; /* or its decayed show is less, */
    double norm_below; /* or the L2 norm of its weights. */
    uint32_t combine;  /* 0: a row leaves when one bound says so; 1: when all that are given do */
} tn_lifecycle;

extern const tn_admission tn_admission_none; /* Every key gets a whole row at once. */
extern const tn_lifecycle tn_lifecycle_none; /* Counts stay, and rows stay. */

static inline const tn_lifecycle *tn_lifecycle_of(const tn_row_options *all, uint32_t group)
{
    const tn_lifecycle *life = all != NULL ? all->of[TN_POLICY_expiry] : NULL;
    return life != NULL ? &life[group] : &tn_lifecycle_none;
}

static inline const tn_admission *tn_admission_of(const tn_row_options *all, uint32_t group)
{
    const tn_admission *admission = all != NULL ? all->of[TN_POLICY_admission] : NULL;
    return admission != NULL ? &admission[group] : &tn_admission_none;
}

/* Whether keys of the group that have no row are counted in a filter (ps/table/key_filter.h). */
static inline bool tn_admission_has_filter(const tn_admission *a)
{
    return a->threshold > 0 && a->filter.opts != NULL;
}

/* Returns decay^days by squaring, so that it has the same bits everywhere; exactly 1 for 0 days. */
static inline double tn_decay_of(double decay, uint32_t days)
{
    double factor = 1;
    for (; days != 0; days >>= 1) {
        factor *= (days & 1) != 0 ? decay : 1;
        decay *= decay;
    }
    return factor;
}

/* Returns the days between the last touch and `day`; 0 where the data went back. */
static inline uint32_t tn_days_since(uint32_t last_seen, uint32_t day)
{
    return day > last_seen ? day - last_seen : 0;
}

/* Returns the score on `day` of counts stored on last_seen. */
static inline double tn_score_of(const tn_lifecycle *life, const tn_row_view *row, uint32_t day)
{
    const double factor = tn_decay_of(life->decay, tn_days_since(row->last_seen, day));
    return factor * (life->click * row->click + life->non_click * (row->show - row->click));
}

/* Writes what a net reads of a row's counts on `day`; all 0 for a row that nothing has shown.
 * `raw_show`: show itself comes first, as in TensorNet. Source: docs/numerics.md, section 9. */
static inline void tn_net_counts(const tn_lifecycle *life, const tn_row_view *row, uint32_t day,
                                 bool raw_show, float out[TN_COUNTS])
{
    const double factor = tn_decay_of(life->decay, tn_days_since(row->last_seen, day));
    const double show = factor * row->show;
    const double shown = tn_log1p(show);
    out[0] = (float)(raw_show ? show : shown);
    out[1] = (float)(tn_log1p(factor * row->click) - shown);
}

static inline bool tn_lifecycle_expires(const tn_lifecycle *life)
{
    return !isnan(life->ttl_days) || !isnan(life->score_below) || !isnan(life->show_below) ||
           !isnan(life->norm_below);
}
