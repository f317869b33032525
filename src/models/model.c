/* model.c - the list of models, writing a list of layers as a tree, the parts that several models
 * share, and `type: graph`, whose list the user has written. */
#include "models/model.h"

#include "base/core/arena.h"
#include "base/core/error.h"
#include "base/core/text.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "models/layerblocks.h"
#include "models/layerlist.h"
#include "nn/layer/layers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 512 };

const tn_model *const tn_all_models[] = {
#define TN_MODEL(name) &tn_model_##name,
#include "models/models.def"
#undef TN_MODEL
    NULL,
};

const tn_choice *const tn_model_choices[] = {
#define TN_MODEL(name) &tn_model_##name.choice,
#include "models/models.def"
#undef TN_MODEL
    NULL,
};

const char *const tn_head_words[] = {"sum", "concat", NULL};

const tn_field tn_model_common_fields[] = {
    TN_FIELD_STR(tn_model_common, preset, "~",
                 "settings of a paper or program; see tnet-train --list-models"),
    TN_FIELD_TREE(tn_model_common, slots, "~", "slots of each input: {wide: [..], deep: all}"),
    TN_FIELD_STR(tn_model_common, bias_init, "prior",
                 "output bias at the start: prior (log odds of the label rate) or a number"),
    TN_FIELD_TREE_ONE(tn_model_common, init, "glorot_uniform", "first values of dense weights"),
    TN_FIELD_TREE_ONE(tn_model_common, wide_init, "{constant: 0}", "first values of wide weights"),
    TN_FIELD_END,
};

const char *tn_model_preset(const char *model, const char *preset)
{
    for (const tn_model *const *m = tn_all_models; *m != NULL; m++) {
        bool here = strcmp((*m)->choice.name, model) == 0;
        if (here && preset == NULL) {
            return (*m)->defaults;
        }
        for (const tn_preset *p = (*m)->presets; here && p != NULL && p->name != NULL; p++) {
            if (strcmp(p->name, preset) == 0) {
                return p->yaml;
            }
        }
    }
    return NULL;
}

void tn_model_list_presets(const char *model, tn_text *out)
{
    for (const tn_model *const *m = tn_all_models; *m != NULL; m++) {
        const bool here = strcmp((*m)->choice.name, model) == 0;
        for (const tn_preset *p = (*m)->presets; here && p != NULL && p->name != NULL; p++) {
            tn_text_addf(out, "%s%s", p != (*m)->presets ? ", " : "", p->name);
        }
    }
}

static bool has_counts(const tn_features *f)
{
    bool any = false;
    for (uint32_t i = 0; i < f->n_slots; i++) {
        any = any || f->slot[i].cvm;
    }
    return any;
}

/* Refuses counts that nothing reads: they are a mistake of the user. */
static void refuse_unread_counts(const tn_model *m, const tn_list_writer *w)
{
    const tn_tree *inputs = tn_tree_get(w->list, "inputs");
    bool read = !has_counts(w->features);
    for (const tn_tree *t = inputs != NULL ? inputs->first : NULL; t != NULL && !read;
         t = t->next) {
        read = tn_tree_get(t, "cvm") != NULL;
    }
    if (!read && w->diag->n_errors == 0) {
        tn_diag_error(w->diag, &w->list->at,
                      "embedding.cvm: no part of model '%s' reads show and click", m->choice.name);
        tn_diag_hint(w->diag, "models with an MLP or cross layers do, and a graph by an input "
                              "{cvm: all}");
    }
}

const tn_tree *tn_model_list(const tn_variant *model, const tn_features *features,
                             const tn_binder *b)
{
    const tn_model *m = model->choice->impl;
    tn_origin at = model->tree != NULL ? model->tree->at : (tn_origin){.source = "model"};
    tn_list_writer w = {
        .arena = b->arena,
        .diag = b->diag,
        .features = features,
        .list = tn_tree_new(b->arena, TN_TREE_MAP, at),
    };
    tn_model_args args = {
        .name = m->choice.name, .common = model->shared, .opts = model->opts, .tree = model->tree};
    uint32_t faults = b->diag->n_errors;
    m->write(&args, &w);
    refuse_unread_counts(m, &w);
    // cppcheck-suppress knownConditionTrueFalse; write() reports to the same diag
    return b->diag->n_errors == faults ? w.list : NULL;
}

/* ---- writing ---- */

static tn_origin written(void)
{
    return (tn_origin){.source = "model"};
}

