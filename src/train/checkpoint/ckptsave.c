/* ckptsave.c - a moment of a run into files, and these into a checkpoint; see checkpoint.h. */
#include "base/core/alloc.h"
#include "base/core/log.h"
#include "train/checkpoint/ckptfiles.h"
#include "train/checkpoint/ckptstate.h"

#include <stdio.h>
#include <string.h>

typedef struct saving {
    tn_checkpoints *c;
    tn_moment *moment;
    tn_manifest *m;
    tn_ckpt_files files;
} saving;

static tn_status add_part(saving *s, const char *name, tn_ckpt_write *write, tn_ckpt_part *part,
                          tn_error *err)
{
    part->moment = s->moment;
    TN_TRY(tn_ckptdir_add(s->c->files, name, write, part, err));
    tn_ckpt_files_list(&s->files, name, &part->file);
    return TN_OK;
}

static tn_status add_text(saving *s, const char *name, const char *type, const tn_text *text,
                          tn_error *err)
{
    tn_ckpt_part part = {.text = text, .file = {.type = type}};
    return add_part(s, name, tn_ckpt_write_text, &part, err);
}

/* The rows and the weights of this process. */
static tn_status add_own(saving *s, tn_error *err)
{
    tn_ckpt_own own = {.folder = tn_ckptdir_folder(s->c->files),
                       .moment = s->moment,
                       .head = {.run_id = s->m->run_id,
                                .step = s->m->step,
                                .base_step = s->m->base != 0 ? s->c->base.step : 0,
                                .delta = s->m->base != 0}};
    tn_status status = tn_ckpt_write_own(&own, &s->files, err);
    s->c->lost_rows = own.lost_rows;
    return status;
}

/* What the others have written. */
static tn_status add_others(saving *s, tn_error *err)
{
    const tn_ckpt_peers *peers = &s->c->peers;
    if (s->c->announced) {
        tn_status status = peers->collect(peers->arg, &s->files, err);
        s->c->lost_rows = status == TN_E_IO;
        TN_TRY(status);
    }
    return tn_ckpt_files_check(&s->files, err);
}

static tn_status add_files(saving *s, tn_error *err)
{
    tn_text config = {0};
    tn_text_adds(&config, s->moment->config);
    tn_status status = tn_text_check(&config, "the configuration", err);
    if (status == TN_OK) {
        status = add_text(s, "config.yaml", "config", &config, err);
    }
    tn_text_done(&config);
    TN_TRY(status);
    TN_TRY(add_text(s, "sources.jsonl", "sources", &s->moment->sources, err));
    TN_TRY(add_own(s, err));
    tn_ckpt_part part = {.file = {.type = "metrics"}};
    TN_TRY(add_part(s, "metrics.safetensors", tn_ckpt_write_metrics, &part, err));
    TN_TRY(add_others(s, err));
    s->m->file = s->files.file;
    s->m->n_files = s->files.n;
    s->m->rows = s->files.rows;
    s->c->saved.bytes = s->files.bytes;
    s->c->saved.written = s->files.written;
    return TN_OK;
}

static tn_status commit(saving *s, tn_error *err)
{
    tn_text manifest = {0};
    uint32_t *crc = &s->c->saved.crc;
    tn_status status = tn_manifest_write(s->m, &manifest, crc, err);
    if (status == TN_OK) {
        status = tn_ckptdir_commit(s->c->files, &manifest, *crc, err);
    }
    tn_text_done(&manifest);
    return status;
}

/* What the files will take, about: keys are mixed, so peers hold as many rows each. */
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
    const uint64_t *present = NULL;
    uint32_t n = 0;
    uint64_t room = 0;
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_status status = tn_ckptdir_list(tn_checkpoints_dir(c), arena, &present, &n, err);
    tn_arena_free(arena);
    TN_TRY(status);
    TN_TRY(tn_disk_free(tn_checkpoints_dir(c), &room, err));
    *out = (tn_ckpt_room){.least = from->ordinal != 0 && from->bytes > dense ? from->bytes : dense,
                          .unused = room,
                          .wanted = n > keep ? 1 : keep + 1 - n};
    return TN_OK;
}

tn_status tn_checkpoints_make_folder(tn_checkpoints *c, tn_error *err)
{
    return tn_ckptdir_begin(c->files, expected_bytes(c), &c->moment->manifest.ordinal, err);
}

static tn_status save(saving *s, tn_error *err)
{
    if (!s->c->announced) {
        TN_TRY(tn_checkpoints_make_folder(s->c, err));
    }
    tn_ckpt_files_init(&s->files, s->moment->arena, &s->c->plan->owners);
    TN_TRY(add_files(s, err));
    return commit(s, err);
}

void tn_checkpoints_abandon(tn_checkpoints *c)
{
    tn_cut_close(c->moment->rows); /* nobody need wait for it any more */
    c->moment->rows = NULL;
    if (c->announced) {
        c->peers.abandon(c->peers.arg);
    }
    tn_ckptdir_abandon(c->files);
}

/* What is saved stays saved when an old one cannot be removed. */
static void prune(tn_checkpoints *c)
{
    tn_error err = {0};
    if (tn_ckptdir_prune(c->files, c->plan->run->checkpoint.keep, c->best, &err) != TN_OK) {
        tn_log(TN_LOG_WARN, "an old checkpoint stays: %s", err.text);
    }
}

tn_status tn_checkpoints_write(tn_checkpoints *c, tn_error *err)
{
    saving s = {.c = c, .moment = c->moment, .m = &c->moment->manifest};
    tn_status status = save(&s, err);
    if (status != TN_OK) {
        tn_checkpoints_abandon(c);
        tn_error_context(err, "checkpoint not saved");
        return status;
    }
    tn_saved *saved = &c->saved;
    saved->ordinal = s.m->ordinal;
    saved->run_id = s.m->run_id;
    saved->rows = s.m->rows;
    saved->step = s.m->step;
    saved->samples = s.m->samples;
    saved->epoch = s.m->epoch;
    saved->seconds = tn_clock_s() - c->begin;
    (void)snprintf(saved->name, sizeof saved->name, "ckpt-%llu", (unsigned long long)s.m->ordinal);
    prune(c);
    return TN_OK;
}
