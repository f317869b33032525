/* run_calibration.c - fits on data.valid where it is worth it, writes the file, and says so. */
#include "train/run/run_calibration.h"

#include "base/codec/json.h"
#include "base/core/log.h"
#include "io/schema/schema.h"
#include "serve/calibration_file.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/run.h"
#include "train/report/report.h"
#include "train/run/saver.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

/* Rows of each class that a calibration needs, and those below which auto leaves it (measured: maps
 * of fewer make other rows worse as often as better). */
enum { CLASS_MIN = 50, AUTO_CLASS_MIN = 200 };

/* Fits on the scores of data.valid. TN_E_DATA: that cannot be. */
static tn_status fit(const tn_run_calibration *t, const tn_metrics *valid, tn_error *err)
{
    tn_calibrate *c = t->calibrate;
    if (c == NULL) {
        return tn_fail(err, TN_E_DATA, "%s",
                       t->trained[0] != '\0'               ? t->trained
                       : !tn_data_has_valid(&t->run->data) ? "data.valid is not set"
                                                           : "data.label is none");
    }
    if (t->run->data.next && (valid == NULL || c->rows == 0)) {
        return tn_fail(err, TN_E_DATA, "data.valid is next, and the day after is not there yet");
    }
    const bool chosen = t->run->eval.calibrate == TN_CALIBRATE_AUTO;
    const double least = chosen ? AUTO_CLASS_MIN : CLASS_MIN;
    const double others = (double)c->rows - c->clicks;
    if (c->clicks < least || others < least) {
        return tn_fail(err, TN_E_DATA,
                       "data.valid has %.0f rows with a click and %.0f without, fewer than %.0f of "
                       "one kind say more of chance than of the model",
                       c->clicks, others, least);
    }
    return tn_calibrate_fit(c, err);
}

/* The file is for one model, which it names. */
static tn_status write_file(const tn_run_calibration *t, tn_error *err)
{
    const tn_saver *s = t->saver;
    if (!s->has_saved || s->saved.step != s->w->steps) {
        return tn_fail(err, TN_E_DATA,
                       "no checkpoint holds this model, which the file would have to name");
    }
    char path[TN_PATH_SIZE];
    TN_TRY(tn_path_join(tn_checkpoints_dir(s->checkpoints), s->saved.name, path, err));
    return tn_calibrate_commit(t->calibrate, path, s->saved.step, err);
}

bool tn_run_calibration_is_wanted(const tn_run *run)
{
    const uint32_t method = run->eval.calibrate;
    return method != TN_CALIBRATE_NONE && method != TN_CALIBRATE_AUTO;
}

static tn_status tell(const tn_run_calibration *t, const char *line, tn_error *err)
{
    if (t->map == NULL && !tn_run_calibration_is_wanted(t->run)) {
        tn_log(TN_LOG_DEBUG, "%s", line);
        return TN_OK;
    }
    return tn_report_event(t->saver->report, t->saver->state, t->map != NULL ? "info" : "warn",
                           line, err);
}

tn_status tn_run_calibration_fit(const tn_run_calibration *t, const tn_metrics *valid,
                                 tn_text *json, tn_error *err)
{
    TN_TRY(fit(t, valid, err));
    tn_json_open(json, '{');
    tn_calibration_json(json, &t->calibrate->map);
    tn_json_close(json, '}');
    return tn_text_check(json, "a calibration", err);
}

tn_status tn_run_calibration_judge(const tn_run_calibration *t, tn_status status, const char *why,
                                   tn_error *err)
{
    tn_text line = {0};
    if (status != TN_E_DATA) {
        return status == TN_OK ? TN_OK : tn_fail(err, status, "%s", why);
    }
    tn_text_addf(&line, "published without a calibration (eval.calibrate is %s): %s",
                 tn_calibrate_choices[t->run->eval.calibrate], why);
    status = tn_text_check(&line, "a sentence", err);
    status = status == TN_OK ? tell(t, tn_text_str(&line), err) : status;
    tn_text_done(&line);
    return status;
}

tn_status tn_run_calibration_end(tn_run_calibration *t, const tn_metrics *valid,
                                 const atomic_bool *stop, tn_error *err)
{
    TN_ASSERT(t->map == NULL);
    const uint32_t method = t->run->eval.calibrate;
    const bool chosen = method == TN_CALIBRATE_AUTO;
    tn_error why = {0};
    tn_text line = {0};
    tn_status status = method != TN_CALIBRATE_NONE ? fit(t, valid, &why) : TN_OK;
    TN_TRY(tn_saver_end(t->saver, err));
    const bool stopped = *t->stopped || (stop != NULL && atomic_load(stop));
    if (method == TN_CALIBRATE_NONE || stopped) {
        return stopped ? TN_E_STOPPED : TN_OK;
    }
    if (status == TN_OK) {
        status = write_file(t, &why);
    }
    if (status == TN_OK) {
        const tn_calibrate *c = t->calibrate;
        t->map = &c->map;
        tn_text_addf(&line, "calibrated by %s on %llu rows of valid: ",
                     tn_calibrate_words[chosen ? TN_CALIBRATE_PLATT : method],
                     (unsigned long long)c->rows);
        tn_calibration_put(&c->map, &line);
        tn_text_addf(&line, "; logloss %.5f to %.5f, copc %.3f to %.3f; in %s",
                     tn_metrics_get(valid, "logloss"), tn_metrics_get(c->after, "logloss"),
                     tn_metrics_get(valid, "copc"), tn_metrics_get(c->after, "copc"), c->opts.path);
    } else if (status == TN_E_DATA) {
        tn_text_addf(&line, "not calibrated (eval.calibrate is %s): %s",
                     tn_calibrate_choices[method], why.text);
    } else {
        return tn_fail(err, status, "%s", why.text);
    }
    status = tn_text_check(&line, "a sentence", err);
    if (status == TN_OK) {
        status = tell(t, tn_text_str(&line), err);
    }
    tn_text_done(&line);
    return status;
}

tn_status tn_run_calibration_open(tn_run_calibration *t, const tn_watch *watch, tn_error *err)
{
    const tn_data_opts *data = &t->run->data;
    if (t->run->eval.calibrate == TN_CALIBRATE_NONE || !tn_data_has_valid(data) ||
        t->trained[0] != '\0' || t->saver->w->plan->schema->label->none) {
        return TN_OK;
    }
    const char *dir = tn_checkpoints_dir(t->saver->checkpoints);
    TN_TRY(tn_path_join(dir, TN_CALIBRATION_NAME, t->path, err));
    const tn_calibrate_opts opts = {.method = (tn_calibrate_method)t->run->eval.calibrate,
                                    .path = t->path,
                                    .data = data->next ? NULL : &data->valid,
                                    .sampling = data->negative_sampling,
                                    .inputs = watch->inputs,
                                    .stop = watch->stop};
    return tn_calibrate_open(&t->calibrate, &opts, err);
}
