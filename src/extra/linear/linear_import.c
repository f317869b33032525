/* linear_import.c - a run begins with a linear or FM model of xLearn or VW (linear_text.h).
 *
 *     checkpoint.from: {xlearn: model.txt}     rows of libsvm, libffm or libfm; lr, fm, ffm
 *     checkpoint.from: {vw: model.txt}         --invert_hash; rows of vw; lr, of --lrq fm
 *
 *     line of the file         belongs to a row              as
 *     i_12: 0.5                "1 12:1"                      its weight of `wide`
 *     v_12: 0.1 -0.2           "1 12:1"                      its vector of `deep`
 *     v_12_3: 0.1 -0.2         "1 s:12:1", any field s       its vector of `deep` for field 3
 *     user^frank:2688:0.4847   "1 |user frank"               its weight of `wide`
 *     bias: .., Constant:..    every row                     the parameter `bias`
 *
 * The data's own parser reads each feature, so its key is that of the data whatever `slots` say;
 * features that no slot takes as keys are left, and counted. All else of the model begins anew:
 * other parameters, states, and where the file has no vectors those of `deep`.
 */
#include "base/core/alloc.h"
#include "base/core/log.h"
#include "base/core/number.h"
#include "base/core/text.h"
#include "base/file/file.h"
#include "config/tree.h"
#include "extra/linear/linear_text.h"
#include "io/format/format.h"
#include "io/rows/rows.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"
#include "nn/graph/params.h"
#include "ps/shard/dense.h"
#include "train/begin/begun.h"
#include "train/begin/incoming_row.h"
#include "train/begin/weight_source.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <inttypes.h>
#include <string.h>

enum { FORMATS = 3 };

typedef struct importing importing;

/* A program that prints models. */
typedef struct program {
    const char *key, *name;
    const char *format[FORMATS]; /* formats of its data; NULL: no more */
    tn_status (*read)(importing *im, tn_bytes bytes, const char *path, tn_error *err);
} program;

struct importing {
    tn_worker *w;
    const program *from;
    const tn_format *format;
    tn_incoming row;
    tn_rows *rows; /* one row of data, which has one feature */
    tn_text record;
    tn_linear_text text;
    const char *model; /* its type */
    const char *label; /* in front of a row's features */
    uint64_t line;     /* line of the feature */
    uint32_t dim;      /* dim of 'deep' in the model; 0: it has none */
    bool has_vectors;  /* the file has vectors */
    float wide;
    float *deep; /* zeros where the file has none */
    uint64_t taken, left;
    bool has_bias;
};

/* ---- a row ---- */

/* The one key of im->record, read as a row of data; NULL: no slot takes the feature as a key, or
 * none that the model has. */
static tn_status find_key(const importing *im, const tn_entry **out, tn_error *err)
{
    const tn_model_plan *plan = im->w->plan;
    const tn_bytes record = {.data = tn_text_str(&im->record), .size = im->record.size};
    const tn_record_location place = {.source = im->text.path, .line = im->line};
    *out = NULL;
    tn_rows_clear(im->rows);
    TN_TRY(tn_text_check(&im->record, "a feature", err));
    TN_TRY(im->format->parse(record, plan->schema, &place, im->rows, err));
    for (uint32_t i = 0; i < im->rows->n_entries; i++) {
        const tn_entry *e = &im->rows->entry[i];
        if (im->rows->token[i].size != TN_TOKEN_NONE && plan->slot_used[e->slot]) {
            *out = e;
        }
    }
    return TN_OK;
}