static tn_tree *member(tn_list_writer *w, const char *key, tn_tree_kind kind)
{
    for (tn_tree *t = w->list->first; t != NULL; t = t->next) {
        if (strcmp(t->key, key) == 0) {
            return t;
        }
    }
    tn_tree *t = tn_tree_new(w->arena, kind, written());
    tn_tree_put(w->arena, w->list, key, t);
    return t;
}

tn_tree *tn_write_input(tn_list_writer *w, const char *name)
{
    tn_tree *input = tn_tree_new(w->arena, TN_TREE_MAP, written());
    tn_tree_put(w->arena, member(w, "inputs", TN_TREE_MAP), name, input);
    return input;
}

/* Returns an input of these slots, without its width. */
static tn_tree *embed_input(tn_list_writer *w, const char *name, const tn_tree *slots)
{
    tn_tree *input = tn_write_input(w, name);
    tn_tree *which = tn_tree_is_null(slots) ? tn_tree_scalar(w->arena, "all", written())
                                            : tn_tree_copy(w->arena, slots);
    tn_tree_put(w->arena, input, "embed", which);
    return input;
}

tn_tree *tn_list_layer(tn_list_writer *w, const char *name, const char *layer,
                       const char *const *inputs)
{
    tn_tree *item = tn_tree_new(w->arena, TN_TREE_MAP, written());
    tn_list_set(w, item, "name", name);
    if (inputs[1] == NULL) {
        tn_list_set(w, item, layer, inputs[0]);
    } else {
        tn_tree *in = tn_tree_new(w->arena, TN_TREE_LIST, written());
        for (uint32_t i = 0; inputs[i] != NULL; i++) {
            tn_tree_append(in, tn_tree_scalar(w->arena, inputs[i], written()));
        }
        tn_tree_put(w->arena, item, layer, in);
    }
    tn_tree_append(member(w, "layers", TN_TREE_LIST), item);
    return item;
}

void tn_list_set(tn_list_writer *w, tn_tree *layer, const char *key, const char *value)
{
    tn_tree_put(w->arena, layer, key, tn_tree_scalar(w->arena, value, written()));
}

void tn_list_set_numbers(tn_list_writer *w, tn_tree *layer, const char *key, const tn_f64s *numbers)
{
    tn_tree *list = tn_tree_new(w->arena, TN_TREE_LIST, written());
    for (uint32_t i = 0; i < numbers->n; i++) {
        const char *text = tn_list_text(w, "%.17g", numbers->item[i]);
        tn_tree_append(list, tn_tree_scalar(w->arena, text, written()));
    }
    tn_tree_put(w->arena, layer, key, list);
}

tn_tree *tn_list_dense(tn_list_writer *w, const char *name, const char *x, uint32_t units,
                       const char *activation)
{
    tn_tree *dense = tn_list_layer(w, name, "dense", TN_NAMES(x));
    tn_list_set(w, dense, "units", tn_list_text(w, "%u", units));
    if (activation != NULL) {
        tn_list_set(w, dense, "activation", activation);
    }
    return dense;
}

void tn_list_output(tn_list_writer *w, const char *name)
{
    tn_list_set(w, w->list, "output", name);
}

void tn_list_loss(tn_list_writer *w, const char *name, const char *weight)
{
    tn_list_set(w, member(w, "losses", TN_TREE_MAP), name, weight);
}

void tn_list_task_output(tn_list_writer *w, uint32_t k, const char *name)
{
    const tn_tasks *tasks = w->features->tasks;
    if (tn_tasks_count(tasks) == 1) {
        tn_list_output(w, name);
    } else {
        tn_list_set(w, member(w, "output", TN_TREE_MAP), tasks->task[k].name, name);
    }
}

/* ---- what several models share ---- */

const char *tn_list_text(tn_list_writer *w, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    int used = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    TN_ASSERT(used >= 0 && used < TEXT_MAX);
    char *copy = TN_NEW_ARRAY(w->arena, char, (size_t)used + 1);
    memcpy(copy, text, (size_t)used + 1);
    return copy;
}

