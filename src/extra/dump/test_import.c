/* test_import.c - a model back from a dump and named weights: every bit, or a list of misfits. */
#include "train/begin/import.h"

#include "config/tree.h"
#include "nn/graph/params.h"
#include "support/test.h"

#include "base/file/safetensors.h"
#include "io/read/reader.h"
#include "train/checkpoint/checkpoint.h"
#include "train/export/exportrows.h"
#include "train/exportkit.h"
#include "train/step/model_plan.h"
#include "train/step/step_prefetch.h"

extern const tn_export_file tn_export_file_tsv;

CLOSER(tn_worker_free);

static const char *const state_too[] = {"export.dict=[tnd, tsv]", "export.state=true",
                                        "train.epochs=2", NULL};
static const char *const no_state[] = {"export.dict=[tnd, tsv]", NULL};
static const char *const models[] = {"{type: lr}", "{type: widedeep, hidden: [8]}"};

static tn_tree *from_tree(exportkit *k, const char *rows, const char *dense)
{
    const tn_origin at = {.source = "test"};
    tn_tree *map = tn_tree_new(k->arena, TN_TREE_MAP, at);
    if (rows != NULL) {
        tn_tree_put(k->arena, map, "rows", tn_tree_scalar(k->arena, rows, at));
    }
    if (dense != NULL) {
        tn_tree_put(k->arena, map, "dense", tn_tree_scalar(k->arena, dense, at));
    }
    return map;
}

static tn_worker *new_worker(exportkit *k)
{
    tn_error err = {0};
    tn_worker *w = NULL;
    if (tn_worker_new(&w, k->plan, &(tn_worker_opts){.training = true}, &k->binder, &err) !=
        TN_OK) {
        fail_msg("%s", err.text);
    }
    return w;
}

static tn_worker *trained_worker(exportkit *k)
{
    tn_error err = {0};
    tn_worker *w = new_worker(k);
    tn_saved which;
    PATH_IN(path, k->dir, "run");
    assert_ok(tn_checkpoint_load(path, w, &which, &err), err.text);
    return w;
}

/* The table as text, states included; the caller frees it. */
static tn_text dump_of(exportkit *k, tn_worker *w)
{
    static const char id[] = "00000000000000000000000000000000";
    tn_error err = {0};
    tn_export_done done;
    tn_text text = {0};
    const tn_export_rows rows = {.plan = k->plan, .table = w->shard.table, .model_id = id};
    PATH_IN(path, k->dir, "dump.tsv");
    fail_if(tn_export_file_tsv.of_table(&rows, path, &done, &err) != TN_OK ||
                tn_file_read_all(path, 1 << 26, &text, &err) != TN_OK ||
                tn_remove_file(path, &err) != TN_OK,
            "%s", err.text);
    return text;
}

/* All parameters by name, as `dense:` wants them. */
static void save_dense(exportkit *k, tn_worker *w, const char *path)
{
    uint32_t n = tn_params_count(w->params);
    tn_tensor *t = TN_NEW_ARRAY(k->arena, tn_tensor, n);
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

/* A step on the first batch of the training data. */
static void learn(exportkit *k, tn_worker *w)
{
    tn_error err = {0};
    tn_step_prefetch *feeder = NULL;
    tn_step *step = NULL;
    tn_learned learned;
    tn_reader_opts opts = {
        .paths = k->run.data.train, .batch_rows = 50, .training = true, .seed = 7, .prefetch = 1};
    tn_step_prefetch_opts feeding = {
        .plan = k->plan, .team = w->team, .ahead = 1, .training = true};
    fail_if(tn_step_prefetch_open(&feeder, &feeding, &opts, &err) != TN_OK ||
                tn_step_prefetch_next(feeder, &step, &err) != TN_OK ||
                tn_step_learn(w, step, 1, &learned, &err) != TN_OK,
            "%s", err.text);
    tn_step_prefetch_recycle(feeder, step);
    tn_step_prefetch_close(feeder);
}

static void same_text(const tn_text *a, const tn_text *b)
{
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->data, b->data, a->size);
}

/* K1, K2: FTRL that resumes from w alone; text with 6 digits. Here rows and states come back
 * exactly, and the next step is the same one. */
