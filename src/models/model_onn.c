/* model_onn.c - ONN (Yang 2019), also known as NFFM: an MLP over the pairs of a field-aware
 * factorization machine.
 *
 *     deep, num ----------------.
 *     pairs ------- ffm_inner --[ ]-- mlp --> logit
 *
 * A value has a vector for each thing that is done with it: one that the MLP reads as it is (deep),
 * and one for the product with each other slot (pairs).
 */
#include "base/keys/keyspace.h"
#include "config/field.h"
#include "config/tree.h"
#include "models/model.h"
#include "nn/layer/layers.h"

typedef struct onn_opts {
    tn_deep_opts deep;
    uint32_t k;
} onn_opts;

static const tn_field onn_fields[] = {
    TN_DEEP_FIELDS(tn_deep_opts, "[400, 400, 400]"),
    TN_FIELD_U32(onn_opts, k, "4", 1, TN_DIM_MAX, "",
                 "onn: width of a slot's vector for one other slot"),
    TN_FIELD_END,
};

static void onn_write(const tn_model_args *args, tn_list_writer *w)
{
    const onn_opts *o = args->opts;
    const char *x = tn_write_deep_input(w, args);
    tn_write_field_vectors(w, args, "pairs", o->k);
    (void)tn_list_layer(w, "products", "ffm_inner", TN_NAMES("pairs"));
    (void)tn_list_layer(w, "z", "concat", TN_NAMES(x, "products"));
    tn_list_output(w, tn_write_mlp(w, &o->deep, "z", 1));
}

#define ONN_TRAIN(batch, rule)                                                                     \
    "train:\n" batch "  optimizer: {" rule "}\n"                                                   \
    "  sparse: {deep: {" rule "}, pairs: {" rule "}}\n"

/* The benchmark has no onn on its small sets: its recipe with the sizes of ipnn. */
static const tn_preset onn_presets[] = {
    {"bars-frappe", "model: {hidden: [400, 400, 400], dropout: 0.3, k: 2, init: xavier_normal, "
                    "bias_init: 0}\n" TN_BARS_EMBEDDING TN_BARS_TRAIN TN_BARS_ROWS("deep", "0.05")
                        TN_BARS_ROWS("pairs", "0.05") TN_BARS_STOP},
    {"tensornet",
     "model: {hidden: [512, 256, 256], bias_init: 0}\n" TN_TENSORNET_DEEP TN_TENSORNET_ROWS(
         "pairs")},
    {"paper", "model: {hidden: [400, 400, 400], k: 10, batch_norm: true}\n"
              "embedding: {dim: 10}\n" ONN_TRAIN("", "type: adam, lr: 1e-3")},
    {NULL, NULL},
};

const tn_model tn_model_onn = {
    TN_MODEL_MEMBERS(onn, "ONN: an MLP over vectors and field-aware products of pairs")};
