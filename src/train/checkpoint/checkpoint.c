/* checkpoint.c - saves a run: the moment between two steps, and the thread that writes it into
 * files, on rank 0 and on the others, each its part. */
#include "train/checkpoint/checkpoint.h"

#include "base/core/alloc.h"
#include "base/core/log.h"
#include "base/math/sha256.h"
#include "nn/graph/params.h"
#include "ps/shard/dense.h"
#include "train/checkpoint/ckptfiles.h"
#include "train/checkpoint/ckptstate.h"
#include "train/checkpoint/run_state.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- the thread ---- */

enum { NICE = 10 }; /* niceness of the thread that writes while training goes on */

static tn_status write_now(void *arg, tn_error *err)
{
    tn_ckpt_writing *w = arg;
    TN_ASSERT(!atomic_load(&w->written));
    tn_status status = w->write(w->of, err);
    atomic_store(&w->written, true);
    return status;
}

/* Training goes first: the thread takes what it leaves of the processors. When it leaves too
 * little, its pushes wait (ps/table/table_snapshot.h); when somebody waits for the end, it leaves
 * all. */
static tn_status write_behind(void *arg, tn_error *err)
{
    tn_thread_step_back(NICE);
    return write_now(arg, err);
}

static void decide(tn_ckpt_writing *w, bool keep)
{
    if (w->is_open) {
        w->is_open = false;
        w->dropped = !keep;
        (void)sem_post(&w->decided);
    }
}

static void begin_writing(tn_ckpt_writing *w, tn_thread_fn *write, void *of, bool waits)
{
    TN_ASSERT(w->thread == NULL);
    w->write = write;
    w->of = of;
    w->status = TN_OK;
    w->is_open = true;
    (void)sem_init(&w->decided, 0, 0); /* fails for larger values only */
    atomic_store(&w->written, false);
    if (!waits) {
        decide(w, true);
    }
    if (tn_thread_start(&w->thread, "tn-save", write_behind, w, NULL) != TN_OK) {
        decide(w, true);
        w->status = write_now(w, &w->err); /* then training waits */
    }
}

static tn_status end_writing(tn_ckpt_writing *w, tn_error *err)
{
    decide(w, true);
    if (w->thread != NULL) {
        w->status = tn_thread_join(w->thread, &w->err);
        w->thread = NULL;
    }
    if (w->status != TN_OK && err != NULL) {
        *err = w->err;
    }
    return w->status;
}

/* ---- writing a moment into the files of a checkpoint ---- */

/* The files of this process, then those of the others. */
static tn_status write_files(tn_checkpoints *c, tn_ckpt_files *files, tn_error *err)
{
    const tn_manifest *m = &c->moment->manifest;
    tn_ckpt_own own = {.folder = tn_ckptdir_folder(c->files),
                       .moment = c->moment,
                       .head = {.run_id = m->run_id,
                                .step = m->step,
                                .base_step = m->base != 0 ? c->base.step : 0,
                                .delta = m->base != 0}};
    tn_status status = tn_ckpt_write_own(&own, files, err);
    c->lost_rows = own.lost_rows;
    if (status == TN_OK && c->announced) {
        status = c->peers.collect(c->peers.arg, files, err);
        c->lost_rows = status == TN_E_IO;
    }
    TN_TRY(status);
    return tn_ckpt_files_check(files, err);
}

/* About the bytes that the files will take: keys are mixed, so peers hold as many rows each. */
static uint64_t expected_bytes(const tn_checkpoints *c)
{
    const tn_moment *m = c->moment;
    const uint64_t histogram =
        m->changes.failed ? 2UL * TN_MOMENT_BINS * sizeof *m->histogram : m->changes.size;
    return TN_CKPT_SMALL_BYTES + histogram + m->sources.size +
           tn_cut_bytes(m->rows) * c->plan->owners.n_peers +
           (1 + m->manifest.dense.n_states) * sizeof(float) * m->manifest.dense.size;
}

