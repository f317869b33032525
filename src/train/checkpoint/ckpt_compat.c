/* ckpt_compat.c - see ckpt_compat.h. */
#include "train/checkpoint/ckpt_compat.h"

#include "train/checkpoint/ckpt_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void differ(tn_text *out, const char *fmt, ...) TN_PRINTF(2, 3);

static void differ(tn_text *out, const char *fmt, ...)
{
    char line[300];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    tn_text_addf(out, "\n  %s", line);
}

static const tn_row_group *find_group(const tn_row_schema *s, const char *name)
{
    for (uint32_t i = 0; i < s->n_groups; i++) {
        if (strcmp(s->group[i].name, name) == 0) {
            return &s->group[i];
        }
    }
    return NULL;
}

static const tn_row_segment *find_segment(const tn_row_record *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_segments; i++) {
        if (strcmp(r->segment[i].name, name) == 0) {
            return &r->segment[i];
        }
    }
    return NULL;
}

static bool same_states(const tn_row_segment *a, const tn_row_segment *b)
{
    bool same = a->n_states == b->n_states;
    for (uint32_t i = 0; same && i < a->n_states; i++) {
        same = a->state[i].words == b->state[i].words && a->state[i].count == b->state[i].count &&
               strcmp(a->state[i].name, b->state[i].name) == 0;
    }
    return same;
}

static void compare_segment(const char *group, const tn_row_segment *now, const tn_row_segment *was,
                            tn_text *out)
{
    if (was == NULL) {
        differ(out, "slot '%s': the checkpoint has no '%s'", group, now->name);
    } else if (was->dim != now->dim) {
        differ(out, "slot '%s': '%s' is %u wide, in the checkpoint %u", group, now->name, now->dim,
               was->dim);
    } else if (strcmp(was->optimizer, now->optimizer) != 0 || !same_states(now, was)) {
        differ(out, "slot '%s': '%s' is trained by %s, in the checkpoint by %s with other state",
               group, now->name, now->optimizer, was->optimizer);
    }
}

static void compare_rows(const tn_row_schema *now, const tn_row_schema *was, tn_text *out)
{
    if (was->partitions != now->partitions) {
        differ(out, "%u partitions, in the checkpoint %u", now->partitions, was->partitions);
    }
    for (uint32_t g = 0; g < now->n_groups; g++) {
        const tn_row_group *group = find_group(was, now->group[g].name);
        if (group == NULL) {
            differ(out, "slot '%s' is not in the checkpoint", now->group[g].name);
            continue;
        }
        const tn_row_record *r = &now->record[now->group[g].record];
        const tn_row_record *old = &was->record[group->record];
        for (uint32_t s = 0; s < r->n_segments; s++) {
            compare_segment(group->name, &r->segment[s], find_segment(old, r->segment[s].name),
                            out);
        }
    }
    for (uint32_t g = 0; g < was->n_groups; g++) {
        if (find_group(now, was->group[g].name) == NULL) {
            differ(out, "slot '%s' of the checkpoint is gone", was->group[g].name);
        }
    }
}

static const tn_manifest_param *find_param(const tn_manifest_dense *d, const char *name)
{
    for (uint32_t i = 0; i < d->n_params; i++) {
        if (strcmp(d->param[i].name, name) == 0) {
            return &d->param[i];
        }
    }
    return NULL;
}

static void compare_params(const tn_manifest_dense *now, const tn_manifest_dense *was, tn_text *out)
{
    for (uint32_t i = 0; i < now->n_params; i++) {
        const tn_manifest_param *p = &now->param[i];
        const tn_manifest_param *q = find_param(was, p->name);
        if (q == NULL) {
            differ(out, "parameter '%s' is not in the checkpoint", p->name);
        } else if (q->rank != 2 || q->shape[0] != p->shape[0] || q->shape[1] != p->shape[1]) {
            differ(out, "parameter '%s' is [%llu, %llu], in the checkpoint [%llu, %llu]", p->name,
                   (unsigned long long)p->shape[0], (unsigned long long)p->shape[1],
                   (unsigned long long)q->shape[0], (unsigned long long)q->shape[1]);
        }
    }
    for (uint32_t i = 0; i < was->n_params; i++) {
        if (find_param(now, was->param[i].name) == NULL) {
            differ(out, "parameter '%s' of the checkpoint is gone", was->param[i].name);
        }
    }
    if (strcmp(now->optimizer, was->optimizer) != 0 || now->n_states != was->n_states) {
        differ(out, "train.optimizer is %s, in the checkpoint %s", now->optimizer, was->optimizer);
    }
}

tn_status tn_ckpt_fits(const tn_worker *w, const tn_manifest *m, bool goes_on, tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_manifest now = {0};
    tn_text differences = {0};
    tn_status status = tn_moment_describe(&now, w, arena, err);
    if (status == TN_OK && strcmp(now.structure, m->structure) != 0) {
        compare_rows(&now.sparse, &m->sparse, &differences);
        compare_params(&now.dense, &m->dense, &differences);
        if (differences.size == 0) {
            differ(&differences, "the same weights, but layers that use them differently");
        }
        const char *hint = "\nhint: --fresh begins anew, run.name=.. elsewhere";
        status =
            tn_fail(err, TN_E_CONFIG, "the model differs from that of checkpoint %llu:%.1300s%s",
                    (unsigned long long)m->ordinal, tn_text_str(&differences), goes_on ? hint : "");
    }
    tn_text_done(&differences);
    tn_arena_free(arena);
    return status;
}
