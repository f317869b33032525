/* resultkit.h - an evaluation made by hand: eight rows, one slot with two values. */
#pragma once

#include "io/schema/schema.h"
#include "train/config/run.h"
#include "train/report/eval_result.h"

typedef struct resultkit {
    tn_run run;
    tn_label_rule label;
    tn_slot_spec spec;
    const tn_slot_spec *slot[1];
    tn_schema schema;
    tn_evaluation evaluation;
    tn_eval_result findings;
} resultkit;

/* `exact`: with eval.auc: exact. The slot is called `slot`. */
void resultkit_make(resultkit *k, bool exact, const char *slot);
void resultkit_done(resultkit *k);
