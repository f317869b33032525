/* lists.h - what there is to choose from: --list-models, -layers, -ops, -optimizers, -formats,
 * -metrics. */
#ifndef TN_CLI_LISTS_H
#define TN_CLI_LISTS_H

#include "cli/options.h"

typedef struct tn_lists {
    bool models, layers, ops, optimizers, formats, metrics;
} tn_lists;

/* Prints what is asked for on stdout. False: nothing is. */
bool tn_lists_answer(const tn_lists *flags);

#endif
