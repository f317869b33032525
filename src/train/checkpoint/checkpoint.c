/* checkpoint.c - saving a run: what happens between two steps; see checkpoint.h. What is written
 * meanwhile stands in ckptsave.c. */
#include "base/core/alloc.h"
#include "base/core/log.h"
#include "base/math/sha256.h"
#include "train/checkpoint/ckptstate.h"

#include <string.h>

enum { NICE = 10 }; /* of the thread that saves while training goes on */

/* In deterministic mode a run is its configuration; else it is one of a kind. */
static uint64_t make_run_id(const tn_blueprint *plan, const char *config)
{
    if (!plan->run->run.deterministic) {
        return tn_random_id();
    }
    tn_sha256 h;
    uint8_t digest[32];
    uint64_t id = 0;
    tn_sha256_init(&h);
    tn_sha256_add(&h, config, strlen(config));
    tn_sha256_end(&h, digest);
    memcpy(&id, digest, sizeof id);
    return __builtin_bswap64(id); /* its hex stands in digest order */
}

tn_status tn_checkpoints_open(tn_checkpoints **out, const tn_blueprint *plan,
                              const tn_run_text *text, tn_error *err)
{
    *out = NULL;
    tn_checkpoints *c = tn_try_alloc(1, sizeof *c, "checkpoints", err);
    if (c == NULL) {
        return TN_E_MEMORY;
    }
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
        (void)status; /* who wanted to know has asked */
    }
    tn_free(c->base.histogram);
    tn_ckptdir_close(c->files);
    tn_text_done(&c->dir);
    tn_free(c);
}

const char *tn_checkpoints_dir(const tn_checkpoints *c)
{
    return tn_text_str(&c->dir);
}

uint64_t tn_checkpoints_run_id(const tn_checkpoints *c)
{
    return c->run_id;
}

/* ---- deltas ---- */

void tn_checkpoints_forget_base(tn_checkpoints *c)
{
    c->base.ordinal = 0;
}

static bool has_deltas(const tn_checkpoints *c)
{
    return c->plan->run->checkpoint.delta_every != NULL;
}

tn_status tn_checkpoints_set_base(tn_checkpoints *c, tn_worker *w, const tn_saved *on,
                                  const uint64_t *histogram, tn_error *err)
{
    const size_t cells = 2UL * TN_MOMENT_BINS;
    tn_checkpoints_forget_base(c);
    if (!has_deltas(c) || on->run_id != c->run_id) {
        return TN_OK;
    }
    tn_ckpt_base *base = &c->base;
    if (base->histogram == NULL) {
        base->histogram = tn_try_alloc(cells, sizeof *histogram, "a copy of a histogram", err);
        if (base->histogram == NULL) {
            return TN_E_MEMORY;
        }
    }
    TN_TRY(tn_table_track(w->shard.table, err));
    memcpy(base->histogram, histogram, cells * sizeof *histogram);
    base->ordinal = on->ordinal;
    base->step = on->step;
    base->crc = on->crc;
    base->deltas = on->deltas;
    return TN_OK;
}

/* Whether a delta can be made: full ones come now and then, so that loading stays short. */
static bool can_be_delta(const tn_checkpoints *c, const tn_worker *w)
{
    return c->base.ordinal != 0 && c->base.deltas < TN_CKPT_DELTAS_MAX &&
           tn_table_knows_changes(w->shard.table);
}

/* What was just saved becomes the base; the histogram of its moment with it. */
static void advance_base(tn_checkpoints *c)
{
    if (!has_deltas(c)) {
        return;
    }
    tn_ckpt_base *base = &c->base;
    if (!c->moment->delta) {
        tn_free(base->histogram);
        base->histogram = c->moment->histogram;
        c->moment->histogram = NULL;
    }
    base->ordinal = c->saved.ordinal;
    base->step = c->saved.step;
    base->crc = c->saved.crc;
    base->deltas = c->saved.deltas;
}

/* ---- a save ---- */

