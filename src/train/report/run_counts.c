/* run_counts.c - adds up what readers have met, reason by reason. */
#include "train/report/run_counts.h"

#include "io/rows/batch.h"

#include <stdlib.h>
#include <string.h>

void tn_met_done(tn_met *m)
{
    tn_text_done(&m->reasons);
    m->counts = (tn_read_counts){0};
    m->tasks = (tn_task_counts){0};
}

/* ---- reasons ---- */

bool tn_met_reason(const tn_met *m, size_t *at, const char **reason, const char **count)
{
    if (*at >= m->reasons.size) {
        return false;
    }
    *reason = m->reasons.data + *at;
    *count = *reason + strlen(*reason) + 1;
    *at += strlen(*reason) + strlen(*count) + 2;
    TN_ASSERT(*at <= m->reasons.size); /* whole pairs only */
    return true;
}

static void put_pair(tn_text *out, const char *reason, uint64_t count)
{
    tn_text_add(out, reason, strlen(reason) + 1);
    tn_text_add_u64(out, count);
    tn_text_addc(out, '\0');
}

static void add_reason(tn_met *m, const char *more, uint64_t n)
{
    tn_text sum = {0};
    const char *reason = NULL;
    const char *count = NULL;
    bool known = false;
    for (size_t at = 0; tn_met_reason(m, &at, &reason, &count);) {
        const bool same = strcmp(reason, more) == 0;
        put_pair(&sum, reason, strtoull(count, NULL, 10) + (same ? n : 0));
        known = known || same;
    }
    if (!known) {
        put_pair(&sum, more, n);
    }
    if (sum.failed) { /* no memory: one reason less, but still pairs */
        tn_text_done(&sum);
        return;
    }
    tn_text_done(&m->reasons);
    m->reasons = sum;
}

/* ---- adding up ---- */

void tn_met_add(tn_met *m, const tn_met *more)
{
    TN_ASSERT(m != more);
    const char *reason = NULL;
    const char *count = NULL;
    m->counts.records += more->counts.records;
    m->counts.bytes += more->counts.bytes;
    m->counts.blank += more->counts.blank;
    m->counts.duplicate_key += more->counts.duplicate_key;
    m->counts.bad += more->counts.bad;
    m->tasks.contradictions += more->tasks.contradictions;
    for (uint32_t k = 0; k < TN_TASKS_MAX; k++) {
        m->tasks.task[k].rows += more->tasks.task[k].rows;
        m->tasks.task[k].clicks += more->tasks.task[k].clicks;
    }
    if (more->counts.sources > 0) {
        m->counts.sources = more->counts.sources;
    }
    for (size_t at = 0; tn_met_reason(more, &at, &reason, &count);) {
        add_reason(m, reason, strtoull(count, NULL, 10));
    }
}

void tn_met_add_labels(tn_met *m, const tn_tasks *tasks, const tn_batch *batch)
{
    TN_ASSERT(tasks->n == 0 || batch->task != NULL);
    for (uint32_t k = 0; k < tasks->n; k++) {
        m->tasks.task[k].rows += batch->task[k].counted;
        m->tasks.task[k].clicks += batch->task[k].clicks;
    }
    m->tasks.contradictions += batch->contradictions;
}

void tn_met_add_reader(tn_met *m, tn_reader *reader, uint32_t parts)
{
    TN_ASSERT(reader != NULL);
    tn_met more = {0};
    tn_reader_counts_of(reader, parts, &more.counts, &more.reasons);
    if (more.reasons.failed) {
        tn_text_clear(&more.reasons);
    }
    tn_met_add(m, &more);
    tn_met_done(&more);
}

tn_held tn_held_of(const tn_table *t)
{
    const tn_table_totals total = tn_table_total(t);
    return (tn_held){.created = total.created,
                     .admitted = total.admitted,
                     .rows = tn_table_rows(t),
                     .bytes = tn_table_bytes(t),
                     .expired = total.expired,
                     .evicted = total.evicted};
}
