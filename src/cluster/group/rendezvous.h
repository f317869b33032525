/* rendezvous.h - rank 0 collects its group: ranks that said hello, may join, are missing.
 *
 *     tn_rendezvous_new(&f, &owners, incarnation, &own, err)
 *     each HELLO:   code = tn_rendezvous_hello(f, frame.rank, frame.incarnation, &note, &why);
 *                   code != 0: reply REFUSED with code and why
 *     not whole:    tn_rendezvous_missing                  for the log
 *     whole:        tn_rendezvous_welcome                  WELCOME to every rank
 *     gives up:     tn_rendezvous_gives_up                 all ranks end
 *     afterwards:   a HELLO is repeated if its WELCOME was lost: send the WELCOME again
 *
 * A rank repeats its hello until it is welcome, and may be started again in the meantime: until the
 * group is whole, its newest start counts. A start that was replaced and still sends is a second
 * process with the same rank: it is refused, as is every new start once the group is whole.
 * Versions, configurations, structures and numbers of peers must be equal; threads may differ;
 * kernels (cpu) may differ with a warning, since the same bits are not promised then.
 *
 * Nothing here reads a clock, sends, or waits, and only new allocates: about 700 bytes for each
 * rank. Hellos are hostile: their texts are compared, checked and cut before they are kept or
 * logged. The link checks that a rank is the one whose key or address the connection has. One
 * thread.
 */
#pragma once

#include "base/core/text.h"
#include "base/keys/keyset.h"
#include "cluster/wire/control_messages.h"
#include "cluster/wire/frame.h"

enum { TN_RENDEZVOUS_STARTS = 8 }; /* replaced starts of a rank that are remembered */

typedef struct tn_rendezvous tn_rendezvous;

/* Makes the rendezvous of rank 0 for owners->n_peers. `owners` must outlive it. `own`: rank 0's
 * hello, copied; `incarnation`: rank 0's. TN_E_MEMORY. */
tn_status tn_rendezvous_new(tn_rendezvous **out, const tn_owners *owners, uint64_t incarnation,
                            const tn_hello_note *own, tn_error *err) TN_MUST_USE;
void tn_rendezvous_free(tn_rendezvous *f); /* NULL is fine */

/* 0: it is in, again or for the first time. Else a tn_refusal, which changes nothing, and `why` has
 * the sentence for people, which names rank, host and both values:
 *     VERSION   of the program
 *     CONFIG    the options, the structure of the model or the number of peers
 *     RANK      taken, by rank 0, by a later start, or because the group is whole
 *     DAMAGED   a text that no peer writes, an invalid address, no incarnation
 */
uint32_t tn_rendezvous_hello(tn_rendezvous *f, uint32_t rank, uint64_t incarnation,
                             const tn_hello_note *note, tn_text *why);

bool tn_rendezvous_is_whole(const tn_rendezvous *f);
bool tn_rendezvous_is_in(const tn_rendezvous *f, uint32_t rank);

/* Takes a hello with a status. Returns true when the rank is not taken by another start, so the
 * group ends; false: a start that does not count. */
bool tn_rendezvous_gives_up(const tn_rendezvous *f, uint32_t rank, uint64_t incarnation);

/* Writes the welcome, only when the group is whole. f lends the lists; the caller sets
 * `checkpoint`. */
void tn_rendezvous_welcome(const tn_rendezvous *f, tn_welcome_note *out);

/* Appends "rank 3", "ranks 2, 5 and 9", "ranks 3..17, 20 and 40 others"; nothing when whole. */
void tn_rendezvous_missing(const tn_rendezvous *f, tn_text *out);

/* ---- how long a rank waits for its group ----
 *
 *     tn_rendezvous_timer w = {patience_ns, now};
 *     switch (tn_rendezvous_timer_poll(&w, now))            ten times a second, until all are in
 *     TN_RENDEZVOUS_TIMER_TELL: log who is missing
 *     TN_RENDEZVOUS_TIMER_OVER: give up; w.waited_ns were waited
 *
 * A process that was stopped has not waited meanwhile: of the time between two looks at most
 * TN_FAILURE_GAP_NS counts. Times are nanoseconds of one monotonic clock. */
#define TN_RENDEZVOUS_TIMER_TELL_NS                                                                \
    UINT64_C(10000000000) /* between two lines about who is missing */

typedef enum tn_rendezvous_timer_verdict {
    TN_RENDEZVOUS_TIMER_ON,
    TN_RENDEZVOUS_TIMER_TELL, /* every TN_RENDEZVOUS_TIMER_TELL_NS of waiting */
    TN_RENDEZVOUS_TIMER_OVER, /* the patience is, from now on for good */
} tn_rendezvous_timer_verdict;

typedef struct tn_rendezvous_timer {
    uint64_t patience_ns;
    uint64_t looked_ns, waited_ns, told_ns;
} tn_rendezvous_timer;

tn_rendezvous_timer_verdict tn_rendezvous_timer_poll(tn_rendezvous_timer *w, uint64_t now_ns);
