/* manifest.c - writing MANIFEST, and the hashes of its parts. */
#include "ps/snapshot/manifest.h"

#include "base/codec/json.h"
#include "base/math/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CRC_DIGITS_AT = 11 }; /* from the end: xxxxxxxx"}\n */

static void add_crc(tn_text *t, const char *key, uint32_t crc)
{
    char hex[9];
    int length = snprintf(hex, sizeof hex, "%08x", crc);
    TN_ASSERT(length == 8);
    tn_json_str(t, key, hex);
}

static void add_params(tn_text *t, const char *key, const tn_manifest_dense *dense)
{
    tn_json_open_key(t, key, '[');
    for (uint32_t i = 0; i < dense->n_params; i++) {
        const tn_manifest_param *p = &dense->param[i];
        tn_json_open(t, '{');
        tn_json_str(t, "name", p->name);
        tn_json_open_key(t, "shape", '[');
        for (uint32_t k = 0; k < p->rank; k++) {
            tn_json_u64(t, NULL, p->shape[k]);
        }
        tn_json_close(t, ']');
        tn_json_u64(t, "at", p->at);
        tn_json_bool(t, "train", p->train);
        tn_json_close(t, '}');
    }
    tn_json_close(t, ']');
}

static void add_dense(tn_text *t, const tn_manifest_dense *dense)
{
    tn_json_open_key(t, "dense", '{');
    tn_json_u64(t, "size", dense->size);
    tn_json_str(t, "optimizer", dense->optimizer);
    tn_json_open_key(t, "state", '[');
    for (uint32_t i = 0; i < dense->n_states; i++) {
        tn_json_str(t, NULL, dense->state[i]);
    }
    tn_json_close(t, ']');
    tn_json_open_key(t, "scalars", '{');
    for (uint32_t i = 0; i < dense->n_scalars; i++) {
        tn_json_count(t, dense->scalar[i].name, dense->scalar[i].value);
    }
    tn_json_close(t, '}');
    add_params(t, "params", dense);
    tn_json_close(t, '}');
}

static void add_progress(tn_text *t, const tn_manifest *m)
{
    static const char *const states[] = {"free", "dealt", "done"};
    tn_json_open_key(t, "progress", '{');
    tn_json_u64(t, "epoch", m->epoch);
    tn_json_open_key(t, "parts", '[');
    for (uint32_t i = 0; i < m->n_parts; i++) {
        const tn_manifest_part *p = &m->part[i];
        TN_ASSERT(p->state <= TN_PART_DONE);
        tn_json_open(t, '[');
        tn_json_u64(t, NULL, p->source);
        tn_json_count(t, NULL, p->begin);
        tn_json_count(t, NULL, p->end);
        tn_json_str(t, NULL, states[p->state]);
        if (p->state != TN_PART_DONE) {
            tn_json_u64(t, NULL, p->attempt);
            tn_json_count(t, NULL, p->position);
        }
        tn_json_close(t, ']');
    }
    tn_json_close(t, ']');
    if (m->shared) {
        tn_json_u64(t, "shuffle", m->shuffle);
        if (m->cut_for > 1) {
            tn_json_u64(t, "ranks", m->cut_for);
        }
    }
    if (m->epoch_step > 0) {
        tn_json_u64(t, "step", m->epoch_step);
    }
    if (m->begun) {
        add_crc(t, "begun", m->begun_crc);
    }
    tn_json_close(t, '}');
}

static void add_requests(tn_text *t, const tn_manifest *m)
{
    tn_json_open_key(t, "requests", '[');
    for (uint32_t i = 0; i < m->n_requests; i++) {
        tn_json_open(t, '{');
        tn_json_u64(t, "shard", m->request[i].shard);
        tn_json_u64(t, "sender", m->request[i].sender);
        tn_json_hex64(t, "incarnation", m->request[i].incarnation);
        tn_json_count(t, "low", m->request[i].low);
        tn_json_close(t, '}');
    }
    tn_json_close(t, ']');
}

static void add_metrics(tn_text *t, const tn_manifest *m)
{
    tn_json_open_key(t, "metrics", '{');
    if (m->best_name == NULL) {
        tn_json_str(t, "best", NULL);
    } else {
        tn_json_open_key(t, "best", '{');
        tn_json_str(t, "name", m->best_name);
        tn_json_f64(t, "value", m->best_value);
        tn_json_u64(t, "step", m->best_step);
        tn_json_close(t, '}');
    }
    tn_json_u64(t, "bad_evals", m->bad_evals);
    tn_json_f64(t, "lr_scale", m->lr_scale);
    if (m->eval_owed) {
        tn_json_bool(t, "eval_owed", true);
    }
    tn_json_close(t, '}');
}

