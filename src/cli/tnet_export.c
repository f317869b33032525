/* tnet_export.c - from a checkpoint to an inference dictionary and a graph. */
#include "base/codec/json.h"
#include "base/core/log.h"
#include "cli/local.h"
#include "cli/main.h"
#include "cli/signals.h"
#include "config/field.h"
#include "train/job/export_job.h"

#include <stdio.h>

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

static tn_status export(tn_setup *s, const export_flags *f, tn_error *err)
{
    const tn_export_job_opts opts = {.to = f->to,
                                     .delta_from = f->delta_from,
                                     .calibration = f->calibration,
                                     .stop = tn_signals_watch_stop()};
    tn_exported out;
    TN_TRY(tn_export_job_run(s, &opts, &out, err));
    if (s->run.cluster.rank == 0) { /* the others have written their parts */
        print_result(&out, f->json);
        tn_log(TN_LOG_INFO, "%llu rows, %.1f MB in %.1f s%s", (unsigned long long)out.rows,
               (double)out.bytes / 1e6, out.seconds, out.existed ? "; it was there already" : "");
    }
    return TN_OK;
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
