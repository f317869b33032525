/* test_tensornet.c - checkpoints that TensorNet wrote (test/golden/tensornet): predictions, rows,
 * the way back, and files that are wrong. */
#include "extra/tensornet/tensornet_import.h"

#include "base/math/key.h"
#include "config/diag.h"
#include "config/tree.h"
#include "extra/tensornet/tensornet.h"
#include "extra/tensornet/tensornet_export.h"
#include "extra/tensornet/tensornet_files.h"
#include "extra/tensornet/tensornet_guess.h"
#include "io/schema/dataopts.h"
#include "io/write/write_sink.h"
#include "nn/graph/params.h"
#include "ps/table/table.h"
#include "support/test.h"
#include "train/begin/begun.h"
#include "train/config/run.h"
#include "train/eval/evaluate.h"
#include "train/golden.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#define MAP "checkpoint.from.tensornet.map"
#define LAYERS(rule, more)                                                                         \
    MAP ".sparse=[{layer: linear_input, segment: linear_input, optimizer: " rule more              \
        "}, {layer: deep_input, segment: deep_input, optimizer: " rule more "}]"

/* The example with target_columns: show and click follow each slot's vector. */
#define CVM_INPUTS                                                                                 \
    "model.inputs={linear_input: {embed: all, dim: 1}, deep_input: {embed: all}, cvm: {cvm: all, " \
    "form: tensornet}}"
#define OF_SLOT(from, name, width, i, at)                                                          \
    "{name: " name #i ", slice: " from ", first: " #at ", cols: " #width "}, "
#define COLUMNS(from, name, width, b, c, d)                                                        \
    OF_SLOT(from, name, width, 1, 0)                                                               \
    OF_SLOT(from, name, width, 2, b)                                                               \
    OF_SLOT(from, name, width, 3, c) OF_SLOT(from, name, width, 4, d)
#define CVM_LAYERS                                                                                 \
    "model.layers=[" COLUMNS("deep_input", "d", 4, 4, 8, 12)                                       \
        COLUMNS("linear_input", "w", 1, 1, 2, 3)                                                   \
            COLUMNS("cvm", "c", 2, 2, 4, 6) "{name: x, concat: [d1, c1, d2, c2, d3, c3, "          \
                                            "d4, c4]}, {name: dnn_0, dense: x, units: 8, "         \
                                            "activation: relu}, {name: dnn_1, dense: "             \
                                            "dnn_0, units: 4, activation: relu}, {name: "          \
                                            "z, concat: [dnn_1, w1, c1, w2, c2, w3, c3, "          \
                                            "w4, c4]}, {name: tn_batch_normalization, "            \
                                            "batch_norm: z}, {name: pred, dense: "                 \
                                            "tn_batch_normalization, units: 1}]"
#define CVM_DENSE                                                                                  \
    MAP ".dense=[{name: 'dnn_0/bias:0', shape: [8], to: dnn_0.b}, {name: 'dnn_0/kernel:0', "       \
        "shape: [24, 8], to: dnn_0.W}, {name: 'dnn_1/bias:0', shape: [4], to: dnn_1.b}, {name: "   \
        "'dnn_1/kernel:0', shape: [8, 4], to: dnn_1.W}, {name: 'pred/bias:0', shape: [1], to: "    \
        "pred.b}, {name: 'pred/kernel:0', shape: [16, 1], to: pred.W}, {name: "                    \
        "'tn_batch_normalization/beta:0', shape: [16], to: tn_batch_normalization.beta}, {name: "  \
        "'tn_batch_normalization/gamma:0', shape: [16], to: tn_batch_normalization.gamma}]"

static const char no_norm[] =
    "model.layers=[{name: dnn_0, dense: deep_input, units: 8, activation: relu}, {name: dnn_1, "
    "dense: dnn_0, units: 4, activation: relu}, {name: z, concat: [dnn_1, linear_input]}, {name: "
    "pred, dense: z, units: 1}]";
static const char dense_without_norm[] =
    MAP ".dense=[{name: 'dnn_0/bias:0', shape: [8], to: dnn_0.b}, {name: 'dnn_0/kernel:0', shape: "
        "[16, 8], to: dnn_0.W}, {name: 'dnn_1/bias:0', shape: [4], to: dnn_1.b}, {name: "
        "'dnn_1/kernel:0', shape: [8, 4], to: dnn_1.W}, {name: 'pred/bias:0', shape: [1], to: "
        "pred.b}, {name: 'pred/kernel:0', shape: [8, 1], to: pred.W}]";

