/* exportjson.c - builds the graph that is served and writes model.json. */
#include "train/export/exportjson.h"

#include "base/codec/json.h"
#include "base/keys/record.h"
#include "base/math/fmath.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/schema/schema.h"
#include "models/layerlist.h"
#include "nn/graph/params.h"
#include "nn/layer/layers.h"
#include "nn/op/ops.h"
#include "nn/passes/graphjson.h"
#include "ps/optim/rule.h"
#include "serve/calibration_file.h"
#include "serve/fieldjson.h"
#include "train/config/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the graph: norms folded, dropout gone, sampling corrected ---- */

static const char *text_in(tn_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = TN_NEW_ARRAY(arena, char, size);
    memcpy(copy, text, size);
    return copy;
}

/* "pctr", or one with a number where the user's model has such a node. */
static const char *free_name(const tn_graph *g, const char *stem, tn_arena *arena)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s", stem);
    for (uint32_t i = 2; tn_graph_find(g, name) != NULL; i++) {
        (void)snprintf(name, sizeof name, "%s.%u", stem, i);
    }
    return text_in(arena, name);
}

static tn_status copy_weights(tn_params *to, tn_params *from, tn_error *err)
{
    for (uint32_t i = 0; i < tn_params_count(to); i++) {
        const tn_param_slice *s = tn_params_get(to, i);
        const tn_param_slice *old = tn_params_find(from, s->name);
        TN_ASSERT(old != NULL && old->rows == s->rows && old->cols == s->cols);
        const float *w = tn_params_weights(from) + old->at;
        size_t n = (size_t)s->rows * s->cols;
        for (size_t k = 0; k < n; k++) {
            if (!isfinite(w[k])) {
                return tn_fail(err, TN_E_CKPT, "a weight of '%s' is not finite", s->name);
            }
        }
        memcpy(tn_params_weights(to) + s->at, w, n * sizeof *w);
    }
    return TN_OK;
}

/* Negatives were kept with probability q, so the logit is too high by -ln q. */
static void correct_bias(tn_params *params, const char *bias, double q)
{
    TN_ASSERT(q > 0 && q < 1);
    const tn_param_slice *s = tn_params_find(params, bias);
    TN_ASSERT(s != NULL && s->rows == 1 && s->cols == 1);
    float *w = tn_params_weights(params) + s->at;
    *w = (float)((double)*w + tn_ln(q));
}

static tn_status build(tn_export_graph *x, tn_params *from, tn_error *err)
{
    const tn_model_plan *plan = x->plan;
    const tn_binder *b = x->binder;
    tn_net net = {.g = x->g, .params = x->params, .dense_init = plan->dense_init};
    tn_list_source source = {plan->list, plan->inputs, plan->features, plan->layout,
                             .whole = false};
    tn_list_graph made;
    if (!tn_list_build(&net, &source, b, &made)) {
        return tn_diag_check(b->diag, err);
    }
    double q = plan->run->data.negative_sampling;
    x->logit = made.logit;
    if (q < 1 && made.output_bias == NULL) {
        x->logit = tn_apply(x->g, &tn_op_scale, free_name(x->g, "logit.unsampled", b->arena),
                            TN_IN(x->logit), &(tn_scale_attr){1, tn_ln(q)});
    }
    x->pctr = plan->run->data.target == TN_TARGET_CLICK
                  ? tn_activate(x->g, free_name(x->g, "pctr", b->arena), x->logit, "sigmoid")
                  : x->logit;
    TN_TRY(tn_params_seal(x->params, err));
    TN_TRY(copy_weights(x->params, from, err));
    if (q < 1 && made.output_bias != NULL) {
        correct_bias(x->params, made.output_bias, q);
    }
    tn_wanted wanted = {.logit = x->logit, .fetch = &x->pctr->name, .n_fetch = 1};
    TN_TRY(tn_graph_finish(x->g, &wanted, err));
    tn_text nodes = {0};
    tn_graph_json_nodes(x->g, &nodes);
    tn_status status = tn_text_check(&nodes, "nodes of a graph", err);
    if (status == TN_OK) {
        x->nodes = text_in(b->arena, nodes.data);
        status = tn_json_parse(&x->node, nodes.data, nodes.size, b->arena, "nodes", err);
    }
    tn_text_done(&nodes);
    return status;
}

