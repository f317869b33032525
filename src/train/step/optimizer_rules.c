/* optimizer_rules.c - which optimizer, rate and first values each segment of each share group has.
 *
 *     train.sparse  <  train.sparse.<segment>  <  slots.<slot>: optimizer, lr, l2, init
 *
 * A slot's override holds for its share group: rows of a group are one.
 */
#include "base/core/error.h"
#include "config/fieldtree.h"
#include "train/step/model_plan.h"

#include <math.h>
#include <string.h>

typedef struct rule_opts {
    tn_variant rule;
} rule_opts;

static const tn_field rule_fields[] = {
    TN_FIELD_VARIANT(rule_opts, rule, "{type: adam, lr: 1e-3}", tn_optim_choices, "of rows"),
    TN_FIELD_END,
};

/* {rule: tree}, so that the table above can read it. */
static tn_tree *wrapped(tn_arena *arena, const tn_tree *tree)
{
    tn_tree *map = tn_tree_new(arena, TN_TREE_MAP, tree->at);
    tn_tree_put(arena, map, "rule", tn_tree_copy(arena, tree));
    return map;
}

static bool is_rule(const tn_tree *tree)
{
    return tree->kind != TN_TREE_MAP || tn_tree_get(tree, "type") != NULL;
}

/* The part of `tree` (one rule, or {segment: rule}) that concerns `segment`; NULL: nothing. */
static const tn_tree *rule_of(const tn_tree *tree, const char *segment)
{
    if (tn_tree_is_null(tree)) {
        return NULL;
    }
    return is_rule(tree) ? tree : tn_tree_get(tree, segment);
}

/* Names of the embedding inputs; the usual two are known in every model. */
static uint32_t segment_names(const tn_model_inputs *inputs, const char **name, uint32_t n_max)
{
    uint32_t n = 0;
    name[n++] = "wide";
    name[n++] = "deep";
    for (uint32_t i = 0; i < inputs->n && n < n_max; i++) {
        if (!inputs->input[i].numeric) {
            name[n++] = inputs->input[i].name;
        }
    }
    return n;
}

static bool is_among(const char *word, const char *const *name, uint32_t n)
{
    uint32_t i = 0;
    while (i < n && strcmp(name[i], word) != 0) {
        i++;
    }
    return i < n;
}

static void check_segments(const tn_tree *tree, const tn_model_inputs *inputs, const tn_binder *b)
{
    if (tn_tree_is_null(tree) || is_rule(tree)) {
        return;
    }
    enum { NAMES_MAX = 64 };
    const char *name[NAMES_MAX];
    uint32_t n = segment_names(inputs, name, NAMES_MAX);
    for (const tn_tree *t = tree->first; t != NULL; t = t->next) {
        if (!is_among(t->key, name, n)) {
            const char *near = tn_nearest(t->key, name, n);
            tn_diag_error(b->diag, &t->key_at, "no embedding input '%s'%s%s%s", t->key,
                          near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                          near != NULL ? "'?)" : "");
        }
    }
}

static double bound_of(double own, double common)
{
    double value = isnan(own) ? common : own;
    return isnan(value) ? (double)INFINITY : value;
}

typedef struct resolver {
    const tn_run *run;
    const tn_model_inputs *inputs;
    const tn_binder *b;
} resolver;

static const tn_model_input *input_of(const resolver *r, const char *segment)
{
    uint32_t i = 0;
    while (i < r->inputs->n && strcmp(r->inputs->input[i].name, segment) != 0) {
        i++;
    }
    TN_ASSERT(i < r->inputs->n); /* segments are called like inputs */
    return &r->inputs->input[i];
}

static tn_init first_values(const resolver *r, const tn_segment *segment, const tn_slot_opts *slot)
{
    const tn_model_input *in = input_of(r, segment->name);
    tn_init init = {.kind = TN_INIT_CONSTANT};
    const tn_tree *tree = in->init;
    if (slot != NULL && !tn_tree_is_null(slot->init)) {
        tree = slot->init;
    } else if (tn_tree_is_null(tree) && in->dim != 1) {
        tree = r->run->embedding.init; /* a wide weight starts at 0 */
    }
    if (!tn_tree_is_null(tree)) {
        (void)tn_init_read(tree, r->b->diag, &init);
    }
    return init;
}

