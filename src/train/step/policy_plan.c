/* policy_plan.c - binds the options of row policies, and refuses those that contradict each other.
 */
#include "train/step/policy_plan.h"

#include "base/core/arena.h"
#include "base/keys/record.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/fieldtree.h"
#include "config/tree.h"
#include "io/schema/schema.h"
#include "models/layerlist.h"
#include "ps/table/lifecycle.h"
#include "train/config/run.h"

#include <math.h>
#include <stdio.h>

/* Returns what a slot says of a policy; NULL: nothing, or slots cannot. */
static const tn_tree *words_of(const tn_slot_opts *slot, const char *policy)
{
    const tn_field *f = tn_field_find(tn_slot_fields, policy);
    if (slot == NULL || f == NULL) {
        return NULL;
    }
    const tn_tree *const *words = (const void *)((const char *)slot + f->offset);
    return tn_tree_is_null(*words) ? NULL : *words;
}

static bool says(const tn_slot_opts *slot, const char *policy)
{
    if (policy == NULL) {
        return !tn_tree_is_null(slot->optimizer) || !tn_tree_is_null(slot->init) ||
               !isnan(slot->lr) || !isnan(slot->l2);
    }
    return words_of(slot, policy) != NULL || (strcmp(policy, "expiry") == 0 && !isnan(slot->decay));
}

const tn_slot_opts *tn_group_slot(const tn_run *run, const tn_schema *schema, uint32_t group,
                                  const char *policy, tn_diag *diag)
{
    const tn_slot_opts *found = NULL;
    TN_ASSERT(group < schema->n_groups);
    for (uint32_t i = 0; i < schema->n_slots; i++) {
        const tn_slot_opts *o = schema->slot[i]->opts;
        if (schema->slot[i]->group != group || !says(o, policy)) {
            continue;
        }
        if (found != NULL && diag != NULL) {
            const tn_slot_opts *all = run->slots.item;
            tn_diag_error(diag, &run->slots.tree[o - all]->at,
                          "slots '%s' and '%s' share vectors, so only one may set %s", found->name,
                          o->name,
                          policy == NULL                  ? "optimizer, lr, l2 or init"
                          : strcmp(policy, "expiry") == 0 ? "decay or expiry"
                                                          : policy);
        }
        found = o;
    }
    return found;
}

/* Returns where the options of a policy were written. */
static const tn_origin *origin_of(const char *policy, const tn_slot_opts *slot, const tn_binder *b)
{
    const tn_tree *words = words_of(slot, policy);
    char path[64];
    tn_origin *all = TN_NEW(b->arena, tn_origin);
    const int n = snprintf(path, sizeof path, "embedding.%s", policy);
    all->source = tn_tree_text(b->arena, path, (size_t)n);
    return words != NULL ? &words->at : all;
}

/* Sets the options of a policy for a group, and whether its keys wait. */
static void bind_group(const tn_run *run, const tn_slot_opts *slot, uint32_t i, const tn_binder *b,
                       void *own, tn_group_waits *waits)
{
    const tn_row_policy *policy = tn_row_policies[i];
    tn_strs uses;
    TN_ASSERT(i < TN_ROW_POLICIES && policy->options != NULL);
    memcpy(own, run->embedding.rows.of[i], tn_fields_size(policy->options));
    tn_fields_bind_over(b, policy->options, words_of(slot, policy->name), own);
    if (i == TN_POLICY_expiry) {
        const double decay = slot != NULL ? slot->decay : (double)NAN;
        ((tn_lifecycle *)own)->decay = isnan(decay) ? run->embedding.decay : decay;
    }
    if (policy->waits != NULL && policy->waits(own, &uses)) {
        *waits = (tn_group_waits){true, uses, origin_of(policy->name, slot, b)};
    }
}

void tn_policy_options_make(const tn_run *run, const tn_schema *schema, const tn_binder *b,
                            tn_row_options *out, tn_group_waits *waits)
{
    const uint32_t n = schema->n_groups;
    for (uint32_t i = 0; i < TN_ROW_POLICIES; i++) {
        const tn_row_policy *policy = tn_row_policies[i];
        if (policy->options == NULL) {
            continue;
        }
        const size_t size = tn_fields_size(policy->options);
        char *all = tn_arena_alloc(b->arena, n + 1, size, _Alignof(max_align_t));
        for (uint32_t g = 0; g < n; g++) {
            const tn_slot_opts *slot = tn_group_slot(run, schema, g, policy->name, b->diag);
            bind_group(run, slot, i, b, all + g * size, &waits[g]);
        }
        out->of[i] = all;
    }
}

/* A policy whose options are checked. */
typedef struct checking {
    const tn_run *run;
    const tn_schema *schema;
    const char *policy;
    const tn_binder *b;
} checking;

static void refuse(void *arg, uint32_t group, const char *what)
{
    const checking *c = arg;
    const tn_slot_opts *slot = tn_group_slot(c->run, c->schema, group, c->policy, NULL);
    const tn_origin *at = origin_of(c->policy, slot, c->b);
    if (words_of(slot, c->policy) != NULL) {
        tn_diag_error(c->b->diag, at, "slot '%s': %s: %s", slot->name, c->policy, what);
    } else {
        tn_diag_error(c->b->diag, at, "%s", what);
    }
}

void tn_policy_options_check(const tn_run *run, const tn_schema *schema, const tn_row_options *all,
                             const tn_layout *layout, const bool *missing_init, const tn_binder *b)
{
    for (uint32_t i = 0; i < TN_ROW_POLICIES; i++) {
        const tn_row_policy *policy = tn_row_policies[i];
        checking c = {run, schema, policy->name, b};
        if (policy->check != NULL) {
            policy->check(all, layout, missing_init, refuse, &c);
        }
    }
}
