/* bench_candidates.c - libtnet on one core: many candidates of one user (P23).
 *
 *     bench_candidates [--json] EXPORT_DIR [ROWS] [CANDIDATES] [MS]      default 10000000 500 1
 *
 * The export's net over a dictionary of ROWS rows, spread evenly over its groups, which is made
 * beside it as EXPORT_DIR-ROWS and kept. The user has the first 20 of 39 fields, or as much of
 * another number. Every call is another user with other candidates: all of its keys are drawn
 * evenly from the whole dictionary, the worst that a cache can meet. A call is timed from
 * tnet_clear to the scores, with all that is added; in turns with the same rows, each whole.
 */
#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/file/file.h"
#include "base/math/crc32c.h"
#include "base/math/key.h"
#include "dict/dictwrite.h"
#include "figure.h"
#include "io/schema/schema.h"
#include "serve/exported_model.h"
#include "serve/tnet.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 1000, WARM = 20, VALUES = 1 << 16, FILE_MAX = 1 << 30, CANDIDATES_MAX = 1 << 16 };

/* ---- an export with a dictionary as large as wanted ---- */

typedef struct key_of_group {
    uint64_t key;
    uint16_t group;
} key_of_group;

typedef struct dictionary {
    uint64_t n;
    key_of_group *item; /* ascending */
    float value[VALUES + TN_DIM_MAX];
    tn_share_group *group;
    tn_record *record;
} dictionary;

static int ascending(const void *a, const void *b)
{
    uint64_t x = ((const key_of_group *)a)->key;
    uint64_t y = ((const key_of_group *)b)->key;
    return (x > y) - (x < y);
}

static tn_status walk(void *arg, uint32_t piece, tn_dict_visit *visit, void *visitor, tn_error *err)
{
    const dictionary *d = arg;
    (void)piece;
    for (uint64_t i = 0; i < d->n; i++) {
        const key_of_group *k = &d->item[i];
        const tn_dict_entry e = {.key = k->key,
                                 .group = k->group,
                                 .present = (uint16_t)((1U << d->record[k->group].n_segments) - 1),
                                 .values = d->value + k->key % VALUES};
        TN_TRY(visit(visitor, &e, err));
    }
    return TN_OK;
}

static tn_status fill_dictionary(dictionary *d, const tn_exported_model *b, tn_error *err)
{
    const uint32_t groups = b->schema->n_groups;
    TN_TRY(TN_ALLOC(d->item, (size_t)d->n, "keys", err));
    TN_TRY(TN_ALLOC(d->group, groups, "groups", err));
    TN_TRY(TN_ALLOC(d->record, groups, "groups", err));
    for (uint32_t g = 0; g < groups; g++) {
        d->record[g] = b->group[g].record;
        d->group[g] = b->schema->group[g];
        d->group[g].record = g;
    }
    for (uint64_t i = 0; groups > 0 && i < d->n; i++) {
        uint16_t g = (uint16_t)(i % groups);
        d->item[i] = (key_of_group){tn_key_of(i / groups, d->group[g].salt), g};
    }
    qsort(d->item, (size_t)d->n, sizeof *d->item, ascending);
    for (uint32_t i = 0; i < VALUES + TN_DIM_MAX; i++) {
        d->value[i] = (float)(tn_mix(i) % 2000) * 1e-4F - .1F;
    }
    return TN_OK;
}

static tn_status write_dictionary(dictionary *d, const tn_exported_model *b, const char *path,
                                  tn_dict_written *done, tn_error *err)
{
    const char *names[TN_SEGMENTS_MAX];
    uint32_t n = 0;
    TN_TRY(fill_dictionary(d, b, err));
    const tn_layout layout = {.n_groups = b->schema->n_groups,
                              .group = d->group,
                              .n_records = b->schema->n_groups,
                              .record = d->record};
    TN_TRY(tn_dict_segments(&layout, names, &n, err));
    tn_text json = {0};
    tn_json_open(&json, '{');
    tn_json_str(&json, "model_id", b->model_id);
    tn_json_open_key(&json, "segments", '[');
    for (uint32_t i = 0; i < n; i++) {
        tn_text_addf(&json, "%s\"%s\"", i > 0 ? "," : "", names[i]);
    }
    tn_json_close(&json, ']');
    tn_json_close(&json, '}');
    tn_dict_spec spec = {.layout = &layout,
                         .check_groups = true,
                         .json = tn_text_str(&json),
                         .partitions = TN_PARTITIONS,
                         .last = TN_PARTITIONS - 1};
    memcpy(spec.model_id, tn_dict_head(b->dict.layer[0])->model_id, sizeof spec.model_id);
    const tn_dict_source source = {.n_pieces = 1, .walk = walk, .arg = d};
    tn_status status = tn_dict_write(path, &spec, &source, done, err);
    tn_text_done(&json);
    return status;
}

typedef struct copy {
    const char *name;
    tn_text text;
} copy;

