/* resume.c - loads a checkpoint into a run: which one, whether its model fits, and its state. */
#include "base/core/alloc.h"
#include "base/core/log.h"
#include "base/core/text.h"
#include "base/file/file.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "metrics/metrics.h"
#include "nn/graph/params.h"
#include "ps/shard/dense.h"
#include "ps/snapshot/manifest.h"
#include "train/checkpoint/ckpt_filter.h"
#include "train/checkpoint/ckpt_moment.h"
#include "train/checkpoint/ckptdir.h"
#include "train/checkpoint/ckptfiles.h"
#include "train/checkpoint/ckptstate.h"
#include "train/checkpoint/run_state.h"
#include "train/config/days.h"
#include "train/config/meaning.h"
#include "train/config/run.h"
#include "train/step/host.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- is the model of the checkpoint the one at hand? ----
 *
 *     the model differs from that of checkpoint 3:
 *       slot 'user': 'deep' is 4 wide, in the checkpoint 8
 */

/* The item called `name` of a list whose items begin with their names; NULL: there is none. */
static const void *find_named(const void *list, uint32_t n, size_t size, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *const *item = (const void *)((const char *)list + i * size);
        if (strcmp(*item, name) == 0) {
            return item;
        }
    }
    return NULL;
}

static const tn_row_group *find_group(const tn_row_schema *s, const char *name)
{
    return find_named(s->group, s->n_groups, sizeof *s->group, name);
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
        tn_text_addf(out, "\n  slot '%s': the checkpoint has no '%s'", group, now->name);
    } else if (was->dim != now->dim) {
        tn_text_addf(out, "\n  slot '%s': '%s' is %u wide, in the checkpoint %u", group, now->name,
                     now->dim, was->dim);
    } else if (strcmp(was->optimizer, now->optimizer) != 0 || !same_states(now, was)) {
        tn_text_addf(
            out, "\n  slot '%s': '%s' is trained by %s, in the checkpoint by %s with other state",
            group, now->name, now->optimizer, was->optimizer);
    }
}

static void compare_rows(const tn_row_schema *now, const tn_row_schema *was, tn_text *out)
{
    if (was->partitions != now->partitions) {
        tn_text_addf(out, "\n  %u partitions, in the checkpoint %u", now->partitions,
                     was->partitions);
    }
    for (uint32_t g = 0; g < now->n_groups; g++) {
        const tn_row_group *group = find_group(was, now->group[g].name);
        if (group == NULL) {
            tn_text_addf(out, "\n  slot '%s' is not in the checkpoint", now->group[g].name);
            continue;
        }
        TN_ASSERT(now->group[g].record < now->n_records && group->record < was->n_records);
        const tn_row_record *r = &now->record[now->group[g].record];
        const tn_row_record *old = &was->record[group->record];
        for (uint32_t s = 0; s < r->n_segments; s++) {
            const tn_row_segment *now_s = &r->segment[s];
            compare_segment(group->name, now_s,
                            find_named(old->segment, old->n_segments, sizeof *now_s, now_s->name),
                            out);
        }
        for (uint32_t s = 0; s < old->n_segments; s++) {
            const char *name = old->segment[s].name;
            if (find_named(r->segment, r->n_segments, sizeof *r->segment, name) == NULL) {
                tn_text_addf(out, "\n  slot '%s': '%s' of the checkpoint is gone", group->name,
                             name);
            }
        }
    }
    for (uint32_t g = 0; g < was->n_groups; g++) {
        if (find_group(now, was->group[g].name) == NULL) {
            tn_text_addf(out, "\n  slot '%s' of the checkpoint is gone", was->group[g].name);
        }
    }
}

static const tn_manifest_param *find_param(const tn_manifest_dense *d, const char *name)
{
    return find_named(d->param, d->n_params, sizeof *d->param, name);
}

