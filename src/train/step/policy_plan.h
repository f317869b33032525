/* policy_plan.h - the options of row policies (ps/table/row_policy.h) for each share group.
 *
 *     embedding.NAME  <  slots.SLOT.NAME     key by key; that of a slot holds for its whole share
 *                                            group, of which only one slot may say it
 *
 * Faults go to the binder's diag. All lives in its arena.
 */
#pragma once

#include "config/values.h"
#include "ps/table/row_policy.h"

typedef struct tn_group_waits tn_group_waits; /* models/layerlist.h */
typedef struct tn_run tn_run;                 /* train/config/run.h */
typedef struct tn_schema tn_schema;           /* io/schema/schema.h */
typedef struct tn_slot_opts tn_slot_opts;     /* io/schema/dataopts.h */

/* Returns the slot of a share group that says something of a policy, of expiry also by its decay;
 * NULL: none does. Policy NULL: of the rules that train rows. Two slots of one group are a fault,
 * unless diag is NULL. */
const tn_slot_opts *tn_group_slot(const tn_run *run, const tn_schema *schema, uint32_t group,
                                  const char *policy, tn_diag *diag);

/* Makes the options of every policy for every group, and says which segments wait. */
void tn_policy_options_make(const tn_run *run, const tn_schema *schema, const tn_binder *b,
                            tn_row_options *out, tn_group_waits *waits);

/* Refuses options that contradict each other, or the layout, or missing_init of a group. */
void tn_policy_options_check(const tn_run *run, const tn_schema *schema, const tn_row_options *all,
                             const tn_layout *layout, const bool *missing_init, const tn_binder *b);
