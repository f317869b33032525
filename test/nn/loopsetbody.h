/* loopsetbody.h - the sources of the operators, once per set: what they export takes the set's
 * name. */
#pragma once

#include "nn/loopsets.h"

#undef TN_HOT
#define TN_HOT

// NOLINTBEGIN(readability-identifier-naming): names of functions and constants, not macros'
#define tn_op_ffm TN_LOOPSET(op_ffm)
#define tn_op_ffm_within TN_LOOPSET(op_ffm_within)
#define tn_op_embed_ffm TN_LOOPSET(op_embed_ffm)
#define tn_op_embed_fm TN_LOOPSET(op_embed_fm)
#define tn_ffm_fits TN_LOOPSET(ffm_fits)
#define tn_embed_can_ffm TN_LOOPSET(embed_can_ffm)
// NOLINTEND(readability-identifier-naming)

/* As the headers have them. */
extern const tn_op tn_op_ffm, tn_op_ffm_within, tn_op_embed_ffm, tn_op_embed_fm;
bool tn_ffm_fits(const tn_ffm_attr *attr, const tn_node *x);
bool tn_embed_can_ffm(const tn_node *embed, uint32_t dim);

#include "../../src/nn/embed/op_embed_fm.c" // NOLINT(bugprone-suspicious-include): by design
#include "../../src/nn/embed/op_ffm.c"      // NOLINT(bugprone-suspicious-include)

#define TN_LOOPSET_OF(label)                                                                       \
    {                                                                                              \
        .name = (label), .ffm = &tn_op_ffm, .fm = &tn_op_embed_fm                                  \
    }
