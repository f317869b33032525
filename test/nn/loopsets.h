/* loopsets.h - operators over pairs of vectors, compiled for one set of instructions each: a loop
 * that is picked at load time would never be run on a machine that has better.
 */
#pragma once

#include "base/core/compiler.h"
#include "config/field.h"
#include "nn/embed/embedlist.h"
#include "nn/vec/vec.h"

#include <string.h>

typedef struct tn_loopset {
    const char *name;
    const tn_op *ffm, *fm; /* ffm, embed_fm */
} tn_loopset;

extern const tn_loopset tn_loops_plain, tn_loops_avx2, tn_loops_avx512;