tn_status tn_export_graph_new(tn_export_graph *out, const tn_model_plan *plan, tn_params *from,
                              const tn_binder *b, tn_error *err)
{
    tn_export_graph x = {
        .plan = plan,
        .binder = b,
        .g = tn_graph_new(&(tn_graph_opts){.max_rows = 1, .frozen = true}),
        .params = tn_params_new(),
    };
    tn_status status = build(&x, from, err);
    if (status != TN_OK) {
        tn_export_graph_done(&x);
        return status;
    }
    *out = x;
    return TN_OK;
}

void tn_export_graph_done(tn_export_graph *x)
{
    tn_graph_free(x->g);
    tn_params_free(x->params);
}

/* ---- model.json ---- */

typedef struct writing {
    tn_text *out;
    const tn_export_graph *x;
} writing;

/* Options of a slot that stand elsewhere in its object, or that a scorer does not need. */
static const char *const said[] = {
    "name", "share",     "type", "transform", "absent",    "missing", "pool", "max_len", "dim",
    "init", "optimizer", "lr",   "l2",        "admission", "expiry",  "uses", "cvm",     NULL};

/* Options of `data` that only a training run has. */
static const char *const of_training[] = {
    "train",      "valid", "test",       "shuffle", "readers", "negative_sampling", "part_bytes",
    "index_base", "days",  "valid_rows", "done",    "wait",    "secrets",           NULL};

static void put_pair(tn_text *out, const char *name, double a, double b)
{
    tn_json_open_key(out, "transform", '{');
    tn_json_open_key(out, name, '[');
    tn_json_f64(out, NULL, a);
    tn_json_f64(out, NULL, b);
    tn_json_close(out, ']');
    tn_json_close(out, '}');
}

/* With the numbers that it found; a running zscore is a node of the graph. */
static void put_transform(tn_text *out, const tn_transform *t)
{
    switch (t->kind) {
    case TN_TRANSFORM_LOG:
        tn_json_str(out, "transform", "log");
        break;
    case TN_TRANSFORM_LN2_BUCKET:
        tn_json_str(out, "transform", "ln2_bucket");
        break;
    case TN_TRANSFORM_HOUR:
        tn_json_str(out, "transform", "hour");
        break;
    case TN_TRANSFORM_WEEKDAY:
        tn_json_str(out, "transform", "weekday");
        break;
    case TN_TRANSFORM_WEEKEND:
        tn_json_str(out, "transform", "weekend");
        break;
    case TN_TRANSFORM_MINMAX:
        put_pair(out, "minmax", t->a, t->b);
        break;
    case TN_TRANSFORM_BUCKETS:
        tn_json_open_key(out, "transform", '{');
        tn_json_open_key(out, "buckets", '[');
        for (uint32_t i = 0; i < t->n_bounds; i++) {
            tn_json_f64(out, NULL, t->bound[i]);
        }
        tn_json_close(out, ']');
        tn_json_close(out, '}');
        break;
    case TN_TRANSFORM_ZSCORE:
        if (isfinite(t->a)) {
            put_pair(out, "zscore", t->a, t->b);
            break;
        }
        tn_json_str(out, "transform", NULL);
        break;
    case TN_TRANSFORM_IDENTITY:
    default:
        tn_json_str(out, "transform", NULL);
    }
}

static const tn_field *slot_field(const char *key)
{
    const tn_field *f = tn_slot_fields;
    while (strcmp(f->key, key) != 0) {
        TN_ASSERT(f->key != NULL);
        f++;
    }
    return f;
}

/* The options of a table that are not default, but those in `without`; `key` has no default. */
static void put_changed(const writing *w, const tn_field *fields, const void *opts, void *usual,
                        const char *key, const char *const *without)
{
    tn_arena *arena = w->x->binder->arena;
    const tn_origin at = {.source = "model.json"};
    tn_tree *map = tn_tree_new(arena, TN_TREE_MAP, at);
    tn_tree_put(arena, map, key, tn_tree_scalar(arena, "-", at));
    tn_fields_bind(w->x->binder, fields, map, usual);
    tn_fields_json_changed(w->out, fields, opts, usual, without);
}

/* The members of a slot that are not those of every slot. */
static void put_more(const writing *w, const tn_slot_spec *spec)
{
    tn_slot_opts usual;
    put_changed(w, tn_slot_fields, spec->opts, &usual, "name", said);
}

