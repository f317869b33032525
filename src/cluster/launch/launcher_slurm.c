/* launcher_slurm.c - tasks of a Slurm step, started by srun.
 *
 * A batch script has SLURM_PROCID too, but it is one process, not a task of a group: only what srun
 * sets, SLURM_STEP_NODELIST, makes a step. Which task is on which node follows from the list of
 * nodes, the tasks on each and the distribution; rank 0 is on the first node in all of them but
 * "arbitrary", whose order is not in the environment.
 */
#include "base/core/number.h"
#include "base/math/rng.h"
#include "cluster/launch/hostlist.h"
#include "cluster/launch/launcher.h"

#include <string.h>

enum {
    PORT_FIRST = 20000,
    PORT_COUNT = 12000
}; /* below what systems give to outgoing connections */

typedef struct step {
    const char *const *node;
    uint32_t n_nodes;
    const uint32_t *tasks; /* n_nodes: on each node */
    uint32_t size;
} step;

static const char *either(const tn_launch_env *env, const char *first, const char *second)
{
    const char *value = tn_env(env, first);
    return value != NULL ? value : tn_env(env, second);
}

static tn_status read_step(const tn_launch_env *env, uint32_t size, tn_arena *arena, step *out,
                           tn_error *err)
{
    const char *tasks = either(env, "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE");
    uint32_t n = 0;
    uint32_t total = 0;
    out->size = size;
    TN_TRY(tn_hostlist_read(tn_env(env, "SLURM_STEP_NODELIST"), arena, &out->node, &out->n_nodes,
                            err));
    if (tasks == NULL) {
        return tn_fail(err, TN_E_CONFIG, "Slurm sets no SLURM_STEP_TASKS_PER_NODE");
    }
    TN_TRY(tn_counts_read(tasks, arena, &out->tasks, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        total += out->tasks[i];
    }
    if (n != out->n_nodes || total != size) {
        return tn_fail(err, TN_E_CONFIG,
                       "Slurm contradicts itself: %u nodes with %u tasks, but '%s' are %u on %u",
                       out->n_nodes, size, tasks, total, n);
    }
    return TN_OK;
}

/* The tasks one after another, `run` of them on a node before it is the next one's turn. */
static void deal(const step *s, uint32_t run, tn_arena *arena, const char **host)
{
    TN_ASSERT(run > 0); /* else it never ends */
    uint32_t *left = TN_NEW_ARRAY(arena, uint32_t, s->n_nodes);
    memcpy(left, s->tasks, s->n_nodes * sizeof *left);
    for (uint32_t rank = 0, i = 0; rank < s->size; i = (i + 1) % s->n_nodes) {
        for (uint32_t k = 0; k < run && left[i] > 0; k++, left[i]--) {
            TN_ASSERT(rank < s->size);
            host[rank++] = s->node[i];
        }
    }
}

/* *run: the tasks that a node gets before it is the next one's turn; 0: it is not known. */
static tn_status read_run(const tn_launch_env *env, uint32_t *run, tn_error *err)
{
    const char *how = tn_env(env, "SLURM_DISTRIBUTION");
    how = how != NULL ? how : "block";
    *run = 0;
    if (strncmp(how, "block", 5) == 0) {
        *run = TN_PEERS_MAX;
    } else if (strncmp(how, "cyclic", 6) == 0) {
        *run = 1;
    } else if (strncmp(how, "plane", 5) == 0) {
        return tn_env_u32(env, "SLURM_DIST_PLANESIZE", TN_HOSTS_MAX, run, err);
    }
    return TN_OK;
}

/* The nodes of all tasks. NULL where they are not in the environment, or where this task is on
 * another node than they say: then only names in messages are missing. */
static tn_status find_hosts(const tn_launch_env *env, const step *s, tn_arena *arena,
                            tn_launched *out, tn_error *err)
{
    uint32_t run = 0;
    uint32_t own = TN_UNSET_U32;
    TN_TRY(read_run(env, &run, err));
    TN_TRY(tn_env_u32(env, "SLURM_NODEID", TN_HOSTS_MAX, &own, err));
    if (run == 0 || out->rank >= s->size) {
        return TN_OK;
    }
    const char **host = TN_NEW_ARRAY(arena, const char *, s->size);
    deal(s, run, arena, host);
    bool fits =
        own == TN_UNSET_U32 || (own < s->n_nodes && strcmp(s->node[own], host[out->rank]) == 0);
    out->host = fits ? host : NULL;
    return TN_OK;
}

static tn_status find_root(const tn_launch_env *env, const step *s, tn_arena *arena,
                           tn_launched *out, tn_error *err)
{
    const char *how = tn_env(env, "SLURM_DISTRIBUTION");
    uint32_t port = TN_UNSET_U32;
    uint32_t own = 0;
    if (s->n_nodes == 1 || (how != NULL && strncmp(how, "arbitrary", 9) == 0)) {
        return TN_OK;
    }
    TN_TRY(tn_env_u32(env, "SLURM_NODEID", TN_HOSTS_MAX, &own, err));
    if (out->rank == 0 && own != 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "Slurm runs rank 0 on node %u of '%s', not on the first\n"
                       "hint: set TNET_ROOT=host:port of rank 0",
                       own, tn_env(env, "SLURM_STEP_NODELIST"));
    }
    TN_TRY(tn_env_u32(env, "TNET_PORT", UINT16_MAX + 1, &port, err));
    if (port == TN_UNSET_U32) {
        /* two steps of one job may run side by side on the same nodes */
        port = PORT_FIRST + (uint32_t)(tn_mix(tn_name64(out->job)) % PORT_COUNT);
    }
    out->root = tn_arena_text(arena, "%s:%u", s->node[0], port);
    return TN_OK;
}

