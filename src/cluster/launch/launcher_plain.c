/* launcher_plain.c - somebody who sets TNET_RANK by hand or by a script; tnet-train --peers, too.
 */
#include "cluster/launch/launcher.h"

static tn_status find(const tn_membership_in *in, uint32_t size, tn_arena *arena, tn_launched *out,
                      tn_error *err)
{
    (void)arena;
    out->size = size;
    TN_TRY(tn_env_u32(in, "TNET_RANK", TN_PEERS_MAX, &out->rank, err));
    out->is_here = out->rank != TN_UNSET_U32;
    return TN_OK;
}

const tn_launcher tn_launcher_plain = {.name = "TNET_RANK", .find = find};
