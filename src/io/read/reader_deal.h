/* reader_deal.h - the parts of a reader on their way from the dealer to the source thread, which
 * reads them, and to the assembler, which takes their rows in the same order; for reader*.c only.
 */
#ifndef TN_IO_READER_DEAL_H
#define TN_IO_READER_DEAL_H

#include "io/read/reader.h"

/* One of them, and what was met in it. */
typedef struct tn_deal_part {
    tn_dealt dealt;
    tn_read_counts counts;
    uint64_t *reason; /* bad records, by the reader's reasons; owned; NULL: none */
} tn_deal_part;

/* Guarded by the reader's lock, but the first two, which are the source thread's. */
typedef struct tn_deal {
    tn_dealer dealer;
    uint32_t n_taken;   /* parts, where all are this reader's */
    tn_deal_part *part; /* n, in the order they were dealt; owned */
    uint32_t n, most;
    bool waits; /* the source has nothing to read until more is dealt */
    bool over;
} tn_deal;

/* Makes opts.dealer, or one that deals all parts, the reader's. */
tn_status tn_reader_begin_deal(tn_reader *r, tn_error *err) TN_MUST_USE;
void tn_reader_end_deal(tn_reader *r);

/* The source's next part, which the assembler then finds too; false: no more, or the reader stops
 * or has ended. */
bool tn_reader_deal(tn_reader *r, uint32_t *part);

/* The assembler's i-th part. Without `wait` *now is false when it has to be waited for. TN_END: no
 * more. TN_E_STOPPED: the reader stops or has ended. */
tn_status tn_reader_await_deal(tn_reader *r, uint32_t i, bool wait, tn_dealt *out, bool *now);

#endif
