/* freeone.h - one owner at staleness s or inf, and the requests of ranks that are not there, by
 * hand. It is rank 0 of three. */
#pragma once

#include "cluster/async/async_server.h"
#include "cluster/exchange/batch_messages.h"
#include "cluster/net/wakeup.h"
#include "ps/kit.h"

enum {
    FREE_ONE_RANKS = 3,
    FREE_ONE_KEYS = 40,
    FREE_ONE_DIM = 2,
    FREE_ONE_FLAT = 60,
    FREE_ONE_ANSWERS_MAX = 20000,
    FREE_ONE_ROW_FLOATS = FREE_ONE_KEYS * FREE_ONE_DIM
};

/* An answer as its rank would get it. */
typedef struct free_answer {
    uint32_t rank, code;
    tn_frame_type type;
    uint64_t sequence;
    uint32_t n; /* floats, in f32 */
    float value[FREE_ONE_ROW_FLOATS + FREE_ONE_FLAT];
    tn_dense_params params; /* of DENSE */
} free_answer;

typedef struct free_one {
    tn_arena *arena;
    kit_model *m;
    tn_out_messages *pool;
    tn_shares *shares;
    tn_reply_queue replies;
    tn_exchange exchange;
    uint64_t key[FREE_ONE_KEYS]; /* that the owner has */
    tn_dedup dedup[FREE_ONE_RANKS];
    tn_shard shard;
    uint32_t dense; /* floats of the owner's range */
    float weights[FREE_ONE_FLAT];
    tn_async_server *serve;
    tn_wakeup wakeup; /* rings with every answer */
    pthread_mutex_t lock;
    free_answer *answer; /* guarded by lock, as are these */
    uint32_t n_answers;
    uint64_t damage, draws; /* stream: of what becomes of messages of rank 1; 0: nothing */
    uint32_t n_damaged;     /* that could still be read */
} free_one;

/* The rules are plain SGD with `rule`'s options (NULL: lr=.5), rows and weights begin as 0. */
free_one *free_one_new(uint32_t permits, const char *rule);
void free_one_free(free_one *x);

/* A request, built and handed in; `edit` (NULL: none) may change it first. */
typedef struct free_message {
    tn_frame frame;
    char *payload;
} free_message;
typedef void free_edit(free_message *m);

/* Keys from .. to - 1 of the owner's, each with `show` occurrences; sum of weights = examples. */
typedef struct free_pull {
    uint32_t rank;
    uint64_t sequence;
    uint32_t from, to, show;
    uint64_t examples;
    free_edit *edit;
} free_pull;
void free_one_pull(free_one *x, const free_pull *p);

/* All its gradients are `value`. */
typedef struct free_push {
    const free_pull *of;
    uint64_t sequence;
    float value;
    double norm;
    free_edit *edit;
} free_push;
void free_one_push(free_one *x, const free_push *p);

/* Waits until so many answers have come in all, at most two minutes. */
void free_one_wait(free_one *x, uint32_t n);

/* The last answer to a request; NULL: none yet. */
const free_answer *free_one_answer(free_one *x, uint32_t rank, uint64_t sequence);