static void add_file(tn_text *t, const tn_manifest_file *f, bool is_sparse)
{
    tn_json_open(t, '{');
    tn_json_str(t, "name", f->name);
    tn_json_str(t, "type", f->type);
    tn_json_count(t, "bytes", f->bytes);
    add_crc(t, "crc32c", f->crc);
    if (is_sparse) {
        tn_json_count(t, "rows", f->rows);
        tn_json_open_key(t, "partitions", '[');
        tn_json_u64(t, NULL, f->first);
        tn_json_u64(t, NULL, f->last);
        tn_json_close(t, ']');
    }
    tn_json_close(t, '}');
}

/* All of them, or those of what was learned. */
static void add_files(tn_text *t, const char *key, const tn_manifest *m, bool learned)
{
    tn_json_open_key(t, key, '[');
    for (uint32_t i = 0; i < m->n_files; i++) {
        const tn_manifest_file *f = &m->file[i];
        TN_ASSERT(i == 0 || strcmp(m->file[i - 1].name, f->name) < 0);
        const bool is_sparse = strcmp(f->type, "sparse") == 0;
        if (!learned || is_sparse || strcmp(f->type, "dense") == 0) {
            add_file(t, f, is_sparse);
        }
    }
    tn_json_close(t, ']');
}

void tn_manifest_add_learned(tn_text *out, const tn_manifest *m)
{
    tn_json_str(out, NULL, m->structure);
    add_files(out, NULL, m, true);
}

static void add_identity(tn_text *t, const tn_manifest *m)
{
    tn_json_str(t, "format", "tnet-checkpoint");
    tn_json_raw(t, "version", "[1,0]");
    tn_json_str(t, "kind", m->base == 0 ? "full" : "delta");
    tn_json_u64(t, "ordinal", m->ordinal);
    if (m->base == 0) {
        tn_json_str(t, "base", NULL);
    } else {
        tn_json_open_key(t, "base", '{');
        tn_json_u64(t, "ordinal", m->base);
        add_crc(t, "crc32c", m->base_crc);
        tn_json_close(t, '}');
    }
    tn_json_hex64(t, "run_id", m->run_id);
    tn_json_u64(t, "step", m->step);
    tn_json_count(t, "samples", m->samples);
    tn_json_count(t, "rows", m->rows);
    tn_json_u64(t, "clock", m->clock);
    tn_json_open_key(t, "config", '{');
    tn_json_str(t, "hash", m->config_hash);
    tn_json_str(t, "structure", m->structure);
    tn_json_close(t, '}');
}

tn_status tn_manifest_write(const tn_manifest *m, tn_text *out, uint32_t *crc, tn_error *err)
{
    TN_ASSERT(m->ordinal > 0 && m->base < m->ordinal && out->size == 0);
    tn_text *t = out;
    tn_json_open(t, '{');
    add_identity(t, m);
    tn_row_schema_write(t, "sparse", &m->sparse);
    add_dense(t, &m->dense);
    add_progress(t, m);
    tn_json_hex64(t, "seed", m->seed);
    add_requests(t, m);
    add_metrics(t, m);
    tn_json_open_key(t, "logs", '{');
    for (uint32_t i = 0; i < m->n_logs; i++) {
        tn_json_count(t, m->log[i].name, m->log[i].value);
    }
    tn_json_close(t, '}');
    tn_json_open_key(t, "host", '{');
    tn_json_str(t, "cpu", m->cpu);
    tn_json_str(t, "blas", m->blas);
    tn_json_close(t, '}');
    add_files(t, "files", m, false);
    tn_json_close_with_crc(t);
    TN_TRY(tn_text_check(t, "MANIFEST", err));
    if (t->size > TN_MANIFEST_BYTES_MAX) {
        return tn_fail(err, TN_E_LIMIT, "a manifest of %zu bytes, at most %d are allowed", t->size,
                       TN_MANIFEST_BYTES_MAX);
    }
    *crc = (uint32_t)strtoul(t->data + t->size - CRC_DIGITS_AT, NULL, 16);
    return TN_OK;
}

tn_status tn_manifest_structure(const tn_manifest *m, const char *nodes, char out[65],
                                tn_error *err)
{
    tn_text sparse = {0};
    tn_text params = {0};
    tn_row_schema_write(&sparse, NULL, &m->sparse);
    add_params(&params, NULL, &m->dense);
    tn_status status = tn_text_check(&sparse, "the list of records", err);
    if (status == TN_OK) {
        status = tn_text_check(&params, "the list of parameters", err);
    }
    if (status == TN_OK) {
        uint8_t digest[32];
        tn_sha256 hash;
        tn_sha256_init(&hash);
        tn_sha256_add(&hash, sparse.data, sparse.size);
        tn_sha256_add(&hash, params.data, params.size);
        tn_sha256_add(&hash, nodes, strlen(nodes));
        tn_sha256_end(&hash, digest);
        tn_sha256_hex(digest, out);
    }
    tn_text_done(&params);
    tn_text_done(&sparse);
    return status;
}
