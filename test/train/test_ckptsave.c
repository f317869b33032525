/* test_ckptsave.c - checkpoints that are written while training goes on, and deltas. */
#include "base/core/clock.h"
#include "base/core/failpoint.h"
#include "config/diag.h"
#include "metrics/metrics.h"
#include "nn/graph/op.h"
#include "support/test.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/ckpt_moment.h"
#include "train/checkpoint/ckptfiles.h"
#include "train/checkpoint/run_state.h"
#include "train/config/days.h"
#include "train/config/run.h"
#include "train/golden.h"
#include "train/model_hash.h"
#include "train/step/model_plan.h"
#include "train/step/step_prefetch.h"
#include "train/step/watch.h"
#include "train/step/worker.h"
#include "train/toyckpt.h"
#include "train/trainrun.h"

static bool same_file(const char *a, const char *b)
{
    tn_text text[2] = {{0}};
    assert_int_equal(tn_file_read_all(a, 1 << 28, &text[0], NULL), TN_OK);
    assert_int_equal(tn_file_read_all(b, 1 << 28, &text[1], NULL), TN_OK);
    bool same =
        text[0].size == text[1].size && memcmp(text[0].data, text[1].data, text[0].size) == 0;
    tn_text_done(&text[0]);
    tn_text_done(&text[1]);
    return same;
}

/* Every file of two folders. */
static void assert_same_folder(const char *a, const char *b)
{
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(a, &names, &n, NULL), TN_OK);
    assert_int_equal(n, 6);
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n; i++) {
        char path[2][TN_PATH_SIZE];
        assert_int_equal(tn_path_join(a, name, path[0], NULL), TN_OK);
        assert_int_equal(tn_path_join(b, name, path[1], NULL), TN_OK);
        fail_if(!same_file(path[0], path[1]), "'%s' differs", name);
        name += strlen(name) + 1;
    }
}

/* ---- the same bytes ---- */

#define HISTOGRAM_BYTES (2UL * TN_MOMENT_BINS * sizeof(uint64_t))

/* What the two checkpoints of `dir`, a full one and perhaps a delta on it, tell of the epoch; a few
 * hundred rows take no megabytes. */
static void assert_metrics(const char *dir, const uint64_t *want)
{
    tn_metrics *m = NULL;
    assert_int_equal(tn_metrics_new(&m, &(tn_metrics_opts){0}, NULL), TN_OK);
    for (uint32_t n = 1; n <= 2; n++) {
        char path[TN_PATH_SIZE];
        tn_text file = {0};
        (void)snprintf(path, sizeof path, "%s/ckpt-%u/metrics.safetensors", dir, n);
        assert_int_equal(tn_file_read_all(path, 8192, &file, NULL), TN_OK);
        tn_text_done(&file);
        assert_int_equal(tn_ckpt_read_metrics(path, m, NULL), TN_OK);
    }
    assert_memory_equal(tn_metrics_histogram(m), want, HISTOGRAM_BYTES);
    tn_metrics_free(m);
}

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* One step; its rows go to the metrics, its place to the state. */
static void learn_one(tn_worker *w, tn_step_prefetch *feeder, tn_metrics *metrics,
                      tn_run_state *state)
{
    tn_step *step = NULL;
    tn_learned learned;
    assert_int_equal(tn_step_prefetch_next(feeder, &step, NULL), TN_OK);
    assert_int_equal(tn_step_learn(w, step, 1, &learned, NULL), TN_OK);
    tn_scored rows = {.n = step->batch->rows,
                      .logit = w->train_logit->val,
                      .label = step->batch->label,
                      .weight = step->batch->weight};
    assert_int_equal(tn_metrics_add(metrics, &rows, NULL), TN_OK);
    state->progress = step->batch->progress;
    state->samples += step->batch->rows;
    state->steps = w->steps;
    tn_step_prefetch_recycle(feeder, step);
}

/* A run of a few steps, saved at the 4th and at the 6th; ckpt-1 and ckpt-2 in `dir`, the former
 * perhaps removed before the latter is begun. */
