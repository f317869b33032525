/* sync_server_state.h - what the two halves of serve share; for serve*.c only.
 *
 *     sync_server_receive.c    requests come in, on the net thread (or the own worker)
 *     sync_server.c        steps are done and answered, by the worker
 *
 * A rank's buffers are written by take and read by run, by turns: a pull uses the buffer of its
 * parity, of which at most two are under way, and a push the only one. `done` and `push_in` say
 * whose turn it is. While the worker rests, take answers what comes again, under the lock.
 */
#ifndef TN_CLUSTER_SYNC_SERVER_STATE_H
#define TN_CLUSTER_SYNC_SERVER_STATE_H

#include "cluster/sync/sync_server.h"
#include "cluster/wire/dedup.h"
#include "cluster/wire/key_codec.h"
#include "cluster/wire/request_headers.h"

enum { TN_PULLS_AHEAD = 2 };

typedef struct tn_serve_pull {
    tn_keyblock block;
    tn_pull_params params;
} tn_serve_pull;

typedef struct tn_serve_rank {
    uint64_t pulled; /* requests; take's */
    tn_serve_pull pull[TN_PULLS_AHEAD];
    tn_push_params push;
    float *grads, *dense; /* of the push; owned */
    size_t grads_max, dense_max;
    bool has_dense;
    _Atomic uint64_t done;          /* steps of it that were applied or skipped */
    atomic_bool push_in;            /* a push was taken and not applied yet */
    tn_frame asked[TN_PULLS_AHEAD]; /* run's: pulls that wait for an answer, by parity, and .. */
    tn_frame pushed;                /* .. the last push */
    bool answered;                  /* the last push was */
    tn_frame skipped;               /* the last pull of a step that was skipped */
    tn_joint_note skipped_note;
} tn_serve_rank;

typedef enum tn_serve_kind { TN_SERVE_PULL, TN_SERVE_PUSH, TN_SERVE_NORM } tn_serve_kind;

/* What take tells run. */
typedef struct tn_serve_news {
    tn_serve_kind kind;
    bool again;
    tn_frame frame; /* without its payload */
    double norm2;
    struct tn_serve_news *next;
} tn_serve_news;

struct tn_serve {
    tn_serve_opts opts;
    tn_lockstep *lockstep;
    uint32_t n_ranks;
    size_t dense; /* floats of the shard's range */
    tn_serve_rank *rank;
    float *rows; /* run's: rows of one rank */
    size_t rows_max;

    pthread_mutex_t lock;
    tn_serve_news *first, *last; /* guarded by lock: the inbox, oldest first .. */
    tn_serve_news *spare;        /* .. and news that were heard */
    bool rests;                  /* the worker, and so what is run's stands still */
};

/* Answers that it is not done, and why. */
void tn_serve_refuse(tn_serve *s, const tn_frame *request, tn_refusal why);

/* Answers once more, if it was answered, what can be answered without a step; locked or by run. */
tn_status tn_serve_again(tn_serve *s, tn_serve_kind kind, const tn_frame *request,
                         tn_error *err) TN_MUST_USE;

/* Room for n floats; what was there is lost. */
bool tn_serve_room(float **floats, size_t *most, size_t n);

#endif
