/* groupstate.h - what the files of the group share; for group*.c only.
 *
 *     group.c         opening, forming, closing
 *     groupnet.c      letters and ticks, on tn-net
 *     grouporders.c   orders of rank 0, and what was done
 *     groupparts.c    the parts of an epoch: asks, claims, returns
 */
#ifndef TN_PS_GROUPSTATE_H
#define TN_PS_GROUPSTATE_H

#include "base/arena.h"
#include "base/text.h"
#include "ps/forming.h"
#include "ps/groupparts.h"
#include "ps/notes.h"
#include "ps/pulse.h"

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
};

/* Posts a note to another rank; an answer when `request` is not NULL. Lost when there is no memory.
 */
void tn_group_post(tn_group *g, uint32_t to, tn_frame_type type, const void *note,
                   const tn_frame *request);

/* The group is over; locked. The first reason stays. Rank 0 tells all others. */
void tn_group_end(tn_group *g, tn_status status, const char *why);

/* Tells whoever takes values; not locked. */
void tn_group_tell_values(tn_group *g);

/* Connects to a rank; locked. */
tn_status tn_group_dial(tn_group *g, uint32_t rank, const char *address, tn_error *err) TN_MUST_USE;

/* Link events; arg is the group. */
void tn_group_hear_request(void *arg, tn_letter *letter);
void tn_group_hear_answer(void *arg, tn_letter *letter);
void tn_group_tick(void *arg, uint64_t now_ns);

/* An ORDER or a DONE, which is not a repetition; locked. Takes the arena. */
void tn_group_take_order(tn_group *g, const tn_order_note *note, tn_arena *arena);
void tn_group_take_done(tn_group *g, uint32_t rank, const tn_done_note *note, tn_arena *arena);

/* Of parts; not locked. Rank 0: what another rank says in an ASK, a DONE or a beat, whose note it
 * is, and which is no repetition, unless it is an ask. The others: a PART. */
void tn_group_hear_parts(tn_group *g, const tn_frame *frame, const void *note);
void tn_group_hear_part(tn_group *g, const tn_frame *frame);
void tn_group_tick_parts(tn_group *g, uint64_t now_ns);
void tn_group_held(tn_group *g, tn_arena *arena, tn_note_parts *out);

/* What to do when a rank is lost. */
const char *tn_group_advice(void);

/* Until something changes or the time has come; locked. False: it has. */
bool tn_group_wait(tn_group *g, uint64_t deadline_ns);

#endif
