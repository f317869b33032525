/* model_dcn.c - Deep & Cross Network (Wang 2017), and DCN v2 (Wang 2021), whose cross layers have a
 * matrix each, full or of low rank.
 *
 *     dcn                [deep, num] --.-- cross x layers --.
 *                                      '-- mlp -------------[ ] -- dense --> logit
 *
 *     dcnv2 parallel     [cross(x), mlp(x)] -- dense --> logit
 *     stacked            mlp(cross(x)) ------- dense --> logit
 *     cross_only         cross(x) ------------ dense --> logit
 */
#include "models/model.h"
#include "models/presets.h"

typedef struct dcn_opts {
    tn_f64s hidden;
    uint32_t activation;
    double dropout;
    bool batch_norm;
    uint32_t layers;
} dcn_opts;

static const tn_field dcn_fields[] = {
    TN_DEEP_FIELDS(dcn_opts, "[400, 400, 400]"),
    TN_FIELD_U32(dcn_opts, layers, "3", 1, 64, "layers", "cross layers"),
    TN_FIELD_END,
};

static void dcn_write(const tn_model_args *args, tn_list_writer *w)
{
    const dcn_opts *o = args->opts;
    tn_deep_opts deep_opts = {o->hidden, o->activation, o->dropout, o->batch_norm, TN_HEAD_CONCAT};
    const char *x = tn_write_deep_input(w, args);
    tn_tree *cross = tn_list_layer(w, "cross", "cross", (const char *const[]){x, NULL});
    tn_list_set(w, cross, "layers", "%u", o->layers);
    const char *deep = tn_write_mlp(w, &deep_opts, x, 0);
    tn_write_concat_head(w, (const char *const[]){"cross", deep, NULL});
}

static const tn_preset dcn_presets[] = {
    {"bars", "model: {hidden: [400, 400, 400], batch_norm: true, dropout: 0.2, layers: 3,\n"
             "        init: xavier_normal, bias_init: 0}\n" TN_BARS_EMBEDDING TN_BARS_TRAIN
                 TN_BARS_ROWS("deep", "0.05") TN_BARS_STOP},
    {"tensornet",
     "model: {hidden: [512, 256, 256], layers: 3}\n" TN_TENSORNET_EMBEDDING TN_TENSORNET_TRAIN
         TN_TENSORNET_ROWS("deep")},
    {"paper", "model: {hidden: [1024, 1024], layers: 6, batch_norm: true}\n"
              "embedding: {dim: 16}\n"
              "train:\n"
              "  batch: 512\n"
              "  optimizer: {type: adam, lr: 1e-4}\n"
              "  sparse: {deep: {type: adam, lr: 1e-4}}\n"
              "  clip: {global: 100}\n"},
    {NULL, NULL},
};

const tn_model tn_model_dcn = {
    .choice = {.name = "dcn",
               .help = "Deep & Cross Network",
               .fields = dcn_fields,
               .size = sizeof(dcn_opts),
               .impl = &tn_model_dcn},
    .presets = dcn_presets,
    .write = dcn_write,
};

/* ---- DCN v2 ---- */

typedef struct dcnv2_opts {
    tn_f64s hidden;
    uint32_t activation;
    double dropout;
    bool batch_norm;
    uint32_t layers;
    uint32_t rank;
    uint32_t structure;
} dcnv2_opts;

enum { PARALLEL, STACKED, CROSS_ONLY };
static const char *const structure_words[] = {"parallel", "stacked", "cross_only", NULL};

static const tn_field dcnv2_fields[] = {
    TN_DEEP_FIELDS(dcnv2_opts, "[400, 400, 400]"),
    TN_FIELD_U32(dcnv2_opts, layers, "3", 1, 64, "layers", "cross layers"),
    TN_FIELD_U32(dcnv2_opts, rank, "0", 0, 65536, "", "of the cross matrices; 0: full"),
    TN_FIELD_CHOICE(dcnv2_opts, structure, "parallel", structure_words, "how cross and MLP join"),
    TN_FIELD_END,
};

static void dcnv2_write(const tn_model_args *args, tn_list_writer *w)
{
    const dcnv2_opts *o = args->opts;
    tn_deep_opts deep_opts = {o->hidden, o->activation, o->dropout, o->batch_norm, TN_HEAD_CONCAT};
    const char *x = tn_write_deep_input(w, args);
    tn_tree *cross = tn_list_layer(w, "cross", "cross_v2", (const char *const[]){x, NULL});
    tn_list_set(w, cross, "layers", "%u", o->layers);
    if (o->rank > 0) {
        tn_list_set(w, cross, "rank", "%u", o->rank);
    }
    const char *last[3] = {"cross", NULL, NULL};
    if (o->structure == PARALLEL) {
        last[1] = tn_write_mlp(w, &deep_opts, x, 0);
    } else if (o->structure == STACKED) {
        last[0] = tn_write_mlp(w, &deep_opts, "cross", 0);
    }
    tn_write_concat_head(w, last);
}

static const tn_preset dcnv2_presets[] = {
    {"bars",
     "model: {hidden: [400, 400, 400], batch_norm: true, dropout: 0.4, layers: 4, rank: 0,\n"
     "        structure: parallel, init: xavier_normal, bias_init: 0}\n" TN_BARS_EMBEDDING
         TN_BARS_TRAIN TN_BARS_ROWS("deep", "0.05") TN_BARS_STOP},
    {"tensornet",
     "model: {hidden: [512, 256, 256], layers: 3}\n" TN_TENSORNET_EMBEDDING TN_TENSORNET_TRAIN
         TN_TENSORNET_ROWS("deep")},
    {"paper", "model: {hidden: [768, 768], layers: 2, structure: stacked}\n"
              "embedding: {dim: 39}\n"
              "train:\n"
              "  batch: 512\n"
              "  optimizer: {type: adam, lr: 1e-4}\n"
              "  sparse: {deep: {type: adam, lr: 1e-4}}\n"
              "  clip: {global: 10}\n"},
    {NULL, NULL},
};

const tn_model tn_model_dcnv2 = {
    .choice = {.name = "dcnv2",
               .help = "DCN v2: cross layers with a matrix each",
               .fields = dcnv2_fields,
               .size = sizeof(dcnv2_opts),
               .impl = &tn_model_dcnv2},
    .presets = dcnv2_presets,
    .write = dcnv2_write,
};
