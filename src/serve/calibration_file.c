/* calibration_file.c - writes and checks a calibration. */
#include "serve/calibration_file.h"

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

const tn_doc_row tn_calibration_rows[] = {TN_DOC_GROUP('{', tn_calibration_map_rows, "calibration"),
                                          TN_DOC_END};

/* ---- the file ---- */

static const tn_doc_row file_rows[] = {
    TN_DOC_ID(tn_calibration_file, model_id, 1, "model_id"),
    TN_DOC_U64(tn_calibration_file, step, 0, UINT64_MAX, "step"),
    TN_DOC_F64(tn_calibration_file, sampling, "negative_sampling"),
    TN_DOC_LIST(tn_calibration_file, data.n, data.item, const char *const *, '\0', tn_doc_str_items,
                UINT32_MAX, "data"),
    TN_DOC_COUNT(tn_calibration_file, rows, UINT64_MAX, "rows"),
    TN_DOC_OBJECT(tn_calibration_file, map, tn_calibration, '{', tn_calibration_map_rows,
                  "calibration"),
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
