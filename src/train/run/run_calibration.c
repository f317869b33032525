/* run_calibration.c - fits a calibration on data.valid where it is worth it: for every model that a
 * run publishes, and for the one that it ends with, whose map it writes beside the checkpoints. */
#include "train/run/module.h"

#include "base/core/log.h"
#include "base/file/file.h"
#include "io/schema/schema.h"
#include "serve/calibration_file.h"
#include "train/checkpoint/checkpoint.h"
#include "train/eval/calibrate.h"
#include "train/run/saver.h"

/* Rows of each class that a calibration needs, and those below which auto leaves it (measured: maps
 * of fewer make other rows worse as often as better). */
enum { CLASS_MIN = 50, AUTO_CLASS_MIN = 200 };

typedef struct calibrator {
    tn_calibrate *calibrate; /* owned; NULL: none is wanted, or there is nothing to fit on */
    char path[TN_PATH_SIZE];
    tn_text map; /* JSON of the checkpoint that is saved, for its export; "": none */
} calibrator;

static void free_calibrator(void *self)
{
    calibrator *c = self;
    tn_calibrate_free(c->calibrate);
    tn_text_done(&c->map);
}

static tn_status open_calibrator(void *self, tn_run_now *now, tn_error *err)
{
    calibrator *c = self;
    const tn_data_opts *data = &now->run->data;
    const uint32_t method = now->run->eval.calibrate;
    now->calibrates = method != TN_CALIBRATE_NONE && method != TN_CALIBRATE_AUTO;
    if (method == TN_CALIBRATE_NONE || !tn_data_has_valid(data) || now->trained[0] != '\0' ||
        now->plan->schema->label->none) {
        return TN_OK;
    }
    const char *dir = tn_checkpoints_dir(now->saver->checkpoints);
    TN_TRY(tn_path_join(dir, TN_CALIBRATION_NAME, c->path, err));
    const tn_calibrate_opts opts = {.method = (tn_calibrate_method)method,
                                    .path = c->path,
                                    .data = data->next ? NULL : &data->valid,
                                    .sampling = data->negative_sampling,
                                    .class_min =
                                        method == TN_CALIBRATE_AUTO ? AUTO_CLASS_MIN : CLASS_MIN,
                                    .tasks = data->tasks,
                                    .inputs = now->watch->inputs,
                                    .stop = now->watch->stop};
    TN_TRY(tn_calibrate_open(&c->calibrate, &opts, err));
    now->calibrate = c->calibrate;
    return TN_OK;
}

/* Fits a map on the scores that were collected. TN_E_DATA: that cannot be, or is worth nothing. */
static tn_status fit_map(tn_run_now *now, tn_error *err)
{
    tn_calibrate *c = now->calibrate;
    TN_ASSERT(now->trained != NULL);
    if (c == NULL) {
        return tn_fail(err, TN_E_DATA, "%s",
                       now->trained[0] != '\0'               ? now->trained
                       : !tn_data_has_valid(&now->run->data) ? "data.valid is not set"
                                                             : "data.label is none");
    }
    if (now->run->data.next && (now->out->valid.metrics == NULL || c->of[0].rows == 0)) {
        return tn_fail(err, TN_E_DATA, "data.valid is next, and the day after is not there yet");
    }
    return tn_calibrate_fit(c, err);
}

/* Prints a line for people, or a debug line if nobody has asked for a calibration. */
static tn_status say_calibration(const tn_run_now *now, const char *line, tn_error *err)
{
    if (now->map == NULL && !now->calibrates) {
        tn_log(TN_LOG_DEBUG, "%s", line);
        return TN_OK;
    }
    return tn_run_say(now, now->map != NULL ? "info" : "warn", line, err);
}

/* ---- of a model that is published ---- */

static tn_status fit_for_export(calibrator *c, tn_run_now *now, tn_error *err)
{
    TN_TRY(tn_modules_at(now, TN_AT_COLLECT, err));
    TN_TRY(fit_map(now, err));
    const tn_calibrations maps =
        tn_calibrations_of(c->calibrate->map, c->calibrate->opts.tasks, c->calibrate->arena);
    tn_doc_put(&c->map, &(tn_doc_row)TN_DOC_GROUP('{', tn_calibration_rows, ""), &maps);
    return tn_text_check(&c->map, "a calibration", err);
}

static tn_status say_uncalibrated(const tn_run_now *now, const char *why, tn_error *err)
{
    tn_text line = {0};
    tn_text_addf(&line, "published without a calibration (eval.calibrate is %s): %s",
                 tn_calibrate_choices[now->run->eval.calibrate], why);
    tn_status status = tn_text_check(&line, "a sentence", err);
    status = status == TN_OK ? say_calibration(now, tn_text_str(&line), err) : status;
    tn_text_done(&line);
    return status;
}

