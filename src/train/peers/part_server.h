/* part_server.h - rank 0's side of parts on request: it puts to the ledger
 * (train/peers/part_dealer.h) what other ranks ask for, claim, finish and give back, and answers.
 *
 *     tn_part_server_bind(s, &parts);           what comes by messages: cluster/group/group.h
 *     tn_part_server_deal(s, dealer, now);      the parts of an epoch
 *     tn_part_server_pause(s, false, now);      all train ..
 *     tn_part_server_pause(s, true, now);       .. and stand still
 *
 * A rank that has to wait is told so, and later gets the part that another rank has finished or
 * given back. While all train, the server looks ten times a second: when a rank is idle, a
 * straggler is asked to give back what it holds. A rank that does not within 15 s, or does not
 * claim what it holds for 15 s, is lost (`lose`). All calls but bind: the thread that trains.
 */
#ifndef TN_TRAIN_PART_SERVER_H
#define TN_TRAIN_PART_SERVER_H

#include "cluster/group/group.h"
#include "train/peers/part_dealer.h"

/* How answers are sent; on any thread, must not wait. Notes and frames are lent. */
typedef struct tn_part_server_callbacks {
    void *arg;
    void (*deal)(void *arg, const tn_frame *ask, const tn_part_note *note);
    void (*ask_back)(void *arg, uint32_t rank, uint32_t epoch);
    void (*lose)(void *arg, uint32_t rank, const char *what);
} tn_part_server_callbacks;

typedef struct tn_part_server tn_part_server;

tn_status tn_part_server_new(tn_part_server **out, uint32_t ranks,
                             const tn_part_server_callbacks *voice, tn_error *err) TN_MUST_USE;
void tn_part_server_free(tn_part_server *s); /* when nothing comes any more; NULL is fine */

void tn_part_server_bind(tn_part_server *s, tn_group_parts *out);

/* Deals from `d` from now on; NULL: from none, and the dealer before is not touched any more. All
 * stand still then. */
void tn_part_server_deal(tn_part_server *s, tn_part_dealer *d, uint64_t now_ns);
void tn_part_server_pause(tn_part_server *s, bool still, uint64_t now_ns);

/* A rank that stands still tells what it holds, for a checkpoint. */
void tn_part_server_claim(tn_part_server *s, uint32_t rank, const tn_note_parts *held,
                          uint64_t now_ns);

/* Whether this process is the straggler, and is to give back; the question is forgotten then. */
bool tn_part_server_is_asked(tn_part_server *s);
bool tn_part_server_would_be_asked(const tn_part_server *s); /* the same, and it is not forgotten */

#endif
