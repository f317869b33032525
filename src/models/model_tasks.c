/* model_tasks.c - models of several tasks: a tower for each on what they have in common.
 *
 * shared (Caruana 1997)
 *
 *     [deep, num] -- mlp --.-- tower of task 1 --> logit
 *                          '-- tower of task 2 --> logit
 *
 * esmm (Ma 2018): towers on the embeddings alone; a task with `of` is a share of another, and the
 * run multiplies their probabilities (config `tasks`)
 *
 *     [deep, num] --.-- tower of click --> logit
 *                   '-- tower of buy ----> logit given a click
 *
 * mmoe (Ma 2018): a gate of each task mixes experts
 *
 *     gate_k = softmax(gate(x)),  x_k = sum_e gate_ke expert_e(x),  tower_k(x_k)
 *
 * ple (Tang 2020): each layer has experts of each task and shared ones. The gate of a task mixes
 * its own and the shared ones, and that of the shared part, which the next layer reads, all of
 * them:
 *
 *     layer 1    x --- own experts of k, shared experts --- gate of k ---> x_k
 *                      all experts ------------------------ shared gate -> x_s
 *     layer 2    own experts read x_k, shared ones x_s, and so on; after the last, tower_k(x_k)
 *
 * Without `tasks` each of them has one tower, for the one label.
 */
#include "base/core/arena.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "models/layerlist.h"
#include "models/model.h"
#include "nn/layer/layers.h"

/* Options of all of them; each has those that it names. */
typedef struct tasks_opts {
    tn_f64s hidden, expert, gate, tower;
    uint32_t experts, shared, own, layers;
    uint32_t activation, bn_gamma;
    double dropout;
    bool batch_norm;
} tasks_opts;

#define TOWER_FIELD(type)                                                                          \
    TN_FIELD_F64S(type, tower, "[128, 64]", 1, 65536, "widths of each task's tower")
#define EXPERT_FIELDS(type)                                                                        \
    TN_FIELD_F64S(type, expert, "[256, 128]", 1, 65536, "widths of an expert"),                    \
        TN_FIELD_F64S(type, gate, "[]", 1, 65536, "widths of a gate before its softmax")
#define LAYER_FIELDS(type)                                                                         \
    TN_FIELD_CHOICE(type, activation, "relu", tn_activation_words, "of the hidden layers"),        \
        TN_FIELD_F64(type, dropout, "0", 0, 0.999, "", "behind each hidden layer"),                \
        TN_FIELD_BOOL(type, batch_norm, "false", "in each hidden layer, before the activation"),   \
        TN_BN_GAMMA_FIELD(type)

static uint32_t count_tasks(const tn_list_writer *w)
{
    return tn_tasks_count(w->features->tasks);
}

/* The name of a task within names of layers. */
static const char *task_name(const tn_list_writer *w, uint32_t k)
{
    return count_tasks(w) > 1 ? w->features->tasks->task[k].name : "task";
}

/* Adds the MLP `name` of these widths on x; returns its last layer. */
static const char *write_layers(tn_list_writer *w, const tasks_opts *o, const tn_f64s *widths,
                                const char *name, const char *x)
{
    const tn_deep_opts deep = {.hidden = *widths,
                               .activation = o->activation,
                               .dropout = o->dropout,
                               .batch_norm = o->batch_norm,
                               .bn_gamma = o->bn_gamma};
    return tn_write_named_mlp(w, name, &deep, x, 0);
}

static void write_tower(tn_list_writer *w, const tasks_opts *o, const tn_f64s *widths, uint32_t k,
                        const char *x)
{
    const char *name = tn_list_text(w, "tower.%s", task_name(w, k));
    const char *out = tn_list_text(w, "%s.out", name);
    (void)tn_list_dense(w, out, write_layers(w, o, widths, name, x), 1, NULL);
    tn_list_task_output(w, k, out);
}

/* ---- shared ---- */

typedef tasks_opts shared_opts;

static const tn_field shared_fields[] = {
    TN_FIELD_F64S(shared_opts, hidden, "[256, 128]", 1, 65536, "widths of the layers in common"),
    TOWER_FIELD(shared_opts),
    LAYER_FIELDS(shared_opts),
    TN_FIELD_END,
};

static void shared_write(const tn_model_args *args, tn_list_writer *w)
{
    const shared_opts *o = args->opts;
    const char *x = write_layers(w, o, &o->hidden, "deep", tn_write_deep_input(w, args));
    for (uint32_t k = 0; k < count_tasks(w); k++) {
        write_tower(w, o, &o->tower, k, x);
    }
}

