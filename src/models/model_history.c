/* model_history.c - models of what a user did before: DIN (Zhou 2018) and BST (Chen 2019).
 *
 *     din    each sequence with a target  -- attend --------------------.
 *     bst    the same -- append target -- positions -- blocks -- pool --[ ]-- mlp --> logit
 *            all other slots (and numbers) -----------------------------'
 *
 * A sequence is a section of the configuration; its positions have the vectors of the input `deep`,
 * which slots of one share group have in common with their targets. A sequence without a target is
 * pooled as its slots say. Several tasks have the MLP in common, and a tower each. The sums of
 * attend are those of DIN's unit: nn/layer/layer_sequence.c.
 */
#include "base/core/arena.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "models/layerlist.h"
#include "models/model.h"
#include "nn/layer/layers.h"
#include "nn/op/ops.h"

#include <stddef.h>
#include <string.h>

/* One part for each sequence, and the others side by side. */
enum { PARTS_MAX = 60 };

/* Writes the layers of one sequence over inputs `history` and `target` under the name of the
 * sequence; returns the last. */
typedef const char *history_fn(tn_list_writer *w, const void *attention, const char *name,
                               const char *history, const char *target);

/* How a model attends sequences: its options for all, and those for single ones. */
typedef struct attending {
    const tn_field *fields;
    const void *common;
    size_t size; /* bytes of those options */
    const tn_tree *of;
    history_fn *write;
} attending;

#define ATTENTION_OF_FIELD(type)                                                                   \
    TN_FIELD_TREE(type, of, "~", "{sequence: {..}}: options of single sequences, laid over these")

/* Returns whether a sequence of this name has a target. */
static bool is_target_of(const tn_features *f, const char *name)
{
    bool is = false;
    for (uint32_t i = 0; i < f->n_sequences; i++) {
        is = is || (f->sequence[i].n_target > 0 && strcmp(f->sequence[i].name, name) == 0);
    }
    return is;
}

/* Refuses options of sequences that are not attended. */
static void check_attention(tn_list_writer *w, const attending *a)
{
    if (tn_tree_is_null(a->of)) {
        return;
    }
    if (a->of->kind != TN_TREE_MAP) {
        tn_diag_error(w->diag, &a->of->at, "'attention.of' is a map {sequence: {..}}");
        return;
    }
    for (const tn_tree *t = a->of->first; t != NULL; t = t->next) {
        if (!is_target_of(w->features, t->key) || tn_tree_get(t, "of") != NULL) {
            tn_diag_error(w->diag, &t->key_at,
                          "'attention.of' names '%s', which is no sequence with a target, or has "
                          "an 'of' itself",
                          t->key);
        }
    }
}

/* The options for a sequence: those for all, with its own laid over them. */
static const void *attention_of(tn_list_writer *w, const attending *a, const char *name)
{
    const tn_tree *own = tn_tree_get(a->of, name);
    const tn_binder b = {.arena = w->arena, .diag = w->diag, .path = "model.attention.of"};
    if (own == NULL) {
        return a->common;
    }
    void *opts = tn_arena_alloc(w->arena, 1, a->size, _Alignof(max_align_t));
    memcpy(opts, a->common, a->size);
    tn_fields_bind_over(&b, a->fields, own, opts);
    return opts;
}

static bool is_attended(const tn_features *f, uint32_t slot)
{
    bool is = false;
    for (uint32_t i = 0; i < f->n_sequences; i++) {
        const tn_model_sequence *s = &f->sequence[i];
        for (uint32_t k = 0; s->n_target > 0 && k < s->n; k++) {
            is = is || s->item[k] == slot;
        }
    }
    return is;
}

/* The slots that are pooled: all but those of sequences with a target. */
static tn_tree *pooled_slots(tn_list_writer *w, const tn_model_args *args)
{
    const tn_tree *asked = tn_tree_get(args->common->slots, "deep");
    tn_tree *list = tn_tree_new(w->arena, TN_TREE_LIST, (tn_origin){.source = "model"});
    if (!tn_tree_is_null(asked) && asked->kind == TN_TREE_LIST) {
        return tn_tree_copy(w->arena, asked);
    }
    for (uint32_t i = 0; i < w->features->n_slots; i++) {
        if (!is_attended(w->features, i)) {
            tn_tree_append(list, tn_tree_scalar(w->arena, w->features->slot[i].name,
                                                (tn_origin){.source = "model"}));
        }
    }
    return list;
}

/* {sequence: <name>, vectors: deep} and {embed: [its targets], vectors: deep}. */
static void write_inputs(tn_list_writer *w, const tn_model_sequence *s, const char *target)
{
    tn_tree *names = tn_tree_new(w->arena, TN_TREE_LIST, (tn_origin){.source = "model"});
    for (uint32_t i = 0; i < s->n_target; i++) {
        tn_tree_append(names, tn_tree_scalar(w->arena, w->features->slot[s->target[i]].name,
                                             (tn_origin){.source = "model"}));
    }
    tn_tree *history = tn_write_input(w, s->name);
    tn_list_set(w, history, "sequence", s->name);
    tn_list_set(w, history, "vectors", "deep");
    tn_tree *paired = tn_write_input(w, target);
    tn_tree_put(w->arena, paired, "embed", names);
    tn_list_set(w, paired, "vectors", "deep");
}

