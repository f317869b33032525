/* rankkit.h - the ranks of a group, each with a worker, in one process: what they have before they
 * train. Sockets are real. */
#pragma once

#include "base/core/arena.h"
#include "cluster/launch/membership.h"
#include "cluster/train/peers.h"
#include "config/diag.h"

typedef struct tn_model_plan tn_model_plan;

enum { RANKKIT_MAX = 4 };

typedef struct rankkit {
    uint32_t n;
    char dir[256];
    tn_arena *arena;
    tn_diag diag;
    tn_membership membership[RANKKIT_MAX];
    char at[RANKKIT_MAX][TN_ENDPOINT_SIZE];
    const char *address[RANKKIT_MAX], *host[RANKKIT_MAX];
    const tn_model_plan *plan[RANKKIT_MAX];
    tn_worker *w[RANKKIT_MAX];
    tn_peers *peers[RANKKIT_MAX]; /* NULL: not opened */
} rankkit;

extern const tn_run_text rankkit_text;

/* Workers of test/golden/deepfm.yaml. `more`: overrides of all, ended by NULL, or NULL; `last`: one
 * of the last rank, or NULL. Timers are a twentieth as long. */
void rankkit_open(rankkit *k, uint32_t n, const char *const *more, const char *last);
void rankkit_close(rankkit *k); /* peers, too, the last first */

/* tn_peers_open of one rank, and of all with tn_peers_form; they must go well. */
void rankkit_listen(rankkit *k, uint32_t rank);
void rankkit_form(rankkit *k);
