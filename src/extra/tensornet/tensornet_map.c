/* tensornet_map.c - reads an import map and finds its names in the model. */
#include "extra/tensornet/tensornet_map.h"

#include "base/core/arena.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "nn/graph/params.h"
#include "ps/optim/rule.h"
#include "ps/table/table.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <string.h>

typedef struct layer_opts {
    const char *layer, *segment, *share;
    uint32_t optimizer;
    bool cvm;
} layer_opts;

static const tn_field layer_fields[] = {
    TN_FIELD_STR(layer_opts, layer, NULL, "folder of sparse_table"),
    TN_FIELD_STR(layer_opts, segment, NULL, "input of the model that its vectors are"),
    TN_FIELD_CHOICE(layer_opts, optimizer, NULL, tn_tensornet_rules, "that wrote its rows"),
    TN_FIELD_BOOL(layer_opts, cvm, "false", "rows have a click"),
    TN_FIELD_STR(layer_opts, share, "~", "share group of its slots; ~: the only one"),
    TN_FIELD_END,
};

typedef struct variable_opts {
    const char *name, *to;
    tn_f64s shape;
} variable_opts;

static const tn_field variable_fields[] = {
    TN_FIELD_STR(variable_opts, name, NULL, "of the variable"),
    TN_FIELD_F64S(variable_opts, shape, "[]", 1, 0x1p30, "of the variable"),
    TN_FIELD_STR(variable_opts, to, NULL, "parameter of the model"),
    TN_FIELD_END,
};

typedef struct norm_opts {
    const char *table, *mean, *var;
} norm_opts;

static const tn_field norm_fields[] = {
    TN_FIELD_STR(norm_opts, table, "0", "file of bn_table"),
    TN_FIELD_STR(norm_opts, mean, NULL, "running value of the model"),
    TN_FIELD_STR(norm_opts, var, NULL, "running value of the model"),
    TN_FIELD_END,
};

typedef struct map_opts {
    tn_tables sparse, dense, bn;
} map_opts;

static const tn_field map_fields[] = {
    TN_FIELD_TABLES(map_opts, sparse, layer_opts, "~", layer_fields, "tables of rows"),
    TN_FIELD_TABLES(map_opts, dense, variable_opts, "~", variable_fields, "variables"),
    TN_FIELD_TABLES(map_opts, bn, norm_opts, "~", norm_fields, "batch norms"),
    TN_FIELD_END,
};

typedef struct resolving {
    const tn_worker *w;
    const tn_binder *b;
    tn_tensornet_map *out;
} resolving;

/* ---- rows ---- */

static bool find_group(const resolving *r, const layer_opts *o, const tn_tree *at, uint32_t *out)
{
    const tn_layout *layout = r->w->plan->layout;
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        if (o->share != NULL ? strcmp(layout->group[g].name, o->share) == 0
                             : layout->n_groups == 1) {
            *out = g;
            return true;
        }
    }
    if (o->share != NULL) {
        tn_diag_error(r->b->diag, &at->at, "the model has no share group '%s'", o->share);
    } else {
        tn_diag_error(r->b->diag, &at->at,
                      "slots of %u share groups, and a sign of TensorNet has no slot",
                      layout->n_groups);
        tn_diag_hint(r->b->diag, "give all slots of the layer one 'share', and name it here");
    }
    return false;
}

static bool find_segment(const resolving *r, const layer_opts *o, const tn_tree *at,
                         tn_tensornet_layer *out)
{
    const tn_record *record = tn_record_of(r->w->plan->layout, out->group);
    for (uint32_t s = 0; s < record->n_segments; s++) {
        if (strcmp(record->segment[s].name, o->segment) == 0) {
            out->segment = s;
            out->shape.dim = record->segment[s].dim;
            return true;
        }
    }
    tn_diag_error(r->b->diag, &at->at, "the model has no input '%s' of the slots of layer '%s'",
                  o->segment, o->layer);
    return false;
}

