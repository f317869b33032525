/* lists.c - see lists.h. Every list is a walk over a .def. */
#include "cli/lists.h"

#include "base/fieldtext.h"
#include "io/format.h"
#include "models/model.h"
#include "nn/ops.h"
#include "ps/optim.h"
#include "train/metrics.h"

#include <stdio.h>

static void line(const char *name, const char *help)
{
    (void)printf("%-20s %s\n", name, help);
}

static void options_of(const tn_field *fields)
{
    tn_text text = {0};
    if (fields != NULL) {
        tn_fields_help(&text, fields);
    }
    (void)fputs(tn_text_str(&text), stdout);
    tn_text_done(&text);
}

static void list_models(void)
{
    for (const tn_model *const *m = tn_all_models; *m != NULL; m++) {
        line((*m)->choice.name, (*m)->choice.help);
        for (const tn_preset *p = (*m)->presets; p != NULL && p->name != NULL; p++) {
            (void)printf("    preset: %s\n", p->name);
        }
        options_of((*m)->choice.fields);
    }
}

static void list_layers(void)
{
    for (const tn_layer *const *l = tn_all_layers; *l != NULL; l++) {
        line((*l)->name, (*l)->help);
        options_of((*l)->fields);
    }
}

static void list_optimizers(void)
{
    for (const tn_optim *const *o = tn_all_optims; *o != NULL; o++) {
        line((*o)->choice.name, (*o)->choice.help);
        options_of((*o)->choice.fields);
    }
}

static void list_ops(void)
{
    for (const tn_op *const *op = tn_all_ops; *op != NULL; op++) {
        line((*op)->name, (*op)->formula);
    }
}

static void list_formats(void)
{
    for (const tn_format *const *f = tn_all_formats; *f != NULL; f++) {
        line((*f)->name, (*f)->help);
    }
}

static void list_metrics(void)
{
    for (const tn_metric *const *m = tn_all_metrics; *m != NULL; m++) {
        line((*m)->name, (*m)->help);
    }
}

bool tn_lists_answer(const tn_lists *flags)
{
    const struct {
        bool asked;
        void (*print)(void);
    } lists[] = {
        {flags->models, list_models},   {flags->layers, list_layers},
        {flags->ops, list_ops},         {flags->optimizers, list_optimizers},
        {flags->formats, list_formats}, {flags->metrics, list_metrics},
    };
    bool any = false;
    for (uint32_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (lists[i].asked) {
            lists[i].print();
            any = true;
        }
    }
    return any;
}
