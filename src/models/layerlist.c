/* layerlist.c - from a list of inputs and layers to the nodes of a graph. */
#include "models/layerlist.h"

#include "base/core/arena.h"
#include "base/core/error.h"
#include "base/keys/record.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "nn/layer/layers.h"
#include "nn/loss/further_loss.h"
#include "nn/op/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { INPUT_NAME_MAX = 512 }; /* an input's and a column's name: up to 168 and 255 bytes */

/* A value with a name: an input or a layer. */
typedef struct value {
    const char *name;
    tn_node *node;
    const tn_layer *layer; /* NULL: an input */
    const void *opts;
    const char *weights;     /* prefix of its parameters' names; NULL: its name */
    struct value *const *in; /* inputs of a layer */
    uint32_t n_in;
    bool needed; /* the output follows from it */
    const tn_origin *at;
    struct value *next;
} value;

typedef struct builder {
    const tn_net *net;
    const tn_list_source *source;
    const tn_binder *binder;
    value *values; /* newest first */
} builder;

/* ---- inputs ---- */

/* Writes "<a>.<b><suffix>". */
static const char *dotted(char out[INPUT_NAME_MAX], const char *a, const char *b,
                          const char *suffix)
{
    int used = snprintf(out, INPUT_NAME_MAX, "%s.%s%s", a, b, suffix);
    TN_ASSERT(used > 0 && used < INPUT_NAME_MAX);
    return out;
}

/* A running zscore of columns that begin with those of `number`; `x` where it has none. */
static tn_node *scale_numbers(const builder *b, const char *input, const tn_model_number *number,
                              tn_node *x)
{
    tn_graph *g = b->net->g;
    char name[INPUT_NAME_MAX];
    if (number->zscore_freeze == 0) {
        return x;
    }
    tn_node *sums = tn_running(g, b->net->params, dotted(name, input, number->name, ".sums"),
                               (tn_shape){6, x->shape.cols}, 0);
    return tn_apply(g, &tn_op_zscore, dotted(name, input, number->name, ".zscore"), TN_IN(x, sums),
                    &(tn_zscore_attr){(double)number->zscore_freeze});
}

/* The numbers that a list names, side by side: each is an input of the graph by itself. */
static tn_node *some_numbers(const builder *b, const char *input, const tn_model_input *of)
{
    const tn_features *f = b->source->features;
    tn_graph *g = b->net->g;
    tn_node **part = TN_NEW_ARRAY(b->binder->arena, tn_node *, of->n);
    char name[INPUT_NAME_MAX];
    for (uint32_t k = 0; k < of->n; k++) {
        const tn_model_number *number = &f->number[of->item[k]];
        const tn_numeric_attr attr = {number->cols, number->at, f->n_numeric};
        part[k] =
            tn_apply(g, &tn_op_numeric, of->n == 1 ? input : dotted(name, input, number->name, ""),
                     NULL, 0, &attr);
        part[k] = scale_numbers(b, input, number, part[k]);
    }
    return of->n == 1 ? part[0] : tn_apply(g, &tn_op_concat, input, part, of->n, NULL);
}

/* All numbers in order; runs of them with a running zscore pass through its operator. */
static tn_node *numeric_node(const builder *b, const char *input, const tn_model_input *of)
{
    const tn_features *f = b->source->features;
    tn_graph *g = b->net->g;
    for (uint32_t k = 0; k < f->n_numbers; k++) {
        if (k == of->n || of->item[k] != k) {
            return some_numbers(b, input, of);
        }
    }
    tn_node *all =
        tn_apply(g, &tn_op_numeric, input, NULL, 0, &(tn_numeric_attr){.cols = f->n_numeric});
    tn_node **part = TN_NEW_ARRAY(b->binder->arena, tn_node *, f->n_numbers);
    uint32_t n_parts = 0;
    bool scored = false;
    for (uint32_t from = 0, to; from < f->n_numbers; from = to) {
        const tn_model_number *first = &f->number[from];
        uint32_t cols = 0;
        for (to = from; to < f->n_numbers && f->number[to].zscore_freeze == first->zscore_freeze;
             to++) {
            cols += f->number[to].cols;
        }
        tn_node *x = all;
        if (cols < f->n_numeric) {
            char name[INPUT_NAME_MAX];
            x = tn_apply(g, &tn_op_slice, dotted(name, input, first->name, ""), TN_IN(all),
                         &(tn_slice_attr){first->at, cols});
        }
        part[n_parts++] = scale_numbers(b, input, first, x);
        scored = scored || first->zscore_freeze != 0;
    }
    if (!scored) {
        return all; /* unused slices are dropped by the graph's passes */
    }
    char name[INPUT_NAME_MAX];
    return n_parts == 1 ? part[0]
                        : tn_apply(g, &tn_op_concat, dotted(name, input, "zscored", ""), part,
                                   n_parts, NULL);
}