const char *tn_write_named_mlp(tn_list_writer *w, const char *name, const tn_deep_opts *o,
                               const char *x, uint32_t units)
{
    if (!tn_layer_widths(&o->hidden, &w->list->at, w->diag)) {
        return x;
    }
    for (uint32_t i = 0; i < o->hidden.n; i++) {
        const char *layer = tn_list_text(w, "%s.%u", name, i + 1);
        tn_tree *dense = tn_list_dense(w, layer, x, (uint32_t)o->hidden.item[i],
                                       tn_activation_words[o->activation]);
        if (o->batch_norm) {
            tn_list_set(w, dense, "batch_norm", "true");
        }
        if (o->bn_gamma != 0) {
            tn_list_set(w, dense, "bn_gamma", tn_bn_gamma_words[o->bn_gamma]);
        }
        if (o->dropout > 0) {
            tn_list_set(w, dense, "dropout", tn_list_text(w, "%.17g", o->dropout));
        }
        x = layer;
    }
    if (units == 0) {
        return x;
    }
    const char *layer = tn_list_text(w, "%s.%u", name, o->hidden.n + 1);
    (void)tn_list_dense(w, layer, x, units, NULL);
    return layer;
}

const char *tn_write_mlp(tn_list_writer *w, const tn_deep_opts *o, const char *x, uint32_t units)
{
    return tn_write_named_mlp(w, "deep", o, x, units);
}

const char *tn_write_tail(tn_list_writer *w, const char *name, const char *x, const tn_deep_opts *o)
{
    if (o->batch_norm) {
        const char *bn = tn_list_text(w, "%s.bn", name);
        tn_tree *norm = tn_list_layer(w, bn, "batch_norm", TN_NAMES(x));
        if (o->bn_gamma != 0) {
            tn_list_set(w, norm, "gamma", tn_bn_gamma_words[o->bn_gamma]);
        }
        x = bn;
    }
    if (o->activation != 0) {
        const char *act = tn_list_text(w, "%s.act", name);
        tn_tree *layer = tn_list_layer(w, act, "activation", TN_NAMES(x));
        tn_list_set(w, layer, "function", tn_activation_words[o->activation]);
        x = act;
    }
    if (o->dropout > 0) {
        const char *drop = tn_list_text(w, "%s.drop", name);
        tn_tree *layer = tn_list_layer(w, drop, "dropout", TN_NAMES(x));
        tn_list_set(w, layer, "rate", tn_list_text(w, "%.17g", o->dropout));
        x = drop;
    }
    return x;
}

void tn_write_concat_head(tn_list_writer *w, const char *const *parts)
{
    tn_tree *out = tn_list_layer(w, "out", "dense", parts);
    tn_list_set(w, out, "units", "1");
    tn_list_output(w, "out");
}

bool tn_find_deep_shape(tn_list_writer *w, tn_deep_shape *out)
{
    const tn_binder b = {.arena = w->arena, .diag = w->diag};
    const tn_model_inputs *inputs = tn_inputs_read(w->list, w->features, &b);
    uint64_t cols = w->features->n_numeric;
    *out = (tn_deep_shape){0};
    for (uint32_t i = 0; inputs != NULL && i < inputs->n; i++) {
        const tn_model_input *in = &inputs->input[i];
        cols += in->cvm ? tn_input_cols(in, w->features) : 0;
        if (strcmp(in->name, "deep") == 0) {
            cols += tn_input_cols(in, w->features);
            out->slot = w->features->slot[in->item[0]].dim;
            out->slots = in->n;
        }
    }
    if (cols > UINT32_MAX / 2) {
        tn_diag_error(w->diag, &w->list->at, "inputs of more than %u columns", UINT32_MAX / 2);
        return false;
    }
    out->cols = (uint32_t)cols;
    return inputs != NULL;
}

void tn_write_slots_input(tn_list_writer *w, const char *name, const tn_tree *slots)
{
    (void)embed_input(w, name, slots);
}

void tn_write_field_vectors(tn_list_writer *w, const tn_model_args *args, const char *name,
                            uint32_t k)
{
    tn_tree *input = embed_input(w, name, tn_tree_get(args->common->slots, "deep"));
    if (k != 0) {
        tn_list_set(w, input, "field_dim", tn_list_text(w, "%u", k));
    }
}

void tn_write_vectors(tn_list_writer *w, const tn_model_args *args, uint32_t k)
{
    tn_write_field_vectors(w, args, "deep", k);
}

void tn_write_numbers_input(tn_list_writer *w)
{
    const tn_features *f = w->features;
    tn_tree *inputs = member(w, "inputs", TN_TREE_MAP);
    if (f->n_numeric > 0) {
        tn_tree *num = tn_tree_new(w->arena, TN_TREE_MAP, written());
        tn_list_set(w, num, "numeric", "all");
        tn_tree_put(w->arena, inputs, "num", num);
    }
    if (has_counts(f)) {
        tn_tree *cvm = tn_tree_new(w->arena, TN_TREE_MAP, written());
        tn_tree *slots = tn_tree_new(w->arena, TN_TREE_LIST, written());
        for (uint32_t i = 0; i < f->n_slots; i++) {
            if (f->slot[i].cvm) {
                tn_tree_append(slots, tn_tree_scalar(w->arena, f->slot[i].name, written()));
            }
        }
        tn_tree_put(w->arena, cvm, "cvm", slots);
        tn_tree_put(w->arena, inputs, "cvm", cvm);
    }
}

