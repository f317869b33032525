/* model_plan.c - makes the plan of a run: features, layout, rules, and what is drawn from them. */
#include "train/step/model_plan.h"

#include "base/core/arena.h"
#include "base/keys/record.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/fieldtree.h"
#include "config/tree.h"
#include "io/read/schema_inference.h"
#include "io/schema/schema.h"
#include "models/layerlist.h"
#include "models/model.h"
#include "ps/optim/optim.h"
#include "ps/optim/rule.h"
#include "ps/shard/ownership.h"
#include "train/config/run.h"
#include "train/step/policy_plan.h"
#include "train/step/sequence_plan.h"
#include "train/step/value_sizes.h"

#include <math.h>
#include <string.h>

/* ---- rules: optimizer, rate and first values of each segment of each share group ----
 *
 *     train.sparse  <  train.sparse.<segment>  <  slots.<slot>: optimizer, lr, l2, init
 *
 * The override of a slot holds for its whole share group, whose slots share rows.
 */

typedef struct rule_opts {
    tn_variant rule;
} rule_opts;

static const tn_field rule_fields[] = {
    TN_FIELD_VARIANT(rule_opts, rule, TN_ROW_RULE, tn_optim_choices, "of rows"),
    TN_FIELD_END,
};

/* {rule: tree}, so that the table above can read it. */
static tn_tree *wrapped(tn_arena *arena, const tn_tree *tree)
{
    tn_tree *map = tn_tree_new(arena, TN_TREE_MAP, tree->at);
    tn_tree_put(arena, map, "rule", tn_tree_copy(arena, tree));
    return map;
}

/* Returns whether the usual rule, that of a map without a type, has this option. */
static bool is_option(tn_arena *arena, const tn_tree *map, const char *key)
{
    return tn_field_find(tn_field_choice(arena, rule_fields, map)->fields, key) != NULL;
}

/* With a type, or with options of the usual one: {lr: 0.02}. */
static bool is_rule(tn_arena *arena, const tn_tree *tree)
{
    return tree->kind != TN_TREE_MAP || tn_tree_get(tree, "type") != NULL ||
           (tree->first != NULL && is_option(arena, tree, tree->first->key));
}

/* The part of `tree` (one rule, or {segment: rule}) that concerns `segment`; NULL: nothing. */
static const tn_tree *rule_of(tn_arena *arena, const tn_tree *tree, const char *segment)
{
    if (tn_tree_is_null(tree)) {
        return NULL;
    }
    return is_rule(arena, tree) ? tree : tn_tree_get(tree, segment);
}

/* Names of the embedding inputs; the usual two are known in every model. */
static uint32_t segment_names(const tn_model_inputs *inputs, const char **name, uint32_t n_max)
{
    uint32_t n = 0;
    name[n++] = "wide";
    name[n++] = "deep";
    for (uint32_t i = 0; i < inputs->n && n < n_max; i++) {
        const tn_model_input *in = &inputs->input[i];
        if (!in->numeric && !in->cvm && strcmp(in->segment, in->name) == 0) {
            name[n++] = inputs->input[i].name;
        }
    }
    return n;
}