static const tn_segment *segment_of(const tn_layout *layout, uint32_t group, const char *name)
{
    const tn_record *record = tn_record_of(layout, group);
    uint32_t i = 0;
    while (i < record->n_segments && strcmp(record->segment[i].name, name) != 0) {
        i++;
    }
    TN_ASSERT(i < record->n_segments); /* the layout was made from the same inputs */
    return &record->segment[i];
}

static tn_node *embed_node(const builder *b, const char *name, const tn_model_input *input)
{
    tn_embed_slot *slots = TN_NEW_ARRAY(b->binder->arena, tn_embed_slot, input->n);
    for (uint32_t i = 0; i < input->n; i++) {
        const tn_model_slot *s = &b->source->features->slot[input->item[i]];
        const tn_layout *layout = b->source->layout;
        slots[i] = (tn_embed_slot){
            .name = s->name,
            .slot = s->slot,
            .segment = input->cvm ? &tn_record_of(layout, s->group)->counts
                                  : segment_of(layout, s->group, input->segment),
            .pool = tn_input_pool(input, s),
            .k = s->pool_k,
            .single = s->single,
        };
    }
    return input->max_len > 0
               ? tn_embed_sequence(b->net->g, name, slots, input->n, input->max_len)
               : (input->cvm ? tn_embed_fixed : tn_embed)(b->net->g, name, slots, input->n);
}

/* ---- layers ---- */

static value *find_value(const builder *b, const char *name)
{
    for (value *v = b->values; v != NULL; v = v->next) {
        if (strcmp(v->name, name) == 0) {
            return v;
        }
    }
    return NULL;
}

static void add_value(builder *b, const value *v)
{
    value *copy = TN_NEW(b->binder->arena, value);
    *copy = *v;
    copy->next = b->values;
    b->values = copy;
}

/* Returns false after a report. Names of nodes and parameters are those of a layer or input with a
 * suffix, so two may collide. */
static bool is_sound(const builder *b, const char *name, const tn_origin *at)
{
    const char *fault = tn_graph_fault(b->net->g);
    if (fault != NULL) {
        tn_diag_error(b->binder->diag, at, "'%s': %s", name, fault);
    }
    return fault == NULL;
}

static bool add_inputs(builder *b)
{
    for (uint32_t i = 0; i < b->source->inputs->n; i++) {
        const tn_model_input *input = &b->source->inputs->input[i];
        char name[INPUT_NAME_MAX];
        (void)dotted(name, "in", input->name, "");
        tn_node *node = input->numeric ? numeric_node(b, name, input) : embed_node(b, name, input);
        if (!is_sound(b, input->name, input->at)) {
            return false;
        }
        add_value(b, &(value){.name = input->name, .node = node, .at = input->at});
    }
    return true;
}

static value *find_input(const builder *b, const tn_tree *name)
{
    tn_diag *diag = b->binder->diag;
    if (name->kind != TN_TREE_SCALAR) {
        tn_diag_error(diag, &name->at, "expected the name of an input or layer");
        return NULL;
    }
    value *v = find_value(b, name->text);
    if (v != NULL) {
        return v;
    }
    const char *names[256];
    uint32_t n = 0;
    for (const value *k = b->values; k != NULL && n < 256; k = k->next) {
        names[n++] = k->name;
    }
    const char *near = tn_nearest(name->text, names, n);
    tn_diag_error(diag, &name->at, "no input or layer '%s' above this one%s%s%s", name->text,
                  near != NULL ? " (did you mean '" : "", near != NULL ? near : "",
                  near != NULL ? "'?)" : "");
    return NULL;
}

