/* modelstate.h - the inside of the simulated group, for the files that are it. */
#pragma once

#include "cluster/recovery.h"
#include "model.h"
#include "modelnet.h"

enum { MODEL_WINDOW = 2, MODEL_DENSE = 13, MODEL_EPOCH = 3 };

/* What a checkpoint keeps. Arrays are owned. */
typedef struct cut {
    tn_epoch_part *part;
    uint32_t n_parts;
    uint32_t *shows, *weight;
    uint64_t dense[MODEL_DENSE];
    uint64_t *low; /* of sender * ranks + shard */
    uint64_t read; /* records */
} cut;

/* Requests of one rank to another: the sender's side and the receiver's. */
typedef struct pair {
    tn_retransmit retransmit;
    tn_dedup dedup;
    uint64_t connection; /* its number; what is under way on an earlier one is lost */
    uint64_t last_ns[2]; /* arrival of the last request, of the last answer */
    uint64_t applied;    /* by the receiver's present memory */
    uint64_t lost;       /* acknowledged, and gone with a former one */
} pair;

typedef enum phase { PULLING, COMPUTING, PUSHING, PUSHED } phase;

typedef struct batch {
    phase phase;
    uint64_t first;
    uint32_t n, open; /* records; requests that are not acknowledged */
} batch;

typedef struct member {
    uint64_t incarnation; /* 0: dead */
    uint64_t reborn;      /* exact: it is back under this one and waits for the new session */
    pair **to;            /* of each rank, NULL until there is something to send */
    uint32_t *dest;       /* those that are not */
    uint32_t n_dest;
    uint64_t ticks;
    /* the worker */
    bool asks, holds, drains, finished, was_busy;
    uint64_t ask_id; /* rank 0 asks itself without messages */
    tn_ledger_deal deal;
    uint64_t next, size, done; /* records after deal.position: begun, in all, finished */
    bool has_done, gave_back;  /* ..and it is not acknowledged */
    tn_ledger_held done_part;  /* told with the next ask */
    tn_ledger_held back_part;
    uint64_t batches, n_batches; /* number of the oldest that is not finished; how many are not */
    batch batch[MODEL_WINDOW];   /* number b at b % MODEL_WINDOW */
} member;

typedef struct model {
    model_opts opts;
    net net;
    tn_ledger *ledger;
    member *member;
    uint64_t *part_first;     /* record; parts + 1 of them */
    uint32_t *holder;         /* of each part: the rank it was dealt to, or UINT32_MAX */
    uint64_t *holds_from;     /* ..the position it began at */
    uint32_t *shows, *weight; /* of each record, at its owner */
    uint64_t dense[MODEL_DENSE];
    bool *was_killed; /* of each rank */
    uint64_t extra_max;
    uint64_t incarnations;
    bool cutting; /* no batch is begun */
    cut last;
    uint32_t open; /* requests in all */
    model_result result;
} model;

void model_fail(const model *m, const char *what, uint32_t rank);

/* Ranks that own a record's key and its dense element. */
uint32_t model_key_owner(const model *m, uint64_t record);
uint32_t model_dense_owner(const model *m, uint64_t record);

/* modellink.c */
pair *model_pair(model *m, uint32_t from, uint32_t to);
void model_request(model *m, net_message x);     /* keeps it until it is answered */
void model_send(model *m, const net_message *x); /* once, without an id */
void model_pump(model *m, uint32_t rank);        /* sends again what is due */
void model_answer(model *m, const net_message *to, net_message answer);
void model_receive(model *m, const net_message *x); /* anything but a timer */
void model_reconnect(model *m, uint32_t from, uint32_t to);
void model_apply(model *m, const net_message *x);

/* modelwork.c */
void model_work(model *m, uint32_t rank);
void model_answered(model *m, const net_message *x); /* the first answer to a request */
void model_got_part(model *m, uint32_t rank, tn_ledger_answer answer, const tn_ledger_deal *deal);
void model_computed(model *m, const net_message *x);
void model_give_back(model *m, uint32_t rank, const tn_ledger_held *held);

/* modelrank0.c */
void model_ask(model *m, const net_message *x); /* x->sequence: its id */
void model_returned(model *m, const tn_ledger_held *held);
void model_beat(model *m, const net_message *x);
void model_tick_rank0(model *m);
void model_kill(model *m, uint32_t rank);
void model_restart(model *m, uint32_t rank);
void model_silence(model *m, uint32_t rank); /* its worker and requests are gone */

/* modelcut.c */
void model_cut_begin(model *m); /* the first one: nothing is done yet */
void model_cut_end(model *m);
void model_cut(model *m); /* if nothing is in flight any more */
void model_roll_back(model *m);
