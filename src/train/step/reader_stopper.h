/* reader_stopper.h - a thread that stops a reader when a flag turns true.
 *
 * Whoever waits for data cannot look at a flag, and data that do not come would keep a signal
 * waiting for ever.
 */
#ifndef TN_TRAIN_READER_STOPPER_H
#define TN_TRAIN_READER_STOPPER_H

#include "io/read/reader.h"

#include <stdatomic.h>

typedef struct tn_stopper tn_stopper;

/* Both must outlive it. On failure *out is NULL. */
tn_status tn_stopper_start(tn_stopper **out, tn_reader *reader, const atomic_bool *flag,
                           tn_error *err) TN_MUST_USE;
void tn_stopper_end(tn_stopper *s); /* does not wait for the flag; NULL is fine */

#endif