/* Adds the row of im->record with im->wide and im->deep. */
static tn_status put(importing *im, tn_error *err)
{
    const tn_entry *e = NULL;
    TN_TRY(find_key(im, &e, err));
    if (e == NULL) {
        im->left++;
        return TN_OK;
    }
    const uint32_t group = im->w->plan->slot_group[e->slot];
    TN_ASSERT(group < im->w->plan->layout->n_groups);
    const tn_record *r = tn_record_of(im->w->plan->layout, group);
    tn_incoming_begin(&im->row, group);
    for (uint32_t s = 0; s < r->n_segments; s++) {
        float *to = im->row.data + tn_incoming_place(&im->row, group, s).w;
        if (strcmp(r->segment[s].name, "wide") == 0) {
            *to = im->wide;
        } else if (im->has_vectors && strcmp(r->segment[s].name, "deep") == 0) {
            TN_ASSERT(r->segment[s].dim == im->dim);
            memcpy(to, im->deep, r->segment[s].dim * sizeof *to);
        } else {
            tn_incoming_draw(&im->row, group, s, e->key);
        }
        tn_incoming_fresh(&im->row, group, s);
    }
    const tn_row_view view = {.key = e->key,
                              .group = (uint16_t)group,
                              .present = tn_incoming_all(&im->row, group),
                              .last_seen = im->w->day,
                              .show = 1};
    im->taken++;
    return tn_incoming_put(&im->row, &view, err);
}

static tn_status take_bias(importing *im, const tn_linear_line *line, tn_error *err)
{
    float value = 0;
    const tn_param_slice *s = tn_params_find(im->w->params, "bias");
    TN_TRY(tn_linear_text_numbers(&im->text, line, &value, err));
    TN_ASSERT(s != NULL && s->rows == 1 && s->cols == 1); /* check_model */
    tn_params_weights(im->w->params)[s->at] = value;
    im->has_bias = true;
    return TN_OK;
}

/* ---- xLearn ---- */

/* A row "1 12:1", or "1 3:12:1" of a field. */
static tn_status put_index(importing *im, const uint32_t *field, uint64_t index, tn_error *err)
{
    tn_text_clear(&im->record);
    tn_text_adds(&im->record, im->label);
    if (field != NULL) {
        tn_text_addf(&im->record, "%u:", *field);
    }
    tn_text_addf(&im->record, "%" PRIu64 ":1", index);
    return put(im, err);
}

static const tn_slot_spec *slot_of_field(const tn_schema *schema, uint32_t field)
{
    const tn_columns *c = schema->columns;
    const uint32_t i = field < c->n_fields ? c->spec_of_field[field] : TN_NOWHERE;
    return i != TN_NOWHERE && schema->spec[i].slot != TN_NOWHERE ? &schema->spec[i] : NULL;
}

/* Whether no field before it has a slot of the same group. */
static bool is_first_of_group(const tn_schema *schema, uint32_t field)
{
    const tn_slot_spec *slot = slot_of_field(schema, field);
    bool first = slot != NULL;
    for (uint32_t f = 0; f < field && first; f++) {
        const tn_slot_spec *other = slot_of_field(schema, f);
        first = other == NULL || other->group != slot->group;
    }
    return first;
}

/* In xLearn a feature is one whatever its field: every group gets a row of it. In libsvm it has one
 * slot. `fields` is the first of each group, up to a TN_NOWHERE. */
static tn_status put_feature(importing *im, uint64_t index, const uint32_t *fields, tn_error *err)
{
    const tn_schema *schema = im->w->plan->schema;
    if (index < schema->index_base) {
        im->left++;
        return TN_OK;
    }
    for (uint32_t i = 0; fields[i] != TN_NOWHERE; i++) {
        TN_TRY(put_index(im, &fields[i], index, err));
    }
    return schema->columns->n_fields == 0 ? put_index(im, NULL, index, err) : TN_OK;
}

/* Returns the begin of the vector for a field, among those of all slots; their end when no slot has
 * the field. */
static uint32_t place_of(const tn_schema *schema, const tn_linear_line *line)
{
    if (line->field == TN_LINEAR_NO_FIELD) {
        return 0;
    }
    const tn_slot_spec *slot = slot_of_field(schema, line->field);
    return (slot != NULL ? slot->slot : schema->n_slots) * line->n;
}