typedef struct fixture {
    const char *name;
    tn_tensornet_rule rule;
    bool cvm;
    const char *overrides[8];
} fixture;

static const fixture fixtures[] = {
    {"adagrad_r1", TN_TENSORNET_ADAGRAD, false, {NULL}},
    {"sum_adagrad_r2", TN_TENSORNET_ADAGRAD, false, {"embedding.pool=sum", NULL}},
    {"adam_r1",
     TN_TENSORNET_ADAM,
     false,
     {LAYERS("adam", ""), "train.sparse={type: adam, bias: none, lr: 0.01}", NULL}},
    {"ftrl_r1",
     TN_TENSORNET_FTRL,
     false,
     {LAYERS("ftrl", ""), "train.sparse={type: ftrl, alpha: 0.2, l1: 0.1, l2: 1}",
      "embedding.pool=sum", no_norm, dense_without_norm, MAP ".bn=[]", NULL}},
    {"adagrad_cvm_r1",
     TN_TENSORNET_ADAGRAD,
     true,
     {LAYERS("adagrad", ", cvm: true"), CVM_INPUTS, CVM_LAYERS, CVM_DENSE, NULL}},
    {"adagrad_cvm_r2",
     TN_TENSORNET_ADAGRAD,
     true,
     {LAYERS("adagrad", ", cvm: true"), CVM_INPUTS, CVM_LAYERS, CVM_DENSE, NULL}},
};

enum { FIXTURES = sizeof fixtures / sizeof *fixtures, DAY = 18392 /* 2020-05-10 */ };

typedef struct trial {
    tn_arena *arena;
    const tn_model_plan *plan;
    tn_worker *w;
    tn_begun begun;
} trial;

/* An untrained model of configs/tensornet.yaml. */
static void set_up(trial *t, const char *const *overrides)
{
    tn_diag diag = {0};
    tn_error err = {0};
    *t = (trial){.arena = tn_arena_new(1 << 18)};
    t->plan = golden_plan_at(t->arena, "../../configs/tensornet", overrides, NULL);
    const tn_binder b = {.arena = t->arena, .diag = &diag};
    if (tn_worker_new(&t->w, t->plan, &(tn_worker_opts){.training = true}, &b, &err) != TN_OK) {
        fail_msg("%s %s", err.text, tn_text_str(&diag.text));
    }
}

static void tear_down(trial *t)
{
    tn_begun_done(&t->begun);
    tn_worker_free(t->w);
    tn_arena_free(t->arena);
}

static tn_status take(trial *t, const char *dir, tn_error *err)
{
    const tn_tree *from = t->plan->run->checkpoint.from;
    tn_tree *mine = tn_tree_copy(t->arena, from);
    for (tn_tree *words = mine->first; words != NULL; words = words->next) {
        tn_tree_put(t->arena, words, "dir",
                    tn_tree_scalar(t->arena, dir, (tn_origin){.source = "test"}));
    }
    return tn_tensornet_import(mine, t->w, &t->begun, err);
}

static void must_take(trial *t, const char *dir)
{
    tn_error err = {0};
    assert_ok(take(t, dir, &err), err.text);
}

TMPDIR_UNPACKED(cases, "tensornet/cases");

/* The two that examples read are no part of the archive. */
static void dir_of(const char *name, const char *mode, char out[300])
{
    (void)snprintf(out, 300, "test/golden/tensornet/%s/%s", name, mode);
    if (!tn_path_is_dir(out)) {
        (void)snprintf(out, 300, "%s/%s/%s", cases, name, mode);
    }
}

/* ---- predictions ---- */

typedef struct comparison {
    golden_table want;
    uint32_t row;
    double worst;
} comparison;

static tn_status compare_scores(void *arg, const tn_scores *scores, tn_error *err)
{
    comparison *c = arg;
    (void)err;
    for (uint32_t i = 0; i < scores->batch->rows; i++, c->row++) {
        const char *id = golden_field(&c->want, c->row, "uniq_id");
        const tn_batch *batch = scores->batch;
        assert_memory_equal(batch->id_text + batch->id_offset[i], id, strlen(id));
        const double pctr = 1 / (1 + exp(-(double)scores->logit[i]));
        c->worst = fmax(c->worst, fabs(pctr - golden_number(&c->want, c->row, "pctr")));
    }
    return TN_OK;
}

