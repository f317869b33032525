/* unknown_keys.h - bags without the keys that have no row.
 *
 * A key that was never trained says nothing: outside training it is left out of its slot, as if the
 * record did not hold it, so a mean is that of the known keys and a slot of unknown ones is empty.
 * (libtnet does the same.)
 */
#ifndef TN_TRAIN_UNKNOWN_KEYS_H
#define TN_TRAIN_UNKNOWN_KEYS_H

#include "base/core/error.h"
#include "base/keys/bag.h"

#include <stdbool.h>

typedef struct tn_sieve tn_sieve;

tn_status tn_sieve_new(tn_sieve **out, uint32_t n_slots, tn_error *err) TN_MUST_USE;
void tn_sieve_free(tn_sieve *s); /* NULL is fine */

/* What passes through, lent until the next call. `missing` has a truth value per key of the
 * bags' index. The given bags themselves, when nothing is missing. */
typedef struct tn_sieve_in {
    const tn_bag *bag;
    uint32_t rows;
    uint32_t n_keys;
    const bool *missing;
} tn_sieve_in;
tn_status tn_sieve_pass(tn_sieve *s, const tn_sieve_in *in, const tn_bag **out,
                        tn_error *err) TN_MUST_USE;

#endif
