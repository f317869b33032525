/* row_policy.c - the list of row policies, and which of their hooks are needed. */
#include "ps/table/row_policy.h"

#include "ps/table/lifecycle.h"

const tn_row_policy *const tn_row_policies[] = {
#define TN_ROW_POLICY(name) &tn_row_policy_##name,
#include "ps/table/row_policies.def"
#undef TN_ROW_POLICY
};

const tn_admission tn_admission_none = {.probability = 1};
const tn_lifecycle tn_lifecycle_none = {
    .decay = 1,
    .click = 1,
    .non_click = 0.1,
    .ttl_days = (double)NAN,
    .score_below = (double)NAN,
    .show_below = (double)NAN,
    .norm_below = (double)NAN,
};

uint32_t tn_row_policy_moments(const tn_row_policy *policy, const tn_row_options *all,
                               const tn_layout *layout)
{
    static const tn_row_options none = {0};
    uint32_t moments = 0;
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        moments |= policy->acts(all != NULL ? all : &none, layout, g);
    }
    return moments;
}