/* Reads the inputs of a layer as values. 0: reported. */
static uint32_t read_inputs(const builder *b, const tn_tree *names, value ***out)
{
    uint32_t n = names->kind == TN_TREE_LIST ? tn_tree_count(names) : 1;
    if (n == 0 || tn_tree_is_null(names)) {
        tn_diag_error(b->binder->diag, &names->at, "a layer needs at least one input");
        return 0;
    }
    value **in = TN_NEW_ARRAY(b->binder->arena, value *, n);
    const tn_tree *item = names->kind == TN_TREE_LIST ? names->first : names;
    for (uint32_t i = 0; i < n; i++) {
        in[i] = find_input(b, item);
        if (in[i] == NULL) {
            return 0;
        }
        item = item->next;
    }
    *out = in;
    return n;
}

const tn_tree *tn_list_word(const tn_tree *item, tn_diag *diag)
{
    for (const tn_tree *t = item->first; t != NULL; t = t->next) {
        if (strcmp(t->key, "name") != 0 && tn_layer_find(t->key) != NULL &&
            (item->first == t || strcmp(item->first->key, "name") != 0 || item->first->next == t)) {
            return t;
        }
    }
    const char *names[64];
    uint32_t n = 0;
    for (const tn_layer *const *l = tn_all_layers; *l != NULL && n < 64; l++) {
        names[n++] = (*l)->name;
    }
    const tn_tree *second = item->first != NULL ? item->first->next : NULL;
    const char *near = second != NULL ? tn_nearest(second->key, names, n) : NULL;
    tn_diag_error(diag, second != NULL ? &second->key_at : &item->at,
                  "expected a layer behind the name%s%s%s", near != NULL ? " (did you mean '" : "",
                  near != NULL ? near : "", near != NULL ? "'?)" : "");
    tn_diag_hint(diag, "tnet-train --list-layers shows them all");
    return NULL;
}

/* Returns whether `key` of a layer's map is none of its options: the name, the layer's word with
 * its inputs, the name of weights. */
static bool is_common(const tn_layer *layer, const char *key)
{
    return strcmp(key, "name") == 0 || (!layer->source && strcmp(key, layer->name) == 0) ||
           (layer->weighs && strcmp(key, "weights") == 0);
}

static const void *read_opts(const builder *b, const tn_layer *layer, const tn_tree *item)
{
    tn_tree *rest = tn_tree_new(b->binder->arena, TN_TREE_MAP, item->at);
    for (const tn_tree *t = item->first; t != NULL; t = t->next) {
        if (!is_common(layer, t->key)) {
            tn_tree *copy = tn_tree_copy(b->binder->arena, t);
            tn_tree_append(rest, copy);
        }
    }
    static const tn_field none[] = {TN_FIELD_END};
    size_t size = layer->opts_size != 0 ? layer->opts_size : 1;
    void *opts = tn_arena_alloc(b->binder->arena, 1, size, _Alignof(max_align_t));
    tn_fields_bind(b->binder, layer->fields != NULL ? layer->fields : none, rest, opts);
    return opts;
}

/* Joins the nodes side by side. NULL, reported: too wide. */
static tn_node *joined(const builder *b, const tn_tree *word, const char *layer, tn_node *const *in,
                       uint32_t n)
{
    uint64_t cols = 0;
    for (uint32_t i = 0; i < n; i++) {
        cols += in[i]->shape.cols;
    }
    if (cols > TN_COLS_MAX) {
        tn_diag_error(b->binder->diag, &word->at, "inputs of %" PRIu64 " columns, more than %d",
                      cols, TN_COLS_MAX);
        return NULL;
    }
    char name[TN_LAYER_NAME_MAX];
    return n == 1
               ? in[0]
               : tn_apply(b->net->g, &tn_op_concat, tn_layer_name(name, layer, ".in"), in, n, NULL);
}

static bool is_name(const tn_tree *t)
{
    return t != NULL && t->kind == TN_TREE_SCALAR && t->text[0] != '\0' &&
           strlen(t->text) <= TN_LAYER_NAME_MAX - 32;
}

static bool good_name(const builder *b, const tn_tree *item, const tn_tree *name)
{
    if (!is_name(name)) {
        tn_diag_error(b->binder->diag, name != NULL ? &name->at : &item->at,
                      "a layer needs a name of 1 to %d bytes", TN_LAYER_NAME_MAX - 32);
        return false;
    }
    if (find_value(b, name->text) != NULL) {
        tn_diag_error(b->binder->diag, &name->at, "two inputs or layers are called '%s'",
                      name->text);
        return false;
    }
    return true;
}