TEST(k2_rows_with_states_come_back_bit_for_bit)
{
    static const char *const rules[] = {
        "train.sparse={type: adagrad, lr: 0.1, rowwise: true}",
        "train.sparse={type: adam, lr: 0.1}",
        "train.sparse={wide: {type: ftrl, alpha: 0.1, l1: 0.1}, deep: {type: adagrad}}",
    };
    for (uint32_t i = 0; i < 3; i++) {
        const char *const overrides[] = {state_too[0], state_too[1], state_too[2], rules[i], NULL};
        char rows[TN_PATH_SIZE];
        tn_error err = {0};
        OPEN(exportkit, k, models[1], overrides);
        exportkit_train(&k);
        tn_exported out = exportkit_export(&k);
        assert_int_equal(tn_path_join(out.path, "dict.tsv", rows, &err), TN_OK);
        PATH_IN(dense, k.dir, "dense.safetensors");
        tn_worker *was FREED(tn_worker_free) = trained_worker(&k);
        tn_worker *now FREED(tn_worker_free) = new_worker(&k);
        save_dense(&k, was, dense);
        assert_ok(tn_import(from_tree(&k, rows, dense), now, NULL, &err), err.text);
        assert_memory_equal(tn_params_weights(was->params), tn_params_weights(now->params),
                            tn_params_size(was->params) * sizeof(float));
        tn_text a = dump_of(&k, was);
        tn_text b = dump_of(&k, now);
        same_text(&a, &b);
        tn_text_done(&a);
        tn_text_done(&b);
        now->steps = was->steps;
        now->day = was->day;
        learn(&k, was);
        learn(&k, now);
        a = dump_of(&k, was);
        b = dump_of(&k, now);
        same_text(&a, &b);
        tn_text_done(&a);
        tn_text_done(&b);
    }
}

