/* scoredkit.h - batches of scored rows that are drawn, for tests of what happens to them. */
#pragma once

#include "base/core/arena.h"
#include "cluster/train/scored_rows.h"

typedef struct scoredkit {
    tn_arena *arena;
    const tn_run
        *run; /* of golden deepfm, with slices of a slot with one key and of one with many */
    const tn_schema *schema;
} scoredkit;

void scoredkit_open(scoredkit *k);
void scoredkit_close(scoredkit *k);

/* `n` rows in the order of data, of some files; ids name them "r0" .. but for some that have none.
 * Lives in the kit's arena. */
const tn_scores *scoredkit_draw(const scoredkit *k, uint64_t seed, uint32_t n);

/* The same rows read without what may be missing: weights of 1, no groups, no ids. */
const tn_scores *scoredkit_draw_bare(const scoredkit *k, uint64_t seed, uint32_t n);

/* Rows from .. from + n - 1 as a batch of their own. */
const tn_scores *scoredkit_part(const scoredkit *k, const tn_scores *of, uint32_t from, uint32_t n);

/* Fails the test unless row i of one is row j of the other, as metrics, slices and predictions see
 * it; `ids`: those, too. */
void scoredkit_same(const tn_scored_form *form, const tn_scores *a, uint32_t i, const tn_scores *b,
                    uint32_t j);