/* Options of both models, but for those of attention. */
typedef struct net_opts {
    tn_deep_opts deep;
    tn_f64s tower;
} net_opts;

#define NET_FIELDS                                                                                 \
    TN_DEEP_FIELDS(tn_deep_opts, "[200, 80]"),                                                     \
        TN_FIELD_F64S(net_opts, tower, "[]", 1, 65536, "widths of each task's tower")

/* Writes the MLP over layer `x`; of several tasks they have it in common, and towers after it. */
static void write_outputs(tn_list_writer *w, const net_opts *net, const char *x)
{
    const tn_tasks *tasks = w->features->tasks;
    const uint32_t n = tn_tasks_count(tasks);
    if (n == 1 && net->tower.n == 0) {
        tn_list_output(w, tn_write_mlp(w, &net->deep, x, 1));
        return;
    }
    tn_deep_opts tower = net->deep;
    tower.hidden = net->tower;
    x = tn_write_mlp(w, &net->deep, x, 0);
    for (uint32_t k = 0; k < n; k++) {
        const char *name = tn_list_text(w, "tower.%s", n > 1 ? tasks->task[k].name : "task");
        const char *out = tn_list_text(w, "%s.out", name);
        (void)tn_list_dense(w, out, tn_write_named_mlp(w, name, &tower, x, 0), 1, NULL);
        tn_list_task_output(w, k, out);
    }
}

/* Writes all of a model but what is done with a history. */
static void write_model(tn_list_writer *w, const tn_model_args *args, const net_opts *net,
                        const attending *a)
{
    const tn_features *f = w->features;
    const char *part[PARTS_MAX + 2] = {NULL};
    uint32_t n = 0;
    check_attention(w, a);
    tn_write_slots_input(w, "deep", pooled_slots(w, args));
    tn_write_numbers_input(w);
    for (uint32_t i = 0; i < f->n_sequences && n < PARTS_MAX; i++) {
        const tn_model_sequence *s = &f->sequence[i];
        if (s->n_target > 0) {
            const char *target = tn_list_text(w, "%s.target", s->name);
            write_inputs(w, s, target);
            part[n++] = a->write(w, attention_of(w, a, s->name), s->name, s->name, target);
        }
    }
    if (n == 0) {
        tn_diag_error(w->diag, &w->list->at,
                      "model '%s' attends a history, and no sequence has a target", args->name);
        tn_diag_hint(w->diag, "'sequences: {clicks: {slots: [hist_item], target: [item]}}' names "
                              "one; a model without is widedeep");
        return;
    }
    part[n++] = tn_write_numbers(w, "rest", "deep");
    (void)tn_list_layer(w, "x", "concat", part);
    write_outputs(w, net, "x");
}

static void set_widths(tn_list_writer *w, tn_tree *layer, const char *key, const tn_f64s *widths)
{
    tn_tree *list = tn_tree_new(w->arena, TN_TREE_LIST, (tn_origin){.source = "model"});
    for (uint32_t i = 0; i < widths->n; i++) {
        tn_tree_append(list, tn_tree_scalar(w->arena, tn_list_text(w, "%.17g", widths->item[i]),
                                            (tn_origin){.source = "model"}));
    }
    tn_tree_put(w->arena, layer, key, list);
}

/* ---- din ---- */

typedef struct din_attention {
    tn_f64s hidden;
    uint32_t activation;
    bool softmax;
    const tn_tree *of;
} din_attention;

static const tn_field din_attention_fields[] = {
    TN_FIELD_F64S(din_attention, hidden, "[64]", 1, 65536, "widths of the net that weighs"),
    TN_FIELD_CHOICE(din_attention, activation, "dice", tn_activation_words, "of these layers"),
    TN_FIELD_BOOL(din_attention, softmax, "false", "weights of a row are its softmax"),
    ATTENTION_OF_FIELD(din_attention),
    TN_FIELD_END,
};

typedef struct din_opts {
    net_opts net;
    din_attention attention;
} din_opts;

static const tn_field din_fields[] = {
    NET_FIELDS,
    TN_FIELD_TABLE(din_opts, attention, din_attention, din_attention_fields,
                   "how positions of a sequence are weighed by its target"),
    TN_FIELD_END,
};

static const char *din_history(tn_list_writer *w, const void *attention, const char *name,
                               const char *history, const char *target)
{
    const din_attention *o = attention;
    const char *layer = tn_list_text(w, "%s.attended", name);
    tn_tree *attend = tn_list_layer(w, layer, "attend", TN_NAMES(history, target));
    if (tn_layer_widths(&o->hidden, &w->list->at, w->diag)) {
        set_widths(w, attend, "hidden", &o->hidden);
    }
    tn_list_set(w, attend, "activation", tn_activation_words[o->activation]);
    tn_list_set(w, attend, "softmax", o->softmax ? "true" : "false");
    return layer;
}

