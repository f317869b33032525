/* lifecycle.h - when a key gets a row, what that is worth by its counts, and when it has to leave.
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

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* When the segments of a key that wait (base/keys/record.h) come into being: in the first step of
 * training behind steps in which it was seen `threshold` times, with this probability, and with
 * l1_shrk only while a weight that does not wait is not 0. */
typedef struct tn_admission {
    uint32_t threshold; /* occurrences in earlier steps; 0: at once */
    double probability; /* in each step anew */
    bool filter;        /* keys without a row are counted in a filter (ps/table/key_filter.h) */
    bool l1_shrk;       /* and read as zeros whenever those weights are all 0 */
} tn_admission;

/* Of a share group. A bound that is NAN is not looked at. */
typedef struct tn_lifecycle {
    double decay; /* of show and click, per day, 0 .. 1; 1: none */
    double click_weight, non_click_weight;
    double ttl_days;        /* leaves when it was not seen for more days than these */
    double score_below;     /* .. when it scores less */
    double show_below;      /* .. when it was shown less often, decayed */
    double norm_below;      /* .. when the L2 norm of its weights is less */
    bool all;               /* combine: and: only when all bounds say so */
    tn_admission admission; /* of the segments of its record that wait */
} tn_lifecycle;

/* Where a run says nothing: counts that stay, rows that stay. */
#define TN_LIFECYCLE_NONE                                                                          \
    {                                                                                              \
        .admission = {.probability = 1}, .decay = 1, .click_weight = 1, .non_click_weight = 0.1,   \
        .ttl_days = (double)NAN, .score_below = (double)NAN, .show_below = (double)NAN,            \
        .norm_below = (double)NAN                                                                  \
    }

/* decay^days by squaring, so that it has the same bits everywhere; exactly 1 for 0 days. */
static inline double tn_decay_of(double decay, uint32_t days)
{
    double factor = 1;
    for (; days != 0; days >>= 1) {
        factor *= (days & 1) != 0 ? decay : 1;
        decay *= decay;
    }
    return factor;
}

/* Days between the last touch and `day`; 0 where the data went back. */
static inline uint32_t tn_days_since(uint32_t last_seen, uint32_t day)
{
    return day > last_seen ? day - last_seen : 0;
}

/* On `day`, of counts stored on last_seen. */
static inline double tn_score_of(const tn_lifecycle *life, const tn_row_view *row, uint32_t day)
{
    const double factor = tn_decay_of(life->decay, tn_days_since(row->last_seen, day));
    return factor *
           (life->click_weight * row->click + life->non_click_weight * (row->show - row->click));
}

/* What a net reads of a row's counts on `day`; all 0 for a row that nothing has shown. `raw_show`:
 * show itself comes first, as in TensorNet. Source: docs/numerics.md, section 9. */
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

/* Whether a row of this score, show (both decayed) and squared norm leaves that was not seen for so
 * many days. */
static inline bool tn_row_has_expired(const tn_lifecycle *life, uint32_t days, double score,
                                      double show, double norm2)
{
    const double norm = life->norm_below;
    const double asked[] = {life->ttl_days, life->score_below, life->show_below, norm};
    const bool yes[] = {days > life->ttl_days, score < life->score_below, show < life->show_below,
                        norm2 < norm * norm};
    bool any = false;
    bool every = true;
    for (uint32_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        any = any || yes[i]; /* a bound that is NAN says no */
        every = every && (yes[i] || isnan(asked[i]));
    }
    return life->all ? any && every : any;
}