/* Takes the inputs of layer v as it wants them: one by one, or side by side. Returns false after a
 * report. */
static bool take_inputs(const builder *b, const value *v, const tn_tree *word, tn_layer_args *args)
{
    tn_node **nodes = TN_NEW_ARRAY(b->binder->arena, tn_node *, v->n_in + 1);
    for (uint32_t i = 0; i < v->n_in; i++) {
        nodes[i] = v->in[i]->node;
    }
    if (!v->layer->many && !v->layer->source) {
        nodes[0] = joined(b, word, v->name, nodes, v->n_in);
        if (nodes[0] == NULL) {
            return false;
        }
    }
    args->in = nodes;
    args->n_in = v->layer->many ? v->n_in : v->layer->source ? 0 : 1;
    return true;
}

/* Returns whether the inputs of a layer have the same rows, which most layers need. False:
 * reported. */
static bool has_rows_in_common(const builder *b, const value *v, const tn_tree *word)
{
    for (uint32_t i = 1; i < v->n_in && !v->layer->mixes; i++) {
        const tn_node *first = v->in[0]->node;
        const tn_node *other = v->in[i]->node;
        if (!tn_same_rows(first, other)) {
            tn_diag_error(b->binder->diag, &word->at,
                          "layer '%s' takes '%s' and '%s', of which not both have a value for each "
                          "position of one sequence",
                          v->name, v->in[0]->name, v->in[i]->name);
            tn_diag_hint(b->binder->diag, "a sequence becomes one value for each row by the layers "
                                          "'attend' and 'pool'");
            return false;
        }
    }
    return true;
}

/* Makes the nodes of layer v. Returns false after a report. */
static bool build(const builder *b, value *v, const tn_tree *item, const tn_tree *word)
{
    tn_diag *diag = b->binder->diag;
    const uint32_t faults = diag->n_errors;
    tn_layer_args args = {.name = v->name, .opts = v->opts, .at = &item->at, .diag = diag};
    tn_net net = *b->net;
    net.weights = v->weights;
    net.args = &args;
    tn_graph_chapter(b->net->g);
    if (!has_rows_in_common(b, v, word) || !take_inputs(b, v, word, &args)) {
        return false;
    }
    v->node = tn_layer_build(v->layer, &net, &args);
    return v->node != NULL && diag->n_errors == faults && is_sound(b, args.name, args.at);
}

static bool add_layer(builder *b, const tn_tree *item)
{
    if (item->kind != TN_TREE_MAP) {
        tn_diag_error(b->binder->diag, &item->at, "expected {name: .., <layer>: <inputs>, ..}");
        return false;
    }
    const tn_tree *name = tn_tree_get(item, "name");
    if (!good_name(b, item, name)) {
        return false;
    }
    const tn_tree *word = tn_list_word(item, b->binder->diag);
    if (word == NULL) {
        return false;
    }
    value v = {.name = name->text, .layer = tn_layer_find(word->key), .at = &item->at};
    value **in = NULL;
    uint32_t faults = b->binder->diag->n_errors;
    v.n_in = v.layer->source ? 0 : read_inputs(b, word, &in);
    v.in = in;
    v.opts = b->binder->diag->n_errors == faults ? read_opts(b, v.layer, item) : NULL;
    if (b->binder->diag->n_errors > faults) {
        return false;
    }
    const tn_tree *weights = v.layer->weighs ? tn_tree_get(item, "weights") : NULL;
    if (weights != NULL && !is_name(weights)) {
        tn_diag_error(b->binder->diag, &weights->at, "'weights' is a name of 1 to %d bytes",
                      TN_LAYER_NAME_MAX - 32);
        return false;
    }
    v.weights = weights != NULL ? weights->text : NULL;
    if (!build(b, &v, item, word)) {
        return false;
    }
    add_value(b, &v);
    return true;
}

/* Returns the bias that shifts the output: the layer's own, that of one of the terms it adds, of
 * all scores whose mean it is, or of the one input that it hands through, as the output of a block
 * is. */
