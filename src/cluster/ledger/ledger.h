/* ledger.h - rank 0's book of the parts of an epoch: which rank reads which part, and which parts
 * are dealt again.
 *
 *     free --ask--> dealt (rank, attempt, position) --done--> done
 *       '<-- lost, returned, not claimed: attempt + 1 --'
 *
 * BY_RULE: part i goes to rank i mod ranks, in order; arrival decides nothing. ON_REQUEST: a rank
 * that asks gets the next free part, and parts that were given back come first; of the parts that
 * are not done it holds at most two, and at most ceil(parts / ranks). One epoch is one ledger.
 *
 * A rank asks under an id that grows with each ask, and retransmits the ask under the same id until
 * it is answered (retransmit.h). PART and NO_MORE are final: the same id gets the same answer, or a
 * part would leak. WAIT is not: the answer follows from tn_ledger_woken, or to a duplicate of the
 * ask. A rank asks for its next part when its last ask is answered.
 *
 * When a reader gives a part back its head is done, and the rest is the same part under the next
 * attempt, with a later beginning; that rank waits after all others. `attempt` fences: what comes
 * of an older attempt, or from another rank, is ignored. Numbers of parts come from outside and may
 * be any. The caller has checked that ranks are below `ranks` and of this incarnation.
 *
 * Nothing here waits, allocates (except new and restore) or reads a clock: the same calls give the
 * same answers. One thread. Times are nanoseconds of a monotonic clock. Asking, finishing and
 * giving back are O(1); lost and claim: the parts of the rank; straggler and woken: the ranks that
 * wait. */
#pragma once

#include "train/checkpoint/run_state.h"

enum {
    TN_LEDGER_RANKS_MAX = 1024,
    TN_LEDGER_PARTS_MAX = 1 << 20,
    TN_LEDGER_FINISHED_MIN = 3,
    TN_LEDGER_AHEAD = 2
};
#define TN_LEDGER_STRAGGLER_NS UINT64_C(5000000000) /* younger parts are never asked for */
#define TN_LEDGER_SILENT_NS UINT64_C(15000000000)   /* to give a part back, to claim one */

typedef enum tn_ledger_mode { TN_LEDGER_BY_RULE, TN_LEDGER_ON_REQUEST } tn_ledger_mode;

typedef struct tn_ledger_span {
    uint32_t source;
    uint64_t begin, end; /* bytes; no two spans overlap */
} tn_ledger_span;

typedef struct tn_ledger_opts {
    uint32_t epoch, ranks, n_parts;
    tn_ledger_mode mode;
    uint64_t straggler_ns, silent_ns; /* 0: the constants above; tests divide them */
    bool relaxed; /* parts of a lost rank are free at once, from where it began; else by restore */
    const tn_ledger_span *part; /* in the order of reading; copied */
} tn_ledger_opts;

typedef struct tn_ledger tn_ledger;
/* Makes a ledger. TN_E_LIMIT: more than TN_LEDGER_PARTS_MAX parts. TN_E_MEMORY. */
tn_status tn_ledger_new(tn_ledger **out, const tn_ledger_opts *opts, tn_error *err) TN_MUST_USE;
void tn_ledger_free(tn_ledger *l); /* NULL is fine */

bool tn_ledger_is_over(const tn_ledger *l);        /* every part is done */
uint32_t tn_ledger_reassigned(const tn_ledger *l); /* parts that were taken back so far */

typedef enum tn_ledger_answer {
    TN_LEDGER_PART,
    TN_LEDGER_WAIT,
    TN_LEDGER_NO_MORE, /* BY_RULE: none is left for this rank; ON_REQUEST: all are done */
    TN_LEDGER_OLD,     /* an ask of an earlier epoch, or before the last one: no answer is due */
} tn_ledger_answer;

typedef struct tn_ledger_deal {
    uint32_t part, attempt;
    tn_ledger_span span;
    uint64_t position; /* records of the part to skip */
} tn_ledger_deal;

/* Asks for a part. *out is written with TN_LEDGER_PART. An ask for a later epoch waits outside of
 * this ledger. */
tn_ledger_answer tn_ledger_ask(tn_ledger *l, uint32_t rank, uint32_t epoch, uint64_t id,
                               uint64_t now_ns, tn_ledger_deal *out);

typedef struct tn_ledger_wake {
    uint32_t rank;
    uint64_t id;             /* id of its ask */
    tn_ledger_answer answer; /* PART, which is `deal`, or NO_MORE */
    tn_ledger_deal deal;
} tn_ledger_wake;

/* Finds, after any of the calls below, the next rank whose wait is over; false: none. */
bool tn_ledger_woken(tn_ledger *l, uint64_t now_ns, tn_ledger_wake *out);

/* Finishes a part, every request of which is acknowledged. Returns false when it is not (or no
 * longer) this rank's attempt. */
bool tn_ledger_done(tn_ledger *l, uint32_t rank, uint32_t part, uint32_t attempt, uint64_t now_ns);

/* A part in the hands of a rank; position: records of it that are done, counted from its begin. */
typedef struct tn_ledger_held {
    uint32_t rank, part, attempt;
    uint64_t position;
} tn_ledger_held;

/* Takes the parts that `rank` holds by its heartbeat (held[].rank is not read): a part is claimed
 * until its done or its return is acknowledged. Returns how many others were not claimed for 15 s.
 * Relaxed: they are free again. Exact: the caller takes the rank for lost. */
uint32_t tn_ledger_claim(tn_ledger *l, uint32_t rank, const tn_ledger_held *held, uint32_t n,
                         uint64_t now_ns);

/* Says that the rank is gone, or came back as a new incarnation: its ids begin anew. */
void tn_ledger_lost(tn_ledger *l, uint32_t rank);

/* Finds the next part to ask back from a living rank, each once: it is older than 5 s and than 3
 * times the median of those finished of late, at least 3 are finished, and a rank without parts
 * waits. */
bool tn_ledger_straggler(tn_ledger *l, uint64_t now_ns, tn_ledger_held *out);

/* Takes back a part of a straggler, all records before `position` acknowledged. Returns false when
 * it is ignored. */
bool tn_ledger_returned(tn_ledger *l, const tn_ledger_held *held);

/* Finds the next rank that was asked 15 s ago and has neither returned nor finished it: it is
 * lost. */
bool tn_ledger_silent(tn_ledger *l, uint64_t now_ns, uint32_t *rank);

/* Writes all parts for a manifest by source and begin, adjacent done ones merged, with the
 * positions of the last claims; out[] has room for all. Returns how many. */
uint32_t tn_ledger_save(const tn_ledger *l, tn_epoch_part *out);

/* Restores positions of parts as the manifest has them, in any order; dealt ones are free with the
 * next attempt; nobody has asked. TN_E_CKPT: not the parts of this data. A failure changes
 * nothing. */
tn_status tn_ledger_restore(tn_ledger *l, const tn_epoch_part *part, uint32_t n,
                            tn_error *err) TN_MUST_USE;
