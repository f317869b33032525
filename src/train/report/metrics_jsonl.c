/* metrics_jsonl.c - records of metrics.jsonl: how each begins, and how it is written. */
#include "train/report/metrics_jsonl.h"

#include "base/codec/json.h"
#include "base/core/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tn_status tn_journal_open(tn_journal *j, const char *path, tn_error *err)
{
    return tn_append_open(&j->file, path, err);
}

void tn_journal_close(tn_journal *j)
{
    tn_append_close(j->file);
    tn_text_done(&j->line);
    *j = (tn_journal){0};
}

/* Whether a line is the record of this day. */
static bool is_day(const char *line, size_t size, const char *day, uint64_t least_step)
{
    static const char kind[] = "\"kind\":\"day\",\"step\":";
    const char *at = memmem(line, size, kind, sizeof kind - 1);
    return at != NULL && memmem(line, size, day, strlen(day)) != NULL &&
           strtoull(at + sizeof kind - 1, NULL, 10) >= least_step;
}

bool tn_journal_has_day(const char *path, const char *day, uint64_t step)
{
    char member[64];
    tn_map map = {0};
    bool found = false;
    TN_ASSERT(strlen(day) + sizeof "\"day\":\"\"," <= sizeof member);
    (void)snprintf(member, sizeof member, "\"day\":\"%s\",", day);
    if (tn_map_file(&map, path, NULL) != TN_OK) {
        return false;
    }
    const char *end = (const char *)map.data + map.size;
    for (const char *line = map.data; !found && line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        found = next != NULL && is_day(line, (size_t)(next - line), member, step);
        line = next != NULL ? next + 1 : end;
    }
    tn_unmap(&map);
    return found;
}

void tn_journal_head(tn_text *t, const char *kind, const tn_journal_at *at)
{
    tn_json_open(t, '{');
    tn_json_f64(t, "t", tn_wall_s());
    tn_json_str(t, "kind", kind);
    tn_json_u64(t, "step", at->step);
    tn_json_u64(t, "epoch", at->epoch);
    tn_json_u64(t, "samples", at->samples);
}

tn_text *tn_journal_begin(tn_journal *j, const char *kind, const tn_journal_at *at)
{
    tn_text_clear(&j->line);
    j->record = (tn_run_record){.kind = kind, .line = &j->line, .step = at->step};
    tn_journal_head(&j->line, kind, at);
    return &j->line;
}

tn_status tn_journal_end(tn_journal *j, tn_error *err)
{
    TN_ASSERT(j->line.failed || j->line.data[0] == '{'); /* tn_journal_begin came first */
    tn_json_close(&j->line, '}');
    tn_text_addc(&j->line, '\n');
    TN_TRY(tn_text_check(&j->line, "a line of metrics.jsonl", err));
    if (j->file != NULL) {
        TN_TRY(tn_append(j->file, j->line.data, j->line.size, err));
    }
    return j->hear != NULL ? j->hear(j->arg, &j->record, err) : TN_OK;
}

void tn_journal_loss(tn_text *t, double loss, bool hex)
{
    tn_json_f64(t, "loss", loss);
    if (hex && isfinite(loss)) {
        tn_text_addf(t, ",\"loss_hex\":\"%a\"", loss);
    } else if (hex) {
        tn_json_str(t, "loss_hex", NULL);
    }
}

void tn_journal_metrics(tn_text *t, const tn_metrics *m, const tn_strs *usual, const tn_strs *more)
{
    for (uint32_t i = 0; i < usual->n; i++) {
        if (tn_metric_fits(usual->item[i], tn_metrics_target(m))) {
            tn_json_f64(t, usual->item[i], tn_metrics_get(m, usual->item[i]));
        }
    }
    for (uint32_t i = 0; i < more->n; i++) {
        if (!tn_strs_has(usual, more->item[i])) {
            tn_json_f64(t, more->item[i], tn_metrics_get(m, more->item[i]));
        }
    }
}