static tn_status take_moment(tn_checkpoints *c, tn_worker *w, const tn_ckpt_want *want,
                             tn_error *err)
{
    TN_ASSERT(c->moment == NULL);
    TN_ASSERT(c->peers.announce != NULL || c->plan->owners.n_peers == 1);
    c->begin = tn_clock_s();
    c->best = want->state->best_ordinal;
    c->lost_rows = false;
    c->announced = false;
    c->saved = (tn_saved){0};
    bool delta = want->delta && can_be_delta(c, w);
    tn_moment_from from = {.w = w,
                           .state = want->state,
                           .metrics = want->metrics,
                           .text = c->text,
                           .run_id = c->run_id,
                           .base = delta ? c->base.histogram : NULL};
    tn_status status = has_deltas(c) ? tn_table_track(w->shard.table, err) : TN_OK;
    if (status == TN_OK) {
        status = tn_moment_take(&c->moment, &from, err);
    }
    if (status != TN_OK) {
        tn_checkpoints_forget_base(c);
        tn_error_context(err, "checkpoint not saved");
        return status;
    }
    if (delta) {
        c->moment->manifest.base = c->base.ordinal;
        c->moment->manifest.base_crc = c->base.crc;
        c->saved.deltas = c->base.deltas + 1;
    }
    c->saved.stall = tn_clock_s() - c->begin;
    return TN_OK;
}

/* All ranks take the same moment: the folder is there before anybody goes on. */
static tn_status announce(tn_checkpoints *c, tn_error *err)
{
    TN_TRY(tn_checkpoints_make_folder(c, err));
    const tn_manifest *m = &c->moment->manifest;
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

/* What is done between two steps. */
static tn_status begin(tn_checkpoints *c, tn_worker *w, const tn_ckpt_want *want, tn_error *err)
{
    TN_TRY(take_moment(c, w, want, err));
    if (c->peers.announce == NULL) {
        return TN_OK;
    }
    tn_status status = announce(c, err);
    if (status != TN_OK) {
        tn_checkpoints_abandon(c);
        tn_checkpoints_forget_base(c);
        tn_moment_free(c->moment);
        c->moment = NULL;
        tn_error_context(err, "checkpoint not saved");
        return status;
    }
    c->saved.stall = tn_clock_s() - c->begin;
    return TN_OK;
}

static tn_status write_behind(void *arg, tn_error *err)
{
    tn_checkpoints *c = arg;
    tn_status status = tn_checkpoints_write(c, err);
    atomic_store(&c->written, true);
    return status;
}

/* Training goes first: the thread takes what it leaves of the processors. When it leaves too
 * little, its pushes wait (ps/table/table_snapshot.h); when somebody waits for the end, it leaves
 * all. */
static tn_status write_on_thread(void *arg, tn_error *err)
{
    tn_thread_step_back(NICE);
    return write_behind(arg, err);
}

tn_status tn_checkpoints_begin(tn_checkpoints *c, tn_worker *w, const tn_ckpt_want *want,
                               tn_error *err)
{
    TN_TRY(begin(c, w, want, err));
    atomic_store(&c->written, false);
    if (tn_thread_start(&c->thread, "tn-save", write_on_thread, c, NULL) != TN_OK) {
        c->status = write_behind(c, &c->err); /* then training waits */
        c->saved.stall = tn_clock_s() - c->begin;
    }
    return TN_OK;
}

bool tn_checkpoints_written(const tn_checkpoints *c)
{
    return c->moment != NULL && atomic_load(&c->written);
}

tn_status tn_checkpoints_end(tn_checkpoints *c, tn_saved *out, tn_error *err)
{
    TN_ASSERT(c->moment != NULL);
    tn_status status = c->status;
    if (c->thread != NULL) {
        status = tn_thread_join(c->thread, err);
    } else if (status != TN_OK && err != NULL) {
        *err = c->err;
    }
    c->thread = NULL;
    c->status = TN_OK;
    if (status == TN_OK) {
        *out = c->saved;
        advance_base(c);
    } else {
        tn_checkpoints_forget_base(c);
    }
    tn_moment_free(c->moment);
    c->moment = NULL;
    return status;
}

bool tn_checkpoints_lost_rows(const tn_checkpoints *c)
{
    return c->lost_rows;
}

tn_status tn_checkpoints_save(tn_checkpoints *c, tn_worker *w, const tn_ckpt_want *want,
                              tn_saved *out, tn_error *err)
{
    TN_TRY(begin(c, w, want, err));
    c->status = write_behind(c, &c->err);
    c->saved.stall = tn_clock_s() - c->begin;
    return tn_checkpoints_end(c, out, err);
}
