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
#include "models/presets.h"

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
        tn_write_concat_head(w, (const char *const[]){"wide", "fm", deep, NULL});
        return;
    }
    (void)tn_list_layer(w, "wide.sum", "sum", (const char *const[]){"wide", NULL});
    const char *deep = tn_write_mlp(w, &mlp, x, 1);
    (void)tn_list_layer(w, "logit", "add", (const char *const[]){"wide.sum", "fm", deep, NULL});
    tn_list_output(w, "logit");
}

static const tn_preset presets[] = {
    {"bars", "model: {hidden: [400, 400, 400], batch_norm: true, dropout: 0.2, head: sum,\n"
             "        init: xavier_normal, wide_init: {normal: [0, 1e-4]}, bias_init: "
             "0}\n" TN_BARS_EMBEDDING TN_BARS_TRAIN TN_BARS_ROWS("deep", "0.05")
                 TN_BARS_ROWS("wide", "0.05") TN_BARS_STOP},
    {"tensornet",
     "model: {hidden: [512, 256, 256], head: concat}\n" TN_TENSORNET_EMBEDDING TN_TENSORNET_TRAIN
         TN_TENSORNET_ROWS("deep") TN_TENSORNET_ROWS("wide")},
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
