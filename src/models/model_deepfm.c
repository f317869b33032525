/* model_deepfm.c - DeepFM (Guo 2017): one set of embeddings, two readers of it.
 *
 *     wide ------------------- sum --.
 *     deep --.---------------- fm ---+--> logit       head: sum
 *            '-- [deep, num] - mlp --'
 *
 * head: concat puts the wide columns, the FM term and the last hidden layer into one dense layer
 * (TensorNet's form), which weighs the FM term anew.
 */
#include "models/model.h"

extern const tn_model tn_model_deepfm;

typedef struct deepfm_opts {
    tn_f64s hidden;
    uint32_t activation;
    double dropout;
    bool batch_norm;
    uint32_t head;
    bool within_slot;
} deepfm_opts;

static const tn_field deepfm_fields[] = {
    TN_DEEP_FIELDS(deepfm_opts, "[400, 400, 400]"),
    TN_HEAD_FIELD(deepfm_opts),
    TN_WITHIN_SLOT_FIELD(deepfm_opts),
    TN_FIELD_END,
};

static void deepfm_write(const tn_model_args *args, tn_list_writer *w)
{
    const deepfm_opts *o = args->opts;
    tn_deep_opts mlp = {o->hidden, o->activation, o->dropout, o->batch_norm, o->head};
    tn_write_wide_input(w, args);
    const char *x = tn_write_deep_input(w, args);
    tn_write_fm(w, o->within_slot);
    if (o->head == TN_HEAD_CONCAT) {
        const char *deep = tn_write_mlp(w, &mlp, x, 0);
        tn_tree *out =
            tn_list_layer(w, "out", "dense", (const char *const[]){"wide", "fm", deep, NULL});
        tn_list_set(w, out, "units", "1");
        tn_list_output(w, "out");
        return;
    }
    (void)tn_list_layer(w, "wide.sum", "sum", (const char *const[]){"wide", NULL});
    const char *deep = tn_write_mlp(w, &mlp, x, 1);
    (void)tn_list_layer(w, "logit", "add", (const char *const[]){"wide.sum", "fm", deep, NULL});
    tn_list_output(w, "logit");
}

static const tn_preset presets[] = {
    {"bars", "model: {hidden: [400, 400, 400], batch_norm: true, dropout: 0.2, head: sum,\n"
             "        init: xavier_normal, wide_init: {normal: [0, 1e-4]}, bias_init: 0}\n"
             "embedding: {dim: 10, init: {normal: [0, 1e-4]}}\n"
             "train:\n"
             "  batch: 4096\n"
             "  optimizer: {type: adam, lr: 1e-3}\n"
             "  sparse:\n"
             "    deep: {type: adam, lr: 1e-3, bias: global, l2: 0.05, l2_mode: dense}\n"
             "    wide: {type: adam, lr: 1e-3, bias: global, l2: 0.05, l2_mode: dense}\n"
             "  clip: {global: 10}\n"
             "  stop: {monitor: valid.auc, patience: 2, min_delta: 1e-6, restore: best}\n"
             "  reduce_on_plateau: {factor: 0.1, patience: 1, min_lr: 1e-6}\n"},
    {"tensornet", "model: {hidden: [512, 256, 256], head: concat}\n"
                  "embedding: {dim: 8, pool: mean, init: {normal: [0, 0.0353553]}}\n"
                  "train:\n"
                  "  batch: 32\n"
                  "  optimizer: {type: adam, lr: 1e-3}\n"
                  "  sparse:\n"
                  "    deep: {type: adagrad, rowwise: true, lr: 0.01, n0: 0.1}\n"
                  "    wide: {type: adagrad, rowwise: true, lr: 0.01, n0: 0.1}\n"},
    {"paper", "model: {hidden: [400, 400, 400], dropout: 0.5, head: sum}\n"
              "embedding: {dim: 10}\n"
              "train:\n"
              "  optimizer: {type: adam, lr: 1e-3}\n"
              "  sparse:\n"
              "    deep: {type: adam, lr: 1e-3}\n"
              "    wide: {type: adam, lr: 1e-3}\n"},
    {NULL, NULL},
};

const tn_model tn_model_deepfm = {
    .choice = {.name = "deepfm",
               .help = "DeepFM: factorization machine and MLP on shared embeddings",
               .fields = deepfm_fields,
               .size = sizeof(deepfm_opts),
               .impl = &tn_model_deepfm},
    .presets = presets,
    .write = deepfm_write,
};
