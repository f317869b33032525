/* test_trainer.c - a run gives the same bits on any number of threads and when it is interrupted.
 */
#include "io/read/row_scan.h"
#include "support/test.h"
#include "train/config/run.h"
#include "train/golden.h"
#include "train/run/epoch_reader.h"
#include "train/step/model_plan.h"
#include "train/trainrun.h"

TEST(the_same_bits_on_any_number_of_threads)
{
    uint32_t one = trainrun_hash((const char *const[]){"train.threads=1", NULL});
    uint32_t two = trainrun_hash((const char *const[]){"train.threads=2", NULL});
    uint32_t four = trainrun_hash((const char *const[]){"train.threads=4", "data.readers=3", NULL});
    assert_int_equal(one, two);
    assert_int_equal(one, four);
}

TEST(s4_two_runs_are_equal_and_another_seed_is_not)
{
    uint32_t a = trainrun_hash(NULL);
    uint32_t b = trainrun_hash(NULL);
    uint32_t c = trainrun_hash((const char *const[]){"run.seed=7", NULL});
    assert_int_equal(a, b);
    assert_true(a != c);
}

/* Stops after `steps`, goes on to the end; `more`: another option, or NULL. */
static uint32_t interrupted_hash(uint32_t steps, const char *dir, const char *more)
{
    char first[64];
    (void)snprintf(first, sizeof first, "train.max_steps=%u", steps);
    trainrun o = trainrun_do(dir, (const char *const[]){first, more, NULL}, NULL);
    assert_ok(o.status, o.text);
    o = trainrun_do(dir, (const char *const[]){more, NULL}, NULL);
    assert_ok(o.status, o.text);
    return o.hash;
}

TEST(k1_a_run_that_goes_on_equals_one_that_was_never_stopped)
{
    uint32_t whole = trainrun_hash(NULL);
    for (uint32_t steps = 1; steps < 24; steps += 3) {
        TMPDIR(dir);
        assert_int_equal(interrupted_hash(steps, dir, NULL), whole);
    }
}

/* With dense weights that stand still an epoch leaves the rows of the first, counts included. */
TEST(rows_begin_anew_each_epoch_and_the_net_goes_on)
{
    const char *rows_alone[] = {"train.optimizer={type: sgd, lr: 0}",
                                "model.batch_norm=false",
                                "model.dropout=0",
                                "data.shuffle=0",
                                "embedding.reset=epoch",
                                "train.epochs=1",
                                NULL};
    const uint32_t once = trainrun_hash(rows_alone);
    rows_alone[5] = "train.epochs=3";
    assert_int_equal(trainrun_hash(rows_alone), once);
    rows_alone[4] = "embedding.reset=never";
    assert_true(trainrun_hash(rows_alone) != once);

    static const char anew[] = "embedding.reset=epoch";
    const uint32_t whole = trainrun_hash((const char *const[]){anew, NULL});
    assert_int_equal(trainrun_hash((const char *const[]){anew, "train.threads=4",
                                                         "checkpoint.every=5steps", NULL}),
                     whole);
    for (uint32_t steps = 7; steps < 20; steps += steps == 9 ? 6 : 1) {
        TMPDIR(dir);
        assert_int_equal(interrupted_hash(steps, dir, anew), whole);
    }
}

TEST(checkpoints_in_between_change_nothing)
{
    uint32_t plain = trainrun_hash(NULL);
    uint32_t often =
        trainrun_hash((const char *const[]){"checkpoint.every=5steps", "eval.every=3steps", NULL});
    assert_int_equal(plain, often);
}

/* 8 steps an epoch: the data are short, so that is known from the start. */
TEST(a_schedule_ends_with_the_run)
{
    static const char *const types[] = {"linear", "cosine", "polynomial"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char open[100];
        char own[100];
        (void)snprintf(open, sizeof open, "train.optimizer.schedule={type: %s, warmup: 5}",
                       types[i]);
        (void)snprintf(own, sizeof own, "train.optimizer.schedule={type: %s, warmup: 5, steps: 24}",
                       types[i]);
        const uint32_t want = trainrun_hash((const char *const[]){own, NULL});
        assert_int_equal(trainrun_hash((const char *const[]){open, "train.threads=1", NULL}), want);
        assert_int_equal(trainrun_hash((const char *const[]){open, "train.threads=3", NULL}), want);
    }
}