static const char *output_bias(const builder *b, const value *v)
{
    if (v->layer == NULL) {
        return NULL;
    }
    char name[TN_LAYER_NAME_MAX];
    const char *called = v->weights != NULL ? v->weights : v->name;
    if (v->layer->output_bias != NULL && v->layer->output_bias(called, v->opts, name)) {
        char *copy = TN_NEW_ARRAY(b->binder->arena, char, strlen(name) + 1);
        memcpy(copy, name, strlen(name) + 1);
        return copy;
    }
    const bool same = v->n_in == 1 && strcmp(v->layer->name, "concat") == 0;
    const bool mean = strcmp(v->layer->name, "mean") == 0; /* the scores must share their bias */
    if (!same && !mean && strcmp(v->layer->name, "add") != 0) {
        return NULL;
    }
    const char *first = NULL;
    for (uint32_t i = 0; i < v->n_in; i++) {
        const char *found = output_bias(b, v->in[i]);
        if (mean && (found == NULL || (i > 0 && strcmp(found, first) != 0))) {
            return NULL;
        }
        first = first == NULL ? found : first;
    }
    return first;
}

static void need(value *v)
{
    for (uint32_t i = 0; i < v->n_in && !v->needed; i++) {
        need(v->in[i]);
    }
    v->needed = true;
}

/* Refuses layers that no output follows from: they would never be trained. */
static bool refuse_unneeded(const builder *b, value *const *output, uint32_t n)
{
    static const tn_origin model = {.source = "model"};
    bool good = true;
    for (uint32_t i = 0; i < n; i++) {
        need(output[i]);
    }
    for (const value *v = b->values; v != NULL; v = v->next) {
        if (!v->needed) {
            tn_diag_error(b->binder->diag, v->at != NULL ? v->at : &model,
                          "%s '%s' does not lead to %s '%s'", v->layer != NULL ? "layer" : "input",
                          v->name, n == 1 ? "the output" : "any output, as", output[0]->name);
            tn_diag_hint(b->binder->diag, "name it in a layer that does, or leave it out");
            good = false;
        }
    }
    return good;
}

/* The layer that a member of `output` names; NULL: reported. */
static value *find_output(const builder *b, const tn_tree *name)
{
    value *v = find_input(b, name);
    if (v != NULL && v->node->shape.cols != 1) {
        tn_diag_error(b->binder->diag, &name->at, "the output '%s' has %u columns, not 1", v->name,
                      v->node->shape.cols);
        return NULL;
    }
    if (v != NULL && v->node->positions.max_len > 0) {
        tn_diag_error(b->binder->diag, &name->at,
                      "the output '%s' has a value for each position of a sequence, not one for "
                      "each row",
                      v->name);
        return NULL;
    }
    return v;
}

/* The member of `output` of task k; NULL, reported: it has none. One label has the output itself,
 * or the only one of a map. */
static const tn_tree *output_of(const builder *b, const tn_tree *output, uint32_t k)
{
    const tn_tasks *tasks = b->source->features->tasks;
    const uint32_t n = tn_tasks_count(tasks);
    const bool is_map = output->kind == TN_TREE_MAP;
    tn_diag *diag = b->binder->diag;
    if (is_map && tn_tree_count(output) != n) {
        tn_diag_error(diag, &output->at, "'output' has %u members for %u task%s",
                      tn_tree_count(output), n, n == 1 ? "" : "s");
        return NULL;
    }
    if (n == 1) {
        return is_map ? output->first : output;
    }
    const tn_tree *found = is_map ? tn_tree_get(output, tasks->task[k].name) : NULL;
    if (!is_map && k == 0) {
        tn_diag_error(diag, &output->at, "the model has one output, and 'tasks' wants %u", n);
        tn_diag_hint(
            diag,
            "models of several tasks are shared, esmm, mmoe, ple, din and bst; a graph has "
            "'output: {%s: LAYER, %s: LAYER ..}'",
            tasks->task[0].name, tasks->task[1].name);
    } else if (is_map && found == NULL) {
        tn_diag_error(diag, &output->at, "no output for the task '%s'", tasks->task[k].name);
    }
    return found;
}

/* Gives a share the product of its probability and that of the task that it is a share of. */
static tn_node *multiply(const builder *b, tn_list_graph *out, uint32_t k)
{
    const tn_tasks *tasks = b->source->features->tasks;
    tn_task_output *o = &out->output[k];
    const uint32_t of = tasks->task[k].of;
    if (of != TN_NO_TASK && o->given == NULL) {
        char name[INPUT_NAME_MAX];
        o->given = o->logit;
        o->logit = tn_apply(b->net->g, &tn_op_both, dotted(name, "task", tasks->task[k].name, ""),
                            TN_IN(multiply(b, out, of), o->given), NULL);
    }
    return o->logit;
}

