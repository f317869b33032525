/* optim_state.h - the arrays of state that an optimizer keeps beside the weights. */
#ifndef TN_PS_OPTIM_STATE_H
#define TN_PS_OPTIM_STATE_H

#include <stdbool.h>

enum { TN_STATES_MAX = 4 };

/* One array of optimizer state. */
typedef struct tn_state {
    const char *name; /* "m", "v", "n", "z", "t" */
    bool per_row;     /* one 4-byte word per row instead of one per weight */
    bool count;       /* an unsigned count of updates (u32) instead of floats; implies per_row */
} tn_state;

#endif
