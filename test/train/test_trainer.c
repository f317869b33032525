/* test_trainer.c - a run gives the same bits on any number of threads and when it is interrupted.
 */
#include "base/file.h"
#include "support/test.h"
#include "support/tmpdir.h"
#include "train/checkpoint.h"
#include "train/golden.h"
#include "train/runhash.h"
#include "train/trainer.h"

#include <stdio.h>
#include <string.h>

enum { OVERRIDES_MAX = 24 };

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static int code_of(tn_status status)
{
    return (int)status;
}

typedef struct outcome {
    tn_status status;
    uint32_t hash;
    char text[1500];
    tn_outcome out;
} outcome;

/* Trains test/golden/deepfm_bn.yaml with shuffling and dropout into `dir`; then hashes its newest
 * checkpoint. */
// NOLINTNEXTLINE(readability-non-const-parameter): signal handlers write it
static outcome run_with(const char *dir, const char *const *more, volatile int *asked)
{
    const char *overrides[OVERRIDES_MAX] = {"model.dropout=0.2", "data.shuffle=100",
                                            "log.progress=false", "checkpoint.keep=100"};
    uint32_t n = 4;
    char where[300];
    (void)snprintf(where, sizeof where, "run.dir=%s", dir);
    overrides[n++] = where;
    for (; more != NULL && *more != NULL; more++) {
        overrides[n++] = *more;
    }
    tn_arena *arena = tn_arena_new(1 << 16);
    const tn_blueprint *plan = golden_plan(arena, "deepfm_bn", overrides);
    tn_diag diag = {0};
    tn_binder b = {.arena = arena, .diag = &diag};
    tn_run_text text = {.config = "test\n", .hash = HASH};
    tn_watch watch = {.exit_code = code_of, .asked = asked};
    tn_error err = {0};
    outcome o = {0};
    o.status = tn_train(plan, &text, &watch, &b, &o.out, &err);
    (void)snprintf(o.text, sizeof o.text, "%s", err.text);
    tn_outcome_done(&o.out);
    tn_worker *w = NULL;
    tn_saved which;
    if (tn_worker_new(&w, plan, &(tn_worker_opts){.training = true}, &b, &err) != TN_OK ||
        tn_checkpoint_load(dir, w, &which, &err) != TN_OK ||
        tn_run_hash(w, &o.hash, &err) != TN_OK) {
        print_message("    %s\n", err.text);
        o.hash = 0;
    }
    tn_worker_free(w);
    tn_arena_free(arena);
    return o;
}

static uint32_t hash_of(const char *const *more)
{
    char dir[256];
    tn_tmpdir_make(dir);
    outcome o = run_with(dir, more, NULL);
    if (o.status != TN_OK) {
        fail_msg("%s", o.text);
    }
    tn_tmpdir_remove(dir);
    assert_true(o.hash != 0);
    return o.hash;
}

static void the_same_bits_on_any_number_of_threads(void **state)
{
    (void)state;
    uint32_t one = hash_of((const char *const[]){"train.threads=1", NULL});
    uint32_t two = hash_of((const char *const[]){"train.threads=2", NULL});
    uint32_t four = hash_of((const char *const[]){"train.threads=4", "data.readers=3", NULL});
    assert_int_equal(one, two);
    assert_int_equal(one, four);
}

static void s4_two_runs_are_equal_and_another_seed_is_not(void **state)
{
    (void)state;
    uint32_t a = hash_of(NULL);
    uint32_t b = hash_of(NULL);
    uint32_t c = hash_of((const char *const[]){"run.seed=7", NULL});
    assert_int_equal(a, b);
    assert_true(a != c);
}

/* Stops after `steps`, goes on to the end. */
static uint32_t interrupted_hash(uint32_t steps, const char *dir)
{
    char first[64];
    (void)snprintf(first, sizeof first, "train.max_steps=%u", steps);
    outcome o = run_with(dir, (const char *const[]){first, NULL}, NULL);
    if (o.status != TN_OK) {
        fail_msg("%s", o.text);
    }
    o = run_with(dir, NULL, NULL);
    if (o.status != TN_OK) {
        fail_msg("%s", o.text);
    }
    return o.hash;
}

static void k1_a_run_that_goes_on_equals_one_that_was_never_stopped(void **state)
{
    (void)state;
    uint32_t whole = hash_of(NULL);
    for (uint32_t steps = 1; steps < 24; steps += 3) {
        char dir[256];
        tn_tmpdir_make(dir);
        assert_int_equal(interrupted_hash(steps, dir), whole);
        tn_tmpdir_remove(dir);
    }
}

static void a_stop_signal_saves_and_says_how_to_go_on(void **state)
{
    (void)state;
    char dir[256];
    tn_tmpdir_make(dir);
    volatile int asked = TN_ASKED_STOP; /* seen behind the first step */
    outcome o = run_with(dir, NULL, &asked);
    assert_int_equal(o.status, TN_E_STOPPED);
    assert_non_null(strstr(o.text, "stopped by a signal at step 1; saved as"));
    assert_true(o.hash != 0);
    uint32_t whole = hash_of(NULL);
    o = run_with(dir, NULL, NULL);
    assert_int_equal(o.status, TN_OK);
    assert_int_equal(o.hash, whole);
    tn_tmpdir_remove(dir);
}

static void checkpoints_in_between_change_nothing(void **state)
{
    (void)state;
    uint32_t plain = hash_of(NULL);
    uint32_t often =
        hash_of((const char *const[]){"checkpoint.every=5steps", "eval.every=3steps", NULL});
    assert_int_equal(plain, often);
}

static void another_model_is_refused_with_its_differences(void **state)
{
    (void)state;
    char dir[256];
    tn_tmpdir_make(dir);
    outcome o = run_with(dir, (const char *const[]){"train.max_steps=2", NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
    o = run_with(dir, (const char *const[]){"embedding.dim=4", "model.hidden=[16, 4]", NULL}, NULL);
    assert_int_equal(o.status, TN_E_CONFIG);
    assert_non_null(strstr(o.text, "slot 'user': 'deep' is 4 wide, in the checkpoint 8"));
    assert_non_null(strstr(o.text, "parameter 'deep.2.W' is [16, 4], in the checkpoint [16, 8]"));
    o = run_with(dir, (const char *const[]){"train.sparse=sgd", NULL}, NULL);
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
    outcome o =
        run_with(dir,
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
        cmocka_unit_test(a_stop_signal_saves_and_says_how_to_go_on),
        cmocka_unit_test(checkpoints_in_between_change_nothing),
        cmocka_unit_test(another_model_is_refused_with_its_differences),
        cmocka_unit_test(early_stop_restores_the_best_model),
    };
    return cmocka_run_group_tests_name("train/trainer", tests, NULL, NULL);
}
