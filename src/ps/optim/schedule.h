/* schedule.h - the learning rate over the steps (numerics section 6), as a factor of the base rate.
 */
#pragma once

#include <stdint.h>

typedef struct tn_choice tn_choice;   /* config/values.h */
typedef struct tn_variant tn_variant; /* likewise */

/* constant linear cosine polynomial exponential inverse_sqrt piecewise, each with warmup */
extern const tn_choice *const tn_schedule_choices[]; /* NULL-terminated */

/* Factor at 0-based step `step` of `steps` in all (0: not known; then `steps:` of the schedule is
 * required where the rule needs an end). `schedule->choice` NULL: 1. */
double tn_schedule_factor(const tn_variant *schedule, uint64_t step, uint64_t steps);

/* NULL, or why this schedule cannot run: no known end, lists that do not fit each other. */
const char *tn_schedule_check(const tn_variant *schedule, uint64_t steps);
