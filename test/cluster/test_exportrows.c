/* test_exportrows.c - rows written by any number of threads and of ranks are the same bytes. */
#include "cluster/train/follower.h"
#include "support/test.h"
#include "train/checkpoint/checkpoint.h"
#include "train/export/exportrows.h"
#include "train/exportkit.h"
#include "train/step/watch.h"

#include <pthread.h>

static void read_file(const char *dir, const char *name, tn_text *out)
{
    char path[TN_PATH_SIZE];
    assert_int_equal(tn_path_join(dir, name, path, NULL), TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 26, out, NULL), TN_OK);
}

/* Rows as a dictionary and as text, and what changed since the model before. */
TEST(any_number_of_threads_writes_the_same_export)
{
    static const char *const overrides[] = {"train.epochs=2", "checkpoint.every=1epoch",
                                            "checkpoint.keep=9", "export.dict=[tnd, tsv]", NULL};
    static const char *const files[] = {"dict.tnd", "dict.tsv"};
    tn_text first[2][2] = {{{0}}};
    OPEN(exportkit, k, "{type: widedeep, hidden: [16, 8]}", overrides);
    exportkit_train(&k);
    for (uint32_t threads = 1; threads <= 4; threads++) {
        char to[300];
        tn_exported out[2] = {{.model_id = ""}};
        (void)snprintf(to, sizeof to, "%s/to-%u", k.dir, threads);
        k.run.train.threads = threads;
        for (uint32_t i = 0; i < 2; i++) {
            char run[300];
            (void)snprintf(run, sizeof run, "%s/run/ckpt-%u", k.dir, i + 1);
            tn_export_request request = {.checkpoint = run, .to = to, .binder = &k.binder};
            request.delta_from = i > 0 ? out[0].model_id : NULL;
            assert_int_equal(tn_export(k.plan, &request, &out[i], NULL), TN_OK);
            for (uint32_t n = 0; n < 2; n++) {
                tn_text bytes CLEANUP(tn_text_done) = {0};
                tn_text *want = &first[i][n];
                read_file(out[i].path, files[n], threads == 1 ? want : &bytes);
                if (threads > 1) {
                    assert_int_equal(bytes.size, want->size);
                    assert_memory_equal(bytes.data, want->data, want->size);
                }
            }
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        tn_text_done(&first[i][0]);
        tn_text_done(&first[i][1]);
    }
}

enum { RANKS_MAX = 4, TEXT = 1500 };

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const tn_run_text text = {.config = "kit\n", .hash = HASH};

/* ---- ranks, each on a thread ---- */

typedef struct group {
    const exportkit *kit;
    uint32_t n;
    const char *to;
    const char *const *overrides;
    const char *delta_from;
    tn_exported out;
    tn_status status[RANKS_MAX];
    char why[RANKS_MAX][TEXT];
} group;

typedef struct seat {
    group *g;
    tn_membership membership;
    atomic_bool *stop;
} seat;

static tn_status export_on(const seat *s, tn_binder *b, tn_error *err)
{
    group *g = s->g;
    const tn_model_plan *plan = exportkit_plan_of(g->kit, g->overrides, &s->membership, b);
    if (s->membership.rank > 0) {
        const tn_watch watch = {.stop = s->stop};
        return tn_follower_serve(plan, &text, &watch, NULL, b, err);
    }
    PATH_IN(run, g->kit->dir, "run");
    const tn_export_request request = {.checkpoint = run,
                                       .to = g->to,
                                       .delta_from = g->delta_from,
                                       .binder = b,
                                       .text = &text,
                                       .stop = s->stop};
    return tn_export(plan, &request, &g->out, err);
}

static void *work(void *arg)
{
    seat *s = arg;
    const uint32_t rank = s->membership.rank;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    tn_binder b = {.arena = arena, .diag = &diag};
    tn_error err = {0};
    s->g->status[rank] = export_on(s, &b, &err);
    (void)snprintf(s->g->why[rank], TEXT, "%s", err.text);
    return NULL;
}

/* stops[r], if not NULL, asks rank r to stop. */
static void export_by(group *g, atomic_bool *const *stops)
{
    seat seats[RANKS_MAX];
    pthread_t thread[RANKS_MAX];
    char at[RANKS_MAX][TN_ENDPOINT_SIZE];
    const char *address[RANKS_MAX];
    const char *host[RANKS_MAX] = {NULL};
    assert_int_equal(setenv("TNET_FAST", "20", 1), 0);   // NOLINT(concurrency-mt-unsafe)
    assert_int_equal(setenv("TNET_SILENCE", "1", 1), 0); // NOLINT(concurrency-mt-unsafe)
    for (uint32_t r = 0; r < g->n; r++) {
        (void)snprintf(at[r], sizeof at[r], "ipc://%s/sockets/%u.sock", g->kit->dir, r);
        address[r] = at[r];
    }
    for (uint32_t r = 0; r < g->n; r++) {
        seats[r] = (seat){.g = g,
                          .membership = {.rank = r,
                                         .size = g->n,
                                         .job = 9,
                                         .address = address,
                                         .host = host,
                                         .bind = at[r],
                                         .how = "test"},
                          .stop = stops != NULL ? stops[r] : NULL};
        assert_int_equal(pthread_create(&thread[r], NULL, work, &seats[r]), 0);
    }
    for (uint32_t r = 0; r < g->n; r++) {
        assert_int_equal(pthread_join(thread[r], NULL), 0);
    }
}

static void assert_well(const group *g)
{
    for (uint32_t r = 0; r < g->n; r++) {
        fail_if(g->status[r] != TN_OK, "rank %u of %u: %s", r, g->n, g->why[r]);
    }
}

/* ---- what came of it ---- */

static void assert_same_folder(const char *a, const char *b)
{
    tn_text names[2] = {{0}, {0}};
    uint32_t n[2];
    assert_int_equal(tn_dir_list(a, &names[0], &n[0], NULL), TN_OK);
    assert_int_equal(tn_dir_list(b, &names[1], &n[1], NULL), TN_OK);
    assert_int_equal(n[0], n[1]);
    assert_int_equal(names[0].size, names[1].size);
    assert_memory_equal(names[0].data, names[1].data, names[0].size);
    const char *name = tn_text_str(&names[0]);
    for (uint32_t i = 0; i < n[0]; i++, name += strlen(name) + 1) {
        tn_text file[2] = {{0}, {0}};
        char path[TN_PATH_SIZE];
        assert_int_equal(tn_path_join(a, name, path, NULL), TN_OK);
        assert_int_equal(tn_file_read_all(path, 1 << 26, &file[0], NULL), TN_OK);
        assert_int_equal(tn_path_join(b, name, path, NULL), TN_OK);
        assert_int_equal(tn_file_read_all(path, 1 << 26, &file[1], NULL), TN_OK);
        fail_if(file[0].size != file[1].size ||
                    memcmp(file[0].data, file[1].data, file[0].size) != 0,
                "'%s' differs", name);
        tn_text_done(&file[0]);
        tn_text_done(&file[1]);
    }
    tn_text_done(&names[0]);
    tn_text_done(&names[1]);
}

static uint32_t n_in(const char *folder)
{
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(folder, &names, &n, NULL), TN_OK);
    return n;
}

