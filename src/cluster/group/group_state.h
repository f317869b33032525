/* group_state.h - the struct of a group and the calls between its files; for group*.c only.
 *
 *     group.c         opening, values, the end, closing
 *     group_form.c    hello, welcome, refused
 *     group_net.c     messages and ticks, on tn-net
 *     group_orders.c  orders of rank 0 and their DONE; parts of an epoch: asks, claims, returns
 */
#pragma once

#include "base/core/arena.h"
#include "base/core/text.h"
#include "cluster/group/failure_detector.h"
#include "cluster/group/group.h"
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
    tn_out_messages *pool;
    tn_link *link;
    tn_dedup *dedup; /* size */
    char bound[TN_ENDPOINT_SIZE], host[TN_ENDPOINT_HOST];

    pthread_mutex_t values_lock;
    tn_group_values values; /* guarded by values_lock; its functions may be NULL */

    pthread_mutex_t parts_lock;
    tn_group_parts parts; /* guarded by parts_lock */

    pthread_mutex_t lock; /* guards all below; taken after the other two */
    pthread_cond_t changed;
    bool open;                 /* the link is open */
    tn_rendezvous *rendezvous; /* rank 0 */
    const char **dialled;      /* size: where each rank is */
    tn_arena *arena;           /* memory of all lists here, and of these addresses */
    bool is_whole;
    char missing[128];   /* the others: the ranks that rank 0 waits for, by its last reply; empty:
                            unknown */
    bool is_refused;     /* the others: rank 0 has answered that the group will not form */
    bool *told;          /* size; rank 0: ranks that got this answer */
    uint64_t last_hello; /* time of the last hello */
    uint64_t opened_ns;
    tn_failure_detector *detector;
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
    uint32_t gone;   /* 1 + a rank that has ended, by opts.news, which all ranks receive; 0: none */
    uint32_t teller; /* the rank that reports why to people */
    tn_error deed;   /* rank 0: the last order that failed elsewhere; TN_OK: none */
    uint32_t deed_rank; /* rank that failed at it */
};

/* Posts a note to another rank, or an answer, which may have none. Needs memory, else lost. */
void tn_group_post(tn_group *g, uint32_t to, tn_frame_type type, const void *note);
void tn_group_answer(tn_group *g, const tn_frame *request, tn_frame_type type, uint32_t code,
                     const void *note);

#define TN_GROUP_HELLO_NS UINT64_C(500000000) /* between two hellos, until there is an answer */

/* Ends the group; locked. The first reason stays: the sentence, which names the rank at fault, and
 * `teller`, the rank that reports it to people. Rank 0 sends it to all others. `status`: a
 * tn_status; any other number, of a note, is taken for TN_E_PEER. */
void tn_group_end(tn_group *g, uint64_t status, uint32_t teller, const char *fmt, ...)
    TN_PRINTF(4, 5);

/* Does the same for a fault of this rank, in its own words; it is named before them. */
void tn_group_end_here(tn_group *g, tn_status status, const char *words);

/* Returns TN_OK, or how the group ended; locked. */
tn_status tn_group_fault(const tn_group *g, tn_error *err) TN_MUST_USE;

/* Reports the end to tn_group_values; not locked. */
void tn_group_report_end(tn_group *g);

/* Connects to a rank; locked. */
tn_status tn_group_dial(tn_group *g, uint32_t rank, const char *address, tn_error *err) TN_MUST_USE;

/* Messages before the group is whole; on tn-net, locked. */
void tn_group_receive_hello(tn_group *g, const tn_frame *f, const tn_hello_note *note);
void tn_group_receive_welcome(tn_group *g, const tn_frame *f, const tn_welcome_note *note);
void tn_group_receive_refused(tn_group *g, const tn_frame *f, const tn_refused_note *note);
void tn_group_send_hello(tn_group *g, uint64_t now_ns);

/* Receive events of the link; arg is the group. */
void tn_group_receive_request(void *arg, tn_in_message *incoming);
void tn_group_receive_answer(void *arg, tn_in_message *incoming);
void tn_group_tick(void *arg, uint64_t now_ns);

/* Takes over an ORDER or a DONE that is no duplicate, and its arena; locked. */
void tn_group_take_order(tn_group *g, const tn_order_note *note, tn_arena *arena);
void tn_group_take_done(tn_group *g, uint32_t rank, const tn_done_note *note, tn_arena *arena);

/* Messages about parts; not locked. Rank 0: the note of an ASK, a DONE or a heartbeat; of these
 * only an ASK may be a duplicate. The others: a PART. */
void tn_group_receive_parts(tn_group *g, const tn_frame *frame, const void *note);
/* Is called ten times a second; *held, of zeros, becomes what the next heartbeat is to claim. */
void tn_group_tick_parts(tn_group *g, uint64_t now_ns, tn_arena *arena, tn_note_parts *held);

/* The hint for people when a rank is lost. */
#define TN_GROUP_ADVICE "\nhint: start the same command again to go on from the newest checkpoint"

/* Waits for a change or the deadline; locked. False: the deadline has come. */
bool tn_group_wait(tn_group *g, uint64_t deadline_ns);