static void run_and_save(const char *dir, const char *delta_every, bool behind, bool removed,
                         uint32_t *hash)
{
    char where[300];
    char deltas[64];
    (void)snprintf(where, sizeof where, "run.dir=%s", dir);
    (void)snprintf(deltas, sizeof deltas, "checkpoint.delta_every=%s", delta_every);
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    const tn_model_plan *plan =
        golden_plan(arena, "deepfm_bn", (const char *const[]){where, deltas, NULL});
    tn_diag diag = {0};
    tn_binder b = {.arena = arena, .diag = &diag};
    tn_run_text text = {.config = "test\n", .hash = HASH};
    tn_worker *w = NULL;
    tn_checkpoints *c = NULL;
    tn_metrics *metrics = NULL;
    tn_step_prefetch *feeder = NULL;
    tn_reader_opts ropts = {.paths = plan->run->data.train, .batch_rows = 16, .training = true};
    uint64_t *at_six = tn_alloc(1, HISTOGRAM_BYTES, "a histogram");
    assert_int_equal(tn_metrics_new(&metrics, &(tn_metrics_opts){0}, NULL), TN_OK);
    assert_int_equal(tn_worker_new(&w, plan, &(tn_worker_opts){.training = true}, &b, NULL), TN_OK);
    assert_int_equal(tn_checkpoints_open(&c, plan, &text, NULL), TN_OK);
    tn_step_prefetch_opts fopts = {.plan = plan, .team = w->team, .ahead = 2, .training = true};
    assert_int_equal(tn_step_prefetch_open(&feeder, &fopts, &ropts, NULL), TN_OK);
    tn_run_state state = {.data = tn_epoch_parts_of(tn_step_prefetch_reader(feeder), NULL, arena)};
    tn_saved saved;
    for (uint32_t i = 1; i <= 9; i++) {
        if (i == 5) { /* as where an epoch ends: cells are 0 again */
            tn_metrics_clear(metrics);
        }
        learn_one(w, feeder, metrics, &state);
        tn_ckpt_want want = {.state = &state, .metrics = metrics, .delta = true};
        if (behind && (i == 6 || i == 9)) {
            assert_int_equal(tn_checkpoints_end(c, &saved, NULL), TN_OK);
        }
        if (i == 6) {
            memcpy(at_six, tn_metrics_histogram(metrics), HISTOGRAM_BYTES);
        }
        if (i == 5 && removed) {
            PATH_IN(path, dir, "ckpt-1");
            assert_int_equal(tn_remove_tree(path, NULL), TN_OK);
        }
        if (i == 4 || i == 6) {
            assert_int_equal(tn_checkpoints_begin(c, w, &want, NULL), TN_OK);
            assert_int_equal(behind ? TN_OK : tn_checkpoints_end(c, &saved, NULL), TN_OK);
        }
    }
    assert_int_equal(saved.step, 6);
    assert_int_equal(saved.ordinal, 2);
    assert_int_equal(saved.deltas, strcmp(delta_every, "~") != 0 && !removed);
    if (!removed) {
        assert_metrics(dir, at_six);
    }
    tn_free(at_six);
    assert_int_equal(model_hash(w, hash, NULL), TN_OK);
    tn_step_prefetch_close(feeder);
    tn_checkpoints_close(c);
    tn_metrics_free(metrics);
    tn_worker_free(w);
}

TEST(what_is_written_behind_training_has_the_bytes_of_what_stops_it)
{
    const char *deltas[] = {"~", "1step"};
    for (uint32_t i = 0; i < 2; i++) {
        char dir[2][256];
        uint32_t hash[2];
        tn_tmpdir_make(dir[0]);
        tn_tmpdir_make(dir[1]);
        run_and_save(dir[0], deltas[i], false, false, &hash[0]);
        run_and_save(dir[1], deltas[i], true, false, &hash[1]);
        assert_int_equal(hash[0], hash[1]);
        for (uint32_t n = 1; n <= 2; n++) {
            char path[2][TN_PATH_SIZE];
            (void)snprintf(path[0], TN_PATH_SIZE, "%s/ckpt-%u", dir[0], n);
            (void)snprintf(path[1], TN_PATH_SIZE, "%s/ckpt-%u", dir[1], n);
            assert_same_folder(path[0], path[1]);
        }
        tn_tmpdir_remove(dir[0]);
        tn_tmpdir_remove(dir[1]);
    }
}