/* Rows are kept for good, so a model never gets smaller. */
tn_status tn_checkpoints_room(const tn_checkpoints *c, const tn_worker *w, const tn_saved *from,
                              tn_ckpt_room *out, tn_error *err)
{
    tn_state spec[TN_STATES_MAX];
    const uint64_t arrays = 1 + tn_dense_states(w->shard.dense, spec);
    const uint64_t dense = arrays * sizeof(float) * tn_params_size(w->params);
    const uint32_t keep = c->plan->run->checkpoint.keep;
    tn_ckpt_listing present = {0};
    uint64_t room = 0;
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_status status = tn_ckptdir_list(tn_checkpoints_dir(c), arena, &present, err);
    tn_arena_free(arena);
    TN_TRY(status);
    TN_TRY(tn_disk_free(tn_checkpoints_dir(c), &room, err));
    *out = (tn_ckpt_room){.least = from->ordinal != 0 && from->bytes > dense ? from->bytes : dense,
                          .unused = room,
                          .wanted = present.n > keep ? 1 : keep + 1 - present.n};
    return TN_OK;
}

static tn_status commit(tn_checkpoints *c, tn_error *err)
{
    tn_text manifest = {0};
    uint32_t *crc = &c->saved.crc;
    tn_status status = tn_manifest_write(&c->moment->manifest, &manifest, crc, err);
    if (status == TN_OK) {
        status = tn_ckptdir_commit(c->files, &manifest, *crc, err);
    }
    tn_text_done(&manifest);
    return status;
}

/* Waits until somebody has decided, which is not time that the save takes. */
static tn_status await_decision(tn_checkpoints *c, tn_error *err)
{
    const double since = tn_clock_s();
    while (sem_wait(&c->writing.decided) != 0) { /* a signal */
    }
    c->begin += tn_clock_s() - since;
    return c->writing.dropped ? tn_fail(err, TN_E_STOPPED, "it is no longer wanted") : TN_OK;
}

static tn_status save(tn_checkpoints *c, tn_error *err)
{
    tn_manifest *m = &c->moment->manifest;
    tn_ckpt_files files;
    TN_TRY(c->later ? await_decision(c, err) : TN_OK);
    if (!c->announced) {
        TN_TRY(tn_ckptdir_begin(c->files, expected_bytes(c), &m->ordinal, err));
    }
    tn_ckpt_files_init(&files, c->moment->arena, &c->plan->owners);
    TN_TRY(write_files(c, &files, err));
    m->file = files.file;
    m->n_files = files.n;
    m->rows = files.rows;
    c->saved.bytes = files.bytes;
    c->saved.written = files.written;
    return commit(c, err);
}

/* A save has failed: nobody writes into its folder any more, and that goes. */
static void abandon(tn_checkpoints *c)
{
    tn_cut_close(c->moment->rows); /* nobody need wait for it any more */
    c->moment->rows = NULL;
    if (c->announced) {
        c->peers.abandon(c->peers.arg);
    }
    tn_ckptdir_abandon(c->files);
}

/* The new checkpoint is good even when an old one cannot be removed: no failure. */
static void prune(tn_checkpoints *c)
{
    tn_error err = {0};
    if (!c->keeps_all &&
        tn_ckptdir_prune(c->files, c->plan->run->checkpoint.keep, c->best, &err) != TN_OK) {
        tn_log(TN_LOG_WARN, "an old checkpoint stays: %s", err.text);
    }
}

void tn_checkpoints_name(tn_saved *out, const tn_manifest *m)
{
    (void)snprintf(out->name, sizeof out->name, "ckpt-%llu", (unsigned long long)m->ordinal);
    out->ordinal = m->ordinal;
    out->run_id = m->run_id;
    out->rows = m->rows;
    out->step = m->step;
    out->samples = m->samples;
    out->epoch = tn_run_sections_of(m)->progress.epoch;
}

static tn_status write_and_commit(void *arg, tn_error *err)
{
    tn_checkpoints *c = arg;
    TN_ASSERT(c->moment != NULL);
    tn_status status = save(c, err);
    if (status != TN_OK) {
        abandon(c);
        tn_error_context(err, "checkpoint not saved");
        return status;
    }
    tn_checkpoints_name(&c->saved, &c->moment->manifest);
    c->saved.seconds = tn_clock_s() - c->begin;
    prune(c);
    return TN_OK;
}

