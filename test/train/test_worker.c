/* test_worker.c - a worker is made for every model, a step for every batch, whatever they lack. */
#include "base/file.h"
#include "support/test.h"
#include "support/tmpdir.h"
#include "train/feeder.h"
#include "train/golden.h"

#include <stdio.h>
#include <string.h>

/* All its weights are rows. */
static void a_model_without_dense_weights_has_a_worker(void **state)
{
    (void)state;
    tn_arena *arena = tn_arena_new(1 << 16);
    const char *const model[] = {"model={type: graph, inputs: {wide: {embed: all, dim: 1}}, "
                                 "layers: [{name: z, sum: wide}], output: z}",
                                 NULL};
    const tn_blueprint *plan = golden_plan(arena, "lr", model);
    tn_diag diag = {0};
    tn_error err = {0};
    tn_binder b = {.arena = arena, .diag = &diag};
    tn_worker *w = NULL;
    assert_int_equal(tn_worker_new(&w, plan, &(tn_worker_opts){.training = true}, &b, &err), TN_OK);
    assert_int_equal(tn_params_size(w->params), 0);
    tn_worker_free(w);
    tn_diag_done(&diag);
    tn_arena_free(arena);
}

static void write_row_without_keys(const char *path)
{
    static const char text[] =
        "id\tprice\tlabel\tweight\tuser\titem\thist\ttags\ttags_x\tcity\trare\n"
        "r001\t\t1\t\t\t\t\t\t\t\t\n";
    tn_file *f = NULL;
    tn_error err = {0};
    assert_int_equal(tn_file_create(&f, path, &err), TN_OK);
    assert_int_equal(tn_file_write(f, text, sizeof text - 1, &err), TN_OK);
    assert_int_equal(tn_file_commit(f, &err), TN_OK);
}

/* Rows are addressed by sums that begin with `rows`: it may not be NULL. */
static void a_first_batch_without_keys_has_rows(void **state)
{
    (void)state;
    char dir[256];
    char path[300];
    char train[320];
    tn_tmpdir_make(dir);
    (void)snprintf(path, sizeof path, "%s/one.tsv", dir);
    (void)snprintf(train, sizeof train, "data.train=%s", path);
    write_row_without_keys(path);
    tn_arena *arena = tn_arena_new(1 << 16);
    const tn_blueprint *plan = golden_plan(arena, "deepfm", (const char *const[]){train, NULL});
    tn_reader_opts opts = {.paths = plan->run->data.train, .batch_rows = 32, .training = true};
    tn_feeder_opts feeding = {.plan = plan, .ahead = 1, .training = true};
    tn_feeder *feeder = NULL;
    tn_step *step = NULL;
    tn_error err = {0};
    assert_int_equal(tn_feeder_open(&feeder, &feeding, &opts, &err), TN_OK);
    assert_int_equal(tn_feeder_next(feeder, &step, &err), TN_OK);
    assert_int_equal(step->batch->rows, 1);
    assert_int_equal(step->local->keys.n, 0);
    assert_non_null(step->rows);
    assert_non_null(step->grads);
    tn_feeder_recycle(feeder, step);
    tn_feeder_close(feeder);
    tn_arena_free(arena);
    tn_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_without_dense_weights_has_a_worker),
        cmocka_unit_test(a_first_batch_without_keys_has_rows),
    };
    return cmocka_run_group_tests_name("train/worker", tests, NULL, NULL);
}
