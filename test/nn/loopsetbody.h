/* loopsetbody.h - the sources of the loops, once per set: what they export takes the set's name. */
#ifndef TN_TEST_LOOPSETBODY_H
#define TN_TEST_LOOPSETBODY_H

#include "base/core/compiler.h"
#include "nn/loopsets.h"

#undef TN_HOT
#define TN_HOT

// NOLINTBEGIN(readability-identifier-naming): functions' names, not macros'
#define tn_ffm_attrs TN_LOOPSET(ffm_attrs)
#define tn_ffm_fits TN_LOOPSET(ffm_fits)
#define tn_ffm_pairs TN_LOOPSET(ffm_pairs)
#define tn_ffm_pairs_back TN_LOOPSET(ffm_pairs_back)
#define tn_fm_add_slot TN_LOOPSET(fm_add_slot)
#define tn_fm_add TN_LOOPSET(fm_add)
#define tn_fm_back_slot TN_LOOPSET(fm_back_slot)
#define tn_fm_back_keys TN_LOOPSET(fm_back_keys)
// NOLINTEND(readability-identifier-naming)

/* As the headers have them. */
extern const tn_field tn_ffm_attrs[];
bool tn_ffm_fits(const tn_ffm_attr *attr, const tn_node *x);
tn_real tn_ffm_pairs(const tn_ffm_row *x);
void tn_ffm_pairs_back(const tn_ffm_row *x, tn_range to, tn_real dy, tn_real *const *dfield);
void tn_fm_add_slot(const tn_fm_rows *p, const tn_embed_slot *slot, tn_range rows);
void tn_fm_add(const tn_fm_rows *p, uint32_t row, const tn_real *v);
void tn_fm_back_slot(const tn_fm_rows *p, const tn_embed_slot *slot, uint32_t n_rows);
void tn_fm_back_keys(const tn_fm_rows *p, tn_range keys);

#include "../../src/nn/pooling/ffmloops.c" // NOLINT(bugprone-suspicious-include): the point of this file
#include "../../src/nn/pooling/fmrows.c" // NOLINT(bugprone-suspicious-include)

#define TN_LOOPSET_OF(label)                                                                       \
    {                                                                                              \
        .name = (label), .ffm_pairs = tn_ffm_pairs, .ffm_pairs_back = tn_ffm_pairs_back,           \
        .fm_add_slot = tn_fm_add_slot, .fm_back_slot = tn_fm_back_slot,                            \
        .fm_back_keys = tn_fm_back_keys                                                            \
    }

#endif
