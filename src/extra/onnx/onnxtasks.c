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

/* Adds the score, calibrated if the task has a map. */
static const char *put_score(tn_onnx *o, const tn_onnx_task *t)
{
    const char *what = t->is_click ? "logit" : "score";
    const char *from = tn_onnx_name(o, t->score);
    if (t->map.platt == NULL && t->map.n_knots == 0) {
        return put_output(o, t->name, what, "Identity", from);
    }
    tn_node *named = TN_NEW(o->arena, tn_node); /* nodes in between are named after the output */
    *named = *t->score;
    named->name = tn_onnx_join(o, t->name, what);
    o->y = named;
    o->steps = 0;
    tn_onnx_put_map(o, &t->map, from, named->name);
    tn_text_adds(&o->outputs, named->name);
    tn_text_addc(&o->outputs, '\0');
    return named->name;
}

void tn_onnx_put_tasks(tn_onnx *o)
{
    for (uint32_t k = 0; k < o->m->n_tasks; k++) {
        const tn_onnx_task *t = &o->m->task[k];
        const char *score = put_score(o, t);
        if (t->is_click) {
            (void)put_output(o, t->name, "pctr", "Sigmoid", score);
        }
        if (t->given != NULL) {
            (void)put_output(o, t->name, "given", "Sigmoid", tn_onnx_name(o, t->given));
        }
    }
}
