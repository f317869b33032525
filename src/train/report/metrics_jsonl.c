/* metrics_jsonl.c - records of metrics.jsonl. */
#include "train/report/metrics_jsonl.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/file/file.h"
#include "metrics/slices.h"

#include <math.h>
#include <string.h>

struct tn_journal {
    tn_appender *file; /* owned */
    bool deterministic;
    tn_text line; /* of the record that is written */
};

tn_status tn_journal_open(tn_journal **out, const char *path, bool deterministic, tn_error *err)
{
    tn_journal *j = tn_alloc(1, sizeof *j, "journal of a run");
    tn_status status = tn_append_open(&j->file, path, err);
    if (status != TN_OK) {
        tn_free(j);
        return status;
    }
    j->deterministic = deterministic;
    *out = j;
    return TN_OK;
}

void tn_journal_close(tn_journal *j)
{
    if (j != NULL) {
        tn_append_close(j->file);
        tn_text_done(&j->line);
        tn_free(j);
    }
}

static void add_common(tn_text *t, const tn_journal_at *at, const char *kind)
{
    tn_json_f64(t, "t", tn_wall_s());
    tn_json_str(t, "kind", kind);
    tn_json_u64(t, "step", at->step);
    tn_json_u64(t, "epoch", at->epoch);
    tn_json_u64(t, "samples", at->samples);
}

/* Opens a record; the caller adds its members to what is returned. */
static tn_text *begin(tn_journal *j, const tn_journal_at *at, const char *kind)
{
    tn_text *t = &j->line;
    tn_text_clear(t);
    tn_json_open(t, '{');
    add_common(t, at, kind);
    return t;
}

static tn_status end(tn_journal *j, tn_error *err)
{
    TN_ASSERT(j->line.failed || j->line.data[0] == '{'); /* begin() came first */
    tn_json_close(&j->line, '}');
    tn_text_addc(&j->line, '\n');
    TN_TRY(tn_text_check(&j->line, "a line of metrics.jsonl", err));
    return tn_append(j->file, j->line.data, j->line.size, err);
}

/* The bits of a loss survive in its hexadecimal twin whatever reads the decimal one. */
static void add_loss(tn_text *t, double loss, bool hex)
{
    tn_json_f64(t, "loss", loss);
    if (!hex) {
        return;
    }
    if (isfinite(loss)) {
        tn_text_addf(t, ",\"loss_hex\":\"%a\"", loss);
    } else {
        tn_json_str(t, "loss_hex", NULL);
    }
}

static void add_metric(tn_text *t, const tn_metrics *m, const char *name)
{
    tn_json_f64(t, name, m != NULL ? tn_metrics_get(m, name) : (double)NAN);
}

tn_status tn_journal_start(tn_journal *j, const tn_journal_at *at, const tn_journal_start_record *r,
                           tn_error *err)
{
    tn_text *t = begin(j, at, "start");
    tn_json_str(t, "version", r->version);
    tn_json_hex64(t, "run_id", r->run_id);
    tn_json_str(t, "config_hash", r->config_hash);
    tn_json_str(t, "resumed_from", r->resumed_from);
    tn_json_u64(t, "peers", r->peers);
    tn_json_u64(t, "threads", r->threads);
    tn_json_str(t, "cpu", r->cpu);
    tn_json_u64(t, "seed", r->seed);
    return end(j, err);
}

tn_status tn_journal_train(tn_journal *j, const tn_journal_at *at, const tn_journal_train_record *r,
                           tn_error *err)
{
    tn_text *t = begin(j, at, "train");
    add_loss(t, r->loss, j->deterministic);
    add_metric(t, r->window, "auc");
    add_metric(t, r->window, "copc");
    add_metric(t, r->window, "ctr");
    add_metric(t, r->window, "pctr");
    tn_json_f64(t, "lr", r->lr);
    tn_json_f64(t, "rows_per_s", r->rows_per_s);
    tn_json_f64(t, "grad_norm", r->grad_norm);
    tn_json_u64(t, "keys", r->keys);
    tn_json_u64(t, "rss_bytes", r->rss_bytes);
    tn_json_open_key(t, "wait_ms", '{');
    tn_json_f64(t, "read", r->wait_read_ms);
    tn_json_f64(t, "pull", r->wait_pull_ms);
    tn_json_f64(t, "push", r->wait_push_ms);
    tn_json_close(t, '}');
    tn_json_f64(t, "compute_ms", r->compute_ms);
    tn_json_u64(t, "pulled_bytes", r->pulled_bytes);
    tn_json_u64(t, "pushed_bytes", r->pushed_bytes);
    tn_json_u64(t, "staleness_max", r->staleness_max);
    tn_json_u64(t, "bad_records", r->bad_records);
    return end(j, err);
}

/* "<slot>":[{"sign":"<16 hex>","value":"<its word>","rows":..},..,{"sign":null,..}]: the last is
 * everything else. */
