/* manifest.c - writing MANIFEST, the hashes of its parts, and reading it as hostile input.
 *
 * Members are read one by one through a reader that remembers the first one that is missing or
 * wrong and yields zeros from then on, so that a group of members is read in a row and checked
 * once, before anything is used as a size or an index.
 */
#include "ps/snapshot/manifest.h"

#include "base/codec/json.h"
#include "base/math/sha256.h"

#include <math.h>
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

static void add_segment(tn_text *t, const tn_row_segment *segment)
{
    TN_ASSERT(segment->n_states <= TN_ROW_STATES_MAX && segment->dim <= TN_DIM_MAX);
    tn_json_open(t, '{');
    tn_json_str(t, "name", segment->name);
    tn_json_u64(t, "dim", segment->dim);
    tn_json_str(t, "optimizer", segment->optimizer);
    tn_json_open_key(t, "state", '[');
    for (uint32_t i = 0; i < segment->n_states; i++) {
        tn_json_open(t, '[');
        tn_json_str(t, NULL, segment->state[i].name);
        tn_json_u64(t, NULL, segment->state[i].words);
        if (segment->state[i].count) {
            tn_json_str(t, NULL, "u32");
        }
        tn_json_close(t, ']');
    }
    tn_json_close(t, ']');
    tn_json_close(t, '}');
}

/* `key` NULL: the bare text, whose bytes are hashed. */
static void add_schema(tn_text *t, const char *key, const tn_row_schema *schema)
{
    tn_json_open_key(t, key, '{');
    tn_json_u64(t, "partitions", schema->partitions);
    tn_json_open_key(t, "records", '[');
    for (uint32_t r = 0; r < schema->n_records; r++) {
        TN_ASSERT(schema->record[r].n_segments <= TN_SEGMENTS_MAX);
        tn_json_open(t, '{');
        tn_json_open_key(t, "segments", '[');
        for (uint32_t s = 0; s < schema->record[r].n_segments; s++) {
            add_segment(t, &schema->record[r].segment[s]);
        }
        tn_json_close(t, ']');
        tn_json_close(t, '}');
    }
    tn_json_close(t, ']');
    tn_json_open_key(t, "groups", '[');
    for (uint32_t g = 0; g < schema->n_groups; g++) {
        TN_ASSERT(schema->group[g].record < schema->n_records);
        tn_json_open(t, '{');
        tn_json_str(t, "name", schema->group[g].name);
        tn_json_hex64(t, "salt", schema->group[g].salt);
        tn_json_u64(t, "record", schema->group[g].record);
        tn_json_close(t, '}');
    }
    tn_json_close(t, ']');
    tn_json_close(t, '}');
}

