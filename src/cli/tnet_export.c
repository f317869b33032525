/* tnet_export.c - from a checkpoint to an inference dictionary and a graph. */
#include "base/codec/json.h"
#include "base/core/log.h"
#include "cli/local.h"
#include "cli/main.h"
#include "cli/signals.h"
#include "config/field.h"
#include "io/schema/dataopts.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/days.h"
#include "train/export/export.h"
#include "train/export/export_upload.h"
#include "train/group/ranks.h"

#include <stdio.h>
#include <string.h>

typedef struct export_flags {
    uint32_t peers;
    const char *checkpoint, *to, *delta_from, *calibration;
    bool json;
} export_flags;

static const tn_field flags[] = {
    TN_FIELD_U32(export_flags, peers, "~", 1, TN_CHILDREN_MAX, "", TN_LOCAL_HELP),
    TN_FLAG_STR(export_flags, checkpoint, "PATH",
                "a checkpoint, or a run directory (~: the newest of this run)"),
    TN_FLAG_STR(export_flags, to, "DIR|URI",
                "folder of exports, or s3://, gs://, webhdfs:// (~: export.to)"),
    TN_FLAG_STR(export_flags, delta_from, "ID",
                "write only the rows that changed since this model id; needs it beside"),
    TN_FLAG_STR(export_flags, calibration, "FILE",
                "serve probabilities through this map, which tnet-eval --calibrate has fitted on "
                "this model"),
    TN_FLAG_BOOL(export_flags, json, "print one JSON object"),
    TN_FIELD_END,
};

static const tn_program program = {
    .name = "tnet-export",
    .summary = "write the inference dictionary and the graph of a trained model",
    .words = "CONFIG|RUN [key=value ..]",
    .flags = flags,
    .config = tn_run_fields,
    .words_min = 1,
    .words_max = 1,
    .example = "tnet-export configs/widedeep.yaml --to export",
    .notes =
        "RUN is the folder of a run, or of a checkpoint, which has its configuration.\n"
        "Writes <export.to>/<model id>/ and prints its path. Equal checkpoints give equal ids\n"
        "and equal files. tnet-score and libtnet read the folder; see docs/serving.md.\n",
};

static void print_loss(const tn_export_loss *loss, tn_text *out)
{
    tn_json_count(out, "dict_bytes", loss->bytes);
    if (loss->bytes_f32 > 0) {
        tn_json_count(out, "dict_bytes_f32", loss->bytes_f32);
        tn_json_count(out, "valid_rows", loss->rows);
        tn_json_f64(out, "auc", loss->auc);
        tn_json_f64(out, "auc_f32", loss->auc_f32);
        tn_json_f64(out, "copc", loss->copc);
        tn_json_f64(out, "copc_f32", loss->copc_f32);
    }
}

/* Logs what fewer bits cost, if there is a dictionary. */
static void tell_loss(const tn_export_loss *loss, const tn_run *run)
{
    tn_text said = {0};
    if (loss->bytes > 0) {
        tn_export_loss_say(loss, run, &said);
        tn_log(TN_LOG_INFO, "%s", tn_text_str(&said));
    }
    tn_text_done(&said);
}

static void print_result(const tn_exported *out, bool json)
{
    if (!json) {
        (void)printf("%s\n", out->path);
        return;
    }
    tn_text text = {0};
    tn_json_open(&text, '{');
    tn_json_str(&text, "path", out->path);
    tn_json_str(&text, "model_id", out->model_id);
    tn_json_u64(&text, "step", out->step);
    tn_json_count(&text, "rows", out->rows);
    tn_json_count(&text, "bytes", out->bytes);
    tn_json_f64(&text, "seconds", out->seconds);
    tn_json_bool(&text, "existed", out->existed);
    print_loss(&out->loss, &text);
    tn_json_close(&text, '}');
    (void)printf("%s\n", tn_text_str(&text));
    tn_text_done(&text);
}

/* data.days chooses no checkpoint: the newest is exported, whatever they name. */
static void warn_of_day(const tn_data_opts *data, const char *checkpoint, uint32_t day)
{
    if (data->n_days > 0 && day > 0 && !tn_checkpoint_has_day(checkpoint, data->day[0])) {
        char asked[TN_DAY_NAME];
        char learned[TN_DAY_TEXT];
        tn_day_name(data->day[0], asked);
        tn_day_text(day, learned);
        tn_log(TN_LOG_WARN, "%s is not learned; exported is the model of %s", asked, learned);
    }
}

