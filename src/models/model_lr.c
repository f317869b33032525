/* model_lr.c - logistic regression: z = b + sum of the wide weights. */
#include "models/model.h"

extern const tn_model tn_model_lr;

static void lr_write(const tn_model_args *args, tn_list_writer *w)
{
    tn_write_wide_input(w, args);
    (void)tn_list_layer(w, "wide.sum", "sum", (const char *const[]){"wide", NULL});
    tn_tree *logit = tn_list_layer(w, "logit", "bias", (const char *const[]){"wide.sum", NULL});
    tn_list_set(w, logit, "param", "bias");
    tn_list_output(w, "logit");
}

static const tn_preset presets[] = {
    {"bars", "model: {wide_init: {normal: [0, 1e-4]}, bias_init: 0}\n"
             "train:\n"
             "  batch: 4096\n"
             "  optimizer: {type: adam, lr: 1e-3}\n"
             "  sparse: {wide: {type: adam, lr: 1e-3, bias: global, l2: 1e-5, l2_mode: dense}}\n"
             "  clip: {global: 10}\n"
             "  stop: {monitor: valid.auc, patience: 2, min_delta: 1e-6, restore: best}\n"
             "  reduce_on_plateau: {factor: 0.1, patience: 1, min_lr: 1e-6}\n"},
    {"tensornet", "train:\n"
                  "  batch: 32\n"
                  "  sparse: {wide: {type: adagrad, rowwise: true, lr: 0.01, n0: 0.1}}\n"
                  "  optimizer: {type: adam, lr: 1e-3}\n"},
    {"paper", "train:\n"
              "  sparse: {wide: {type: ftrl, alpha: 0.05, beta: 1, l1: 1, l2: 0}}\n"},
    {NULL, NULL},
};

const tn_model tn_model_lr = {
    .choice = {.name = "lr", .help = "logistic regression", .impl = &tn_model_lr},
    .presets = presets,
    .write = lr_write,
};