/* The largest difference from the predictions in that file of a case. */
static double compare(trial *t, const char *name, const char *file)
{
    char folder[300];
    (void)snprintf(folder, sizeof folder, "%s/%s", cases, name);
    golden_case c = {.arena = t->arena, .folder = folder};
    comparison cmp = {.want = golden_read(&c, file)};
    const tn_eval_request request = {.paths = &t->plan->run->data.test,
                                     .want_ids = true,
                                     .sink = compare_scores,
                                     .sink_arg = &cmp};
    tn_evaluation result;
    tn_error err = {0};
    assert_ok(tn_evaluate(t->w, &request, &result, &err), err.text);
    tn_evaluation_done(&result);
    assert_int_equal(cmp.row, 200);
    return cmp.worst;
}

TEST(predictions_are_those_of_tensornet)
{
    for (uint32_t i = 0; i < FIXTURES; i++) {
        for (uint32_t text = 0; text < 2; text++) {
            trial t CLEANUP(tear_down);
            char dir[300];
            set_up(&t, fixtures[i].overrides);
            dir_of(fixtures[i].name, text ? "txt" : "bin", dir);
            must_take(&t, dir);
            const double off = compare(&t, fixtures[i].name, "pred.files.tsv");
            print_message("    %-16s %s off by at most %.2g\n", fixtures[i].name,
                          text ? "txt" : "bin", off);
            assert_true(off <= (text ? 1e-5 : 1e-6));
            /* One rank: the files hold all there is. With CVM a show in memory was not decayed yet.
             */
            if (strstr(fixtures[i].name, "_r1") != NULL && (text || !fixtures[i].cvm)) {
                assert_true(compare(&t, fixtures[i].name,
                                    text ? "pred.loaded.tsv" : "pred.live.tsv") <= 2e-6);
            }
        }
    }
}

/* ---- rows ---- */

typedef struct seen {
    const trial *t;
    uint64_t n, shown, clicked, idle[3];
} seen;

static tn_status see_row(void *arg, const tn_row_view *row, tn_error *err)
{
    seen *s = arg;
    (void)err;
    s->n++;
    s->shown += row->show > 0;
    s->clicked += row->click > 0;
    assert_true(row->last_seen <= DAY);
    if (DAY - row->last_seen <= 4) {
        s->idle[(DAY - row->last_seen) / 2]++;
    }
    return TN_OK;
}

static tn_status add_row(void *arg, const tn_row_view *row, tn_error *err)
{
    (void)err;
    tn_text_add_u64le(arg, row->key);
    tn_text_add_u32le(arg, row->last_seen);
    tn_text_add(arg, &row->show, sizeof row->show);
    tn_text_add(arg, &row->click, sizeof row->click);
    tn_text_add(arg, row->data, row->n_floats * sizeof *row->data);
    return TN_OK;
}

static void walk(const tn_worker *w, tn_row_visit *visit, void *arg)
{
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        assert_int_equal(tn_table_walk(w->shard.table, p, visit, arg, NULL), TN_OK);
    }
}

TEST(rows_of_all_fixtures_are_there)
{
    for (uint32_t i = 0; i < FIXTURES; i++) {
        for (uint32_t text = 0; text < 2; text++) {
            trial t CLEANUP(tear_down);
            char dir[300];
            seen s = {.t = &t};
            set_up(&t, fixtures[i].overrides);
            dir_of(fixtures[i].name, text ? "txt" : "bin", dir);
            must_take(&t, dir);
            walk(t.w, see_row, &s);
            const bool adagrad = fixtures[i].rule == TN_TENSORNET_ADAGRAD;
            assert_int_equal(s.n, 56);
            assert_int_equal(s.shown, adagrad ? 56 : 0);
            assert_int_equal(s.clicked > 40, fixtures[i].cvm);
            /* Days a row was not shown: 2 after the last fit, and more of what that did not see. */
            assert_int_equal(s.idle[adagrad ? 1 : 0] > 0, true);
            assert_int_equal(t.w->day, DAY);
            assert_int_equal(t.begun.count[TN_BEGUN_LEFT], 0);
            assert_non_null(strstr(tn_text_str(&t.begun.table), "56 rows become 'deep_input'"));
            assert_null(strstr(tn_text_str(&t.begun.table), "states new"));
        }
    }
}