TEST(a_checkpoint_that_somebody_removes_is_no_base_of_a_delta)
{
    uint32_t hash;
    tn_manifest m = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    TMPDIR(dir);
    run_and_save(dir, "1step", false, true, &hash);
    PATH_IN(path, dir, "ckpt-2");
    assert_int_equal(tn_ckpt_read_manifest(path, arena, &m, NULL), TN_OK);
    assert_int_equal(m.base, 0);
}

/* ---- days ---- */

static tn_status check_day(void *arg, const tn_row_view *row, tn_error *err)
{
    const uint32_t *day = arg;
    return row->last_seen == *day ? TN_OK
                                  : tn_fail(err, TN_E_DATA, "day %u of a row", row->last_seen);
}

/* All rows of ckpt-1, as they are loaded; and what its manifest says. */
static void assert_days(const char *dir, uint32_t day)
{
    tn_saved which;
    tn_error err = {0};
    tn_manifest m = {0};
    tn_worker *w = NULL;
    tn_diag diag = {0};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    tn_binder b = {.arena = arena, .diag = &diag};
    const tn_model_plan *plan =
        golden_plan(arena, "deepfm_bn", (const char *const[]){"model.dropout=0.2", NULL});
    PATH_IN(path, dir, "ckpt-1");
    assert_int_equal(tn_ckpt_read_manifest(path, arena, &m, &err), TN_OK);
    assert_int_equal(m.clock, day);
    assert_int_equal(tn_worker_new(&w, plan, &(tn_worker_opts){.training = true}, &b, &err), TN_OK);
    assert_int_equal(tn_checkpoint_load(path, w, &which, &err), TN_OK);
    assert_true(tn_table_rows(w->shard.table) > 20);
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        fail_if(tn_table_walk(w->shard.table, p, check_day, &day, &err) != TN_OK, "%s, not %u",
                err.text, day);
    }
    tn_worker_free(w);
}

TEST(rows_hold_the_day_of_the_configuration)
{
    static const struct {
        const char *option;
        uint32_t day;
    } cases[] = {{"run.day=~", 0},
                 {"run.day=2026-11-07", 20764},
                 {"run.day=2024-02-29", 19782},
                 {"run.day=2100-03-01", 47541}};
    const uint32_t before = tn_wall_day();
    char dir[256];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_tmpdir_make(dir);
        const char *opts[] = {"train.max_steps=4", "data.valid=~", cases[i].option, NULL};
        assert_int_equal(trainrun_do(dir, opts, NULL).status, TN_OK);
        assert_days(dir, cases[i].day);
        tn_tmpdir_remove(dir);
    }
    tn_tmpdir_make(dir);
    const char *today[] = {"train.max_steps=4", "data.valid=~", "run.day=today", NULL};
    assert_int_equal(trainrun_do(dir, today, NULL).status, TN_OK);
    if (tn_wall_day() == before) { /* not at midnight */
        assert_days(dir, before);
    }
    tn_tmpdir_remove(dir);
}

TEST(what_is_no_day_is_refused)
{
    static const char *const bad[] = {"",           "tomorrow",   "2026-11-7",  "2026-13-01",
                                      "2025-02-29", "2026-00-10", "2026-04-31", "1969-12-31",
                                      "2026/11/07", "2026-11-00", "+026-11-07", "9999-12-31 "};
    uint32_t day = 7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fail_if(tn_day_read(bad[i], &day), "'%s' is day %u", bad[i], day);
    }
    assert_true(tn_day_read("1970-01-01", &day) && day == 0);
    assert_true(tn_day_read("2000-12-31", &day) && day == 11322);
    assert_true(tn_day_read("9999-12-31", &day) && day == TN_DAY_MAX);
}