/* An FFM has a vector of each feature for each field, others have one. */
static bool fits(const importing *im, const tn_linear_line *line)
{
    const tn_schema *schema = im->w->plan->schema;
    const bool is_ffm = strcmp(im->model, "ffm") == 0;
    if (line->field == TN_LINEAR_NO_FIELD) {
        return !is_ffm && line->n == im->dim;
    }
    return is_ffm && schema->columns->n_fields > 0 &&
           (uint64_t)line->n * schema->n_slots == im->dim;
}

/* Reads the vectors of feature `index` at `v`: one, or one for each field. */
static tn_status take_vectors(importing *im, uint64_t index, uint32_t n, tn_linear_text *v,
                              tn_error *err)
{
    const tn_schema *schema = im->w->plan->schema;
    memset(im->deep, 0, im->dim * sizeof *im->deep);
    for (uint32_t f = 0; f < n; f++) {
        tn_linear_line line = {.name = {.data = "the end", .size = 7}};
        const tn_status status = tn_linear_text_next(v, &line, err);
        if (status != TN_OK && status != TN_END) {
            return status;
        }
        const bool one = line.field == TN_LINEAR_NO_FIELD;
        if (status == TN_END || line.kind != TN_LINEAR_VECTOR || line.index != index ||
            (one ? n > 1 : line.field != f)) {
            tn_text_clear(&im->record);
            tn_text_addf(&im->record, "vector %u of feature %" PRIu64, f, index);
            return tn_linear_text_fail(v, tn_text_str(&im->record), line.name, err);
        }
        if (!fits(im, &line)) {
            return tn_fail(err, TN_E_DATA,
                           "%s:%llu: error: a vector of %u numbers %s, and 'deep' of %s has %u for "
                           "%u slots",
                           v->path, (unsigned long long)v->line, line.n,
                           one ? "alone" : "for one field", im->model, im->dim, schema->n_slots);
        }
        const uint32_t to = place_of(schema, &line);
        if (to < im->dim) {
            TN_ASSERT(line.n <= im->dim - to);
            TN_TRY(tn_linear_text_numbers(v, &line, im->deep + to, err));
        }
    }
    return TN_OK;
}

/* Counts the vectors of the first feature; 0: a linear model. */
static tn_status count_vectors(tn_linear_text v, uint32_t *out, tn_error *err)
{
    tn_linear_line line;
    tn_status status = TN_OK;
    *out = 0;
    while ((status = tn_linear_text_next(&v, &line, err)) == TN_OK &&
           line.kind == TN_LINEAR_VECTOR && line.index == 0) {
        (*out)++;
    }
    return status == TN_END ? TN_OK : status;
}

/* Finds where the weights end and the vectors begin. */
static tn_status find_vectors(tn_linear_text t, tn_linear_text *out, uint64_t *n, tn_error *err)
{
    tn_linear_line line;
    tn_status status = TN_OK;
    *n = 0;
    *out = t;
    while ((status = tn_linear_text_next(&t, &line, err)) == TN_OK &&
           line.kind == TN_LINEAR_WEIGHT) {
        if (line.index != (*n)++) {
            return tn_linear_text_fail(&t, "the next feature", line.name, err);
        }
        *out = t;
    }
    return status == TN_END ? TN_OK : status;
}

/* Reads n weights, which follow the bias, and their vectors at `v`. */
static tn_status read_features(importing *im, uint64_t n, tn_linear_text *v, const uint32_t *fields,
                               tn_error *err)
{
    tn_linear_line line;
    uint32_t vectors = 0; /* vectors of a feature */
    TN_TRY(count_vectors(*v, &vectors, err));
    im->has_vectors = vectors > 0;
    for (uint64_t i = 0; i < n; i++) {
        TN_TRY(tn_linear_text_next(&im->text, &line, err));
        TN_TRY(tn_linear_text_numbers(&im->text, &line, &im->wide, err));
        im->line = im->text.line;
        TN_TRY(take_vectors(im, i, vectors, v, err));
        TN_TRY(put_feature(im, i, fields, err));
    }
    const tn_status status = tn_linear_text_next(v, &line, err);
    return status == TN_OK ? tn_linear_text_fail(v, "the end", line.name, err)
                           : (status == TN_END ? TN_OK : status);
}

