/* linear_import.h - a run begins with a linear or FM model of xLearn or VW (io/dict/linear_text.h).
 *
 *     checkpoint.from: {xlearn: model.txt}     rows of libsvm, libffm or libfm; lr, fm, ffm
 *     checkpoint.from: {vw: model.txt}         --invert_hash; rows of vw; lr, of --lrq fm
 *
 *     line of the file         belongs to a row              as
 *     i_12: 0.5                "1 12:1"                      its weight of `wide`
 *     v_12: 0.1 -0.2           "1 12:1"                      its vector of `deep`
 *     v_12_3: 0.1 -0.2         "1 s:12:1", any field s       its vector of `deep` for field 3
 *     user^frank:2688:0.4847   "1 |user frank"               its weight of `wide`
 *     bias: .., Constant:..    every row                     the parameter `bias`
 *
 * The data's own parser reads each feature, so its key is that of the data whatever `slots` say;
 * features that no slot takes as keys are left, and counted. All else of the model begins anew:
 * other parameters, states, and where the file has no vectors those of `deep`.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>

typedef struct tn_begun tn_begun;   /* train/begin/begun.h */
typedef struct tn_tree tn_tree;     /* config/tree.h */
typedef struct tn_worker tn_worker; /* train/step/worker.h */

/* Whether `from` names such a file. */
bool tn_linear_import_wanted(const tn_tree *from);

/* `begun` (may be NULL) gets what was taken. TN_E_CONFIG: a fault in `from`, or a model without
 * `wide` or `bias`; TN_E_CKPT: no file; TN_E_DATA, with file and line: a line that is wrong, or a
 * vector of another width. */
tn_status tn_linear_import(const tn_tree *from, tn_worker *w, tn_begun *begun,
                           tn_error *err) TN_MUST_USE;
