/* row_sweep.c - sweeps the table of a process, and adds up the counts of all processes of a run. */
#include "train/step/row_sweep.h"

#include "ps/optim/rule.h"
#include "ps/table/row_policy.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"

#include <string.h>

enum { NUMBERS = 7 };

bool tn_rows_come_and_go(const tn_model_plan *plan)
{
    uint32_t moments = 0;
    for (uint32_t i = 0; i < TN_ROW_POLICIES; i++) {
        moments |= tn_row_policy_moments(tn_row_policies[i], plan->rules->rows, plan->layout);
    }
    return plan->run->embedding.on_full == TN_FULL_EVICT || (moments >> TN_ON_SWEEP & 1) != 0;
}

void tn_group_rows_pack(const tn_group_rows *groups, uint32_t n, tn_text *out)
{
    TN_ASSERT(groups != NULL || n == 0);
    for (uint32_t g = 0; g < n; g++) {
        const tn_group_rows *of = &groups[g];
        const uint64_t number[NUMBERS] = {of->rows,    of->waiting, of->bytes,   of->nonzero,
                                          of->expired, of->evicted, of->admitted};
        for (uint32_t i = 0; i < NUMBERS; i++) {
            tn_text_add_u64le(out, number[i]);
        }
    }
}

bool tn_group_rows_add(tn_group_rows *groups, uint32_t n, const char *bytes, size_t size)
{
    if (size != (size_t)n * NUMBERS * sizeof(uint64_t)) {
        return false;
    }
    for (uint32_t g = 0; g < n; g++) {
        uint64_t number[NUMBERS];
        memcpy(number, bytes + g * sizeof number, sizeof number);
        const tn_group_rows more = {number[0], number[1], number[2], number[3],
                                    number[4], number[5], number[6]};
        tn_group_rows_sum(&groups[g], &more);
    }
    return true;
}
