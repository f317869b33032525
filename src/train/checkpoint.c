/* checkpoint.c - saving a run; see checkpoint.h. */
#include "base/alloc.h"
#include "base/log.h"
#include "base/sha256.h"
#include "nn/graphjson.h"
#include "train/ckptstate.h"
#include "train/host.h"

#include <stdio.h>
#include <string.h>

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

void tn_run_dir(const tn_run_opts *run, tn_text *out)
{
    if (run->dir != NULL) {
        tn_text_adds(out, run->dir);
    } else {
        tn_text_addf(out, "runs/%s", run->name);
    }
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

/* ---- the manifest ---- */

static void fill_params(tn_manifest_dense *dense, const tn_worker *w, tn_arena *arena)
{
    uint32_t n = tn_params_count(w->params);
    tn_manifest_param *param = TN_NEW_ARRAY(arena, tn_manifest_param, n);
    for (uint32_t i = 0; i < n; i++) {
        const tn_param_slice *s = tn_params_get(w->params, i);
        param[i] = (tn_manifest_param){.name = s->name,
                                       .rank = 2,
                                       .shape = {s->rows, s->cols},
                                       .at = s->at,
                                       .train = s->train};
    }
    dense->n_params = n;
    dense->param = param;
}

static void fill_dense(tn_manifest_dense *dense, const tn_worker *w, tn_arena *arena)
{
    *dense = (tn_manifest_dense){.size = tn_params_size(w->params),
                                 .optimizer = w->plan->rules->dense.optim->choice.name};
    tn_state spec[TN_STATES_MAX];
    dense->n_states = tn_dense_states(w->shard.dense, spec);
    for (uint32_t i = 0; i < dense->n_states; i++) {
        dense->state[i] = spec[i].name;
    }
    tn_manifest_count *t = TN_NEW(arena, tn_manifest_count);
    *t = (tn_manifest_count){"t", tn_dense_t(w->shard.dense)};
    dense->scalar = t;
    dense->n_scalars = 1;
    fill_params(dense, w, arena);
}

tn_status tn_ckpt_describe(tn_manifest *m, const tn_worker *w, tn_arena *arena, tn_error *err)
{
    m->sparse = tn_ckpt_row_schema(w, arena);
    fill_dense(&m->dense, w, arena);
    char *structure = TN_NEW_ARRAY(arena, char, 65);
    tn_text nodes = {0};
    tn_graph_json_nodes(w->train_graph, &nodes);
    tn_status status = tn_text_check(&nodes, "the graph", err);
    if (status == TN_OK) {
        status = tn_manifest_structure(m, tn_text_str(&nodes), structure, err);
    }
    tn_text_done(&nodes);
    m->structure = structure;
    return status;
}

static void fill_state(tn_manifest *m, const tn_checkpoints *c, const tn_run_state *state,
                       tn_arena *arena)
{
    const tn_patience_state *p = &state->patience;
    m->run_id = c->run_id;
    m->step = state->steps;
    m->samples = state->samples;
    m->config_hash = c->text->hash;
    m->epoch = state->progress.epoch;
    m->part = tn_data_map_parts(state->data, &state->progress, arena, &m->n_parts);
    m->seed = c->plan->run->run.seed;
    m->best_name = p->seen ? state->monitor : NULL;
    m->best_value = p->best;
    m->best_step = p->step;
    m->bad_evals = p->bad;
    m->lr_scale = p->lr_scale;
    m->eval_owed = state->eval_owed;
    m->cpu = tn_host_cpu();
    char *blas = TN_NEW_ARRAY(arena, char, TN_HOST_BLAS_SIZE);
    tn_host_blas(&c->plan->run->compute, blas);
    m->blas = blas;
}

/* ---- the files ---- */

typedef struct saving {
    tn_checkpoints *c;
    tn_worker *w;
    tn_arena *arena;
    tn_manifest *m;
    tn_manifest_file *file; /* m->file, while it grows */
} saving;

static tn_status add_part(saving *s, const char *name, tn_ckpt_write *write, tn_ckpt_part *part,
                          tn_error *err)
{
    part->w = s->w;
    TN_TRY(tn_ckptdir_add(s->c->files, name, write, part, err));
    size_t size = strlen(name) + 1;
    part->file.name = memcpy(TN_NEW_ARRAY(s->arena, char, size), name, size);
    uint32_t i = s->m->n_files++;
    for (; i > 0 && strcmp(s->file[i - 1].name, name) > 0; i--) {
        s->file[i] = s->file[i - 1]; /* by name, bytewise */
    }
    s->file[i] = part->file;
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
static uint32_t last_of_file(const tn_worker *w, uint32_t first)
{
    uint64_t bytes = tn_table_bytes(w->shard.table) / TN_PARTITIONS + 1;
    uint64_t n = TN_SNAPSHOT_FILE_BYTES / bytes;
    n = n < 1 ? 1 : n;
    return n >= TN_PARTITIONS - first ? TN_PARTITIONS - 1 : first + (uint32_t)n - 1;
}

static tn_status add_table(saving *s, tn_error *err)
{
    tn_snapshot_head head = {
        .run_id = s->c->run_id, .step = s->m->step, .partitions = TN_PARTITIONS};
    TN_TRY(tn_row_schema_hash(&s->m->sparse, head.schema, err));
    while (head.first < TN_PARTITIONS) {
        head.last = last_of_file(s->w, head.first);
        char name[48];
        (void)snprintf(name, sizeof name, "sparse-%04u-%04u.tns", head.first, head.last);
        tn_ckpt_part part = {.head = &head,
                             .file = {.type = "sparse", .first = head.first, .last = head.last}};
        TN_TRY(add_part(s, name, tn_ckpt_write_shard, &part, err));
        s->m->rows += part.file.rows;
        head.first = head.last + 1;
    }
    return TN_OK;
}

static tn_status add_files(saving *s, const tn_run_state *state, const tn_metrics *metrics,
                           tn_error *err)
{
    s->file = TN_NEW_ARRAY(s->arena, tn_manifest_file, TN_PARTITIONS + 8);
    s->m->file = s->file;
    tn_text text = {0};
    tn_text_adds(&text, s->c->text->config);
    tn_status status = add_text(s, "config.yaml", "config", &text, err);
    tn_text_clear(&text);
    if (status == TN_OK) {
        status = tn_data_map_sources(state->data, &text, err);
    }
    if (status == TN_OK) {
        status = add_text(s, "sources.jsonl", "sources", &text, err);
    }
    tn_text_done(&text);
    TN_TRY(status);
    TN_TRY(add_table(s, err));
    tn_ckpt_part dense = {.file = {.type = "dense"}};
    TN_TRY(add_part(s, "dense-0000.safetensors", tn_ckpt_write_dense, &dense, err));
    tn_ckpt_part part = {.metrics = metrics, .file = {.type = "metrics"}};
    return add_part(s, "metrics.safetensors", tn_ckpt_write_metrics, &part, err);
}

static tn_status commit(saving *s, tn_saved *out, tn_error *err)
{
    tn_text manifest = {0};
    tn_status status = tn_manifest_write(s->m, &manifest, &out->crc, err);
    if (status == TN_OK) {
        status = tn_ckptdir_commit(s->c->files, &manifest, out->crc, err);
    }
    tn_text_done(&manifest);
    return status;
}

/* What the files will take, about. */
static uint64_t expected_bytes(const tn_worker *w)
{
    const uint64_t small = (uint64_t)18 << 20; /* the histogram and texts */
    return small + tn_table_bytes(w->shard.table) + 4 * sizeof(float) * tn_params_size(w->params);
}

static tn_status save(saving *s, const tn_run_state *state, const tn_metrics *metrics,
                      tn_saved *out, tn_error *err)
{
    TN_TRY(tn_ckptdir_begin(s->c->files, expected_bytes(s->w), &s->m->ordinal, err));
    fill_state(s->m, s->c, state, s->arena);
    s->m->clock = s->w->day;
    TN_TRY(tn_ckpt_describe(s->m, s->w, s->arena, err));
    TN_TRY(add_files(s, state, metrics, err));
    return commit(s, out, err);
}

/* What is saved stays saved when an old one cannot be removed. */
static void prune(tn_checkpoints *c, uint64_t best)
{
    tn_error err = {0};
    if (tn_ckptdir_prune(c->files, c->plan->run->checkpoint.keep, best, &err) != TN_OK) {
        tn_log(TN_LOG_WARN, "an old checkpoint stays: %s", err.text);
    }
}

tn_status tn_checkpoints_save(tn_checkpoints *c, tn_worker *w, const tn_run_state *state,
                              const tn_metrics *metrics, tn_saved *out, tn_error *err)
{
    double begin = tn_clock_s();
    tn_manifest m = {0};
    saving s = {.c = c, .w = w, .arena = tn_arena_new(1 << 16), .m = &m};
    tn_saved saved = {0};
    tn_status status = save(&s, state, metrics, &saved, err);
    if (status == TN_OK) {
        saved.ordinal = m.ordinal;
        saved.rows = m.rows;
        saved.step = m.step;
        saved.samples = m.samples;
        saved.epoch = m.epoch;
        saved.seconds = tn_clock_s() - begin;
        for (uint32_t i = 0; i < m.n_files; i++) {
            saved.bytes += m.file[i].bytes;
        }
        (void)snprintf(saved.name, sizeof saved.name, "ckpt-%llu", (unsigned long long)m.ordinal);
        *out = saved;
        prune(c, state->best_ordinal);
    } else {
        tn_ckptdir_abandon(c->files);
        tn_error_context(err, "checkpoint not saved");
    }
    tn_arena_free(s.arena);
    return status;
}
