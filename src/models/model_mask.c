/* model_mask.c - MaskNet (Wang 2021): blocks that multiply their input by a mask made of the row's
 * own vectors.
 *
 *     mask  = relu(x M1 + m1) M2 + m2      of the embeddings x, as wide as what it masks
 *     block = act(ln((mask * v) W))        without a bias, which the layer norm would hide
 *
 *     serial     v -- block 1 -- block 2 -- .. -- dense --> logit        every mask is made of x
 *     parallel   v --.-- block 1 --.
 *                    |-- block 2 --[ ]-- mlp -- dense --> logit
 *                    '-- ..      --'
 *
 * v is x or, as in the paper, x with the vector of each slot normalised (layer_norm per slot). That
 * makes rare keys, whose vectors are what they began as, as loud as others, so it must be asked
 * for.
 */
#include "config/field.h"
#include "config/tree.h"
#include "models/layerlist.h"
#include "models/model.h"
#include "nn/layer/layers.h"

typedef struct masknet_opts {
    tn_f64s hidden;
    uint32_t activation;
    double dropout;
    uint32_t structure; /* parallel serial */
    uint32_t blocks, block_units;
    double reduction;
    bool layer_norm, embedding_norm;
} masknet_opts;

enum { PARALLEL, SERIAL };
static const char *const structure_words[] = {"parallel", "serial", NULL};

static const tn_field masknet_fields[] = {
    TN_FIELD_F64S(masknet_opts, hidden, "[400, 400, 400]", 1, 65536,
                  "parallel: widths of the MLP behind the blocks; serial: of the blocks"),
    TN_FIELD_CHOICE(masknet_opts, activation, "relu", tn_activation_words,
                    "of blocks and hidden layers"),
    TN_FIELD_F64(masknet_opts, dropout, "0", 0, 0.999, "", "behind each block and hidden layer"),
    TN_FIELD_CHOICE(masknet_opts, structure, "parallel", structure_words,
                    "whether blocks stand beside or behind each other"),
    TN_FIELD_U32(masknet_opts, blocks, "3", 1, 64, "blocks", "masknet, parallel: how many"),
    TN_FIELD_U32(masknet_opts, block_units, "64", 1, 65536, "units",
                 "masknet, parallel: width of each block"),
    TN_FIELD_F64(masknet_opts, reduction, "2", 0.001, 100, "",
                 "masknet: hidden width of a mask by that of what it masks"),
    TN_FIELD_BOOL(masknet_opts, layer_norm, "true", "masknet: in each block"),
    TN_FIELD_BOOL(masknet_opts, embedding_norm, "false",
                  "masknet: normalise each slot's vector before the blocks"),
    TN_FIELD_END,
};

/* Parts that blocks are made of. */
typedef struct masking {
    const masknet_opts *o;
    const char *x; /* input of the masks */
} masking;

/* Adds block `i` over `v` of `cols` columns; returns the name of its last layer. */
static const char *write_block(tn_list_writer *w, const masking *m, uint32_t i, const char *v,
                               const uint32_t shape[2])
{
    const double inner = m->o->reduction * shape[0];
    const char *name = tn_list_text(w, "block.%u", i);
    const char *hidden = tn_list_text(w, "%s.mask.1", name);
    const char *mask = tn_list_text(w, "%s.mask", name);
    const char *masked = tn_list_text(w, "%s.masked", name);
    (void)tn_list_dense(w, hidden, m->x, inner < 1 ? 1 : (uint32_t)inner, "relu");
    (void)tn_list_dense(w, mask, hidden, shape[0], NULL);
    (void)tn_list_layer(w, masked, "mul", TN_NAMES(v, mask));
    tn_list_set(w, tn_list_dense(w, name, masked, shape[1], NULL), "bias", "false");
    const char *y = name;
    if (m->o->layer_norm) {
        y = tn_list_text(w, "%s.norm", name);
        (void)tn_list_layer(w, y, "layer_norm", TN_NAMES(name));
    }
    const tn_deep_opts tail = {.activation = m->o->activation, .dropout = m->o->dropout};
    return tn_write_tail(w, name, y, &tail);
}

/* Adds the values that blocks mask first. */
static const char *write_normed(tn_list_writer *w, const masknet_opts *o, const char *x)
{
    if (!o->embedding_norm) {
        return x;
    }
    tn_tree *norm = tn_list_layer(w, "norm", "layer_norm", TN_NAMES("deep"));
    tn_list_set(w, norm, "per_slot", "true");
    return tn_write_numbers(w, "v", "norm");
}

static void masknet_write(const tn_model_args *args, tn_list_writer *w)
{
    const masknet_opts *o = args->opts;
    const masking m = {.o = o, .x = tn_write_deep_input(w, args)};
    tn_deep_shape shape;
    if (!tn_layer_widths(&o->hidden, &w->list->at, w->diag) || !tn_find_deep_shape(w, &shape)) {
        return;
    }
    const char *v = write_normed(w, o, m.x);
    uint32_t cols = shape.cols;
    for (uint32_t i = 0; i < o->hidden.n && o->structure == SERIAL; i++) {
        const uint32_t units = (uint32_t)o->hidden.item[i];
        v = write_block(w, &m, i + 1, v, (const uint32_t[]){cols, units});
        cols = units;
    }
    if (o->structure == SERIAL) {
        tn_write_concat_head(w, TN_NAMES(v));
        return;
    }
    const char *block[65] = {NULL};
    for (uint32_t i = 0; i < o->blocks; i++) {
        block[i] = write_block(w, &m, i + 1, v, (const uint32_t[]){cols, o->block_units});
    }
    (void)tn_list_layer(w, "blocks", "concat", block);
    const tn_deep_opts mlp = {
        .hidden = o->hidden, .activation = o->activation, .dropout = o->dropout};
    tn_list_output(w, tn_write_mlp(w, &mlp, "blocks", 1));
}

static const tn_preset masknet_presets[] = {
    TN_BARS_CROSS("frappe",
                  "hidden: [400, 400, 400], dropout: 0.1, structure: parallel, blocks: 3, "
                  "block_units: 50, reduction: 2",
                  "0.1"),
    TN_BARS_CROSS("criteo",
                  "hidden: [400, 400, 400], dropout: 0.2, structure: serial, reduction: 0.2",
                  "1e-5"),
    TN_BARS_CROSS("avazu",
                  "hidden: [400, 400, 400], dropout: 0.4, structure: serial, reduction: 2, "
                  "embedding_norm: true",
                  "0.1"),
    TN_BARS_CROSS("movielens",
                  "hidden: [400, 400, 400], dropout: 0.5, structure: serial, reduction: 4",
                  "0.005"),
    {"tensornet", "model: {hidden: [512, 256, 256], bias_init: 0}\n" TN_TENSORNET_DEEP},
    {"paper", "model: {hidden: [400, 400, 400], structure: parallel, blocks: 5, reduction: 2,\n"
              "        embedding_norm: true}\n"
              "embedding: {dim: 10}\n" TN_PAPER_TRAIN("  batch: 1024\n", "type: adam, lr: 1e-4")},
    {NULL, NULL},
};

const tn_model tn_model_masknet = {
    TN_MODEL_MEMBERS(masknet, "MaskNet: blocks that mask their input by the row's own vectors")};
