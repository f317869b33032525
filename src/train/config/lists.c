/* lists.c - walks each .def list. */
#include "train/config/lists.h"

#include "config/field.h"
#include "io/format/format.h"
#include "metrics/metrics.h"
#include "models/model.h"
#include "nn/layer/layers.h"
#include "nn/loss/loss.h"
#include "nn/op/ops.h"
#include "ps/optim/optim.h"

static void line(tn_text *out, const char *name, const char *help)
{
    tn_text_addf(out, "%-20s %s\n", name, help);
}

static void options_of(tn_text *out, const tn_field *fields)
{
    if (fields != NULL) {
        tn_fields_help(out, fields);
    }
}

static void list_models(tn_text *out)
{
    for (const tn_model *const *m = tn_all_models; *m != NULL; m++) {
        line(out, (*m)->choice.name, (*m)->choice.help);
        for (const tn_preset *p = (*m)->presets; p != NULL && p->name != NULL; p++) {
            tn_text_addf(out, "    preset: %s\n", p->name);
        }
        options_of(out, (*m)->choice.fields);
    }
}

static void list_layers(tn_text *out)
{
    for (const tn_layer *const *l = tn_all_layers; *l != NULL; l++) {
        line(out, (*l)->name, (*l)->help);
        options_of(out, (*l)->fields);
    }
}

static void list_optimizers(tn_text *out)
{
    for (const tn_optim *const *o = tn_all_optims; *o != NULL; o++) {
        line(out, (*o)->choice.name, (*o)->choice.help);
        options_of(out, (*o)->choice.fields);
    }
}

static void list_ops(tn_text *out)
{
    for (const tn_op *const *op = tn_all_ops; *op != NULL; op++) {
        line(out, (*op)->name, (*op)->formula);
    }
}

static void list_losses(tn_text *out)
{
    for (const tn_choice *const *c = tn_loss_choices; *c != NULL; c++) {
        const tn_loss *loss = (*c)->impl;
        line(out, (*c)->name, (*c)->help);
        tn_text_addf(out, "    target: %s, watched: %s%s\n", tn_target_words[loss->target],
                     loss->watched, loss->corrects_sampling ? ", data.negative_sampling" : "");
        options_of(out, (*c)->fields);
    }
}

static void list_formats(tn_text *out)
{
    for (const tn_format *const *f = tn_all_formats; *f != NULL; f++) {
        line(out, (*f)->name, (*f)->help);
    }
}

static void list_metrics(tn_text *out)
{
    for (const tn_metric *const *m = tn_all_metrics; *m != NULL; m++) {
        line(out, (*m)->name, (*m)->help);
    }
}

bool tn_lists_text(const tn_lists *flags, tn_text *out)
{
    const struct {
        bool asked;
        void (*list)(tn_text *);
    } lists[] = {
        {flags->models, list_models},   {flags->layers, list_layers},
        {flags->ops, list_ops},         {flags->optimizers, list_optimizers},
        {flags->formats, list_formats}, {flags->metrics, list_metrics},
        {flags->losses, list_losses},
    };
    bool any = false;
    for (uint32_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (lists[i].asked) {
            lists[i].list(out);
            any = true;
        }
    }
    return any;
}
