/* syncstate.h - what the files of the group share; for sync*.c only. */
#ifndef TN_PS_SYNCSTATE_H
#define TN_PS_SYNCSTATE_H

#include "ps/keyblock.h"
#include "ps/requests.h"
#include "ps/sync.h"

enum { TN_SYNC_BATCHES = 2 };

/* What one owner has of a batch. */
typedef struct tn_share {
    tn_key_order order;
    uint32_t floats;
    uint64_t sequence; /* of its answer, and so of the pull */
    bool has_rows;
} tn_share;

typedef struct tn_asked {
    tn_sync_batch of;
    tn_share *share;       /* n_ranks */
    uint32_t *index;       /* keys_max: of the shares' orders */
    tn_key_place *scratch; /* 2 keys_max */
    uint32_t keys_max;
    uint32_t n_rows; /* owners that have answered */
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
    float *residual;                  /* of dense gradients in 16 bits: error feedback */
    uint32_t n_weights;               /* owners whose weights have come */
    double norm2;
    bool *has_weights; /* n_ranks */
    tn_status failed;
    tn_error err;

    pthread_mutex_t lock;
    tn_letter *first, *last; /* guarded by lock: answers, oldest first .. */
    tn_status ended;         /* .. and what tn_sync_fail said */
    tn_error why;
};

/* Of the own shard (tn_serve_opts): an answer to a rank, a request to an owner. arg: the group. */
void tn_sync_answer(void *arg, const tn_frame *request, tn_parcel *parcel);
void tn_sync_send(void *arg, uint32_t to, tn_parcel *parcel);

#endif
