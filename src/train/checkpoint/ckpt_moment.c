/* ckpt_moment.c - copies the small state of a run and cuts the table, between two steps. */
#include "train/checkpoint/ckpt_moment.h"

#include "base/core/alloc.h"
#include "metrics/metrics.h"
#include "models/layerlist.h"
#include "nn/graph/params.h"
#include "nn/passes/graphjson.h"
#include "ps/optim/optim.h"
#include "ps/optim/rule.h"
#include "ps/shard/dense.h"
#include "train/checkpoint/run_state.h"
#include "train/config/run.h"
#include "train/step/host.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <string.h>

#define CELLS ((size_t)2 * TN_MOMENT_BINS)

static void describe_segment(const tn_worker *w, uint32_t group, uint32_t s, tn_row_segment *out)
{
    const tn_layout *layout = w->plan->layout;
    const tn_segment *segment = &tn_record_of(layout, group)->segment[s];
    const tn_rule *rule = &w->plan->rules->rule[group * TN_SEGMENTS_MAX + s];
    *out = (tn_row_segment){
        .name = segment->name, .optimizer = rule->optim->choice.name, .dim = segment->dim};
    tn_state state[TN_STATES_MAX];
    out->n_states = tn_optim_states(rule->optim, rule->opts, state);
    TN_ASSERT(out->n_states <= TN_ROW_STATES_MAX);
    for (uint32_t k = 0; k < out->n_states; k++) {
        out->state[k] = (tn_row_state){.name = state[k].name,
                                       .words = state[k].per_row ? 1 : segment->dim,
                                       .count = state[k].count};
    }
}

tn_row_schema tn_moment_row_schema(const tn_worker *w, tn_arena *arena)
{
    const tn_layout *layout = w->plan->layout;
    tn_row_record *record = TN_NEW_ARRAY(arena, tn_row_record, layout->n_records);
    tn_row_group *group = TN_NEW_ARRAY(arena, tn_row_group, layout->n_groups);
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        const tn_share_group *from = &layout->group[g];
        TN_ASSERT(from->record < layout->n_records);
        group[g] = (tn_row_group){from->name, from->salt, from->record};
        tn_row_record *r = &record[from->record];
        r->n_segments = layout->record[from->record].n_segments;
        for (uint32_t s = 0; s < r->n_segments; s++) {
            describe_segment(w, g, s, &r->segment[s]);
        }
    }
    return (tn_row_schema){.partitions = TN_PARTITIONS,
                           .n_records = layout->n_records,
                           .n_groups = layout->n_groups,
                           .record = record,
                           .group = group};
}