/* A row's own figures, as they lie in the file. */
TEST(states_come_along)
{
    trial t CLEANUP(tear_down);
    char dir[300];
    char path[TN_PATH_SIZE];
    tn_tensornet_dir d;
    tn_text bytes CLEANUP(tn_text_done) = {0};
    tn_tensornet_rows rows CLEANUP(tn_tensornet_rows_done) = {0};
    const tn_tensornet_shape shape = {TN_TENSORNET_ADAGRAD, 4, false};
    const tn_tensornet_place at_3 = {"deep_input", 0, 3};
    set_up(&t, fixtures[0].overrides);
    dir_of("adagrad_r1", "bin", dir);
    must_take(&t, dir);
    assert_int_equal(tn_tensornet_dir_open(&d, dir, NULL), TN_OK);
    assert_int_equal(tn_tensornet_block(&d, &at_3, path, &bytes, NULL), TN_OK);
    const tn_bytes in = {.data = bytes.data, .size = bytes.size};
    assert_int_equal(tn_tensornet_rows_read(&rows, &shape, in, path, NULL), TN_OK);
    assert_true(rows.n > 1);
    for (uint64_t i = 0; i < rows.n; i++) {
        const tn_tensornet_row row = tn_tensornet_row_at(&rows, i);
        tn_text all CLEANUP(tn_text_done) = {0};
        walk(t.w, add_row, &all);
        const uint64_t key = tn_key_of(row.sign, t.plan->layout->group[0].salt);
        const char *at = memmem(all.data, all.size, &key, sizeof key);
        const tn_place_in_row p = tn_table_place(t.w->shard.table, 0, 1);
        double show = 0;
        uint32_t last_seen = 0;
        assert_non_null(at);
        memcpy(&last_seen, at + 8, sizeof last_seen);
        memcpy(&show, at + 12, sizeof show);
        assert_int_equal(last_seen, DAY - row.idle);
        /* The file's is decayed up to its day, the row's to the day it was last seen. */
        assert_true((float)(show * pow(0.98, row.idle)) == row.values[5]);
        assert_memory_equal(at + 28 + 4 * (size_t)p.w, row.values, 4 * sizeof(float));
        assert_memory_equal(at + 28 + 4 * (size_t)p.state[0], row.values + 4, sizeof(float));
    }
}

TEST(a_rule_of_other_states_begins_anew)
{
    static const char *const overrides[] = {"train.sparse={type: adagrad, rowwise: false}", NULL};
    trial t CLEANUP(tear_down);
    char dir[300];
    set_up(&t, overrides);
    dir_of("adagrad_r1", "bin", dir);
    must_take(&t, dir);
    assert_non_null(strstr(tn_text_str(&t.begun.table), "'deep_input' of 'all'; states new"));
    assert_true(compare(&t, "adagrad_r1", "pred.files.tsv") <= 1e-6);
}

TEST(run_day_is_the_users)
{
    static const char *const overrides[] = {"run.day=2020-06-01", NULL};
    trial t CLEANUP(tear_down);
    char dir[300];
    seen s = {0};
    set_up(&t, overrides);
    dir_of("adagrad_r1", "txt", dir);
    must_take(&t, dir);
    walk(t.w, see_row, &s); /* rows have the day of the checkpoint */
    assert_int_equal(t.w->day, DAY + 22);
}

/* ---- and back ---- */

static void export_to(trial *t, const char *dir, uint32_t ranks, bool text)
{
    const tn_tree *map = tn_tree_at(t->plan->run->checkpoint.from, "tensornet.map");
    const tn_tensornet_export_opts opts = {.map = map, .dir = dir, .ranks = ranks, .text = text};
    tn_tensornet_exported out;
    tn_error err = {0};
    assert_ok(tn_tensornet_export(t->w, &opts, &out, &err), err.text);
    assert_int_equal(out.rows, 2 * 56);
    assert_non_null(strstr(out.path, "/2020-05-10"));
}

static void same_model(const trial *a, const trial *b)
{
    tn_text x = {0};
    tn_text y = {0};
    walk(a->w, add_row, &x);
    walk(b->w, add_row, &y);
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.data, y.data, x.size);
    tn_text_done(&x);
    tn_text_done(&y);
    for (uint32_t i = 0; i < tn_params_count(a->w->params); i++) {
        const tn_param_slice *s = tn_params_get(a->w->params, i);
        for (size_t k = 0; k < (size_t)s->rows * s->cols; k++) {
            const float p = tn_params_weights(a->w->params)[s->at + k];
            const float q = tn_params_weights(b->w->params)[s->at + k];
            if (s->state) { /* sums in between */
                assert_true(fabsf(p - q) <= 1e-5F * fmaxf(1e-2F, fabsf(p)));
            } else {
                assert_memory_equal(&p, &q, sizeof p);
            }
        }
    }
}

