/* calibrate.c - collects scores, fits a calibration and writes its file. */
#include "train/eval/calibrate.h"

#include "base/core/alloc.h"
#include "ps/snapshot/manifest.h"
#include "serve/calibration_file.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/ckptdir.h"
#include "train/config/data_checks.h"
#include "train/config/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

tn_status tn_calibrate_check_rows(const tn_run *run, const tn_strs *named, tn_error *err)
{
    const tn_data_opts *data = &run->data;
    const tn_strs *paths = named->n > 0 ? named : &data->valid;
    if (paths->n == 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "nothing to calibrate on: data.valid is not set\nhint: '--data PATH' names "
                       "rows that the model was not trained on");
    }
    tn_text which = {0};
    tn_manifest_days learned = {0};
    if (data->pattern.n > 0) {
        tn_checkpoint_days(run, &learned, NULL);
    }
    const bool trained = tn_data_is_trained(data, &learned, paths, &which);
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
    TN_ASSERT(opts->method != TN_CALIBRATE_NONE && opts->method != TN_CALIBRATE_AUTO);
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
    TN_ASSERT(c->after == NULL);
    const bool smoothed = c->opts.method == TN_CALIBRATE_PLATT_SMOOTHED;
    TN_TRY(c->opts.method == TN_CALIBRATE_ISOTONIC
               ? tn_calibrator_isotonic(c->calibrator, c->arena, &c->map, err)
               : tn_calibrator_platt(c->calibrator, smoothed, &c->map, err));
    return tn_calibrator_metrics(c->calibrator, &c->map, &c->after, err);
}

tn_status tn_calibrate_commit(tn_calibrate *c, const char *checkpoint, uint64_t step, tn_error *err)
{
    TN_TRY(c->after == NULL ? tn_calibrate_fit(c, err) : TN_OK);
    tn_calibration_file file = {.step = step,
                                .sampling = c->opts.sampling,
                                .data = *c->opts.data,
                                .rows = c->rows,
                                .map = c->map};
    TN_TRY(tn_ckpt_model_id(checkpoint, file.model_id, err));
    const tn_output_with with = {.inputs = c->opts.inputs, .stop = c->opts.stop};
    tn_text text = {0};
    tn_calibration_file_json(&text, &file);
    tn_status status = tn_text_check(&text, "a calibration", err);
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
    if (any && !tn_path_exists(path)) {
        return TN_OK;
    }
    tn_status status = read_wanted(wanted, path, arena, out, &why);
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
