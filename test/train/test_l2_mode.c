/* test_l2_mode.c - runs with l2_mode: dense end with the same model, stopped or not, evaluated or
 * not, with deltas, threads and peers. */
#include "support/test.h"
#include "train/grouprun.h"
#include "train/trainrun.h"

#define MODE(mode) "train.sparse.wide.l2_mode=" mode, "train.sparse.deep.l2_mode=" mode
#define RATES "train.optimizer.schedule={type: exponential, every: 5, rate: 0.5}"

TEST(all_rows_learn_the_same_in_any_run)
{
    const uint32_t want = trainrun_hash((const char *[]){MODE("dense"), RATES, NULL});
    assert_int_not_equal(want, trainrun_hash((const char *[]){MODE("touched"), RATES, NULL}));
    const char *const busy[] = {
        MODE("dense"), RATES, "train.threads=3", "eval.every=2steps", "checkpoint.every=3steps",
        NULL};
    assert_int_equal(want, trainrun_hash(busy));
    const char *const alone[] = {MODE("dense"), RATES, "data.valid=~", NULL};
    assert_int_equal(want, trainrun_hash(alone));
}

TEST(a_run_that_goes_on_from_a_delta_ends_with_it_too)
{
#define DELTAS "checkpoint.every=7steps", "checkpoint.delta_every=1step"
    const uint32_t want = trainrun_hash((const char *[]){MODE("dense"), RATES, NULL});
    for (uint32_t steps = 3; steps < 24; steps += 9) {
        char until[40];
        TMPDIR(dir);
        (void)snprintf(until, sizeof until, "train.max_steps=%u", steps);
        const char *first[] = {MODE("dense"), RATES, DELTAS, until, "checkpoint.keep=1", NULL};
        const char *rest[] = {MODE("dense"), RATES, DELTAS, "checkpoint.keep=2", NULL};
        assert_int_equal(trainrun_do(dir, first, NULL).status, TN_OK);
        const trainrun o = trainrun_do(dir, rest, NULL);
        assert_int_equal(o.status, TN_OK);
        assert_int_equal(o.hash, want);
    }
}

static uint32_t hash_of_group(const char *const *more)
{
    char dir[256];
    tn_tmpdir_make(dir);
    grouprun g = {.config = "deepfm", .n = 2, .dir = dir, .more = more, .whole = true};
    grouprun_well(&g);
    tn_tmpdir_remove(dir);
    assert_true(g.hash != 0);
    return g.hash;
}

TEST(peers_end_with_the_same_model_each_time)
{
    const uint32_t want = hash_of_group((const char *[]){MODE("dense"), RATES, NULL});
    assert_int_equal(want, hash_of_group((const char *[]){MODE("dense"), RATES, NULL}));
    assert_int_not_equal(want, hash_of_group((const char *[]){MODE("touched"), RATES, NULL}));
}