static tn_exported export_alone(const exportkit *k, const char *const *overrides, const char *to,
                                const char *delta_from)
{
    tn_exported out;
    tn_error err = {0};
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    tn_binder b = {.arena = tn_arena_new(1 << 16), .diag = &diag};
    PATH_IN(run, k->dir, "run");
    const tn_export_request request = {
        .checkpoint = run, .to = to, .delta_from = delta_from, .binder = &b};
    assert_ok(tn_export(exportkit_plan_of(k, overrides, NULL, &b), &request, &out, &err), err.text);
    tn_arena_free(b.arena);
    return out;
}

TEST(any_number_of_ranks_exports_the_same_bytes)
{
    static const char *const all[] = {"export.dict=[tnd, tsv]", "export.state=true", NULL};
    static const char *const few[] = {"export.dict=[tnd, tsv]", "export.min_score=2",
                                      "export.values=bf16", NULL};
    static const char *const *const overrides[] = {all, few};
    OPEN(exportkit, k, "{type: widedeep, hidden: [16, 8]}", NULL);
    exportkit_train(&k);
    for (uint32_t i = 0; i < 2; i++) {
        char to[300];
        (void)snprintf(to, sizeof to, "%s/alone-%u", k.dir, i);
        const tn_exported alone = export_alone(&k, overrides[i], to, NULL);
        assert_true(alone.rows > 20);
        for (uint32_t n = 2; n <= RANKS_MAX; n++) {
            (void)snprintf(to, sizeof to, "%s/by-%u-%u", k.dir, n, i);
            group g = {.kit = &k, .n = n, .to = to, .overrides = overrides[i]};
            export_by(&g, NULL);
            assert_well(&g);
            assert_int_equal(g.out.rows, alone.rows);
            assert_int_equal(g.out.bytes, alone.bytes);
            assert_false(g.out.existed);
            assert_same_folder(alone.path, g.out.path);
            assert_int_equal(n_in(to), 1);
            export_by(&g, NULL);
            assert_well(&g);
            assert_true(g.out.existed);
        }
    }
}

