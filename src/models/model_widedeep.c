/* model_widedeep.c - Wide & Deep (Cheng 2016).
 *
 *     wide ------------- sum --.                 wide -----------.
 *                              +--> logit                        [ ] -- dense --> logit
 *     deep, num -- mlp ------- '                 deep, num -- mlp'
 *              head: sum                                  head: concat
 */
#include "models/model.h"
#include "models/presets.h"

static const tn_field widedeep_fields[] = {
    TN_DEEP_FIELDS(tn_deep_opts, "[400, 400, 400]"),
    TN_HEAD_FIELD(tn_deep_opts),
    TN_FIELD_END,
};

static void widedeep_write(const tn_model_args *args, tn_list_writer *w)
{
    const tn_deep_opts *o = args->opts;
    tn_write_wide_input(w, args);
    const char *x = tn_write_deep_input(w, args);
    if (o->head == TN_HEAD_CONCAT) {
        const char *deep = tn_write_mlp(w, o, x, 0);
        tn_write_concat_head(w, (const char *const[]){deep, "wide", NULL});
        return;
    }
    (void)tn_list_layer(w, "wide.sum", "sum", (const char *const[]){"wide", NULL});
    const char *deep = tn_write_mlp(w, o, x, 1);
    (void)tn_list_layer(w, "logit", "add", (const char *const[]){"wide.sum", deep, NULL});
    tn_list_output(w, "logit");
}

static const tn_preset presets[] = {
    {"bars", "model: {hidden: [400, 400, 400], batch_norm: true, dropout: 0.6, head: sum,\n"
             "        init: xavier_normal, wide_init: {normal: [0, 1e-4]}, bias_init: "
             "0}\n" TN_BARS_EMBEDDING TN_BARS_TRAIN TN_BARS_ROWS("deep", "0.1")
                 TN_BARS_ROWS("wide", "0.1") TN_BARS_STOP},
    {"tensornet",
     "model: {hidden: [512, 256, 256], head: concat}\n" TN_TENSORNET_EMBEDDING TN_TENSORNET_TRAIN
         TN_TENSORNET_ROWS("deep") TN_TENSORNET_ROWS("wide")},
    {"paper", "model: {hidden: [1024, 512, 256], head: sum}\n"
              "embedding: {dim: 32}\n"
              "train:\n"
              "  optimizer: {type: adagrad, lr: 0.01}\n"
              "  sparse:\n"
              "    deep: {type: adagrad, lr: 0.01}\n"
              "    wide: {type: ftrl, alpha: 0.1, beta: 1, l1: 1, l2: 0}\n"},
    {NULL, NULL},
};

const tn_model tn_model_widedeep = {
    .choice = {.name = "widedeep",
               .help = "Wide & Deep: linear weights beside an MLP on embeddings",
               .fields = widedeep_fields,
               .size = sizeof(tn_deep_opts),
               .impl = &tn_model_widedeep},
    .presets = presets,
    .write = widedeep_write,
};
