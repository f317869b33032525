/* calibrate.c - collects scores, fits a calibration and writes its file. */
#include "train/eval/calibrate.h"

#include "base/core/alloc.h"
#include "serve/calibration_file.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/ckptdir.h"
#include "train/checkpoint/run_state.h"
#include "train/config/data_checks.h"
#include "train/config/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

tn_status tn_calibrate_rows(const tn_run *run, const tn_strs *named, const char *checkpoint,
                            tn_arena *arena, tn_valid_rows *out, tn_error *err)
{
    const tn_data_opts *data = &run->data;
    tn_learned_days learned = {0};
    tn_text which = {0};
    tn_error why = {0};
    if (data->pattern.n > 0 && checkpoint != NULL) {
        tn_checkpoint_days_at(checkpoint, &learned);
    } else if (data->pattern.n > 0) {
        tn_checkpoint_days(run, &learned, NULL);
    }
    *out = (tn_valid_rows){.paths = *named};
    if (named->n == 0) {
        const tn_status found = tn_valid_rows_find(data, &learned, arena, out, &why);
        if (found != TN_OK && (data->pattern.n == 0 || data->next)) {
            return tn_fail(err, data->next ? found : TN_E_CONFIG,
                           "nothing to calibrate on: %s\nhint: '--data PATH' names rows that the "
                           "model was not trained on",
                           why.text);
        }
        out->paths = found == TN_OK ? out->paths : tn_days_all_paths(data, arena);
    }
    const bool trained = tn_data_is_trained(data, &learned, &out->paths, &which);
    const tn_status status =
        trained ? tn_fail(err, TN_E_USAGE,
                          "'--calibrate' needs rows that the model was not trained on, %s",
                          tn_text_str(&which))
                : TN_OK;
    tn_text_done(&which);
    return status;
}

tn_status tn_calibrate_open(tn_calibrate **out, const tn_calibrate_opts *opts, tn_error *err)
{
    TN_ASSERT(opts->method != TN_CALIBRATE_NONE);
    *out = NULL;
    tn_calibrate *c = tn_alloc(1, sizeof *c, "a calibration");
    c->opts = *opts;
    c->arena = tn_arena_new(1 << 12);
    tn_status status = tn_calibrator_new(&c->calibrator, opts->sampling, err);
    if (status != TN_OK) {
        tn_calibrate_free(c);
        return status;
    }
    *out = c;
    return TN_OK;
}

void tn_calibrate_free(tn_calibrate *c)
{
    if (c != NULL) {
        tn_calibrator_free(c->calibrator);
        tn_metrics_free(c->after);
        tn_arena_free(c->arena);
        tn_free(c);
    }
}

void tn_calibrate_clear(tn_calibrate *c)
{
    if (c != NULL && c->rows > 0) { /* else its bins are not even touched */
        tn_calibrator_clear(c->calibrator);
        tn_metrics_free(c->after);
        tn_arena_free(c->arena);
        c->arena = tn_arena_new(1 << 12);
        c->after = NULL;
        c->rows = 0;
        c->clicks = 0;
        c->map = (tn_calibration){0};
    }
}

void tn_calibrate_name(tn_calibrate *c, const char *name)
{
    TN_ASSERT(strlen(name) < sizeof c->name);
    memcpy(c->name, name, strlen(name) + 1);
}

tn_status tn_calibrate_sink(void *calibrate, const tn_scores *scores, tn_error *err)
{
    tn_calibrate *c = calibrate;
    const tn_batch *batch = scores->batch;
    (void)err;
    tn_calibrator_add(c->calibrator, &(tn_scored){.n = batch->rows,
                                                  .logit = scores->logit,
                                                  .label = batch->label,
                                                  .weight = batch->weight,
                                                  .unknown = scores->unknown});
    for (uint32_t i = 0; i < batch->rows; i++) {
        const bool counts = batch->weight == NULL || batch->weight[i] > 0;
        c->rows += counts ? 1 : 0;
        c->clicks += counts ? (double)batch->label[i] : 0;
    }
    return TN_OK;
}

tn_status tn_calibrate_fit(tn_calibrate *c, tn_error *err)
{
    if (c->after != NULL) {
        return TN_OK;
    }
    TN_TRY(c->opts.method == TN_CALIBRATE_ISOTONIC
               ? tn_calibrator_isotonic(c->calibrator, c->arena, &c->map, err)
               : tn_calibrator_platt(c->calibrator, c->opts.method, &c->map, err));
    return tn_calibrator_metrics(c->calibrator, &c->map, &c->after, err);
}

tn_status tn_calibrate_commit(tn_calibrate *c, const char *checkpoint, uint64_t step, tn_error *err)
{
    const char *name = c->name;
    const tn_strs named = {1, &name};
    TN_TRY(tn_calibrate_fit(c, err));
    tn_calibration_file file = {.step = step,
                                .sampling = c->opts.sampling,
                                .data = c->opts.data != NULL ? *c->opts.data : named,
                                .rows = c->rows,
                                .map = c->map};
    TN_TRY(tn_ckpt_model_id(checkpoint, file.model_id, err));
    const tn_output_with with = {.inputs = c->opts.inputs, .stop = c->opts.stop};
    tn_text text = {0};
    tn_status status = tn_document_write(&tn_calibration_document, &file, &text, err);
    if (status == TN_OK) {
        status = tn_output_put(c->opts.path, text.data, text.size, &with, err);
    }
    tn_text_done(&text);
    return status;
}