static tn_status find(const tn_launch_env *env, uint32_t size, tn_arena *arena, tn_launched *out,
                      tn_error *err)
{
    step s = {0};
    (void)size;
    if (tn_env(env, "SLURM_STEP_NODELIST") == NULL) {
        const char *tasks = tn_env(env, "SLURM_NTASKS");
        out->note = tasks != NULL && strcmp(tasks, "1") != 0
                        ? "in a Slurm job of several tasks, but not started by srun"
                        : NULL;
        return TN_OK;
    }
    TN_TRY(tn_env_u32(env, "SLURM_PROCID", TN_PEERS_MAX, &out->rank, err));
    TN_TRY(tn_env_u32(env, "SLURM_NTASKS", TN_PEERS_MAX + 1, &out->size, err));
    TN_TRY(tn_env_u32(env, "SLURM_STEP_NUM_TASKS", TN_PEERS_MAX + 1, &out->size, err));
    if (out->rank == TN_UNSET_U32 || out->size == TN_UNSET_U32) {
        return tn_fail(err, TN_E_CONFIG, "Slurm sets no %s",
                       out->rank == TN_UNSET_U32 ? "SLURM_PROCID" : "SLURM_STEP_NUM_TASKS");
    }
    out->is_here = true;
    const char *job = either(env, "SLURM_JOB_ID", "SLURM_JOBID");
    const char *number = either(env, "SLURM_STEP_ID", "SLURM_STEPID");
    out->job =
        tn_arena_text(arena, "%s.%s", job != NULL ? job : "?", number != NULL ? number : "?");
    TN_TRY(read_step(env, out->size, arena, &s, err));
    out->one_host = s.n_nodes == 1;
    TN_TRY(find_hosts(env, &s, arena, out, err));
    return find_root(env, &s, arena, out, err);
}

static const char *const variables[] = {"SLURM_DISTRIBUTION",
                                        "SLURM_DIST_PLANESIZE",
                                        "SLURM_JOBID",
                                        "SLURM_JOB_ID",
                                        "SLURM_NODEID",
                                        "SLURM_NTASKS",
                                        "SLURM_PROCID",
                                        "SLURM_STEPID",
                                        "SLURM_STEP_ID",
                                        "SLURM_STEP_NODELIST",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_STEP_TASKS_PER_NODE",
                                        "SLURM_TASKS_PER_NODE",
                                        "TNET_PORT",
                                        NULL};

const tn_launcher tn_launcher_slurm = {.name = "Slurm", .variables = variables, .find = find};
