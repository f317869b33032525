/* test_trainer.c - a run gives the same bits on any number of threads and when it is interrupted.
 */
#include "base/file.h"
#include "support/test.h"
#include "support/tmpdir.h"
#include "train/trainrun.h"

#include <stdio.h>
#include <string.h>

static void the_same_bits_on_any_number_of_threads(void **state)
{
    (void)state;
    uint32_t one = trainrun_hash((const char *const[]){"train.threads=1", NULL});
    uint32_t two = trainrun_hash((const char *const[]){"train.threads=2", NULL});
    uint32_t four = trainrun_hash((const char *const[]){"train.threads=4", "data.readers=3", NULL});
    assert_int_equal(one, two);
    assert_int_equal(one, four);
}

static void s4_two_runs_are_equal_and_another_seed_is_not(void **state)
{
    (void)state;
    uint32_t a = trainrun_hash(NULL);
    uint32_t b = trainrun_hash(NULL);
    uint32_t c = trainrun_hash((const char *const[]){"run.seed=7", NULL});
    assert_int_equal(a, b);
    assert_true(a != c);
}

/* Stops after `steps`, goes on to the end. */
static uint32_t interrupted_hash(uint32_t steps, const char *dir)
{
    char first[64];
    (void)snprintf(first, sizeof first, "train.max_steps=%u", steps);
    trainrun o = trainrun_do(dir, (const char *const[]){first, NULL}, NULL);
    if (o.status != TN_OK) {
        fail_msg("%s", o.text);
    }
    o = trainrun_do(dir, NULL, NULL);
    if (o.status != TN_OK) {
        fail_msg("%s", o.text);
    }
    return o.hash;
}

static void k1_a_run_that_goes_on_equals_one_that_was_never_stopped(void **state)
{
    (void)state;
    uint32_t whole = trainrun_hash(NULL);
    for (uint32_t steps = 1; steps < 24; steps += 3) {
        char dir[256];
        tn_tmpdir_make(dir);
        assert_int_equal(interrupted_hash(steps, dir), whole);
        tn_tmpdir_remove(dir);
    }
}

static void checkpoints_in_between_change_nothing(void **state)
{
    (void)state;
    uint32_t plain = trainrun_hash(NULL);
    uint32_t often =
        trainrun_hash((const char *const[]){"checkpoint.every=5steps", "eval.every=3steps", NULL});
    assert_int_equal(plain, often);
}

static void another_model_is_refused_with_its_differences(void **state)
{
    (void)state;
    char dir[256];
    tn_tmpdir_make(dir);
    trainrun o = trainrun_do(dir, (const char *const[]){"train.max_steps=2", NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
    o = trainrun_do(dir, (const char *const[]){"embedding.dim=4", "model.hidden=[16, 4]", NULL},
                    NULL);
    assert_int_equal(o.status, TN_E_CONFIG);
    assert_non_null(strstr(o.text, "slot 'user': 'deep' is 4 wide, in the checkpoint 8"));
    assert_non_null(strstr(o.text, "parameter 'deep.2.W' is [16, 4], in the checkpoint [16, 8]"));
    o = trainrun_do(dir, (const char *const[]){"train.sparse=sgd", NULL}, NULL);
    assert_int_equal(o.status, TN_E_CONFIG);
    assert_non_null(strstr(o.text, "is trained by sgd, in the checkpoint by adam"));
    tn_tmpdir_remove(dir);
}

static void early_stop_restores_the_best_model(void **state)
{
    (void)state;
    char dir[256];
    tn_tmpdir_make(dir);
    /* a rate that ruins the model after a good start */
    trainrun o =
        trainrun_do(dir,
                    (const char *const[]){"train.epochs=30", "train.optimizer.lr=0.3",
                                          "train.stop={monitor: valid.auc, patience: 2}", NULL},
                    NULL);
    assert_int_equal(o.status, TN_OK);
    tn_text text = {0};
    char path[300];
    (void)snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
    tn_error err = {0};
    assert_int_equal(tn_file_read_all(path, 1 << 24, &text, &err), TN_OK);
    assert_non_null(strstr(tn_text_str(&text), "2 times in a row: stopping"));
    assert_non_null(strstr(tn_text_str(&text), "restored the best model"));
    tn_text_done(&text);
    tn_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bits_on_any_number_of_threads),
        cmocka_unit_test(s4_two_runs_are_equal_and_another_seed_is_not),
        cmocka_unit_test(k1_a_run_that_goes_on_equals_one_that_was_never_stopped),
        cmocka_unit_test(checkpoints_in_between_change_nothing),
        cmocka_unit_test(another_model_is_refused_with_its_differences),
        cmocka_unit_test(early_stop_restores_the_best_model),
    };
    return cmocka_run_group_tests_name("train/trainer", tests, NULL, NULL);
}