/* ---- deltas ---- */

#define DELTAS "checkpoint.every=7steps", "checkpoint.delta_every=1step"

TEST(a_delta_loads_to_what_a_full_one_of_the_same_step_does)
{
    char dir[2][256];
    tn_tmpdir_make(dir[0]);
    tn_tmpdir_make(dir[1]);
    const char *full[] = {"checkpoint.every=1step", "data.valid=~", NULL};
    const char *deltas[] = {DELTAS, "data.valid=~", NULL};
    assert_int_equal(trainrun_do(dir[0], full, NULL).status, TN_OK);
    trainrun o = trainrun_do(dir[1], deltas, NULL);
    assert_int_equal(o.status, TN_OK);
    uint32_t n_deltas = 0;
    for (uint64_t n = 1; n <= 24; n++) {
        tn_saved which[2];
        uint32_t hash = trainrun_hash_of(dir[0], n, &which[0]);
        assert_true(hash != 0);
        assert_int_equal(hash, trainrun_hash_of(dir[1], n, &which[1]));
        assert_int_equal(which[0].step, which[1].step);
        assert_int_equal(which[0].deltas, 0);
        n_deltas += which[1].deltas > 0;
    }
    assert_int_equal(n_deltas, 20); /* all but the first, the 7th, 14th, 21st */
    tn_tmpdir_remove(dir[0]);
    tn_tmpdir_remove(dir[1]);
}

TEST(a_run_that_goes_on_from_a_delta_ends_with_the_same_bits)
{
    uint32_t want = trainrun_hash(NULL);
    for (uint32_t steps = 1; steps < 24; steps += 10) {
        char until[40];
        TMPDIR(dir);
        (void)snprintf(until, sizeof until, "train.max_steps=%u", steps);
        const char *first[] = {DELTAS, until, "checkpoint.keep=1", NULL};
        const char *rest[] = {DELTAS, "checkpoint.keep=2", NULL};
        assert_int_equal(trainrun_do(dir, first, NULL).status, TN_OK);
        trainrun o = trainrun_do(dir, rest, NULL);
        assert_int_equal(o.status, TN_OK);
        assert_int_equal(o.hash, want);
    }
}

TEST(a_delta_that_is_damaged_or_stands_on_damage_is_passed_over)
{
    uint32_t want = trainrun_hash(NULL);
    const uint64_t damaged[] = {9, 8, 7}; /* the newest delta; the one below; the full one */
    for (uint32_t i = 0; i < 3; i++) {
        tn_saved which;
        TMPDIR(dir);
        /* 1 full, 2 .. 6, 7 full, 8, 9, 10: the end, full */
        const char *first[] = {DELTAS, "train.max_steps=10", "data.valid=~", NULL};
        const char *rest[] = {DELTAS, NULL};
        assert_int_equal(trainrun_do(dir, first, NULL).status, TN_OK);
        trainrun_damage(dir, 10);
        trainrun_damage(dir, damaged[i]);
        assert_int_equal(trainrun_hash_of(dir, 9, &which), 0);
        assert_true(trainrun_hash_of(dir, 6, &which) != 0);
        trainrun o = trainrun_do(dir, rest, NULL);
        assert_int_equal(o.status, TN_OK);
        assert_int_equal(o.hash, want);
    }
}

