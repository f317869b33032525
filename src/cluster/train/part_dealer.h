/* part_dealer.h - the parts of an epoch dealt from a ledger in this process: to its own reader, and
 * to other ranks that ask for one (tn_part_server).
 *
 *     TN_TRY(tn_part_dealer_open(&d, &opts, err));     fresh, or from a checkpoint's position
 *     reader_opts.dealer = tn_part_dealer_dealer(d);
 *     tn_part_dealer_note(d, &batch->progress, now_ns);       after each batch that is learned
 *     parts = tn_part_dealer_parts(d, arena, &n, now_ns);     for a checkpoint
 *
 * A process alone that goes on from a checkpoint of several has one rank: it reads what is left, in
 * order. Several may deal themselves by rule, each from a ledger of its own that is equal to all
 * others: no messages are needed, and rank 0 follows the others by their progress. Parts are
 * numbered by their places in the order of reading (tn_reader_part).
 *
 * The ledger's time is that of a monotonic clock less all pauses of the group: no rank is late
 * because of an evaluation.
 */
#pragma once

#include "base/core/arena.h"
#include "cluster/group/group.h"
#include "cluster/ledger/ledger.h"
#include "io/read/reader.h"
#include "train/checkpoint/run_state.h"
#include "train/run/epoch_reader.h"

typedef struct tn_part_dealer_opts {
    uint32_t epoch, ranks;
    uint32_t rank; /* this process's */
    tn_ledger_mode mode;
    bool relaxed;                   /* as in tn_ledger_opts */
    const tn_epoch_parts *map;      /* the epoch's; NULL: the reader that is opened next has it */
    const tn_epoch_position *stand; /* NULL, or not within an epoch: at its beginning. Lent until
                                   the map is known */
} tn_part_dealer_opts;

typedef struct tn_part_dealer tn_part_dealer;

/* Lends nothing. TN_E_DATA: the position is one of other data. TN_E_LIMIT: too many parts. */
tn_status tn_part_dealer_open(tn_part_dealer **out, const tn_part_dealer_opts *opts,
                              tn_error *err) TN_MUST_USE;
/* After the reader, which asks until it is closed. NULL is fine. */
void tn_part_dealer_close(void *dealer);

uint32_t tn_part_dealer_reassigned(void *dealer); /* as tn_ledger_reassigned */

/* For the reader of this process, one; must outlive it. */
const tn_dealer *tn_part_dealer_dealer(const void *dealer);

/* This process has learned one more batch, whose progress this is. Times as in
 * cluster/ledger/ledger.h. */
void tn_part_dealer_note(void *dealer, const tn_progress *at, uint64_t now_ns);

/* Records that the present reader of this process has brought, those left out included. */
uint64_t tn_part_dealer_records(tn_part_dealer *d);
uint32_t tn_part_dealer_ended(tn_part_dealer *d); /* parts of its that are over */

/* BY_RULE: another rank deals itself, and has come to `at`. TN_E_PEER: there it cannot be. */
tn_status tn_part_dealer_follow(tn_part_dealer *d, uint32_t rank, const tn_progress *at,
                                uint64_t now_ns, tn_error *err) TN_MUST_USE;

/* This process gives back what it holds; its reader is closed, and another one asks anew. */
void tn_part_dealer_give_back(tn_part_dealer *d, uint64_t now_ns);

/* Lists for a manifest how far all parts are, with the claims of others or the positions that they
 * were followed to. Lives in the arena. */
tn_epoch_part *tn_part_dealer_parts(void *dealer, tn_arena *arena, uint32_t *n, uint64_t now_ns);

/* As the dealer of an epoch, which closes it; of NULL none. Functions of that table take a
 * `void *`, which is a tn_part_dealer. */
tn_epoch_dealer tn_part_dealer_of_epoch(tn_part_dealer *d);
/* As in tn_group_kind: by rule. */
tn_status tn_part_dealer_deal(tn_epoch_dealer *out, const tn_epoch_dealt *left,
                              tn_error *err) TN_MUST_USE;

/* The ledger itself, for asks and claims of another rank: nobody else gets in until unlock, which
 * wakes whoever waits for a change. */
tn_ledger *tn_part_dealer_lock(tn_part_dealer *d);
void tn_part_dealer_unlock(tn_part_dealer *d);

/* ---- rank 0's side of parts on request ----
 *
 * It puts to the ledger what other ranks ask for, claim, finish and give back, and answers.
 *
 *     tn_part_server_bind(s, &parts);           what comes by messages: cluster/group/group.h
 *     tn_part_server_deal(s, dealer, now);      the parts of an epoch
 *     tn_part_server_pause(s, false, now);      all train ..
 *     tn_part_server_pause(s, true, now);       .. and wait
 *
 * A rank that has to wait gets that answer, and later the part that another rank has finished or
 * given back. While all train, the server looks ten times a second: when a rank is idle, a
 * straggler is asked to give back what it holds. A rank that does not within 15 s, or does not
 * claim what it holds for 15 s, is lost (`lose`). All calls but bind: the thread that trains.
 */

/* How answers are sent; on any thread, must not wait. Notes and frames are lent. */
typedef struct tn_part_server_callbacks {
    void *arg;
    void (*deal)(void *arg, const tn_frame *ask, const tn_part_note *note);
    void (*ask_back)(void *arg, uint32_t rank, uint32_t epoch);
    void (*lose)(void *arg, uint32_t rank, const char *what);
} tn_part_server_callbacks;

typedef struct tn_part_server tn_part_server;

tn_part_server *tn_part_server_new(uint32_t ranks, const tn_part_server_callbacks *voice);
void tn_part_server_free(tn_part_server *s); /* when nothing comes any more; NULL is fine */

void tn_part_server_bind(tn_part_server *s, tn_group_parts *out);

/* Deals from `d` from now on; NULL: from none, and the dealer before is not touched any more. All
 * wait then. */
void tn_part_server_deal(tn_part_server *s, tn_part_dealer *d, uint64_t now_ns);
void tn_part_server_pause(tn_part_server *s, bool still, uint64_t now_ns);

/* A rank that waits claims its parts, for a checkpoint. */
void tn_part_server_claim(tn_part_server *s, uint32_t rank, const tn_note_parts *held,
                          uint64_t now_ns);

/* Whether this process is the straggler, and is to give back; the question is forgotten then. */
bool tn_part_server_is_asked(tn_part_server *s);
bool tn_part_server_would_be_asked(const tn_part_server *s); /* the same, and it is not forgotten */