static void din_write(const tn_model_args *args, tn_list_writer *w)
{
    const din_opts *o = args->opts;
    const attending a = {din_attention_fields, &o->attention, sizeof o->attention, o->attention.of,
                         din_history};
    write_model(w, args, &o->net, &a);
}

/* BARS runs it on other sets than these; the settings are those of its DIN on Amazon's. */
#define DIN_MODEL                                                                                  \
    "model: {hidden: [512, 256, 128], activation: relu, init: xavier_normal, bias_init: 0"

static const tn_preset din_presets[] = {
    {"bars-frappe", DIN_MODEL
     ", dropout: 0.2}\n" TN_BARS_EMBEDDING TN_BARS_TRAIN TN_BARS_ROWS("deep", "0.05") TN_BARS_STOP},
    {"tensornet", "model: {hidden: [512, 256, 256], bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {hidden: [80, 40], activation: dice, attention: {hidden: [36], activation: "
              "dice}}\n"
              "embedding: {dim: 64}\n" TN_PAPER_TRAIN("  batch: 32\n", "type: sgd, lr: 0.1")},
    {NULL, NULL},
};

const tn_model tn_model_din = {
    TN_MODEL_MEMBERS(din, "DIN: a history weighed by what is looked at, beside an MLP"),
    .attends = true};

/* ---- bst ---- */

typedef struct bst_attention {
    uint32_t heads, layers, pool;
    bool positions;
    double dropout;
    const tn_tree *of;
} bst_attention;

static const tn_field bst_attention_fields[] = {
    TN_FIELD_U32(bst_attention, heads, "2", 1, TN_HEADS_MAX, "heads",
                 "parts of the columns that attend by themselves"),
    TN_FIELD_U32(bst_attention, layers, "1", 1, 16, "blocks", "one after the other"),
    TN_FIELD_BOOL(bst_attention, positions, "true",
                  "a trained vector for each position, counted from the end"),
    TN_FIELD_CHOICE(bst_attention, pool, "mean", tn_sequence_pool_words,
                    "of the positions, of which the target is the last"),
    TN_FIELD_F64(bst_attention, dropout, "0", 0, 0.999, "", "after each part of a block"),
    ATTENTION_OF_FIELD(bst_attention),
    TN_FIELD_END,
};

typedef struct bst_opts {
    net_opts net;
    bst_attention attention;
} bst_opts;

static const tn_field bst_fields[] = {
    NET_FIELDS,
    TN_FIELD_TABLE(bst_opts, attention, bst_attention, bst_attention_fields,
                   "how positions of a sequence and its target attend to each other"),
    TN_FIELD_END,
};

static const char *bst_history(tn_list_writer *w, const void *attention, const char *name,
                               const char *history, const char *target)
{
    const bst_attention *o = attention;
    const char *x = tn_list_text(w, "%s.all", name);
    (void)tn_list_layer(w, x, "append", TN_NAMES(history, target));
    if (o->positions) {
        const char *placed = tn_list_text(w, "%s.placed", name);
        (void)tn_list_layer(w, placed, "positions", TN_NAMES(x));
        x = placed;
    }
    for (uint32_t i = 0; i < o->layers; i++) {
        const char *block = tn_list_text(w, "%s.block.%u", name, i + 1);
        tn_tree *layer = tn_list_layer(w, block, "self_attention", TN_NAMES(x));
        tn_list_set(w, layer, "heads", tn_list_text(w, "%u", o->heads));
        tn_list_set(w, layer, "dropout", tn_list_text(w, "%.17g", o->dropout));
        x = block;
    }
    const char *pooled = tn_list_text(w, "%s.attended", name);
    tn_list_set(w, tn_list_layer(w, pooled, "pool", TN_NAMES(x)), "kind",
                tn_sequence_pool_words[o->pool]);
    return pooled;
}

static void bst_write(const tn_model_args *args, tn_list_writer *w)
{
    const bst_opts *o = args->opts;
    const attending a = {bst_attention_fields, &o->attention, sizeof o->attention, o->attention.of,
                         bst_history};
    write_model(w, args, &o->net, &a);
}

static const tn_preset bst_presets[] = {
    {"bars-frappe", DIN_MODEL
     ", dropout: 0.2}\n" TN_BARS_EMBEDDING TN_BARS_TRAIN TN_BARS_ROWS("deep", "0.05") TN_BARS_STOP},
    {"tensornet", "model: {hidden: [512, 256, 256], bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {hidden: [1024, 512, 256], activation: leaky_relu,\n"
              "        attention: {heads: 8, layers: 1, dropout: 0.2}, dropout: 0.2}\n"
              "embedding: {dim: 16}\n" TN_PAPER_TRAIN("  batch: 256\n", "type: adagrad, lr: 0.01")},
    {NULL, NULL},
};

const tn_model tn_model_bst = {
    TN_MODEL_MEMBERS(bst, "BST: a history and what is looked at, among which all attend"),
    .attends = true};
