/* grouprun.c - see grouprun.h. */
#include "train/grouprun.h"

#include "base/math/crc32c.h"
#include "config/diag.h"
#include "io/schema/dataopts.h"
#include "io/write/write_sink.h"
#include "nn/graph/params.h"
#include "support/test.h"
#include "train/checkpoint/checkpoint.h"
#include "train/config/run.h"
#include "train/export/exportrows.h"
#include "train/golden.h"
#include "train/group/ranks.h"
#include "train/model_hash.h"
#include "train/report/report.h"
#include "train/run/trainer.h"
#include "train/step/model_plan.h"
#include "train/step/watch.h"

#include <pthread.h>

CLOSER(tn_worker_free);

#define ROWS "test/golden/data/rows.tsv"
#define ID "00000000000000000000000000000000"
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

enum { OVERRIDES_MAX = 32 };

typedef struct seat {
    grouprun *g;
    uint32_t rank;
    tn_membership membership;
} seat;

static void note_line(void *arg, const char *text, bool transient)
{
    (void)text;
    (void)transient;
    grouprun *g = arg;
    atomic_store(&g->shown, true);
}

static const tn_model_plan *plan_of(const seat *s, tn_arena *arena)
{
    const grouprun *g = s->g;
    const char **overrides = TN_NEW_ARRAY(arena, const char *, OVERRIDES_MAX);
    char *where = TN_NEW_ARRAY(arena, char, TN_PATH_SIZE);
    uint32_t n = 0;
    (void)snprintf(where, TN_PATH_SIZE, "run.dir=%s", g->dir);
    overrides[n++] = where;
    overrides[n++] = "log.progress=false";
    overrides[n++] = "train.threads=1";
    const char *const whole[] = {g->packed, NULL};
    const char *const *lists[] = {g->more, g->own[s->rank], g->whole ? whole : NULL};
    for (uint32_t k = 0; k < sizeof lists / sizeof lists[0]; k++) {
        for (const char *const *o = lists[k]; o != NULL && *o != NULL; o++) {
            assert_true(n + 1 < OVERRIDES_MAX);
            overrides[n++] = *o;
        }
    }
    return golden_plan_at(arena, g->config, overrides, g->n > 1 ? &s->membership : NULL);
}

static void *run(void *arg)
{
    seat *s = arg;
    grouprun *g = s->g;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    tn_binder b = {.arena = arena, .diag = &diag};
    const tn_run_text text = {.config = "test\n", .hash = HASH};
    const tn_watch watch = {.show = s->rank == 0 ? note_line : NULL,
                            .arg = g,
                            .told_elsewhere = &g->elsewhere[s->rank],
                            .stop = g->stops[s->rank] ? &g->shown : NULL};
    tn_error err = {0};
    tn_outcome out;
    g->status[s->rank] = tn_train(plan_of(s, arena), &text, &watch, &b, &out, &err);
    (void)snprintf(g->text[s->rank], GROUP_TEXT, "%s", err.text);
    g->steps[s->rank] = out.steps;
    g->rows[s->rank] = out.samples;
    if (s->rank == 0) {
        g->samples = out.samples;
        const tn_metrics *valid = out.valid.metrics;
        g->valid_auc = valid != NULL ? tn_metrics_get(valid, "auc") : (double)NAN;
        g->valid_logloss = valid != NULL ? tn_metrics_get(valid, "logloss") : (double)NAN;
        g->valid_rows = valid != NULL ? tn_metrics_rows(valid) : 0;
    }
    tn_outcome_done(&out);
    return NULL;
}

static tn_status count_row(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    grouprun *g = arg;
    g->counts = tn_crc32c(g->counts, &row->key, sizeof row->key);
    g->counts = tn_crc32c(g->counts, &row->show, sizeof row->show);
    g->counts = tn_crc32c(g->counts, &row->click, sizeof row->click);
    g->first_day = row->last_seen < g->first_day ? row->last_seen : g->first_day;
    g->last_day = row->last_seen > g->last_day ? row->last_seen : g->last_day;
    return TN_OK;
}

static void count(grouprun *g, const tn_worker *w)
{
    g->counts = 0;
    g->first_day = UINT32_MAX;
    g->last_day = 0;
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        assert_int_equal(tn_table_walk(w->shard.table, p, count_row, g, NULL), TN_OK);
    }
}

