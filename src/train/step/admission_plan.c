/* admission_plan.c - reads the words of `admission`, and refuses those that contradict each other.
 */
#include "train/step/admission_plan.h"

#include "base/core/arena.h"
#include "base/keys/keyspace.h"
#include "base/keys/record.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "models/layerlist.h"
#include "ps/table/key_filter.h"
#include "ps/table/lifecycle.h"
#include "train/config/run.h"

static const tn_origin of_all = {.source = "embedding.admission"};

static bool says(const tn_tree *tree, const char *key)
{
    return tn_tree_get(tree, key) != NULL;
}

tn_group_admission tn_admission_of(const tn_run *run, const tn_slot_opts *slot, const tn_binder *b)
{
    const tn_admission_opts *all = &run->embedding.admission;
    if (slot == NULL || tn_tree_is_null(slot->admission)) {
        return (tn_group_admission){.opts = all, .at = &of_all};
    }
    const tn_tree *tree = slot->admission;
    tn_admission_opts *own = TN_NEW(b->arena, tn_admission_opts);
    tn_fields_bind(b, tn_admission_fields, tree, own);
    own->threshold = says(tree, "threshold") ? own->threshold : all->threshold;
    own->probability = says(tree, "probability") ? own->probability : all->probability;
    own->filter = says(tree, "filter") ? own->filter : all->filter;
    own->uses = says(tree, "uses") ? own->uses : all->uses;
    own->l1_shrk = says(tree, "l1_shrk") ? own->l1_shrk : all->l1_shrk;
    return (tn_group_admission){
        .opts = own, .at = &tree->at, .slot = slot->name, .own_filter = says(tree, "filter")};
}

tn_group_waits tn_admission_waits(const tn_group_admission *a)
{
    const tn_admission_opts *o = a->opts;
    return (tn_group_waits){
        .any = o->threshold > 0 || o->probability < 1 || o->l1_shrk, .uses = o->uses, .at = a->at};
}

static bool has_filter(const tn_group_admission *a)
{
    return a->opts->threshold > 0 && a->opts->filter.choice == &tn_filter_bloom;
}

static void refuse(const tn_group_admission *a, const tn_binder *b, const char *what)
{
    if (a->slot != NULL) {
        tn_diag_error(b->diag, a->at, "slot '%s': admission: %s", a->slot, what);
    } else {
        tn_diag_error(b->diag, a->at, "%s", what);
    }
}

tn_admission tn_admission_rule(const tn_group_admission *a, const tn_record *record,
                               bool missing_init, const tn_binder *b)
{
    const uint32_t all = (UINT32_C(1) << record->n_segments) - 1;
    const tn_admission rule = {.threshold = a->opts->threshold,
                               .probability = a->opts->probability,
                               .filter = has_filter(a),
                               .l1_shrk = a->opts->l1_shrk};
    if (record->waits == 0) {
        return rule;
    }
    if (rule.filter && record->waits != all) {
        refuse(a, b,
               "'filter: bloom' counts keys that have no row, and with 'uses' every key has one, "
               "which counts itself: 'filter: exact'");
    }
    if (rule.filter && rule.threshold > TN_KEY_FILTER_COUNT_MAX) {
        refuse(a, b, "'filter: bloom' counts to 255, and 'threshold' is larger: 'filter: exact'");
    }
    if (rule.l1_shrk && record->waits == all) {
        refuse(a, b,
               "'l1_shrk' asks the weights of inputs that do not wait, and all wait: 'uses: "
               "[deep]'");
    }
    if (missing_init) {
        refuse(a, b,
               "keys that wait read as zeros, and 'missing: init' says that they read as they "
               "would begin: one of the two");
    }
    return rule;
}

const tn_key_filter *tn_admission_filter(const tn_group_admission *groups, uint32_t n,
                                         const tn_binder *b)
{
    const tn_filter_opts *first = NULL;
    uint32_t most = 0;
    for (uint32_t g = 0; g < n; g++) {
        const tn_admission_opts *o = groups[g].opts;
        if (!has_filter(&groups[g])) {
            continue;
        }
        const tn_filter_opts *f = o->filter.opts;
        if (first != NULL && (f->keys != first->keys || f->error != first->error)) {
            refuse(&groups[g], b,
                   "one filter counts the keys of all slots, and another one has other 'keys' or "
                   "'error': say them once, in embedding.admission.filter");
            return NULL;
        }
        first = f;
        most = o->threshold > most ? o->threshold : most;
    }
    if (first == NULL || most > TN_KEY_FILTER_COUNT_MAX) {
        return NULL;
    }
    tn_key_filter *filter = TN_NEW(b->arena, tn_key_filter);
    *filter =
        tn_key_filter_plan((first->keys + TN_PARTITIONS - 1) / TN_PARTITIONS, first->error, most);
    return filter;
}
