/* row_sweep.c - sweeps the table of a process, and adds up what the processes of a run tell. */
#include "train/step/row_sweep.h"

#include "ps/optim/rule.h"
#include "ps/table/lifecycle.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <string.h>

enum { NUMBERS = 4 };

bool tn_rows_may_leave(const tn_model_plan *plan)
{
    bool may = plan->run->embedding.on_full == TN_FULL_EVICT;
    for (uint32_t g = 0; g < plan->layout->n_groups; g++) {
        may = may || tn_lifecycle_expires(&plan->rules->life[g]);
    }
    return may;
}

tn_status tn_rows_sweep(tn_worker *w, uint32_t day, tn_group_rows *out, tn_error *err)
{
    return tn_table_sweep(w->shard.table, w->team, day, out, err);
}

void tn_group_rows_pack(const tn_group_rows *groups, uint32_t n, tn_text *out)
{
    TN_ASSERT(groups != NULL || n == 0);
    for (uint32_t g = 0; g < n; g++) {
        const uint64_t number[NUMBERS] = {groups[g].rows, groups[g].bytes, groups[g].expired,
                                          groups[g].evicted};
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
        groups[g].rows += number[0];
        groups[g].bytes += number[1];
        groups[g].expired += number[2];
        groups[g].evicted += number[3];
    }
    return true;
}