static tn_status add_slices(tn_text *t, const tn_journal_slices *s, tn_error *err)
{
    static const char *const names[] = {"auc", "logloss", "copc", "ctr", "pctr"};
    size_t places = (size_t)tn_slices_count(s->slices) + 1;
    tn_slice *slice = NULL;
    TN_TRY(TN_ALLOC(slice, places, "a report of slices", err));
    uint32_t n = 0;
    tn_status status = tn_slices_report(s->slices, slice, &n, err);
    TN_ASSERT(n <= places);
    tn_json_open_key(t, s->slot, '[');
    for (uint32_t i = 0; i < n && status == TN_OK; i++) {
        if (i >= TN_JOURNAL_SLICES && !slice[i].is_other) {
            continue;
        }
        tn_json_open(t, '{');
        if (slice[i].is_other) {
            tn_json_str(t, "sign", NULL);
        } else {
            tn_json_hex64(t, "sign", slice[i].sign);
            const char *word = tn_sign_word(s->words, s->place, slice[i].sign);
            if (word != NULL) {
                tn_json_str(t, "value", word);
            }
        }
        tn_json_u64(t, "rows", tn_metrics_rows(slice[i].metrics));
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
            add_metric(t, slice[i].metrics, names[k]);
        }
        tn_json_close(t, '}');
    }
    tn_json_close(t, ']');
    tn_free(slice);
    return status;
}

static const char *const eval_metrics[] = {"auc", "logloss", "copc", "ctr",    "pctr",
                                           "ne",  "brier",   "ece",  "pr_auc", "gauc"};

static bool is_usual(const char *name)
{
    for (size_t i = 0; i < sizeof eval_metrics / sizeof eval_metrics[0]; i++) {
        if (strcmp(eval_metrics[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* "loss_hex" beside "loss" when asked for. */
static tn_status add_eval(tn_text *t, const tn_journal_eval_record *r, bool hex, tn_error *err)
{
    TN_ASSERT(r->metrics != NULL && (r->n_slices == 0 || r->slices != NULL));
    tn_json_str(t, "data", r->data);
    tn_json_u64(t, "rows", tn_metrics_rows(r->metrics));
    add_loss(t, r->loss, hex);
    for (size_t i = 0; i < sizeof eval_metrics / sizeof eval_metrics[0]; i++) {
        add_metric(t, r->metrics, eval_metrics[i]);
    }
    for (uint32_t i = 0; i < r->n_more; i++) {
        if (!is_usual(r->more[i])) {
            add_metric(t, r->metrics, r->more[i]);
        }
    }
    tn_json_open_key(t, "slices", '{');
    for (uint32_t i = 0; i < r->n_slices; i++) {
        TN_TRY(add_slices(t, &r->slices[i], err));
    }
    tn_json_close(t, '}');
    tn_json_bool(t, "best", r->best);
    return TN_OK;
}

tn_status tn_journal_eval(tn_journal *j, const tn_journal_at *at, const tn_journal_eval_record *r,
                          tn_error *err)
{
    tn_text *t = begin(j, at, "eval");
    TN_TRY(add_eval(t, r, j->deterministic, err));
    return end(j, err);
}

tn_status tn_journal_eval_members(const tn_journal_at *at, const tn_journal_eval_record *r,
                                  bool deterministic, tn_text *out, tn_error *err)
{
    add_common(out, at, "eval");
    return add_eval(out, r, deterministic, err);
}

tn_status tn_journal_ckpt(tn_journal *j, const tn_journal_at *at, const tn_journal_ckpt_record *r,
                          tn_error *err)
{
    tn_text *t = begin(j, at, "ckpt");
    tn_json_str(t, "name", r->name);
    tn_json_bool(t, "delta", r->delta);
    tn_json_u64(t, "bytes", r->bytes);
    tn_json_u64(t, "rows", r->rows);
    tn_json_f64(t, "seconds", r->seconds);
    tn_json_f64(t, "stall_ms", r->stall_ms);
    return end(j, err);
}

tn_status tn_journal_table(tn_journal *j, const tn_journal_at *at, const tn_journal_table_record *r,
                           tn_error *err)
{
    tn_text *t = begin(j, at, "table");
    tn_json_u64(t, "created", r->created);
    tn_json_u64(t, "admitted", r->admitted);
    tn_json_u64(t, "expired", r->expired);
    tn_json_u64(t, "rows", r->rows);
    tn_json_u64(t, "bytes", r->bytes);
    return end(j, err);
}

tn_status tn_journal_event(tn_journal *j, const tn_journal_at *at, const char *level,
                           const char *text, tn_error *err)
{
    tn_text *t = begin(j, at, "event");
    tn_json_str(t, "level", level);
    tn_json_str(t, "text", text);
    return end(j, err);
}

tn_status tn_journal_end(tn_journal *j, const tn_journal_at *at, const tn_journal_end_record *r,
                         tn_error *err)
{
    TN_ASSERT(r->exit_code >= 0);
    tn_text *t = begin(j, at, "end");
    tn_json_str(t, "status", r->status);
    tn_json_u64(t, "exit_code", (uint64_t)r->exit_code);
    tn_json_f64(t, "seconds", r->seconds);
    return end(j, err);
}
