/* summary.c - the members of summary.json, in their documented order. */
#include "train/report/summary.h"

#include "base/codec/json.h"
#include "base/file/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add_data(tn_text *t, const tn_summary_data *d)
{
    tn_json_open_key(t, "data", '{');
    tn_json_u64(t, "sources", d->sources);
    tn_json_count(t, "bytes", d->bytes);
    tn_json_count(t, "records", d->records);
    tn_json_u64(t, "blank", d->blank);
    tn_json_open_key(t, "bad", '{');
    tn_json_u64(t, "total", d->bad);
    tn_json_open_key(t, "by_reason", '{');
    for (size_t at = 0; at < d->bad_reasons_size;) {
        const char *reason = d->bad_reasons + at;
        const char *count = reason + strlen(reason) + 1;
        tn_json_raw(t, reason, count);
        at += strlen(reason) + strlen(count) + 2;
        TN_ASSERT(at <= d->bad_reasons_size);
    }
    tn_json_close(t, '}');
    tn_json_close(t, '}');
    tn_json_u64(t, "duplicate_key", d->duplicate_key);
    tn_json_u64(t, "parts_reassigned", d->parts_reassigned);
    tn_json_close(t, '}');
}

static const char *const usual[] = {"auc", "logloss", "copc"};

static void add_metrics(tn_text *t, const char *key, const tn_metrics *m, const tn_summary *s)
{
    if (m == NULL) {
        tn_json_str(t, key, NULL);
        return;
    }
    tn_json_open_key(t, key, '{');
    tn_json_count(t, "rows", tn_metrics_rows(m));
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        tn_json_f64(t, usual[i], tn_metrics_get(m, usual[i]));
    }
    for (uint32_t i = 0; i < s->n_metrics; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof usual / sizeof usual[0]; k++) {
            known = known || strcmp(usual[k], s->metrics[i]) == 0;
        }
        if (!known) {
            tn_json_f64(t, s->metrics[i], tn_metrics_get(m, s->metrics[i]));
        }
    }
    tn_json_close(t, '}');
}

static void add_results(tn_text *t, const tn_summary *s)
{
    tn_json_open_key(t, "train", '{');
    tn_json_f64(t, "loss", s->train_loss);
    tn_json_close(t, '}');
    add_metrics(t, "valid", s->valid, s);
    add_metrics(t, "test", s->test, s);
    if (s->best == NULL) {
        tn_json_str(t, "best", NULL);
        return;
    }
    TN_ASSERT(s->best->name != NULL);
    tn_json_open_key(t, "best", '{');
    tn_json_str(t, "name", s->best->name);
    tn_json_f64(t, "value", s->best->value);
    tn_json_u64(t, "step", s->best->step);
    tn_json_close(t, '}');
}

static void add_checkpoint(tn_text *t, const tn_summary *s)
{
    if (s->checkpoint == NULL) {
        tn_json_str(t, "checkpoint", NULL);
        return;
    }
    char crc[9];
    (void)snprintf(crc, sizeof crc, "%08" PRIx32, s->checkpoint_crc);
    tn_json_open_key(t, "checkpoint", '{');
    tn_json_str(t, "name", s->checkpoint);
    tn_json_str(t, "crc32c", crc);
    tn_json_close(t, '}');
}

static void add_host(tn_text *t, const tn_summary *s)
{
    tn_json_open_key(t, "host", '{');
    tn_json_str(t, "cpu", s->cpu);
    tn_json_u64(t, "cores", s->cores);
    tn_json_str(t, "blas", s->blas);
    tn_json_count(t, "peak_rss_bytes", s->peak_rss_bytes);
    tn_json_close(t, '}');
}

void tn_summary_text(const tn_summary *s, tn_text *out)
{
    TN_ASSERT(s->exit_code >= 0);
    TN_ASSERT(s->status != NULL);
    tn_text *t = out;
    tn_json_open(t, '{');
    tn_json_str(t, "format", "tnet-summary");
    tn_json_raw(t, "version", "[1,0]");
    tn_json_str(t, "status", s->status);
    tn_json_u64(t, "exit_code", (uint64_t)s->exit_code);
    if (s->error != NULL) {
        tn_json_str(t, "error", s->error);
    }
    tn_json_hex64(t, "run_id", s->run_id);
    tn_json_str(t, "tnet", TN_VERSION);
    tn_json_str(t, "config_hash", s->config_hash);
    tn_json_f64(t, "started", s->started);
    tn_json_f64(t, "seconds", s->seconds);
    tn_json_u64(t, "steps", s->steps);
    tn_json_count(t, "samples", s->samples);
    tn_json_u64(t, "epochs", s->epochs);
    tn_json_f64(t, "rows_per_s", s->rows_per_s);
    tn_json_open_key(t, "step_ms", '{');
    tn_json_f64(t, "predicted", s->step_predicted);
    tn_json_f64(t, "measured", s->step_measured);
    tn_json_close(t, '}');
    tn_json_u64(t, "peers", s->peers);
    tn_json_count(t, "pulled_bytes", s->pulled_bytes);
    tn_json_count(t, "pushed_bytes", s->pushed_bytes);
    add_data(t, &s->data);
    add_results(t, s);
    tn_json_open_key(t, "model", '{');
    tn_json_u64(t, "dense_params", s->dense_params);
    tn_json_count(t, "sparse_rows", s->sparse_rows);
    tn_json_count(t, "sparse_bytes", s->sparse_bytes);
    if (s->sparse_bytes_max > 0) {
        tn_json_count(t, "sparse_bytes_max", s->sparse_bytes_max);
        tn_json_str(t, "memory", s->memory);
    }
    tn_json_close(t, '}');
    add_checkpoint(t, s);
    add_host(t, s);
    tn_json_open_key(t, "warnings", '[');
    for (uint32_t i = 0; i < s->n_warnings; i++) {
        tn_json_str(t, NULL, s->warnings[i]);
    }
    tn_json_close(t, ']');
    tn_json_close(t, '}');
    tn_text_addc(t, '\n');
}

tn_status tn_summary_write(const tn_summary *s, const char *path, tn_error *err)
{
    tn_text t = {0};
    tn_summary_text(s, &t);
    tn_status status = tn_text_check(&t, "summary.json", err);
    if (status == TN_OK) {
        status = tn_file_replace(path, t.data, t.size, err);
    }
    tn_text_done(&t);
    return status;
}