/* One of three peers. */
static tn_worker *new_peer(exportkit *k, uint32_t rank)
{
    tn_error err = {0};
    tn_worker *w = NULL;
    tn_run *run = TN_NEW(k->arena, tn_run);
    const tn_model_plan *plan = NULL;
    *run = k->run;
    run->cluster.rank = rank;
    run->cluster.size = 3;
    if (tn_model_plan_new(&plan, run, &k->binder, &err) != TN_OK ||
        tn_worker_new(&w, plan, &(tn_worker_opts){.training = true}, &k->binder, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
    return w;
}

static tn_status add_row(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    tn_text_add_u64le(arg, row->key);
    tn_text_add(arg, (const char *)row->data, row->n_floats * sizeof *row->data);
    return TN_OK;
}

/* The rows of partitions `from` .. `to` - 1. */
static tn_text rows_of(tn_worker *w, uint32_t from, uint32_t to)
{
    tn_text text = {0};
    for (uint32_t p = from; p < to; p++) {
        assert_int_equal(tn_table_walk(w->shard.table, p, add_row, &text, NULL), TN_OK);
    }
    return text;
}

TEST(each_peer_takes_what_it_owns)
{
    const char *const overrides[] = {state_too[0], state_too[1], state_too[2], NULL};
    char rows[TN_PATH_SIZE];
    OPEN(exportkit, k, models[1], overrides);
    exportkit_train(&k);
    tn_exported out = exportkit_export(&k);
    assert_int_equal(tn_path_join(out.path, "dict.tsv", rows, NULL), TN_OK);
    PATH_IN(dense, k.dir, "dense.safetensors");
    tn_worker *was FREED(tn_worker_free) = trained_worker(&k);
    save_dense(&k, was, dense);
    for (uint32_t rank = 0; rank < 3; rank++) {
        tn_worker *w FREED(tn_worker_free) = new_peer(&k, rank);
        const uint32_t *own = w->shares->owners.from + rank;
        const size_t *cut = w->shares->dense + rank;
        assert_int_equal(tn_import(from_tree(&k, rows, dense), w, NULL, NULL), TN_OK);
        tn_text a CLEANUP(tn_text_done) = rows_of(was, own[0], own[1]);
        tn_text b CLEANUP(tn_text_done) = rows_of(w, 0, TN_PARTITIONS);
        assert_true(b.size > 0);
        same_text(&a, &b);
        assert_memory_equal(w->own, tn_params_weights(was->params) + cut[0],
                            (cut[1] - cut[0]) * sizeof(float));
    }
}

/* Weights alone: they are there, states are those of fresh weights (FTRL: its warm start). */
TEST(without_states_a_rule_starts_fresh)
{
    static const char ftrl[] = "train.sparse={type: ftrl, alpha: 0.1, l1: 0}";
    const char *const overrides[] = {no_state[0], ftrl, NULL};
    char rows[TN_PATH_SIZE];
    tn_error err = {0};
    OPEN(exportkit, k, models[0], overrides);
    exportkit_train(&k);
    tn_exported out = exportkit_export(&k);
    assert_int_equal(tn_path_join(out.path, "dict.tsv", rows, &err), TN_OK);
    tn_worker *was FREED(tn_worker_free) = trained_worker(&k);
    tn_worker *now FREED(tn_worker_free) = new_worker(&k);
    assert_ok(tn_import(from_tree(&k, rows, NULL), now, NULL, &err), err.text);
    tn_text a CLEANUP(tn_text_done) = dump_of(&k, was); /* without states */
    tn_text b CLEANUP(tn_text_done) = dump_of(&k, now);
    same_text(&a, &b);
    k.run.export.state = true;
    tn_text c CLEANUP(tn_text_done) = dump_of(&k, now);
    assert_non_null(strstr(tn_text_str(&c), "\twide.z"));
    assert_true(c.size > b.size);
}

static void put_file(const char *path, const char *text)
{
    assert_int_equal(tn_file_replace(path, text, strlen(text), NULL), TN_OK);
}

/* K3: a dense file without names lets a renamed layer permute weights; dims are believed. */
TEST(k3_misfits_are_listed_by_name)
{
#define HEAD                                                                                       \
    "#tnet-dump 1\n#model_id 000102030405060708090a0b0c0d0e0f\n#columns\tgroup\tsign\tshow\t"      \
    "click\tlast_seen"
    static const struct {
        const char *text, *says[3];
    } wrong[] = {
        {HEAD "\twide\n", {"no column 'deep'", NULL, NULL}},
        {HEAD "\twide\tdeep\tdeepest\n", {"nothing takes column 'deepest'", NULL, NULL}},
        {HEAD "\tdeep\twide.x\n", {"no column 'wide'", "nothing takes column 'wide.x'", NULL}},
        {HEAD "\twide\twide.m\tdeep\n", {"no column 'wide.v'", "no column 'wide.t'", NULL}},
        {HEAD "\twide\tdeep\nnobody\t1\t0\t0\t0\t1\t1 2 3 4\n", {":4:", "no group 'nobody'", NULL}},
        {HEAD "\twide\tdeep\nuser\t1\t0\t0\t0\t1\t1 2 3\n", {":4:", "another number", "deep"}},
        {HEAD "\twide\tdeep\nuser\t1\t0\t0\t0\t1 1\t1 2 3 4\n", {":4:", "another number", "wide"}},
    };
    static const char *const overrides[] = {"train.sparse={type: adam, lr: 0.1}", NULL};
    OPEN(exportkit, k, models[1], overrides);
    tn_worker *w FREED(tn_worker_free) = new_worker(&k);
    PATH_IN(path, k.dir, "wrong.tsv");
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tn_error err = {0};
        put_file(path, wrong[i].text);
        assert_int_equal(tn_import(from_tree(&k, path, NULL), w, NULL, &err), TN_E_CKPT);
        for (uint32_t s = 0; s < 3 && wrong[i].says[s] != NULL; s++) {
            fail_if(strstr(err.text, wrong[i].says[s]) == NULL, "%u: '%s' is not in '%s'", i,
                    wrong[i].says[s], err.text);
        }
    }
}

TEST(k3_dense_weights_are_taken_by_name)
{
    static const char *const wider[] = {"model={type: widedeep, hidden: [9, 8]}", NULL};
    exportkit k[2];
    char path[300];
    tn_error err = {0};
    exportkit_open(&k[0], models[1], NULL);
    exportkit_open(&k[1], models[1], wider);
    tn_worker *one FREED(tn_worker_free) = new_worker(&k[0]);
    tn_worker *two FREED(tn_worker_free) = new_worker(&k[1]);
    (void)snprintf(path, sizeof path, "%s/w.safetensors", k[0].dir);
    save_dense(&k[0], one, path);
    assert_int_equal(tn_import(from_tree(&k[1], NULL, path), two, NULL, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, "no tensor 'deep.3.W'"));
    assert_non_null(strstr(err.text, "another type or shape of 'deep.1.W'"));
    assert_int_equal(tn_import(from_tree(&k[0], NULL, path), one, NULL, &err), TN_OK);
    tn_tree *wrong = from_tree(&k[0], NULL, path);
    tn_tree_put(k[0].arena, wrong, "density",
                tn_tree_scalar(k[0].arena, "x", (tn_origin){.source = "test"}));
    assert_int_equal(tn_import(wrong, one, NULL, &err), TN_E_CONFIG);
    exportkit_close(&k[0]);
    exportkit_close(&k[1]);
}