/* Warns that xLearn normalises rows by default, which its file does not say. */
static void warn_of_norm(const importing *im)
{
    if (strcmp(im->model, "fm") == 0) {
        tn_log(TN_LOG_WARN,
               "an FM of xLearn that had no --no-norm divides its pairs by the fourth power of a "
               "row's norm, which no model here does: its scores would be others");
    } else if (strcmp(im->model, "ffm") == 0 && !im->w->plan->run->data.row_norm) {
        tn_log(TN_LOG_WARN, "an FFM of xLearn that had no --no-norm needs data.row_norm=true");
    }
}

static tn_status read_xlearn(importing *im, tn_bytes bytes, const char *path, tn_error *err)
{
    const tn_schema *schema = im->w->plan->schema;
    tn_linear_line line = {.name = {.data = ""}};
    tn_linear_text v;
    uint64_t n = 0;
    uint32_t *fields = NULL;
    uint32_t used = 0;
    TN_TRY(tn_linear_text_begin(&im->text, false, bytes, path, err));
    tn_status status = tn_linear_text_next(&im->text, &line, err);
    if (status == TN_END || (status == TN_OK && line.kind != TN_LINEAR_BIAS)) {
        return tn_linear_text_fail(&im->text, "'bias: w'", line.name, err);
    }
    TN_TRY(status);
    TN_TRY(take_bias(im, &line, err));
    TN_TRY(find_vectors(im->text, &v, &n, err));
    TN_TRY(TN_ALLOC(fields, schema->columns->n_fields + 1, "fields", err));
    for (uint32_t f = 0; f < schema->columns->n_fields; f++) {
        fields[used] = f;
        used += is_first_of_group(schema, f);
    }
    fields[used] = TN_NOWHERE;
    status = read_features(im, n, &v, fields, err);
    tn_free(fields);
    if (status == TN_OK) {
        warn_of_norm(im);
    }
    return status;
}

/* ---- VW ---- */

/* Writes the row of VW's data that has the feature of a name: of user^frank "1 |user frank", of
 * page^lang^en "1 |page lang:en". */
static void write_record(const char *label, tn_bytes name, tn_text *out)
{
    const char *hat = memchr(name.data, '^', name.size);
    tn_bytes rest = name;
    tn_text_clear(out);
    tn_text_adds(out, label);
    tn_text_addc(out, '|');
    if (hat != NULL) {
        tn_text_add(out, name.data, (size_t)(hat - name.data));
        (void)tn_get(&rest, (size_t)(hat - name.data) + 1);
    }
    tn_text_addc(out, ' ');
    hat = rest.size > 0 ? memchr(rest.data, '^', rest.size) : NULL;
    float x;
    const size_t size = hat != NULL ? (size_t)(rest.data + rest.size - hat - 1) : 0;
    if (size > 0 && tn_read_f32(hat + 1, size, &x) == TN_NUM_NONE) {
        tn_text_add(out, rest.data, (size_t)(hat - rest.data));
        tn_text_addc(out, ':');
        tn_text_add(out, hat + 1, size);
    } else {
        tn_text_add(out, rest.data, rest.size);
    }
}

static bool is_named(const tn_linear_line *line)
{
    static const char lrq[] = "lrq^"; /* begins names of a vector's numbers */
    const size_t size = strlen(lrq);
    return line->name.size > 0 &&
           (line->name.size < size || memcmp(line->name.data, lrq, size) != 0);
}