/* Whether the model's rule keeps what the files hold, and where. */
static void find_states(const tn_worker *w, tn_tensornet_layer *l)
{
    static const char *const rules[] = {"adagrad", "adam", "ftrl"};
    static const char *const names[][2] = {{"n", NULL}, {"m", "v"}, {"z", "n"}};
    const tn_rule *rule = &w->plan->rules->rule[(size_t)l->group * TN_SEGMENTS_MAX + l->segment];
    const uint32_t record = w->plan->layout->group[l->group].record;
    const tn_place_in_row p = tn_table_place(w->shard.table, record, l->segment);
    const uint32_t n = l->shape.rule == TN_TENSORNET_ADAGRAD ? 1 : 2;
    TN_ASSERT(l->shape.dim > 0 && p.n_states <= TN_STATES_MAX);
    l->with_states = strcmp(rule->optim->choice.name, rules[l->shape.rule]) == 0 && p.n_states == n;
    for (uint32_t i = 0; i < n && l->with_states; i++) {
        uint32_t k = 0;
        while (k < n && strcmp(p.spec[k].name, names[l->shape.rule][i]) != 0) {
            k++;
        }
        l->with_states = k < n && p.spec[k].per_row == (n == 1) && !p.spec[k].count;
        l->state[i] = k;
    }
}

static void read_layers(const resolving *r, const tn_tables *given)
{
    tn_tensornet_layer *layer = TN_NEW_ARRAY(r->b->arena, tn_tensornet_layer, given->n + 1);
    r->out->layer = layer;
    if (given->n > TN_TENSORNET_LAYERS_MAX) {
        tn_diag_error(r->b->diag, &given->tree[0]->at, "more than %d layers",
                      TN_TENSORNET_LAYERS_MAX);
        return;
    }
    for (uint32_t i = 0; i < given->n; i++) {
        const layer_opts *o = (const layer_opts *)given->item + i;
        tn_tensornet_layer *l = &layer[r->out->n_layers];
        *l = (tn_tensornet_layer){.name = o->layer,
                                  .shape = {(tn_tensornet_rule)o->optimizer, 0, o->cvm}};
        if (o->cvm && l->shape.rule != TN_TENSORNET_ADAGRAD) {
            tn_diag_error(r->b->diag, &given->tree[i]->at, "only rows of adagrad have a click");
            continue;
        }
        if (!find_group(r, o, given->tree[i], &l->group) ||
            !find_segment(r, o, given->tree[i], l)) {
            continue;
        }
        for (uint32_t k = 0; k < r->out->n_layers; k++) {
            if (strcmp(layer[k].name, l->name) == 0 ||
                (layer[k].group == l->group && layer[k].segment == l->segment)) {
                tn_diag_error(r->b->diag, &given->tree[i]->at,
                              "layer '%s' or input '%s' stands twice", o->layer, o->segment);
            }
        }
        find_states(r->w, l);
        r->out->n_layers++;
    }
}

/* ---- dense ---- */

static const tn_param_slice *find_param(const resolving *r, const char *name, const tn_tree *at,
                                        bool train)
{
    const tn_param_slice *s = tn_params_find(r->w->params, name);
    if (s == NULL || s->state == train) {
        tn_diag_error(r->b->diag, &at->at, "the model has no %s '%s'",
                      train ? "parameter" : "running value", name);
        return NULL;
    }
    return s;
}

/* [n] is a row of n. */
static bool has_shape(const tn_param_slice *s, const tn_f64s *shape)
{
    const double *d = shape->item;
    return (shape->n == 2 && d[0] == s->rows && d[1] == s->cols) ||
           (shape->n == 1 && s->rows == 1 && d[0] == s->cols);
}

