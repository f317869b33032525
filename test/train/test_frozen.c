/* test_frozen.c - parameters that train.freeze names keep the bits that a run begins with. */
#include "config/diag.h"
#include "nn/graph/params.h"
#include "support/test.h"
#include "train/checkpoint/checkpoint.h"
#include "train/golden.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"
#include "train/trainrun.h"

CLOSER(tn_worker_free);

static tn_worker *loaded(tn_arena *arena, const char *dir)
{
    tn_diag diag = {0};
    const tn_binder b = {.arena = arena, .diag = &diag};
    tn_worker *w = NULL;
    tn_saved which;
    tn_error err = {0};
    const tn_model_plan *plan =
        golden_plan(arena, "deepfm_bn", (const char *const[]){"model.dropout=0.2", NULL});
    assert_ok(tn_worker_new(&w, plan, &(tn_worker_opts){.training = true}, &b, &err), err.text);
    assert_ok(tn_checkpoint_load(dir, w, &which, &err), err.text);
    return w;
}

/* Names of the parameters with equal bits in both, each after a space. */
static void find_equal(const tn_worker *a, const tn_worker *b, tn_text *names)
{
    for (uint32_t i = 0; i < tn_params_count(a->params); i++) {
        const tn_param_slice *s = tn_params_get(a->params, i);
        if (memcmp(tn_params_weights(a->params) + s->at, tn_params_weights(b->params) + s->at,
                   (size_t)s->rows * s->cols * sizeof(float)) == 0) {
            tn_text_addf(names, " %s", s->name);
        }
    }
}

/* Trains `dir`/b on `dir`/a with what it says in `freeze`; appends what has kept its bits. */
static trainrun train_on(const char *dir, const char *freeze, const char *more, tn_text *kept)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    PATH_IN(a, dir, "a");
    PATH_IN(b, dir, "b");
    char from[400];
    (void)snprintf(from, sizeof from, "checkpoint.from=%s", a);
    trainrun r = trainrun_do(b, (const char *const[]){from, freeze, more, NULL}, NULL);
    if (r.status == TN_OK && kept != NULL) {
        tn_worker *before FREED(tn_worker_free) = loaded(arena, a);
        tn_worker *after FREED(tn_worker_free) = loaded(arena, b);
        find_equal(before, after, kept);
    }
    return r;
}

static void begin(char *dir)
{
    tn_tmpdir_make(dir);
    PATH_IN(a, dir, "a");
    trainrun r = trainrun_do(a, (const char *const[]){"train.epochs=1", NULL}, NULL);
    assert_ok(r.status, r.text);
}

TEST(frozen_layers_keep_their_bits_and_all_others_learn)
{
    static const struct {
        const char *freeze, *kept;
    } cases[] = {
        /* Biases before a batch norm are not trained, frozen or not. */
        {"train.freeze=~", " deep.1.b deep.2.b"},
        {"train.freeze=[deep.1]", " deep.1.W deep.1.b deep.1.bn.gamma deep.1.bn.beta deep.2.b"},
        {"train.freeze=[\"deep.*.W\", deep.3.b]",
         " deep.1.W deep.1.b deep.2.W deep.2.b deep.3.W deep.3.b"},
    };
    char dir[256];
    begin(dir);
    PATH_IN(b, dir, "b");
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_text kept CLEANUP(tn_text_done) = {0};
        trainrun r = train_on(dir, cases[i].freeze, "train.epochs=1", &kept);
        assert_ok(r.status, r.text);
        assert_string_equal(tn_text_str(&kept), cases[i].kept);
        tn_tmpdir_remove(b);
    }
    tn_tmpdir_remove(dir);
}

TEST(a_run_that_goes_on_keeps_what_is_frozen)
{
    char dir[256];
    tn_text kept CLEANUP(tn_text_done) = {0};
    begin(dir);
    PATH_IN(b, dir, "b");
    const trainrun whole = train_on(dir, "train.freeze=[deep]", "train.epochs=2", NULL);
    tn_tmpdir_remove(b);
    assert_ok(train_on(dir, "train.freeze=[deep]", "train.epochs=1", NULL).status, "");
    const trainrun resumed = train_on(dir, "train.freeze=[deep]", "train.epochs=2", &kept);
    assert_ok(resumed.status, resumed.text);
    assert_int_equal(resumed.hash, whole.hash);
    assert_non_null(strstr(tn_text_str(&kept), " deep.2.W"));
    tn_tmpdir_remove(dir);
}

TEST(what_would_keep_its_first_values_is_refused)
{
    char dir[256];
    tn_tmpdir_make(dir);
    trainrun r = trainrun_do(dir, (const char *const[]){"train.freeze=[deep]", NULL}, NULL);
    assert_int_equal(r.status, TN_E_CONFIG);
    assert_non_null(strstr(r.text, "train.freeze: 'deep.1.W' would keep its first values"));
    tn_tmpdir_remove(dir);
    begin(dir);
    r = train_on(dir, "train.freeze=[deep]", "model.hidden=[16, 9]", NULL);
    assert_int_equal(r.status, TN_E_CONFIG);
    assert_non_null(strstr(r.text, "train.freeze: 'deep.2.W' would keep its first values"));
    tn_tmpdir_remove(dir);
}

TEST(a_word_that_freezes_nothing_is_refused)
{
    char dir[256];
    begin(dir);
    trainrun r = train_on(dir, "train.freeze=[deep, dep]", NULL, NULL);
    assert_int_equal(r.status, TN_E_CONFIG);
    assert_non_null(strstr(r.text, "the model has no layer or parameter 'dep'\nhint: its "
                                   "parameters are "));
    assert_null(strstr(r.text, ".mean")); /* running values go on */
    tn_tmpdir_remove(dir);
}