/* Fits the map that a checkpoint is saved and exported with. Where a signal ends that, the next
 * command fits it, and publishes then. */
static tn_status calibrate_export(void *self, tn_run_now *now, tn_error *err)
{
    calibrator *c = self;
    tn_error why = {0};
    now->state->kept.export.awaits = false;
    tn_text_clear(&c->map);
    if (now->saver->request.export == TN_EXPORT_WHEN_SAVED && now->calibrate != NULL) {
        const tn_status status = fit_for_export(c, now, &why);
        if (status == TN_E_STOPPED) {
            now->state->kept.export.awaits = true;
            now->saver->request.export = TN_EXPORT_AT_END;
        } else if (status == TN_E_DATA) {
            TN_TRY(say_uncalibrated(now, why.text, err));
        } else if (status != TN_OK) {
            return tn_fail(err, status, "%s", why.text);
        }
    }
    now->state->kept.export.calibration = c->map.size > 0 ? tn_text_str(&c->map) : NULL;
    return TN_OK;
}

/* ---- of the model that stays ---- */

/* Writes the file, which names the model that it is for. */
static tn_status write_file(const tn_run_now *now, tn_error *err)
{
    const tn_saver *s = now->saver;
    if (!tn_saver_has_saved(s) || s->saved.step != now->worker->steps) {
        return tn_fail(err, TN_E_DATA,
                       "no checkpoint holds this model, which the file would have to name");
    }
    char path[TN_PATH_SIZE];
    TN_TRY(tn_path_join(tn_checkpoints_dir(s->checkpoints), s->saved.name, path, err));
    return tn_calibrate_commit(now->calibrate, path, s->saved.step, err);
}

static void put_fitted(const tn_run_now *now, tn_text *line)
{
    const tn_calibrate *c = now->calibrate;
    const tn_tasks *tasks = c->opts.tasks;
    const uint32_t method = now->run->eval.calibrate;
    tn_text_addf(line, "calibrated by %s on %llu rows of valid: ",
                 tn_calibrate_words[method == TN_CALIBRATE_AUTO ? TN_CALIBRATE_PLATT : method],
                 (unsigned long long)c->of[0].rows);
    tn_calibrate_put(c->map, tasks, line);
    for (uint32_t k = 0; k < c->n; k++) {
        const tn_metrics *valid = tn_evaluation_task(&now->out->valid, k);
        const tn_metrics *after = c->of[k].after;
        if (after != NULL) {
            tn_text_addf(line, "; %s%slogloss %.5f to %.5f, copc %.3f to %.3f",
                         c->n > 1 ? tasks->task[k].name : "", c->n > 1 ? "." : "",
                         tn_metrics_get(valid, "logloss"), tn_metrics_get(after, "logloss"),
                         tn_metrics_get(valid, "copc"), tn_metrics_get(after, "copc"));
        }
    }
    tn_text_addf(line, "; in %s", c->opts.path);
    tn_calibrate_left(c, line);
}

/* Fits while the last checkpoint is written, whose model the file names. */
static tn_status calibrate_kept(void *self, tn_run_now *now, tn_error *err)
{
    (void)self;
    TN_ASSERT(now->map == NULL);
    const uint32_t method = now->run->eval.calibrate;
    tn_error why = {0};
    tn_text line = {0};
    tn_status status = method != TN_CALIBRATE_NONE ? fit_map(now, &why) : TN_OK;
    TN_TRY(tn_saver_end(now->saver, err));
    if (method == TN_CALIBRATE_NONE || tn_run_is_asked(now)) {
        return tn_run_is_asked(now) ? TN_E_STOPPED : TN_OK;
    }
    if (status == TN_OK) {
        status = write_file(now, &why);
    }
    if (status == TN_OK) {
        now->map = now->calibrate->map;
        put_fitted(now, &line);
    } else if (status == TN_E_DATA) {
        tn_text_addf(&line, "not calibrated (eval.calibrate is %s): %s",
                     tn_calibrate_choices[method], why.text);
    } else {
        return tn_fail(err, status, "%s", why.text);
    }
    status = tn_text_check(&line, "a sentence", err);
    if (status == TN_OK) {
        status = say_calibration(now, tn_text_str(&line), err);
    }
    tn_text_done(&line);
    return status;
}

extern const tn_module tn_module_calibrate;
const tn_module tn_module_calibrate = {
    .name = "calibrate",
    .size = sizeof(calibrator),
    .at = {[TN_AT_LOOK] = open_calibrator,
           [TN_AT_SAVE] = calibrate_export,
           [TN_AT_KEPT] = calibrate_kept},
    .close = free_calibrator,
};
