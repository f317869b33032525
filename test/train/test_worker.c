/* test_worker.c - a worker is made for every model, whatever it has no weights of. */
#include "support/test.h"
#include "train/golden.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_without_dense_weights_has_a_worker),
    };
    return cmocka_run_group_tests_name("train/worker", tests, NULL, NULL);
}
