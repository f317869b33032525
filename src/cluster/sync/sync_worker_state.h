/* sync_worker_state.h - what the files of the group share; for sync*.c only. */
#ifndef TN_CLUSTER_SYNC_WORKER_STATE_H
#define TN_CLUSTER_SYNC_WORKER_STATE_H

#include "cluster/exchange/batch_messages.h"
#include "cluster/group/allgather.h"
#include "cluster/sync/sync_worker.h"

enum { TN_SYNC_BATCHES = 2 };

/* What a worker waits for. */
typedef enum tn_sync_kind {
    TN_SYNC_ROWS,
    TN_SYNC_STATISTICS,
    TN_SYNC_WEIGHTS,
    TN_SYNC_KINDS
} tn_sync_kind;

typedef struct tn_asked {
    tn_owner_slices slices;
    uint64_t examples;
    double weight_sum;
    bool meet;
    tn_joint_note note;
} tn_asked;

struct tn_sync {
    tn_sync_opts opts;
    uint32_t n_ranks;
    tn_bell bell;
    tn_serve *serve;
    uint64_t own_sequence;
    uint64_t n_pulled, n_got, n_done; /* batches asked for, with rows, pushed or skipped */
    tn_asked batch[TN_SYNC_BATCHES];  /* by number modulo 2 */
    tn_batchio io;
    uint32_t n_weights; /* owners whose weights have come */
    double loss;
    bool *has_weights; /* n_ranks */
    double *norm;      /* likewise: of the gradients, as each owner says */
    tn_gather *gather;
    uint32_t n_gathers; /* in the step that runs */
    tn_status failed;
    tn_error err;
    uint64_t waited_ns[TN_SYNC_KINDS];
    _Atomic uint32_t waits_for;

    pthread_mutex_t lock;
    tn_letter *first, *last; /* guarded by lock: answers, oldest first .. */
    tn_status ended;         /* .. and what tn_sync_fail said */
    tn_error why;
};

/* Of the own shard (tn_serve_opts): an answer to a rank, a request to an owner. arg: the group. */
void tn_sync_answer(void *arg, const tn_frame *request, tn_parcel *parcel);
void tn_sync_send(void *arg, uint32_t to, tn_parcel *parcel);

#endif
