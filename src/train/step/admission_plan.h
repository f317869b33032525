/* admission_plan.h - the words of `admission`, for each share group: who waits, and for what.
 *
 *     embedding.admission  <  slots.<slot>.admission     key by key; that of a slot holds for its
 *                                                        whole share group
 *
 * Faults go to the binder's diag. All lives in its arena.
 */
#pragma once

#include "config/values.h"

#include <stdbool.h>

typedef struct tn_admission tn_admission;           /* ps/table/lifecycle.h */
typedef struct tn_admission_opts tn_admission_opts; /* train/config/run.h */
typedef struct tn_group_waits tn_group_waits;       /* models/layerlist.h */
typedef struct tn_key_filter tn_key_filter;         /* ps/table/key_filter.h */
typedef struct tn_record tn_record;                 /* base/keys/record.h */
typedef struct tn_run tn_run;                       /* train/config/run.h */
typedef struct tn_slot_opts tn_slot_opts;           /* io/schema/dataopts.h */

typedef struct tn_group_admission {
    const tn_admission_opts *opts;
    const tn_origin *at;
    const char *slot; /* the slot that says this; NULL: all slots */
    bool own_filter;  /* the slot says one of its own */
} tn_group_admission;

/* Returns what holds for the group of `slot`; NULL: of slots that say nothing. */
tn_group_admission tn_admission_of(const tn_run *run, const tn_slot_opts *slot, const tn_binder *b);

/* Sets which segments wait, for tn_layout_make. */
tn_group_waits tn_admission_waits(const tn_group_admission *a);

/* The rule of a group, once its record is known. `missing_init`: keys without a row read as their
 * first values in evaluations. */
tn_admission tn_admission_rule(const tn_group_admission *a, const tn_record *record,
                               bool missing_init, const tn_binder *b);

/* The filter that counts the keys of all groups which have one; NULL: none has. */
const tn_key_filter *tn_admission_filter(const tn_group_admission *groups, uint32_t n,
                                         const tn_binder *b);