static void check_segments(const tn_tree *tree, const tn_model_inputs *inputs, const tn_binder *b)
{
    if (tn_tree_is_null(tree) || is_rule(b->arena, tree)) {
        return;
    }
    enum { NAMES_MAX = 64 };
    const char *name[NAMES_MAX];
    uint32_t n = segment_names(inputs, name, NAMES_MAX);
    for (const tn_tree *t = tree->first; t != NULL; t = t->next) {
        const char *near = tn_nearest(t->key, name, n);
        if (near == NULL || strcmp(near, t->key) != 0) {
            tn_diag_error(b->diag, &t->key_at, "no embedding input '%s'%s%s%s", t->key,
                          near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                          near != NULL ? "'?)" : "");
            if (is_option(b->arena, tree, t->key)) {
                tn_diag_hint(b->diag,
                             "each input has a rule of its own here: say "
                             "'train.sparse.%s.%s'",
                             tree->first->key, t->key);
            }
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
    const tn_tree *common = rule_of(arena, r->run->train.sparse, segment->name);
    const tn_tree *own = slot != NULL ? rule_of(arena, slot->optimizer, segment->name) : NULL;
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

static tn_rule dense_rule(const tn_run *run, const tn_binder *b)
{
    const tn_variant *v = &run->train.optimizer;
    const tn_optim *optim = v->choice->impl;
    const tn_rule_opts *opts = v->opts;
    const char *why = optim->dense != NULL ? optim->dense(opts) : NULL;
    if (why != NULL) {
        tn_diag_error(b->diag, &v->tree->at, "train.optimizer: %s", why);
    }
    if (opts->grad_normalize) {
        tn_diag_error(b->diag, &v->tree->at,
                      "train.optimizer: `grad_normalize` is for rows; see train.sparse");
    }
    return (tn_rule){
        .optim = optim,
        .opts = opts,
        .clip_row = (double)INFINITY,
        .clip_value = bound_of(opts->clip_value, run->train.clip.value),
    };
}

/* The rules of all rows and of the dense vector; part of tn_model_plan_new. NULL: faults. */
static const tn_rules *resolve_rules(const tn_model_plan *p, const tn_row_options *policies,
                                     const tn_binder *b)
{
    const tn_run *run = p->run;
    const tn_layout *layout = p->layout;
    resolver r = {.run = run, .inputs = p->inputs, .b = b};
    tn_rule *rule = TN_NEW_ARRAY(b->arena, tn_rule, (size_t)layout->n_groups * TN_SEGMENTS_MAX);
    check_segments(run->train.sparse, p->inputs, b);
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        const tn_slot_opts *slot = tn_group_slot(run, p->schema, g, NULL, b->diag);
        const tn_record *record = tn_record_of(layout, g);
        for (uint32_t s = 0; s < record->n_segments; s++) {
            resolve(&r, &record->segment[s], slot, &rule[g * TN_SEGMENTS_MAX + s]);
        }
    }
    tn_rules *rules = TN_NEW(b->arena, tn_rules);
    *rules = (tn_rules){
        .layout = layout,
        .rule = rule,
        .rows = policies,
        .dense = dense_rule(run, b),
        .clip_global = isnan(run->train.clip.global) ? (double)INFINITY : run->train.clip.global,
    };
    tn_policy_options_check(run, p->schema, policies, layout, p->missing_init, b);
    tn_value_sizes_apply(run->train.value_sizes, p->schema, b, rules);
    return b->diag->n_errors == 0 ? rules : NULL;
}

/* ---- features ---- */

/* Returns whether a slot has at most one value in a row. */
static bool is_single(const tn_schema *schema, const tn_slot_spec *spec)
{
    bool single = schema->frame_words && spec->list == 0;
    for (uint32_t k = 0; k < spec->n_parts; k++) {
        single = single && schema->slot[spec->part[k]]->list == 0;
    }
    return single;
}

static void read_slot(const tn_schema *schema, const tn_slot_spec *spec, const tn_run *run,
                      const tn_binder *b, tn_model_slot *out)
{
    const tn_slot_opts *o = spec->opts;
    *out = (tn_model_slot){
        .name = spec->name,
        .slot = spec->slot,
        .group = spec->group,
        .dim = o->dim != TN_UNSET_U32 ? o->dim : run->embedding.dim,
        .single = is_single(schema, spec),
        .cvm = o->cvm != TN_UNSET_U32 ? o->cvm : run->embedding.cvm,
        .uses = o->uses,
    };
    const tn_tree *pool = o->pool != NULL ? o->pool : run->embedding.pool;
    const char *text = pool->kind == TN_TREE_SCALAR ? pool->text : "";
    if (!tn_pool_read(text, &out->pool, &out->pool_k)) {
        tn_diag_error(b->diag, &pool->at, "'pool' is '%s', not sum, mean, sqrtn, max or concat(k)",
                      text);
    }
}

static const tn_features *make_features(const tn_schema *schema, const tn_run *run,
                                        tn_row_options *policies, const tn_binder *b)
{
    tn_features *f = TN_NEW(b->arena, tn_features);
    tn_group_waits *waits = TN_NEW_ARRAY(b->arena, tn_group_waits, schema->n_groups + 1);
    tn_model_slot *slot = TN_NEW_ARRAY(b->arena, tn_model_slot, schema->n_slots);
    for (uint32_t i = 0; i < schema->n_slots; i++) {
        read_slot(schema, schema->slot[i], run, b, &slot[i]);
    }
    tn_model_number *number = TN_NEW_ARRAY(b->arena, tn_model_number, schema->n_numbers + 1);
    for (uint32_t i = 0; i < schema->n_numbers; i++) {
        const tn_slot_spec *s = schema->numeric[i];
        bool running = s->transform.kind == TN_TRANSFORM_ZSCORE && isnan(s->transform.a);
        number[i] = (tn_model_number){.name = s->name,
                                      .at = s->numeric,
                                      .cols = tn_spec_cols(s),
                                      .zscore_freeze = running ? s->transform.freeze_rows : 0};
    }
    uint32_t *class = TN_NEW_ARRAY(b->arena, uint32_t, schema->n_groups);
    *f = (tn_features){
        .n_slots = schema->n_slots,
        .slot = slot,
        .n_numeric = schema->n_numeric,
        .n_numbers = schema->n_numbers,
        .number = number,
        .n_groups = schema->n_groups,
        .group = schema->group,
        .group_class = class,
        .waits = waits,
        .tasks = schema->data->tasks,
    };
    for (uint32_t g = 0; g < schema->n_groups; g++) {
        class[g] = tn_group_slot(run, schema, g, NULL, NULL) != NULL ? g + 1 : 0;
    }
    tn_sequence_features_make(run, b, f);
    tn_policy_options_make(run, schema, b, policies, waits);
    return f;
}

static void refuse(const tn_model_plan *p, const tn_slot_spec *spec, const char *what,
                   const char *remedy, const tn_binder *b)
{
    const tn_slot_opts *all = p->run->slots.item;
    const ptrdiff_t i = spec->opts - all;
    const bool listed = p->run->slots.tree != NULL && i >= 0 && i < (ptrdiff_t)p->run->slots.n;
    static const tn_origin data = {.source = "data"};
    tn_diag_error(b->diag, listed ? &p->run->slots.tree[i]->at : &data, "slot '%s': %s", spec->name,
                  what);
    tn_diag_hint(b->diag, "%s", remedy);
}

/* A column that changes nothing is a mistake of its user: what no input reads must be of use
 * elsewhere, for slices or groups. */
static void refuse_unread(const tn_model_plan *p, const bool *used, const tn_binder *b)
{
    const tn_schema *schema = p->schema;
    bool *read = TN_NEW_ARRAY(b->arena, bool, schema->n_numbers + 1);
    for (uint32_t i = 0; i < p->inputs->n; i++) {
        const tn_model_input *in = &p->inputs->input[i];
        for (uint32_t k = 0; in->numeric && k < in->n; k++) {
            read[in->item[k]] = true;
        }
    }
    for (uint32_t i = 0; i < schema->n_slots; i++) {
        const tn_slot_spec *spec = schema->slot[i];
        if (!used[i] && spec != schema->group_spec &&
            !tn_strs_has(&p->run->eval.slices, spec->name)) {
            refuse(
                p, spec, "no input of the model reads it",
                "leave it out of 'slots', or name it in an input (model.slots, its 'uses', or the "
                "inputs of a graph)",
                b);
        }
    }
    for (uint32_t i = 0; i < schema->n_numbers; i++) {
        if (!read[i]) {
            refuse(p, schema->numeric[i], "the model has no numeric input, which would read it",
                   schema->numeric[i]->width > 0
                       ? "a model with a net reads vectors, a graph by an input {numeric: all}"
                       : "without 'as: value' it becomes the key of a bucket; a graph reads "
                         "numbers by an input {numeric: all}",
                   b);
        }
    }
}

/* Collects the slots that feed an input, and the group of each. */
static void map_slots(tn_model_plan *p, const tn_binder *b)
{
    const tn_schema *schema = p->schema;
    uint16_t *group = TN_NEW_ARRAY(b->arena, uint16_t, schema->n_slots);
    bool *used = TN_NEW_ARRAY(b->arena, bool, schema->n_slots);
    bool *missing = TN_NEW_ARRAY(b->arena, bool, schema->n_groups);
    for (uint32_t i = 0; i < schema->n_slots; i++) {
        group[i] = schema->slot[i]->group;
        uint32_t own = schema->slot[i]->opts->missing;
        missing[group[i]] = (own != TN_UNSET_U32 ? own : p->run->embedding.missing) == 1;
    }
    for (uint32_t i = 0; i < p->inputs->n; i++) {
        const tn_model_input *in = &p->inputs->input[i];
        for (uint32_t k = 0; !in->numeric && k < in->n; k++) {
            used[p->features->slot[in->item[k]].slot] = true;
        }
    }
    refuse_unread(p, used, b);
    p->slot_group = group;
    p->slot_used = used;
    p->missing_init = missing;
}

/* Fills p as far as there are no faults. */
static void draw(tn_model_plan *p, const tn_binder *b)
{
    const tn_model_common *common = p->run->model.shared;
    tn_row_options *policies = TN_NEW(b->arena, tn_row_options);
    p->features = make_features(p->schema, p->run, policies, b);
    if (!tn_init_read(common->init, b->diag, &p->dense_init) || b->diag->n_errors > 0) {
        return;
    }
    p->list = tn_model_list(&p->run->model, p->features, b);
    p->inputs = p->list != NULL ? tn_inputs_read(p->list, p->features, b) : NULL;
    p->layout = p->inputs != NULL ? tn_layout_make(p->inputs, p->features, b) : NULL;
    if (p->layout == NULL) {
        return;
    }
    map_slots(p, b);
    tn_sequence_inputs_check(p->run, p->inputs, b);
    p->rules = resolve_rules(p, policies, b);
}

tn_status tn_model_plan_new(const tn_model_plan **out, const tn_run *run, const tn_binder *b,
                            tn_error *err)
{
    *out = NULL;
    tn_model_plan *p = TN_NEW(b->arena, tn_model_plan);
    p->run = run;
    TN_TRY(tn_schema_new(&p->schema, &run->data, &run->slots, b, err));
    draw(p, b);
    TN_TRY(tn_diag_check(b->diag, err));
    TN_ASSERT(p->rules != NULL);
    const uint32_t n_peers = run->cluster.size > 0 ? run->cluster.size : 1;
    uint32_t *from = TN_NEW_ARRAY(b->arena, uint32_t, n_peers + 1);
    tn_shares_cut(n_peers, from);
    p->owners = (tn_owners){.n_peers = n_peers, .n_partitions = TN_PARTITIONS, .from = from};
    *out = p;
    return TN_OK;
}
