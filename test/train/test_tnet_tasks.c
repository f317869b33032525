/* test_tnet_tasks.c - libtnet: the scores of a model of several tasks. */
#include "serve/tnet.h"

#include "support/test.h"

#include "exportkit.h"

#include <math.h>

enum { ROWS = 3 };

typedef struct fixture {
    exportkit kit;
    tnet_model *model;
    tnet_scorer *scorer;
} fixture;

static void good(int code, const tnet_error *err)
{
    fail_if(code != TNET_OK, "%d: %s", code, err->text);
}

static void open_model(fixture *f, const char *model, const char *tasks)
{
    tnet_error err;
    const char *const words[] = {tasks, "eval.calibrate=none", NULL};
    exportkit_open(&f->kit, model, words);
    exportkit_train(&f->kit);
    const tn_exported out = exportkit_export(&f->kit);
    good(tnet_open(out.path, TNET_VERIFY_FULL, &f->model, &err), &err);
    good(tnet_scorer_new(f->model, &f->scorer, &err), &err);
    for (uint32_t i = 0; i < ROWS; i++) {
        good(tnet_begin_row(f->scorer, &err), &err);
        good(tnet_add_id(f->scorer, tnet_field(f->model, "user"), 3 + i, 1, &err), &err);
        good(tnet_add_id(f->scorer, tnet_field(f->model, "item"), UINT64_C(5) * i, 1, &err), &err);
        good(tnet_end_row(f->scorer, &err), &err);
    }
}

static void close_model(fixture *f)
{
    tnet_scorer_free(f->scorer);
    tnet_close(f->model);
    exportkit_close(&f->kit);
}

static double sigmoid(float z)
{
    return 1 / (1 + exp(-(double)z));
}

TEST(each_task_has_a_score_and_a_share_that_of_a_product)
{
    fixture f = {0};
    tnet_error err;
    open_model(&f, "{type: mmoe, experts: 2, expert: [8], tower: [4]}",
               "tasks={click: {label: label}, buy: {label: label, of: click}, size: {label: label, "
               "loss: mse}}");
    assert_int_equal(tnet_n_tasks(f.model), 3);
    assert_int_equal(tnet_task(f.model, "buy"), 1);
    assert_int_equal(tnet_task(f.model, "bu"), -1);
    assert_string_equal(tnet_task_name(f.model, 2), "size");
    assert_null(tnet_task_name(f.model, 3));
    float first[ROWS];
    float z[3][ROWS];
    float p[3][ROWS];
    float given[ROWS];
    good(tnet_score(f.scorer, first, NULL, &err), &err);
    for (int k = 0; k < 3; k++) {
        good(tnet_score_task(f.scorer, k, z[k], p[k], &err), &err);
    }
    good(tnet_score_given(f.scorer, 1, NULL, given, &err), &err);
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_true(first[i] == z[0][i]);
        assert_true(fabs((double)p[0][i] - sigmoid(z[0][i])) < 1e-7);
        assert_true(fabs((double)p[1][i] - (double)p[0][i] * (double)given[i]) < 1e-7);
        assert_true(p[1][i] < p[0][i] && p[2][i] == z[2][i]);
    }
    float again[2][ROWS];
    float *const logits[3] = {NULL, again[0], NULL};
    float *const clicks[3] = {NULL, NULL, again[1]};
    good(tnet_score_tasks(f.scorer, logits, clicks, &err), &err);
    assert_memory_equal(again[0], z[1], sizeof again[0]);
    assert_memory_equal(again[1], p[2], sizeof again[1]);
    assert_int_equal(tnet_score_task(f.scorer, 3, first, NULL, &err), TNET_E_USAGE);
    assert_int_equal(tnet_score_given(f.scorer, 0, first, NULL, &err), TNET_E_USAGE);
    assert_string_equal(err.text, "the task is no share of another one");
    close_model(&f);
}

TEST(a_model_of_one_label_has_one_task)
{
    fixture f = {0};
    tnet_error err;
    float a[ROWS];
    float b[ROWS];
    open_model(&f, "{type: lr}", "train.epochs=1");
    assert_int_equal(tnet_n_tasks(f.model), 1);
    assert_null(tnet_task_name(f.model, 0));
    assert_int_equal(tnet_task(f.model, "click"), -1);
    good(tnet_score(f.scorer, a, NULL, &err), &err);
    good(tnet_score_task(f.scorer, 0, b, NULL, &err), &err);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(tnet_score_given(f.scorer, 0, a, NULL, &err), TNET_E_USAGE);
    close_model(&f);
    assert_int_equal(tnet_n_tasks(NULL), 0);
    assert_int_equal(tnet_score_task(NULL, 0, a, NULL, &err), TNET_E_USAGE);
}
