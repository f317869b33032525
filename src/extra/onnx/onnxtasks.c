/* onnxtasks.c - outputs of further tasks: "buy:logit", "buy:pctr", "buy:given", "watch:score". */
#include "extra/onnx/onnx.h"
#include "extra/onnx/onnxnodes.h"
#include "nn/op/ops.h"

/* Adds an output that is what operator `op` makes of `from`, and its name to the list. */
static const char *put_output(tn_onnx *o, const char *task, const char *what, const char *op,
                              const char *from)
{
    const char *name = tn_onnx_join(o, task, what);
    (void)tn_onnx_put(o, name, op, (const char *const[]){from}, 1, NULL);
    tn_text_adds(&o->outputs, name);
    tn_text_addc(&o->outputs, '\0');
    return name;
}

void tn_onnx_put_tasks(tn_onnx *o)
{
    for (uint32_t k = 0; k < o->m->n_tasks; k++) {
        const tn_onnx_task *t = &o->m->task[k];
        const char *score = put_output(o, t->name, t->is_click ? "logit" : "score", "Identity",
                                       tn_onnx_name(o, t->score));
        if (t->is_click) {
            (void)put_output(o, t->name, "pctr", "Sigmoid", score);
        }
        if (t->given != NULL) {
            (void)put_output(o, t->name, "given", "Sigmoid", tn_onnx_name(o, t->given));
        }
    }
}
