/* calibration_file.c - writes and checks a calibration. */
#include "serve/calibration_file.h"

#include "base/core/arena.h"
#include "base/file/file.h"

#include <math.h>
#include <string.h>

enum { FILE_BYTES_MAX = 8 << 20 };

/* ---- the map ---- */

static bool is_platt(const void *map)
{
    return ((const tn_calibration *)map)->kind == TN_CALIBRATION_PLATT;
}

static bool is_isotonic(const void *map)
{
    return ((const tn_calibration *)map)->kind == TN_CALIBRATION_ISOTONIC;
}

static const char *check_map(void *calibration)
{
    const tn_calibration *map = calibration;
    const tn_knot *knot = map->knot;
    if (is_platt(map)) {
        return map->a > 0 ? NULL : "a";
    }
    for (uint32_t i = 0; i < map->n; i++) {
        const bool rises = i == 0 || (knot[i].z > knot[i - 1].z && knot[i].p >= knot[i - 1].p);
        if (!rises || !(fabs(knot[i].z) <= TN_KNOT_MAX && knot[i].p >= 0 && knot[i].p <= 1)) {
            return "p"; /* or z of it */
        }
    }
    return map->n > 0 ? NULL : "kind";
}

static const tn_doc_row z_items[] = {TN_DOC_F64(tn_knot, z, "")};
static const tn_doc_row p_items[] = {TN_DOC_F64(tn_knot, p, "")};

const tn_doc_row tn_calibration_map_rows[] = {
    TN_DOC_WORD(tn_calibration, kind, tn_calibration_kind,
                ((const char *const[]){"", "platt", "isotonic", NULL}), "kind"),
    TN_DOC_F64(tn_calibration, a, "a", TN_DOC_IF(is_platt)),
    TN_DOC_F64(tn_calibration, b, "b", TN_DOC_IF(is_platt)),
    TN_DOC_F64(tn_calibration, c, "c", TN_DOC_MAY_MISS),
    TN_DOC_LIST(tn_calibration, n, knot, const tn_knot *, '\0', z_items, TN_KNOTS_MAX, "z",
                TN_DOC_IF(is_isotonic)),
    TN_DOC_LIST(tn_calibration, n, knot, const tn_knot *, '\0', p_items, TN_KNOTS_MAX, "p",
                TN_DOC_IF(is_isotonic), .beside = true),
    TN_DOC_CHECK(check_map),
    TN_DOC_END,
};

static const tn_doc_row task_rows[] = {
    TN_DOC_STR(tn_task_calibration, task, "name"),
    TN_DOC_OBJECT(tn_task_calibration, map, tn_calibration, '{', tn_calibration_map_rows,
                  "calibration"),
    TN_DOC_END,
};

static const char *check_maps(const tn_calibrations *maps)
{
    return maps->has_first || maps->n > 0 ? NULL : "calibration";
}

static const char *check_calibrations(void *maps)
{
    return check_maps(maps);
}

static const char *check_file(void *file)
{
    return check_maps(&((const tn_calibration_file *)file)->maps);
}

/* `m`: "", or the member of `t` that is a tn_calibrations, with a dot. */
#define MAPS_ROWS(t, m)                                                                            \
    TN_DOC_OBJECT(t, m first, tn_calibration, '{', tn_calibration_map_rows, "calibration",         \
                  TN_DOC_FLAG(t, m has_first)),                                                    \
        TN_DOC_LIST(t, m n, m more, const tn_task_calibration *, '{', task_rows, TN_TASKS_MAX,     \
                    "tasks", TN_DOC_MAY_MISS)

const tn_doc_row tn_calibration_rows[] = {MAPS_ROWS(tn_calibrations, ),
                                          TN_DOC_CHECK(check_calibrations), TN_DOC_END};

