/* ranks.h - ranks and owners in one process at staleness 0, their messages delivered in any order
 * that keeps what one rank sends to one owner in order. */
#pragma once

#include "cluster/sync/sync_step.h"
#include "ps/kit.h"
#include "ps/shard/ownership.h"

enum {
    RANKS_MAX = 4,
    RANKS_STEPS = 9,
    RANKS_DIM = 3,
    RANKS_DENSE = 37,
    RANKS_KEYS = 150,
    RANKS_MESSAGES_MAX = 256
};

typedef struct ranks_batch {
    uint64_t key[RANKS_KEYS];
    uint32_t n;
    tn_batch_note note;
    kit_keys *slice[RANKS_MAX]; /* what each owner gets of it */
    float *rows[RANKS_MAX];     /* and answers */
    float *grads[RANKS_MAX];
    float dense[RANKS_DENSE]; /* gradient */
    uint32_t n_answers;       /* owners that have given rows */
} ranks_batch;

typedef enum ranks_kind { RANKS_PULL, RANKS_PUSH, RANKS_NORM } ranks_kind;

typedef struct ranks_message {
    ranks_kind kind;
    uint32_t from, to;
    uint64_t step;
    double norm2;
} ranks_message;

typedef struct ranks_owner {
    tn_shard shard;
    tn_sync_step *steps;
    uint32_t begin, size; /* of the flat vector */
    uint64_t answered;    /* batches of each rank */
    float weights[RANKS_DENSE];
} ranks_owner;

typedef struct ranks_world {
    tn_arena *arena;
    kit_model *m;
    uint32_t n;
    tn_shares *shares;
    ranks_owner owner[RANKS_MAX];
    ranks_batch batch[RANKS_MAX][RANKS_STEPS + 1]; /* the last one is over */
    ranks_message pending[RANKS_MESSAGES_MAX];
    uint32_t n_pending;
    uint64_t stream, draws;
    bool over[RANKS_MAX];
} ranks_world;

/* n ranks and owners with fresh shards; `seed` draws the order of delivery. The batches are a
 * function of (rank, step) alone. */
ranks_world *ranks_new(uint32_t n, double clip, uint64_t seed);
void ranks_free(ranks_world *w);

/* All messages, until every rank knows that the epoch is over. */
void ranks_run(ranks_world *w);

/* Asserts that the owners' shards together are what one process makes of the joint batches. */
void ranks_check(ranks_world *w);

uint64_t ranks_key(uint64_t i);

/* A shard with a dense range of `size` weights, which are lent to it. */
void ranks_make_shard(const kit_model *m, float *weights, uint32_t size, tn_shard *out);

/* The gradient of a row depends on the row, so a stale one would show. */
float ranks_gradient(float row, uint64_t key, uint32_t rank, uint64_t step, uint32_t d);
