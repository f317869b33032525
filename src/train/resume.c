/* resume.c - loading a run; see checkpoint.h. */
#include "base/fmath.h"
#include "base/log.h"
#include "train/ckptstate.h"
#include "train/host.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What a checkpoint is read into. */
typedef struct loading {
    tn_worker *w;
    tn_run_state *state; /* NULL: weights only */
    tn_metrics *metrics; /* NULL: not wanted */
    tn_saved *which;
} loading;

/* ---- does it fit? ---- */

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

static tn_status fits(void *ctx, const tn_manifest *m, tn_error *err)
{
    const loading *l = ctx;
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_manifest now = {0};
    tn_text differences = {0};
    tn_status status = tn_ckpt_describe(&now, l->w, arena, err);
    if (status == TN_OK && strcmp(now.structure, m->structure) != 0) {
        compare_rows(&now.sparse, &m->sparse, &differences);
        compare_params(&now.dense, &m->dense, &differences);
        if (differences.size == 0) {
            differ(&differences, "the same weights, but layers that use them differently");
        }
        const char *hint = "\nhint: checkpoint.resume=never begins anew, run.name=.. elsewhere";
        status =
            tn_fail(err, TN_E_CONFIG, "the model differs from that of checkpoint %llu:%.1300s%s",
                    (unsigned long long)m->ordinal, tn_text_str(&differences),
                    l->state != NULL ? hint : "");
    }
    tn_text_done(&differences);
    tn_arena_free(arena);
    return status;
}

/* ---- reading ---- */

static tn_status read_sources(const char *path, const tn_manifest *m, tn_error *err)
{
    tn_text lines = {0};
    tn_status status = tn_file_read_all(path, (size_t)1 << 30, &lines, err);
    if (status == TN_OK && m->n_parts > 0) {
        status = tn_data_map_check(&lines, path, err);
    }
    tn_text_done(&lines);
    return status;
}

static tn_status read_one(const loading *l, const char *path, const tn_manifest *m,
                          const tn_manifest_file *file, tn_error *err)
{
    if (strcmp(file->type, "sparse") == 0) {
        return tn_ckpt_read_shard(path, &m->sparse, l->w, err);
    }
    if (strcmp(file->type, "dense") == 0) {
        uint64_t t = m->dense.n_scalars > 0 ? m->dense.scalar[0].value : 0;
        return tn_ckpt_read_dense(path, l->w, t, err);
    }
    if (strcmp(file->type, "metrics") == 0 && l->metrics != NULL) {
        return tn_ckpt_read_metrics(path, l->metrics, err);
    }
    if (strcmp(file->type, "sources") == 0 && l->state != NULL) {
        return read_sources(path, m, err);
    }
    return TN_OK;
}

static void take_state(const loading *l, const tn_manifest *m)
{
    tn_run_state *s = l->state;
    s->progress = (tn_progress){.epoch = m->epoch};
    s->stand = tn_data_stand_of(m);
    s->steps = m->step;
    s->samples = m->samples;
    s->eval_owed = m->eval_owed;
    s->patience = (tn_patience_state){.seen = m->best_name != NULL,
                                      .best = m->best_value,
                                      .step = m->best_step,
                                      .bad = (uint32_t)m->bad_evals,
                                      .lr_scale = m->lr_scale};
}

static void warn_of_changes(const loading *l, const tn_manifest *m)
{
    char blas[TN_HOST_BLAS_SIZE];
    tn_host_blas(blas);
    if (l->state == NULL) {
        return;
    }
    if (strcmp(m->blas, blas) != 0 || strcmp(m->cpu, tn_host_cpu()) != 0) {
        tn_log(TN_LOG_WARN,
               "the checkpoint was written on %s with %s, this is %s with %s: bits may "
               "differ",
               m->cpu, m->blas, tn_host_cpu(), blas);
    }
    if (m->seed != l->w->plan->run->run.seed) {
        tn_log(TN_LOG_WARN, "run.seed differs from the checkpoint's");
    }
}

static tn_status read_all(void *ctx, const char *path, const tn_manifest *m, tn_error *err)
{
    const loading *l = ctx;
    tn_table_clear(l->w->shard.table);
    for (uint32_t i = 0; i < m->n_files; i++) {
        tn_text file = {0};
        tn_text_addf(&file, "%s/%s", path, m->file[i].name);
        tn_status status = read_one(l, tn_text_str(&file), m, &m->file[i], err);
        tn_text_done(&file);
        TN_TRY(status);
    }
    l->w->steps = m->step;
    warn_of_changes(l, m);
    if (l->state != NULL) {
        take_state(l, m);
    }
    if (l->which != NULL) {
        *l->which = (tn_saved){.ordinal = m->ordinal,
                               .rows = m->rows,
                               .step = m->step,
                               .samples = m->samples,
                               .epoch = m->epoch,
                               .crc = m->crc};
        (void)snprintf(l->which->name, sizeof l->which->name, "ckpt-%llu",
                       (unsigned long long)m->ordinal);
    }
    return TN_OK;
}