/* What changed between two models. */
TEST(so_it_does_with_what_changed)
{
    static const char *const once[] = {"train.epochs=1", NULL};
    static const char *const more[] = {"train.epochs=2", NULL};
    char to[2][300];
    exportkit k CLEANUP(exportkit_close);
    exportkit_open(&k,
                   "{type: deepfm, hidden: [16], "
                   "slots: {deep: [user, item, hist, tags, top, gone, age, count, amount]}}",
                   once);
    exportkit_train(&k);
    tn_exported base[2];
    for (uint32_t i = 0; i < 2; i++) {
        (void)snprintf(to[i], sizeof to[i], "%s/to-%u", k.dir, i);
        base[i] = export_alone(&k, once, to[i], NULL);
    }
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    tn_binder b = {.arena = tn_arena_new(1 << 16), .diag = &diag};
    k.plan = exportkit_plan_of(&k, more, NULL, &b);
    exportkit_train(&k);
    const tn_exported alone = export_alone(&k, more, to[0], base[0].model_id);
    group g = {.kit = &k, .n = 3, .to = to[1], .overrides = more, .delta_from = base[1].model_id};
    export_by(&g, NULL);
    assert_well(&g);
    assert_string_not_equal(alone.model_id, base[0].model_id);
    assert_same_folder(alone.path, g.out.path);
    tn_arena_free(b.arena);
}

TEST(whoever_is_stopped_nothing_is_left_behind)
{
    OPEN(exportkit, k, "{type: lr}", NULL);
    exportkit_train(&k);
    PATH_IN(to, k.dir, "to");
    for (uint32_t who = 0; who < 2; who++) {
        atomic_bool stop = true;
        atomic_bool *stops[RANKS_MAX] = {NULL};
        /* Who is stopped may be gone, at these timers, before another one looks for it. */
        const char *const overrides[] = {"cluster.start_timeout=2s", NULL};
        group g = {.kit = &k, .n = 3, .to = to, .overrides = overrides};
        stops[who] = &stop;
        export_by(&g, stops);
        for (uint32_t r = 0; r < 3; r++) {
            assert_int_not_equal(g.status[r], TN_OK);
        }
        assert_int_equal(g.status[who], TN_E_STOPPED);
    }
    assert_true(!tn_path_exists(to) || n_in(to) == 0);
}

/* ---- the files between them ---- */

typedef struct files {
    exportkit kit;
    tn_worker *w;
    tn_export_rows rows;
    tn_export_parts parts;
    uint32_t from[3];
    tn_owners owners;
    char folder[300];
} files;

