/* score.c - a batch through the dictionary and the graph; parsed rows are made a batch first. */
#include "serve/score.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/math/fmath.h"
#include "base/math/rng.h"
#include "io/rows/batch.h"
#include "io/rows/batch_builder.h"
#include "io/rows/rows.h"
#include "io/schema/schema.h"
#include "nn/graph/embed.h"
#include "nn/op/ops.h"
#include "serve/exported_model.h"

#include <string.h>

enum { ROWS = 256 /* at a time */ };

enum { KEY_BYTES = sizeof(tn_dict_query) + sizeof(tn_dict_row) + 2 * sizeof(uint32_t) };

struct tn_scorer {
    const tn_exported_model *b;
    tn_exported_graph graph;
    tn_arena *arena;        /* of the three below */
    uint64_t *stream;       /* per group * TN_SEGMENTS_MAX: of first values, before the key */
    tn_bag *bag;            /* per slot */
    uint32_t *offset;       /* of all bags: slots * (ROWS + 1) */
    tn_batch_builder *made; /* of parsed rows */
    uint32_t n;             /* keys that have a row */
    uint32_t keys_max;
    tn_dict_query *query; /* owns the block that holds all of keys_max, down to `at` */
    tn_dict_row *found;
    float *weight; /* of the keys that have a row */
    uint32_t *at;  /* keys_max + 1: where their rows begin, in floats */
    size_t floats_max;
    float *rows;
    float spare[ROWS];      /* logits that the caller did not ask for */
    uint32_t unknown[ROWS]; /* slots of a row that hold keys, but none with a row */
};

static tn_status take_fixed(tn_scorer *s, tn_error *err)
{
    const tn_schema *schema = s->b->schema;
    size_t n_streams = ((size_t)schema->n_groups + 1) * TN_SEGMENTS_MAX;
    size_t n_offsets = (size_t)schema->n_slots * (ROWS + (size_t)1) + 1;
    size_t bytes = n_streams * sizeof *s->stream + schema->n_slots * sizeof *s->bag +
                   n_offsets * sizeof *s->offset + TN_CACHE_LINE;
    TN_TRY(tn_arena_open(&s->arena, bytes, "a scorer", err));
    s->stream = TN_NEW_ARRAY(s->arena, uint64_t, n_streams);
    s->bag = TN_NEW_ARRAY(s->arena, tn_bag, schema->n_slots);
    s->offset = TN_NEW_ARRAY(s->arena, uint32_t, n_offsets);
    for (uint32_t g = 0; g < schema->n_groups; g++) {
        const tn_record *record = &s->b->group[g].record;
        for (uint32_t i = 0; i < record->n_segments; i++) {
            s->stream[g * TN_SEGMENTS_MAX + i] =
                tn_stream2(s->b->seed, TN_RNG_ROW, tn_name64(record->segment[i].name));
        }
    }
    TN_TRY(tn_batch_builder_new(&s->made, schema, ROWS, false, err));
    return tn_exported_graph_new(&s->graph, s->b, ROWS, err);
}