/* The benchmark has no model of several tasks: its recipe of dcn with the sizes of MTReclib. */
static const tn_preset shared_presets[] = {
    TN_BARS_CROSS("frappe", "hidden: [512, 256], tower: [128, 64], " TN_BARS_NORM "dropout: 0.2",
                  "0.05"),
    {"tensornet",
     "model: {hidden: [512, 256], tower: [128, 64], bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {hidden: [512, 256], tower: [128, 64], dropout: 0.2}\n"
              "embedding: {dim: 16}\n" TN_PAPER_TRAIN("  batch: 2048\n", "type: adam, lr: 1e-3")},
    {NULL, NULL},
};

const tn_model tn_model_shared = {
    TN_MODEL_MEMBERS(shared, "several tasks: layers in common, then a tower for each")};

/* ---- esmm ---- */

typedef tasks_opts esmm_opts;

static const tn_field esmm_fields[] = {
    TN_FIELD_F64S(esmm_opts, tower, "[360, 200, 80]", 1, 65536, "widths of each task's tower"),
    LAYER_FIELDS(esmm_opts),
    TN_FIELD_END,
};

static bool has_share(const tn_tasks *tasks)
{
    bool has = false;
    for (uint32_t k = 0; k < tasks->n; k++) {
        has = has || tasks->task[k].of != TN_NO_TASK;
    }
    return has;
}

static void esmm_write(const tn_model_args *args, tn_list_writer *w)
{
    const esmm_opts *o = args->opts;
    const char *x = tn_write_deep_input(w, args);
    if (count_tasks(w) > 1 && !has_share(w->features->tasks)) {
        tn_diag_error(
            w->diag, &w->list->at,
            "esmm multiplies probabilities, and no task says of which other it is a share");
        tn_diag_hint(w->diag, "'of: TASK' says so, as in tasks: {click: {}, buy: {of: click}}");
    }
    for (uint32_t k = 0; k < count_tasks(w); k++) {
        write_tower(w, o, &o->tower, k, x);
    }
}

static const tn_preset esmm_presets[] = {
    TN_BARS_CROSS("frappe", "tower: [360, 200, 80], " TN_BARS_NORM "dropout: 0.2", "0.05"),
    {"tensornet", "model: {tower: [360, 200, 80], bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {tower: [360, 200, 80]}\n"
              "embedding: {dim: 18}\n" TN_PAPER_TRAIN("", "type: adam, lr: 1e-3")},
    {NULL, NULL},
};

const tn_model tn_model_esmm = {
    TN_MODEL_MEMBERS(esmm, "several tasks: towers on common embeddings, for shares of clicks")};

/* ---- mmoe ---- */

typedef tasks_opts mmoe_opts;

enum { EXPERTS_MAX = 64, MIXED_MAX = 1 + EXPERTS_MAX * (TN_TASKS_MAX + 1) };

static const tn_field mmoe_fields[] = {
    TN_FIELD_U32(mmoe_opts, experts, "8", 1, EXPERTS_MAX, "experts", "that all tasks mix"),
    EXPERT_FIELDS(mmoe_opts),
    TOWER_FIELD(mmoe_opts),
    LAYER_FIELDS(mmoe_opts),
    TN_FIELD_END,
};

/* A list of names for the layer mix: room for a gate, then experts. */
typedef struct mixture {
    uint32_t n; /* experts */
    const char *name[MIXED_MAX + 1];
} mixture;

/* Adds `n` experts "<stem>.1", "<stem>.2" on x. */
static void add_experts(tn_list_writer *w, const tasks_opts *o, uint32_t n, const char *stem,
                        const char *x, mixture *out)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *name = tn_list_text(w, "%s.%u", stem, i + 1);
        out->name[++out->n] = write_layers(w, o, &o->expert, name, x);
    }
    out->name[out->n + 1] = NULL;
}

/* Mixes the experts by a gate that reads x; returns the name of the sum. */
static const char *write_mix(tn_list_writer *w, const tasks_opts *o, const char *stem,
                             const char *x, mixture *of)
{
    const char *gate = tn_list_text(w, "%s.gate", stem);
    const char *logits = tn_list_text(w, "%s.logits", gate);
    (void)tn_list_dense(w, logits, write_layers(w, o, &o->gate, gate, x), of->n, NULL);
    (void)tn_list_layer(w, gate, "softmax", TN_NAMES(logits));
    of->name[0] = gate;
    const char *mixed = tn_list_text(w, "%s.mix", stem);
    (void)tn_list_layer(w, mixed, "mix", of->name);
    return mixed;
}