static void compare_params(const tn_manifest_dense *now, const tn_manifest_dense *was, tn_text *out)
{
    for (uint32_t i = 0; i < now->n_params; i++) {
        const tn_manifest_param *p = &now->param[i];
        const tn_manifest_param *q = find_param(was, p->name);
        if (q == NULL) {
            tn_text_addf(out, "\n  parameter '%s' is not in the checkpoint", p->name);
        } else if (q->rank != 2 || q->shape[0] != p->shape[0] || q->shape[1] != p->shape[1]) {
            tn_text_addf(out, "\n  parameter '%s' is [%llu, %llu], in the checkpoint [%llu, %llu]",
                         p->name, (unsigned long long)p->shape[0], (unsigned long long)p->shape[1],
                         (unsigned long long)q->shape[0], (unsigned long long)q->shape[1]);
        }
    }
    for (uint32_t i = 0; i < was->n_params; i++) {
        if (find_param(now, was->param[i].name) == NULL) {
            tn_text_addf(out, "\n  parameter '%s' of the checkpoint is gone", was->param[i].name);
        }
    }
    if (strcmp(now->optimizer, was->optimizer) != 0 || now->n_states != was->n_states) {
        tn_text_addf(out, "\n  train.optimizer is %s, in the checkpoint %s", now->optimizer,
                     was->optimizer);
    }
}

/* TN_E_CONFIG with the differences. `goes_on`: a run is to go on from it, so the hint says how to
 * begin anew instead. */
static tn_status check_model(const tn_worker *w, const tn_manifest *m, bool goes_on, tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_manifest now = {0};
    tn_text differences = {0};
    tn_status status = tn_moment_describe(&now, w, arena, err);
    if (status == TN_OK && strcmp(now.structure, m->structure) != 0) {
        compare_rows(&now.sparse, &m->sparse, &differences);
        compare_params(&now.dense, &m->dense, &differences);
        if (differences.size == 0) {
            tn_text_addf(&differences,
                         "\n  the same weights, but layers that use them differently");
        }
        tn_meaning_shorten(&differences);
        const char *hint = "\nhint: --fresh begins anew, run.name=.. elsewhere";
        status =
            tn_fail(err, TN_E_CONFIG, "the model differs from that of checkpoint %llu:%.1300s%s",
                    (unsigned long long)m->ordinal, tn_text_str(&differences), goes_on ? hint : "");
    }
    tn_text_done(&differences);
    tn_arena_free(arena);
    return status;
}

typedef struct loading {
    tn_worker *w;
    tn_run_state *state; /* NULL: weights only */
    tn_metrics *metrics; /* NULL: not wanted */
    tn_saved *which;
    tn_epoch_position *stand;   /* NULL: not wanted; else the others take its steps, too */
    const tn_ckpt_peers *peers; /* others read when this one has; announce NULL: none */
    uint64_t top;               /* the checkpoint that is wanted; others precede it in its chain */
    bool no_rows;               /* these are read by others, of a full one */
    bool no_counts;  /* counts of keys without a row are left out: nobody learns from here on */
    uint32_t deltas; /* read so far on the full one */
    uint64_t bytes;  /* counts of rows and dense values of that */
} loading;

/* Positions within an epoch count rows in an order of their own. */
static tn_status fits_within(const tn_run *run, const tn_manifest *m, tn_error *err)
{
    const tn_run_sections *was = tn_run_sections_of(m);
    const bool seed = was->seed != run->run.seed && run->data.shuffle > 0;
    const bool shuffle = was->progress.shared && was->progress.shuffle != run->data.shuffle;
    if (was->progress.n_parts == 0 || (!seed && !shuffle)) {
        return TN_OK;
    }
    return tn_fail(err, TN_E_CONFIG,
                   "%s is %llu, in checkpoint %llu %llu, and that stands within an epoch: "
                   "its rows come in another order\nhint: --fresh begins anew",
                   seed ? "run.seed" : "data.shuffle",
                   (unsigned long long)(seed ? run->run.seed : run->data.shuffle),
                   (unsigned long long)m->ordinal,
                   (unsigned long long)(seed ? was->seed : was->progress.shuffle));
}

