/* test_memory_cap.c - a run whose table comes to its cap saves and ends, and goes on with more. */
#include "train/step/memory_cap.h"

#include "support/test.h"
#include "train/grouprun.h"
#include "train/trainrun.h"

enum { ROWS = 1280 };

static char dir[256], run_dir[300];
static char data[700]; /* data.train=.. */

/* Two files in which every row has keys of its own. */
static void write_rows(void)
{
    char path[2][300];
    for (uint32_t f = 0; f < 2; f++) {
        tn_text text CLEANUP(tn_text_done) = {0};
        tn_text_adds(&text,
                     "id\tprice\tlabel\tweight\tuser\titem\thist\ttags\ttags_x\tcity\trare\n");
        for (uint32_t i = f; i < ROWS; i += 2) {
            tn_text_addf(&text, "r%u\t1\t%u\t\t%u\t%u\t%u\t\t\t%u\t%u\n", i, i % 3 == 0, i, 7 * i,
                         i % 9, i % 5, 3 * i);
        }
        (void)snprintf(path[f], sizeof path[f], "%s/%u.tsv", dir, f);
        assert_int_equal(tn_file_replace(path[f], text.data, text.size, NULL), TN_OK);
    }
    (void)snprintf(data, sizeof data, "data.train=[%s,%s]", path[0], path[1]);
}

SET_UP
{
    tn_tmpdir_make(dir);
    write_rows();
    (void)snprintf(run_dir, sizeof run_dir, "%s/run", dir);
}

TEAR_DOWN
{
    tn_tmpdir_remove(dir);
}

/* N of ".. at step N: .."; 0: it says none. */
static uint64_t step_of(const char *text)
{
    static const char words[] = "the table of rows is full at step ";
    const char *at = strstr(text, words);
    return at != NULL ? strtoull(at + sizeof words - 1, NULL, 10) : 0;
}

/* A cap at which the run stops after some steps, but not at its end; run_dir is of that run. */
static uint64_t find_cap(char option[64], trainrun *out)
{
    const char *const more[] = {option, data, NULL};
    for (uint64_t cap = 150000; cap < 4000000; cap += cap / 4) {
        (void)snprintf(option, 64, "embedding.memory=%llukB", (unsigned long long)cap / 1000);
        *out = trainrun_do(run_dir, more, NULL);
        if (out->status == TN_OK) {
            break;
        }
        assert_int_equal(out->status, TN_E_MEMORY);
        if (step_of(out->text) > 2) {
            return cap;
        }
        tn_tmpdir_remove(run_dir);
    }
    fail_msg("no cap stops the run on its way: %s", out->text);
    return 0;
}

static bool has_checkpoint(const char *name)
{
    char path[400];
    (void)snprintf(path, sizeof path, "%s/%s", run_dir, name);
    return tn_path_exists(path);
}

TEST(a_full_table_saves_and_ends_and_goes_on_with_more)
{
    char option[64];
    trainrun first;
    const uint64_t cap = find_cap(option, &first);
    const uint64_t step = step_of(first.text);
    const char *const same[] = {option, data, NULL};
    const char *const more[] = {"embedding.memory=100MB", data, NULL};
    assert_int_not_equal(first.hash, 0); /* there is a checkpoint */
    assert_non_null(strstr(first.text, "/ckpt-1'\n"));
    assert_non_null(strstr(first.text, " rows "));
    assert_non_null(strstr(first.text, "\nhint: "));

    /* With the same cap: at once, with nothing learned and nothing saved. */
    const trainrun again = trainrun_do(run_dir, same, NULL);
    assert_int_equal(again.status, TN_E_MEMORY);
    assert_int_equal(step_of(again.text), step);
    assert_int_equal(again.hash, first.hash);
    assert_false(has_checkpoint("ckpt-2"));

    const trainrun whole = trainrun_do(run_dir, more, NULL);
    assert_int_equal(whole.status, TN_OK);
    assert_int_equal(whole.hash, trainrun_hash(more + 1));
    assert_true(cap > 0);
}

