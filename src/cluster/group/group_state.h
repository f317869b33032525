/* groupstate.h - what the files of the group share; for group*.c only.
 *
 *     group.c         opening; who takes values
 *     groupform.c     hello, welcome, refused
 *     groupnet.c      letters and ticks, on tn-net
 *     grouporders.c   orders of rank 0, and what was done
 *     groupparts.c    the parts of an epoch: asks, claims, returns
 *     groupend.c      how it ends, and closing
 */
#ifndef TN_CLUSTER_GROUPSTATE_H
#define TN_CLUSTER_GROUPSTATE_H

#include "base/core/arena.h"
#include "base/core/text.h"
#include "cluster/group/failure_detector.h"
#include "cluster/group/groupparts.h"
#include "cluster/group/rendezvous.h"
#include "cluster/wire/control_messages.h"

#include <pthread.h>
#include <time.h>

/* A note that came, with the memory of its texts and lists. */
typedef struct tn_group_deed {
    tn_arena *arena; /* NULL: nothing came yet */
    tn_done_note note;
} tn_group_deed;

typedef struct tn_group_order_in {
    tn_arena *arena;
    tn_order_note note;
    struct tn_group_order_in *next;
} tn_group_order_in;

struct tn_group {
    tn_group_opts opts;
    uint32_t rank, size;
    uint64_t incarnation, session;
    tn_parcels *parcels;
    tn_link *link;
    tn_once *once; /* size */
    char bound[TN_ENDPOINT_SIZE], host[TN_ENDPOINT_HOST];

    pthread_mutex_t values_lock;
    tn_group_values values; /* guarded by values_lock; its functions may be NULL */

    pthread_mutex_t parts_lock;
    tn_group_parts parts; /* guarded by parts_lock */

    pthread_mutex_t lock; /* guards all below; taken behind the other two */
    pthread_cond_t changed;
    bool open;            /* the link stands */
    tn_forming *forming;  /* rank 0 */
    const char **dialled; /* size: where each rank is */
    tn_arena *arena;      /* of these addresses */
    bool is_whole;
    char missing[128];   /* the others: whom rank 0 waits for, by its last word; empty: unknown */
    bool is_refused;     /* the others: rank 0 has answered that there is nothing to wait for */
    bool *told;          /* size; rank 0: who was answered so .. */
    uint64_t last_hello; /* .. and when somebody asked last */
    uint64_t opened_ns;
    tn_pulse *pulse;
    uint64_t next_hello, next_beat;
    tn_beat_note beat;
    uint64_t step;
    uint64_t next_table;
    bool asked[TN_PEER_ASKS];
    tn_group_order_in *first, *last; /* orders that came, oldest first */
    tn_group_order_in *current;      /* lent */
    tn_group_deed *done;             /* TN_ORDERS of each rank: the last of its kind */
    tn_report_take *take_report;     /* NULL: nobody */
    void *reports;                   /* its argument */
    bool dismissed, is_last;         /* rank 0 said BYE or STOP; and that it goes now */
    tn_status ended;                 /* TN_OK: it has not */
    tn_error why;
    uint32_t gone;   /* 1 + a rank that has ended, as `news` say, which all ranks hear; 0: none */
    uint32_t teller; /* the rank that tells people why */
    tn_error deed;   /* rank 0: the last order that failed elsewhere; TN_OK: none .. */
    uint32_t deed_rank; /* .. and where */
};

#endif
