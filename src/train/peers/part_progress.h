/* part_progress.h - which parts of an epoch one reader was dealt, and how far they are learned.
 *
 *     dealt       7        3     9        4
 *                 settled  over  in hand  in hand
 *                                ^ progress {part 2, position 300} of the last batch learned
 *
 * A reader asks ahead: a part is dealt long before its first record is learned. The reader's
 * threads add and tell what is flushed, whoever trains notes, any thread asks.
 */
#ifndef TN_TRAIN_PART_PROGRESS_H
#define TN_TRAIN_PART_PROGRESS_H

#include "cluster/ledger/ledger.h"
#include "io/rows/batch.h"

typedef struct tn_partbook tn_partbook;

tn_status tn_partbook_new(tn_partbook **out, tn_error *err) TN_MUST_USE;
void tn_partbook_free(tn_partbook *b); /* NULL is fine */

/* The reader is dealt this part, behind those before. Nothing of it is learned by this reader yet.
 */
tn_status tn_partbook_add(tn_partbook *b, const tn_ledger_deal *deal, tn_error *err) TN_MUST_USE;

/* One more batch is learned, and so everything up to `at`, its progress. */
void tn_partbook_note(tn_partbook *b, const tn_progress *at);

/* From the reader (tn_dealer.flushed): the first `parts` parts, of so many records, are over when
 * so many batches are learned. Progress alone does not tell that a part has no more rows. */
void tn_partbook_flushed(tn_partbook *b, uint32_t parts, uint64_t batches, uint64_t records);

/* Records that are learned, or left out between those. */
uint64_t tn_partbook_records(tn_partbook *b);

/* Parts that are over, of all that its reader was dealt. */
uint32_t tn_partbook_ended(tn_partbook *b);

/* Parts that are over and not settled yet, in the order they were dealt, as for tn_ledger_done.
 * Writes at most `most`, returns how many there are. */
uint32_t tn_partbook_over(tn_partbook *b, tn_ledger_held *out, uint32_t most);

/* The ledger knows that the first `n` of these are done. Before parts are saved all that a note has
 * ended must be settled: their `position` lies behind. */
void tn_partbook_settle(tn_partbook *b, uint32_t n);

/* The same for all that are not settled, with what is learned of them, for claims: one that is over
 * is claimed until the ledger knows. `rank` of each is left 0. */
uint32_t tn_partbook_held(tn_partbook *b, tn_ledger_held *out, uint32_t most);

/* The reader is closed: takes the last part that is not settled out of the book, to be given back.
 * False: there is none, and the book is as new, for another reader. */
bool tn_partbook_drop(tn_partbook *b, tn_ledger_held *out);

#endif
