/* loopsets.h - the loops over pairs of vectors, compiled for one set of instructions each: a loop
 * that is picked at load time would never be run on a machine that has better.
 */
#ifndef TN_TEST_LOOPSETS_H
#define TN_TEST_LOOPSETS_H

#include "nn/pooling/ffmloops.h"
#include "nn/pooling/fmrows.h"

typedef struct tn_loopset {
    const char *name;
    tn_real (*ffm_pairs)(const tn_ffm_row *x);
    void (*ffm_pairs_back)(const tn_ffm_row *x, tn_range to, tn_real dy, tn_real *const *dfield);
    void (*fm_add_slot)(const tn_fm_rows *p, const tn_embed_slot *slot, tn_range rows);
    void (*fm_back_slot)(const tn_fm_rows *p, const tn_embed_slot *slot, uint32_t n_rows);
    void (*fm_back_keys)(const tn_fm_rows *p, tn_range keys);
} tn_loopset;

extern const tn_loopset tn_loops_plain, tn_loops_avx2, tn_loops_avx512;

#endif