tn_status tn_scorer_new(tn_scorer **out, const tn_exported_model *b, tn_error *err)
{
    *out = NULL;
    tn_scorer *s = NULL;
    TN_TRY(TN_ALLOC(s, 1, "a scorer", err));
    s->b = b;
    tn_status status = take_fixed(s, err);
    if (status != TN_OK) {
        tn_scorer_free(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

void tn_scorer_free(tn_scorer *s)
{
    if (s == NULL) {
        return;
    }
    tn_free(s->query);
    tn_graph_free(s->graph.g);
    tn_batch_builder_free(s->made);
    tn_arena_free(s->arena);
    tn_free(s->rows);
    tn_free(s);
}

/* Room for the keys of a piece; a quarter more than asked, so that it settles soon. */
static tn_status room_for_keys(tn_scorer *s, uint64_t n, tn_error *err)
{
    if (n <= s->keys_max && s->query != NULL) {
        return TN_OK;
    }
    const uint64_t most = UINT64_C(1) << 30;
    if (n > most) {
        return tn_fail(err, TN_E_LIMIT, "more than %llu keys in %d rows", (unsigned long long)most,
                       ROWS);
    }
    size_t room = (size_t)(n + n / 4 + 64);
    tn_free(s->query);
    s->keys_max = 0;
    s->query = tn_try_alloc(room + 1, KEY_BYTES, "keys to score", err);
    if (s->query == NULL) {
        return TN_E_MEMORY;
    }
    s->found = (tn_dict_row *)(void *)(s->query + room);
    s->weight = (float *)(void *)(s->found + room);
    s->at = (uint32_t *)(void *)(s->weight + room);
    s->keys_max = (uint32_t)room;
    return TN_OK;
}

static tn_status room_for_floats(tn_scorer *s, uint64_t n, tn_error *err)
{
    if (n <= s->floats_max && s->rows != NULL) {
        return TN_OK;
    }
    if (n > UINT32_MAX) {
        return tn_fail(err, TN_E_LIMIT, "more than %u floats of rows at once", UINT32_MAX);
    }
    tn_free(s->rows);
    s->floats_max = 0;
    size_t room = (size_t)(n + n / 4 + 64);
    TN_TRY(TN_ALLOC(s->rows, room, "rows to score", err));
    s->floats_max = room;
    return TN_OK;
}

/* All keys of rows from .. to, slot behind slot; returns how many. */
static uint32_t ask(tn_scorer *s, const tn_batch *batch, tn_range rows)
{
    const tn_exported_model *b = s->b;
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->schema->n_slots; i++) {
        const tn_slot *slot = &batch->slot[i];
        uint32_t in_dict = b->group[b->schema->slot[i]->group].in_dict;
        for (uint32_t k = slot->offset[rows.from]; b->used[i] && k < slot->offset[rows.to]; k++) {
            s->query[n++] = (tn_dict_query){slot->key[k], in_dict};
        }
    }
    return n;
}

static void first_values(const tn_scorer *s, uint32_t group, uint64_t key, float *row)
{
    const tn_exported_group *g = &s->b->group[group];
    for (uint32_t i = 0; i < g->record.n_segments; i++) {
        const tn_segment *segment = &g->record.segment[i];
        uint64_t stream = tn_stream_next(s->stream[group * TN_SEGMENTS_MAX + i], key);
        for (uint32_t k = 0; k < segment->dim; k++) {
            row[segment->at + k] =
                tn_init_value(&g->init[i], stream, k, segment->dim, segment->dim);
        }
    }
}

static void take_row(tn_scorer *s, uint32_t group, const tn_dict_query *query,
                     const tn_dict_row *found)
{
    const tn_exported_group *g = &s->b->group[group];
    float *row = s->rows + s->at[s->n];
    s->at[s->n + 1] = s->at[s->n] + g->record.width;
    s->n++;
    if (found->at == NULL) {
        first_values(s, group, query->key, row);
        return;
    }
    for (uint32_t k = 0; k < g->record.n_segments; k++) {
        const tn_segment *segment = &g->record.segment[k];
        (void)tn_dict_get(found, g->segment[k], segment->dim, row + segment->at);
    }
}

/* One slot's bag, its answers beginning at number `next`. As in evaluation (train/step/step.h) a
 * key without a row is left out of its slot, unless such keys read as first values. */
static uint32_t take_slot(tn_scorer *s, const tn_slot *slot, uint32_t number, tn_range rows,
                          uint32_t next)
{
    uint32_t group = s->b->schema->slot[number]->group;
    bool keep = s->b->group[group].missing_init;
    uint32_t *offset = s->offset + (size_t)number * (ROWS + (size_t)1);
    uint32_t first = s->n;
    for (uint32_t r = rows.from; r < rows.to; r++) {
        offset[r - rows.from] = s->n - first;
        for (uint32_t k = slot->offset[r]; k < slot->offset[r + 1]; k++, next++) {
            if (s->found[next].at != NULL || keep) {
                s->weight[s->n] = slot->value != NULL ? slot->value[k] : 1;
                take_row(s, group, &s->query[next], &s->found[next]);
            }
        }
        const bool none = s->n - first == offset[r - rows.from];
        s->unknown[r - rows.from] += none && slot->offset[r + 1] > slot->offset[r];
    }
    offset[rows.to - rows.from] = s->n - first;
    s->bag[number] = (tn_bag){.offset = offset,
                              .index = s->at + first,
                              .weight = slot->value != NULL ? s->weight + first : NULL};
    return next;
}

/* The keys of rows from .. to and their rows of the dictionary. */
static tn_status gather(tn_scorer *s, const tn_batch *batch, tn_range rows, tn_error *err)
{
    const tn_exported_model *b = s->b;
    uint64_t keys = 0;
    uint64_t floats = 0; /* of their rows at the widest */
    for (uint32_t i = 0; i < b->schema->n_slots; i++) {
        const uint32_t *offset = batch->slot[i].offset;
        uint64_t n = offset[rows.to] - offset[rows.from];
        keys += n;
        floats += n * b->group[b->schema->slot[i]->group].record.width;
    }
    TN_TRY(room_for_keys(s, keys, err));
    TN_TRY(room_for_floats(s, floats, err));
    const uint32_t asked = ask(s, batch, rows);
    TN_TRY(tn_dict_stack_find(&b->dict, asked, s->query, s->found, err));
    memset(s->unknown, 0, sizeof s->unknown);
    s->n = 0;
    s->at[0] = 0;
    uint32_t next = 0;
    for (uint32_t i = 0; i < b->schema->n_slots; i++) {
        if (b->used[i]) {
            next = take_slot(s, &batch->slot[i], i, rows, next);
        }
    }
    TN_ASSERT(next == asked);
    return TN_OK;
}

static void calibrate(const tn_scorer *s, uint32_t rows, float *logit, float *pctr)
{
    for (uint32_t r = 0; r < rows; r++) {
        double z = tn_calibration_logit(&s->b->calibration, (double)logit[r], s->unknown[r]);
        logit[r] = (float)z;
        if (pctr != NULL) {
            pctr[r] = (float)tn_sigmoid(z);
        }
    }
}

static void copy_column(const tn_node *n, uint32_t rows, float *out)
{
    for (uint32_t r = 0; r < rows; r++) {
        out[r] = *tn_val_row(n, r);
    }
}

tn_status tn_scorer_score(tn_scorer *s, const tn_batch *batch, float *logit, float *pctr,
                          tn_error *err)
{
    const tn_schema *schema = s->b->schema;
    TN_ASSERT(batch->n_slots == schema->n_slots && batch->n_numeric == schema->n_numeric);
    for (uint32_t from = 0; from < batch->rows; from += ROWS) {
        uint32_t left = batch->rows - from;
        uint32_t n = left < ROWS ? left : (uint32_t)ROWS;
        TN_TRY(gather(s, batch, (tn_range){from, from + n}, err));
        const tn_sparse sparse = {.floats = s->at[s->n], .rows = s->rows, .bag = s->bag};
        const tn_graph_feed feed = {
            .rows = n,
            .sparse = &sparse,
            .numeric =
                batch->numeric != NULL ? batch->numeric + (size_t)from * schema->n_numeric : NULL,
        };
        tn_forward(s->graph.g, &feed);
        copy_column(s->graph.logit, n, logit + from);
        if (pctr != NULL) {
            copy_column(s->graph.pctr, n, pctr + from);
        }
        if (s->b->calibration.kind != TN_CALIBRATION_NONE) {
            calibrate(s, n, logit + from, pctr != NULL ? pctr + from : NULL);
        }
    }
    return TN_OK;
}

tn_status tn_scorer_score_rows(tn_scorer *s, const tn_rows *rows, float *logit, float *pctr,
                               tn_error *err)
{
    uint32_t to = 0;
    for (uint32_t from = 0; from < rows->n; from = to) {
        tn_batch_builder_clear(s->made);
        for (; to < rows->n && to - from < ROWS; to++) {
            TN_TRY(tn_batch_builder_add(s->made, rows, to, 0, err));
        }
        TN_TRY(tn_batch_builder_settle(s->made, err));
        TN_TRY(tn_scorer_score(s, tn_batch_builder_end(s->made),
                               logit != NULL ? logit + from : s->spare,
                               pctr != NULL ? pctr + from : NULL, err));
    }
    return TN_OK;
}
