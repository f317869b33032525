/* calibrate.c - collects scores, fits a calibration and writes its file. */
#include "train/eval/calibrate.h"

#include "base/core/alloc.h"
#include "serve/calibration_file.h"
#include "train/checkpoint/ckptdir.h"

const char *const tn_calibrate_words[] = {"none", "platt", "platt_smoothed", "isotonic", NULL};

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

tn_status tn_calibrate_sink(void *calibrate, const tn_scores *scores, tn_error *err)
{
    tn_calibrate *c = calibrate;
    const tn_batch *batch = scores->batch;
    (void)err;
    tn_calibrator_add(c->calibrator, &(tn_scored){.n = batch->rows,
                                                  .logit = scores->logit,
                                                  .label = batch->label,
                                                  .weight = batch->weight});
    for (uint32_t i = 0; i < batch->rows; i++) {
        c->rows += batch->weight == NULL || batch->weight[i] > 0 ? 1 : 0;
    }
    return TN_OK;
}

static tn_status fit(tn_calibrate *c, tn_error *err)
{
    if (c->opts.method == TN_CALIBRATE_ISOTONIC) {
        return tn_calibrator_isotonic(c->calibrator, c->arena, &c->map, err);
    }
    bool smoothed = c->opts.method == TN_CALIBRATE_PLATT_SMOOTHED;
    return tn_calibrator_platt(c->calibrator, smoothed, &c->map, err);
}

tn_status tn_calibrate_commit(tn_calibrate *c, const char *checkpoint, uint64_t step, tn_error *err)
{
    TN_TRY(fit(c, err));
    TN_TRY(tn_calibrator_metrics(c->calibrator, &c->map, &c->after, err));
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