static tn_status fits(void *ctx, const tn_manifest *m, tn_error *err)
{
    loading *l = ctx;
    l->top = m->ordinal;
    TN_TRY(check_model(l->w, m, l->state != NULL, err));
    if (l->no_rows && m->base != 0) {
        return tn_fail(err, TN_E_CKPT, "checkpoint %llu holds changes only",
                       (unsigned long long)m->ordinal);
    }
    return l->state != NULL ? fits_within(l->w->plan->run, m, err) : TN_OK;
}

/* ---- reading ---- */

/* A text of a checkpoint, for who asked for its past. */
static tn_status read_past(const char *path, tn_text *out, tn_error *err)
{
    tn_text_clear(out);
    return tn_file_read_all(path, (size_t)1 << 30, out, err);
}

static tn_status read_one(const loading *l, const char *path, const tn_manifest *m,
                          const tn_manifest_file *file, size_t *reached, tn_error *err)
{
    tn_past *past = l->state != NULL ? l->state->past : NULL;
    if (strcmp(file->type, "sparse") == 0) {
        return l->no_rows ? TN_OK : tn_ckpt_read_shard(path, &m->sparse, l->w, err);
    }
    if (strcmp(file->type, "dense") == 0) {
        return tn_ckpt_read_dense(path, l->w, reached, err);
    }
    if (strcmp(file->type, "admit") == 0) {
        return l->no_counts ? TN_OK : tn_ckpt_read_filter(path, l->w, err);
    }
    if (strcmp(file->type, "metrics") == 0 && l->metrics != NULL) {
        return tn_ckpt_read_metrics(path, l->metrics, err);
    }
    if (strcmp(file->type, "sources") == 0 && past != NULL) {
        return read_past(path, &past->sources, err);
    }
    if (strcmp(file->type, "config") == 0 && past != NULL) {
        return read_past(path, &past->config, err);
    }
    return TN_OK;
}

static tn_status read_files(const loading *l, const char *path, const tn_manifest *m, tn_error *err)
{
    tn_worker *w = l->w;
    const size_t size = tn_params_size(w->params);
    size_t reached = 0; /* floats of the flat vector that are read */
    for (uint32_t i = 0; i < m->n_files; i++) {
        tn_text file = {0};
        tn_text_addf(&file, "%s/%s", path, m->file[i].name);
        tn_status status = read_one(l, tn_text_str(&file), m, &m->file[i], &reached, err);
        tn_text_done(&file);
        TN_TRY(status);
    }
    TN_ASSERT(reached <= size);
    if (reached != size) {
        return tn_fail(err, TN_E_CKPT, "'%s' holds %zu dense weights of %zu", path, reached, size);
    }
    tn_dense_set_t(w->shard.dense, m->dense.t);
    tn_worker_keep_own(w);
    return TN_OK;
}

/* Checks the rows of the table. Only the files' own counts of a part are known, and they were
 * checked. */
static tn_status check_rows(const loading *l, const char *path, const tn_manifest *m, tn_error *err)
{
    const tn_worker *w = l->w;
    uint64_t rows = tn_table_rows(w->shard.table);
    if (w->shares->owners.n_peers == 1 && !l->no_rows && rows != m->rows) {
        return tn_fail(err, TN_E_CKPT, "'%s' makes %llu rows, its manifest says %llu", path,
                       (unsigned long long)rows, (unsigned long long)m->rows);
    }
    return TN_OK;
}

