/* freeranks.h - ranks that train at staleness s or inf, on threads of their own, over real sockets.
 *
 * The optimizer is plain SGD and a gradient does not depend on the weights unless `curved`, so that
 * the model in the end is a sum, whatever order the updates came in: one that is lost or made twice
 * shows. */
#pragma once

#include "cluster/async/async_client.h"
#include "cluster/async/async_server.h"
#include "ps/kit.h"
#include "ps/shard/dense.h"

#include <pthread.h>

enum { FREE_RANKS_MAX = 4, FREE_STEPS = 12, FREE_KEYS = 120, FREE_DIM = 3, FREE_DENSE = 37 };

typedef struct free_opts {
    uint32_t n;
    double staleness;
    double clip; /* global; 0: none */
    tn_values kind;
    const char *rule;  /* of rows, in kit_rule's words; NULL: lr=.1 */
    const char *dense; /* NULL: the same */
    uint32_t steps;    /* of every rank; 0: FREE_STEPS */
    uint32_t ahead;    /* batches that are pulled before the oldest is pushed; at least 1 */
    bool curved;       /* the gradient pulls weights towards a function of the key */
    bool lossy;        /* every third request is lost on its first way */
    tn_dense_run moving;
    struct {
        bool is;
        uint32_t rank;
        uint64_t step;
    } only; /* this batch, and no other of any rank */
} free_opts;

typedef struct free_world free_world;

typedef struct free_seat {
    free_world *world;
    uint32_t rank;
    tn_link *link;
    tn_out_messages *pool;
    tn_reply_queue replies;
    tn_dedup dedup[FREE_RANKS_MAX];
    void *_Atomic async; /* the client */
    tn_shard shard;
    float own[FREE_DENSE], weights[FREE_DENSE];
    uint64_t n_requests; /* that came: for losing some */
    uint64_t staleness_max;
    double norm; /* as the last push said it */
    uint64_t updates;
    pthread_t thread;
    tn_status status;
    tn_error err;
} free_seat;

struct free_world {
    free_opts opts;
    tn_arena *arena;
    kit_model *m;
    tn_shares *shares;
    tn_security security;
    tn_endpoint at[FREE_RANKS_MAX];
    tn_dense_run trained[2];
    uint32_t n_trained;
    pthread_barrier_t drained;
    free_seat seat[FREE_RANKS_MAX];
};

/* Links are open; `dir` is where their sockets lie. */
free_world *free_world_new(const free_opts *opts, const char *dir);
void free_world_free(free_world *w);

/* All ranks train their batches, drain, and bring their copies of the dense weights up to date.
 * Fails unless all end well. */
void free_world_run(free_world *w);

/* After that: one rank learns one of its batches once more. Returns the norm that it is told, of
 * this time or of the time before. */
double free_world_again(free_world *w, uint32_t rank, uint64_t step);

/* The batch of a rank: which keys it has, at most FREE_KEYS. Every fifth is empty. */
uint32_t free_batch(uint32_t rank, uint64_t step, uint64_t *key);
uint64_t free_key(uint64_t i);
float free_gradient(uint64_t key, uint32_t rank, uint64_t step, uint32_t d);

/* What plain SGD with rate `lr` makes of all ranks' gradients. Asserts that the owners have it,
 * every row with its count, and that every rank has all dense weights. */
void free_world_check(free_world *w, double lr, double tolerance);