tn_calibrations tn_calibrations_of(const tn_calibration *map, const tn_tasks *tasks,
                                   tn_arena *arena)
{
    tn_calibrations maps = {.has_first = map[0].kind != TN_CALIBRATION_NONE, .first = map[0]};
    tn_task_calibration *more = TN_NEW_ARRAY(arena, tn_task_calibration, TN_TASKS_MAX);
    for (uint32_t k = 1; k < tn_tasks_count(tasks); k++) {
        if (map[k].kind != TN_CALIBRATION_NONE) {
            more[maps.n++] = (tn_task_calibration){tasks->task[k].name, map[k]};
        }
    }
    maps.more = more;
    return maps;
}

tn_status tn_calibrations_by_task(const tn_calibrations *maps, const tn_tasks *tasks,
                                  tn_calibration *out, tn_error *err)
{
    for (uint32_t k = 0; k < tn_tasks_count(tasks); k++) {
        out[k] = k == 0 && maps->has_first ? maps->first : (tn_calibration){0};
    }
    for (uint32_t i = 0; i < maps->n; i++) {
        const char *name = maps->more[i].task;
        const uint32_t k = tn_tasks_find(tasks, name, strlen(name));
        if (k == TN_NO_TASK || k == 0) {
            return tn_fail(err, TN_E_DATA, "it calibrates '%s', which is no further task", name);
        }
        out[k] = maps->more[i].map;
    }
    return TN_OK;
}

/* ---- the file ---- */

static const tn_doc_row file_rows[] = {
    TN_DOC_ID(tn_calibration_file, model_id, 1, "model_id"),
    TN_DOC_U64(tn_calibration_file, step, 0, UINT64_MAX, "step"),
    TN_DOC_F64(tn_calibration_file, sampling, "negative_sampling"),
    TN_DOC_LIST(tn_calibration_file, data.n, data.item, const char *const *, '\0', tn_doc_str_items,
                UINT32_MAX, "data"),
    TN_DOC_COUNT(tn_calibration_file, rows, UINT64_MAX, "rows"),
    MAPS_ROWS(tn_calibration_file, maps.),
    TN_DOC_CHECK(check_file),
    TN_DOC_END,
};

const tn_document tn_calibration_document = {
    .format = "tnet-calibration", .is = "a calibration", .newest = 1, .rows = file_rows};

tn_status tn_calibration_file_read(tn_calibration_file *out, const char *path, tn_arena *arena,
                                   tn_error *err)
{
    tn_text text = {0};
    tn_error why = {0};
    tn_calibration_file file = {0};
    if (!tn_path_exists(path)) {
        return tn_fail(err, TN_E_DATA,
                       "no calibration '%s'\nhint: 'tnet-eval CONFIG --calibrate platt' makes one",
                       path);
    }
    tn_status status = tn_file_read_all(path, FILE_BYTES_MAX, &text, err);
    if (status == TN_OK) {
        const tn_status read =
            tn_document_read(&tn_calibration_document, &file, &text, arena, path, &why);
        status = read == TN_OK
                     ? TN_OK
                     : tn_fail(err, read == TN_E_MEMORY ? read : TN_E_DATA, "%s", why.text);
    }
    tn_text_done(&text);
    if (status == TN_OK) {
        *out = file;
    }
    return status;
}

tn_status tn_calibration_file_read_for(tn_calibration_file *out, const char *path,
                                       const tn_calibrated_model *model, tn_arena *arena,
                                       tn_error *err)
{
    tn_calibration_file file = {0};
    TN_TRY(tn_calibration_file_read(&file, path, arena, err));
    if (strcmp(file.model_id, model->id) != 0 || file.step != model->step) {
        return tn_fail(err, TN_E_DATA,
                       "'%s' calibrates model %s of step %llu, not %s of step %llu\nhint: "
                       "'tnet-eval CONFIG --calibrate ..' fits one for this model",
                       path, file.model_id, (unsigned long long)file.step, model->id,
                       (unsigned long long)model->step);
    }
    if (file.sampling != model->sampling) {
        return tn_fail(err, TN_E_DATA,
                       "'%s' was fitted with data.negative_sampling %g, this run has %g", path,
                       file.sampling, model->sampling);
    }
    *out = file;
    return TN_OK;
}
