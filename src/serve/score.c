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

enum {
    ROWS = 256, /* at a time */
    STEP = 64,  /* keys whose rows are on their way while those before are taken */
};

enum { KEY_BYTES = sizeof(tn_dict_query) + sizeof(tn_dict_row) + 2 * sizeof(uint32_t) };

/* Rows of a table that are floats as a group's record has them, `at` bytes from their begin. */
typedef struct plain_rows {
    const tn_dict_table *table;
    uint32_t at; /* or TN_DICT_NO_FLOATS */
} plain_rows;

struct tn_scorer {
    const tn_exported_model *b;
    tn_exported_graph graph;
    tn_exported_graph many; /* the same for rows with slots in common; from its first use on */
    tn_arena *arena;        /* memory of the five below */
    /* per group * TN_SEGMENTS_MAX: streams of first values, before the key */
    uint64_t *stream;
    tn_bag *bag;            /* per slot */
    uint32_t *offset;       /* offsets of all bags: slots * (ROWS + 1) */
    plain_rows *plain;      /* per group */
    uint32_t *first;        /* slots + 1: the first key of each that is asked for */
    tn_batch_builder *made; /* batch of parsed rows */
    tn_batch_builder *user; /* batch of the slots that rows have in common; made with `many` */
    uint32_t n;             /* keys that have a row */
    uint32_t keys_max;
    tn_dict_query *query; /* owns the block that holds all of keys_max, down to `at` */
    tn_dict_row *found;
    float *weight; /* weights of the keys that have a row */
    uint32_t *at;  /* keys_max + 1: where their rows begin, in floats */
    uint32_t copies_max;
    /* copies of entries that all rows have in common: their places, then their weights */
    uint32_t *copy;
    size_t floats_max;
    float *rows;
    const tn_task_columns *columns; /* lent; NULL: only the first task is wanted */
    uint32_t scored;                /* rows of the running call so far */
    float spare[ROWS];              /* logits that the caller did not ask for */
    uint32_t unknown[ROWS];         /* slots of a row that hold keys, but none with a row */
};

static tn_status take_fixed(tn_scorer *s, tn_error *err)
{
    const tn_schema *schema = s->b->schema;
    size_t n_streams = ((size_t)schema->n_groups + 1) * TN_SEGMENTS_MAX;
    size_t n_offsets = (size_t)schema->n_slots * (ROWS + (size_t)1) + 1;
    size_t bytes = n_streams * sizeof *s->stream + schema->n_slots * sizeof *s->bag +
                   n_offsets * sizeof *s->offset + (schema->n_groups + 1) * sizeof *s->plain +
                   (schema->n_slots + (size_t)1) * sizeof *s->first + (size_t)2 * TN_CACHE_LINE;
    TN_TRY(tn_arena_open(&s->arena, bytes, "a scorer", err));
    s->stream = TN_NEW_ARRAY(s->arena, uint64_t, n_streams);
    s->bag = TN_NEW_ARRAY(s->arena, tn_bag, schema->n_slots);
    s->offset = TN_NEW_ARRAY(s->arena, uint32_t, n_offsets);
    s->plain = TN_NEW_ARRAY(s->arena, plain_rows, schema->n_groups + (size_t)1);
    s->first = TN_NEW_ARRAY(s->arena, uint32_t, schema->n_slots + (size_t)1);
    for (uint32_t g = 0; g < schema->n_groups; g++) {
        const tn_record *record = &s->b->group[g].record;
        for (uint32_t i = 0; i < record->n_segments; i++) {
            s->stream[g * TN_SEGMENTS_MAX + i] =
                tn_stream2(s->b->seed, TN_RNG_ROW, tn_name64(record->segment[i].name));
        }
    }
    TN_TRY(tn_batch_builder_new(&s->made, schema, ROWS, false, err));
    return tn_exported_graph_new(&s->graph, s->b, ROWS, false, err);
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
    tn_free(s->copy);
    tn_graph_free(s->graph.g);
    tn_graph_free(s->many.g);
    tn_batch_builder_free(s->made);
    tn_batch_builder_free(s->user);
    tn_arena_free(s->arena);
    tn_free(s->rows);
    tn_free(s);
}