static tn_status read_vw(importing *im, tn_bytes bytes, const char *path, tn_error *err)
{
    tn_linear_line line;
    tn_status status = TN_OK;
    uint64_t base = 0; /* index of the feature of im->record */
    TN_TRY(tn_linear_text_begin(&im->text, true, bytes, path, err));
    im->has_vectors = im->text.width > 0;
    const tn_linear_line any = {.field = TN_LINEAR_NO_FIELD, .n = im->text.width};
    if (im->has_vectors && !fits(im, &any)) {
        return tn_fail(err, TN_E_DATA,
                       "%s:%llu: error: --lrq of %u numbers, and 'deep' of %s has %u", path,
                       (unsigned long long)im->text.width_line, im->text.width, im->model, im->dim);
    }
    while ((status = tn_linear_text_next(&im->text, &line, err)) == TN_OK) {
        if (line.kind == TN_LINEAR_BIAS) {
            TN_TRY(take_bias(im, &line, err));
        } else if (!is_named(&line) && im->record.size > 0 && line.index > base &&
                   line.index - base <= im->text.width) { /* right after its feature */
            TN_TRY(tn_linear_text_numbers(&im->text, &line, im->deep + line.index - base - 1, err));
        } else if (!is_named(&line)) {
            im->left++;
        } else {
            TN_TRY(im->record.size > 0 ? put(im, err) : TN_OK);
            memset(im->deep, 0, im->text.width * sizeof *im->deep);
            TN_TRY(tn_linear_text_numbers(&im->text, &line, &im->wide, err));
            write_record(im->label, line.name, &im->record);
            im->line = im->text.line;
            base = line.index;
        }
    }
    if (status == TN_END && im->record.size == 0) {
        return tn_fail(err, TN_E_DATA,
                       "'%s' has no weight with a name\nhint: 'vw -t -i MODEL -d DATA "
                       "--invert_hash FILE' names those of the features in DATA",
                       path);
    }
    return status == TN_END ? put(im, err) : status;
}

/* ---- a file ---- */

/* One weight in 'wide' of every slot, and vectors of one width, if any. */
static tn_status check_model(importing *im, tn_error *err)
{
    const tn_model_plan *plan = im->w->plan;
    const tn_param_slice *bias = tn_params_find(im->w->params, "bias");
    bool good = bias != NULL && bias->rows == 1 && bias->cols == 1;
    im->dim = 0;
    for (uint32_t i = 0; i < plan->schema->n_slots; i++) {
        const tn_record *r =
            plan->slot_used[i] ? tn_record_of(plan->layout, plan->slot_group[i]) : NULL;
        bool has_wide = r == NULL;
        for (uint32_t s = 0; r != NULL && s < r->n_segments; s++) {
            const tn_segment *t = &r->segment[s];
            const bool deep = strcmp(t->name, "deep") == 0;
            has_wide = has_wide || (strcmp(t->name, "wide") == 0 && t->dim == 1);
            good = good && (!deep || im->dim == 0 || im->dim == t->dim);
            im->dim = deep ? t->dim : im->dim;
        }
        good = good && has_wide;
    }
    return good ? TN_OK
                : tn_fail(err, TN_E_CONFIG,
                          "a model of %s becomes one with a parameter 'bias', a weight 'wide' per "
                          "key, and vectors 'deep' of one width, as lr, fm and ffm are",
                          im->from->name);
}

static void tell(const importing *im, const char *path, tn_begun *begun)
{
    const tn_params *params = im->w->params;
    TN_ASSERT(im->dim > 0 || !im->has_vectors);
    if (begun == NULL) {
        return;
    }
    tn_begun_add(begun, "rows", "wide", TN_BEGUN_TAKEN, "%" PRIu64 " weights; states new",
                 im->taken);
    if (im->dim > 0) {
        tn_begun_add(begun, "rows", "deep", im->has_vectors ? TN_BEGUN_TAKEN : TN_BEGUN_NEW,
                     im->has_vectors ? "vectors; states new" : "no vectors in the file");
    }
    if (im->left > 0) {
        tn_begun_add(begun, "rows", "others", TN_BEGUN_LEFT,
                     "%" PRIu64 " weights without a name, or of a feature that no slot takes",
                     im->left);
    }
    for (uint32_t i = 0; i < tn_params_count(params); i++) {
        const tn_param_slice *s = tn_params_get(params, i);
        const bool given = im->has_bias && strcmp(s->name, "bias") == 0;
        tn_begun_add(begun, "parameter", s->name, given ? TN_BEGUN_TAKEN : TN_BEGUN_NEW, "[%u, %u]",
                     s->rows, s->cols);
    }
    tn_text_addf(&begun->from, "%s's '%s'", im->from->name, path);
}

