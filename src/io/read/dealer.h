/* dealer.h - the parts of an epoch for each of several readers that share it.
 *
 *     reader 0   part 3   part 0   part 6        one dealer for all, in this process or another
 *     reader 1   part 5   part 1   wait ..
 */
#ifndef TN_IO_DEALER_H
#define TN_IO_DEALER_H

#include "base/core/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A part that is this reader's, and where in it to begin. */
typedef struct tn_dealt {
    uint32_t place;    /* in the order of parts of this epoch (tn_reader_part) */
    uint64_t position; /* rows that were handed out before, as in tn_progress */
} tn_dealt;

struct tn_reader;

/* Deals the parts of an epoch to several readers. `next` is called from one thread of the reader.
 * Without `wait` *now is false when there is none at present, which may change; with it the call
 * returns soon after *stop turns true, with TN_E_STOPPED. TN_END: no more. Any other status ends
 * the reader with it at once: rows that are not handed out yet are not. */
typedef struct tn_dealer {
    /* By the call that opens the reader, which fails with it: its parts and sources can be asked
     * for. NULL: they are known. */
    tn_status (*begin)(void *arg, const struct tn_reader *reader, tn_error *err);
    tn_status (*next)(void *arg, bool wait, const atomic_bool *stop, tn_dealt *out, bool *now,
                      tn_error *err);
    void *arg;
    /* From another thread of the reader, before it waits and at its end: whatever it was dealt
     * until then, `parts` parts of `records` records, is in the first `batches` batches. A part is
     * over when these are learned. NULL: nobody wants to know. */
    void (*flushed)(void *arg, uint32_t parts, uint64_t batches, uint64_t records);
} tn_dealer;

#endif
