/* stop.c - keeps a pointer to the flag that signals set. */
#include "base/core/stop.h"

#include <stddef.h>

static _Atomic(const atomic_bool *) of_process;

void tn_stop_set(const atomic_bool *flag)
{
    atomic_store(&of_process, flag);
}

bool tn_stop_is(const atomic_bool *own)
{
    const atomic_bool *flag = own != NULL ? own : atomic_load(&of_process);
    return flag != NULL && atomic_load(flag);
}