/* Reads `losses`: layers that are scores of the label as well, and the weights of their losses. */
static bool add_losses(builder *b, const tn_tree *losses, tn_list_graph *out)
{
    static const tn_field weight = {
        .kind = TN_KIND_F64, .key = "losses", .min = 0, .max = 1e6, .unit = ""};
    tn_diag *diag = b->binder->diag;
    if (tn_tree_is_null(losses)) {
        return true;
    }
    if (losses->kind != TN_TREE_MAP || tn_tree_count(losses) > TN_FURTHER_LOSSES_MAX ||
        out->n_outputs > 1) {
        tn_diag_error(diag, &losses->at,
                      out->n_outputs > 1
                          ? "'losses' are of one label, and 'tasks' has several"
                          : "'losses' is a map of at most %d layers: {layer: weight or excess}",
                      TN_FURTHER_LOSSES_MAX);
        return false;
    }
    for (const tn_tree *t = losses->first; t != NULL; t = t->next) {
        const tn_tree name = {.kind = TN_TREE_SCALAR, .text = t->key, .at = t->key_at};
        value *v = find_output(b, &name);
        double c = TN_LOSS_EXCESS;
        const bool excess = t->kind == TN_TREE_SCALAR && strcmp(t->text, "excess") == 0;
        if (v == NULL || (!excess && !tn_read_scalar(b->binder, &weight, t, &c))) {
            return false;
        }
        need(v);
        out->further[out->n_further++] = (tn_further_score){v->name, v->node, c};
    }
    return true;
}

static bool add_outputs(builder *b, const tn_tree *output, tn_list_graph *out)
{
    const tn_tasks *tasks = b->source->features->tasks;
    const uint32_t n = tn_tasks_count(tasks);
    value *at[TN_TASKS_MAX] = {NULL};
    tn_list_graph made = {.n_outputs = n};
    if (output == NULL) {
        tn_diag_error(b->binder->diag, &b->source->list->at,
                      "missing 'output': the layer that is the logit");
        return false;
    }
    for (uint32_t k = 0; k < n; k++) {
        const tn_tree *name = output_of(b, output, k);
        at[k] = name != NULL ? find_output(b, name) : NULL;
        if (at[k] == NULL) {
            return false;
        }
        made.output[k] = (tn_task_output){.logit = at[k]->node, .bias = output_bias(b, at[k])};
    }
    if (!add_losses(b, tn_tree_get(b->source->list, "losses"), &made)) {
        return false;
    }
    if (b->source->whole && !refuse_unneeded(b, at, n)) {
        return false;
    }
    for (uint32_t k = 0; k < n && n > 1; k++) {
        (void)multiply(b, &made, k);
    }
    made.logit = made.output[0].logit;
    made.output_bias = made.output[0].bias;
    *out = made;
    return is_sound(b, "output", &output->at);
}

bool tn_list_build(const tn_net *net, const tn_list_source *source, const tn_binder *binder,
                   tn_list_graph *out)
{
    builder b = {.net = net, .source = source, .binder = binder};
    if (!add_inputs(&b)) {
        return false;
    }
    const tn_tree *layers = tn_tree_get(source->list, "layers");
    if (layers != NULL && layers->kind != TN_TREE_LIST) {
        tn_diag_error(binder->diag, &layers->at, "'layers' must be a list");
        return false;
    }
    for (const tn_tree *item = layers != NULL ? layers->first : NULL; item != NULL;
         item = item->next) {
        if (!add_layer(&b, item)) {
            return false;
        }
    }
    for (const value *v = b.values; v != NULL; v = v->next) {
        const bool several =
            source->features->tasks != NULL || tn_tree_get(source->list, "losses") != NULL;
        if ((several && strncmp(v->name, "loss.", 5) == 0) || strcmp(v->name, "loss") == 0) {
            tn_diag_error(binder->diag, &source->list->at, "the name '%s' is that of the loss",
                          v->name);
            return false;
        }
    }
    return add_outputs(&b, tn_tree_get(source->list, "output"), out);
}