/* The rows of a block of two checkpoints are the same, bit for bit. */
static void same_block(const fixture *f, const char *a, const char *b, const tn_tensornet_place *at)
{
    const char *const dirs[] = {a, b};
    const tn_tensornet_shape shape = {f->rule, strcmp(at->layer, "deep_input") == 0 ? 4 : 1,
                                      f->cvm};
    tn_tensornet_rows rows[2] = {0};
    const uint32_t width = tn_tensornet_width(&shape);
    for (uint32_t i = 0; i < 2; i++) {
        tn_tensornet_dir d;
        tn_text bytes CLEANUP(tn_text_done) = {0};
        char path[TN_PATH_SIZE];
        assert_int_equal(tn_tensornet_dir_open(&d, dirs[i], NULL), TN_OK);
        assert_int_equal(tn_tensornet_block(&d, at, path, &bytes, NULL), TN_OK);
        const tn_bytes in = {.data = bytes.data, .size = bytes.size};
        assert_int_equal(tn_tensornet_rows_read(&rows[i], &shape, in, path, NULL), TN_OK);
    }
    assert_int_equal(rows[0].n, rows[1].n);
    for (uint64_t i = 0; i < rows[0].n; i++) {
        const tn_tensornet_row p = tn_tensornet_row_at(&rows[0], i);
        const tn_tensornet_row q = tn_tensornet_row_at(&rows[1], i);
        assert_true(p.sign == q.sign && p.idle == q.idle);
        assert_memory_equal(p.values, q.values, width * sizeof(float));
    }
    tn_tensornet_rows_done(&rows[0]);
    tn_tensornet_rows_done(&rows[1]);
}

TEST(what_is_exported_comes_back)
{
    for (uint32_t i = 0; i < FIXTURES; i++) {
        const uint32_t ranks = strstr(fixtures[i].name, "_r2") != NULL ? 2 : 1;
        trial t CLEANUP(tear_down);
        char dir[300];
        char out[2][300];
        TMPDIR(tmp);
        set_up(&t, fixtures[i].overrides);
        dir_of(fixtures[i].name, "bin", dir);
        must_take(&t, dir);
        for (uint32_t text = 0; text < 2; text++) {
            trial again CLEANUP(tear_down);
            (void)snprintf(out[text], sizeof out[text], "%s/out%u", tmp, text);
            export_to(&t, out[text], text ? 3 : ranks, text);
            set_up(&again, fixtures[i].overrides);
            must_take(&again, out[text]);
            same_model(&t, &again);
        }
        for (uint32_t at = 0; at < ranks * TN_TENSORNET_BLOCKS; at++) {
            const tn_tensornet_place deep = {"deep_input", at / 8, at % 8};
            const tn_tensornet_place linear = {"linear_input", at / 8, at % 8};
            same_block(&fixtures[i], dir, out[0], &deep);
            same_block(&fixtures[i], dir, out[0], &linear);
        }
    }
}

TEST(an_export_replaces_nothing)
{
    trial t;
    char dir[300];
    tn_tensornet_exported out;
    tn_error err = {0};
    TMPDIR(tmp);
    set_up(&t, NULL);
    const tn_tree *map = tn_tree_at(t.plan->run->checkpoint.from, "tensornet.map");
    tn_tensornet_export_opts opts = {.map = map, .dir = tmp, .ranks = 1};
    assert_int_equal(tn_tensornet_export(t.w, &opts, &out, &err), TN_E_USAGE);
    assert_non_null(strstr(err.text, "the model has no day"));
    opts.dt = "../elsewhere";
    assert_int_equal(tn_tensornet_export(t.w, &opts, &out, &err), TN_E_USAGE);
    dir_of("adagrad_r1", "bin", dir);
    must_take(&t, dir);
    opts.dt = "day-1";
    assert_int_equal(tn_tensornet_export(t.w, &opts, &out, &err), TN_OK);
    assert_int_equal(tn_tensornet_export(t.w, &opts, &out, &err), TN_E_USAGE);
    assert_non_null(strstr(err.text, "exists; --dt names another day"));
    tear_down(&t);
    set_up(&t, (const char *const[]){"train.sparse={type: adam}", NULL});
    opts.dt = "day-2";
    opts.map = tn_tree_at(t.plan->run->checkpoint.from, "tensornet.map");
    assert_int_equal(tn_tensornet_export(t.w, &opts, &out, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "layer 'linear_input'"));
    tn_text names = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(tmp, &names, &n, &err), TN_OK);
    assert_int_equal(n, 2); /* _checkpoint and day-1: nothing half done */
    tn_text_done(&names);
    tear_down(&t);
}