/* ---- which one ---- */

/* Any checkpoint of the directory whose step is `step`; 0: none. */
typedef struct search {
    uint64_t step;
    uint64_t ordinal;
} search;

static tn_status look(void *ctx, const tn_manifest *m, tn_error *err)
{
    search *s = ctx;
    if (m->step == s->step) {
        s->ordinal = m->ordinal;
    }
    return tn_fail(err, TN_E_CONFIG, "only looking");
}

static uint64_t ordinal_of_step(const tn_checkpoints *c, uint64_t step)
{
    tn_arena *arena = tn_arena_new(1 << 12);
    const uint64_t *ordinals = NULL;
    uint32_t n = 0;
    search s = {.step = step};
    tn_error err = {0};
    tn_status status = tn_ckptdir_list(tn_checkpoints_dir(c), arena, &ordinals, &n, &err);
    for (uint32_t i = 0; status == TN_OK && i < n && s.ordinal == 0; i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%.4000s/ckpt-%llu", tn_checkpoints_dir(c),
                       (unsigned long long)ordinals[i]);
        tn_ckpt_loader loader = {.fits = look, .ctx = &s};
        tn_status looked = tn_ckptdir_load_one(path, &loader, &err);
        (void)looked; /* what matters is in s */
    }
    tn_arena_free(arena);
    return s.ordinal;
}

tn_status tn_checkpoints_resume(tn_checkpoints *c, tn_worker *w, tn_run_state *state,
                                tn_metrics *metrics, tn_saved *which, tn_error *err)
{
    const tn_checkpoint_opts *o = &c->plan->run->checkpoint;
    *which = (tn_saved){0};
    if (strcmp(o->resume, "never") == 0) {
        return TN_OK;
    }
    loading l = {.w = w, .state = state, .metrics = metrics, .which = which};
    tn_ckpt_loader loader = {.fits = fits, .read = read_all, .ctx = &l, .strict = o->strict};
    bool must = strcmp(o->resume, "must") == 0;
    if (!must && strcmp(o->resume, "auto") != 0) {
        TN_TRY(tn_ckptdir_load_one(o->resume, &loader, err));
    } else {
        uint64_t ordinal = 0;
        TN_TRY(tn_ckptdir_load(tn_checkpoints_dir(c), &loader, &ordinal, err));
        if (ordinal == 0 && must) {
            return tn_fail(err, TN_E_CKPT, "no checkpoint to go on from in '%s'",
                           tn_checkpoints_dir(c));
        }
        if (ordinal == 0) {
            return TN_OK;
        }
    }
    if (state->patience.seen) {
        state->best_ordinal = ordinal_of_step(c, state->patience.step);
    }
    return TN_OK;
}

tn_status tn_checkpoints_restore(tn_checkpoints *c, tn_worker *w, uint64_t ordinal, tn_error *err)
{
    uint64_t steps = w->steps;
    loading l = {.w = w};
    tn_ckpt_loader loader = {.fits = fits, .read = read_all, .ctx = &l};
    tn_text path = {0};
    tn_text_addf(&path, "%s/ckpt-%llu", tn_checkpoints_dir(c), (unsigned long long)ordinal);
    tn_status status = tn_ckptdir_load_one(tn_text_str(&path), &loader, err);
    tn_text_done(&path);
    w->steps = steps; /* the weights are older, the run is not */
    return status;
}

tn_status tn_checkpoint_load(const char *path, tn_worker *w, tn_saved *which, tn_error *err)
{
    loading l = {.w = w, .which = which};
    tn_ckpt_loader loader = {.fits = fits, .read = read_all, .ctx = &l};
    tn_text manifest = {0};
    tn_text_addf(&manifest, "%s/MANIFEST", path);
    bool one = tn_path_exists(tn_text_str(&manifest));
    tn_text_done(&manifest);
    if (one) {
        return tn_ckptdir_load_one(path, &loader, err);
    }
    if (!tn_path_exists(path)) {
        return tn_fail(err, TN_E_CKPT, "no checkpoint or run directory '%s'", path);
    }
    uint64_t ordinal = 0;
    TN_TRY(tn_ckptdir_load(path, &loader, &ordinal, err));
    if (ordinal == 0) {
        return tn_fail(err, TN_E_CKPT, "no checkpoint in '%s'", path);
    }
    return TN_OK;
}
