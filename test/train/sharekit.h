/* sharekit.h - a group of workers in one process that save and load one checkpoint together.
 *
 * There is no network: orders are calls, and a step touches what a step of the whole model touches,
 * each worker its own part of it. So a group of any size holds the same model after the same steps,
 * bit for bit.
 */
#pragma once

#include "base/core/arena.h"
#include "config/diag.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/ckpt_peers.h"
#include "train/checkpoint/run_state.h"
#include "train/step/step_prefetch.h"

enum { SHAREKIT_PEERS_MAX = 4 };

typedef struct sharekit {
    uint32_t n;
    char dir[256];
    tn_arena *arena;
    tn_diag diag;
    tn_worker *w[SHAREKIT_PEERS_MAX];
    tn_checkpoints *checkpoints;             /* of rank 0 */
    tn_ckptshare *share[SHAREKIT_PEERS_MAX]; /* of the others, while a save runs */
    tn_run_state state;
    tn_metrics *metrics;
    tn_step_prefetch *feeder;
    float *dense; /* a gradient */
    uint32_t orders, abandoned, loads;
    uint32_t broken; /* rank whose disk refuses to write; 0: none */
    uint32_t silent; /* rank that never tells what it wrote; 0: none */
    uint32_t hiccup; /* rank that can open no file while it loads; 0: none */
} sharekit;

/* `n` workers that share run directory `dir`; `more` overrides, ended by NULL, or NULL. */
void sharekit_open(sharekit *k, const char *dir, uint32_t n, const char *const *more);
void sharekit_close(sharekit *k);

/* The next `steps` batches. */
void sharekit_learn(sharekit *k, uint32_t steps);

tn_status sharekit_save(sharekit *k, bool delta, tn_saved *out, tn_error *err);
tn_status sharekit_resume(sharekit *k, tn_saved *out, tn_error *err);

/* As model_hash of one process with the whole model; checks that the workers' copies agree. */
uint32_t sharekit_hash(const sharekit *k);