static tn_status read_file(importing *im, const char *path, tn_error *err)
{
    tn_map map = {0};
    TN_TRY(tn_map_file(&map, path, err));
    const tn_bytes bytes = {.data = map.data, .size = map.size};
    tn_status status = check_model(im, err);
    if (status == TN_OK) {
        status = TN_ALLOC(im->deep, im->dim + 1, "a vector", err);
    }
    if (status == TN_OK) {
        status = tn_rows_new(&im->rows, im->w->plan->schema, TN_ROWS_SIGNS, err);
    }
    if (status == TN_OK) {
        status = tn_incoming_open(&im->row, im->w, err);
    }
    if (status == TN_OK) {
        status = im->from->read(im, bytes, path, err);
    }
    if (status == TN_OK) {
        tn_worker_keep_own(im->w);
        tn_dense_reset(im->w->shard.dense);
    }
    tn_incoming_done(&im->row);
    tn_rows_free(im->rows);
    tn_free(im->deep);
    tn_text_done(&im->record);
    tn_unmap(&map);
    return status;
}

static const program xlearn = {"xlearn", "xLearn", {"libsvm", "libffm", "libfm"}, read_xlearn};
static const program vw = {"vw", "VW", {"vw", NULL, NULL}, read_vw};

static tn_status take(const program *p, const tn_tree *from, tn_worker *w, tn_begun *begun,
                      tn_error *err)
{
    const tn_tree *path = tn_tree_get(from, p->key);
    const tn_schema *schema = w->plan->schema;
    bool reads = false;
    for (uint32_t i = 0; i < FORMATS; i++) {
        reads = reads || (p->format[i] != NULL && strcmp(p->format[i], schema->data->format) == 0);
    }
    if (tn_tree_count(from) != 1 || path->kind != TN_TREE_SCALAR || path->text[0] == '\0') {
        return tn_fail(err, TN_E_CONFIG, "checkpoint.from.%s is not {%s: FILE} alone", p->key,
                       p->key);
    }
    if (!reads) {
        return tn_fail(err, TN_E_CONFIG,
                       "checkpoint.from.%s finds the features of %s's data, %s, and data.format is "
                       "%s",
                       p->key, p->name, p->format[0], schema->data->format);
    }
    if (!tn_path_exists(path->text) || tn_path_is_dir(path->text)) {
        return tn_fail(err, TN_E_CKPT, "checkpoint.from.%s: there is no file '%s'", p->key,
                       path->text);
    }
    importing im = {.w = w,
                    .from = p,
                    .format = tn_format_find(schema->data->format),
                    .model = w->plan->run->model.choice->name,
                    .label = schema->label->none ? "" : "1 "};
    TN_ASSERT(im.format != NULL);
    TN_TRY(read_file(&im, path->text, err));
    tell(&im, path->text, begun);
    return TN_OK;
}

static tn_status take_xlearn(const tn_tree *from, tn_worker *w, tn_begun *begun, tn_error *err)
{
    return take(&xlearn, from, w, begun, err);
}

static tn_status take_vw(const tn_tree *from, tn_worker *w, tn_begun *begun, tn_error *err)
{
    return take(&vw, from, w, begun, err);
}

extern const tn_weight_source tn_weight_source_xlearn;
const tn_weight_source tn_weight_source_xlearn = {"xlearn", "FILE", take_xlearn};
extern const tn_weight_source tn_weight_source_vw;
const tn_weight_source tn_weight_source_vw = {"vw", "FILE", take_vw};