/* ---- opening and closing ---- */

/* In deterministic mode a run is its configuration; else it is one of a kind. */
static uint64_t make_run_id(const tn_model_plan *plan, const char *config)
{
    if (!plan->run->run.deterministic) {
        return tn_random_id();
    }
    tn_sha256 h;
    tn_sha256_init(&h);
    tn_sha256_add(&h, config, strlen(config));
    return tn_sha256_end64(&h);
}

tn_status tn_checkpoints_open(tn_checkpoints **out, const tn_model_plan *plan,
                              const tn_run_text *text, tn_error *err)
{
    *out = NULL;
    tn_checkpoints *c = NULL;
    TN_TRY(TN_ALLOC(c, 1, "checkpoints", err));
    c->plan = plan;
    c->text = text;
    c->run_id = make_run_id(plan, text->config);
    tn_run_dir(&plan->run->run, &c->dir);
    tn_status status = tn_text_check(&c->dir, "run.dir", err);
    if (status == TN_OK) {
        status = tn_ckptdir_open(&c->files, tn_text_str(&c->dir), err);
    }
    if (status != TN_OK) {
        tn_checkpoints_close(c);
        return status;
    }
    *out = c;
    return TN_OK;
}

void tn_checkpoints_close(tn_checkpoints *c)
{
    if (c == NULL) {
        return;
    }
    if (c->moment != NULL) {
        tn_saved saved;
        tn_status status = tn_checkpoints_end(c, &saved, NULL);
        (void)status; /* the caller asked for it */
    }
    tn_free(c->base_histogram);
    tn_ckptdir_close(c->files);
    tn_text_done(&c->dir);
    tn_free(c);
}

const char *tn_checkpoints_dir(const tn_checkpoints *c)
{
    return tn_text_str(&c->dir);
}

void tn_checkpoints_set_peers(tn_checkpoints *c, const tn_ckpt_peers *peers)
{
    TN_ASSERT(c->moment == NULL);
    TN_ASSERT(peers->announce != NULL && peers->collect != NULL);
    TN_ASSERT(peers->abandon != NULL && peers->load != NULL);
    c->peers = *peers;
}

uint64_t tn_checkpoints_run_id(const tn_checkpoints *c)
{
    return c->run_id;
}

/* ---- deltas ---- */

static bool has_deltas(const tn_checkpoints *c)
{
    return c->plan->run->checkpoint.delta_every != NULL;
}

/* Whether a delta can be made: full ones come now and then, so that loading stays short; and
 * somebody may have removed the base. */
static bool can_be_delta(const tn_checkpoints *c, const tn_worker *w)
{
    char path[TN_PATH_SIZE];
    char manifest[TN_PATH_SIZE];
    return c->base.ordinal != 0 && c->base.deltas < TN_CKPT_DELTAS_MAX &&
           tn_table_knows_changes(w->shard.table) &&
           tn_ckptdir_path(tn_checkpoints_dir(c), c->base.ordinal, path, NULL) == TN_OK &&
           tn_path_join(path, "MANIFEST", manifest, NULL) == TN_OK && tn_path_exists(manifest);
}

/* The checkpoint just saved becomes the base, with the histogram of its moment. */
static void advance_base(tn_checkpoints *c)
{
    if (!has_deltas(c)) {
        return;
    }
    if (!c->moment->delta) {
        tn_free(c->base_histogram);
        c->base_histogram = c->moment->histogram;
        c->moment->histogram = NULL;
    }
    c->base = c->saved;
}

/* ---- a save ---- */