TEST(a_run_ends_before_one_that_is_newer_or_not_to_be_read)
{
    static const char *const keep_one[] = {"checkpoint.every=4steps", "checkpoint.keep=1",
                                           "data.valid=~", NULL};
    tn_saved which;
    TMPDIR(dir);
    const char *first[] = {"checkpoint.every=4steps", "train.max_steps=8", "data.valid=~", NULL};
    assert_int_equal(trainrun_do(dir, first, NULL).status, TN_OK);
    const uint32_t want = trainrun_hash_of(dir, 2, &which);
    PATH_IN(manifest, dir, "ckpt-2/MANIFEST");
    PATH_IN(aside, dir, "aside");
    assert_int_equal(tn_rename(manifest, aside, NULL), TN_OK);
    assert_int_equal(tn_dir_make(manifest, NULL), TN_OK); /* cannot be read */
    trainrun o = trainrun_do(dir, keep_one, NULL);
    assert_int_equal(o.status, TN_E_IO);
    assert_non_null(strstr(o.text, "cannot read '"));
    assert_non_null(strstr(o.text, "\nhint: nothing was removed"));
    assert_int_equal(tn_remove_tree(manifest, NULL), TN_OK);
    assert_int_equal(tn_rename(aside, manifest, NULL), TN_OK);
    assert_int_equal(trainrun_hash_of(dir, 2, &which), want); /* nothing was lost by waiting */
    toy_make_newer(manifest);
    o = trainrun_do(dir, keep_one, NULL);
    assert_int_equal(o.status, TN_E_CKPT);
    assert_non_null(strstr(o.text, "/ckpt-2/MANIFEST' was written by a newer version\nhint: "));
    assert_true(trainrun_hash_of(dir, 1, &which) != 0);
    assert_true(tn_path_exists(manifest));
}

/* Checkpoints that are there, the newest first; in the arena. */
static const uint64_t *present_in(const char *dir, tn_arena *arena, uint32_t *n)
{
    tn_ckpt_listing list;
    assert_int_equal(tn_ckptdir_list(dir, arena, &list, NULL), TN_OK);
    *n = list.n;
    return list.ordinal;
}

/* Every checkpoint of `dir` loads to what that of the same step does in a run that saves all. */
static void assert_all_load(const char *dir, const char *whole, uint32_t want)
{
    uint32_t n = 0;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    const uint64_t *list = present_in(dir, arena, &n);
    assert_int_equal(n, want);
    for (uint32_t i = 0; i < n; i++) {
        tn_saved which = {0};
        tn_saved other = {0};
        const uint32_t hash = trainrun_hash_of(dir, list[i], &which);
        fail_if(hash == 0 || hash != trainrun_hash_of(whole, which.step, &other),
                "ckpt-%u, step %u: other rows", (unsigned)list[i], (unsigned)which.step);
        assert_int_equal(other.step, which.step);
    }
}

TEST(pruning_counts_what_loads)
{
    TMPDIR(dir);
    TMPDIR(whole);
    const char *all[] = {"checkpoint.every=1step", "data.valid=~", NULL};
    const char *first[] = {"checkpoint.every=3steps", "train.max_steps=9", "data.valid=~", NULL};
    const char *rest[] = {"checkpoint.every=3steps", "train.max_steps=15", "data.valid=~",
                          "checkpoint.keep=2", NULL};
    const char *last[] = {"checkpoint.every=100steps", "data.valid=~", "checkpoint.keep=2", NULL};
    assert_int_equal(trainrun_do(whole, all, NULL).status, TN_OK);
    assert_int_equal(trainrun_do(dir, first, NULL).status, TN_OK);
    trainrun_damage(dir, 3);
    assert_int_equal(trainrun_do(dir, rest, NULL).status, TN_OK);
    assert_all_load(dir, whole, 2);
    PATH_IN(aside, dir, "ckpt-3.damaged");
    assert_true(tn_path_exists(aside));
    uint32_t n = 0;
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 12);
    const uint64_t *list = present_in(dir, arena, &n);
    trainrun_damage(dir, list[0]); /* the next fault, and there is one to go on from */
    trainrun o = trainrun_do(dir, last, NULL);
    assert_int_equal(o.status, TN_OK);
    tn_saved which;
    assert_int_equal(o.hash, trainrun_hash_of(whole, 24, &which));
    assert_all_load(dir, whole, 2);
}

/* ---- failures ---- */