static void put_pool(tn_text *out, const tn_model_slot *slot)
{
    static const char *const words[] = {"sum", "mean", "sqrtn", "max"};
    if (slot->pool != TN_POOL_CONCAT) {
        TN_ASSERT((size_t)slot->pool < sizeof words / sizeof words[0]);
        tn_json_str(out, "pool", words[slot->pool]);
        return;
    }
    tn_text text = {0};
    tn_text_addf(&text, "concat(%u)", slot->pool_k);
    tn_json_str(out, "pool", tn_text_str(&text));
    tn_text_done(&text);
}

/* Inputs of the model that take the slot. */
static void put_segments(const writing *w, uint32_t feature)
{
    const tn_model_inputs *inputs = w->x->plan->inputs;
    tn_json_open_key(w->out, "segments", '[');
    for (uint32_t i = 0; i < inputs->n; i++) {
        const tn_model_input *in = &inputs->input[i];
        for (uint32_t k = 0; !in->numeric && k < in->n; k++) {
            if (in->item[k] == feature) {
                tn_json_str(w->out, NULL, in->name);
            }
        }
    }
    tn_json_close(w->out, ']');
}

static void put_slots(const writing *w)
{
    const tn_schema *schema = w->x->plan->schema;
    tn_text *out = w->out;
    tn_json_open_key(out, "slots", '[');
    for (uint32_t i = 0; i < schema->n_slots; i++) {
        const tn_slot_spec *spec = schema->slot[i];
        tn_json_open(out, '{');
        tn_json_str(out, "name", spec->name);
        tn_json_str(out, "group", schema->group[spec->group].name);
        tn_json_str(out, "type", tn_slot_type_words[spec->type]);
        put_transform(out, &spec->transform);
        tn_json_str(out, "absent", spec->absent_key ? "key" : "none");
        tn_json_str(out, "missing", w->x->plan->missing_init[spec->group] ? "init" : "zero");
        put_pool(out, &w->x->plan->features->slot[i]);
        tn_json_u64(out, "max_len", spec->max_len);
        put_segments(w, i);
        put_more(w, spec);
        tn_json_close(out, '}');
    }
    tn_json_close(out, ']');
    tn_json_open_key(out, "numeric", '[');
    for (uint32_t i = 0; i < schema->n_numeric; i++) {
        const tn_slot_spec *spec = schema->numeric[i];
        tn_json_open(out, '{');
        tn_json_str(out, "name", spec->name);
        put_transform(out, &spec->transform);
        tn_json_f32(out, "absent", spec->absent);
        if (spec->type != TN_SIGN_FLOAT) {
            tn_field_json(out, slot_field("type"), spec->opts);
        }
        put_more(w, spec);
        tn_json_close(out, '}');
    }
    tn_json_close(out, ']');
}

/* Whether some node reads the input. */
static bool is_read(const tn_export_graph *x, const char *name)
{
    bool read = strcmp(x->logit->name, name) == 0;
    for (const tn_json *n = x->node->first; n != NULL && !read; n = n->next) {
        const tn_json *in = tn_json_get(n, "in");
        for (const tn_json *i = in->first; i != NULL && !read; i = i->next) {
            read = strcmp(i->string, name) == 0;
        }
    }
    return read;
}

/* Whether the input of counts takes the mean of slots that may be pooled otherwise. */
static bool inputs_pool_otherwise(const tn_model_plan *plan)
{
    bool otherwise = false;
    for (uint32_t i = 0; i < plan->inputs->n; i++) {
        otherwise = otherwise || (plan->inputs->input[i].cvm && !plan->inputs->input[i].raw_show);
    }
    return otherwise;
}

static void put_input(const writing *w, const tn_node *n)
{
    tn_json_open(w->out, '{');
    tn_json_str(w->out, "name", n->name);
    tn_json_u64(w->out, "cols", n->shape.cols);
    const tn_embed_list *e = tn_embed_list_of(n);
    if (n->op == &tn_op_embed_fixed && inputs_pool_otherwise(w->x->plan)) {
        tn_json_str(w->out, "pool", "mean");
    }
    if (e != NULL) {
        tn_json_open_key(w->out, "from", '[');
        for (uint32_t i = 0; i < e->n; i++) {
            tn_json_open(w->out, '[');
            tn_json_str(w->out, NULL, e->slot[i].name);
            tn_json_u64(w->out, NULL, e->at[i]);
            tn_json_u64(w->out, NULL, e->at[i + 1] - e->at[i]);
            tn_json_close(w->out, ']');
        }
        tn_json_close(w->out, ']');
    }
    tn_json_close(w->out, '}');
}

