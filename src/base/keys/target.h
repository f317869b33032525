/* target.h - what a model learns to say of a row. It follows from the loss (nn/loss/loss.h), and
 * says which labels there may be and what a score is.
 *
 *     target    labels            score z
 *     click     0 .. 1 (-1: 0)    the logit of a probability, sigmoid(z)
 *     side      0 or 1 (-1: 0)    above 0 for 1, else for 0
 *     number    any               the number that is predicted
 *     order     any               alone it says nothing: of two rows of one group the higher one
 *                                 comes first
 *
 * Any label is one within +-TN_LABEL_MAX.
 */
#pragma once

#include <math.h>
#include <stdbool.h>

typedef enum tn_target {
    TN_TARGET_CLICK,
    TN_TARGET_SIDE,
    TN_TARGET_NUMBER,
    TN_TARGET_ORDER,
    TN_TARGETS,
} tn_target;

#define TN_LABEL_MAX 1e9

extern const char *const tn_target_words[]; /* as above; NULL-terminated */

/* Returns whether there may be such a label, -1 being read as 0 already. */
static inline bool tn_target_takes(tn_target target, double label)
{
    if (target == TN_TARGET_CLICK) {
        return label >= 0 && label <= 1;
    }
    return target == TN_TARGET_SIDE ? label == 0 || label == 1 : fabs(label) <= TN_LABEL_MAX;
}
