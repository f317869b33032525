/* loops_plain.c - the loops over pairs of vectors, for every processor. */

#define TN_LOOPSET(name) tn_loops_plain_##name
#include "nn/loopsetbody.h"

const tn_loopset tn_loops_plain = TN_LOOPSET_OF("plain");