TEST(a_delta_never_stands_on_one_that_failed)
{
    static const char *const points[] = {"ckpt.begin#3:ENOSPC", "ckpt.before_manifest#3:ENOSPC",
                                         "ckpt.before_rename#3:ENOSPC"};
    TMPDIR(whole);
    const char *all[] = {"checkpoint.every=1step", "data.valid=~", "train.max_steps=6", NULL};
    const char *deltas[] = {
        "checkpoint.every=100steps", "checkpoint.delta_every=1step", "data.valid=~",
        "train.max_steps=6",         "checkpoint.on_error=warn",     NULL};
    assert_int_equal(trainrun_do(whole, all, NULL).status, TN_OK);
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        TMPDIR(dir);
        assert_int_equal(tn_failpoint_set(points[i], NULL), TN_OK);
        trainrun o = trainrun_do(dir, deltas, NULL);
        assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
        assert_int_equal(o.status, TN_OK);
        assert_all_load(dir, whole, 5); /* of steps 1, 2, 4, 5 and the last, full; not of 3 */
    }
}

TEST(saves_may_fail_now_and_then)
{
    TMPDIR(dir);
    const char *opts[] = {"checkpoint.every=2steps", "checkpoint.on_error=warn", "data.valid=~",
                          NULL};
    assert_int_equal(tn_failpoint_set("ckpt.before_rename#2:EIO,ckpt.before_rename#3:EIO,"
                                      "ckpt.before_rename#5:EIO,ckpt.before_rename#6:EIO,"
                                      "ckpt.before_rename#8:EIO",
                                      NULL),
                     TN_OK);
    trainrun o = trainrun_do(dir, opts, NULL);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    assert_ok(o.status, o.text);
    const char *plain[] = {"data.valid=~", NULL};
    assert_int_equal(o.hash, trainrun_hash(plain));
}

TEST(a_disk_that_fails_once_is_asked_again)
{
    char dir[256];
    uint32_t want = trainrun_hash(NULL);
    for (uint32_t nth = 3; nth < 60; nth += 19) {
        char rule[40];
        (void)snprintf(rule, sizeof rule, "io.fsync#%u:EIO", nth);
        tn_tmpdir_make(dir);
        assert_int_equal(tn_failpoint_set(rule, NULL), TN_OK);
        trainrun o = trainrun_do(dir, (const char *const[]){DELTAS, NULL}, NULL);
        assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
        if (o.status == TN_OK) {
            assert_int_equal(o.hash, want);
        } else {
            assert_int_equal(o.status, TN_E_IO);
        }
        tn_tmpdir_remove(dir);
    }
}

TEST(a_disk_that_stays_broken_ends_the_run_between_two_steps)
{
    TMPDIR(dir);
    assert_int_equal(tn_failpoint_set("ckpt.before_manifest:ENOSPC", NULL), TN_OK);
    trainrun o = trainrun_do(dir, (const char *const[]){"checkpoint.every=2steps", NULL}, NULL);
    assert_int_equal(o.status, TN_E_IO);
    assert_non_null(strstr(o.text, "checkpoint not saved: "));
    const char *warn[] = {"checkpoint.every=8steps", "checkpoint.on_error=warn", NULL};
    o = trainrun_do(dir, warn, NULL); /* the last one must not fail */
    assert_int_equal(o.status, TN_E_IO);
    assert_int_equal(tn_failpoint_set("ckpt.before_manifest#2+:ENOSPC", NULL), TN_OK);
    o = trainrun_do(dir, (const char *const[]){DELTAS, "train.max_steps=1", NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    o = trainrun_do(dir, (const char *const[]){DELTAS, NULL}, NULL);
    assert_int_equal(o.hash, trainrun_hash(NULL));
}

#ifdef __SANITIZE_THREAD__
static void leave_out_most(void)
{
    cmocka_set_skip_filter("a_*"); /* a run takes seconds: it sees the first, a thread that saves */
}

BEFORE(leave_out_most);
#endif