/* ---- a map ---- */

TEST(the_printed_map_is_that_of_the_configuration)
{
    trial t CLEANUP(tear_down);
    char dir[300];
    tn_text map CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    TMPDIR(tmp);
    PATH_IN(file, tmp, "map.yaml");
    dir_of("adagrad_r1", "bin", dir);
    assert_ok(tn_tensornet_guess(dir, &map, &err), err.text);
    assert_int_equal(tn_file_replace(file, map.data, map.size, &err), TN_OK);
    set_up(&t, NULL);
    tn_tree *from = tn_tree_copy(t.arena, t.plan->run->checkpoint.from);
    const tn_origin at = {.source = "test"};
    tn_tree_put(t.arena, from->first, "map", tn_tree_scalar(t.arena, file, at));
    assert_ok(tn_tensornet_import(from, t.w, &t.begun, &err), err.text);
    assert_true(compare(&t, "adagrad_r1", "pred.files.tsv") <= 1e-6);
}

TEST(faults_of_a_map_are_told)
{
    static const struct {
        const char *override, *says;
    } wrong[] = {
        {MAP ".sparse=[{layer: a, segment: nobody, optimizer: adagrad}]", "no input 'nobody'"},
        {MAP ".sparse=[{layer: a, segment: deep_input, optimizer: sgd}]", "sgd"},
        {MAP ".sparse=[{layer: a, segment: deep_input, optimizer: adam, cvm: true}]", "click"},
        {MAP ".sparse=[{layer: ../a, segment: deep_input, optimizer: adam}]", "no folder"},
        {MAP ".sparse=[{layer: a, segment: deep_input, optimizer: adam, share: x}]", "group 'x'"},
        {LAYERS("adagrad", ", cvm: no"), NULL},
        {MAP ".sparse=[{layer: a, segment: deep_input, optimizer: adam}, {layer: b, segment: "
             "deep_input, optimizer: adam}]",
         "stands twice"},
        {MAP ".dense=[{name: a, shape: [8], to: dnn_9.b}]", "no parameter 'dnn_9.b'"},
        {MAP ".dense=[{name: a, shape: [9], to: dnn_0.b}]", "'dnn_0.b' is [1, 8]"},
        {MAP ".dense=[{name: b, shape: [8], to: dnn_0.b}, {name: a, shape: [4], to: dnn_1.b}]",
         "sorts variables by name"},
        {MAP ".bn=[{table: 0, mean: dnn_0.b, var: dnn_0.b}]", "no running value 'dnn_0.b'"},
        {MAP ".cvm=true", "cvm"},
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        trial t CLEANUP(tear_down);
        tn_error err = {0};
        char dir[300];
        dir_of("adagrad_r1", "bin", dir);
        set_up(&t, (const char *const[]){wrong[i].override, NULL});
        const tn_status status = take(&t, dir, &err);
        assert_int_equal(status, wrong[i].says != NULL ? TN_E_CONFIG : TN_OK);
        fail_if(wrong[i].says != NULL && strstr(err.text, wrong[i].says) == NULL,
                "'%s' is not in '%s'", wrong[i].says, err.text);
    }
}

TEST(shapes_must_add_up)
{
    trial t CLEANUP(tear_down);
    tn_error err = {0};
    char dir[300];
    dir_of("adagrad_r1", "bin", dir);
    set_up(&t, (const char *const[]){MAP ".dense=[{name: a, shape: [8], to: dnn_0.b}]", NULL});
    assert_int_equal(take(&t, dir, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "dense_table/0/0' holds 197 values, and the shapes of the "
                                     "map's dense variables make 8"));
}

/* ---- files that are wrong ---- */

