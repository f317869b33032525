/* launcher.c - helpers of all launchers, and the two short launchers.
 *
 * TNET_RANK is set by hand, by a script or by tnet-train --peers.
 *
 * mpirun and its relatives set
 *
 *     OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_SIZE     Open MPI
 *     PMI_RANK, PMI_SIZE, MPI_LOCALNRANKS          hydra; srun --mpi=pmi2 sets the first two
 *     PMIX_RANK, PMIX_NAMESPACE                    PMIx, which leaves the size to others
 *
 * and none says where the other ranks are. MPI comes before Slurm: a process that mpirun starts
 * inside an allocation inherits the rank of the daemon that forked it.
 */
#include "cluster/launch/launcher.h"

#include "base/core/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const tn_launcher *const tn_launchers[] = {
#define TN_LAUNCHER(name) &tn_launcher_##name,
#include "cluster/launch/launchers.def"
#undef TN_LAUNCHER
    NULL,
};

const char *tn_env(const tn_launch_env *env, const char *name)
{
    const char *value = env->get(env->ctx, name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

tn_status tn_env_u32(const tn_launch_env *env, const char *name, uint32_t limit, uint32_t *out,
                     tn_error *err)
{
    TN_ASSERT(limit > 0);
    const char *text = tn_env(env, name);
    uint64_t value = 0;
    if (text == NULL) {
        return TN_OK;
    }
    if (tn_read_u64(text, strlen(text), &value) != TN_NUM_OK || value >= limit) {
        return tn_fail(err, TN_E_CONFIG, "%s is '%.64s', not a number of 0 to %u", name, text,
                       limit - 1);
    }
    *out = (uint32_t)value;
    return TN_OK;
}

const char *tn_arena_text(tn_arena *arena, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    TN_ASSERT(length >= 0);
    char *out = tn_arena_alloc(arena, (size_t)length + 1, 1, 1);
    va_start(args, fmt);
    (void)vsnprintf(out, (size_t)length + 1, fmt, args);
    va_end(args);
    return out;
}

static tn_status find_plain(const tn_launch_env *env, uint32_t size, tn_arena *arena,
                            tn_launched *out, tn_error *err)
{
    (void)arena;
    out->size = size;
    TN_TRY(tn_env_u32(env, "TNET_RANK", TN_PEERS_MAX, &out->rank, err));
    out->is_here = out->rank != TN_UNSET_U32;
    return TN_OK;
}

static const char *const plain_variables[] = {"TNET_RANK", NULL};

const tn_launcher tn_launcher_plain = {
    .name = "TNET_RANK", .variables = plain_variables, .find = find_plain};

/* Places in mpi_variables of the rank, the size and the processes of this machine, in this order;
 * names of the run from JOBS on. */
enum { OPEN_MPI = 0, PMI = 3, PMIX_RANK = 6, JOBS = 7 };

static const char *const mpi_variables[] = {"OMPI_COMM_WORLD_RANK",
                                            "OMPI_COMM_WORLD_SIZE",
                                            "OMPI_COMM_WORLD_LOCAL_SIZE",
                                            "PMI_RANK",
                                            "PMI_SIZE",
                                            "MPI_LOCALNRANKS",
                                            "PMIX_RANK",
                                            "PMIX_NAMESPACE",
                                            "OMPI_MCA_ess_base_jobid",
                                            "OMPI_MCA_orte_ess_jobid",
                                            "PMI_JOBID",
                                            NULL};

static tn_status read_ranks(const tn_launch_env *env, const char *const *name, tn_launched *out,
                            uint32_t *local, tn_error *err)
{
    TN_TRY(tn_env_u32(env, name[0], TN_PEERS_MAX, &out->rank, err));
    TN_TRY(tn_env_u32(env, name[1], TN_PEERS_MAX + 1, &out->size, err));
    return tn_env_u32(env, name[2], TN_PEERS_MAX + 1, local, err);
}

static tn_status find_mpi(const tn_launch_env *env, uint32_t size, tn_arena *arena,
                          tn_launched *out, tn_error *err)
{
    (void)size;
    (void)arena;
    uint32_t local = TN_UNSET_U32;
    TN_TRY(read_ranks(env,
                      tn_env(env, mpi_variables[OPEN_MPI]) != NULL ? &mpi_variables[OPEN_MPI]
                                                                   : &mpi_variables[PMI],
                      out, &local, err));
    if (out->rank == TN_UNSET_U32) {
        TN_TRY(tn_env_u32(env, mpi_variables[PMIX_RANK], TN_PEERS_MAX, &out->rank, err));
    }
    out->is_here = out->rank != TN_UNSET_U32;
    out->one_host = out->size != TN_UNSET_U32 && out->size == local;
    for (uint32_t i = JOBS; mpi_variables[i] != NULL && out->job == NULL; i++) {
        out->job = tn_env(env, mpi_variables[i]);
    }
    return TN_OK;
}

const tn_launcher tn_launcher_mpi = {.name = "MPI", .variables = mpi_variables, .find = find_mpi};
