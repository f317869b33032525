/* launcher_demo.c - a program that sets DEMO_RANK and DEMO_SIZE, all on one machine: the launcher
 * of the recipe's test. */
#include "cluster/launch/launcher.h"

static const char *const variables[] = {"DEMO_RANK", "DEMO_SIZE", NULL};

static tn_status find(const tn_launch_env *env, uint32_t size, tn_arena *arena, tn_launched *out,
                      tn_error *err)
{
    (void)size;
    (void)arena;
    TN_TRY(tn_env_u32(env, "DEMO_RANK", TN_PEERS_MAX, &out->rank, err));
    TN_TRY(tn_env_u32(env, "DEMO_SIZE", TN_PEERS_MAX + 1, &out->size, err));
    out->is_here = out->rank != TN_UNSET_U32;
    out->one_host = true;
    return TN_OK;
}

const tn_launcher tn_launcher_demo = {.name = "the demo", .variables = variables, .find = find};
