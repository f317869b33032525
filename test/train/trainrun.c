/* trainrun.c - see trainrun.h. */
#include "train/trainrun.h"

#include "config/diag.h"
#include "support/test.h"
#include "train/checkpoint/checkpoint.h"
#include "train/golden.h"
#include "train/model_hash.h"
#include "train/report/report.h"
#include "train/run/trainer.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

enum { OVERRIDES_MAX = 24 };

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Who looks on. */
static trainrun_line *on_line;
static void *on_line_arg;

static void tell_line(void *arg, const char *text, bool transient)
{
    (void)arg;
    (void)transient;
    on_line(on_line_arg, text);
}

void trainrun_watch(trainrun_line *line, void *arg)
{
    on_line = line;
    on_line_arg = arg;
}

static void keep_line(void *arg, const char *text, bool transient)
{
    tn_text *shown = arg;
    assert_false(transient);
    tn_text_addf(shown, "%s\n", text);
}

static trainrun run(const char *dir, const char *const *more, const tn_watch *asked)
{
    const char *overrides[OVERRIDES_MAX] = {
        "model.dropout=0.2", "data.shuffle=100", "checkpoint.keep=100",
        asked->show != NULL ? "log.progress=auto" : "log.progress=false"};
    uint32_t n = 4;
    char where[300];
    (void)snprintf(where, sizeof where, "run.dir=%s", dir);
    overrides[n++] = where;
    overrides[n++] = "data.valid=test/golden/data/valid.tsv"; /* rows.tsv but for the last row */
    for (; more != NULL && *more != NULL; more++) {
        assert_true(n + 1 < OVERRIDES_MAX);
        overrides[n++] = *more;
    }
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const tn_model_plan *plan = golden_plan(arena, "deepfm_bn", overrides);
    tn_diag diag = {0};
    tn_binder b = {.arena = arena, .diag = &diag};
    tn_run_text text = {.config = "test\n", .hash = HASH};
    tn_watch watch = *asked;
    if (on_line != NULL) {
        watch.show = tell_line;
    }
    tn_error err = {0};
    tn_outcome out;
    trainrun o = {0};
    o.status = tn_train(plan, &text, &watch, &b, &out, &err);
    (void)snprintf(o.text, sizeof o.text, "%s", err.text);
    o.has_valid = out.valid.metrics != NULL;
    o.has_test = out.test.metrics != NULL;
    tn_outcome_done(&out);
    tn_worker *w = NULL;
    tn_saved which;
    if (tn_worker_new(&w, plan, &(tn_worker_opts){.training = true}, &b, &err) != TN_OK ||
        tn_checkpoint_load(dir, w, &which, &err) != TN_OK ||
        model_hash(w, &o.hash, &err) != TN_OK) {
        print_message("    %s\n", err.text);
        o.hash = 0;
    }
    tn_worker_free(w);
    return o;
}

trainrun trainrun_do(const char *dir, const char *const *more, const atomic_bool *stop)
{
    return run(dir, more, &(tn_watch){.stop = stop});
}

trainrun trainrun_record(const char *dir, const char *const *more, struct tn_profile *profile)
{
    return run(dir, more, &(tn_watch){.profile = profile});
}

trainrun trainrun_show(const char *dir, const char *const *more, tn_text *shown)
{
    return run(dir, more, &(tn_watch){.show = keep_line, .arg = shown});
}

uint32_t trainrun_hash(const char *const *more)
{
    char dir[256];
    tn_tmpdir_make(dir);
    trainrun o = trainrun_do(dir, more, NULL);
    assert_ok(o.status, o.text);
    tn_tmpdir_remove(dir);
    assert_true(o.hash != 0);
    return o.hash;
}

uint32_t trainrun_hash_of(const char *dir, uint64_t n, tn_saved *which)
{
    return trainrun_hash_with(dir, n, NULL, which);
}

uint32_t trainrun_hash_with(const char *dir, uint64_t n, const char *more, tn_saved *which)
{
    char path[TN_PATH_SIZE];
    uint32_t hash = 0;
    (void)snprintf(path, sizeof path, "%s/ckpt-%llu", dir, (unsigned long long)n);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    tn_diag diag = {0};
    tn_binder b = {.arena = arena, .diag = &diag};
    const tn_model_plan *plan =
        golden_plan(arena, "deepfm_bn", (const char *const[]){"model.dropout=0.2", more, NULL});
    tn_worker *w = NULL;
    assert_int_equal(tn_worker_new(&w, plan, &(tn_worker_opts){.training = true}, &b, NULL), TN_OK);
    if (tn_checkpoint_load(path, w, which, NULL) == TN_OK) {
        assert_int_equal(model_hash(w, &hash, NULL), TN_OK);
    }
    tn_worker_free(w);
    return hash;
}

void trainrun_damage(const char *dir, uint64_t n)
{
    char path[TN_PATH_SIZE];
    tn_text text CLEANUP(tn_text_done) = {0};
    (void)snprintf(path, sizeof path, "%s/ckpt-%llu/sparse-0000-1023.tns", dir,
                   (unsigned long long)n);
    assert_int_equal(tn_file_read_all(path, 1 << 28, &text, NULL), TN_OK);
    text.data[200] = (char)(text.data[200] ^ 4);
    assert_int_equal(tn_file_replace(path, text.data, text.size, NULL), TN_OK);
}
