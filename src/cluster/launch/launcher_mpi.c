/* launcher_mpi.c - mpirun and its relatives: Open MPI, PMIx, MPICH's hydra.
 *
 *     OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_SIZE     Open MPI
 *     PMI_RANK, PMI_SIZE, MPI_LOCALNRANKS          hydra; srun --mpi=pmi2 sets the first two
 *     PMIX_RANK, PMIX_NAMESPACE                    PMIx, which leaves the size to others
 *
 * None of them says where the others are. Asked before Slurm: a process that mpirun starts inside
 * an allocation inherits the rank of the daemon that forked it.
 */
#include "cluster/launch/launcher.h"

static tn_status read_ranks(const tn_membership_in *in, const char *const name[3], tn_launched *out,
                            uint32_t *local, tn_error *err)
{
    TN_TRY(tn_env_u32(in, name[0], TN_PEERS_MAX, &out->rank, err));
    TN_TRY(tn_env_u32(in, name[1], TN_PEERS_MAX + 1, &out->size, err));
    return tn_env_u32(in, name[2], TN_PEERS_MAX + 1, local, err);
}

static tn_status find(const tn_membership_in *in, uint32_t size, tn_arena *arena, tn_launched *out,
                      tn_error *err)
{
    static const char *const open_mpi[] = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                           "OMPI_COMM_WORLD_LOCAL_SIZE"};
    static const char *const pmi[] = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"};
    static const char *const jobs[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid",
                                       "OMPI_MCA_orte_ess_jobid", "PMI_JOBID"};
    (void)size;
    (void)arena;
    uint32_t local = TN_UNSET_U32;
    TN_TRY(read_ranks(in, tn_env(in, open_mpi[0]) != NULL ? open_mpi : pmi, out, &local, err));
    if (out->rank == TN_UNSET_U32) {
        TN_TRY(tn_env_u32(in, "PMIX_RANK", TN_PEERS_MAX, &out->rank, err));
    }
    out->is_here = out->rank != TN_UNSET_U32;
    out->one_host = out->size != TN_UNSET_U32 && out->size == local;
    for (uint32_t i = 0; i < sizeof jobs / sizeof *jobs && out->job == NULL; i++) {
        out->job = tn_env(in, jobs[i]);
    }
    return TN_OK;
}

const tn_launcher tn_launcher_mpi = {.name = "MPI", .find = find};