/* The newest checkpoint in one process; NULL: it does not load. */
static tn_worker *load(const grouprun *g, const tn_binder *b)
{
    tn_worker *w = NULL;
    tn_saved which;
    tn_error err = {0};
    const seat alone = {
        .g = &(grouprun){.config = g->config, .dir = g->dir, .more = g->more, .n = 1}};
    const tn_model_plan *plan = plan_of(&alone, b->arena);
    if (tn_worker_new(&w, plan, &(tn_worker_opts){.training = true}, b, &err) == TN_OK &&
        tn_checkpoint_load(g->dir, w, &which, &err) == TN_OK) {
        return w;
    }
    tn_worker_free(w);
    return NULL;
}

static void hash(grouprun *g)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    tn_diag diag = {0};
    const tn_binder b = {.arena = arena, .diag = &diag};
    tn_worker *w FREED(tn_worker_free) = load(g, &b);
    g->hash = g->counts = 0;
    if (w == NULL || model_hash(w, &g->hash, NULL) != TN_OK) {
        g->hash = 0;
    } else {
        count(g, w);
    }
}

static void save_dense(const tn_worker *w, const char *path, tn_arena *arena)
{
    const uint32_t n = tn_params_count(w->params);
    tn_tensor *t = TN_NEW_ARRAY(arena, tn_tensor, n);
    for (uint32_t i = 0; i < n; i++) {
        const tn_param_slice *s = tn_params_get(w->params, i);
        t[i] = (tn_tensor){.name = s->name,
                           .dtype = "F32",
                           .rank = 2,
                           .shape = {s->rows, s->cols},
                           .data = (const char *)(tn_params_weights(w->params) + s->at),
                           .size = (size_t)s->rows * s->cols * sizeof(float)};
    }
    const tn_safetensors doc = {.n_tensors = n, .tensor = t};
    tn_file *f = NULL;
    assert_int_equal(tn_file_create(&f, path, NULL), TN_OK);
    assert_int_equal(tn_safetensors_write(f, &doc, NULL), TN_OK);
    assert_int_equal(tn_file_commit(f, NULL), TN_OK);
}

/* From one word to the next, appended. */
static void cut(const tn_text *from, const char *begin, const char *end, tn_text *to)
{
    const char *at = strstr(tn_text_str(from), begin);
    assert_non_null(at);
    const char *behind = strstr(at, end);
    assert_non_null(behind);
    tn_text_add(to, at, (size_t)(behind - at));
}

static void read_summary(grouprun *g)
{
    static const char reassigned[] = "\"parts_reassigned\":";
    char path[TN_PATH_SIZE];
    tn_text all CLEANUP(tn_text_done) = {0};
    tn_text some CLEANUP(tn_text_done) = {0};
    g->summary[0] = '\0';
    g->reassigned = 0;
    assert_int_equal(tn_path_join(g->dir, "summary.json", path, NULL), TN_OK);
    if (tn_file_read_all(path, 1 << 20, &all, NULL) == TN_OK) {
        cut(&all, "\"data\":", reassigned, &some);
        cut(&all, "\"sparse_rows\":", ",", &some);
        assert_in_range(some.size, 1, GROUP_TEXT - 1);
        memcpy(g->summary, tn_text_str(&some), some.size + 1);
        const char *at = strstr(tn_text_str(&all), reassigned) + strlen(reassigned);
        g->reassigned = strtoull(at, NULL, 10);
    }
}

void grouprun_files(const grouprun *g, const char *rows, const char *dense)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    tn_diag diag = {0};
    const tn_binder b = {.arena = arena, .diag = &diag};
    tn_export_done done;
    tn_worker *w FREED(tn_worker_free) = load(g, &b);
    assert_non_null(w);
    const tn_export_rows dump = {.plan = w->plan, .table = w->shard.table, .model_id = ID};
    tn_status status = TN_E_CONFIG; /* src/extra/dump is not built */
    for (const tn_export_file *const *f = tn_all_export_files; *f != NULL; f++) {
        if (strcmp((*f)->word, "tsv") == 0) {
            status = (*f)->of_table(&dump, rows, &done, NULL);
        }
    }
    assert_int_equal(status, TN_OK);
    save_dense(w, dense, arena);
}

/* Sets g->packed: data.train with a compressed copy of each file, which is one part for any number
 * of ranks. */
