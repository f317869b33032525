/* test_trainstop.c - a signal ends a run at once, wherever it is, and costs nothing but time. */
#include "base/core/failpoint.h"
#include "base/thread/threads.h"
#include "support/test.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/ckptdir.h"
#include "train/checkpoint/run_state.h"
#include "train/trainrun.h"

#include <unistd.h>

#define ROWS "test/golden/data/rows.tsv"
#define TEST_ROWS "data.test=test/golden/data/rows.tsv"

/* Standard input of a run: more rows than a pipe holds, then silence. When the last of them could
 * be written somebody reads, and the signal comes. */
typedef struct feed {
    tn_text rows;
    int to, from, stdin_before;
    tn_thread *thread;
    atomic_bool stop;
} feed;

static tn_status write_rows(void *arg, tn_error *err)
{
    (void)err;
    feed *f = arg;
    const char *at = tn_text_str(&f->rows);
    for (size_t left = f->rows.size; left > 0;) {
        ssize_t n = write(f->to, at, left);
        assert_true(n > 0);
        at += n;
        left -= (size_t)n;
    }
    atomic_store(&f->stop, true);
    return TN_OK;
}

static void feed_begin(feed *f, uint32_t times)
{
    int ends[2];
    *f = (feed){.stdin_before = dup(STDIN_FILENO)};
    assert_int_equal(pipe(ends), 0);
    f->from = ends[0];
    f->to = ends[1];
    assert_int_equal(dup2(f->from, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(tn_file_read_all(ROWS, 1 << 20, &f->rows, NULL), TN_OK);
    const char *body = strchr(tn_text_str(&f->rows), '\n') + 1;
    size_t head = (size_t)(body - tn_text_str(&f->rows));
    size_t size = f->rows.size - head;
    for (uint32_t i = 1; i < times; i++) {
        tn_text again CLEANUP(tn_text_done) = {0};
        tn_text_add(&again, tn_text_str(&f->rows) + head, size);
        tn_text_add(&f->rows, tn_text_str(&again), again.size);
    }
    assert_int_equal(tn_thread_start(&f->thread, "rows", write_rows, f, NULL), TN_OK);
}

static void feed_end(feed *f)
{
    assert_int_equal(tn_thread_join(f->thread, NULL), TN_OK);
    assert_int_equal(dup2(f->stdin_before, STDIN_FILENO), STDIN_FILENO);
    (void)close(f->stdin_before);
    (void)close(f->from);
    (void)close(f->to);
    tn_text_done(&f->rows);
}

/* Evaluations matter to what is learned: rates fall and the end comes by them. */
#define PATIENCE                                                                                   \
    "train.stop={monitor: valid.auc, patience: 4}",                                                \
        "train.reduce_on_plateau={factor: 0.5, patience: 1}", "train.optimizer.lr=0.1"

/* Times that `words` stand in a file of `dir`. */
static uint32_t count_in(const char *dir, const char *file, const char *words)
{
    char path[TN_PATH_SIZE];
    tn_text text CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    assert_int_equal(tn_path_join(dir, file, path, NULL), TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 24, &text, NULL), TN_OK);
    for (const char *at = tn_text_str(&text); (at = strstr(at, words)) != NULL; at++) {
        n++;
    }
    return n;
}

/* Whether the manifest of the newest checkpoint, of at most nine, holds these words. */
static bool newest_says(const char *dir, const char *words)
{
    char name[64] = "ckpt-9";
    char path[TN_PATH_SIZE];
    size_t digit = strlen(name) - 1;
    for (name[digit] = '9'; name[digit] > '0'; name[digit]--) {
        assert_int_equal(tn_path_join(dir, name, path, NULL), TN_OK);
        if (tn_path_exists(path)) {
            return count_in(path, "MANIFEST", words) > 0;
        }
    }
    return false;
}

TEST(a_signal_within_an_evaluation_ends_it_and_it_is_done_again)
{
    static const struct {
        const char *every, *steps; /* when it is evaluated, when the run ends */
        const char *says;
        bool after_epoch;
    } cases[] = {
        {"eval.every=5steps", "train.max_steps=9007199254740992", "at step 5; saved as", false},
        {"eval.every=1epoch", "train.max_steps=9007199254740992", "at step 8; saved as", true},
        {"eval.every=never", "train.max_steps=11", "at step 11; saved as", false},
        {"eval.every=never", "train.max_steps=9007199254740992", "at step 24; saved as", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const whole[] = {cases[i].every, cases[i].steps, PATIENCE, NULL};
        const char *const stdin_too[] = {cases[i].every, cases[i].steps, PATIENCE, "data.valid=-",
                                         NULL};
        feed f;
        TMPDIR(dir);
        feed_begin(&f, 6);
        trainrun o = trainrun_do(dir, stdin_too, &f.stop);
        feed_end(&f);
        assert_int_equal(o.status, TN_E_STOPPED);
        fail_if(strstr(o.text, cases[i].says) == NULL, "case %zu: %s", i, o.text);
        bool owed = newest_says(dir, "\"eval_owed\":true");
        assert_true(owed != cases[i].after_epoch); /* else the epoch ends once more */
        o = trainrun_do(dir, whole, NULL);
        fail_if(o.status != TN_OK, "case %zu: %s", i, o.text);
        assert_true(o.has_valid);
        assert_int_equal(o.hash, trainrun_hash(whole));
    }
}

#define ONLY_LAST "eval.every=never", "checkpoint.every=1000steps"

/* What of a run directory begins so; *path: the last of them. */
static uint32_t count_named(const char *dir, const char *begin, char path[TN_PATH_SIZE])
{
    tn_text names CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    uint32_t found = 0;
    assert_int_equal(tn_dir_list(dir, &names, &n, NULL), TN_OK);
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n; i++, name += strlen(name) + 1) {
        if (strncmp(name, begin, strlen(begin)) == 0) {
            assert_int_equal(tn_path_join(dir, name, path, NULL), TN_OK);
            found++;
        }
    }
    return found;
}

/* Nothing of the last evaluation is told to the checkpoint, so that is written meanwhile. */
TEST(a_signal_within_the_last_evaluation_leaves_one_checkpoint)
{
    char path[TN_PATH_SIZE];
    feed f;
    TMPDIR(dir);
    feed_begin(&f, 6);
    trainrun o = trainrun_do(dir, (const char *const[]){ONLY_LAST, "data.valid=-", NULL}, &f.stop);
    feed_end(&f);
    assert_int_equal(o.status, TN_E_STOPPED);
    assert_non_null(strstr(o.text, "at step 24; saved as"));
    assert_int_equal(count_named(dir, "ckpt-", path), 1);
    assert_int_equal(count_named(dir, "ckpt-1.", path), 0);
    assert_false(newest_says(dir, "\"epoch\":3")); /* the epoch ends once more */
    o = trainrun_do(dir, (const char *const[]){ONLY_LAST, NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
    assert_true(o.has_valid);
    assert_int_equal(count_in(dir, "metrics.jsonl", "\"kind\":\"eval\""), 1);
    assert_int_equal(o.hash, trainrun_hash(NULL));
}

TEST(a_failed_last_evaluation_leaves_no_checkpoint)
{
    char path[TN_PATH_SIZE];
    TMPDIR(dir);
    const char *const opts[] = {ONLY_LAST, "data.valid=test/train/trainrun.h", NULL};
    trainrun o = trainrun_do(dir, opts, NULL);
    assert_int_equal(o.status, TN_E_DATA);
    assert_int_equal(count_named(dir, "ckpt-", path), 0);
}

/* A signal when the last evaluation is told of. */
static void stop_when_told(void *arg, const char *text)
{
    if (strstr(text, "auc") != NULL) {
        atomic_store((atomic_bool *)arg, true);
    }
}

TEST(a_signal_behind_the_last_evaluation_leaves_its_checkpoint)
{
    char path[TN_PATH_SIZE];
    atomic_bool stop = false;
    TMPDIR(dir);
    trainrun_watch(stop_when_told, &stop);
    trainrun o = trainrun_do(dir, (const char *const[]){ONLY_LAST, NULL}, &stop);
    trainrun_watch(NULL, NULL);
    assert_true(atomic_load(&stop));
    assert_int_equal(o.status, TN_E_STOPPED);
    assert_non_null(strstr(o.text, "at step 24; saved as"));
    assert_int_equal(count_named(dir, "ckpt-", path), 1);
    assert_int_equal(count_in(dir, "metrics.jsonl", "\"kind\":\"eval\""), 1);
    assert_int_equal(o.hash, trainrun_hash(NULL));
}

TEST(a_signal_within_the_last_test_leaves_only_that)
{
    feed f;
    TMPDIR(dir);
    feed_begin(&f, 6);
    trainrun o = trainrun_do(dir, (const char *const[]){PATIENCE, "data.test=-", NULL}, &f.stop);
    feed_end(&f);
    assert_int_equal(o.status, TN_E_STOPPED);
    assert_non_null(strstr(o.text, "saved as"));
    uint32_t hash = o.hash;
    assert_int_equal(hash, trainrun_hash((const char *const[]){PATIENCE, NULL}));
    tn_text before CLEANUP(tn_text_done) = {0};
    tn_text after CLEANUP(tn_text_done) = {0};
    uint32_t n = 0;
    assert_int_equal(tn_dir_list(dir, &before, &n, NULL), TN_OK);
    o = trainrun_do(dir, (const char *const[]){PATIENCE, TEST_ROWS, NULL}, NULL);
    assert_int_equal(o.status, TN_OK);
    assert_true(o.has_valid && o.has_test); /* the table is whole */
    assert_int_equal(o.hash, hash);
    assert_int_equal(tn_dir_list(dir, &after, &n, NULL), TN_OK);
    assert_int_equal(before.size, after.size); /* nothing was left to save */
}

TEST(data_that_do_not_come_do_not_keep_a_signal_waiting)
{
    for (uint32_t times = 1; times < 7; times += 5) { /* some rows, and more than a pipe holds */
        feed f;
        TMPDIR(dir);
        feed_begin(&f, times);
        const char *const opts[] = {"data.train=-", "data.valid=~", "train.epochs=1", NULL};
        trainrun o = trainrun_do(dir, opts, &f.stop);
        feed_end(&f);
        assert_int_equal(o.status, TN_E_STOPPED);
        assert_non_null(strstr(o.text, "stopped by a signal"));
    }
}

TEST(a_signal_at_any_time_changes_no_bit)
{
    const char *const opts[] = {PATIENCE, "eval.every=3steps", "eval.batch=8", NULL};
    uint32_t whole = trainrun_hash(opts);
    TMPDIR(dir);
    atomic_bool stop = true; /* before each beginning: the stopper is in a race with the steps */
    trainrun o;
    for (uint32_t i = 0; i < 3; i++) {
        o = trainrun_do(dir, opts, &stop);
        assert_int_equal(o.status, TN_E_STOPPED);
    }
    o = trainrun_do(dir, opts, NULL);
    assert_int_equal(o.status, TN_OK);
    assert_int_equal(o.hash, whole);
}

TEST(the_advice_fits_how_the_run_was_started)
{
    feed f;
    TMPDIR(dir);
    feed_begin(&f, 6);
    trainrun o = trainrun_do(
        dir, (const char *const[]){"data.test=-", "checkpoint.resume=never", NULL}, &f.stop);
    feed_end(&f);
    assert_int_equal(o.status, TN_E_STOPPED);
    assert_non_null(strstr(o.text, "\nhint: start it again with checkpoint.resume=auto"));
}

TEST(a_save_that_would_take_too_long_is_left_out)
{
    static const char *const opts[] = {PATIENCE, "eval.every=5steps", "checkpoint.every=1steps",
                                       "checkpoint.grace=0s", NULL};
    static const char *const stdin_too[] = {PATIENCE,
                                            "eval.every=5steps",
                                            "checkpoint.every=1steps",
                                            "checkpoint.grace=0s",
                                            "data.valid=-",
                                            NULL};
    feed f;
    TMPDIR(dir);
    feed_begin(&f, 6);
    trainrun o = trainrun_do(dir, stdin_too, &f.stop);
    feed_end(&f);
    assert_int_equal(o.status, TN_E_STOPPED);
    assert_non_null(strstr(o.text, "at step 5; not saved"));
    assert_non_null(strstr(o.text, "/ckpt-4' is the newest"));
    o = trainrun_do(dir, opts, NULL);
    assert_int_equal(o.status, TN_OK);
    assert_int_equal(o.hash, trainrun_hash(opts));
}

TEST(three_saves_may_not_fail_in_a_row)
{
    TMPDIR(dir);
    assert_int_equal(tn_failpoint_set("ckpt.begin:ENOSPC", NULL), TN_OK);
    trainrun o = trainrun_do(
        dir, (const char *const[]){"checkpoint.on_error=warn", "checkpoint.every=2steps", NULL},
        NULL);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    assert_int_equal(o.status, TN_E_IO);
    assert_int_equal(count_in(dir, "metrics.jsonl", "checkpoint not saved"), 2);
    uint32_t ends = 0; /* begun at step 6, told at once or a few steps later */
    for (uint32_t steps = 6; steps < 24; steps++) {
        char words[24];
        (void)snprintf(words, sizeof words, "\"steps\":%u,", steps);
        ends += count_in(dir, "summary.json", words);
    }
    assert_int_equal(ends, 1);
}

TEST(a_disk_without_room_is_told_before_the_first_step)
{
    TMPDIR(dir);
    assert_int_equal(tn_failpoint_set("disk.full:error", NULL), TN_OK);
    trainrun o = trainrun_do(dir, NULL, NULL);
    assert_int_equal(o.status, TN_E_IO);
    assert_non_null(strstr(o.text, "no room for any checkpoint in '"));
    assert_non_null(strstr(o.text, ": 0 bytes free, at least "));
    assert_int_equal(count_in(dir, "summary.json", "\"steps\":0,"), 1);
    const char *warn[] = {"checkpoint.on_error=warn", "train.max_steps=2", NULL};
    o = trainrun_do(dir, warn, NULL); /* it may have room later; at last it must */
    assert_non_null(strstr(o.text, "checkpoint not saved: no room for a checkpoint"));
    assert_int_equal(count_in(dir, "metrics.jsonl", "0.0 MB are free in"), 1);
    const char *never[] = {"checkpoint.every=never", NULL};
    o = trainrun_do(dir, never, NULL);
    assert_int_equal(o.status, TN_OK);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
}

TEST(a_run_that_goes_on_knows_its_table)
{
    char want[64];
    tn_manifest m = {0};
    uint64_t bytes[2] = {0}; /* dense; and rows */
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    TMPDIR(dir);
    const char *first[] = {"train.max_steps=8", NULL};
    assert_int_equal(trainrun_do(dir, first, NULL).status, TN_OK);
    PATH_IN(path, dir, "ckpt-1");
    assert_int_equal(tn_ckpt_read_manifest(path, arena, &m, NULL), TN_OK);
    for (uint32_t i = 0; i < m.n_files; i++) {
        bytes[0] += strcmp(m.file[i].type, "dense") == 0 ? m.file[i].bytes : 0;
        bytes[1] += strcmp(m.file[i].type, "sparse") == 0 ? m.file[i].bytes : 0;
    }
    assert_true(bytes[0] > 0 && bytes[1] > 1000);
    assert_int_equal(tn_failpoint_set("disk.full:error", NULL), TN_OK);
    trainrun o = trainrun_do(dir, NULL, NULL);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    assert_int_equal(o.status, TN_E_IO);
    (void)snprintf(want, sizeof want, "at least %llu needed",
                   (unsigned long long)bytes[0] + bytes[1]);
    assert_non_null(strstr(o.text, want));
}

/* A rate that ruins the model after a good start. */
#define RUINED                                                                                     \
    "train.epochs=30", "train.optimizer.lr=0.3", "train.stop={monitor: valid.auc, patience: 2}"

TEST(a_checkpoint_at_the_last_step_does_not_keep_the_best_model_away)
{
    uint32_t want = trainrun_hash((const char *const[]){RUINED, "eval.every=4steps", NULL});
    TMPDIR(dir);
    trainrun o = trainrun_do(
        dir, (const char *const[]){RUINED, "eval.every=4steps", "checkpoint.every=4steps", NULL},
        NULL);
    assert_int_equal(o.status, TN_OK);
    assert_true(count_in(dir, "metrics.jsonl", "restored the best model") > 0);
    assert_int_equal(o.hash, want);
}

/* Checkpoints of a run that has stopped early, or is about to. */
typedef struct kept {
    uint64_t newest;
    uint64_t best; /* the first of the step that the newest takes for the best: saved for that */
    uint64_t last; /* of the last step, before the newest; 0: none */
} kept;

static kept look(const char *dir)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    tn_ckpt_listing list;
    kept k = {0};
    tn_manifest newest = {0};
    uint64_t best_step = 0;
    assert_int_equal(tn_ckptdir_list(dir, arena, &list, NULL), TN_OK);
    for (uint32_t i = 0; i < list.n; i++) {
        char path[TN_PATH_SIZE];
        tn_manifest m = {0};
        (void)snprintf(path, sizeof path, "%s/ckpt-%llu", dir, (unsigned long long)list.ordinal[i]);
        assert_int_equal(tn_ckpt_read_manifest(path, arena, &m, NULL), TN_OK);
        if (i == 0) {
            newest = m;
            best_step = tn_run_sections_of(&m)->kept.patience.step;
            k.newest = m.ordinal;
        } else if (m.step == newest.step && k.last == 0) {
            k.last = m.ordinal;
        }
        if (m.step == best_step) {
            k.best = m.ordinal;
        }
    }
    return k;
}

TEST(early_stopping_leaves_the_best_model)
{
    static const char *const every[] = {"checkpoint.every=4steps", "checkpoint.every=100steps"};
    for (size_t i = 0; i < 2; i++) {
        tn_saved which;
        TMPDIR(dir);
        trainrun o = trainrun_do(
            dir, (const char *const[]){RUINED, "eval.every=4steps", every[i], NULL}, NULL);
        assert_int_equal(o.status, TN_OK);
        const kept k = look(dir);
        assert_true(k.best != 0 && k.last > k.best && k.newest > k.last);
        assert_true(o.hash != 0);
        assert_int_equal(o.hash, trainrun_hash_of(dir, k.best, &which));
        const uint64_t best_step = which.step;
        assert_int_not_equal(o.hash, trainrun_hash_of(dir, k.last, &which));
        assert_true(which.step > best_step);
    }
}

TEST(a_kill_before_the_best_model_is_saved_again_costs_nothing)
{
    static const char *const words[] = {RUINED, "eval.every=4steps", "checkpoint.keep=100", NULL};
    char newest[TN_PATH_SIZE];
    TMPDIR(dir);
    const trainrun whole = trainrun_do(dir, words, NULL);
    assert_int_equal(whole.status, TN_OK);
    const kept k = look(dir);
    (void)snprintf(newest, sizeof newest, "%s/ckpt-%llu", dir, (unsigned long long)k.newest);
    assert_int_equal(tn_remove_tree(newest, NULL),
                     TN_OK); /* the last one, which it follows, stays */
    for (int again = 0; again < 2; again++) {
        const trainrun o = trainrun_do(dir, words, NULL);
        assert_int_equal(o.status, TN_OK);
        assert_int_equal(o.hash, whole.hash);
        assert_int_equal(look(dir).newest, k.newest); /* and is not saved each time */
    }
}

TEST(a_signal_leaves_the_best_model_to_the_next_command)
{
    static const char *const words[] = {RUINED, "eval.every=4steps", "checkpoint.keep=100", NULL};
    char newest[TN_PATH_SIZE];
    TMPDIR(dir);
    const trainrun whole = trainrun_do(dir, words, NULL);
    assert_int_equal(whole.status, TN_OK);
    const kept k = look(dir);
    (void)snprintf(newest, sizeof newest, "%s/ckpt-%llu", dir, (unsigned long long)k.newest);
    assert_int_equal(tn_remove_tree(newest, NULL), TN_OK);
    const uint64_t last = look(dir).newest;
    const atomic_bool stop = true;
    assert_int_equal(trainrun_do(dir, words, &stop).status, TN_E_STOPPED);
    assert_int_equal(look(dir).newest, last); /* nothing is read back, nothing saved */
    const trainrun o = trainrun_do(dir, words, NULL);
    assert_int_equal(o.status, TN_OK);
    assert_int_equal(o.hash, whole.hash);
    assert_int_equal(look(dir).newest, k.newest);
}

/* What summary.json says of data.test: figures of the model that was in memory at the end. */
static void figures(const char *dir, tn_text *out)
{
    char path[TN_PATH_SIZE];
    tn_text all CLEANUP(tn_text_done) = {0};
    assert_int_equal(tn_path_join(dir, "summary.json", path, NULL), TN_OK);
    assert_int_equal(tn_file_read_all(path, 1 << 20, &all, NULL), TN_OK);
    const char *from = strstr(tn_text_str(&all), "\"test\":{");
    assert_non_null(from);
    tn_text_add(out, from, (size_t)(strchr(from, '}') - from));
}

/* What happens to the best checkpoint when the run has just decided to stop. */
typedef struct mishap {
    const char *dir;
    bool unreadable; /* else its bytes are wrong */
    uint64_t best;
} mishap;

static void befall(void *arg, const char *line)
{
    mishap *m = arg;
    if (strstr(line, "in a row: stopping") == NULL) {
        return;
    }
    m->best = look(m->dir).best;
    if (m->unreadable) {
        char path[TN_PATH_SIZE];
        (void)snprintf(path, sizeof path, "%s/ckpt-%llu/MANIFEST", m->dir,
                       (unsigned long long)m->best);
        assert_int_equal(tn_remove_file(path, NULL), TN_OK);
        assert_int_equal(tn_dir_make(path, NULL), TN_OK);
    } else {
        trainrun_damage(m->dir, m->best);
    }
}

TEST(a_best_model_that_cannot_be_read_back_costs_no_other)
{
    static const char *const last[] = {
        RUINED,    "eval.every=4steps",       "checkpoint.every=4steps",
        TEST_ROWS, "train.stop.restore=last", NULL};
    char by_choice[256];
    tn_text test CLEANUP(tn_text_done) = {0};
    tn_tmpdir_make(by_choice);
    const uint32_t want = trainrun_do(by_choice, last, NULL).hash;
    assert_true(want != 0);
    figures(by_choice, &test);
    tn_tmpdir_remove(by_choice);
    for (int i = 0; i < 2; i++) {
        char dir[256];
        char name[40];
        char path[TN_PATH_SIZE];
        mishap m = {.dir = dir, .unreadable = i == 1};
        tn_tmpdir_make(dir);
        trainrun_watch(befall, &m);
        trainrun o = trainrun_do(dir,
                                 (const char *const[]){RUINED, "eval.every=4steps",
                                                       "checkpoint.every=4steps", TEST_ROWS, NULL},
                                 NULL);
        trainrun_watch(NULL, NULL);
        fail_if(o.status != TN_OK || o.hash != want, "mishap %d: hash %08x: %s", i, o.hash, o.text);
        assert_int_equal(count_in(dir, "metrics.jsonl", "cannot be read back: "), 1);
        assert_int_equal(count_in(dir, "metrics.jsonl", ": the last one stays"), 1);
        tn_text got = {0};
        figures(dir, &got);
        assert_string_equal(tn_text_str(&got), tn_text_str(&test));
        tn_text_done(&got);
        (void)snprintf(name, sizeof name, "ckpt-%llu%s", (unsigned long long)m.best,
                       m.unreadable ? "" : ".damaged");
        assert_int_equal(tn_path_join(dir, name, path, NULL), TN_OK);
        assert_true(tn_path_exists(path));
        tn_tmpdir_remove(dir);
    }
}

TEST(a_best_model_that_cannot_be_found_is_not_pruned)
{
    static const char *const first[] = {RUINED,
                                        "eval.every=4steps",
                                        "checkpoint.every=4steps",
                                        "train.max_steps=20",
                                        "train.stop.restore=last",
                                        NULL};
    static const char *const rest[] = {RUINED, "eval.every=4steps", "checkpoint.every=4steps",
                                       "checkpoint.keep=1", NULL};
    char path[TN_PATH_SIZE];
    TMPDIR(dir);
    const char *whole[] = {RUINED, "eval.every=4steps", NULL};
    const uint32_t want = trainrun_hash(whole);
    assert_int_equal(trainrun_do(dir, first, NULL).status, TN_OK);
    const kept k = look(dir);
    assert_true(k.best != 0 && k.best < k.newest);
    (void)snprintf(path, sizeof path, "%s/ckpt-%llu/MANIFEST", dir, (unsigned long long)k.best);
    PATH_IN(aside, dir, "aside");
    assert_int_equal(tn_rename(path, aside, NULL), TN_OK);
    assert_int_equal(tn_dir_make(path, NULL), TN_OK);
    assert_int_equal(trainrun_do(dir, rest, NULL).status, TN_E_IO);
    assert_int_equal(tn_remove_tree(path, NULL), TN_OK);
    assert_int_equal(tn_rename(aside, path, NULL), TN_OK);
    trainrun o = trainrun_do(dir, rest, NULL);
    assert_int_equal(o.status, TN_OK);
    assert_int_equal(o.hash, want);
}

TEST(the_last_checkpoint_must_be_saved_whatever_is_allowed_for)
{
    TMPDIR(dir);
    assert_int_equal(tn_failpoint_set("ckpt.begin:ENOSPC", NULL), TN_OK);
    trainrun o = trainrun_do(dir, (const char *const[]){"checkpoint.on_error=warn", NULL}, NULL);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    assert_int_equal(o.status, TN_E_IO);
    assert_non_null(strstr(o.text, "checkpoint not saved"));
    assert_int_equal(o.hash, 0);
}

TEST(a_best_model_that_was_not_saved_is_not_mistaken_for_another)
{
    static const char *const opts[] = {RUINED, "eval.every=4steps", "checkpoint.on_error=warn",
                                       "checkpoint.every=100steps", NULL};
    char dir[256];
    char rule[64];
    tn_tmpdir_make(dir);
    assert_int_equal(trainrun_do(dir, opts, NULL).status, TN_OK);
    uint32_t bests = count_in(dir, "metrics.jsonl", "\"best\":true");
    assert_true(bests > 0 && count_in(dir, "metrics.jsonl", "restored the best model") > 0);
    tn_tmpdir_remove(dir);
    (void)snprintf(rule, sizeof rule, "ckpt.begin#%u:ENOSPC", bests); /* the last of them */
    tn_tmpdir_make(dir);
    assert_int_equal(tn_failpoint_set(rule, NULL), TN_OK);
    trainrun o = trainrun_do(dir, opts, NULL);
    assert_int_equal(tn_failpoint_set(NULL, NULL), TN_OK);
    assert_int_equal(o.status, TN_OK);
    assert_int_equal(count_in(dir, "metrics.jsonl", "checkpoint not saved"), 1);
    assert_int_equal(count_in(dir, "metrics.jsonl", "was not kept: the last one stays"), 1);
    assert_int_equal(count_in(dir, "metrics.jsonl", "restored the best model"), 0);
    assert_int_equal(count_in(dir, "summary.json", "\"warnings\":[\"checkpoint not saved: "), 1);
    tn_tmpdir_remove(dir);
}
