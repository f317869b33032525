/* zipf.h - ids whose popularity falls like a power: id i has mass (i + 1)^-s, i = 0 .. n-1.
 *
 * Walker's alias method: one table look-up per draw, whatever n is. Up to 4096
 * ids each have a cell of their own and the law is exact; after them ids share
 * cells of width 1/64 of their rank, inside which they are equally likely, so
 * that a table of ten million ids stays within 100 kB. s = 0 is uniform.
 *
 * Made once, then only read: any thread.
 */
#pragma once

#include "base/core/error.h"

#include <stdint.h>

typedef struct tn_zipf tn_zipf;

/* 1 <= n <= 2^32, 0 <= s <= 8. On failure *out is NULL. */
tn_status tn_zipf_new(tn_zipf **out, uint64_t n, double s, tn_error *err) TN_MUST_USE;
void tn_zipf_free(tn_zipf *z); /* NULL is fine */

/* The id that two random words select. */
uint64_t tn_zipf_id(const tn_zipf *z, uint64_t x, uint64_t y);
