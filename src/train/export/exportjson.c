/* exportjson.c - builds the graph that is served and writes model.json. */
#include "train/export/exportjson.h"

#include "base/codec/json.h"
#include "base/keys/record.h"
#include "base/math/fmath.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/fieldjson.h"
#include "config/tree.h"
#include "io/schema/schema.h"
#include "models/layerlist.h"
#include "nn/graph/params.h"
#include "nn/layer/layers.h"
#include "nn/op/ops.h"
#include "nn/passes/finish.h"
#include "nn/passes/graphjson.h"
#include "ps/optim/rule.h"
#include "serve/model_json.h"
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

/* Says what rows are to a task. */
static const char *source_of(const tn_data_opts *data, uint32_t k, tn_arena *arena)
{
    const tn_task *t = &data->tasks->task[k];
    const tn_task_source source = {
        .label = t->label != TN_NO_ASIDE ? data->aside[t->label].label : NULL,
        .where = t->where != TN_NO_TASK ? data->tasks->task[t->where].name : NULL,
        .weight = t->weight_column != TN_NO_ASIDE ? data->aside[t->weight_column].column : NULL};
    const tn_task_source none = {0};
    tn_text text = {0};
    tn_json_open(&text, '{');
    tn_fields_json_changed(&text, tn_task_source_fields, &source, &none, (const char *[]){NULL});
    tn_json_close(&text, '}');
    const char *out = tn_tree_text(arena, tn_text_str(&text), text.size);
    tn_text_done(&text);
    return out;
}

