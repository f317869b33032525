/* part_client.h - the parts of an epoch asked for, one after another, from rank 0, which has the
 * ledger (cluster/train/part_dealer.h).
 *
 *     d = tn_part_client_open(&opts);                   opts.ask carries notes to rank 0
 *     reader_opts.dealer = tn_part_client_dealer(d);
 *     tn_part_client_note(d, &batch->progress);         after each batch that is learned
 *     tn_part_client_bind(d, &parts);                   for the answers of rank 0
 *
 * Parts that are over are reported with the next ask, or in a note of their own; one note is under
 * way at a time. A rank that has to wait asks again from time to time, under the same id, so that a
 * lost message does no harm. Part numbers are places in the order of reading (tn_reader_part), the
 * same for all ranks as long as they read the same files; a part that is not as rank 0 says is an
 * error.
 */
#pragma once

#include "cluster/group/group.h"
#include "cluster/ledger/ledger.h"
#include "io/read/reader.h"
#include "io/rows/batch.h"

typedef struct tn_part_client_opts {
    uint32_t epoch;
    uint64_t again_ns; /* before a rank that waits for a part asks again */
    void (*ask)(void *arg, const tn_ask_note *note); /* any thread; must not wait. Lent */
    void *arg;
} tn_part_client_opts;

typedef struct tn_part_client tn_part_client;

tn_part_client *tn_part_client_open(const tn_part_client_opts *opts);
/* After the reader, and when no answer comes any more. NULL is fine. */
void tn_part_client_close(tn_part_client *d);

/* For one reader at a time; must outlive it. */
const tn_dealer *tn_part_client_dealer(const tn_part_client *d);

/* One more batch is learned, whose progress this is. By the thread that trains. */
void tn_part_client_note(tn_part_client *d, const tn_progress *at);

/* Records that the present reader has brought, those left out included. */
uint64_t tn_part_client_records(tn_part_client *d);
uint32_t tn_part_client_ended(tn_part_client *d); /* parts of its that are over */

/* For tn_group_set_parts: what rank 0 answers, and what heartbeats claim. On tn-net. */
void tn_part_client_bind(tn_part_client *d, tn_group_parts *out);

/* Waits until rank 0 knows of all that is over, or until then; false: it does not yet. */
bool tn_part_client_settle(tn_part_client *d, uint64_t until_ns);

/* Lists what this rank holds, in the arena: parts, attempts, positions. A checkpoint needs that
 * list while the rank waits and all is settled. */
void tn_part_client_held(void *client, tn_arena *arena, tn_note_parts *out);

/* The reader is closed and all is settled: the same, and they are no more this rank's; another
 * reader asks anew. */
void tn_part_client_give_back(tn_part_client *d, tn_arena *arena, tn_note_parts *out);
