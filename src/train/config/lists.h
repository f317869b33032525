/* lists.h - what there is to choose from: models, layers, operators, optimizers, losses, ..
 *
 * Every list walks a .def, so it is complete.
 */
#pragma once

#include "base/core/text.h"

#include <stdbool.h>

typedef struct tn_lists {
    bool models, layers, ops, optimizers, formats, metrics, losses;
} tn_lists;

/* Appends those that are asked for. False: none is. */
bool tn_lists_text(const tn_lists *wanted, tn_text *out);
