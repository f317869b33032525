/* ckptsave.c - a moment of a run into files, and these into a checkpoint; see checkpoint.h. */
#include "base/alloc.h"
#include "base/log.h"
#include "train/ckptstate.h"

#include <stdio.h>
#include <string.h>

typedef struct saving {
    tn_checkpoints *c;
    tn_moment *moment;
    tn_manifest *m;
    tn_manifest_file *file; /* m->file, while it grows */
} saving;

/* Notes a file that was written. */
static void list_file(saving *s, const char *name, const tn_ckpt_part *part)
{
    size_t size = strlen(name) + 1;
    uint32_t i = s->m->n_files++;
    for (; i > 0 && strcmp(s->file[i - 1].name, name) > 0; i--) {
        s->file[i] = s->file[i - 1]; /* by name, bytewise */
    }
    s->file[i] = part->file;
    s->file[i].name = memcpy(TN_NEW_ARRAY(s->moment->arena, char, size), name, size);
    s->c->saved.bytes += part->file.bytes;
}

static tn_status add_part(saving *s, const char *name, tn_ckpt_write *write, tn_ckpt_part *part,
                          tn_error *err)
{
    part->moment = s->moment;
    TN_TRY(tn_ckptdir_add(s->c->files, name, write, part, err));
    list_file(s, name, part);
    return TN_OK;
}

static tn_status add_text(saving *s, const char *name, const char *type, const tn_text *text,
                          tn_error *err)
{
    tn_ckpt_part part = {.text = text, .file = {.type = type}};
    return add_part(s, name, tn_ckpt_write_text, &part, err);
}

/* The last partition of the file that begins with `first`, when partitions hold about as many bytes
 * each. */
static uint32_t last_of_file(const saving *s, uint32_t first)
{
    uint64_t bytes = tn_cut_bytes(s->moment->rows) / TN_PARTITIONS + 1;
    uint64_t n = TN_SNAPSHOT_FILE_BYTES / bytes;
    n = n < 1 ? 1 : n;
    return n >= TN_PARTITIONS - first ? TN_PARTITIONS - 1 : first + (uint32_t)n - 1;
}

static tn_status add_table(saving *s, tn_error *err)
{
    tn_snapshot_head head = {.run_id = s->m->run_id,
                             .step = s->m->step,
                             .base_step = s->m->base != 0 ? s->c->base.step : 0,
                             .partitions = TN_PARTITIONS,
                             .delta = s->m->base != 0};
    TN_TRY(tn_row_schema_hash(&s->m->sparse, head.schema, err));
    while (head.first < TN_PARTITIONS) {
        head.last = last_of_file(s, head.first);
        char name[48];
        (void)snprintf(name, sizeof name, "sparse-%04u-%04u.tns", head.first, head.last);
        tn_ckpt_part part = {.moment = s->moment,
                             .head = &head,
                             .file = {.type = "sparse", .first = head.first, .last = head.last}};
        tn_status status = tn_ckptdir_add_once(s->c->files, name, tn_ckpt_write_shard, &part, err);
        s->c->lost_rows = status == TN_E_IO;
        TN_TRY(status);
        list_file(s, name, &part);
        s->c->saved.written += part.file.rows;
        head.first = head.last + 1;
    }
    tn_cut_close(s->moment->rows); /* nobody need copy rows aside any more */
    s->moment->rows = NULL;
    return TN_OK;
}

static tn_status add_files(saving *s, tn_error *err)
{
    s->file = TN_NEW_ARRAY(s->moment->arena, tn_manifest_file, TN_PARTITIONS + 8);
    s->m->file = s->file;
    tn_text config = {0};
    tn_text_adds(&config, s->moment->config);
    tn_status status = tn_text_check(&config, "the configuration", err);
    if (status == TN_OK) {
        status = add_text(s, "config.yaml", "config", &config, err);
    }
    tn_text_done(&config);
    TN_TRY(status);
    TN_TRY(add_text(s, "sources.jsonl", "sources", &s->moment->sources, err));
    TN_TRY(add_table(s, err));
    tn_ckpt_part dense = {.file = {.type = "dense"}};
    TN_TRY(add_part(s, "dense-0000.safetensors", tn_ckpt_write_dense, &dense, err));
    tn_ckpt_part part = {.file = {.type = "metrics"}};
    return add_part(s, "metrics.safetensors", tn_ckpt_write_metrics, &part, err);
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

/* What the files will take, about. */
static uint64_t expected_bytes(const tn_moment *m)
{
    const uint64_t small = (uint64_t)18 << 20; /* the histogram and texts */
    return small + tn_cut_bytes(m->rows) + 4 * sizeof(float) * m->manifest.dense.size;
}

static tn_status save(saving *s, tn_error *err)
{
    TN_TRY(tn_ckptdir_begin(s->c->files, expected_bytes(s->moment), &s->m->ordinal, err));
    TN_TRY(add_files(s, err));
    return commit(s, err);
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
        tn_cut_close(s.moment->rows); /* nobody need wait for it any more */
        s.moment->rows = NULL;
        tn_ckptdir_abandon(c->files);
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