static void pack(grouprun *g, tn_arena *arena)
{
    const seat alone = {
        .g = &(grouprun){.config = g->config, .dir = g->dir, .more = g->more, .n = 1}};
    const tn_strs *train = &plan_of(&alone, arena)->run->data.train;
    tn_text packed CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_dir_make(g->dir, NULL), TN_OK);
    tn_text_adds(&packed, "data.train=[");
    for (uint32_t i = 0; i < train->n; i++) {
        tn_text rows CLEANUP(tn_text_done) = {0};
        tn_sink *sink = NULL;
        char path[TN_PATH_SIZE];
        (void)snprintf(path, sizeof path, "%s/whole-%u.gz", g->dir, i);
        assert_int_equal(tn_file_read_all(train->item[i], 1 << 20, &rows, NULL), TN_OK);
        assert_int_equal(tn_sink_open(&sink, path, NULL, TN_COMPRESSION_GZIP, NULL), TN_OK);
        assert_int_equal(tn_sink_add(sink, rows.data, rows.size, NULL), TN_OK);
        assert_int_equal(tn_sink_commit(sink, NULL), TN_OK);
        tn_text_addf(&packed, "%s%s", i > 0 ? "," : "", path);
    }
    tn_text_adds(&packed, "]");
    char *copy = TN_NEW_ARRAY(arena, char, packed.size + 1);
    memcpy(copy, tn_text_str(&packed), packed.size + 1);
    g->packed = copy;
}

void grouprun_do(grouprun *g)
{
    if (g->n > 1 && tn_group_built() == &tn_group_none) {
        skip(); /* this build has no cluster */
    }
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    if (g->whole) {
        pack(g, arena);
    }
    seat seats[GROUP_MAX];
    pthread_t thread[GROUP_MAX];
    char at[GROUP_MAX][TN_ENDPOINT_SIZE];
    const char *address[GROUP_MAX];
    const char *host[GROUP_MAX] = {NULL};
    const char *fast = g->fast != NULL ? g->fast : "4";
    const char *silence = g->silence != NULL ? g->silence : "1";
    assert_int_equal(setenv("TNET_FAST", fast, 1), 0);       // NOLINT(concurrency-mt-unsafe)
    assert_int_equal(setenv("TNET_SILENCE", silence, 1), 0); // NOLINT(concurrency-mt-unsafe)
    for (uint32_t r = 0; r < g->n; r++) {
        (void)snprintf(at[r], sizeof at[r], "ipc://%s/sockets/%u.sock", g->dir, r);
        address[r] = r == 0 && g->root != NULL ? g->root : at[r];
    }
    for (uint32_t r = 0; r < g->n; r++) {
        seats[r] = (seat){.g = g,
                          .rank = r,
                          .membership = {.rank = r,
                                         .size = g->n,
                                         .job = 9,
                                         .address = address,
                                         .host = host,
                                         .bind = g->bind[r] != NULL ? g->bind[r] : at[r],
                                         .how = "test"}};
        assert_int_equal(pthread_create(&thread[r], NULL, run, &seats[r]), 0);
    }
    for (uint32_t r = 0; r < g->n; r++) {
        assert_int_equal(pthread_join(thread[r], NULL), 0);
    }
    hash(g);
    read_summary(g);
}

void grouprun_well(grouprun *g)
{
    grouprun_do(g);
    for (uint32_t r = 0; r < g->n; r++) {
        fail_if(g->status[r] != TN_OK, "rank %u of %u: %s", r, g->n, g->text[r]);
        assert_int_equal(g->steps[r], g->steps[0]);
    }
}

void grouprun_deal(const char *to, uint32_t n, uint32_t block)
{
    tn_text rows CLEANUP(tn_text_done) = {0};
    tn_text part[GROUP_MAX] = {{0}};
    assert_int_equal(tn_file_read_all(ROWS, 1 << 20, &rows, NULL), TN_OK);
    assert_int_equal(tn_file_replace(to, rows.data, rows.size, NULL), TN_OK);
    uint32_t line = 0;
    for (const char *at = tn_text_str(&rows); *at != '\0'; line++) {
        const char *end = strchr(at, '\n') + 1;
        for (uint32_t r = 0; r < n; r++) {
            if (line == 0 || (line - 1) / block % n == r) {
                tn_text_add(&part[r], at, (size_t)(end - at));
            }
        }
        at = end;
    }
    for (uint32_t r = 0; r < n; r++) {
        char path[TN_PATH_SIZE];
        (void)snprintf(path, sizeof path, "%s-%u", to, r);
        assert_int_equal(tn_file_replace(path, part[r].data, part[r].size, NULL), TN_OK);
        tn_text_done(&part[r]);
    }
}