static tn_status take_moment(tn_checkpoints *c, tn_worker *w, const tn_ckpt_want *want,
                             tn_error *err)
{
    TN_ASSERT(c->moment == NULL);
    TN_ASSERT(c->peers.announce != NULL || c->plan->owners.n_peers == 1);
    c->begin = tn_clock_s();
    c->best = want->state->best_ordinal;
    c->keeps_all = want->keeps_all;
    c->lost_rows = false;
    c->announced = false;
    c->saved = (tn_saved){0};
    bool delta = want->delta && can_be_delta(c, w);
    tn_moment_from from = {.w = w,
                           .delta = delta,
                           .state = want->state,
                           .metrics = want->metrics,
                           .text = c->text,
                           .run_id = c->run_id,
                           .base = delta ? c->base_histogram : NULL};
    tn_status status = has_deltas(c) ? tn_table_track(w->shard.table, err) : TN_OK;
    if (status == TN_OK) {
        status = tn_moment_take(&c->moment, &from, err);
    }
    if (status != TN_OK) {
        c->base.ordinal = 0;
        tn_error_context(err, "checkpoint not saved");
        return status;
    }
    c->later = want->later && c->peers.announce == NULL && tn_cut_set_patient(c->moment->rows);
    if (delta) {
        TN_ASSERT(c->moment->delta && c->base.ordinal != 0);
        c->moment->manifest.base = c->base.ordinal;
        c->moment->manifest.base_crc = c->base.crc;
        c->saved.deltas = c->base.deltas + 1;
    }
    return TN_OK;
}

/* All ranks take the same moment: the folder is there before anybody goes on. */
static tn_status announce(tn_checkpoints *c, tn_error *err)
{
    TN_ASSERT(c->moment != NULL && !c->announced);
    tn_manifest *m = &c->moment->manifest;
    TN_TRY(tn_ckptdir_begin(c->files, expected_bytes(c), &m->ordinal, err));
    const char *folder = strrchr(tn_ckptdir_folder(c->files), '/') + 1;
    tn_ckpt_order order = {.ordinal = m->ordinal,
                           .run_id = m->run_id,
                           .step = m->step,
                           .base_step = c->moment->delta ? c->base.step : 0,
                           .delta = c->moment->delta};
    TN_ASSERT(strlen(folder) < sizeof order.folder);
    memcpy(order.folder, folder, strlen(folder) + 1);
    c->announced = true;
    return c->peers.announce(c->peers.arg, &order, err);
}

tn_status tn_checkpoints_begin(tn_checkpoints *c, tn_worker *w, const tn_ckpt_want *want,
                               tn_error *err)
{
    TN_TRY(take_moment(c, w, want, err));
    if (c->text->places != NULL) {
        tn_ckptdir_keep_places(c->files, c->text->places);
    }
    tn_status status = c->peers.announce != NULL ? announce(c, err) : TN_OK;
    if (status != TN_OK) {
        abandon(c);
        c->base.ordinal = 0;
        tn_moment_free(c->moment);
        c->moment = NULL;
        tn_error_context(err, "checkpoint not saved");
        return status;
    }
    c->saved.stall = tn_clock_s() - c->begin;
    begin_writing(&c->writing, write_and_commit, c, c->later);
    if (c->writing.thread == NULL) {
        c->saved.stall = tn_clock_s() - c->begin;
    }
    return TN_OK;
}

bool tn_checkpoints_written(const tn_checkpoints *c)
{
    return c->moment != NULL && atomic_load(&c->writing.written);
}

bool tn_checkpoints_rests(const tn_checkpoints *c)
{
    return c->moment != NULL && c->later && c->writing.is_open;
}

void tn_checkpoints_drop(tn_checkpoints *c)
{
    decide(&c->writing, false);
}

tn_status tn_checkpoints_end(tn_checkpoints *c, tn_saved *out, tn_error *err)
{
    TN_ASSERT(c->moment != NULL);
    tn_status status = end_writing(&c->writing, err);
    if (status == TN_OK) {
        *out = c->saved;
        advance_base(c);
    } else {
        c->base.ordinal = 0;
    }
    tn_moment_free(c->moment);
    c->moment = NULL;
    return status;
}

bool tn_checkpoints_lost_rows(const tn_checkpoints *c)
{
    return c->lost_rows;
}

/* ---- the part of a rank above 0 ---- */

struct tn_ckptshare {
    tn_ckpt_own own;
    tn_ckpt_files files;
    tn_ckpt_writing writing;
    char folder[TN_PATH_SIZE];
};