/* ---- what a run has left ---- */

void tn_calibration_put(const tn_calibration *map, tn_text *out)
{
    if (map->kind == TN_CALIBRATION_PLATT) {
        tn_text_addf(out, "p = sigmoid(%.6g z %c %.6g", map->a, map->b < 0 ? '-' : '+',
                     fabs(map->b));
        if (map->c != 0) {
            tn_text_addf(out, " %c %.6g m), m slots of keys not met in training",
                         map->c < 0 ? '-' : '+', fabs(map->c));
        } else {
            tn_text_adds(out, ")");
        }
    } else {
        tn_text_addf(out, "p linear between %u knots", map->n);
    }
}

/* "runs/a/calibration.json" of "runs/a/ckpt-3". */
static tn_status path_beside(const char *checkpoint, char out[TN_PATH_SIZE], tn_error *err)
{
    size_t size = strlen(checkpoint);
    while (size > 1 && checkpoint[size - 1] == '/') {
        size--;
    }
    while (size > 0 && checkpoint[size - 1] != '/') {
        size--;
    }
    while (size > 1 && checkpoint[size - 1] == '/') {
        size--;
    }
    char dir[TN_PATH_SIZE];
    (void)snprintf(dir, sizeof dir, "%.*s", (int)size, checkpoint);
    return tn_path_join(size > 0 ? dir : ".", TN_CALIBRATION_NAME, out, err);
}

/* TN_E_DATA: it is not there, damaged, or not what is wanted. */
static tn_status read_wanted(const tn_calibrate_wanted *wanted, const char *path, tn_arena *arena,
                             tn_calibration *out, tn_error *err)
{
    char id[33];
    tn_calibration_file file = {0};
    TN_TRY(tn_ckpt_model_id(wanted->checkpoint, id, err));
    const tn_calibrated_model model = {
        .id = id, .step = wanted->step, .sampling = wanted->sampling};
    TN_TRY(tn_calibration_file_read_for(&file, path, &model, arena, err));
    if (!tn_calibration_is_of(&file.map, wanted->method)) {
        return tn_fail(err, TN_E_DATA, "'%s' is %s, eval.calibrate is %s", path,
                       tn_calibration_name(&file.map), tn_calibrate_choices[wanted->method]);
    }
    *out = file.map;
    return TN_OK;
}

/* The map that a checkpoint was saved with, which is of its model, if it is what is wanted. */
static bool take_saved(const tn_calibrate_wanted *wanted, tn_arena *arena, tn_calibration *out)
{
    tn_manifest m = {0};
    tn_error why;
    if (tn_ckpt_read_manifest(wanted->checkpoint, arena, &m, &why) != TN_OK ||
        tn_run_sections_of(&m)->kept.export.calibration == NULL) {
        return false;
    }
    const tn_json *json = NULL;
    tn_calibration map = {0};
    const char *text = tn_run_sections_of(&m)->kept.export.calibration;
    const bool is_whole =
        tn_json_parse(&json, text, strlen(text), arena, "calibration", &why) == TN_OK &&
        tn_doc_get_rows(tn_calibration_rows, json, &map, arena, "calibration", &why) == TN_OK;
    const bool is_it = is_whole && tn_calibration_is_of(&map, wanted->method);
    *out = is_it ? map : (tn_calibration){0};
    return is_it;
}

tn_status tn_calibrate_find(const tn_calibrate_wanted *wanted, tn_arena *arena, tn_calibration *out,
                            tn_text *said, tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_error why = {0};
    *out = (tn_calibration){0};
    if (wanted->method == TN_CALIBRATE_NONE) {
        return TN_OK;
    }
    const bool any = wanted->method == TN_CALIBRATE_AUTO;
    TN_TRY(path_beside(wanted->checkpoint, path, err));
    tn_status status = read_wanted(wanted, path, arena, out, &why);
    if (status == TN_E_DATA && take_saved(wanted, arena, out)) {
        tn_text_adds(said, "calibrated: ");
        tn_calibration_put(out, said);
        return tn_text_check(said, "a sentence", err);
    }
    if (any && !tn_path_exists(path)) {
        return TN_OK;
    }
    if (status == TN_OK) {
        tn_text_addf(said, "calibrated by '%s': ", path);
        tn_calibration_put(out, said);
    } else if (status == TN_E_DATA) {
        why.text[strcspn(why.text, "\n")] = '\0';
        tn_text_addf(said,
                     "not calibrated: %s; 'tnet-eval CONFIG --calibrate %s --calibration-out "
                     "%s' makes one for this model",
                     why.text, tn_calibrate_words[any ? TN_CALIBRATE_PLATT : wanted->method], path);
    } else {
        return tn_fail(err, status, "%s", why.text);
    }
    return tn_text_check(said, "a sentence", err);
}
