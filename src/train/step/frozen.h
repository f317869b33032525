/* frozen.h - dense parameters that keep the values which a run begins with: train.freeze.
 *
 *     freeze: [deep, "cross.*.W"]      all of layer deep (deep.1.W, deep.1.b, ..), and by pattern
 *
 * No optimizer moves them, and backward computes no gradients of them; what is before them learns
 * through them. Running values of norms go on: they are measured. What keeps its first values has
 * learned nothing, so whoever gives a run its weights says which are new (tn_frozen_check).
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>

typedef struct tn_params tn_params;           /* nn/graph/params.h */
typedef struct tn_param_slice tn_param_slice; /* nn/graph/params.h */
typedef struct tn_strs tn_strs;               /* config/values.h */

bool tn_frozen_has(const tn_strs *freeze, const tn_param_slice *s);

/* Before the training graph is finished. TN_E_CONFIG: a word that names no parameter. */
tn_status tn_frozen_apply(const tn_strs *freeze, tn_params *params, tn_error *err) TN_MUST_USE;

/* TN_E_CONFIG: a frozen parameter is among those that begin new, "\nname\nname\n"; NULL: all do. */
tn_status tn_frozen_check(const tn_strs *freeze, const tn_params *params, const char *fresh,
                          tn_error *err) TN_MUST_USE;