static void take_state(tn_run_state *s, const tn_manifest *m)
{
    const tn_run_sections *from = tn_run_sections_of(m);
    const char *monitor = s->kept.patience.monitor;
    s->progress = (tn_progress){.epoch = from->progress.epoch};
    s->steps = m->step;
    s->samples = m->samples;
    s->kept = from->kept;
    s->kept.export.calibration = NULL; /* is fitted when it is needed */
    tn_early_stopping_state *p = &s->kept.patience;
    if (!p->seen || monitor == NULL || strcmp(p->monitor, monitor) != 0) {
        *p = (tn_early_stopping_state){.lr_scale = p->lr_scale}; /* another metric says nothing */
    }
    p->monitor = monitor;
}

static void warn_of_changes(const loading *l, const tn_manifest *m)
{
    char blas[TN_HOST_BLAS_SIZE];
    if (l->state == NULL) {
        return;
    }
    tn_host_blas(&l->w->plan->run->compute, blas);
    const tn_run_sections *was = tn_run_sections_of(m);
    if (strcmp(was->blas, blas) != 0 || strcmp(was->cpu, tn_host_cpu()) != 0) {
        tn_log(TN_LOG_WARN,
               "the checkpoint was written on %s with %s, this is %s with %s: bits may "
               "differ",
               was->cpu, was->blas, tn_host_cpu(), blas);
    }
    if (was->seed != l->w->plan->run->run.seed) {
        tn_log(TN_LOG_WARN, "run.seed differs from the checkpoint's");
    }
}

static uint64_t learned_bytes(const tn_manifest *m)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < m->n_files; i++) {
        const char *type = m->file[i].type;
        const bool learned = strcmp(type, "sparse") == 0 || strcmp(type, "dense") == 0;
        bytes += learned ? m->file[i].bytes : 0;
    }
    return bytes;
}

static tn_status read_all(void *ctx, const char *path, const tn_manifest *m, tn_error *err)
{
    loading *l = ctx;
    TN_ASSERT(m->ordinal <= l->top); /* a chain ends with the one that is wanted */
    l->deltas = m->base != 0 ? l->deltas + 1 : 0;
    if (m->base == 0) {
        l->bytes = learned_bytes(m);
        tn_table_clear(l->w->shard.table);
    }
    TN_TRY(read_files(l, path, m, err));
    TN_TRY(check_rows(l, path, m, err));
    if (m->ordinal == l->top && l->peers != NULL && l->peers->announce != NULL) {
        TN_TRY(l->peers->load(l->peers->arg, path, l->stand != NULL, err));
    }
    l->w->steps = m->step;
    l->w->loaded_day = (uint32_t)m->clock;
    if (l->w->plan->run->run.day == NULL || l->stand == NULL) { /* else it learns on run.day */
        l->w->day = m->clock; /* 0, or the day of what the run began with */
    }
    warn_of_changes(l, m);
    if (l->stand != NULL) {
        tn_epoch_position_done(l->stand);
        TN_TRY(tn_epoch_position_init(l->stand, &tn_run_sections_of(m)->progress, err));
    }
    if (l->state != NULL) {
        take_state(l->state, m);
    }
    if (l->which != NULL) {
        *l->which = (tn_saved){.deltas = l->deltas, .bytes = l->bytes, .crc = m->crc};
        tn_checkpoints_name(l->which, m);
    }
    return TN_OK;
}

/* ---- which one ---- */

/* Turns TN_E_LIMIT into a fault of the checkpoint, which was asked for by name. */
static tn_status as_ckpt(tn_status status, tn_error *err)
{
    if (status == TN_E_LIMIT && err != NULL) {
        err->code = TN_E_CKPT;
    }
    return status == TN_E_LIMIT ? TN_E_CKPT : status;
}

static tn_status load_one(const char *path, const tn_ckpt_loader *loader, tn_error *err)
{
    return as_ckpt(tn_ckptdir_load_one(path, loader, err), err);
}

/* Returns the newest checkpoint of the best step which took itself for the best; 0: none. It is not
 * to be pruned, so what cannot be read is a failure; what is damaged is passed over. The net's
 * optimizer counts its steps, which separates other weights from these. */