static void add_params(tn_text *t, const char *key, const tn_manifest_dense *dense)
{
    tn_json_open_key(t, key, '[');
    for (uint32_t i = 0; i < dense->n_params; i++) {
        const tn_manifest_param *p = &dense->param[i];
        TN_ASSERT(p->rank <= TN_MANIFEST_RANK_MAX && p->at <= dense->size);
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
    TN_ASSERT(dense->n_states <= TN_ROW_STATES_MAX);
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
        TN_ASSERT(p->state <= TN_PART_DONE && p->begin <= p->end);
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
        TN_ASSERT(m->cut_for >= 1 && m->cut_for <= TN_MANIFEST_RANKS_MAX);
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

/* {"learned":[[first,last],..],"day":d,"epoch":e,"before":o,"samples":s}, the last four within a
 * day; behind one {"learned":..,"last":d,"samples":s}. */
static void add_days(tn_text *t, const tn_manifest_days *d)
{
    const bool hours = tn_day_is_hour(d->day) || (d->n > 0 && tn_day_is_hour(d->range[0].first));
    const uint32_t least = hours ? TN_HOUR_MIN : 0;
    tn_json_open_key(t, "days", '{');
    if (hours) {
        tn_json_str(t, "unit", "hour");
    }
    tn_json_open_key(t, "learned", '[');
    for (uint32_t i = 0; i < d->n; i++) {
        TN_ASSERT(d->range[i].first <= d->range[i].last);
        tn_json_open(t, '[');
        tn_json_u64(t, NULL, d->range[i].first - least);
        tn_json_u64(t, NULL, d->range[i].last - least);
        tn_json_close(t, ']');
    }
    tn_json_close(t, ']');
    if (d->within) {
        tn_json_u64(t, "day", d->day - least);
        tn_json_u64(t, "epoch", d->epoch);
        tn_json_u64(t, "before", d->before);
        tn_json_count(t, "samples", d->samples);
    } else if (d->day != 0) {
        tn_json_u64(t, "last", d->day - least);
        tn_json_count(t, "samples", d->samples);
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
        if (isnan(m->best_counted)) {
            tn_json_str(t, "counted", NULL);
        } else if (m->best_counted != m->best_value) {
            tn_json_f64(t, "counted", m->best_counted);
        }
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
    TN_ASSERT(!is_sparse || f->first <= f->last);
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

/* All files, or only those of learned values: rows and dense weights. */
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
    TN_ASSERT(strlen(m->config_hash) == 64 && strlen(m->structure) == 64);
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
    add_schema(t, "sparse", &m->sparse);
    add_dense(t, &m->dense);
    add_progress(t, m);
    if (m->days.used) {
        add_days(t, &m->days);
    }
    if (m->export.due || m->export.newest[0] != '\0') {
        tn_json_open_key(t, "export", '{');
        tn_json_bool(t, "due", m->export.due);
        tn_json_str(t, "newest", m->export.newest);
        if (m->export.awaits) {
            tn_json_bool(t, "awaits_calibration", true);
        }
        if (m->export.calibration != NULL) {
            tn_json_str(t, "calibration", m->export.calibration);
        }
        tn_json_close(t, '}');
    }
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
    add_schema(&sparse, NULL, &m->sparse);
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

/* ---- reading ---- */

/* ["t", 1, "u32"] */
static tn_row_state read_state(tn_members *r, const tn_json *list)
{
    tn_row_state state = {.name = tn_json_as_str(tn_json_item(list, 0))};
    uint64_t words = 0;
    const char *type = tn_json_as_str(tn_json_item(list, 2));
    state.count = type != NULL && strcmp(type, "u32") == 0;
    bool fits = tn_json_as_u64(tn_json_item(list, 1), &words) && words <= TN_DIM_MAX;
    if (state.name == NULL || !fits || list->n < 2 || list->n > 3 ||
        state.count != (list->n == 3)) {
        tn_member_expect(r, false, "sparse.records.segments.state");
    }
    state.words = fits ? (uint32_t)words : 0;
    return state;
}

static tn_row_segment read_segment(tn_members *r, const tn_json *object)
{
    tn_row_segment segment = {
        .name = tn_member_str(r, object, "name"),
        .dim = tn_member_u32(r, object, "dim", TN_DIM_MAX),
        .optimizer = tn_member_str(r, object, "optimizer"),
    };
    const tn_json *states = tn_member_list(r, object, "state", TN_ROW_STATES_MAX);
    for (const tn_json *s = states->first; s != NULL; s = s->next) {
        segment.state[segment.n_states++] = read_state(r, s);
    }
    TN_ASSERT(segment.n_states <= TN_ROW_STATES_MAX && segment.dim <= TN_DIM_MAX);
    return segment;
}

static void read_records(tn_members *r, const tn_json *list, tn_row_schema *out)
{
    tn_row_record *record = TN_NEW_ARRAY(r->arena, tn_row_record, list->n);
    for (const tn_json *o = list->first; o != NULL; o = o->next) {
        tn_row_record *to = &record[out->n_records++];
        const tn_json *segments = tn_member_list(r, o, "segments", TN_SEGMENTS_MAX);
        for (const tn_json *s = segments->first; s != NULL; s = s->next) {
            to->segment[to->n_segments++] = read_segment(r, s);
            TN_ASSERT(to->n_segments <= TN_SEGMENTS_MAX);
        }
    }
    out->record = record;
}

static void read_schema(tn_members *r, const tn_json *object, tn_row_schema *out)
{
    out->partitions = tn_member_u32(r, object, "partitions", TN_SNAPSHOT_PARTITIONS_MAX);
    tn_member_expect(r, out->partitions > 0, "partitions");
    read_records(r, tn_member_list(r, object, "records", TN_GROUPS_MAX), out);
    const tn_json *groups = tn_member_list(r, object, "groups", TN_GROUPS_MAX);
    tn_row_group *group = TN_NEW_ARRAY(r->arena, tn_row_group, groups->n);
    for (const tn_json *o = groups->first; o != NULL; o = o->next) {
        tn_row_group *to = &group[out->n_groups++];
        to->name = tn_member_str(r, o, "name");
        to->salt = tn_member_hex(r, o, "salt");
        to->record = tn_member_u32(r, o, "record", TN_GROUPS_MAX);
        tn_member_expect(r, to->record < out->n_records, "record");
    }
    out->group = group;
}

static tn_manifest_param read_param(tn_members *r, const tn_json *object, uint64_t dense_size)
{
    tn_manifest_param p = {.name = tn_member_str(r, object, "name"),
                           .at = tn_member_u64(r, object, "at", dense_size),
                           .train = tn_member_bool(r, object, "train")};
    const tn_json *shape = tn_member_list(r, object, "shape", TN_MANIFEST_RANK_MAX);
    uint64_t size = 1;
    for (const tn_json *d = shape->first; d != NULL; d = d->next) {
        uint64_t *dim = &p.shape[p.rank++];
        tn_member_expect(r, tn_json_as_u64(d, dim) && !__builtin_mul_overflow(size, *dim, &size),
                         "shape");
    }
    TN_ASSERT(p.rank <= TN_MANIFEST_RANK_MAX && p.at <= dense_size);
    tn_member_expect(r, size <= dense_size - p.at, "shape");
    return p;
}

/* {"t":"12000"} */
static const tn_manifest_count *read_counts(tn_members *r, const tn_json *object, uint32_t *n)
{
    tn_manifest_count *count = TN_NEW_ARRAY(r->arena, tn_manifest_count, object->n);
    for (const tn_json *m = object->first; m != NULL; m = m->next) {
        count[*n].name = m->key;
        tn_member_expect(r, tn_json_as_u64(m, &count[*n].value), m->key);
        ++*n;
    }
    return count;
}

static void read_dense(tn_members *r, const tn_json *object, tn_manifest_dense *out)
{
    out->size = tn_member_u64(r, object, "size", UINT64_MAX / sizeof(float));
    out->optimizer = tn_member_str(r, object, "optimizer");
    const tn_json *states = tn_member_list(r, object, "state", TN_ROW_STATES_MAX);
    for (const tn_json *s = states->first; s != NULL; s = s->next) {
        const char *name = tn_json_as_str(s);
        tn_member_expect(r, name != NULL, "state");
        out->state[out->n_states++] = name;
    }
    TN_ASSERT(out->n_states <= TN_ROW_STATES_MAX);
    out->scalar = read_counts(r, tn_member_object(r, object, "scalars", 64), &out->n_scalars);
    const tn_json *params = tn_member_list(r, object, "params", UINT32_MAX);
    tn_manifest_param *param = TN_NEW_ARRAY(r->arena, tn_manifest_param, params->n);
    for (const tn_json *p = params->first; p != NULL; p = p->next) {
        param[out->n_params++] = read_param(r, p, out->size);
    }
    TN_ASSERT(out->n_params == params->n);
    out->param = param;
}

/* [source, first byte, end, "done"] or [.., "free" or "dealt", attempt, position] */
static tn_manifest_part read_part(tn_members *r, const tn_json *list)
{
    tn_manifest_part p = {0};
    uint64_t source = 0;
    uint64_t attempt = 0;
    const char *state = tn_json_as_str(tn_json_item(list, 3));
    bool good = state != NULL && tn_json_as_u64(tn_json_item(list, 0), &source) &&
                tn_json_as_u64(tn_json_item(list, 1), &p.begin) &&
                tn_json_as_u64(tn_json_item(list, 2), &p.end);
    if (good && strcmp(state, "done") == 0) {
        p.state = TN_PART_DONE;
        good = list->n == 4;
    } else if (good) {
        p.state = strcmp(state, "free") == 0 ? TN_PART_FREE : TN_PART_DEALT;
        good = (p.state == TN_PART_FREE || strcmp(state, "dealt") == 0) && list->n == 6 &&
               tn_json_as_u64(tn_json_item(list, 4), &attempt) &&
               tn_json_as_u64(tn_json_item(list, 5), &p.position);
    }
    if (!good || p.begin > p.end || source > UINT32_MAX || attempt > UINT32_MAX) {
        tn_member_expect(r, false, "progress.parts");
        return (tn_manifest_part){0};
    }
    p.source = (uint32_t)source;
    p.attempt = (uint32_t)attempt;
    return p;
}

static void read_progress(tn_members *r, const tn_json *object, tn_manifest *out)
{
    out->epoch = tn_member_u32(r, object, "epoch", UINT32_MAX);
    const tn_json *parts = tn_member_list(r, object, "parts", UINT32_MAX);
    tn_manifest_part *part = TN_NEW_ARRAY(r->arena, tn_manifest_part, parts->n);
    for (const tn_json *p = parts->first; p != NULL; p = p->next) {
        part[out->n_parts++] = read_part(r, p);
    }
    TN_ASSERT(out->n_parts == parts->n);
    out->part = part;
    out->shared = tn_json_get(object, "shuffle") != NULL;
    out->shuffle = out->shared ? tn_member_u32(r, object, "shuffle", UINT32_MAX) : 0;
    const bool cut = out->shared && tn_json_get(object, "ranks") != NULL;
    out->cut_for = cut ? tn_member_u32(r, object, "ranks", TN_MANIFEST_RANKS_MAX) : 1;
    tn_member_expect(r, out->cut_for > 0, "progress.ranks");
    if (tn_json_get(object, "step") != NULL) {
        out->epoch_step = tn_member_u64(r, object, "step", UINT64_MAX);
    }
    out->begun = tn_json_get(object, "begun") != NULL;
    out->begun_crc = out->begun ? tn_member_crc(r, object, "begun") : 0;
}

static void read_days(tn_members *r, const tn_json *object, uint32_t epoch, tn_manifest_days *out)
{
    const tn_json *list = tn_member_list(r, object, "learned", UINT32_MAX);
    const bool hours = tn_json_get(object, "unit") != NULL;
    const uint32_t base = hours ? TN_HOUR_MIN : 0;
    const uint32_t most = hours ? TN_HOUR_MAX - TN_HOUR_MIN : TN_DAY_MAX;
    out->used = true;
    tn_member_expect(r, list->n <= TN_DAY_RANGES_MAX, "days.learned");
    tn_member_expect(r, !hours || strcmp(tn_member_str(r, object, "unit"), "hour") == 0,
                     "days.unit");
    uint64_t least = 0; /* a day lies between two ranges */
    for (const tn_json *p = list->first; p != NULL && out->n < TN_DAY_RANGES_MAX; p = p->next) {
        uint64_t first = 0;
        uint64_t last = 0;
        const bool good = tn_json_as_u64(tn_json_item(p, 0), &first) &&
                          tn_json_as_u64(tn_json_item(p, 1), &last) && first >= least &&
                          first <= last && last <= most;
        tn_member_expect(r, good, "days.learned");
        out->range[out->n++] = good ? (tn_day_range){base + (uint32_t)first, base + (uint32_t)last}
                                    : (tn_day_range){0};
        least = last + 2;
    }
    out->within = tn_json_get(object, "day") != NULL;
    if (out->within) {
        out->day = base + tn_member_u32(r, object, "day", most);
        out->epoch = tn_member_u32(r, object, "epoch", epoch);
        out->before = tn_member_u64(r, object, "before", INT64_MAX);
        out->samples = tn_member_u64(r, object, "samples", UINT64_MAX);
    } else if (tn_json_get(object, "last") != NULL) {
        out->day = base + tn_member_u32(r, object, "last", most);
        out->samples = tn_member_u64(r, object, "samples", UINT64_MAX);
    }
}

static void read_requests(tn_members *r, const tn_json *list, tn_manifest *out)
{
    tn_manifest_request *request = TN_NEW_ARRAY(r->arena, tn_manifest_request, list->n);
    for (const tn_json *o = list->first; o != NULL; o = o->next) {
        request[out->n_requests++] = (tn_manifest_request){
            .shard = tn_member_u32(r, o, "shard", UINT32_MAX),
            .sender = tn_member_u32(r, o, "sender", UINT32_MAX),
            .incarnation = tn_member_hex(r, o, "incarnation"),
            .low = tn_member_u64(r, o, "low", UINT64_MAX),
        };
    }
    out->request = request;
}

static void read_metrics(tn_members *r, const tn_json *object, tn_manifest *out)
{
    const tn_json *best = tn_json_get(object, "best");
    if (best != NULL && best->kind == TN_JSON_OBJECT) {
        out->best_name = tn_member_str(r, best, "name");
        out->best_value = tn_member_f64(r, best, "value");
        out->best_step = tn_member_u64(r, best, "step", UINT64_MAX);
        const tn_json *counted = tn_json_get(best, "counted");
        const bool is_none = counted != NULL && counted->kind == TN_JSON_NULL;
        out->best_counted = counted == NULL ? out->best_value
                            : is_none       ? (double)NAN
                                            : tn_member_f64(r, best, "counted");
    } else if (best == NULL || best->kind != TN_JSON_NULL) {
        tn_member_expect(r, false, "best");
    }
    out->bad_evals = tn_member_u64(r, object, "bad_evals", UINT64_MAX);
    out->lr_scale = tn_member_f64(r, object, "lr_scale");
    out->eval_owed =
        tn_json_get(object, "eval_owed") != NULL && tn_member_bool(r, object, "eval_owed");
}

/* Names become paths: one plain component, and not a file that every checkpoint has anyway. */
static bool is_file_name(const char *name)
{
    size_t size = strlen(name);
    return size > 0 && size <= 200 && name[0] != '.' && strcmp(name, "MANIFEST") != 0 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               size;
}

static tn_manifest_file read_file(tn_members *r, const tn_json *object, uint32_t partitions)
{
    tn_manifest_file f = {.name = tn_member_str(r, object, "name"),
                          .type = tn_member_str(r, object, "type"),
                          .bytes = tn_member_u64(r, object, "bytes", INT64_MAX),
                          .crc = tn_member_crc(r, object, "crc32c")};
    tn_member_expect(r, is_file_name(f.name), "files.name");
    if (strcmp(f.type, "sparse") == 0) {
        const tn_json *range = tn_member_list(r, object, "partitions", 2);
        uint64_t first = 0;
        uint64_t last = 0;
        if (!tn_json_as_u64(tn_json_item(range, 0), &first) ||
            !tn_json_as_u64(tn_json_item(range, 1), &last) || first > last || last >= partitions) {
            tn_member_expect(r, false, "files.partitions");
            first = last = 0;
        }
        f.rows = tn_member_u64(r, object, "rows", INT64_MAX);
        f.first = (uint32_t)first;
        f.last = (uint32_t)last;
    }
    return f;
}

/* The files' names ascend; the sparse ones, in that order, tile the partitions. */
static void read_files(tn_members *r, const tn_json *list, tn_manifest *out)
{
    tn_manifest_file *file = TN_NEW_ARRAY(r->arena, tn_manifest_file, list->n);
    uint32_t next = 0;
    uint64_t rows = 0;
    for (const tn_json *o = list->first; o != NULL; o = o->next) {
        tn_manifest_file *f = &file[out->n_files++];
        *f = read_file(r, o, out->sparse.partitions);
        tn_member_expect(r, out->n_files == 1 || strcmp(f[-1].name, f->name) < 0, "files.name");
        if (strcmp(f->type, "sparse") == 0) {
            tn_member_expect(r, f->first == next, "files.partitions");
            next = f->last + 1;
            rows += f->rows;
        }
    }
    bool full = out->base == 0;
    tn_member_expect(r, !full || (next == out->sparse.partitions && rows == out->rows), "files");
    out->file = file;
}

static void read_identity(tn_members *r, const tn_json *top, tn_manifest *out)
{
    const char *kind = tn_member_str(r, top, "kind");
    out->ordinal = tn_member_u64(r, top, "ordinal", INT64_MAX);
    tn_member_expect(r, out->ordinal > 0, "ordinal");
    if (strcmp(kind, "delta") == 0) {
        const tn_json *base = tn_member_object(r, top, "base", UINT32_MAX);
        out->base = tn_member_u64(r, base, "ordinal", INT64_MAX);
        out->base_crc = tn_member_crc(r, base, "crc32c");
        tn_member_expect(r, out->base > 0 && out->base < out->ordinal, "base");
    } else if (strcmp(kind, "full") != 0) {
        tn_member_expect(r, false, "kind");
    }
    out->run_id = tn_member_hex(r, top, "run_id");
    out->step = tn_member_u64(r, top, "step", UINT64_MAX);
    out->samples = tn_member_u64(r, top, "samples", UINT64_MAX);
    out->rows = tn_member_u64(r, top, "rows", INT64_MAX);
    out->clock = tn_member_u32(r, top, "clock", UINT32_MAX);
    const tn_json *config = tn_member_object(r, top, "config", UINT32_MAX);
    out->config_hash = tn_member_sha(r, config, "hash");
    out->structure = tn_member_sha(r, config, "structure");
    out->seed = tn_member_hex(r, top, "seed");
}

/* The id becomes a path: digits only. */
static void read_export(tn_members *r, const tn_json *object, tn_manifest_export *out)
{
    const char *newest = tn_member_str(r, object, "newest");
    const size_t size = strlen(newest);
    const bool good =
        size == strspn(newest, "0123456789abcdef") && (size == 0 || size == sizeof out->newest - 1);
    out->due = tn_member_bool(r, object, "due");
    out->awaits = tn_json_get(object, "awaits_calibration") != NULL &&
                  tn_member_bool(r, object, "awaits_calibration");
    out->calibration =
        tn_json_get(object, "calibration") != NULL ? tn_member_str(r, object, "calibration") : NULL;
    tn_member_expect(r, good, "export.newest");
    memcpy(out->newest, good ? newest : "", good ? size + 1 : 1);
}

static void read_members(tn_members *r, const tn_json *top, tn_manifest *out)
{
    read_identity(r, top, out);
    read_schema(r, tn_member_object(r, top, "sparse", UINT32_MAX), &out->sparse);
    read_dense(r, tn_member_object(r, top, "dense", UINT32_MAX), &out->dense);
    read_progress(r, tn_member_object(r, top, "progress", UINT32_MAX), out);
    if (tn_json_get(top, "days") != NULL) {
        read_days(r, tn_member_object(r, top, "days", UINT32_MAX), out->epoch, &out->days);
    }
    if (tn_json_get(top, "export") != NULL) {
        read_export(r, tn_member_object(r, top, "export", UINT32_MAX), &out->export);
    }
    read_requests(r, tn_member_list(r, top, "requests", UINT32_MAX), out);
    read_metrics(r, tn_member_object(r, top, "metrics", UINT32_MAX), out);
    out->log = read_counts(r, tn_member_object(r, top, "logs", UINT32_MAX), &out->n_logs);
    const tn_json *host = tn_member_object(r, top, "host", UINT32_MAX);
    out->cpu = tn_member_str(r, host, "cpu");
    out->blas = tn_member_str(r, host, "blas");
    read_files(r, tn_member_list(r, top, "files", UINT32_MAX), out);
    out->crc = tn_member_crc(r, top, "crc32c");
}

tn_status tn_manifest_read(tn_manifest *out, const tn_text *text, tn_arena *arena, const char *what,
                           tn_error *err)
{
    const tn_json *top = NULL;
    TN_TRY(tn_json_check_crc(tn_text_str(text), text->size, what, err));
    TN_TRY(tn_json_parse(&top, tn_text_str(text), text->size, arena, what, err));
    const char *format = tn_json_as_str(tn_json_get(top, "format"));
    if (format == NULL || strcmp(format, "tnet-checkpoint") != 0) {
        return tn_fail(err, TN_E_CKPT, "'%s' is not the manifest of a checkpoint", what);
    }
    const tn_json *version = tn_json_get(top, "version");
    uint64_t major = 0;
    if (version == NULL || !tn_json_as_u64(tn_json_item(version, 0), &major) || major == 0) {
        return tn_fail(err, TN_E_CKPT, "'%s': member 'version' is missing or wrong", what);
    }
    if (major > 1) {
        return tn_fail(err, TN_E_LIMIT, "'%s' was written by a newer version", what);
    }
    tn_members r = {.arena = arena};
    tn_manifest m = {0};
    read_members(&r, top, &m);
    if (r.wrong != NULL) {
        return tn_fail(err, TN_E_CKPT, "'%s': member '%.64s' is missing or wrong", what, r.wrong);
    }
    TN_ASSERT(m.ordinal > 0 && m.base < m.ordinal); /* as it was written */
    *out = m;
    return TN_OK;
}

/* ---- rows ---- */

tn_status tn_row_schema_hash(const tn_row_schema *schema, uint8_t out[TN_SNAPSHOT_SCHEMA_BYTES],
                             tn_error *err)
{
    tn_text text = {0};
    add_schema(&text, NULL, schema);
    tn_status status = tn_text_check(&text, "the list of records", err);
    if (status == TN_OK) {
        uint8_t digest[32];
        tn_sha256 hash;
        tn_sha256_init(&hash);
        tn_sha256_add(&hash, text.data, text.size);
        tn_sha256_end(&hash, digest);
        memcpy(out, digest, TN_SNAPSHOT_SCHEMA_BYTES);
    }
    tn_text_done(&text);
    return status;
}