/* Names the nodes of all tasks, and appends those to `names`, which are kept. */
static void list_tasks(tn_export_graph *x, const tn_list_graph *made, const char **names,
                       uint32_t *n)
{
    const tn_tasks *tasks = x->plan->schema->data->tasks;
    tn_arena *arena = x->binder->arena;
    x->n_tasks = made->n_outputs > 1 ? made->n_outputs : 0;
    x->task = TN_NEW_ARRAY(arena, tn_model_task, (size_t)x->n_tasks + 1);
    for (uint32_t k = 0; k < x->n_tasks; k++) {
        const tn_task_output *o = &made->output[k];
        x->task[k] = (tn_model_task){.name = tasks->task[k].name,
                                     .target = tasks->task[k].target,
                                     .score = o->logit->name,
                                     .given = o->given != NULL ? o->given->name : NULL,
                                     .source.text = source_of(x->plan->schema->data, k, arena)};
        names[(*n)++] = o->logit->name;
        if (o->given != NULL) {
            names[(*n)++] = o->given->name;
        }
    }
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
    if (q < 1 && made.output_bias == NULL && made.n_outputs > 1) { /* shares read its logit */
        return tn_fail(err, TN_E_CONFIG,
                       "'data.negative_sampling' is corrected in the bias of the first task's "
                       "output, and layer '%s' has none",
                       made.logit->name);
    }
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
    const char *kept[1 + 2 * TN_TASKS_MAX] = {x->pctr->name};
    uint32_t n_kept = 1;
    list_tasks(x, &made, kept, &n_kept);
    tn_wanted wanted = {.logit = x->logit, .fetch = kept, .n_fetch = n_kept};
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

/* Options of a slot that have other members in its object, or that a scorer does not need. */
static const char *const said[] = {
    "name", "share",     "type", "transform", "absent",    "missing", "pool", "max_len", "dim",
    "init", "optimizer", "lr",   "l2",        "admission", "expiry",  "uses", "cvm",     NULL};

/* Options of `data` that only a training run has. */
static const char *const of_training[] = {
    "train",      "valid", "test",       "shuffle", "readers", "negative_sampling", "part_bytes",
    "index_base", "days",  "valid_rows", "done",    "wait",    "secrets",           NULL};

static void put_numbers(tn_text *out, const char *name, uint32_t n, const double *x)
{
    tn_json_open_key(out, "transform", '{');
    tn_json_open_key(out, name, '[');
    for (uint32_t i = 0; i < n; i++) {
        tn_json_f64(out, NULL, x[i]);
    }
    tn_json_close(out, ']');
    tn_json_close(out, '}');
}

/* With the numbers that it found; a running zscore is a node of the graph, and null here. */
static void put_transform(tn_text *out, const tn_transform *t)
{
    static const char *const words[] = {[TN_TRANSFORM_LOG] = "log",
                                        [TN_TRANSFORM_LN2_BUCKET] = "ln2_bucket",
                                        [TN_TRANSFORM_HOUR] = "hour",
                                        [TN_TRANSFORM_WEEKDAY] = "weekday",
                                        [TN_TRANSFORM_WEEKEND] = "weekend"};
    TN_ASSERT((size_t)t->kind < sizeof words / sizeof words[0]);
    if (t->kind == TN_TRANSFORM_BUCKETS) {
        put_numbers(out, "buckets", t->n_bounds, t->bound);
    } else if (t->kind == TN_TRANSFORM_MINMAX) {
        put_numbers(out, "minmax", 2, (const double[]){t->a, t->b});
    } else if (t->kind == TN_TRANSFORM_ZSCORE && isfinite(t->a)) {
        put_numbers(out, "zscore", 2, (const double[]){t->a, t->b});
    } else {
        tn_json_str(out, "transform", words[t->kind]);
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

static bool takes(const tn_model_input *in, uint32_t feature)
{
    bool there = false;
    for (uint32_t k = 0; !in->numeric && k < in->n; k++) {
        there = there || in->item[k] == feature;
    }
    return there;
}

/* Segments that the model has of the slot, as the inputs that take it are called. */
static void put_segments(const writing *w, uint32_t feature)
{
    const tn_model_inputs *inputs = w->x->plan->inputs;
    tn_json_open_key(w->out, "segments", '[');
    for (uint32_t i = 0; i < inputs->n; i++) {
        const tn_model_input *in = &inputs->input[i];
        bool listed = !takes(in, feature);
        for (uint32_t k = 0; k < i && !listed; k++) {
            listed = takes(&inputs->input[k], feature) &&
                     strcmp(inputs->input[k].segment, in->segment) == 0;
        }
        if (!listed) {
            tn_json_str(w->out, NULL, in->segment);
        }
    }
    tn_json_close(w->out, ']');
}

static void put_slots(const writing *w)
{
    const tn_schema *schema = w->x->plan->schema;
    tn_text *out = w->out;
    tn_json_open(out, '[');
    for (uint32_t i = 0; i < schema->n_slots; i++) {
        const tn_slot_spec *spec = schema->slot[i];
        const tn_model_slot *slot = &w->x->plan->features->slot[i];
        tn_text pool = {0};
        tn_json_open(out, '{');
        tn_json_str(out, "name", spec->name);
        tn_json_str(out, "group", schema->group[spec->group].name);
        tn_json_str(out, "type", tn_slot_type_words[spec->type]);
        put_transform(out, &spec->transform);
        tn_json_str(out, "absent", spec->absent_key ? "key" : "none");
        tn_json_str(out, "missing", w->x->plan->missing_init[spec->group] ? "init" : "zero");
        tn_pool_put(&pool, slot->pool, slot->pool_k);
        tn_json_str(out, "pool", tn_text_str(&pool));
        tn_text_done(&pool);
        tn_json_u64(out, "max_len", spec->max_len);
        put_segments(w, i);
        put_more(w, spec);
        tn_json_close(out, '}');
    }
    tn_json_close(out, ']');
}

static void put_numeric(const writing *w)
{
    const tn_schema *schema = w->x->plan->schema;
    tn_text *out = w->out;
    tn_json_open(out, '[');
    for (uint32_t i = 0; i < schema->n_numbers; i++) {
        const tn_slot_spec *spec = schema->numeric[i];
        tn_json_open(out, '{');
        tn_json_str(out, "name", spec->name);
        put_transform(out, &spec->transform);
        tn_json_f32(out, "absent", spec->absent);
        if (spec->type != TN_SIGN_FLOAT || spec->width > 0) {
            tn_field_json(out, slot_field("type"), spec->opts);
        }
        if (spec->width > 0) {
            tn_field_json(out, slot_field("dim"), spec->opts);
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
    for (uint32_t k = 0; k < x->n_tasks && !read; k++) {
        read = strcmp(x->task[k].score, name) == 0;
    }
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

/* Returns whether some input has a row for each position of a sequence. */
static bool has_positions(const tn_model_plan *plan)
{
    bool has = false;
    for (uint32_t i = 0; i < plan->inputs->n; i++) {
        has = has || plan->inputs->input[i].max_len > 0;
    }
    return has;
}

static tn_model_json_input input_of(const tn_export_graph *x, const tn_node *n)
{
    const tn_embed_list *e = tn_embed_list_of(n);
    tn_model_json_input in = {.name = n->name, .cols = n->shape.cols, .embeds = e != NULL};
    in.first = e == NULL ? ((const tn_numeric_attr *)n->attr)->first : 0;
    in.mean = n->op == &tn_op_embed_fixed && inputs_pool_otherwise(x->plan);
    if (e != NULL) {
        tn_model_columns *from = TN_NEW_ARRAY(x->binder->arena, tn_model_columns, e->n);
        for (uint32_t i = 0; i < e->n; i++) {
            from[i] = (tn_model_columns){e->slot[i].name, e->at[i], e->at[i + 1] - e->at[i]};
        }
        const char *segment = e->slot[0].segment->name;
        in.n = e->n;
        in.from = from;
        in.max_len = e->max_len;
        in.segment = in.mean || strcmp(n->name + strlen("in."), segment) == 0 ? NULL : segment;
    }
    return in;
}

static void list_inputs(const tn_export_graph *x, tn_model_json *out)
{
    uint32_t n = 0;
    while (tn_graph_node(x->g, n) != NULL) {
        n++;
    }
    tn_model_json_input *in = TN_NEW_ARRAY(x->binder->arena, tn_model_json_input, n);
    out->input = in;
    for (uint32_t i = 0; i < n; i++) {
        const tn_node *node = tn_graph_node(x->g, i);
        const bool is_input = tn_embed_list_of(node) != NULL || node->op == &tn_op_numeric;
        if (is_input && is_read(x, node->name)) {
            in[out->n_inputs++] = input_of(x, node);
        }
    }
}

/* Lists first values of the segments whose keys read as them without a row. */
static void list_first(const tn_export_graph *x, tn_model_json *out)
{
    const tn_layout *layout = x->plan->layout;
    tn_model_first *first =
        TN_NEW_ARRAY(x->binder->arena, tn_model_first, (size_t)layout->n_groups * TN_SEGMENTS_MAX);
    out->first = first;
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        const tn_record *record = tn_record_of(layout, g);
        out->seeded = out->seeded || x->plan->missing_init[g];
        for (uint32_t s = 0; x->plan->missing_init[g] && s < record->n_segments; s++) {
            first[out->n_first++] = (tn_model_first){
                .group = layout->group[g].name,
                .segment = record->segment[s].name,
                .init = x->plan->rules->rule[(size_t)g * TN_SEGMENTS_MAX + s].init};
        }
    }
    out->seed = x->plan->run->run.seed;
}

static void put_source(const writing *w)
{
    tn_data_opts usual;
    tn_json_open(w->out, '{');
    put_changed(w, tn_data_fields, &w->x->plan->run->data, &usual, "format", of_training);
    if (w->x->plan->schema->index_base != 0) {
        tn_json_u64(w->out, "index_base", w->x->plan->schema->index_base);
    }
    tn_json_close(w->out, '}');
}

void tn_export_inputs_json(tn_text *out, const tn_export_graph *x)
{
    tn_model_json model = {0};
    list_inputs(x, &model);
    tn_doc_put(out, &tn_model_inputs_row, &model);
}

static tn_model_output output_of(const tn_export_graph *x, const tn_calibration *calibration)
{
    const bool is_score = x->pctr == x->logit;
    return (tn_model_output){.target = x->plan->run->data.target,
                             .logit = x->logit->name,
                             .score = is_score ? x->logit->name : NULL,
                             .pctr = x->pctr->name,
                             .calibrated = calibration->kind != TN_CALIBRATION_NONE,
                             .calibration = *calibration};
}

/* Tasks with their maps; the first has that of the output. */
static bool list_maps(const tn_export_graph *x, const tn_calibration *map, tn_model_task *out)
{
    bool calibrated = false;
    for (uint32_t k = 0; k < x->n_tasks; k++) {
        out[k] = x->task[k];
        out[k].calibrated = k > 0 && map[k].kind != TN_CALIBRATION_NONE;
        out[k].calibration = map[k];
        calibrated = calibrated || out[k].calibrated;
    }
    return calibrated;
}

/* The version that knows all that the model has: none may pass it over. */
static uint32_t version_of(const tn_export_graph *x, const tn_calibration *map, bool of_tasks)
{
    return of_tasks                             ? 5
           : has_positions(x->plan)             ? 4
           : inputs_pool_otherwise(x->plan)     ? 3
           : map[0].kind != TN_CALIBRATION_NONE ? 2
                                                : 1;
}

tn_status tn_export_model_json(tn_text *out, const tn_export_graph *x, const char *model_id,
                               const tn_calibration *calibration, tn_error *err)
{
    static void (*const put[])(const writing *w) = {put_slots, put_numeric, put_source};
    enum { PARTS = sizeof put / sizeof put[0] };
    tn_text text[PARTS] = {{0}};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < PARTS && status == TN_OK; i++) {
        put[i](&(writing){.out = &text[i], .x = x});
        status = tn_text_check(&text[i], "model.json", err);
    }
    tn_model_task task[TN_TASKS_MAX];
    tn_model_json m = {.version = version_of(x, calibration, list_maps(x, calibration, task)),
                       .weights = "dense.safetensors",
                       .slots.text = tn_text_str(&text[0]),
                       .numeric.text = tn_text_str(&text[1]),
                       .nodes.text = x->nodes,
                       .source.text = tn_text_str(&text[2]),
                       .n_outputs = 1,
                       .output = {output_of(x, calibration)},
                       .n_tasks = x->n_tasks,
                       .task = task};
    m.dictionary = tn_strs_has(&x->plan->run->export.dict, "tnd") ? "dict.tnd" : NULL;
    (void)snprintf(m.model_id, sizeof m.model_id, "%s", model_id);
    list_inputs(x, &m);
    list_first(x, &m);
    status = status == TN_OK ? tn_document_write(&tn_model_document, &m, out, err) : status;
    for (uint32_t i = 0; i < PARTS; i++) {
        tn_text_done(&text[i]);
    }
    return status;
}
