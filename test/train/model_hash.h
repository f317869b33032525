/* model_hash.h - one number for all that was learned: CRC-32C over the dense vector, then over the
 * rows in key order (key, counters, weights, state). Equal runs have equal hashes: the same seed
 * and data on any number of threads, interrupted and resumed or not. */
#pragma once

#include "base/core/error.h"

#include <stdint.h>

typedef struct tn_worker tn_worker;

tn_status model_hash(tn_worker *w, uint32_t *out, tn_error *err) TN_MUST_USE;
