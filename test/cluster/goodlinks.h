/* goodlinks.h - three links that keep the rules: rank 0 answers, ranks 1 and 2 ask; the seat of
 * rank 3 is left for others. For tests and benchmarks of hostile peers beside them.
 *
 *     good_links *g;
 *     TN_TRY(good_open(&g, z, GOOD_CURVE, dir, err));
 *     good_ask(g, &(good_wish){.requests = 1000, .bytes = 64, .deadline_ns = ..});
 *     good_close(g);
 *
 * Rank 0 counts a request once, whoever repeats it, and answers every time. All of one process.
 */
#pragma once

#include "cluster/net/link.h"
#include "cluster/wire/dedup.h"

#include <pthread.h>

enum { GOOD_RANKS = 3, GOOD_SEATS = 4, GOOD_OTHER = 3, GOOD_JOB = 7, GOOD_SESSION = 77 };

typedef enum good_way { GOOD_IPC, GOOD_TCP, GOOD_CURVE, GOOD_WAYS } good_way;

typedef struct good_links good_links;

/* What an asking rank is about. */
typedef struct good_asker {
    good_links *links;
    uint32_t rank;
    uint32_t bytes, to_post; /* guarded by the links' lock, as are these */
    uint64_t posted;
    tn_dedup answers; /* each is told once .. */
    uint64_t answered;
    uint64_t wrong; /* .. or is one of these */
} good_asker;

struct good_links {
    const tn_zmq *z;
    good_way way;
    char dir[200];
    tn_security security[GOOD_SEATS]; /* that of the seat left is for insiders */
    tn_out_messages *pool;
    tn_link *link[GOOD_RANKS];
    tn_endpoint at; /* of rank 0 */
    good_asker asker[GOOD_RANKS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    tn_dedup dedup[GOOD_SEATS];    /* rank 0's; guarded by lock, as are these: */
    uint64_t applied[GOOD_SEATS];  /* requests that came for the first time, by rank */
    uint64_t repeated[GOOD_SEATS]; /* and those that came again */
};

/* Keys and sockets go into `dir`, a folder that is there. */
tn_status good_open(good_links **out, const tn_zmq *z, good_way way, const char *dir,
                    tn_error *err) TN_MUST_USE;
void good_close(good_links *g); /* NULL is fine */

/* Of each of both ranks. */
typedef struct good_wish {
    uint32_t requests, bytes; /* bytes: payload, a multiple of 8 */
    uint64_t deadline_ns;     /* of tn_clock_ns */
} good_wish;

/* Asks so often, a few requests at a time, and waits until all are answered. False: not in time. */
bool good_ask(good_links *g, const good_wish *wish) TN_MUST_USE;

/* Asks for so long, with requests of so many bytes, and waits for the last answers, 60 s at most.
 * *n: how many came in the time. False: some did not come at all. */
bool good_ask_for(good_links *g, uint32_t bytes, uint64_t ns, uint64_t *n) TN_MUST_USE;

/* Whether all that was asked was applied once and answered once, so far. */
bool good_is_whole(good_links *g);

/* "ipc", "tcp", "curve" */
const char *good_way_name(good_way way);