static tn_status find_best(const tn_checkpoints *c, const tn_worker *w, tn_run_state *state,
                           tn_error *err)
{
    const uint64_t step = state->kept.patience.step;
    uint64_t *out = &state->best_ordinal;
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_ckpt_listing list = {0};
    tn_status status = tn_ckptdir_list(tn_checkpoints_dir(c), arena, &list, err);
    *out = 0;
    for (uint32_t i = 0; status == TN_OK && i < list.n && *out == 0; i++) {
        char path[TN_PATH_SIZE];
        tn_manifest m = {0};
        status = tn_ckptdir_path(tn_checkpoints_dir(c), list.ordinal[i], path, err);
        status = status == TN_OK ? tn_ckpt_read_manifest(path, arena, &m, err) : status;
        const tn_early_stopping_state *was =
            status == TN_OK ? &tn_run_sections_of(&m)->kept.patience : NULL;
        if (was != NULL && m.step == step && was->seen && was->step == step) {
            *out = list.ordinal[i];
            state->owes_best = m.dense.t != tn_dense_t(w->shard.dense);
        }
        status = status == TN_E_CKPT ? TN_OK : status;
    }
    tn_arena_free(arena);
    return status;
}

/* ---- the beginning of a run ---- */

/* Whether the folder that holds `path` is the run's own, `own`. */
static bool is_own(const char *own, const char *path)
{
    char beside[TN_PATH_SIZE];
    char folder[TN_PATH_SIZE];
    struct stat dir;
    struct stat other;
    if (tn_ckptdir_beside(path, 1, beside, NULL) != TN_OK ||
        tn_path_parent(beside, folder, NULL) != TN_OK) {
        return false;
    }
    return stat(own, &dir) == 0 && stat(folder, &other) == 0 && dir.st_dev == other.st_dev &&
           dir.st_ino == other.st_ino;
}

/* The weights and their optimizer state alone: what is begun here is a run of its own. */
static tn_status begin_with(tn_checkpoints *c, tn_worker *w, tn_run_state *state, tn_saved *which,
                            tn_error *err)
{
    const char *path = c->plan->run->checkpoint.resume;
    loading l = {.w = w, .which = which, .peers = &c->peers};
    tn_ckpt_loader loader = {.fits = fits, .read = read_all, .ctx = &l, .strict = true};
    TN_TRY(load_one(path, &loader, err));
    TN_ASSERT(which->ordinal != 0);
    state->kept.begun = true;
    state->kept.begun_crc = which->crc;
    which->ordinal = 0;
    w->steps = 0;
    return TN_OK;
}

/* A run that was begun with these very weights goes on from its position; any other one stays. */
static tn_status check_begun(const tn_checkpoints *c, const tn_run_state *state,
                             const tn_saved *which, tn_error *err)
{
    const char *path = c->plan->run->checkpoint.resume;
    const char *hint = "checkpoint.resume=auto goes on with this run; --fresh begins anew with "
                       "those weights, and keeps what is there";
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_manifest m = {0};
    tn_status status = tn_ckpt_read_manifest(path, arena, &m, err);
    const uint32_t crc = m.crc;
    tn_arena_free(arena);
    if (status != TN_OK) {
        return tn_fail(err, TN_E_CKPT, "no checkpoint '%s' to begin with\nhint: %s", path, hint);
    }
    if (state->kept.begun && state->kept.begun_crc == crc) {
        return TN_OK;
    }
    return tn_fail(err, TN_E_CONFIG,
                   "'%s' holds checkpoints of a run of its own (%s, step %llu), and "
                   "checkpoint.resume names one of another, '%s'\nhint: %s",
                   tn_checkpoints_dir(c), which->name, (unsigned long long)which->step, path, hint);
}