static void add_file(tn_text *t, const char *name, uint64_t bytes, uint32_t crc)
{
    char hex[16];
    (void)snprintf(hex, sizeof hex, "%08x", crc);
    tn_json_open(t, '{');
    tn_json_str(t, "name", name);
    tn_json_count(t, "bytes", bytes);
    tn_json_str(t, "crc32c", hex);
    tn_json_close(t, '}');
}

static tn_status write_index(const tn_exported_model *b, const char *to, const copy file[2],
                             const tn_dict_written *dict, tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_text t = {0};
    tn_json_open(&t, '{');
    tn_json_str(&t, "format", "tnet-export");
    tn_json_raw(&t, "version", "[1,0]");
    tn_json_str(&t, "model_id", b->model_id);
    tn_json_u64(&t, "step", b->step);
    tn_json_open_key(&t, "files", '[');
    for (uint32_t i = 0; i < 2; i++) {
        add_file(&t, file[i].name, file[i].text.size,
                 tn_crc32c(0, file[i].text.data, file[i].text.size));
    }
    add_file(&t, "dict.tnd", dict->bytes, dict->crc);
    tn_json_close(&t, ']');
    tn_json_close_with_crc(&t);
    TN_TRY(tn_path_join(to, "EXPORT.json", path, err));
    tn_status status = tn_file_replace(path, t.data, t.size, err);
    tn_text_done(&t);
    return status;
}

static tn_status make_export(const char *dir, const char *to, uint64_t rows, tn_error *err)
{
    copy file[2] = {{.name = "dense.safetensors"}, {.name = "model.json"}};
    char path[TN_PATH_SIZE];
    static dictionary d;
    tn_exported_model *b = NULL;
    tn_dict_written done;
    d.n = rows;
    TN_TRY(tn_exported_model_open(&b, dir, &(tn_exported_model_opts){0}, err));
    TN_TRY(tn_dir_make(to, err));
    for (uint32_t i = 0; i < 2; i++) {
        TN_TRY(tn_path_join(dir, file[i].name, path, err));
        TN_TRY(tn_file_read_all(path, FILE_MAX, &file[i].text, err));
        TN_TRY(tn_path_join(to, file[i].name, path, err));
        TN_TRY(tn_file_replace(path, file[i].text.data, file[i].text.size, err));
    }
    TN_TRY(tn_path_join(to, "dict.tnd", path, err));
    TN_TRY(tn_remove_file(path, err));
    TN_TRY(write_dictionary(&d, b, path, &done, err));
    TN_TRY(write_index(b, to, file, &done, err));
    for (uint32_t i = 0; i < 2; i++) {
        tn_text_done(&file[i].text);
    }
    tn_free(d.item);
    tn_free(d.group);
    tn_free(d.record);
    tn_exported_model_close(b);
    return TN_OK;
}

/* ---- calls ---- */

typedef struct measure {
    tnet_model *model;
    tnet_scorer *scorer;
    uint32_t fields, shared; /* the first of them are the user's */
    uint64_t ids;            /* of a field */
    uint32_t candidates;
    float logit[CANDIDATES_MAX], whole[CANDIDATES_MAX];
} measure;

static int add_fields(const measure *m, uint32_t from, uint32_t to, uint64_t seed, tnet_error *err)
{
    int code = TNET_OK;
    for (uint32_t i = from; i < to && code == TNET_OK; i++) {
        uint64_t x = tn_mix(seed * TN_SLOTS_MAX + i);
        code = tnet_field_is_number(m->model, (int)i)
                   ? tnet_add_number(m->scorer, (int)i, (double)(x % 100), err)
                   : tnet_add_id(m->scorer, (int)i, x % m->ids, 1, err);
    }
    return code;
}

static uint64_t seed_of(const measure *m, uint64_t call, uint32_t candidate)
{
    return call * (m->candidates + UINT64_C(1)) + candidate + 1;
}

static int score_whole(measure *m, uint64_t call, tnet_error *err)
{
    int code = TNET_OK;
    tnet_clear(m->scorer);
    for (uint32_t i = 0; i < m->candidates && code == TNET_OK; i++) {
        code = tnet_begin_row(m->scorer, err);
        code =
            code == TNET_OK ? add_fields(m, 0, m->shared, seed_of(m, call, UINT32_MAX), err) : code;
        code =
            code == TNET_OK ? add_fields(m, m->shared, m->fields, seed_of(m, call, i), err) : code;
        code = code == TNET_OK ? tnet_end_row(m->scorer, err) : code;
    }
    return code == TNET_OK ? tnet_score(m->scorer, m->whole, NULL, err) : code;
}

