/* serving.h - one owner of two whose requests are made by hand and whose answers are kept: for the
 * tests of cluster/sync/sync_server.h. */
#pragma once

#include "cluster/sync/sync_server.h"
#include "cluster/wire/dedup.h"
#include "cluster/wire/request_headers.h"
#include "ps/kit.h"

enum {
    SERVING_RANKS = 2, /* the owner is rank 0 */
    SERVING_DIM = 2,
    SERVING_KEYS = 3, /* of every batch */
    SERVING_FLOATS = SERVING_KEYS * SERVING_DIM,
    SERVING_DENSE = 20, /* of the vector; 16 of them are the owner's */
    SERVING_OWN = 16,
    SERVING_BYTES = 1024,
    SERVING_ANSWERS = 64,
    SERVING_START = 100, /* rank r is of incarnation SERVING_START + r */
};

/* An answer to `rank`. */
typedef struct served {
    tn_frame frame;
    uint32_t rank;
    uint64_t sequence; /* of the request */
    char payload[SERVING_BYTES];
} served;

typedef struct serving {
    tn_arena *arena;
    kit_model *m;
    tn_shares *shares;
    tn_shard shard;
    float weights[SERVING_OWN];
    tn_dedup dedup[SERVING_RANKS];
    tn_out_messages *pool;
    tn_reply_queue replies;
    tn_exchange exchange;
    tn_sync_server *serve;
    tn_wakeup heard;      /* rings with every answer */
    pthread_mutex_t lock; /* of what follows, where two threads are at work */
    served answer[SERVING_ANSWERS];
    uint32_t n_answers;
    double norm2; /* that was shared last */
    uint32_t n_norms;
    uint32_t n_lost;                     /* answers for which there was no room: 0 */
    uint64_t key[SERVING_KEYS], foreign; /* keys of this owner; of the other one */
    char payload[SERVING_BYTES];         /* of the request that was made last */
} serving;

/* A global clip makes owners tell each other their part of the norm. */
serving *serving_new(double clip);
void serving_free(serving *s);

/* Requests as tn_frame_read leaves them: payload lent until the next one is made. */
tn_frame serving_pull(serving *s, uint32_t rank, uint64_t sequence);
tn_frame serving_pull_keys(serving *s, uint32_t rank, uint64_t sequence, const uint64_t *key,
                           uint32_t n);
tn_frame serving_push(serving *s, uint32_t rank, uint64_t sequence, float gradient);
tn_frame serving_norm(serving *s, uint32_t rank, uint64_t sequence, double norm2);

void serving_take(serving *s, tn_frame request);
void serving_run(serving *s); /* succeeds */

/* The newest answer, of `n` in all, is a refusal of this code to this request. */
void serving_refused(const serving *s, uint32_t n, const tn_frame *request, tn_refusal code);

/* The answer to that request of a rank, the last one if there are several; NULL: none. */
const served *serving_answer(const serving *s, uint32_t rank, uint64_t sequence);