static tn_status write_share(void *arg, tn_error *err)
{
    tn_ckptshare *s = arg;
    tn_status status = tn_ckpt_write_own(&s->own, &s->files, err);
    if (status == TN_OK) {
        status = tn_dir_sync(s->folder, err);
    }
    tn_cut_close(s->own.moment->rows); /* after a failure: nobody need wait for it any more */
    s->own.moment->rows = NULL;
    return status;
}

/* An order comes from another process. */
static tn_status check_order(const tn_ckptshare *s, const tn_worker *w, const tn_ckpt_order *order,
                             tn_error *err)
{
    if (order->step != w->steps) {
        return tn_fail(err, TN_E_PEER,
                       "a checkpoint of step %" PRIu64 " is ordered, this rank stands at %" PRIu64,
                       order->step, w->steps);
    }
    if (!tn_path_is_dir(s->folder)) {
        return tn_fail(err, TN_E_IO,
                       "no folder '%s' for this rank's part of a checkpoint\nhint: run.dir must be "
                       "one folder for all peers",
                       s->folder);
    }
    if (order->delta && !tn_table_knows_changes(w->shard.table)) {
        return tn_fail(err, TN_E_MEMORY, "no memory was left to note which rows have changed");
    }
    return TN_OK;
}

static tn_status prepare(tn_ckptshare *s, tn_worker *w, const char *run_dir,
                         const tn_ckpt_order *order, tn_error *err)
{
    const size_t length = strnlen(order->folder, sizeof order->folder);
    if (length == 0 || length == sizeof order->folder || strchr(order->folder, '/') != NULL ||
        order->folder[0] == '.') {
        return tn_fail(err, TN_E_PEER, "a checkpoint is ordered into a folder without a name");
    }
    TN_ASSERT(length < sizeof s->folder);
    TN_TRY(tn_path_join(run_dir, order->folder, s->folder, err));
    if (w->plan->run->checkpoint.delta_every != NULL) {
        TN_TRY(tn_table_track(w->shard.table, err)); /* the next may be a delta */
    }
    TN_TRY(check_order(s, w, order, err));
    s->own = (tn_ckpt_own){.folder = s->folder,
                           .head = {.run_id = order->run_id,
                                    .step = order->step,
                                    .base_step = order->base_step,
                                    .delta = order->delta}};
    const tn_moment_from from = {.w = w, .delta = order->delta};
    TN_TRY(tn_moment_take(&s->own.moment, &from, err));
    tn_ckpt_files_init(&s->files, s->own.moment->arena, &w->shares->owners);
    return TN_OK;
}

tn_status tn_ckptshare_begin(tn_ckptshare **out, tn_worker *w, const char *run_dir,
                             const tn_ckpt_order *order, tn_error *err)
{
    *out = NULL;
    tn_ckptshare *s = NULL;
    TN_TRY(TN_ALLOC(s, 1, "a part of a checkpoint", err));
    tn_status status = prepare(s, w, run_dir, order, err);
    if (status != TN_OK) {
        tn_ckptshare_free(s);
        return status;
    }
    begin_writing(&s->writing, write_share, s, false);
    *out = s;
    return TN_OK;
}

bool tn_ckptshare_written(const tn_ckptshare *s)
{
    return atomic_load(&s->writing.written);
}

tn_status tn_ckptshare_end(tn_ckptshare *s, tn_ckpt_wrote *out, tn_error *err)
{
    TN_TRY(end_writing(&s->writing, err));
    TN_ASSERT(s->files.n_told == 1 && s->files.n > 0);
    *out = (tn_ckpt_wrote){.rank = s->own.moment->rank,
                           .rows = s->files.rows,
                           .n_files = s->files.n,
                           .file = s->files.file};
    return TN_OK;
}

void tn_ckptshare_free(tn_ckptshare *s)
{
    if (s != NULL) {
        tn_status status = end_writing(&s->writing, NULL);
        (void)status; /* the caller asked for it */
        tn_moment_free(s->own.moment);
        tn_free(s);
    }
}
