/* export_loss.c - scores data.valid by two dictionaries of one model, and compares. */
#include "train/export/export_loss.h"

#include "base/core/text.h"
#include "dict/dictvalue.h"
#include "serve/exported_model.h"
#include "train/eval/evaluate.h"

#include <math.h>

bool tn_export_loss_wanted(const tn_run *run, const tn_valid_rows *valid)
{
    return run->export.values != TN_DICT_F32 && tn_strs_has(&run->export.dict, "tnd") &&
           run->data.target == TN_TARGET_CLICK && valid->paths.n > 0;
}

typedef struct scored {
    double auc, copc;
    uint64_t rows;
} scored;

/* `dict`: of two in the folder. */
static tn_status score(const tn_export_loss_job *job, const char *dict, scored *out, tn_error *err)
{
    const tn_exported_model_opts opts = {.verify = TN_VERIFY_NONE, .dict = dict};
    const tn_eval_request request = {.paths = &job->valid->paths,
                                     .rows_max = job->valid->rows_max,
                                     .day = job->valid->day,
                                     .held = job->valid->held,
                                     .stop = job->stop};
    tn_exported_model *model = NULL;
    tn_evaluation e = {0};
    TN_TRY(tn_exported_model_open(&model, job->folder, &opts, err));
    const tn_status status = tn_evaluate_export(model, job->run, &request, &e, err);
    if (status == TN_OK) {
        *out = (scored){.auc = tn_metrics_get(e.metrics, "auc"),
                        .copc = tn_metrics_get(e.metrics, "copc"),
                        .rows = tn_metrics_rows(e.metrics)};
    }
    tn_evaluation_done(&e);
    tn_exported_model_close(model);
    return status;
}

tn_status tn_export_loss_measure(tn_export_loss *out, const tn_export_loss_job *job, tn_error *err)
{
    scored is;
    scored was;
    TN_ASSERT(tn_export_loss_wanted(job->run, job->valid));
    TN_TRY(score(job, TN_FLOAT32_DICT, &was, err));
    TN_TRY(score(job, "dict.tnd", &is, err));
    out->rows = is.rows;
    out->auc = is.auc;
    out->copc = is.copc;
    out->auc_f32 = was.auc;
    out->copc_f32 = was.copc;
    return TN_OK;
}

tn_status tn_export_loss_check(const tn_export_loss *loss, const tn_run *run, tn_error *err)
{
    const double most = run->export.loss_max;
    const double fall = loss->auc_f32 - loss->auc;
    /* A share of a COPC above 1, which a model without a calibration may have by far. */
    const double move = fabs(loss->copc - loss->copc_f32) / fmax(1, loss->copc_f32);
    const char *values = tn_value_words[run->export.values];
    static const char hint[] =
        "hint: export.values of more bits, or another limit; 1 takes any loss";
    if (fall > most) {
        return tn_fail(err, TN_E_LIMIT,
                       "with export.values %s AUC falls by %.6f on data.valid, from %.6f to %.6f; "
                       "export.loss_max is %g\n%s",
                       values, fall, loss->auc_f32, loss->auc, most, hint);
    }
    if (move > TN_LOSS_COPC_TIMES * most) {
        return tn_fail(err, TN_E_LIMIT,
                       "with export.values %s COPC moves by %.6f on data.valid, from %.6f to %.6f; "
                       "%d times export.loss_max is %g\n%s",
                       values, move, loss->copc_f32, loss->copc, TN_LOSS_COPC_TIMES,
                       TN_LOSS_COPC_TIMES * most, hint);
    }
    return TN_OK;
}

void tn_export_loss_say(const tn_export_loss *loss, const tn_run *run, tn_text *out)
{
    tn_text_addf(out, "dict.tnd %.3f MB as %s", (double)loss->bytes / 1e6,
                 tn_value_words[run->export.values]);
    if (loss->bytes_f32 > 0) {
        tn_text_addf(
            out,
            ", %.0f %% of float32; %llu rows of data.valid: AUC %.6f (%+.6f), COPC %.6f (%+.6f)",
            100 * (double)loss->bytes / (double)loss->bytes_f32, (unsigned long long)loss->rows,
            loss->auc, loss->auc - loss->auc_f32, loss->copc, loss->copc - loss->copc_f32);
    } else if (run->export.values != TN_DICT_F32) {
        tn_text_adds(out, "; nothing says what that loses: ");
        tn_text_adds(out, run->data.target != TN_TARGET_CLICK ? "the loss is not one of clicks"
                          : run->data.next ? "the day after, which data.valid names, is not there"
                                           : "there is no data.valid");
    }
}
