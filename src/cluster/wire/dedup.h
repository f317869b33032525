/* dedup.h - exactly once at the receiver: which requests of one sender were applied.
 *
 *     sequence   1 .. low        low + 1  ..  low + TN_DEDUP_WINDOW      beyond
 *     applied    all of them     those whose bit is set                 none
 *
 *     switch (tn_dedup_check(o, frame.incarnation, frame.sequence)) {
 *     case TN_DEDUP_APPLY:      check the whole request, apply all of it, tn_dedup_mark, answer
 *     case TN_DEDUP_REPEATED:   apply nothing, answer again
 *     case TN_DEDUP_STALE:      refuse: the sender was started again, or never said hello
 *     case TN_DEDUP_BEYOND:     refuse and count: no sender that keeps the rules sends this
 *     }
 *
 * tn_dedup_check changes nothing: between check and mark a request may wait, fail its checks or be
 * dropped, and its repetition is treated as if it came first. Requests may be applied in any order;
 * `low` moves over holes as they close. Senders keep fewer than TN_DEDUP_WINDOW sequences open
 * (retransmit.h), so memory is fixed. An incarnation is never 0. The caller's lock guards it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TN_DEDUP_WINDOW = 1024 };

typedef struct tn_dedup {
    uint64_t incarnation;               /* incarnation of the sender; 0: it has not begun */
    uint64_t low;                       /* all up to here are applied */
    uint64_t top;                       /* the highest that is applied */
    uint64_t above;                     /* applied ones above low: bits that are set */
    uint64_t bit[TN_DEDUP_WINDOW / 64]; /* bit of sequence s: s % TN_DEDUP_WINDOW */
} tn_dedup;

_Static_assert(sizeof(tn_dedup) == 160, "memory per sender is a promise");

typedef enum tn_dedup_verdict {
    TN_DEDUP_APPLY,
    TN_DEDUP_REPEATED,
    TN_DEDUP_STALE,
    TN_DEDUP_BEYOND, /* 0, or more than TN_DEDUP_WINDOW above low */
} tn_dedup_verdict;

/* Checks a request. Any numbers are welcome: they come from outside. */
tn_dedup_verdict tn_dedup_check(const tn_dedup *o, uint64_t incarnation, uint64_t sequence);

/* Marks a request that is applied as a whole. Only after TN_DEDUP_APPLY for it, and once. */
void tn_dedup_mark(tn_dedup *o, uint64_t sequence);

/* Begins a new start of the sender: nothing of it is applied yet. */
void tn_dedup_begin(tn_dedup *o, uint64_t incarnation);