static void resolve(const resolver *r, const tn_segment *segment, const tn_slot_opts *slot,
                    tn_rule *out)
{
    tn_arena *arena = r->b->arena;
    const tn_tree *common = rule_of(r->run->train.sparse, segment->name);
    const tn_tree *own = slot != NULL ? rule_of(slot->optimizer, segment->name) : NULL;
    const tn_tree *map = common != NULL ? wrapped(arena, common) : NULL;
    if (own != NULL) {
        const tn_tree *over = wrapped(arena, own);
        map = map != NULL ? tn_fields_merge(r->b, rule_fields, map, over) : over;
    }
    rule_opts opts;
    tn_fields_bind(r->b, rule_fields, map, &opts);
    tn_rule_opts *rule = opts.rule.opts;
    if (slot != NULL && !isnan(slot->lr)) {
        rule->lr = slot->lr;
    }
    if (slot != NULL && !isnan(slot->l2)) {
        rule->l2 = slot->l2;
    }
    if (rule->schedule.choice != NULL) {
        tn_diag_error(r->b->diag, &opts.rule.tree->at,
                      "'schedule' belongs to train.optimizer; it drives the rows as well");
    }
    *out = (tn_rule){
        .optim = opts.rule.choice->impl,
        .opts = rule,
        .clip_row = bound_of(rule->clip_row, r->run->train.clip.row),
        .clip_value = bound_of(rule->clip_value, r->run->train.clip.value),
        .init = first_values(r, segment, slot),
    };
}

static bool changes_rule(const tn_slot_opts *o)
{
    return !tn_tree_is_null(o->optimizer) || !tn_tree_is_null(o->init) || !isnan(o->lr) ||
           !isnan(o->l2);
}

static const tn_slot_opts *opts_of(const tn_run *run, const char *slot)
{
    const tn_slot_opts *all = run->slots.item;
    for (uint32_t k = 0; k < run->slots.n; k++) {
        if (strcmp(all[k].name, slot) == 0) {
            return &all[k];
        }
    }
    return NULL; /* a slot that the format made */
}

const tn_slot_opts *tn_group_override(const tn_run *run, const tn_features *features,
                                      uint32_t group, tn_diag *diag)
{
    const tn_slot_opts *found = NULL;
    for (uint32_t i = 0; i < features->n_slots; i++) {
        const tn_slot_opts *o = opts_of(run, features->slot[i].name);
        if (features->slot[i].group != group || o == NULL || !changes_rule(o)) {
            continue;
        }
        if (found != NULL && diag != NULL) {
            const tn_slot_opts *all = run->slots.item;
            tn_diag_error(diag, &run->slots.tree[o - all]->at,
                          "slots '%s' and '%s' share vectors, so only one may set optimizer, lr, "
                          "l2 or init",
                          found->name, o->name);
        }
        found = o;
    }
    return found;
}

static tn_rule dense_rule(const tn_run *run, const tn_binder *b)
{
    const tn_variant *v = &run->train.optimizer;
    const tn_optim *optim = v->choice->impl;
    const tn_rule_opts *opts = v->opts;
    const char *why = optim->dense != NULL ? optim->dense(opts) : NULL;
    if (why != NULL) {
        tn_diag_error(b->diag, &v->tree->at, "train.optimizer: %s", why);
    }
    return (tn_rule){
        .optim = optim,
        .opts = opts,
        .clip_row = (double)INFINITY,
        .clip_value = bound_of(opts->clip_value, run->train.clip.value),
    };
}

const tn_rules *tn_rules_resolve(const tn_run *run, const tn_features *features,
                                 const tn_model_inputs *inputs, const tn_layout *layout,
                                 const tn_binder *b)
{
    resolver r = {.run = run, .inputs = inputs, .b = b};
    tn_rule *rule = TN_NEW_ARRAY(b->arena, tn_rule, (size_t)layout->n_groups * TN_SEGMENTS_MAX);
    check_segments(run->train.sparse, inputs, b);
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        const tn_slot_opts *slot = tn_group_override(run, features, g, b->diag);
        const tn_record *record = tn_record_of(layout, g);
        for (uint32_t s = 0; s < record->n_segments; s++) {
            resolve(&r, &record->segment[s], slot, &rule[g * TN_SEGMENTS_MAX + s]);
        }
    }
    tn_rules *rules = TN_NEW(b->arena, tn_rules);
    *rules = (tn_rules){
        .layout = layout,
        .rule = rule,
        .dense = dense_rule(run, b),
        .clip_global = isnan(run->train.clip.global) ? (double)INFINITY : run->train.clip.global,
    };
    return b->diag->n_errors == 0 ? rules : NULL;
}
