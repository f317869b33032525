/* test_exact.c - runs with l2_mode: exact end with the model of dense, stopped or not, evaluated or
 * not, with deltas, threads and peers. */
#include "base/core/arena.h"
#include "config/diag.h"
#include "config/field.h"
#include "support/test.h"
#include "support/tmpdir.h"
#include "train/config/config.h"
#include "train/config/run.h"
#include "train/grouprun.h"
#include "train/step/model_plan.h"
#include "train/trainrun.h"

#include <stdio.h>
#include <string.h>

#define MODE(mode) "train.sparse.wide.l2_mode=" mode, "train.sparse.deep.l2_mode=" mode
#define RATES "train.optimizer.schedule={type: exponential, every: 5, rate: 0.5}"

TEST(exact_ends_with_the_model_of_dense)
{
    const uint32_t want = trainrun_hash((const char *[]){MODE("dense"), RATES, NULL});
    assert_int_not_equal(want, trainrun_hash((const char *[]){MODE("touched"), RATES, NULL}));
    assert_int_equal(want, trainrun_hash((const char *[]){MODE("exact"), RATES, NULL}));
    const char *const busy[] = {
        MODE("exact"), RATES, "train.threads=3", "eval.every=2steps", "checkpoint.every=3steps",
        NULL};
    assert_int_equal(want, trainrun_hash(busy));
    const char *const alone[] = {MODE("exact"), RATES, "data.valid=~", NULL};
    assert_int_equal(want, trainrun_hash(alone));
}

TEST(a_run_that_goes_on_from_a_delta_ends_with_it_too)
{
#define DELTAS "checkpoint.every=7steps", "checkpoint.delta_every=1step"
    const uint32_t want = trainrun_hash((const char *[]){MODE("dense"), RATES, NULL});
    for (uint32_t steps = 3; steps < 24; steps += 9) {
        char dir[256];
        char until[40];
        tn_tmpdir_make(dir);
        (void)snprintf(until, sizeof until, "train.max_steps=%u", steps);
        const char *first[] = {MODE("exact"), RATES, DELTAS, until, "checkpoint.keep=1", NULL};
        const char *rest[] = {MODE("exact"), RATES, DELTAS, "checkpoint.keep=2", NULL};
        assert_int_equal(trainrun_do(dir, first, NULL).status, TN_OK);
        const trainrun o = trainrun_do(dir, rest, NULL);
        assert_int_equal(o.status, TN_OK);
        assert_int_equal(o.hash, want);
        tn_tmpdir_remove(dir);
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

TEST(peers_end_with_the_model_of_dense)
{
    const uint32_t want = hash_of_group((const char *[]){MODE("dense"), RATES, NULL});
    assert_int_equal(want, hash_of_group((const char *[]){MODE("exact"), RATES, NULL}));
    assert_int_not_equal(want, hash_of_group((const char *[]){MODE("touched"), RATES, NULL}));
}

TEST(late_gradients_are_refused)
{
    const char *const late[] = {MODE("exact"), "cluster.staleness=2"};
    const tn_config_in in = {.fields = tn_run_fields,
                             .path = "test/golden/deepfm_bn.yaml",
                             .overrides = late,
                             .n_overrides = 3};
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_diag diag = {0};
    tn_binder b = {.arena = arena, .diag = &diag};
    tn_run *run = TN_NEW(arena, tn_run);
    const tn_model_plan *plan = NULL;
    const tn_tree *tree = tn_config_load(&in, arena, &diag);
    assert_non_null(tree);
    tn_run_bind(&b, tree, run);
    assert_int_equal(diag.n_errors, 0);
    assert_int_equal(tn_model_plan_new(&plan, run, &b, NULL), TN_E_CONFIG);
    assert_non_null(
        strstr(tn_text_str(&diag.text), "'l2_mode: exact' needs 'cluster.staleness: 0'"));
    tn_diag_done(&diag);
    tn_arena_free(arena);
}