/* Changes of `w` are tracked from now on, so deltas may be based on `on`, which was loaded. */
static tn_status set_base(tn_checkpoints *c, tn_worker *w, const tn_saved *on,
                          const uint64_t *histogram, tn_error *err)
{
    const size_t cells = 2UL * TN_MOMENT_BINS;
    c->base.ordinal = 0;
    if (c->plan->run->checkpoint.delta_every == NULL || on->run_id != c->run_id) {
        return TN_OK;
    }
    if (c->base_histogram == NULL) {
        TN_TRY(TN_ALLOC(c->base_histogram, cells, "a copy of a histogram", err));
    }
    TN_TRY(tn_table_track(w->shard.table, err));
    TN_ASSERT(histogram != NULL);
    memcpy(c->base_histogram, histogram, cells * sizeof *histogram);
    c->base = *on;
    return TN_OK;
}

static tn_status load_newest(tn_checkpoints *c, const tn_ckpt_loader *loader, tn_saved *which,
                             tn_error *err)
{
    const loading *l = loader->ctx;
    uint64_t ordinal = 0;
    TN_TRY(as_ckpt(tn_ckptdir_load(tn_checkpoints_dir(c), loader, &ordinal, err), err));
    TN_ASSERT(which->ordinal == ordinal);
    return ordinal != 0 && l->metrics != NULL
               ? set_base(c, l->w, which, tn_metrics_histogram(l->metrics), err)
               : TN_OK;
}

tn_status tn_checkpoints_resume(tn_checkpoints *c, tn_worker *w, tn_run_state *state,
                                tn_metrics *metrics, tn_saved *which, tn_error *err)
{
    TN_ASSERT(c->moment == NULL);
    const tn_checkpoint_opts *o = &c->plan->run->checkpoint;
    const bool must = strcmp(o->resume, "must") == 0;
    const bool never = strcmp(o->resume, "never") == 0;
    const bool path = !must && !never && strcmp(o->resume, "auto") != 0;
    loading l = {.w = w,
                 .state = state,
                 .stand = &state->stand,
                 .metrics = metrics,
                 .which = which,
                 .peers = &c->peers};
    const tn_ckpt_loader loader = {
        .fits = fits, .read = read_all, .ctx = &l, .owner = c->files, .strict = o->strict};
    *which = (tn_saved){0};
    if (o->fresh || never) {
        TN_TRY(path ? begin_with(c, w, state, which, err) : TN_OK);
        return o->fresh ? tn_ckptdir_begin_anew(c->files, err) : TN_OK;
    }
    if (path && is_own(tn_checkpoints_dir(c), o->resume)) {
        TN_TRY(load_one(o->resume, &loader, err));
    } else {
        TN_TRY(load_newest(c, &loader, which, err));
        if (which->ordinal == 0 && must) {
            return tn_fail(err, TN_E_CKPT, "no checkpoint to go on from in '%s'",
                           tn_checkpoints_dir(c));
        }
        if (path) {
            TN_TRY(which->ordinal == 0 ? begin_with(c, w, state, which, err)
                                       : check_begun(c, state, which, err));
        }
    }
    if (state->kept.days.used) { /* the last one after a whole day is never pruned */
        state->best_ordinal = state->kept.days.within ? state->kept.days.before : which->ordinal;
    }
    if (state->kept.patience.seen) {
        return as_ckpt(find_best(c, w, state, err), err);
    }
    return TN_OK;
}

tn_status tn_checkpoints_restore(tn_checkpoints *c, tn_worker *w, uint64_t ordinal, tn_error *err)
{
    TN_ASSERT(c->moment == NULL);
    uint64_t steps = w->steps;
    loading l = {.w = w, .peers = &c->peers};
    tn_ckpt_loader loader = {.fits = fits, .read = read_all, .ctx = &l};
    char path[TN_PATH_SIZE];
    c->base.ordinal = 0;
    TN_TRY(tn_ckptdir_path(tn_checkpoints_dir(c), ordinal, path, err));
    tn_status status = tn_ckptdir_load_one(path, &loader, err);
    tn_error second = {0};
    if (status == TN_E_CKPT && tn_path_exists(path) &&
        tn_ckptdir_set_aside(c->files, ordinal, &second) != TN_OK) {
        tn_log(TN_LOG_WARN, "ckpt-%llu is damaged: %s", (unsigned long long)ordinal, second.text);
    }
    w->steps = steps; /* the weights are older, the run is not */
    return as_ckpt(status, err);
}