static void copy_tree(const char *from, const char *to)
{
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_make(to, NULL), TN_OK);
    assert_int_equal(tn_dir_list(from, &names, &n, NULL), TN_OK);
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n; i++, name += strlen(name) + 1) {
        char a[TN_PATH_SIZE];
        char b[TN_PATH_SIZE];
        assert_int_equal(tn_path_join(from, name, a, NULL), TN_OK);
        assert_int_equal(tn_path_join(to, name, b, NULL), TN_OK);
        if (tn_path_is_dir(a)) {
            copy_tree(a, b);
        } else {
            tn_text bytes CLEANUP(tn_text_done) = {0};
            assert_int_equal(tn_file_read_all(a, 1 << 24, &bytes, NULL), TN_OK);
            assert_int_equal(tn_file_replace(b, tn_text_str(&bytes), bytes.size, NULL), TN_OK);
        }
    }
}

typedef enum harm {
    CUT,    /* to `size` bytes */
    CHANGE, /* the byte at `size` */
    REMOVE,
    RENAME,  /* to `text`, in the day's folder */
    WRITE,   /* `text` */
    WRITE_GZ /* `text`, as gzip */
} harm;

typedef struct damage {
    harm harm;
    const char *file; /* below the model directory */
    const char *text;
    size_t size;
    const char *says;
} damage;

#define BLOCK0 "2020-05-10/sparse_table/deep_input/rank_0/block_0.gz"
#define HEAD "opt_name:AdaGrad\ndim:4\n"
#define ROW(sign) #sign "\t4\t1\t2\t3\t4\t5\t6\t7\t\n"

static const damage damages[] = {
    {CUT, BLOCK0, NULL, 200, BLOCK0},
    {CHANGE, BLOCK0, NULL, 120, BLOCK0},
    {CUT, BLOCK0, NULL, 0, BLOCK0 ":@0: error: not a gzip file"},
    {REMOVE, BLOCK0, NULL, 0, "rank_0' has no file of block 0"},
    {WRITE, "2020-05-10/sparse_table/deep_input/rank_0/sparse_block_0_bin.gz", "", 0,
     "two files of block 0, 'block_0.gz' and 'sparse_block_0_bin.gz'"},
    {RENAME, "2020-05-10/sparse_table/deep_input/rank_0", "sparse_table/deep_input/rank_1", 0,
     "has 1 folders of ranks, the highest is rank_1"},
    {REMOVE, "2020-05-10/sparse_table/linear_input", NULL, 0, "there is no folder"},
    {WRITE_GZ, BLOCK0, HEAD ROW(1) ROW(2) ROW(1) "\n", 0, "sign 1 twice, in rows 1 and 3"},
    {WRITE_GZ, BLOCK0, HEAD ROW(4294967296) "\n", 0, "sign 4294967296 of row 1 belongs to rank 0"},
    {WRITE_GZ, BLOCK0, HEAD ROW(1), 0, ":3: error: no empty line at the end"},
    {WRITE_GZ, BLOCK0, "opt_name:Adam\ndim:4\n\n", 0, ":1: error: expected 'opt_name:AdaGrad'"},
    {WRITE_GZ, BLOCK0, "opt_name:AdaGrad\ndim:5\n\n", 0, ":2: error: expected 'dim:4'"},
    {WRITE_GZ, BLOCK0, HEAD "1\t4\t1\t2\t3\t4\t5\t6\t7\t8\n\n", 0, ":3: error: more columns"},
    {WRITE_GZ, BLOCK0, HEAD "1\t4\t1\t2\t3\t4\t5\n\n", 0, ":3: error: expected a decimal"},
    {WRITE_GZ, BLOCK0, HEAD "1\t4\t1\tnan\t3\t4\t5\t6\t7\t\n\n", 0, ":3: error: expected"},
    {WRITE_GZ, BLOCK0, HEAD "1\t4\t1\t2\t3\t4\t-5\t6\t7\t\n\n", 0, "a sum of squares below 0"},
    {WRITE_GZ, BLOCK0, HEAD "-1\t4\t1\t2\t3\t4\t5\t6\t7\t\n\n", 0, "expected a sign"},
    {WRITE, "_checkpoint", "{", 0, "_checkpoint"},
    {WRITE, "_checkpoint", "{\"dt\": \"../x\"}", 0, "does not say which day"},
    {WRITE, "_checkpoint", "{\"dt\": \"2020-05-11\"}", 0, "neither"},
    {REMOVE, "2020-05-10/dense_table/0/0", NULL, 0, "there is no file"},
    {CUT, "2020-05-10/dense_table/0/0", NULL, 300, "dense_table/0/0:"},
    {WRITE, "2020-05-10/dense_table/0/0", "total_elements:197\nrank_num:2\n", 0,
     "99 values before its range"},
    {WRITE, "2020-05-10/dense_table/0/0", "total_elements:x\n", 0, ":1: error: expected 'total"},
    {REMOVE, "2020-05-10/bn_table/0", NULL, 0, "there is no file"},
    {WRITE_GZ, "2020-05-10/bn_table/0", "\001x", 0, "not the running sums"},
    {WRITE, "2020-05-10/bn_table/0", "x", 0, "not a gzip file"},
};

