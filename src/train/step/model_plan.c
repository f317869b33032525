/* model_plan.c - see model_plan.h. */
#include "train/step/model_plan.h"

#include "ps/shard/ownership.h"

#include "base/core/error.h"
#include "base/core/number.h"
#include "io/read/scan.h"

#include <math.h>
#include <string.h>

static const tn_field k_field = {
    .kind = TN_KIND_U32, .key = "concat", .min = 1, .max = 4096, .unit = "items"};

static const char *const pool_words[] = {"sum", "mean", "sqrtn", "max", "concat"};

/* sum, mean, sqrtn, max, concat(k) */
static bool read_pool(const tn_tree *tree, const tn_binder *b, tn_model_slot *out)
{
    const char *text = tree->kind == TN_TREE_SCALAR ? tree->text : "";
    for (uint32_t i = TN_POOL_SUM; i <= TN_POOL_MAX; i++) {
        if (strcmp(text, pool_words[i]) == 0) {
            out->pool = (tn_pool)i;
            return true;
        }
    }
    size_t n = strlen(text);
    uint64_t k = 0;
    if (n > 8 && strncmp(text, "concat(", 7) == 0 && text[n - 1] == ')' &&
        tn_read_u64(text + 7, n - 8, &k) == TN_NUM_OK && k >= (uint64_t)k_field.min &&
        k <= (uint64_t)k_field.max) {
        out->pool = TN_POOL_CONCAT;
        out->pool_k = (uint32_t)k;
        return true;
    }
    tn_diag_error(b->diag, &tree->at, "'pool' is '%s', not sum, mean, sqrtn, max or concat(k)",
                  text);
    return false;
}

static void read_slot(const tn_slot_spec *spec, const tn_run *run, const tn_binder *b,
                      tn_model_slot *out)
{
    const tn_slot_opts *o = spec->opts;
    *out = (tn_model_slot){
        .name = spec->name,
        .slot = spec->slot,
        .group = spec->group,
        .dim = o->dim != TN_UNSET_U32 ? o->dim : run->embedding.dim,
        .uses = o->uses,
    };
    (void)read_pool(o->pool != NULL ? o->pool : run->embedding.pool, b, out);
    if (!tn_tree_is_null(o->admission) || !tn_tree_is_null(o->expiry)) {
        const tn_tree *t = !tn_tree_is_null(o->admission) ? o->admission : o->expiry;
        tn_diag_error(b->diag, &t->at, "slot '%s': admission and expiry: not in this build yet",
                      spec->name);
    }
}

static const tn_features *make_features(const tn_schema *schema, const tn_run *run,
                                        const tn_binder *b)
{
    tn_features *f = TN_NEW(b->arena, tn_features);
    tn_model_slot *slot = TN_NEW_ARRAY(b->arena, tn_model_slot, schema->n_slots);
    for (uint32_t i = 0; i < schema->n_slots; i++) {
        read_slot(schema->slot[i], run, b, &slot[i]);
    }
    const char **numeric = TN_NEW_ARRAY(b->arena, const char *, schema->n_numeric);
    uint64_t *freeze = TN_NEW_ARRAY(b->arena, uint64_t, schema->n_numeric);
    for (uint32_t i = 0; i < schema->n_numeric; i++) {
        const tn_slot_spec *s = schema->numeric[i];
        numeric[i] = s->name;
        bool running = s->transform.kind == TN_TRANSFORM_ZSCORE && isnan(s->transform.a);
        freeze[i] = running ? s->transform.freeze_rows : 0;
    }
    uint32_t *class = TN_NEW_ARRAY(b->arena, uint32_t, schema->n_groups);
    *f = (tn_features){
        .n_slots = schema->n_slots,
        .slot = slot,
        .n_numeric = schema->n_numeric,
        .numeric = numeric,
        .zscore_freeze = freeze,
        .n_groups = schema->n_groups,
        .group = schema->group,
        .group_class = class,
    };
    for (uint32_t g = 0; g < schema->n_groups; g++) {
        class[g] = tn_group_override(run, f, g, NULL) != NULL ? g + 1 : 0;
    }
    return f;
}

/* Which slots feed an input, and of which group each is. */
static void map_slots(tn_blueprint *p, const tn_binder *b)
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
    p->slot_group = group;
    p->slot_used = used;
    p->missing_init = missing;
}

/* Fills p as far as there are no faults. */
static void draw(tn_blueprint *p, const tn_binder *b)
{
    const tn_model_common *common = p->run->model.shared;
    p->features = make_features(p->schema, p->run, b);
    if (!tn_init_read(common->init, b->diag, &p->dense_init) || b->diag->n_errors > 0) {
        return;
    }
    p->list = tn_model_list(&p->run->model, p->features, b);
    p->inputs = p->list != NULL ? tn_inputs_read(p->list, p->features, b) : NULL;
    p->layout = p->inputs != NULL ? tn_layout_make(p->inputs, p->features, b) : NULL;
    if (p->layout == NULL) {
        return;
    }
    p->rules = tn_rules_resolve(p->run, p->features, p->inputs, p->layout, b);
    map_slots(p, b);
}

tn_status tn_blueprint_new(const tn_blueprint **out, const tn_run *run, const tn_binder *b,
                           tn_error *err)
{
    *out = NULL;
    tn_blueprint *p = TN_NEW(b->arena, tn_blueprint);
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
