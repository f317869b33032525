/* embedder.c - the embedder of the calling thread. */
#include "base/core/embedder.h"

static _Thread_local const tn_embedder *here;

const tn_embedder *tn_embedder_enter(const tn_embedder *embedder)
{
    const tn_embedder *before = here;
    here = embedder;
    return before;
}

const tn_embedder *tn_embedder_here(void)
{
    return here;
}
