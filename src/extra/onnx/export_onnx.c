/* export_onnx.c - graph.onnx of an export: the graph that libtnet runs, for other programs. */
#include "base/core/arena.h"
#include "base/core/text.h"
#include "extra/onnx/onnx.h"
#include "metrics/calibrator.h"
#include "train/config/export_files.h"
#include "train/export/exportjson.h"

static tn_onnx_map map_of(const tn_calibration *map, tn_arena *arena)
{
    tn_onnx_knot *knot = TN_NEW_ARRAY(arena, tn_onnx_knot, map->n);
    double *by = TN_NEW_ARRAY(arena, double, 3);
    for (uint32_t i = 0; i < map->n; i++) {
        knot[i] = (tn_onnx_knot){map->knot[i].z, map->knot[i].p};
    }
    by[0] = map->a;
    by[1] = map->b;
    by[2] = map->c;
    return (tn_onnx_map){.platt = map->kind == TN_CALIBRATION_PLATT ? by : NULL,
                         .knot = knot,
                         .n_knots = map->kind == TN_CALIBRATION_ISOTONIC ? map->n : 0};
}

/* Tasks after the first, whose nodes have names in the export. */
static const tn_onnx_task *onnx_tasks(const tn_export_graph *x, const tn_calibration *map,
                                      tn_arena *arena)
{
    tn_onnx_task *task = TN_NEW_ARRAY(arena, tn_onnx_task, (size_t)x->n_tasks + 1);
    for (uint32_t k = 1; k < x->n_tasks; k++) {
        const tn_model_task *t = &x->task[k];
        task[k - 1] =
            (tn_onnx_task){.name = t->name,
                           .is_click = t->target == TN_TARGET_CLICK,
                           .score = tn_graph_find(x->g, t->score),
                           .given = t->given != NULL ? tn_graph_find(x->g, t->given) : NULL,
                           .map = map_of(&map[k], arena)};
    }
    return task;
}

static tn_status make_onnx(const tn_export_model *m, tn_text *out, tn_error *err)
{
    tn_text inputs = {0};
    tn_export_inputs_json(&inputs, m->graph);
    const tn_onnx_meta meta[] = {{"tnet.model_id", m->model_id},
                                 {"tnet.inputs", tn_text_str(&inputs)},
                                 {"tnet.version", TN_VERSION}};
    const tn_onnx_model how = {.logit = m->graph->logit,
                               .pctr = m->graph->pctr,
                               .map = map_of(&m->calibration[0], m->arena),
                               .unknown_max = TN_UNKNOWN_MAX,
                               .logit_max = TN_LEVEL_LOGIT_MAX,
                               .task = onnx_tasks(m->graph, m->calibration, m->arena),
                               .n_tasks = m->graph->n_tasks > 0 ? m->graph->n_tasks - 1 : 0,
                               .version = TN_VERSION,
                               .meta = meta,
                               .n_meta = 3};
    tn_status status = tn_text_check(&inputs, "graph.onnx", err);
    status = status == TN_OK ? tn_graph_onnx(m->graph->g, &how, out, err) : status;
    tn_text_done(&inputs);
    return status;
}

extern const tn_export_file tn_export_file_onnx;
const tn_export_file tn_export_file_onnx = {
    .word = "onnx", .name = "graph.onnx", .make = make_onnx};