const char *tn_write_numbers(tn_list_writer *w, const char *name, const char *x)
{
    const char *part[4] = {x};
    uint32_t n = x != NULL;
    if (w->features->n_numeric > 0) {
        part[n++] = "num";
    }
    if (has_counts(w->features)) {
        part[n++] = "cvm";
    }
    if (n <= 1) {
        return part[0];
    }
    (void)tn_list_layer(w, name, "concat", part);
    return name;
}

const char *tn_write_deep_input(tn_list_writer *w, const tn_model_args *args)
{
    tn_write_vectors(w, args, 0);
    tn_write_numbers_input(w);
    return tn_write_numbers(w, "x", "deep");
}

void tn_write_fm(tn_list_writer *w, bool within_slot)
{
    tn_tree *fm = tn_list_layer(w, "fm", "fm", TN_NAMES("deep"));
    if (within_slot) {
        tn_list_set(w, fm, "within_slot", "true");
    }
}

void tn_write_wide_input(tn_list_writer *w, const tn_model_args *args)
{
    const tn_tree *init = args->common->wide_init;
    tn_tree *input = embed_input(w, "wide", tn_tree_get(args->common->slots, "wide"));
    tn_list_set(w, input, "dim", "1");
    if (!tn_tree_is_null(init)) {
        tn_tree_put(w->arena, input, "init", tn_tree_copy(w->arena, init));
    }
}

/* ---- graph: the user's own list ---- */

typedef struct graph_opts {
    const tn_tree *inputs;
    const tn_tree *blocks;
    const tn_tree *layers;
    const tn_tree *output;
    const tn_tree *losses;
} graph_opts;

static const tn_field graph_fields[] = {
    TN_FIELD_TREE(graph_opts, inputs, NULL,
                  "{name: {embed: all | [slots], dim: n} | {numeric: all} | {cvm: all | [slots]}}"),
    TN_FIELD_TREE(
        graph_opts, blocks, "~",
        "{name: {args: [..], layers: [..], output: ..}}: lists of layers that layers use, "
        "as {name: .., block: .., <argument>: <inputs>}"),
    TN_FIELD_TREE(graph_opts, layers, NULL,
                  "[{name: .., <layer>: <inputs>, ..}], see tnet-train --list-layers"),
    TN_FIELD_TREE_ONE(graph_opts, output, NULL,
                      "name of the layer that is the logit; of several tasks {task: layer, ..}"),
    TN_FIELD_TREE(graph_opts, losses, "~",
                  "{layer: weight}: layers that are scores of the label, too, each with a loss of "
                  "its own; excess: how much larger its mean loss is than that of the output"),
    TN_FIELD_END,
};

static void graph_write(const tn_model_args *args, tn_list_writer *w)
{
    static const char *const keys[] = {"inputs", "layers", "output", "losses"};
    for (uint32_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const tn_tree *part = tn_tree_get(args->tree, keys[i]);
        if (part != NULL && !(tn_tree_is_null(part) && i == 3)) {
            tn_tree_put(w->arena, w->list, keys[i], tn_tree_copy(w->arena, part));
        }
    }
    const tn_tree *layers = tn_tree_get(args->tree, "layers");
    if (layers != NULL && layers->kind == TN_TREE_LIST) {
        const tn_binder b = {.arena = w->arena, .diag = w->diag};
        tn_tree *plain = tn_blocks_write_out(tn_tree_get(args->tree, "blocks"), layers, &b);
        if (plain != NULL) {
            tn_tree_put(w->arena, w->list, "layers", plain);
        }
    }
    if (!tn_tree_is_null(args->common->slots)) {
        tn_diag_error(w->diag, &args->common->slots->at,
                      "'slots' belongs to the built-in models; here the inputs name their slots");
    }
}

const tn_model tn_model_graph = {
    .choice = {.name = "graph",
               .help = "a list of layers, written in the configuration",
               .fields = graph_fields,
               .size = sizeof(graph_opts),
               .impl = &tn_model_graph},
    .attends = true,
    .write = graph_write,
};