static void read_variables(const resolving *r, const tn_tables *given)
{
    const tn_param_slice **dense = TN_NEW_ARRAY(r->b->arena, const tn_param_slice *, given->n + 1);
    const variable_opts *o = given->item;
    r->out->dense = dense;
    for (uint32_t i = 0; i < given->n; i++) {
        const tn_tree *at = given->tree[i];
        const tn_param_slice *s = find_param(r, o[i].to, at, true);
        if (s == NULL) {
            continue;
        }
        if (!has_shape(s, &o[i].shape)) {
            tn_diag_error(r->b->diag, &at->at, "'%s' is [%u, %u] in the model", o[i].to, s->rows,
                          s->cols);
        }
        if (i > 0 && strcmp(o[i - 1].name, o[i].name) >= 0) {
            tn_diag_error(r->b->diag, &at->at,
                          "'%s' stands behind '%s'; TensorNet sorts variables by name, bytewise",
                          o[i].name, o[i - 1].name);
        }
        for (uint32_t k = 0; k < r->out->n_dense; k++) {
            if (dense[k] == s) {
                tn_diag_error(r->b->diag, &at->at, "parameter '%s' stands twice", o[i].to);
            }
        }
        dense[r->out->n_dense++] = s;
        r->out->dense_size += (uint64_t)s->rows * s->cols;
    }
}

static void read_norms(const resolving *r, const tn_tables *given)
{
    tn_tensornet_norms *norm = TN_NEW_ARRAY(r->b->arena, tn_tensornet_norms, given->n + 1);
    const norm_opts *o = given->item;
    r->out->norm = norm;
    for (uint32_t i = 0; i < given->n; i++) {
        const tn_tree *at = given->tree[i];
        const tn_param_slice *mean = find_param(r, o[i].mean, at, false);
        const tn_param_slice *var = find_param(r, o[i].var, at, false);
        if (mean == NULL || var == NULL) {
            continue;
        }
        if (strchr(o[i].table, '/') != NULL) {
            tn_diag_error(r->b->diag, &at->at, "'%s' is no file of bn_table", o[i].table);
        }
        if (mean->cols != var->cols || mean->rows != 1 || var->rows != 1) {
            tn_diag_error(r->b->diag, &at->at, "'%s' and '%s' are no pair", o[i].mean, o[i].var);
        }
        norm[r->out->n_norms++] = (tn_tensornet_norms){o[i].table, mean, var};
    }
}

/* ---- a map ---- */

static void resolve(const resolving *r, const tn_tree *tree)
{
    map_opts *o = TN_NEW(r->b->arena, map_opts);
    tn_fields_bind(r->b, map_fields, tree, o);
    if (r->b->diag->n_errors > 0) {
        return;
    }
    for (uint32_t i = 0; i < o->sparse.n; i++) {
        const char *layer = ((const layer_opts *)o->sparse.item)[i].layer;
        if (layer[0] == '.' || strchr(layer, '/') != NULL) {
            tn_diag_error(r->b->diag, &o->sparse.tree[i]->at, "'%s' is no folder of sparse_table",
                          layer);
        }
    }
    read_layers(r, &o->sparse);
    read_variables(r, &o->dense);
    read_norms(r, &o->bn);
}

tn_status tn_tensornet_map_read(tn_tensornet_map *out, const tn_tree *map, const tn_worker *w,
                                tn_arena *arena, tn_error *err)
{
    tn_diag diag = {0};
    const tn_binder b = {.arena = arena, .diag = &diag};
    const resolving r = {.w = w, .b = &b, .out = out};
    *out = (tn_tensornet_map){0};
    if (map != NULL && map->kind == TN_TREE_SCALAR) {
        map = tn_yaml_read_file(arena, &diag, map->text);
    }
    if (map != NULL && diag.n_errors == 0) {
        resolve(&r, map);
    }
    tn_status status = TN_OK;
    if (diag.n_errors > 0) {
        status = tn_fail(err, TN_E_CONFIG, "the map of checkpoint.from.tensornet:\n%.1300s",
                         tn_text_str(&diag.text));
    } else if (map == NULL) {
        status = tn_fail(err, TN_E_CONFIG,
                         "checkpoint.from.tensornet has no 'map'\nhint: 'tnet-data ckpt map DIR' "
                         "prints one");
    }
    tn_diag_done(&diag);
    return status;
}
