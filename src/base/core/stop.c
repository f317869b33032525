/* stop.c - keeps a pointer to the flag that signals set. */
#include "base/core/stop.h"

#include <stddef.h>

static _Atomic(const atomic_bool *) of_process;

static atomic_bool group_ends;

void tn_stop_by_group(bool ends)
{
    atomic_store(&group_ends, ends);
}

void tn_stop_set(const atomic_bool *flag)
{
    atomic_store(&of_process, flag);
}

bool tn_stop_is(const atomic_bool *own)
{
    const atomic_bool *flag = own != NULL ? own : atomic_load(&of_process);
    return (flag != NULL && atomic_load(flag)) || (own == NULL && atomic_load(&group_ends));
}