static int score_many(measure *m, uint64_t call, tnet_error *err)
{
    tnet_clear(m->scorer);
    int code = tnet_begin_shared(m->scorer, err);
    code = code == TNET_OK ? add_fields(m, 0, m->shared, seed_of(m, call, UINT32_MAX), err) : code;
    code = code == TNET_OK ? tnet_end_row(m->scorer, err) : code;
    for (uint32_t i = 0; i < m->candidates && code == TNET_OK; i++) {
        code = tnet_begin_row(m->scorer, err);
        code =
            code == TNET_OK ? add_fields(m, m->shared, m->fields, seed_of(m, call, i), err) : code;
        code = code == TNET_OK ? tnet_end_row(m->scorer, err) : code;
    }
    return code == TNET_OK ? tnet_score_many(m->scorer, m->logit, NULL, err) : code;
}

typedef int score_fn(measure *m, uint64_t call, tnet_error *err);

static int time_call(measure *m, score_fn *score, uint64_t call, tn_samples *ms, tnet_error *err)
{
    double begin = tn_clock_s();
    int code = score(m, call, err);
    if (call >= WARM) {
        tn_sample(ms, (tn_clock_s() - begin) * 1e3);
    }
    return code;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const measure *m, const char *what, tn_samples *ms, double target, bool json)
{
    char text[128];
    qsort(ms->x, ms->n, sizeof *ms->x, by_size);
    for (int i = 0; i < 2; i++) {
        double is = ms->x[i == 0 ? ms->n / 2 : ms->n - 1 - ms->n / 100];
        (void)snprintf(text, sizeof text, "%u candidates, %s, p%d", m->candidates, what,
                       i == 0 ? 50 : 99);
        tn_figure_print(&(tn_figure){.row = "P23",
                                     .what = text,
                                     .unit = "ms",
                                     .is = {is, ms->x[0], ms->x[ms->n - 1]},
                                     .target = i == 0 ? (double)NAN : target,
                                     .at_most = true},
                        json);
    }
}

/* The largest difference between the two ways, over the largest logit. */
static double difference(const measure *m)
{
    double most = 1e-30;
    double apart = 0;
    for (uint32_t i = 0; i < m->candidates; i++) {
        most = fmax(most, (double)fabsf(m->whole[i]));
        apart = fmax(apart, (double)fabsf(m->whole[i] - m->logit[i]));
    }
    return apart / most;
}

static int run(measure *m, double target, bool json, tnet_error *err)
{
    static tn_samples many;
    static tn_samples whole;
    double apart = 0;
    int code = TNET_OK;
    for (uint64_t call = 0; call < CALLS + WARM && code == TNET_OK; call++) {
        code = time_call(m, score_many, call, &many, err);
        if (code == TNET_OK && (call < WARM || call % 8 == 0)) {
            code = time_call(m, score_whole, call, &whole, err);
            apart = fmax(apart, difference(m));
        }
    }
    if (code == TNET_OK) {
        print(m, "tnet_score_many", &many, target, json);
        print(m, "each a whole row", &whole, (double)NAN, json);
        (void)fprintf(stderr, "logits differ by %.2g of the largest at most\n", apart);
    }
    return code;
}

static int measure_export(measure *m, const char *dir, double target, bool json, tnet_error *err)
{
    int code = tnet_open(dir, TNET_VERIFY_FULL, &m->model, err);
    code = code == TNET_OK ? tnet_scorer_new(m->model, &m->scorer, err) : code;
    if (code == TNET_OK) {
        m->fields = (uint32_t)tnet_n_fields(m->model);
        m->shared = m->fields * 20 / 39;
        m->ids /= m->fields;
        code = run(m, target, json, err);
    }
    tnet_scorer_free(m->scorer);
    tnet_close(m->model);
    return code;
}

int main(int argc, char **argv)
{
    bool json = tn_json_wanted(&argc, argv);
    const char *dir = argc > 1 ? argv[1] : NULL;
    uint64_t rows = argc > 2 ? strtoull(argv[2], NULL, 10) : 10000000;
    unsigned long candidates = argc > 3 ? strtoul(argv[3], NULL, 10) : 500;
    double target = argc > 4 ? strtod(argv[4], NULL) : 1;
    char to[TN_PATH_SIZE];
    char index[TN_PATH_SIZE];
    if (dir == NULL || rows < TN_SLOTS_MAX || candidates == 0 || candidates > CANDIDATES_MAX) {
        (void)fprintf(stderr,
                      "usage: bench_candidates [--json] EXPORT_DIR [ROWS] [CANDIDATES] [MS]\n");
        return 2;
    }
    (void)snprintf(to, sizeof to, "%.4000s-%llu", dir, (unsigned long long)rows);
    (void)snprintf(index, sizeof index, "%.4080s/EXPORT.json", to);
    tn_error why = {0};
    if (!tn_path_exists(index) && make_export(dir, to, rows, &why) != TN_OK) {
        (void)fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    tnet_error err = {0};
    static measure m;
    m.ids = rows;
    m.candidates = (uint32_t)candidates;
    int code = measure_export(&m, to, target, json, &err);
    if (code != TNET_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
    }
    return code;
}