/* `key` NULL: the list alone. */
static void put_inputs(const writing *w, const char *key)
{
    if (key != NULL) {
        tn_json_open_key(w->out, key, '[');
    } else {
        tn_json_open(w->out, '[');
    }
    const tn_node *n = NULL;
    for (uint32_t i = 0; (n = tn_graph_node(w->x->g, i)) != NULL; i++) {
        bool input = tn_embed_list_of(n) != NULL || n->op == &tn_op_numeric;
        if (input && is_read(w->x, n->name)) {
            put_input(w, n);
        }
    }
    tn_json_close(w->out, ']');
}

/* First values of the segments whose keys read as them without a row. */
static void put_first_values(const writing *w)
{
    static const char *const kinds[] = {"constant",   "uniform",        "normal",
                                        "truncated",  "glorot_uniform", "xavier_normal",
                                        "he_uniform", "he_normal"};
    const tn_layout *layout = w->x->plan->layout;
    bool any = false;
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        any |= w->x->plan->missing_init[g];
    }
    if (!any) {
        return;
    }
    tn_json_hex64(w->out, "seed", w->x->plan->run->run.seed);
    tn_json_open_key(w->out, "init", '[');
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        const tn_record *record = tn_record_of(layout, g);
        for (uint32_t s = 0; w->x->plan->missing_init[g] && s < record->n_segments; s++) {
            const tn_init *init = &w->x->plan->rules->rule[(size_t)g * TN_SEGMENTS_MAX + s].init;
            tn_json_open(w->out, '{');
            tn_json_str(w->out, "group", layout->group[g].name);
            tn_json_str(w->out, "segment", record->segment[s].name);
            TN_ASSERT((size_t)init->kind < sizeof kinds / sizeof kinds[0]);
            tn_json_str(w->out, "kind", kinds[init->kind]);
            tn_json_f64(w->out, "a", init->a);
            tn_json_f64(w->out, "b", init->b);
            tn_json_close(w->out, '}');
        }
    }
    tn_json_close(w->out, ']');
}

static void put_source(const writing *w)
{
    tn_data_opts usual;
    tn_json_open_key(w->out, "source", '{');
    put_changed(w, tn_data_fields, &w->x->plan->run->data, &usual, "format", of_training);
    if (w->x->plan->schema->index_base != 0) {
        tn_json_u64(w->out, "index_base", w->x->plan->schema->index_base);
    }
    tn_json_close(w->out, '}');
}

void tn_export_inputs_json(tn_text *out, const tn_export_graph *x)
{
    const writing w = {.out = out, .x = x};
    put_inputs(&w, NULL);
}

void tn_export_model_json(tn_text *out, const tn_export_graph *x, const char *model_id,
                          const tn_calibration *calibration)
{
    const writing w = {.out = out, .x = x};
    const bool calibrated = calibration->kind != TN_CALIBRATION_NONE;
    const bool pools = inputs_pool_otherwise(x->plan); /* which a reader must not pass over */
    const bool has_dictionary = tn_strs_has(&x->plan->run->export.dict, "tnd");
    tn_json_open(out, '{');
    tn_json_str(out, "format", "tnet-model");
    tn_json_raw(out, "version", pools ? "[3,0]" : calibrated ? "[2,0]" : "[1,0]");
    tn_json_str(out, "model_id", model_id);
    tn_json_str(out, "weights", "dense.safetensors");
    tn_json_str(out, "dictionary", has_dictionary ? "dict.tnd" : NULL);
    put_slots(&w);
    put_inputs(&w, "inputs");
    tn_json_raw(out, "nodes", x->nodes);
    tn_json_open_key(out, "outputs", '[');
    tn_json_open(out, '{');
    tn_json_str(out, "task", tn_target_words[x->plan->run->data.target]);
    tn_json_str(out, x->pctr != x->logit ? "logit" : "score", x->logit->name);
    if (x->pctr != x->logit) {
        tn_json_str(out, "pctr", x->pctr->name);
    }
    if (calibrated) {
        tn_calibration_json(out, calibration);
    }
    tn_json_close(out, '}');
    tn_json_close(out, ']');
    put_first_values(&w);
    put_source(&w);
    tn_json_close_with_crc(out);
}
