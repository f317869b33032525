/* calibration_file.c - writes and checks a calibration. */
#include "serve/calibration_file.h"

#include "base/codec/json.h"
#include "base/file/file.h"

#include <math.h>
#include <string.h>

enum { FILE_BYTES_MAX = 8 << 20, ID_DIGITS = 32 };

static const char format[] = "tnet-calibration";

/* ---- the map ---- */

void tn_calibration_json(tn_text *out, const tn_calibration *map)
{
    TN_ASSERT(map->kind != TN_CALIBRATION_NONE);
    tn_json_open_key(out, "calibration", '{');
    tn_json_str(out, "kind", tn_calibration_name(map));
    if (map->kind == TN_CALIBRATION_PLATT) {
        tn_json_f64(out, "a", map->a);
        tn_json_f64(out, "b", map->b);
        if (map->c != 0) {
            tn_json_f64(out, "c", map->c);
        }
    } else {
        tn_json_open_key(out, "z", '[');
        for (uint32_t i = 0; i < map->n; i++) {
            tn_json_f64(out, NULL, map->knot[i].z);
        }
        tn_json_close(out, ']');
        tn_json_open_key(out, "p", '[');
        for (uint32_t i = 0; i < map->n; i++) {
            tn_json_f64(out, NULL, map->knot[i].p);
        }
        tn_json_close(out, ']');
    }
    tn_json_close(out, '}');
}

static bool is_number(const tn_json *value, double *out)
{
    return tn_json_as_f64(value, out) && isfinite(*out);
}

static bool read_knots(const tn_json *value, tn_arena *arena, tn_calibration *out)
{
    const tn_json *z = tn_json_get(value, "z");
    const tn_json *p = tn_json_get(value, "p");
    if (z == NULL || p == NULL || z->kind != TN_JSON_LIST || p->kind != TN_JSON_LIST ||
        z->n != p->n || z->n == 0 || z->n > TN_KNOTS_MAX) {
        return false;
    }
    tn_knot *knot = TN_NEW_ARRAY(arena, tn_knot, z->n);
    z = z->first;
    p = p->first;
    for (uint32_t i = 0; z != NULL; i++, z = z->next, p = p->next) {
        bool rises = is_number(z, &knot[i].z) && fabs(knot[i].z) <= TN_KNOT_MAX &&
                     is_number(p, &knot[i].p) && knot[i].p >= 0 && knot[i].p <= 1 &&
                     (i == 0 || (knot[i].z > knot[i - 1].z && knot[i].p >= knot[i - 1].p));
        if (!rises) {
            return false;
        }
        out->n = i + 1;
    }
    out->knot = knot;
    return true;
}

bool tn_calibration_of_json(const tn_json *value, tn_arena *arena, tn_calibration *out)
{
    const char *kind = tn_json_as_str(tn_json_get(value, "kind"));
    const tn_json *c = tn_json_get(value, "c");
    tn_calibration map = {0};
    if (kind != NULL && strcmp(kind, "platt") == 0) {
        map.kind = TN_CALIBRATION_PLATT;
        if (!is_number(tn_json_get(value, "a"), &map.a) ||
            !is_number(tn_json_get(value, "b"), &map.b) || !(map.a > 0) ||
            (c != NULL && !is_number(c, &map.c))) {
            return false;
        }
    } else if (kind != NULL && strcmp(kind, "isotonic") == 0) {
        map.kind = TN_CALIBRATION_ISOTONIC;
        if (!read_knots(value, arena, &map)) {
            return false;
        }
    } else {
        return false;
    }
    *out = map;
    return true;
}

/* ---- the file ---- */

void tn_calibration_file_json(tn_text *out, const tn_calibration_file *file)
{
    tn_json_open(out, '{');
    tn_json_str(out, "format", format);
    tn_json_raw(out, "version", "[1,0]");
    tn_json_str(out, "model_id", file->model_id);
    tn_json_u64(out, "step", file->step);
    tn_json_f64(out, "negative_sampling", file->sampling);
    tn_json_open_key(out, "data", '[');
    for (uint32_t i = 0; i < file->data.n; i++) {
        tn_json_str(out, NULL, file->data.item[i]);
    }
    tn_json_close(out, ']');
    tn_json_count(out, "rows", file->rows);
    tn_calibration_json(out, &file->map);
    tn_json_close_with_crc(out);
}

static bool take(const tn_json *doc, tn_arena *arena, tn_calibration_file *out)
{
    const char *is = tn_json_as_str(tn_json_get(doc, "format"));
    const char *id = tn_json_as_str(tn_json_get(doc, "model_id"));
    uint64_t major = 0;
    if (is == NULL || strcmp(is, format) != 0 || id == NULL || strlen(id) != ID_DIGITS ||
        !tn_json_as_u64(tn_json_item(tn_json_get(doc, "version"), 0), &major) || major != 1) {
        return false;
    }
    memcpy(out->model_id, id, ID_DIGITS + 1);
    return tn_json_as_u64(tn_json_get(doc, "step"), &out->step) &&
           tn_json_as_u64(tn_json_get(doc, "rows"), &out->rows) &&
           is_number(tn_json_get(doc, "negative_sampling"), &out->sampling) &&
           tn_calibration_of_json(tn_json_get(doc, "calibration"), arena, &out->map);
}

tn_status tn_calibration_file_read(tn_calibration_file *out, const char *path, tn_arena *arena,
                                   tn_error *err)
{
    tn_text text = {0};
    const tn_json *doc = NULL;
    tn_calibration_file file = {0};
    if (!tn_path_exists(path)) {
        return tn_fail(err, TN_E_DATA,
                       "no calibration '%s'\nhint: 'tnet-eval CONFIG --calibrate platt' makes one",
                       path);
    }
    tn_status status = tn_file_read_all(path, FILE_BYTES_MAX, &text, err);
    if (status == TN_OK) {
        const char *json = tn_text_str(&text);
        bool good = tn_json_check_crc(json, text.size, path, NULL) == TN_OK &&
                    tn_json_parse(&doc, json, text.size, arena, path, NULL) == TN_OK &&
                    take(doc, arena, &file);
        status =
            good ? TN_OK
                 : tn_fail(err, TN_E_DATA, "'%s' is damaged, or no %s of version 1", path, format);
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