tn_status tn_ckptshare_load(tn_worker *w, const char *path, tn_epoch_position *stand, tn_error *err)
{
    const uint64_t steps = w->steps;
    loading l = {.w = w, .stand = stand};
    tn_ckpt_loader loader = {.fits = fits, .read = read_all, .ctx = &l, .seen = true};
    TN_TRY(tn_ckptdir_load_one(path, &loader, err));
    if (stand == NULL) {
        w->steps = steps;
        return TN_OK;
    }
    bool deltas = w->plan->run->checkpoint.delta_every != NULL;
    return deltas ? tn_table_track(w->shard.table, err) : TN_OK;
}

tn_status tn_checkpoint_load(const char *path, tn_worker *w, tn_saved *which, tn_error *err)
{
    loading l = {.w = w, .which = which, .no_counts = true};
    tn_ckpt_loader loader = {.fits = fits, .read = read_all, .ctx = &l};
    char manifest[TN_PATH_SIZE];
    if (tn_path_join(path, "MANIFEST", manifest, NULL) == TN_OK && tn_path_exists(manifest)) {
        return load_one(path, &loader, err);
    }
    const bool from = !tn_tree_is_null(w->plan->run->checkpoint.from);
    const char *hint = from ? "tnet-train CONFIG train.epochs=0' makes one of checkpoint.from"
                            : "tnet-train CONFIG' makes one where run.dir says";
    if (!tn_path_exists(path)) {
        return tn_fail(err, TN_E_CKPT, "no checkpoint or run directory '%s'\nhint: '%s", path,
                       hint);
    }
    if (!tn_path_is_dir(path)) {
        return tn_fail(err, TN_E_CKPT, "'%s' is a file, not a checkpoint or run directory", path);
    }
    uint64_t ordinal = 0;
    TN_TRY(as_ckpt(tn_ckptdir_load(path, &loader, &ordinal, err), err));
    if (ordinal == 0) {
        return tn_fail(err, TN_E_CKPT, "no checkpoint in '%s'\nhint: '%s", path, hint);
    }
    return TN_OK;
}

tn_status tn_checkpoint_load_dense(const char *path, tn_worker *w, tn_saved *which, tn_error *err)
{
    loading l = {.w = w, .which = which, .no_rows = true, .no_counts = true};
    const tn_ckpt_loader loader = {.fits = fits, .read = read_all, .ctx = &l};
    return load_one(path, &loader, err);
}

/* The path of the checkpoint that is read first; empty: there is none. */
static void first_of(const tn_run *run, char out[TN_PATH_SIZE])
{
    const tn_checkpoint_opts *o = &run->checkpoint;
    tn_ckpt_listing there = {0};
    tn_text dir = {0};
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_run_dir(&run->run, &dir);
    out[0] = '\0';
    if (o->fresh || strcmp(o->resume, "never") == 0) {
        /* it begins anew */
    } else if (is_own(tn_text_str(&dir), o->resume)) {
        (void)snprintf(out, TN_PATH_SIZE, "%s", o->resume);
    } else if (tn_ckptdir_list(tn_text_str(&dir), arena, &there, NULL) == TN_OK && there.n > 0 &&
               tn_ckptdir_path(tn_text_str(&dir), there.ordinal[0], out, NULL) != TN_OK) {
        out[0] = '\0';
    }
    tn_arena_free(arena);
    tn_text_done(&dir);
}

