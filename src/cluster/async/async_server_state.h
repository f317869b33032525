/* async_server_state.h - what the files of freeserve share; for free*.c only.
 *
 *     async_server_receive.c     requests come in, on tn-net
 *     async_server.c    they are served and answered, on tn-shard; opening and closing
 *     async_server_own.c      the update itself, and the own rank's requests, on its worker
 *
 * A place of a rank holds one pull until its push is applied. What `state` says decides whose it
 * is: tn-net decodes the keys into a FREE one and the gradients into a GIVEN one, tn-shard serves
 * those that are ASKED or PUSHED.
 */
#ifndef TN_CLUSTER_ASYNC_SERVER_STATE_H
#define TN_CLUSTER_ASYNC_SERVER_STATE_H

#include "base/thread/threads.h"
#include "cluster/async/async_server.h"
#include "cluster/async/delay_compensation.h"
#include "cluster/net/wakeup.h"
#include "cluster/wire/dedup.h"
#include "cluster/wire/key_codec.h"
#include "cluster/wire/request_headers.h"

enum { TN_FREE_AGAIN = 64 };

typedef enum tn_free_state {
    TN_FREE_PLACE,  /* nothing is in it */
    TN_FREE_ASKED,  /* a pull that was not served yet */
    TN_FREE_GIVEN,  /* rows were given; its push is to come */
    TN_FREE_PUSHED, /* gradients that were not applied yet */
} tn_free_state;

/* What became of a push, for its answer. */
typedef struct tn_free_done {
    uint64_t sequence; /* 0: none */
    tn_pushed_here what;
} tn_free_done;

typedef struct tn_free_place {
    tn_free_state state; /* guarded by lock, as are these two */
    bool queued;
    struct tn_free_place *next;
    tn_keyblock block;
    tn_pull_params pull;
    tn_push_params push;
    tn_frame asked, pushed; /* the requests, without payload */
    uint64_t updates;       /* of the shard, when the rows were given first */
    float *grads, *dense;
    size_t grads_max, dense_max;
    tn_delayed delayed;
    tn_free_done done; /* guarded by lock: the last push that was applied from here */
} tn_free_place;

typedef struct tn_free_rank {
    tn_free_place place[TN_PERMITS_MAX]; /* opts.permits */
} tn_free_rank;

/* A push whose answer got lost. */
typedef struct tn_free_again {
    tn_frame pushed;
    tn_pushed_here what;
} tn_free_again;

typedef struct tn_free_own {
    tn_keyset keys; /* of this shard; kept at this address: ps/table/row_positions.h */
    uint32_t *first;
    uint64_t updates;
    tn_delayed delayed;
} tn_free_own;

struct tn_freeserve {
    tn_freeserve_opts opts;
    uint32_t n_ranks;
    size_t dense; /* floats of the shard's range */
    tn_dense_run *moving;
    uint32_t n_moving;
    tn_free_rank *rank;
    tn_free_own own[TN_PERMITS_MAX];
    bool delays; /* some rule has delay compensation */
    _Atomic uint64_t updates;
    float *rows, *weights; /* tn-shard's: of one answer */
    size_t rows_max, weights_max;
    tn_delay_now now, own_now; /* tn-shard's, the worker's */
    tn_thread *thread;
    tn_bell bell;
    atomic_bool stop;

    pthread_mutex_t lock;
    tn_free_place *first, *last; /* guarded by lock: the inbox, oldest first .. */
    tn_free_again again[TN_FREE_AGAIN];
    uint32_t n_again; /* .. and pushes to be answered again */
};

/* Answers that it is not done, and why. */
void tn_free_refuse(tn_freeserve *s, const tn_frame *request, tn_refusal why);

/* Room for n floats; what was there is lost. */
bool tn_free_room(float **floats, size_t *most, size_t n);

/* One update, by whoever calls. */
typedef struct tn_free_update {
    tn_team *team;
    tn_gradients grads; /* dense: of the shard's range */
    tn_push push;       /* all but step */
    double norm;        /* of the whole push; 0: not told */
    uint64_t pulled;    /* updates when it was pulled */
    tn_delayed *delayed;
    tn_delay_now *now; /* of the calling thread */
} tn_free_update;
tn_status tn_free_apply(tn_freeserve *s, tn_free_update *u, tn_pushed_here *out,
                        tn_error *err) TN_MUST_USE;

#endif