/* Rows by keys of 8 bytes are those of dict.resp alone. */
static tn_status check_redis(const tn_export_opts *o, tn_error *err)
{
    if (o->redis_keys != TN_RESP_TEXT && !tn_strs_has(&o->dict, "resp")) {
        return tn_fail(err, TN_E_CONFIG,
                       "'export.redis_keys' is key8, and nothing is for Redis: export.dict has no "
                       "resp");
    }
    return TN_OK;
}

/* Sends the export to the store of a URI. Removes what an export of all rows makes superfluous,
 * unless a run that may publish is at work there. */
static tn_status send_to_store(const tn_export_target *t, const export_flags *f, const char *dir,
                               tn_exported *out, tn_error *err)
{
    bool sent = false;
    TN_TRY(tn_export_send(t, out->model_id, tn_signals_watch_stop(), &sent, err));
    TN_TRY(tn_export_target_path(t, out->model_id, out->path, err));
    out->existed = !sent;
    if (f->delta_from == NULL && tn_lock_look(dir, NULL) == TN_OK) {
        tn_export_prune(t, out->model_id);
    }
    return TN_OK;
}

/* The others of a group do not wait for one that fails. */
static tn_status fetch_base(const tn_setup *s, const export_flags *f, const tn_export_target *t,
                            tn_error *err)
{
    if (f->delta_from == NULL) {
        return TN_OK;
    }
    const tn_status status = tn_export_fetch_base(t, f->delta_from, err);
    if (status != TN_OK) {
        tn_group_built()->decline(&s->run, status, err->text);
    }
    return status;
}

/* Exports as rank 0; `t` is open. */
static tn_status export_to(tn_setup *s, const export_flags *f, const tn_export_target *t,
                           tn_error *err)
{
    tn_text dir = {0};
    tn_run_dir(&s->run.run, &dir);
    tn_export_request request = {
        .checkpoint = s->from != NULL ? s->from : tn_text_str(&dir),
        .to = t->folder,
        .delta_from = f->delta_from,
        .calibration = f->calibration,
        .binder = &s->binder,
        .text = &s->text,
        .told_elsewhere = &s->told_elsewhere,
        .stop = tn_signals_watch_stop(),
    };
    tn_exported out;
    tn_status status = fetch_base(s, f, t, err);
    status = status == TN_OK ? tn_export(s->plan, &request, &out, err) : status;
    if (status == TN_OK && t->remote != NULL) {
        status = send_to_store(t, f, tn_text_str(&dir), &out, err);
    }
    if (status == TN_OK) {
        warn_of_day(&s->run.data, request.checkpoint, out.day);
    }
    tn_text_done(&dir);
    if (status == TN_OK) {
        tell_loss(&out.loss, &s->run);
        print_result(&out, f->json);
        tn_log(TN_LOG_INFO, "%llu rows, %.1f MB in %.1f s%s", (unsigned long long)out.rows,
               (double)out.bytes / 1e6, out.seconds, out.existed ? "; it was there already" : "");
    }
    return status;
}

/* Exports; rank 0 of several processes prints what all have written. */
static tn_status export(tn_setup *s, const export_flags *f, tn_error *err)
{
    tn_export_target target;
    s->run.checkpoint.resume = "must";
    const char *to = f->to != NULL ? f->to : s->run.export.to;
    TN_TRY(check_redis(&s->run.export, err));
    TN_TRY(tn_export_target_open(&target, to, &s->run, err)); /* all refuse it, or none */
    tn_status status = tn_setup_plan(s, err);
    if (status == TN_OK && s->run.cluster.rank > 0) {
        const tn_watch watch = {.stop = tn_signals_watch_stop(),
                                .told_elsewhere = &s->told_elsewhere};
        status = tn_group_built()->serve(s->plan, &s->text, &watch, NULL, &s->binder, err);
    } else if (status == TN_OK) {
        status = export_to(s, f, &target, err);
    }
    tn_export_target_close(&target);
    return status;
}

static tn_status work(tn_setup *s, const tn_options *options, const void *asked, tn_error *err)
{
    const export_flags *f = asked;
    const tn_local_group local = {
        .program = &program, .options = options, .peers = f->peers, .folder = "export"};
    s->reads = true;
    s->from = f->checkpoint;
    TN_TRY(tn_local_load(&local, s, err));
    TN_TRY(tn_local_rank(&local, s, err));
    return tn_local_is_group(&local) ? tn_local_run(&local, s, err) : export(s, f, err);
}

int main(int argc, char **argv)
{
    export_flags f;
    const tn_main m = {.program = &program, .flags = &f, .work = work};
    return tn_main_run(&m, (tn_argv){argc, argv});
}
