/* groupcalls.h - what the files of a group (groupstate.h) call of each other; for group*.c only. */
#ifndef TN_CLUSTER_GROUPCALLS_H
#define TN_CLUSTER_GROUPCALLS_H

#include "cluster/group/groupstate.h"

/* Posts a note to another rank; an answer when `request` is not NULL. Needs memory, else lost. */
void tn_group_post(tn_group *g, uint32_t to, tn_frame_type type, const void *note,
                   const tn_frame *request);

#define TN_GROUP_HELLO_NS UINT64_C(500000000) /* between two hellos, until there is an answer */

/* The group is over; locked. The first reason stays: `why`, which names the rank at fault, and
 * which rank `teller` tells people. Rank 0 tells all others. */
void tn_group_end(tn_group *g, tn_status status, uint32_t teller, const char *why);

/* The same by a fault of this rank, in its own words; it is named before them. */
void tn_group_end_here(tn_group *g, tn_status status, const char *words);

/* For what comes from outside and is told to people: control characters become '?'. */
void tn_group_tame(char *text);

/* How it ended; locked. */
tn_status tn_group_fault(const tn_group *g, tn_error *err) TN_MUST_USE;

/* Tells whoever takes values; not locked. */
void tn_group_tell_values(tn_group *g);

/* Connects to a rank; locked. */
tn_status tn_group_dial(tn_group *g, uint32_t rank, const char *address, tn_error *err) TN_MUST_USE;

/* What comes before a group is whole; on tn-net, locked. */
void tn_group_hear_hello(tn_group *g, const tn_frame *f, const tn_hello_note *note);
void tn_group_hear_welcome(tn_group *g, const tn_frame *f, const tn_welcome_note *note);
void tn_group_hear_refused(tn_group *g, const tn_frame *f, const tn_refused_note *note);
void tn_group_say_hello(tn_group *g, uint64_t now_ns);

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