/* Makes room for the keys of a piece; a quarter more than asked, so that it settles soon. */
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

static tn_status room_for_copies(tn_scorer *s, uint64_t n, tn_error *err)
{
    if (n <= s->copies_max) {
        return TN_OK;
    }
    const uint64_t most = UINT64_C(1) << 30;
    if (n > most) {
        return tn_fail(err, TN_E_LIMIT, "more than %llu values in %d rows",
                       (unsigned long long)most, ROWS);
    }
    tn_free(s->copy);
    s->copies_max = 0;
    size_t room = (size_t)(n + n / 4 + 64);
    TN_TRY(TN_ALLOC(s->copy, 2 * room, "keys to score", err));
    s->copies_max = (uint32_t)room;
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

/* Rows that go through the graph at once. */
typedef struct piece {
    const tn_batch *batch;
    tn_range rows;
    const tn_batch *user;    /* one row: the slots and numbers that all rows have in common */
    const tn_shared *shared; /* flags of these slots and numbers; NULL: none */
} piece;

static bool is_shared(const piece *p, uint32_t slot)
{
    return p->shared != NULL && p->shared->slot[slot];
}

/* Returns the slot with its keys, and the rows that have them. */
static const tn_slot *slot_of(const piece *p, uint32_t i, tn_range *rows)
{
    *rows = is_shared(p, i) ? (tn_range){0, 1} : p->rows;
    return &(is_shared(p, i) ? p->user : p->batch)->slot[i];
}

/* Asks for all keys of a piece, slot after slot; s->first: the first key of each slot. */
static void ask(tn_scorer *s, const piece *p)
{
    const tn_exported_model *b = s->b;
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->schema->n_slots; i++) {
        tn_range rows;
        const tn_slot *slot = slot_of(p, i, &rows);
        uint32_t in_dict = b->group[b->schema->slot[i]->group].in_dict;
        s->first[i] = n;
        for (uint32_t k = slot->offset[rows.from]; b->used[i] && k < slot->offset[rows.to]; k++) {
            s->query[n++] = (tn_dict_query){slot->key[k], in_dict};
        }
    }
    s->first[b->schema->n_slots] = n;
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

/* Copies in pieces of fixed length, for which no function is called: that of libc waits for what it
 * copies, so that misses of one row after the other do not overlap. */
static inline void copy_floats(float *restrict to, const float *restrict from, uint32_t n)
{
    enum { LONG = 8, SHORT = 4 };
    for (; n >= LONG; n -= LONG, to += LONG, from += LONG) {
        memcpy(to, from, LONG * sizeof *to);
    }
    if (n >= SHORT) {
        memcpy(to, from, SHORT * sizeof *to);
        n -= SHORT;
        to += SHORT;
        from += SHORT;
    }
    for (uint32_t i = 0; i < SHORT - 1; i++) {
        if (i < n) {
            to[i] = from[i];
        }
    }
}

/* Appends a row of a group; keys without one read as first values. */
static void take_row(tn_scorer *s, uint32_t group, uint64_t key, const tn_dict_row *found)
{
    const tn_exported_group *g = &s->b->group[group];
    float *row = s->rows + s->at[s->n];
    s->at[s->n + 1] = s->at[s->n] + g->record.width;
    s->n++;
    if (found->at == NULL) {
        first_values(s, group, key, row);
        return;
    }
    if (s->plain[group].table != found->table) {
        s->plain[group] =
            (plain_rows){found->table, tn_dict_floats(found->table, &g->record, g->segment)};
    }
    if (s->plain[group].at != TN_DICT_NO_FLOATS) {
        const void *from = found->at + s->plain[group].at; /* a multiple of 4 */
        copy_floats(row, from, g->record.width);
        return;
    }
    for (uint32_t k = 0; k < g->record.n_segments; k++) {
        const tn_segment *segment = &g->record.segment[k];
        (void)tn_dict_get(found, g->segment[k], segment->dim, row + segment->at);
    }
}
/* Returns whether key `i` of a slot counts: it has a row, or reads as first values, or, as zeros,
 * keeps its place in a sequence. */
static bool is_kept(const tn_scorer *s, const tn_slot_spec *slot, uint32_t i)
{
    return s->found[i].at != NULL || s->b->group[slot->group].missing_init ||
           slot->sequence != NULL;
}

/* Takes the rows of all keys: some are looked up, and on their way while those before are taken. */
static tn_status take_rows(tn_scorer *s, tn_error *err)
{
    const tn_schema *schema = s->b->schema;
    const uint32_t n = s->first[schema->n_slots];
    uint32_t slot = 0;
    s->n = 0;
    s->at[0] = 0;
    for (uint32_t from = 0, next = 0; next < n; from += STEP) {
        const uint32_t to = from < n && n - from > STEP ? from + STEP : n;
        if (from < n) {
            TN_TRY(
                tn_dict_stack_find(&s->b->dict, to - from, s->query + from, s->found + from, err));
        }
        for (const uint32_t end = from < n ? from : n; next < end; next++) {
            while (next >= s->first[slot + 1]) {
                slot++;
            }
            const uint32_t group = schema->slot[slot]->group;
            if (is_kept(s, schema->slot[slot], next)) {
                take_row(s, group, s->query[next].key, &s->found[next]);
            }
        }
    }
    return TN_OK;
}

/* Fills one slot's bag, its rows beginning at number `first`; returns the number after them. As in
 * evaluation (train/step/step.h) a key without a row is left out of its slot, unless such keys read
 * as first values. */
static uint32_t fill_bag(tn_scorer *s, const tn_slot *slot, uint32_t number, tn_range rows,
                         uint32_t first)
{
    const tn_slot_spec *spec = s->b->schema->slot[number];
    uint32_t *offset = s->offset + (size_t)number * (ROWS + (size_t)1);
    uint32_t next = s->first[number];
    uint32_t n = first;
    for (uint32_t r = rows.from; r < rows.to; r++) {
        const uint32_t before = n;
        offset[r - rows.from] = n - first;
        for (uint32_t k = slot->offset[r]; k < slot->offset[r + 1]; k++, next++) {
            s->weight[n] = slot->value != NULL ? slot->value[k] : 1;
            n += is_kept(s, spec, next);
        }
        s->unknown[r - rows.from] += n == before && slot->offset[r + 1] > slot->offset[r];
    }
    offset[rows.to - rows.from] = n - first;
    s->bag[number] = (tn_bag){.offset = offset,
                              .index = s->at + first,
                              .weight = slot->value != NULL ? s->weight + first : NULL};
    return n;
}

/* Gives all `rows` what slot `number` of the first has; returns the copies of entries so far. */
static uint32_t spread_slot(tn_scorer *s, uint32_t number, uint32_t rows, uint32_t copies)
{
    tn_bag *bag = &s->bag[number];
    uint32_t *offset = s->offset + (size_t)number * (ROWS + (size_t)1);
    uint32_t *index = s->copy + copies;
    float *weight = (float *)(void *)(s->copy + s->copies_max) + copies;
    const uint32_t n = offset[1];
    for (uint32_t r = 0; r < rows; r++) {
        memcpy(index + (size_t)r * n, bag->index, n * sizeof *index);
        if (bag->weight != NULL) {
            memcpy(weight + (size_t)r * n, bag->weight, n * sizeof *weight);
        }
        offset[r + 1] = (r + 1) * n;
    }
    bag->index = index;
    bag->weight = bag->weight != NULL ? weight : NULL;
    return copies + rows * n;
}

/* Makes room for the most that a piece may need. */
static tn_status make_room(tn_scorer *s, const piece *p, tn_error *err)
{
    const tn_schema *schema = s->b->schema;
    uint64_t keys = 0;
    uint64_t floats = 0; /* floats of the keys' rows at the widest */
    uint64_t copies = 0;
    for (uint32_t i = 0; i < schema->n_slots; i++) {
        tn_range rows;
        const uint32_t *offset = slot_of(p, i, &rows)->offset;
        uint64_t n = offset[rows.to] - offset[rows.from];
        keys += n;
        floats += n * s->b->group[schema->slot[i]->group].record.width;
        copies += is_shared(p, i) ? n * (p->rows.to - p->rows.from) : 0;
    }
    TN_TRY(room_for_keys(s, keys, err));
    TN_TRY(room_for_copies(s, copies, err));
    return room_for_floats(s, floats, err);
}

/* Gathers the keys of a piece and their rows of the dictionary. */
static tn_status gather(tn_scorer *s, const piece *p, tn_error *err)
{
    const tn_exported_model *b = s->b;
    TN_TRY(make_room(s, p, err));
    ask(s, p);
    TN_TRY(take_rows(s, err));
    memset(s->unknown, 0, sizeof s->unknown);
    uint32_t n = 0;
    uint32_t copies = 0;
    uint32_t unknown = 0; /* unknown slots among the shared ones, which the first row has counted */
    for (uint32_t i = 0; i < b->schema->n_slots; i++) {
        tn_range rows;
        const tn_slot *slot = slot_of(p, i, &rows);
        const uint32_t before = s->unknown[0];
        if (b->used[i]) {
            n = fill_bag(s, slot, i, rows, n);
        }
        if (b->used[i] && is_shared(p, i)) {
            copies = spread_slot(s, i, p->rows.to - p->rows.from, copies);
            unknown += s->unknown[0] - before;
        }
    }
    TN_ASSERT(n == s->n);
    for (uint32_t r = 1; r < p->rows.to - p->rows.from; r++) {
        s->unknown[r] += unknown;
    }
    return TN_OK;
}

static void calibrate(const tn_scorer *s, const tn_calibration *map, uint32_t rows, float *logit,
                      float *pctr)
{
    for (uint32_t r = 0; r < rows; r++) {
        double z = tn_calibration_logit(map, (double)logit[r], s->unknown[r]);
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

/* Writes what is wanted of further tasks. */
static void copy_tasks(tn_scorer *s, const tn_exported_graph *graph, uint32_t rows)
{
    for (uint32_t k = 0; s->columns != NULL && k < s->b->tasks->n; k++) {
        float *score = s->columns->score[k];
        float *given = s->columns->given[k];
        if (score != NULL) {
            copy_column(graph->score[k], rows, score + s->scored);
            if (s->b->task[k].calibration.kind != TN_CALIBRATION_NONE) {
                calibrate(s, &s->b->task[k].calibration, rows, score + s->scored, NULL);
            }
        }
        if (given != NULL && graph->given[k] != NULL) {
            copy_column(graph->given[k], rows, given + s->scored);
        }
    }
    s->scored += rows;
}

void tn_scorer_set_columns(tn_scorer *s, const tn_task_columns *out)
{
    s->columns = out;
}

/* Scores one piece through its graph. */
static tn_status score_piece(tn_scorer *s, const tn_exported_graph *graph, const piece *p,
                             float *logit, float *pctr, tn_error *err)
{
    const uint32_t n = p->rows.to - p->rows.from;
    const float *numeric = p->batch->numeric;
    TN_TRY(gather(s, p, err));
    const tn_sparse sparse = {.floats = s->at[s->n], .rows = s->rows, .bag = s->bag};
    const tn_graph_feed feed = {
        .rows = n,
        .sparse = &sparse,
        .shared = p->shared,
        .numeric =
            numeric != NULL ? numeric + (size_t)p->rows.from * s->b->schema->n_numeric : NULL,
    };
    tn_forward(graph->g, &feed);
    copy_column(graph->logit, n, logit);
    if (pctr != NULL) {
        copy_column(graph->pctr, n, pctr);
    }
    if (s->b->calibration.kind != TN_CALIBRATION_NONE) {
        calibrate(s, &s->b->calibration, n, logit, pctr);
    }
    copy_tasks(s, graph, n);
    return TN_OK;
}

static tn_status score_batch(tn_scorer *s, const tn_batch *batch, float *logit, float *pctr,
                             tn_error *err)
{
    const tn_schema *schema = s->b->schema;
    TN_ASSERT(batch->n_slots == schema->n_slots && batch->n_numeric == schema->n_numeric);
    for (uint32_t from = 0; from < batch->rows; from += ROWS) {
        uint32_t left = batch->rows - from;
        const piece p = {.batch = batch,
                         .rows = {from, from + (left < ROWS ? left : (uint32_t)ROWS)}};
        TN_TRY(score_piece(s, &s->graph, &p, logit + from, pctr != NULL ? pctr + from : NULL, err));
    }
    return TN_OK;
}

tn_status tn_scorer_score(tn_scorer *s, const tn_batch *batch, float *logit, float *pctr,
                          tn_error *err)
{
    s->scored = 0;
    return score_batch(s, batch, logit, pctr, err);
}

/* Makes a batch of the rows from `from` on, as many as go through the graph at once. */
static tn_status make_batch(tn_batch_builder *to, const tn_rows *rows, uint32_t from,
                            tn_batch **out, tn_error *err)
{
    tn_batch_builder_clear(to);
    for (uint32_t i = from; i < rows->n && i - from < ROWS; i++) {
        TN_TRY(tn_batch_builder_add(to, rows, i, 0, err));
    }
    TN_TRY(tn_batch_builder_settle(to, err));
    *out = tn_batch_builder_end(to);
    return TN_OK;
}

tn_status tn_scorer_score_rows(tn_scorer *s, const tn_rows *rows, float *logit, float *pctr,
                               tn_error *err)
{
    tn_batch *batch = NULL;
    s->scored = 0;
    for (uint32_t from = 0; from < rows->n; from += batch->rows) {
        TN_TRY(make_batch(s->made, rows, from, &batch, err));
        TN_TRY(score_batch(s, batch, logit != NULL ? logit + from : s->spare,
                           pctr != NULL ? pctr + from : NULL, err));
    }
    return TN_OK;
}

static tn_status prepare_many(tn_scorer *s, tn_error *err)
{
    if (s->user == NULL) {
        TN_TRY(tn_batch_builder_new(&s->user, s->b->schema, 1, false, err));
    }
    return s->many.g != NULL ? TN_OK : tn_exported_graph_new(&s->many, s->b, ROWS, true, err);
}

tn_status tn_scorer_score_many(tn_scorer *s, const tn_shared_row *common, const tn_rows *rows,
                               float *logit, float *pctr, tn_error *err)
{
    tn_batch *user = NULL;
    tn_batch *batch = NULL;
    const tn_shared shared = {common->slot, common->numeric};
    TN_ASSERT(common->row->n == 1);
    s->scored = 0;
    TN_TRY(prepare_many(s, err));
    TN_TRY(make_batch(s->user, common->row, 0, &user, err));
    for (uint32_t from = 0; from < rows->n; from += batch->rows) {
        TN_TRY(make_batch(s->made, rows, from, &batch, err));
        for (size_t i = 0; i < (size_t)batch->rows * batch->n_numeric; i++) {
            const size_t col = i % batch->n_numeric;
            batch->numeric[i] = shared.numeric[col] ? user->numeric[col] : batch->numeric[i];
        }
        const piece p = {.batch = batch, .rows = {0, batch->rows}, .user = user, .shared = &shared};
        TN_TRY(score_piece(s, &s->many, &p, logit != NULL ? logit + from : s->spare,
                           pctr != NULL ? pctr + from : NULL, err));
    }
    return TN_OK;
}
