/* stop.c - keeps a pointer to the flag that signals set. */
#include "base/core/stop.h"

#include "base/core/embedder.h"

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
    const tn_embedder *embedder = tn_embedder_here();
    const atomic_bool *flag = own != NULL        ? own
                              : embedder != NULL ? embedder->stop
                                                 : atomic_load(&of_process);
    const bool grouped = own == NULL && embedder == NULL;
    return (flag != NULL && atomic_load(flag)) || (grouped && atomic_load(&group_ends));
}