static void open_files(files *f)
{
    tn_saved which;
    tn_error err = {0};
    exportkit_open(&f->kit, "{type: lr}", NULL);
    exportkit_train(&f->kit);
    PATH_IN(run, f->kit.dir, "run");
    (void)snprintf(f->folder, sizeof f->folder, "%s/parts", f->kit.dir);
    const tn_worker_opts opts = {.compares = true};
    fail_if(tn_dir_make(f->folder, &err) != TN_OK ||
                tn_worker_new(&f->w, f->kit.plan, &opts, &f->kit.binder, &err) != TN_OK ||
                tn_checkpoint_load(run, f->w, &which, &err) != TN_OK ||
                tn_export_parts_init(&f->parts, f->w, 12, f->folder, f->kit.arena, &err) != TN_OK,
            "%s", err.text);
    f->from[1] = 700;
    f->from[2] = TN_PARTITIONS;
    f->owners = (tn_owners){2, TN_PARTITIONS, f->from};
    f->parts.owners = &f->owners;
    f->rows = (tn_export_rows){.plan = f->kit.plan, .table = f->w->shard.table};
}

static void close_files(files *f)
{
    tn_worker_free(f->w);
    exportkit_close(&f->kit);
}

typedef struct counted {
    uint64_t rows;
    double show;
    uint64_t last;
} counted;

static tn_status count(void *arg, const tn_row_view *row, tn_error *err)
{
    counted *c = arg;
    (void)err;
    assert_true(c->rows == 0 || row->key > c->last);
    c->last = row->key;
    c->rows++;
    c->show += row->show;
    return TN_OK;
}

TEST(rows_of_another_rank_come_in_order)
{
    files f = {0};
    open_files(&f);
    f.parts.rank = 1;
    assert_true(tn_export_part_is_other(&f.parts, 699));
    assert_false(tn_export_part_is_other(&f.parts, 700));
    assert_int_equal(tn_export_part_write(&f.parts, &f.rows, NULL), TN_OK);
    f.parts.rank = 0;
    counted table = {0};
    counted file = {0};
    for (uint32_t p = 700; p < TN_PARTITIONS; p++) {
        assert_true(tn_export_part_is_other(&f.parts, p));
        assert_int_equal(tn_table_walk(f.w->shard.table, p, count, &table, NULL), TN_OK);
        assert_int_equal(tn_export_part_walk(&f.parts, p, count, &file, NULL), TN_OK);
    }
    assert_true(table.rows > 5 && table.rows == file.rows && table.show == file.show);
    assert_int_equal(n_in(f.folder), 1);
    assert_int_equal(tn_export_parts_remove(&f.parts, NULL), TN_OK);
    assert_int_equal(n_in(f.folder), 0);
    close_files(&f);
}

TEST(what_is_missing_stopped_or_of_another_model_is_none)
{
    files f = {0};
    counted c = {0};
    tn_error err = {0};
    open_files(&f);
    assert_int_equal(tn_export_part_walk(&f.parts, 900, count, &c, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "rows-1.tns"));
    f.parts.rank = 1;
    assert_int_equal(tn_export_part_write(&f.parts, &f.rows, NULL), TN_OK);
    f.parts.rank = 0;
    f.parts.head.step++;
    assert_int_equal(tn_export_part_walk(&f.parts, 900, count, &c, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "holds rows of another model"));
    atomic_bool stop = true;
    f.rows.stop = &stop;
    assert_int_equal(tn_remove_tree(f.folder, NULL), TN_OK);
    assert_int_equal(tn_dir_make(f.folder, NULL), TN_OK);
    assert_int_equal(tn_export_part_write(&f.parts, &f.rows, &err), TN_E_STOPPED);
    assert_int_equal(n_in(f.folder), 0);
    f.parts.folder = "/nowhere/at/all";
    assert_int_equal(tn_export_part_write(&f.parts, &f.rows, NULL), TN_E_IO);
    close_files(&f);
}