static void fill_params(tn_manifest_dense *dense, const tn_worker *w, tn_arena *arena)
{
    uint32_t n = tn_params_count(w->params);
    tn_manifest_param *param = TN_NEW_ARRAY(arena, tn_manifest_param, n);
    for (uint32_t i = 0; i < n; i++) {
        const tn_param_slice *s = tn_params_get(w->params, i);
        TN_ASSERT(s->at + (size_t)s->rows * s->cols <= tn_params_size(w->params));
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
    TN_ASSERT(dense->n_states <= TN_ROW_STATES_MAX);
    for (uint32_t i = 0; i < dense->n_states; i++) {
        dense->state[i] = spec[i].name;
    }
    dense->t = tn_dense_t(w->shard.dense);
    fill_params(dense, w, arena);
}

/* Adds counts that the net reads: neither weights nor nodes show them. */
static void add_counts(const tn_model_plan *plan, tn_text *nodes)
{
    for (uint32_t i = 0; i < plan->inputs->n; i++) {
        const tn_model_input *in = &plan->inputs->input[i];
        for (uint32_t k = 0; in->cvm && k < in->n; k++) {
            tn_text_addf(nodes, "%s%s",
                         k > 0          ? " "
                         : in->raw_show ? "cvm tensornet "
                                        : "cvm log ",
                         plan->features->slot[in->item[k]].name);
        }
    }
}

tn_status tn_moment_describe(tn_manifest *m, const tn_worker *w, tn_arena *arena, tn_error *err)
{
    m->sparse = tn_moment_row_schema(w, arena);
    fill_dense(&m->dense, w, arena);
    char *structure = TN_NEW_ARRAY(arena, char, 65);
    tn_text nodes = {0};
    tn_graph_json_nodes(w->train_graph, &nodes);
    add_counts(w->plan, &nodes);
    tn_status status = tn_text_check(&nodes, "the graph", err);
    if (status == TN_OK) {
        status = tn_manifest_structure(m, tn_text_str(&nodes), structure, err);
    }
    tn_text_done(&nodes);
    m->structure = structure;
    return status;
}

/* Lists parts of the epoch that runs: by a ledger, or those after a single reader. */
static tn_epoch_position position_of(const tn_moment_from *from, tn_arena *arena)
{
    const tn_run_state *state = from->state;
    tn_epoch_position at = {.epoch = state->progress.epoch, .n_parts = state->n_parts};
    if (state->part == NULL) {
        at.part = tn_epoch_parts_manifest(state->data, &state->progress, 1, arena, &at.n_parts);
        return at;
    }
    TN_ASSERT(state->data != NULL);
    at.part = TN_NEW_ARRAY(arena, tn_epoch_part, state->n_parts + 1);
    memcpy(at.part, state->part, state->n_parts * sizeof *at.part);
    at.shared = true;
    at.cut_for = state->data->cut_for > 1 ? state->data->cut_for : 0;
    at.shuffle = from->w->plan->run->data.shuffle;
    return at;
}

static void fill_state(tn_manifest *m, const tn_moment_from *from, tn_arena *arena)
{
    const tn_run *run = from->w->plan->run;
    const tn_run_state *state = from->state;
    tn_run_sections *s = TN_NEW(arena, tn_run_sections);
    char *blas = TN_NEW_ARRAY(arena, char, TN_HOST_BLAS_SIZE);
    tn_host_blas(&run->compute, blas);
    *s = (tn_run_sections){.progress = position_of(from, arena),
                           .kept = state->kept,
                           .seed = run->run.seed,
                           .cpu = tn_host_cpu(),
                           .blas = blas};
    s->kept.days = tn_days_pack(&state->kept.days);
    m->run_id = from->run_id;
    m->step = state->steps;
    m->samples = state->samples;
    m->clock = from->w->day;
    m->config_hash = from->text->hash;
    m->sections = (tn_doc_part){tn_run_sections_rows, s};
}

/* ---- arrays ---- */

static void add_array(tn_moment *m, const char *name, const float *from, size_t n)
{
    TN_ASSERT(m->n_dense <= TN_STATES_MAX);
    float *to = m->floats + m->n_dense * n;
    memcpy(to, from, n * sizeof *to);
    m->dense[m->n_dense++] = (tn_tensor){.name = name,
                                         .dtype = "F32",
                                         .rank = 1,
                                         .shape = {n},
                                         .data = (const char *)to,
                                         .size = n * sizeof *to};
}

static tn_status copy_dense(tn_moment *m, const tn_worker *w, tn_error *err)
{
    TN_ASSERT(m->begin <= m->end);
    const float *weights = w->own != NULL ? w->own : tn_params_weights(w->params);
    size_t n = m->end - m->begin;
    tn_state spec[TN_STATES_MAX];
    uint32_t n_states = tn_dense_states(w->shard.dense, spec);
    TN_TRY(TN_ALLOC(m->floats, (1 + n_states) * n + 1, "a copy of the weights", err));
    add_array(m, "w", weights, n);
    for (uint32_t i = 0; i < n_states; i++) {
        add_array(m, spec[i].name, tn_dense_state(w->shard.dense, i), n);
    }
    return TN_OK;
}

/* Few cells differ, and those in heaps: blocks are compared whole first. */
static void take_changes(tn_moment *m, const uint64_t *now)
{
    enum { BLOCK = 512 };
    for (size_t from = 0; from < CELLS; from += BLOCK) {
        if (memcmp(m->histogram + from, now + from, BLOCK * sizeof *now) == 0) {
            continue;
        }
        for (size_t i = from; i < from + BLOCK; i++) {
            if (m->histogram[i] != now[i]) {
                m->histogram[i] = now[i];
                tn_text_add_u64le(&m->changes, i);
                tn_text_add_u64le(&m->changes, now[i]);
            }
        }
    }
    TN_ASSERT(m->changes.failed || m->changes.size % (2 * sizeof *now) == 0);
    if (m->changes.size == 0) { /* a list is never empty */
        tn_text_add_u64le(&m->changes, 0);
        tn_text_add_u64le(&m->changes, now[0]);
    }
}

static tn_status take_metrics(tn_moment *m, const tn_metrics *metrics, tn_error *err)
{
    tn_metrics_sums(metrics, m->sums);
    if (!m->delta) { /* all zeros, the histogram before a full one */
        m->histogram = tn_try_alloc(CELLS, sizeof *m->histogram, "a copy of a histogram", err);
    }
    if (m->histogram == NULL) {
        return TN_E_MEMORY;
    }
    take_changes(m, tn_metrics_histogram(metrics));
    return TN_OK;
}

/* ---- all of it ---- */

/* The part that every peer takes. */
static tn_status take_own(tn_moment *m, tn_worker *w, tn_error *err)
{
    TN_ASSERT(w->rank < w->shares->owners.n_peers);
    const tn_shares *shares = w->shares;
    m->rank = w->rank;
    m->partitions = (tn_range){shares->owners.from[w->rank], shares->owners.from[w->rank + 1]};
    m->begin = shares->dense[w->rank];
    m->end = shares->dense[w->rank + 1];
    TN_TRY(copy_dense(m, w, err));
    return tn_cut_open(&m->rows, w->shard.table, m->delta, err);
}

/* Takes what rank 0 has besides. */
static tn_status take_run(tn_moment *m, const tn_moment_from *from, tn_error *err)
{
    TN_ASSERT(from->w->rank == 0);
    const tn_epoch_parts *data = from->state->data; /* parts of the epoch that runs, or ran last */
    m->config = from->text->config;
    m->histogram = from->base;
    m->changes.size_max =
        CELLS / 2 * sizeof *m->histogram; /* more than that: all of it is shorter */
    fill_state(&m->manifest, from, m->arena);
    TN_TRY(tn_moment_describe(&m->manifest, from->w, m->arena, err));
    TN_TRY(tn_sources_write(data != NULL ? data->sources : NULL, &m->sources, err));
    return take_metrics(m, from->metrics, err);
}

tn_status tn_moment_take(tn_moment **out, const tn_moment_from *from, tn_error *err)
{
    *out = NULL;
    tn_moment *m = NULL;
    TN_TRY(TN_ALLOC(m, 1, "what a checkpoint is made from", err));
    m->arena = tn_arena_new(1 << 16);
    m->delta = from->delta;
    tn_status status = TN_OK;
    if (from->state != NULL) {
        status = take_run(m, from, err);
    } else {
        m->manifest.sparse = tn_moment_row_schema(from->w, m->arena);
    }
    if (status == TN_OK) {
        status = take_own(m, from->w, err);
    }
    if (status != TN_OK) {
        tn_moment_free(m);
        return status;
    }
    TN_ASSERT(m->rows != NULL && m->n_dense > 0);
    *out = m;
    return TN_OK;
}

void tn_moment_free(tn_moment *m)
{
    if (m != NULL) {
        tn_cut_close(m->rows);
        tn_text_done(&m->sources);
        if (!m->delta) {
            tn_free(m->histogram);
        }
        tn_text_done(&m->changes);
        tn_free(m->floats);
        tn_arena_free(m->arena);
        tn_free(m);
    }
}
