/* membership.h - the place of this process in its group: rank, size, and the addresses of others.
 *
 *     cluster.peers     auto (what a launcher says, alone without one), a number, or addresses
 *     TNET_RANK         this process, from 0             TNET_PEERS   how many
 *     TNET_PEER_LIST    addresses of all, by rank        TNET_ROOT    the address of rank 0
 *     TNET_PORT         of rank 0, or of every pod       TNET_BIND    own interface or address
 *     TNET_SERVICE      headless service of the pods     TNET_JOB     names the run
 *
 * and what Slurm, Open MPI, PMI and Kubernetes set by themselves; see docs/cluster.md. Rank 0 must
 * have an address. The others need none yet: they bind a port that the system chooses, send it to
 * rank 0, and learn each other's address from rank 0.
 *
 * tn_membership_find is a function of its input alone: no file, no socket, no environment but what
 * env.get returns. What it returns lives in the arena or where the input's texts live.
 */
#pragma once

#include "cluster/launch/endpoint.h"
#include "cluster/launch/launcher.h"

/* The option cluster.peers, as written. */
typedef struct tn_peers_opts {
    uint32_t n;      /* 0: auto */
    tn_strs address; /* or a list of n addresses, by rank */
} tn_peers_opts;

/* Reads the tree of cluster.peers (NULL or null: auto). Faults go to b->diag. */
void tn_peers_bind(const tn_binder *b, const tn_tree *tree, tn_peers_opts *out);

typedef struct tn_membership_in {
    tn_launch_env env;
    bool (*is_local)(void *ctx, const char *host); /* a name or address of this machine; env.ctx */
    tn_peers_opts peers;
    const char *run_dir; /* the same for all peers; NULL: none */
    uint32_t uid;        /* user id of this process */
} tn_membership_in;

typedef struct tn_membership {
    uint32_t rank, size; /* size 1: alone; then nothing below is set but `how` */
    /* id of this run, which differs from others; the same in all peers, never 0 */
    uint64_t job;
    const char *const *address; /* size; NULL where it is not known yet */
    const char *const *host;    /* size; for messages; NULL where it is not known */
    uint32_t n_here;            /* ranks on this machine, as far as names and addresses show */
    const char *bind; /* own address to listen at; the port may be 0: the system's choice */
    const char *meet; /* file of rank 0's address, where address[0] is NULL; else NULL */
    const char *how;  /* "rank 2 of 8 by Slurm, job 17.0"; for the log */
} tn_membership;

/* Finds out who is in the group. TN_E_CONFIG: sizes or ranks that contradict each other, a rank
 * without a size, no way to find rank 0, words that cannot be read. */
tn_status tn_membership_find(tn_membership *out, const tn_membership_in *in, tn_arena *arena,
                             tn_error *err) TN_MUST_USE;

/* Returns the input of a real process: its environment, interfaces, name and user. `opts` and
 * `run_dir` are kept, not copied. */
tn_membership_in tn_membership_here(const tn_peers_opts *opts, const char *run_dir,
                                    char host[TN_ENDPOINT_HOST]);

/* Returns the address to listen at: r->bind with a number in place of a name, which may ask DNS
 * (cluster/launch/interfaces.h). Logs r->how, the address and the interface. TN_E_CONFIG: the
 * machine has no such address, or several. */
tn_status tn_membership_place(const tn_membership *r, tn_endpoint *out, tn_error *err) TN_MUST_USE;
