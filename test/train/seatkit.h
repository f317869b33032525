/* seatkit.h - the ranks of a group, each with a worker, in one process: what they have before they
 * train. Sockets are real. */
#ifndef TN_TEST_SEATKIT_H
#define TN_TEST_SEATKIT_H

#include "config/diag.h"
#include "train/peers/peers.h"

enum { SEATKIT_MAX = 4 };

typedef struct seatkit {
    uint32_t n;
    char dir[256];
    tn_arena *arena;
    tn_diag diag;
    tn_roster roster[SEATKIT_MAX];
    char at[SEATKIT_MAX][TN_ENDPOINT_SIZE];
    const char *address[SEATKIT_MAX], *host[SEATKIT_MAX];
    const tn_model_plan *plan[SEATKIT_MAX];
    tn_worker *w[SEATKIT_MAX];
    tn_peers *peers[SEATKIT_MAX]; /* NULL: not opened */
} seatkit;

extern const tn_run_text seatkit_text;

/* Workers of test/golden/deepfm.yaml. `more`: overrides of all, ended by NULL, or NULL; `last`: one
 * of the last rank, or NULL. Timers are a twentieth as long. */
void seatkit_open(seatkit *k, uint32_t n, const char *const *more, const char *last);
void seatkit_close(seatkit *k); /* peers, too, the last first */

/* tn_peers_open of one rank, and of all with tn_peers_form; they must go well. */
void seatkit_listen(seatkit *k, uint32_t rank);
void seatkit_form(seatkit *k);

#endif