static void read_days(const char *path, tn_learned_days *out, uint64_t *step)
{
    tn_manifest m = {0};
    tn_arena *arena = tn_arena_new(1 << 14);
    *out = (tn_learned_days){0};
    if (path[0] != '\0' && tn_ckpt_read_manifest(path, arena, &m, NULL) == TN_OK) {
        *out = tn_run_sections_of(&m)->kept.days;
        if (step != NULL) {
            *step = m.step;
        }
    }
    tn_arena_free(arena);
}

void tn_checkpoint_days(const tn_run *run, tn_learned_days *out, uint64_t *step)
{
    char path[TN_PATH_SIZE];
    first_of(run, path);
    read_days(path, out, step);
}

void tn_checkpoint_days_at(const char *path, tn_learned_days *out)
{
    char folder[TN_PATH_SIZE];
    tn_text config = {0};
    tn_checkpoint_config_path(path, &config);
    *out = (tn_learned_days){0};
    if (tn_path_parent(tn_text_str(&config), folder, NULL) == TN_OK) {
        read_days(folder, out, NULL);
    }
    tn_text_done(&config);
}

bool tn_checkpoint_has_day(const char *path, uint32_t day)
{
    tn_learned_days learned;
    tn_checkpoint_days_at(path, &learned);
    return tn_days_has(&learned, day);
}

tn_status tn_checkpoint_valid_rows(const char *path, const tn_run *run, tn_arena *arena,
                                   tn_valid_rows *out, tn_error *err)
{
    tn_learned_days learned = {0};
    if (run->data.next) {
        tn_checkpoint_days_at(path, &learned);
    }
    return tn_valid_rows_find(&run->data, &learned, arena, out, err);
}

tn_status tn_checkpoint_run_dir(const char *path, char out[TN_PATH_SIZE], tn_error *err)
{
    char beside[TN_PATH_SIZE];
    TN_TRY(tn_path_join(path, "MANIFEST", beside, err));
    if (!tn_path_exists(beside)) {
        (void)snprintf(out, TN_PATH_SIZE, "%s", path);
        return TN_OK;
    }
    TN_TRY(tn_ckptdir_beside(path, 1, beside, err));
    return tn_path_parent(beside, out, err);
}

void tn_checkpoint_settle(const tn_run *run)
{
    tn_ckptdir *d = NULL;
    tn_text dir = {0};
    tn_run_dir(&run->run, &dir);
    if (tn_path_is_dir(tn_text_str(&dir)) &&
        tn_ckptdir_open(&d, tn_text_str(&dir), NULL) == TN_OK) {
        tn_ckptdir_close(d);
    }
    tn_text_done(&dir);
}

void tn_checkpoint_config_path(const char *path, tn_text *out)
{
    tn_ckpt_listing there = {0};
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_text_addf(out, "%s/config.yaml", path);
    if (!tn_path_exists(tn_text_str(out)) && tn_ckptdir_list(path, arena, &there, NULL) == TN_OK &&
        there.n > 0) {
        tn_text_clear(out);
        tn_text_addf(out, "%s/ckpt-%llu/config.yaml", path, (unsigned long long)there.ordinal[0]);
    }
    tn_arena_free(arena);
}

void tn_checkpoint_config(const char *path, tn_text *out)
{
    tn_text file = {0};
    tn_checkpoint_config_path(path, &file);
    if (tn_file_read_all(tn_text_str(&file), TN_YAML_BYTES_MAX, out, NULL) != TN_OK) {
        tn_text_clear(out);
    }
    tn_text_done(&file);
}

void tn_saved_path(const char *path, const tn_saved *which, tn_text *out)
{
    size_t size = strlen(path);
    while (size > 1 && path[size - 1] == '/') {
        size--;
    }
    const size_t from = out->size;
    TN_ASSERT(size > 0 && which->name[0] != '\0');
    tn_text_add(out, path, size);
    const char *last = strrchr(tn_text_str(out) + from, '/');
    last = last != NULL ? last + 1 : tn_text_str(out) + from;
    if (strcmp(last, which->name) != 0) {
        tn_text_addf(out, "/%s", which->name);
    }
}