static void mmoe_write(const tn_model_args *args, tn_list_writer *w)
{
    const mmoe_opts *o = args->opts;
    const char *x = tn_write_deep_input(w, args);
    mixture all = {0};
    add_experts(w, o, o->experts, "expert", x, &all);
    for (uint32_t k = 0; k < count_tasks(w); k++) {
        write_tower(w, o, &o->tower, k, write_mix(w, o, task_name(w, k), x, &all));
    }
}

static const tn_preset mmoe_presets[] = {
    TN_BARS_CROSS("frappe",
                  "experts: 8, expert: [512, 256], tower: [128, 64], " TN_BARS_NORM "dropout: 0.2",
                  "0.05"),
    {"tensornet",
     "model: {experts: 8, expert: [512, 256], tower: [128, 64], bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {experts: 8, expert: [512, 256], tower: [128, 64], dropout: 0.2}\n"
              "embedding: {dim: 16}\n" TN_PAPER_TRAIN("  batch: 2048\n", "type: adam, lr: 1e-3")},
    {NULL, NULL},
};

const tn_model tn_model_mmoe = {
    TN_MODEL_MEMBERS(mmoe, "several tasks: a gate of each mixes experts of all (MMoE)")};

/* ---- ple ---- */

typedef tasks_opts ple_opts;

static const tn_field ple_fields[] = {
    TN_FIELD_U32(ple_opts, shared, "2", 1, EXPERTS_MAX, "experts", "in common, in each layer"),
    TN_FIELD_U32(ple_opts, own, "2", 1, EXPERTS_MAX, "experts", "of each task, in each layer"),
    TN_FIELD_U32(ple_opts, layers, "1", 1, 16, "layers", "of experts"),
    EXPERT_FIELDS(ple_opts),
    TOWER_FIELD(ple_opts),
    LAYER_FIELDS(ple_opts),
    TN_FIELD_END,
};

/* The inputs of the next layer: one for each task and, last, the shared one. */
typedef struct ple_state {
    const char *x[TN_TASKS_MAX + 1];
} ple_state;

/* Adds a layer of experts; without `last`, the shared part goes on, too. */
static void write_ple_layer(tn_list_writer *w, const ple_opts *o, uint32_t i, bool last,
                            ple_state *s)
{
    const uint32_t n = count_tasks(w);
    const char *stem = tn_list_text(w, "layer%u", i + 1);
    mixture all = {0};
    mixture *shared = TN_NEW(w->arena, mixture);
    add_experts(w, o, o->shared, tn_list_text(w, "%s.shared", stem), s->x[n], shared);
    for (uint32_t e = 1; e <= shared->n; e++) {
        all.name[++all.n] = shared->name[e];
    }
    for (uint32_t k = 0; k < n; k++) {
        const char *name = tn_list_text(w, "%s.%s", stem, task_name(w, k));
        mixture mine = *shared;
        add_experts(w, o, o->own, name, s->x[k], &mine);
        for (uint32_t e = shared->n + 1; e <= mine.n; e++) {
            all.name[++all.n] = mine.name[e];
        }
        s->x[k] = write_mix(w, o, name, s->x[k], &mine);
    }
    all.name[all.n + 1] = NULL;
    if (!last) {
        s->x[n] = write_mix(w, o, tn_list_text(w, "%s.all", stem), s->x[n], &all);
    }
}

static void ple_write(const tn_model_args *args, tn_list_writer *w)
{
    const ple_opts *o = args->opts;
    const uint32_t n = count_tasks(w);
    const char *x = tn_write_deep_input(w, args);
    ple_state s = {{NULL}};
    for (uint32_t k = 0; k <= n; k++) {
        s.x[k] = x;
    }
    for (uint32_t i = 0; i < o->layers; i++) {
        write_ple_layer(w, o, i, i + 1 == o->layers, &s);
    }
    for (uint32_t k = 0; k < n; k++) {
        write_tower(w, o, &o->tower, k, s.x[k]);
    }
}

static const tn_preset ple_presets[] = {
    TN_BARS_CROSS("frappe",
                  "shared: 2, own: 2, expert: [512, 256], tower: [128, 64], " TN_BARS_NORM
                  "dropout: 0.2",
                  "0.05"),
    {"tensornet", "model: {shared: 2, own: 2, expert: [512, 256], tower: [128, 64], bias_init: "
                  "0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {shared: 4, own: 4, layers: 1, expert: [512, 256], tower: [128, 64], "
              "dropout: 0.2}\n"
              "embedding: {dim: 16}\n" TN_PAPER_TRAIN("  batch: 2048\n", "type: adam, lr: 1e-3")},
    {NULL, NULL},
};

const tn_model tn_model_ple = {
    TN_MODEL_MEMBERS(ple, "several tasks: own and shared experts, mixed layer by layer (PLE)")};