TEST(what_an_epoch_took_is_known_behind_it)
{
    const char *const linear = "train.optimizer.schedule={type: linear}";
    const char *const root = "train.optimizer.schedule={type: inverse_sqrt}";
    uint64_t end = 0;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const tn_model_plan *plan =
        golden_plan(arena, "deepfm_bn", (const char *const[]){linear, NULL});
    assert_true(tn_schedule_ends_with_run(plan->run));
    assert_int_equal(tn_run_end(plan, 0, 0, &end, NULL), TN_OK);
    assert_int_equal(end, 24);
    assert_int_equal(tn_run_end(plan, 1, 0, &end, NULL), TN_OK); /* not told: counted again */
    assert_int_equal(end, 24);
    assert_int_equal(tn_run_end(plan, 1, 9, &end, NULL), TN_OK);
    assert_int_equal(end, 27);
    assert_int_equal(tn_run_end(plan, 2, 17, &end, NULL), TN_OK);
    assert_int_equal(end, 26);
    plan =
        golden_plan(arena, "deepfm_bn", (const char *const[]){linear, "train.max_steps=9", NULL});
    assert_false(tn_schedule_ends_with_run(plan->run));
    plan = golden_plan(arena, "deepfm_bn", (const char *const[]){root, NULL});
    assert_false(tn_schedule_ends_with_run(plan->run));
}

TEST(rows_of_long_data_are_estimated_by_bytes)
{
    enum { COPIES = 234 };
    char path[TN_PATH_SIZE];
    char train[TN_PATH_SIZE + 16];
    tn_text text CLEANUP(tn_text_done) = {0};
    tn_error err = {0};
    double rows = 0;
    TMPDIR(dir);
    assert_int_equal(tn_path_join(dir, "rows.tsv", path, &err), TN_OK);
    assert_int_equal(tn_file_read_all("test/golden/data/rows.tsv", 1 << 20, &text, &err), TN_OK);
    const char *body = strchr(tn_text_str(&text), '\n') + 1;
    tn_text all CLEANUP(tn_text_done) = {0};
    tn_text_add(&all, tn_text_str(&text), (size_t)(body - tn_text_str(&text)));
    for (uint32_t i = 0; i < COPIES; i++) {
        tn_text_adds(&all, body);
    }
    assert_int_equal(tn_file_replace(path, all.data, all.size, &err), TN_OK);
    (void)snprintf(train, sizeof train, "data.train=%s", path);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const tn_model_plan *plan = golden_plan(
        arena, "deepfm_bn", (const char *const[]){train, "data.part_bytes=256KiB", NULL});
    const double want = COPIES * 251; /* 5 of the 256 weigh nothing */
    assert_ok(tn_row_scan_estimate(&plan->run->data.train, plan->schema,
                                   TN_ROW_SCAN_ESTIMATE_BLOCKS, &rows, &err),
              err.text);
    assert_true(rows == want);
    assert_int_equal(tn_row_scan_estimate(&plan->run->data.train, plan->schema, 4, &rows, &err),
                     TN_OK);
    assert_true(rows != want && fabs(rows - want) < 0.02 * want);
    plan = golden_plan(arena, "deepfm_bn",
                       (const char *const[]){train, "data.negative_sampling=0.5", NULL});
    double half = 0;
    assert_ok(tn_row_scan_estimate(&plan->run->data.train, plan->schema,
                                   TN_ROW_SCAN_ESTIMATE_BLOCKS, &half, &err),
              err.text);
    assert_true(half > 0.5 * want && half < 0.9 * want);
}

TEST(another_model_is_refused_with_its_differences)
{
    TMPDIR(dir);
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
}

/* Every evaluation is a bad one but the first: rates fall again and again, as far as they may. */
static uint32_t plateau_hash(const char *rule)
{
    const char *const stop =
        "train.stop={monitor: valid.auc, patience: 1000, min_delta: 1, restore: last}";
    return trainrun_hash(
        (const char *const[]){"train.optimizer.lr=0.3", "eval.every=2steps", stop, rule, NULL});
}

TEST(rates_never_fall_below_the_least_one)
{
    const uint32_t steady = plateau_hash("train.reduce_on_plateau=~");
    assert_int_equal(plateau_hash("train.reduce_on_plateau={factor: 0.1, min_lr: 0.3}"), steady);
    assert_int_equal(plateau_hash("train.reduce_on_plateau={factor: 0.1, min_lr: 5}"), steady);
    const uint32_t half = plateau_hash("train.reduce_on_plateau={factor: 0.5, min_lr: 0.15}");
    assert_true(half != steady);
    assert_int_equal(plateau_hash("train.reduce_on_plateau={factor: 0.1, min_lr: 0.15}"), half);
    assert_true(plateau_hash("train.reduce_on_plateau={factor: 0.5, min_lr: 0}") != half);
}

TEST(early_stop_restores_the_best_model)
{
    TMPDIR(dir);
    /* a rate that ruins the model after a good start */
    trainrun o =
        trainrun_do(dir,
                    (const char *const[]){"train.epochs=30", "train.optimizer.lr=0.3",
                                          "train.stop={monitor: valid.auc, patience: 2}", NULL},
                    NULL);
    assert_int_equal(o.status, TN_OK);
    tn_text text CLEANUP(tn_text_done) = {0};
    PATH_IN(path, dir, "metrics.jsonl");
    assert_int_equal(tn_file_read_all(path, 1 << 24, &text, NULL), TN_OK);
    assert_non_null(strstr(tn_text_str(&text), "2 times in a row: stopping"));
    assert_non_null(strstr(tn_text_str(&text), "restored the best model"));
}
