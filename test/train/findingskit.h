/* findingskit.h - an evaluation made by hand: eight rows, one slot with two values. */
#ifndef TN_TEST_FINDINGSKIT_H
#define TN_TEST_FINDINGSKIT_H

#include "train/report/eval_result.h"

typedef struct findings_kit {
    tn_run run;
    tn_label_rule label;
    tn_slot_spec spec;
    const tn_slot_spec *slot[1];
    tn_schema schema;
    tn_evaluation evaluation;
    tn_eval_result findings;
} findings_kit;

/* `exact`: with eval.auc: exact. The slot is called `slot`. */
void findings_kit_make(findings_kit *k, bool exact, const char *slot);
void findings_kit_done(findings_kit *k);

#endif