static void write_gz(const char *path, const char *text)
{
    tn_sink *sink = NULL;
    assert_int_equal(tn_remove_file(path, NULL), TN_OK);
    assert_int_equal(tn_sink_open(&sink, path, NULL, TN_COMPRESSION_GZIP, NULL), TN_OK);
    assert_int_equal(tn_sink_add(sink, text, strlen(text), NULL), TN_OK);
    assert_int_equal(tn_sink_commit(sink, NULL), TN_OK);
}

static void harm_file(const char *dir, const damage *d)
{
    char path[TN_PATH_SIZE];
    char to[TN_PATH_SIZE];
    tn_text bytes CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_path_join(dir, d->file, path, NULL), TN_OK);
    switch (d->harm) {
    case CUT:
    case CHANGE:
        assert_int_equal(tn_file_read_all(path, 1 << 24, &bytes, NULL), TN_OK);
        if (d->harm == CUT) {
            bytes.size = d->size;
        } else {
            bytes.data[d->size] = 0x55;
        }
        assert_int_equal(tn_file_replace(path, bytes.data, bytes.size, NULL), TN_OK);
        break;
    case REMOVE:
        assert_int_equal(tn_remove_tree(path, NULL), TN_OK);
        break;
    case RENAME:
        (void)snprintf(to, sizeof to, "%s/2020-05-10/%s", dir, d->text);
        assert_int_equal(tn_rename(path, to, NULL), TN_OK);
        break;
    case WRITE:
        assert_int_equal(tn_file_replace(path, d->text, strlen(d->text), NULL), TN_OK);
        break;
    case WRITE_GZ:
        write_gz(path, d->text);
        break;
    }
}

TEST(damaged_files_are_named)
{
    for (uint32_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        trial t CLEANUP(tear_down);
        char good[300];
        tn_error err = {0};
        TMPDIR(tmp);
        PATH_IN(dir, tmp, "m");
        dir_of("adagrad_r1", "txt", good);
        copy_tree(good, dir);
        set_up(&t, NULL);
        harm_file(dir, &damages[i]);
        const tn_status status = take(&t, dir, &err);
        fail_if(status != TN_E_CKPT || strstr(err.text, damages[i].says) == NULL ||
                    strchr(err.text, '\n') != NULL,
                "%u: %d '%s' and not '%s'", i, (int)status, err.text, damages[i].says);
    }
}

/* TensorNet's own loader misreads these and goes on. */
TEST(another_shape_than_the_models_is_refused)
{
    static const struct {
        const char *fixture, *mode, *override, *says;
    } wrong[] = {
        {"adam_r1", "txt", NULL, "expected 'opt_name:AdaGrad'"},
        {"adam_r1", "bin", NULL, "a sum of squares below 0"},
        {"adagrad_cvm_r1", "txt", MAP ".dense=[]", "is 'cvm' right in the map?"},
        {"adagrad_cvm_r1", "bin", MAP ".dense=[]", "no whole number of rows"},
        {"adagrad_r1", "txt", LAYERS("adagrad", ", cvm: true"), "is 'cvm' right in the map?"},
        {"adagrad_r1", "txt", "embedding.dim=8", "expected 'dim:8'"},
        {"adagrad_r1", "bin", "embedding.dim=8", "of the model 8"},
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        trial t CLEANUP(tear_down);
        char dir[300];
        tn_error err = {0};
        set_up(&t, (const char *const[]){MAP ".bn=[]", MAP ".dense=[]", wrong[i].override, NULL});
        dir_of(wrong[i].fixture, wrong[i].mode, dir);
        assert_int_equal(take(&t, dir, &err), TN_E_CKPT);
        fail_if(strstr(err.text, wrong[i].says) == NULL, "%u: '%s' is not in '%s'", i,
                wrong[i].says, err.text);
    }
}