TEST(a_run_that_is_over_needs_no_room)
{
    char option[64];
    char steps[64];
    trainrun first;
    (void)find_cap(option, &first);
    (void)snprintf(steps, sizeof steps, "train.max_steps=%llu",
                   (unsigned long long)step_of(first.text));
    const char *const over[] = {steps, "train.epochs=0"};
    for (uint32_t i = 0; i < 2; i++) {
        const char *const words[] = {option, data, over[i], NULL};
        const trainrun again = trainrun_do(run_dir, words, NULL);
        assert_ok(again.status, again.text);
        assert_int_equal(again.hash, first.hash);
    }
}

TEST(the_cap_comes_at_the_same_step_each_time)
{
    char option[64];
    trainrun first;
    (void)find_cap(option, &first);
    const char *const same[] = {option, data, "train.threads=2", "checkpoint.every=2steps", NULL};
    tn_tmpdir_remove(run_dir);
    const trainrun again = trainrun_do(run_dir, same, NULL);
    assert_int_equal(again.status, TN_E_MEMORY);
    assert_int_equal(step_of(again.text), step_of(first.text));
    assert_int_equal(again.hash, first.hash);
}

TEST(more_rows_than_the_cap_are_not_loaded)
{
    const char *const none[] = {"embedding.memory=none", data, NULL};
    const char *const small[] = {"embedding.memory=100kB", "train.epochs=9", data, NULL};
    const trainrun whole = trainrun_do(run_dir, none, NULL);
    assert_int_equal(whole.status, TN_OK);
    const trainrun again = trainrun_do(run_dir, small, NULL);
    assert_int_equal(again.status, TN_E_MEMORY);
    assert_non_null(strstr(again.text, "take more than 0.1 MB"));
    assert_int_equal(again.hash, whole.hash); /* it was not taken for damaged */
}

/* Neither with a cap that its rows do not fit, nor with the least that they fit: the next step
 * would need more. */
static void no_rank_makes_a_step(const grouprun *full)
{
    char option[64];
    const char *const own[] = {option, NULL};
    bool fits = false;
    for (uint32_t kb = 400; !fits; kb += 10) {
        (void)snprintf(option, sizeof option, "embedding.memory=%ukB", kb);
        grouprun again = *full;
        again.own[1] = own;
        grouprun_do(&again);
        assert_int_equal(again.status[0], TN_E_MEMORY);
        assert_int_equal(again.status[1], TN_E_MEMORY);
        assert_int_equal(again.hash, full->hash);
        fits = strstr(again.text[0], "the rows take more than ") == NULL;
    }
}

TEST(one_full_rank_ends_all)
{
    static const char *const staleness[] = {"cluster.staleness=0", "cluster.staleness=2"};
    for (uint32_t i = 0; i < 2; i++) {
        /* Rank 0 hears of it within a tenth of a second. */
        const char *const opts[] = {data,
                                    "train.batch=16",
                                    "train.epochs=30",
                                    "eval.every=never",
                                    "checkpoint.every=never",
                                    staleness[i],
                                    NULL};
        const char *const small[] = {"embedding.memory=400kB", NULL};
        grouprun full = {.config = "deepfm", .n = 2, .dir = run_dir, .more = opts};
        full.own[1] = small; /* rank 0 has room */
        grouprun_do(&full);
        for (uint32_t r = 0; r < 2; r++) {
            assert_int_equal(full.status[r], TN_E_MEMORY);
        }
        assert_non_null(strstr(full.text[0], " in another process: "));
        assert_false(full.elsewhere[0]);
        assert_true(full.elsewhere[1]); /* told once */
        assert_int_not_equal(full.hash, 0);
        assert_in_range(step_of(full.text[0]), 2, 30 * ROWS / 16 - 1);

        no_rank_makes_a_step(&full);

        grouprun rest = {.config = "deepfm", .n = 2, .dir = run_dir, .more = opts};
        grouprun_well(&rest);
        tn_tmpdir_remove(run_dir);
    }
}
